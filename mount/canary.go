package mount

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Canary tries a hook with a call whose right answer is known: when the hook
// has become ready, when it is asked to, and once a minute while the hook is
// idle. While the answer is wrong, what the hook says against a call stands and
// everything else it says counts as canary_failed. Make one with
// [Mounter.Canary] and Close it.
type Canary struct {
	hook     *Mounted
	config   *config.Canary
	timeout  time.Duration
	timing   *timing
	log      *zap.Logger
	onChange func(*Canary)

	closing context.Context
	close   context.CancelFunc
	done    chan struct{} // the keeper has returned
	asks    chan chan struct{}
	idle    chan struct{} // one slot: the last call has left
	stuck   chan struct{} // the keeper's: closed when the last call has returned

	mu      sync.Mutex
	inside  int // calls in the hook
	verdict verdict
	settled chan struct{} // closed and made anew with each verdict
}

// verdict is what came of a canary.
type verdict struct {
	life  any  // of the hook that was asked; nil before the first
	known bool // it gave an answer, or should have
	wrong bool
	got   string // a verb or an outcome
	why   string // for people
	at    time.Time
}

// CanaryStatus is how a canary fares.
type CanaryStatus struct {
	// OK is false while the hook's last answer is wrong.
	OK bool `json:"ok"`
	// Expect and Got are verbs; Got is an outcome when there was no answer, and
	// empty before the first.
	Expect string `json:"expect"`
	Got    string `json:"got"`
	// At is when it was asked last.
	At time.Time `json:"at,omitzero"`
}

// Canary tries the hook of an entry, which it was mounted for or which keeps
// it, from now on; nil when the entry has no canary. onChange, if set, is called
// when the answer has become wrong or right; it must not wait.
func (m *Mounter) Canary(h *Mounted, e *config.Entry, onChange func(*Canary)) *Canary {
	if e.Canary == nil {
		return nil
	}
	c := &Canary{
		hook: h, config: e.Canary, timeout: min(e.Timeout, m.timing.canaryLimit), timing: &m.timing, onChange: onChange,
		log: m.Log.With(zap.String("hook", e.Name)), done: make(chan struct{}), asks: make(chan chan struct{}), idle: make(chan struct{}, 1),
		settled: make(chan struct{}),
	}
	c.closing, c.close = context.WithCancel(context.Background())
	go c.keep()
	return c
}

// Close ends the tries. What was found out last keeps counting.
func (c *Canary) Close() {
	c.close()
	<-c.done
}

// Status returns how the canary fares.
func (c *Canary) Status() CanaryStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CanaryStatus{OK: !c.verdict.wrong, Expect: string(c.config.Expect), Got: c.verdict.got, At: c.verdict.at}
}

// Err returns what is wrong with the last answer, or nil.
func (c *Canary) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verdict.err(c.config)
}

func (v *verdict) err(c *config.Canary) error {
	if !v.wrong {
		return nil
	}
	why := ""
	if v.why != "" {
		why = " (" + v.why + ")"
	}
	return fmt.Errorf("its canary expects %s at %s and got %s%s", c.Expect, c.Request.Stage.Name, v.got, why)
}

// First waits for the answer of a hook that has just become ready. Any answer
// but the right one is an error, also none.
func (c *Canary) First(ctx context.Context) error {
	for {
		c.mu.Lock()
		v, settled := c.verdict, c.settled
		c.mu.Unlock()
		if v.life != nil {
			v.wrong = v.wrong || !v.known
			return v.err(c.config)
		}
		select {
		case <-settled:
		case <-c.done:
			return errClosed
		case <-ctx.Done():
			return fmt.Errorf("its canary: %w", context.Cause(ctx))
		}
	}
}

// Ask asks now, whether the hook is idle or not, and returns what is wrong with
// the answer. Of a hook that can't be asked at the moment the last answer
// counts.
func (c *Canary) Ask(ctx context.Context) error {
	asked := make(chan struct{})
	select {
	case c.asks <- asked:
	case <-c.done:
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("its canary: %w", context.Cause(ctx))
	}
	select {
	case <-asked:
		return c.Err()
	case <-ctx.Done():
		return fmt.Errorf("its canary: %w", context.Cause(ctx))
	}
}

