package hooktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Check calls the hook v as hookd would, ready as it is, and fails t for each
// promise that it breaks:
//
//   - It fills a role, and answers at every stage of that role with a decision
//     that can be read and is possible there.
//   - It does not panic, whatever arguments, messages, events and unknown params
//     it gets. Of those that it can't work with it may return an error.
//   - It returns soon after its context has ended.
//   - It leaves the request as it is.
//   - It may be called from several goroutines at once: let the test run with
//     -race too.
//
// All calls are marked as dry runs.
func Check(t *testing.T, v any) {
	t.Helper()
	for _, broken := range brokenPromises(v) {
		t.Error(broken)
	}
}

const (
	answerTime = 5 * time.Second // as long as hookd waits for an interceptor by default
	cancelTime = time.Second
	callers    = 8
)

var errNoLongerWanted = errors.New("hooktest no longer wants the answer")

type checker struct {
	hook direct

	mu     sync.Mutex
	broken []string
}

func brokenPromises(v any) []string {
	roles, err := hook.RolesOf(v)
	if err != nil {
		return []string{err.Error()}
	}
	c := &checker{hook: direct{roles}}
	var stages []*protocol.StageInfo
	for _, s := range protocol.Stages() {
		if c.mountable(s.Name) {
			stages = append(stages, &s)
		}
	}
	for _, s := range stages {
		c.ask(sample(s), false)
		for _, req := range strange(s) {
			c.ask(req, true)
		}
		c.cancelled(sample(s))
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for _, s := range stages {
				c.ask(sample(s), false)
			}
		})
	}
	if roles.Observer != nil {
		c.observe() // from one goroutine, while calls run
	}
	wg.Wait()
	return c.broken
}

// mountable reports whether hookd would ask the hook at this stage.
func (c *checker) mountable(stage protocol.Stage) bool {
	r := hook.Registration{
		Name: "checked", FailPolicy: hook.FailDeny, Roles: c.hook.roles, Stages: []protocol.Stage{stage},
		Timeout: answerTime, ApprovalTimeout: answerTime, ObserverTimeout: answerTime,
	}
	return r.Check() == nil
}

// report notes a broken promise once.
func (c *checker) report(format string, args ...any) {
	broken := fmt.Sprintf(format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.broken, broken) {
		c.broken = append(c.broken, broken)
	}
}

// ask wants a legal answer. With mayFail an error will do as well.
func (c *checker) ask(req *protocol.Request, mayFail bool) {
	stage := req.Stage
	before := string(req.AppendParams(nil, 0))
	ctx, cancel := context.WithTimeoutCause(context.Background(), answerTime, errNoLongerWanted)
	defer cancel()
	var d protocol.Decision
	err := within(answerTime+cancelTime, func() (err error) {
		d, err = c.answer(ctx, req)
		return err
	})
	if err == errSilent || err != nil && ctx.Err() != nil {
		c.report("%s: it gave no answer within %s when it was asked %s", stage.Name, answerTime, before)
		return
	}
	if after := string(req.AppendParams(nil, 0)); after != before {
		c.report("%s: it changed the request from %s to %s: return what changes in the decision", stage.Name, before, after)
	}
	switch {
	case outcomeOf(ctx, err) == protocol.OutcomePanic:
		c.report("%s: it panicked (%v) when it was asked %s", stage.Name, err, before)
	case err == nil:
		if err := legal(stage, &d); err != nil {
			c.report("%s: %v, when it was asked %s", stage.Name, err, before)
		}
	case !mayFail:
		c.report("%s: it failed (%v) when it was asked %s", stage.Name, err, before)
	}
}

// answer calls the hook. An approval is read as the empty decision: all of
// them are legal.
func (c *checker) answer(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	if req.Stage.Name == protocol.StageApproveTool {
		_, err := c.hook.Approve(ctx, req)
		return protocol.Decision{}, err
	}
	return c.hook.Intercept(ctx, req)
}

// legal reports what hookd could not read or would ignore.
func legal(stage *protocol.StageInfo, d *protocol.Decision) error {
	if !stage.Allows(d.Decided()) {
		return fmt.Errorf("it answered %q, which is not possible there", d.Decided())
	}
	if err := d.Check(stage); err != nil {
		return fmt.Errorf("its answer %s can't be used: %w", d.AppendJSON(nil, stage), err)
	}
	return nil
}

// cancelled wants a return from a call whose context has ended.
func (c *checker) cancelled(req *protocol.Request) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNoLongerWanted)
	err := within(cancelTime, func() error {
		_, err := c.answer(ctx, req)
		return err
	})
	if err == errSilent {
		c.report("%s: it went on for %s after its context had ended", req.Stage.Name, cancelTime)
	}
}

// observe tells the hook of every kind of event.
func (c *checker) observe() {
	kinds := append(append(protocol.AgentEvents(), protocol.HookdEvents()...), "x_own")
	for i, kind := range kinds {
		for _, ev := range []*protocol.Event{
			{Kind: kind},
			{
				Kind: kind, Time: time.Now().UTC(), Severity: "info", Source: "agent", ID: "1",
				Meta:    protocol.Object{{Name: "agent", Value: protocol.Quote("hooktest")}},
				Payload: jsontext.Value(`{"tool":"bash","arguments":{"command":"ls"},"usage":null,"duration_ms":1.5,"action":7}`),
			},
		} {
			ctx, cancel := context.WithTimeoutCause(context.Background(), answerTime, errNoLongerWanted)
			err := within(answerTime+cancelTime, func() error {
				return c.hook.Observe(ctx, &hook.Event{Event: ev, Seq: uint64(i + 1), Missed: uint64(i)})
			})
			cancel()
			if err == errSilent {
				c.report("event %s: it went on for %s after its context had ended", kind, cancelTime)
				return // one goroutine at a time
			}
			if outcomeOf(ctx, err) == protocol.OutcomePanic {
				c.report("event %s: it panicked (%v)", kind, err)
			}
		}
	}
}

// errSilent says that a call did not return.
var errSilent = errors.New("no answer")

// within runs f for as long as limit. What still runs then can't be stopped.
func within(limit time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errSilent
	}
}