// keep asks when it is time to.
func (c *Canary) keep() {
	defer close(c.done)
	minute := time.NewTimer(c.timing.canary)
	defer minute.Stop()
	ask := func(life any) {
		c.ask(life)
		minute.Reset(c.timing.canary)
	}
	due := false
	for c.closing.Err() == nil {
		life, changed := c.hook.life()
		if life != nil && c.isTime(life, due) {
			due = false
			ask(life)
			continue
		}
		select {
		case <-changed:
		case <-c.idle:
		case <-minute.C:
			due = true
		case asked := <-c.asks:
			if life != nil {
				due = false
				ask(life)
			}
			close(asked)
		case <-c.closing.Done():
		}
	}
}

// isTime reports whether a hook that can be asked is to be asked now. One that
// answers wrongly is asked also when it has much to do, or it could not recover.
func (c *Canary) isTime(life any, due bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verdict.life != life || due && (c.inside == 0 || c.verdict.wrong)
}

// ask asks once and takes note of the answer.
func (c *Canary) ask(life any) {
	v := c.try()
	if c.closing.Err() != nil {
		return
	}
	v.life, v.at = life, time.Now()
	c.mu.Lock()
	was := c.verdict
	if !v.known {
		v.wrong = was.wrong
	}
	c.verdict = v
	close(c.settled)
	c.settled = make(chan struct{})
	c.mu.Unlock()
	if v.wrong == was.wrong {
		return
	}
	if err := v.err(c.config); err != nil {
		c.log.Error("hook answers its canary wrongly: only what it says against a call counts", zap.Error(err))
	} else {
		c.log.Info("hook answers its canary rightly again")
	}
	if c.onChange != nil {
		c.onChange(c)
	}
}

// try makes the call. A hook that is stuck in the one before is not called
// again: it has not answered.
func (c *Canary) try() verdict {
	late := fmt.Errorf("no answer within %s", c.timeout)
	select {
	case <-c.stuck:
	default:
		if c.stuck != nil {
			return verdict{known: true, wrong: true, got: string(protocol.OutcomeTimeout), why: late.Error()}
		}
	}
	ctx, cancel := context.WithTimeoutCause(c.closing, c.timeout, late)
	defer cancel()
	answer, returned := make(chan verdict, 1), make(chan struct{})
	go func() { // ends with the call; an in-process hook may ignore its context
		defer close(returned)
		answer <- c.call(ctx)
	}()
	c.stuck = returned
	var over <-chan struct{}
	if c.hook.process == nil { // a process keeps its time itself
		over = ctx.Done()
	}
	select {
	case v := <-answer:
		<-returned
		return v
	case <-over:
	}
	return verdict{known: true, wrong: true, got: string(protocol.OutcomeTimeout), why: context.Cause(ctx).Error()}
}

// call calls the hook and judges its answer.
func (c *Canary) call(ctx context.Context) (v verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = verdict{known: true, wrong: true, got: string(protocol.OutcomePanic), why: fmt.Sprint(p)}
		}
	}()
	req := *c.config.Request
	req.Timeout = c.timeout
	d, err := c.hook.roles.Interceptor.Intercept(ctx, &req)
	if err == nil {
		verb := d.Decided()
		return verdict{known: true, wrong: verb != c.config.Expect, got: string(verb), why: clip(d.Reason)}
	}
	failure, ok := errors.AsType[*hook.Failure](err)
	if !ok {
		failure = &hook.Failure{Outcome: protocol.OutcomeHookError, Detail: clip(err.Error())}
		if ctx.Err() != nil {
			failure.Outcome = protocol.OutcomeTimeout
		}
	}
	known := answers(failure.Outcome)
	return verdict{known: known, wrong: known, got: string(failure.Outcome), why: failure.Detail}
}

// answers reports whether an outcome says something about the hook's judgement.
// One that is not there, or has no room for one more call, could not judge.
func answers(o protocol.Outcome) bool {
	switch o {
	case protocol.OutcomeStarting, protocol.OutcomeCrash, protocol.OutcomeSpawnFailed, protocol.OutcomeBreakerOpen,
		protocol.OutcomeUntrustedChanged, protocol.OutcomeOverloaded:
		return false
	}
	return true
}

// life identifies the run of a hook that may be called; nil = none may. The
// channel is closed when that changes; nil = it does not.
func (m *Mounted) life() (any, <-chan struct{}) {
	if m.process == nil {
		return m, nil
	}
	run, changed := m.process.life()
	if run == nil {
		return nil, changed
	}
	return run, changed
}
