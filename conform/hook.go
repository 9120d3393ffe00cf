package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// HookOptions say which hook is tested, and how.
type HookOptions struct {
	// Argv is the hook's program with its arguments.
	Argv []string
	// Stages are offered to the hook, and it is asked at those that it takes.
	// With neither stages nor events, everything is offered.
	Stages []protocol.Stage
	// Events are kinds that the hook is told of.
	Events []string
	// Config is what the hook finds in the greeting; nil means nothing.
	Config jsontext.Value
	// Timeout is how long it may take for the greeting and for each answer;
	// default 5 s.
	Timeout time.Duration
	// Show, if set, is told each result as soon as it is known.
	Show func(Result)
}

const (
	exitTime = 2 * time.Second // as long as hookd waits before it sends a signal
	hugeSize = 4 << 20
	// quiet is how long to wait for what should not come, and for hooks that
	// can't be asked anything.
	quiet = 200 * time.Millisecond
	// highestID is where the ids begin in the last life that hookd gives a hook.
	highestID = (1<<20-1)<<32 + 1
)

// Hook tests a hook and returns what it found. The error is that of ctx: what
// is wrong with the hook is a result.
func Hook(ctx context.Context, o HookOptions) ([]Result, error) {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	table := protocol.NewStageTable()
	k := &hookKit{o: o, report: newReport(ctx, o.Show), spawner: child.NewSpawner(), offer: o.Stages, events: o.Events}
	defer k.spawner.Close()
	if o.Stages == nil && o.Events == nil {
		k.events = []string{"*"}
		for _, name := range protocol.StageNames() {
			k.offer = append(k.offer, protocol.Stage(name))
		}
	}
	k.run(ctx, table)
	if k.s != nil {
		k.s.close()
	}
	return k.results, context.Cause(ctx)
}

// hookKit is one test of one hook.
type hookKit struct {
	report
	o       HookOptions
	spawner *child.Spawner
	offer   []protocol.Stage
	events  []string

	s     *session            // nil before the first start, and ended when the hook has
	first string              // how the first greeting was answered
	probe *protocol.StageInfo // a stage at which the hook has answered; nil before there is one
	noise []rpc.Noise         // of all sessions that are over
}

// check is one check of the running hook.
type check struct {
	name string
	run  func(context.Context) Result
}

func (k *hookKit) run(ctx context.Context, table *protocol.StageTable) {
	rest := []check{
		{"events", k.tellEvents}, {"unknown method", k.unknownMethod}, {"unknown notification", k.unknownNotification},
		{"garbage on stdin", k.garbage}, {"two calls at once", k.twoCalls}, {"a line in pieces", k.pieces},
		{"cancel", k.cancel}, {"dry run", k.dryRun}, {"a request of 4 MiB", k.huge},
		{"end of file", k.endOfFile}, {"SIGTERM", k.terminate}, {"restart", k.restart}, {"high ids", k.highIDs},
	}
	began := time.Now()
	err := k.start(ctx, 1)
	if refusal, ok := errors.AsType[*refused](err); ok && k.o.Stages == nil && k.o.Events == nil {
		err = k.offerLess(ctx, refusal)
	}
	if err != nil {
		k.add("greeting", fail("answer hook.hello with {\"ok\":true} before anything else, and print nothing before it", "%v", err))
		k.add("the rest", skip("nothing else can be checked of a hook that is not there"))
		return
	}
	k.add("greeting", pass("in %s; it takes %s", took(time.Since(began)), k.takes()))
	for _, name := range k.offer {
		if ctx.Err() != nil {
			return
		}
		if !slices.Contains(k.s.welcome.Stages, name) {
			k.add(string(name), skip("its answer to the greeting leaves this stage out"))
			continue
		}
		k.stage(ctx, table.Stage(name))
	}
	switch {
	case k.probe != nil || len(k.offer) == 0:
	case k.o.Stages == nil && len(k.events) > 0:
		k.add("stages", warn("if it only observes, say so: --event '*'", "it was offered all stages and answers at none"))
	default:
		k.add("stages", fail("answer at one of the stages at least", "it was offered %d stages and answers at none", len(k.offer)))
	}
	for _, c := range rest {
		if ctx.Err() != nil {
			return
		}
		if err := k.live(ctx); err != nil {
			k.add(c.name, fail("see the checks above", "it did not start again: %v", err))
			continue
		}
		k.add(c.name, c.run(ctx))
	}
	k.end()
	k.add("stdout", k.stdout())
}

func (k *hookKit) takes() string {
	var list []string
	for _, s := range k.s.welcome.Stages {
		list = append(list, string(s))
	}
	if len(list) == len(protocol.StageNames()) {
		list = []string{"all stages"}
	} else if len(list) == 0 {
		list = []string{"no stages"}
	}
	if len(k.events) > 0 {
		list = append(list, "events "+strings.Join(k.events, ", "))
	}
	return strings.Join(list, ", ")
}

// start starts and greets the hook as hookd would.
func (k *hookKit) start(ctx context.Context, firstID uint64) error {
	process, err := k.spawner.Start(ctx, child.Spec{Name: "conform", Argv: k.o.Argv})
	if err != nil {
		return err
	}
	k.end()
	k.s = open(process, k.o.Timeout, firstID)
	hello, err := protocol.Marshal(protocol.HookHello{
		Name: "conform", Version: protocol.Version, Modes: protocol.Modes(k.offer, len(k.events) > 0),
		Stages: append([]protocol.Stage{}, k.offer...), Events: append([]string{}, k.events...),
		Server: protocol.Software{Name: "hookd conform"}, Generation: 1, Limits: protocol.Limits{}.WithDefaults(), Config: k.o.Config,
	})
	if err != nil {
		return err
	}
	answer, err := k.s.call(ctx, protocol.MethodHello, hello)
	if refusal, ok := errors.AsType[*protocol.Error](err); ok && refusal.Code == protocol.CodeMethodNotFound {
		answer, err = nil, nil // it knows no greeting, which is a yes
	} else if ok {
		return &refused{clip(refusal.Error())}
	}
	if err != nil {
		return errors.New(k.s.trouble(err, 0).Detail)
	}
	w, err := protocol.DecodeHookWelcome(answer, k.offer)
	switch {
	case err != nil:
		return fmt.Errorf("its answer to the greeting: %w", err)
	case w.Refused:
		return &refused{clip(w.Reason)}
	case w.Stages == nil:
		w.Stages = k.offer
	}
	k.s.welcome = w
	if k.first == "" {
		k.first = fmt.Sprintf("%v", w)
	}
	return nil
}

// refused is the error of a hook that does not want what it is offered.
type refused struct{ reason string }

func (e *refused) Error() string { return "it refused the greeting: " + e.reason }

// offerLess finds out what a hook wants that refuses when it is offered
// everything: without events, or one by one.
func (k *hookKit) offerLess(ctx context.Context, refusal error) error {
	all := k.offer
	k.events = nil
	if k.start(ctx, 1) == nil {
		return nil
	}
	var some []protocol.Stage
	for _, stage := range all {
		if k.offer = []protocol.Stage{stage}; k.start(ctx, 1) == nil {
			some = append(some, stage)
		}
	}
	k.offer, k.events = nil, []string{"*"}
	if k.start(ctx, 1) != nil {
		k.events = nil
	}
	if len(some) == 0 && k.events == nil {
		return refusal
	}
	k.offer, k.first = some, ""
	return k.start(ctx, 1)
}

// end kills the hook, and keeps what it has said.
func (k *hookKit) end() {
	if k.s == nil {
		return
	}
	k.s.close()
	noise, _ := k.s.heard(0)
	k.noise = append(k.noise, noise...)
	k.s = nil
}

// live makes sure that the hook runs.
func (k *hookKit) live(ctx context.Context) error {
	if k.s != nil && k.s.peer.Err() == nil {
		return nil
	}
	return k.start(ctx, 1)
}

// stage makes the checks of one stage.
func (k *hookKit) stage(ctx context.Context, stage *protocol.StageInfo) {
	name := string(stage.Name)
	if err := k.live(ctx); err != nil {
		k.add(name, fail("see the checks above", "it did not start again: %v", err))
		return
	}
	answer, r := k.judge(ctx, request(stage, ""), false)
	if e, ok := errors.AsType[*protocol.Error](answer.err); ok && e.Code == protocol.CodeMethodNotFound && k.o.Stages == nil {
		k.add(name, skip("it does not know this stage; to insist: --stage %s", name))
		return
	}
	if k.add(name, r) == Pass && k.probe == nil {
		k.probe = stage
	}
	again := func(check string, requests ...*protocol.Request) {
		result := pass("")
		for _, req := range requests {
			if err := k.live(ctx); err != nil {
				result = fail("see the checks above", "it did not start again: %v", err)
				break
			}
			answer, r := k.judge(ctx, req, true)
			if result = r; r.Status != Pass {
				if errors.Is(answer.err, errTimeout) || errors.Is(answer.err, rpc.ErrClosed) {
					result.Do = "expect members that you don't know and values of other types, and end lines at \\n only"
				}
				break
			}
			if lost := altered(answer.raw); lost != "" {
				result = fail("keep numbers as text and text as it is, or answer only with the members that change", "%s", lost)
				break
			}
		}
		k.add(name+": "+check, result)
	}
	again("unknown params, odd text and numbers", odd(stage))
	again("values of other types", strange(stage)...)
}

// answered is how a call ended.
type answered struct {
	raw jsontext.Value
	err error
}

// judge asks at a stage and reads the answer as hookd does. With mayFail an
// error will do as well.
func (k *hookKit) judge(ctx context.Context, req *protocol.Request, mayFail bool) (answered, Result) {
	_, mark := k.s.heard(0)
	began := time.Now()
	raw, err := k.s.ask(ctx, req)
	a := answered{raw, err}
	if refusal, ok := errors.AsType[*protocol.Error](err); ok {
		if mayFail {
			return a, pass("the error %q, to which fail_policy applies", clip(refusal.Message))
		}
		return a, fail("answer {} where the hook has nothing to say", "it answered an ordinary request with the error %s", clip(refusal.Error()))
	}
	if err != nil {
		r := k.s.trouble(err, mark)
		if errors.Is(err, errTimeout) {
			k.end() // it may be stuck
		}
		return a, r
	}
	verdict, err := verdict(req.Stage, raw)
	if err != nil {
		return a, fail("see docs/protocol.md, Decisions: hookd denies a call whose answer can't be used", "%v; it answered %s", err, clip(string(raw)))
	}
	return a, pass("%s in %s", verdict, took(time.Since(began)))
}

// verdict reads an answer strictly.
func verdict(stage *protocol.StageInfo, raw []byte) (string, error) {
	if stage.Name == protocol.StageApproveTool {
		a, err := protocol.DecodeApproval(raw)
		if err != nil {
			return "", err
		}
		if a.Approved {
			return "approved", nil
		}
		return "not approved", nil
	}
	d, err := protocol.DecodeDecision(stage, raw)
	if err != nil {
		return "", err
	}
	if !stage.Allows(d.Decided()) {
		return "", fmt.Errorf("%q is not possible at %s", d.Decided(), stage.Name)
	}
	return string(d.Decided()), nil
}

// well asks the hook something ordinary. Of one that can't be asked it only
// sees whether it still runs.
func (k *hookKit) well(ctx context.Context) Result {
	if k.probe != nil {
		_, r := k.judge(ctx, request(k.probe, ""), false)
		return r
	}
	select {
	case <-k.s.peer.Done():
		return k.s.trouble(rpc.ErrClosed, 0)
	case <-time.After(quiet):
		return pass("")
	}
}

// silent says that what was sent must not be answered, and that the hook must
// be well after it.
func (k *hookKit) silent(ctx context.Context, what string, send func() error) Result {
	_, mark := k.s.heard(0)
	if err := send(); err != nil {
		return k.s.trouble(err, mark)
	}
	if r := k.well(ctx); r.Status != Pass {
		r.Detail = "after " + what + ": " + r.Detail
		return r
	}
	list, _ := k.s.heard(mark)
	for _, n := range list {
		if n.Kind == rpc.NoiseUnknownID || n.Kind == rpc.NoiseGarbage {
			return fail("answer nothing that has no id", "it answered %s: %s", what, clip(n.Detail))
		}
	}
	return pass("not answered")
}

func (k *hookKit) tellEvents(ctx context.Context) Result {
	if len(k.events) == 0 {
		return skip("none were offered; to try: --event KIND")
	}
	kinds := append(append(protocol.AgentEvents(), protocol.HookdEvents()...), "x_own")
	var wanted []protocol.EventKind
	for _, text := range k.events {
		sub, err := protocol.ParseSubscription(text)
		if err != nil {
			return fail("name a kind of event, a pattern such as tool_*, or *", "%v", err)
		}
		for _, kind := range kinds {
			if sub.Matches(kind) && !slices.Contains(wanted, kind) {
				wanted = append(wanted, kind)
			}
		}
	}
	r := k.silent(ctx, "an event", func() error {
		for i, kind := range wanted {
			ev := protocol.Event{
				Kind: kind, Time: time.Now().UTC(), Severity: "info", Source: "agent", ID: "1",
				Meta:    protocol.Object{{Name: "agent", Value: protocol.Quote("conform")}},
				Payload: jsontext.Value(`{"tool":"bash","arguments":{"command":"ls",` + oddMembers() + `},"usage":null,"action":"deny"}`),
			}
			if err := k.s.peer.Notify(ctx, protocol.MethodEvent, ev.AppendJSON(nil, uint64(i+1), uint64(i))); err != nil {
				return err
			}
		}
		return nil
	})
	if r.Status == Pass {
		r.Detail = fmt.Sprintf("%d kinds, none answered", len(wanted))
	}
	return r
}

func (k *hookKit) unknownMethod(ctx context.Context) Result {
	const method = "hook.no_such_stage"
	short, cancel := context.WithTimeoutCause(ctx, min(k.o.Timeout, time.Second), errTimeout)
	defer cancel()
	answer, err := k.s.peer.Call(short, method, []byte(`{}`))
	r := pass("ignored")
	refusal, refused := errors.AsType[*protocol.Error](err)
	switch {
	case err == nil:
		r = warn("answer what you don't know with the error -32601", "it answered %s with the result %s", method, clip(string(answer)))
	case refused && refusal.Code == protocol.CodeMethodNotFound:
		r = pass("the error -32601")
	case refused:
		r = warn("answer what you don't know with the error -32601", "it answered %s with the error %d", method, refusal.Code)
	case !errors.Is(err, errTimeout):
		return k.s.trouble(err, 0)
	}
	if after := k.well(ctx); after.Status != Pass {
		return after
	}
	return r
}

func (k *hookKit) unknownNotification(ctx context.Context) Result {
	return k.silent(ctx, "a notification that it can't know", func() error {
		return k.s.peer.Notify(ctx, "hook.no_such_event", []byte(`{"kind":"x"}`))
	})
}

func (k *hookKit) garbage(ctx context.Context) Result {
	_, mark := k.s.heard(0)
	if _, err := k.s.pipes.in.Write([]byte("this is no JSON {\n\n[]\n")); err != nil {
		return k.s.trouble(rpc.ErrClosed, mark)
	}
	r := k.well(ctx)
	if r.Status != Pass {
		return r
	}
	// To answer it with an error without id is what JSON-RPC says, so it is no noise.
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	tail := slices.DeleteFunc(slices.Clone(k.s.noise[mark:]), func(n rpc.Noise) bool { return n.Kind == rpc.NoiseUnknownID })
	k.s.noise = append(k.s.noise[:mark], tail...)
	return pass("skipped")
}

// together makes calls whose lines are written in so many pieces.
func (k *hookKit) together(ctx context.Context, calls, pieces int) Result {
	if k.probe == nil {
		return skip("it answers at no stage")
	}
	_, mark := k.s.heard(0)
	full := k.s.pipes.hold(calls)
	began := time.Now()
	results := make([]answered, calls)
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			raw, err := k.s.ask(ctx, request(k.probe, ""))
			results[i] = answered{raw, err}
		})
	}
	select {
	case <-full:
	case <-k.s.peer.Done():
	}
	if err := k.s.pipes.release(pieces); err != nil {
		_ = k.s.peer.Close() // nobody will answer
	}
	wg.Wait()
	for _, a := range results {
		if a.err != nil {
			r := k.s.trouble(a.err, mark)
			r.Do = "read line by line, and answer all that was read: several lines may come in one read, and one line in several"
			return r
		}
		if _, err := verdict(k.probe, a.raw); err != nil {
			return fail("keep nothing between calls that makes one answer depend on another", "%v", err)
		}
	}
	return pass("answered in %s", took(time.Since(began)))
}

func (k *hookKit) twoCalls(ctx context.Context) Result { return k.together(ctx, 2, 1) }
func (k *hookKit) pieces(ctx context.Context) Result   { return k.together(ctx, 1, 7) }

func (k *hookKit) cancel(ctx context.Context) Result {
	if err := k.s.peer.Notify(ctx, protocol.MethodCancel, []byte(`{"id":4711}`)); err != nil {
		return k.s.trouble(err, 0)
	}
	if k.probe == nil {
		return k.well(ctx)
	}
	_, mark := k.s.heard(0)
	full := k.s.pipes.hold(2)
	call, giveUp := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = k.s.ask(call, request(k.probe, "")) })
	for held := false; !held; { // until the call is on its way
		k.s.pipes.mu.Lock()
		held = len(k.s.pipes.held) > 0 || k.s.peer.Err() != nil
		k.s.pipes.mu.Unlock()
		if !held {
			time.Sleep(time.Millisecond)
		}
	}
	giveUp()
	wg.Wait()
	select {
	case <-full:
	case <-k.s.peer.Done():
	}
	if err := k.s.pipes.release(1); err != nil || !k.s.await(rpc.NoiseLateReply, mark) {
		if k.s.peer.Err() != nil {
			return k.s.trouble(rpc.ErrClosed, mark)
		}
		k.end()
		return fail("answer a cancelled call too, with anything: hookd holds its place until then, and at last starts the hook anew", "a call that was cancelled got no answer within %s", k.o.Timeout)
	}
	if r := k.well(ctx); r.Status != Pass {
		r.Detail = "after a cancelled call: " + r.Detail
		return r
	}
	return pass("the call was answered all the same, which frees its place")
}

func (k *hookKit) dryRun(ctx context.Context) Result {
	if k.probe == nil {
		return skip("it answers at no stage")
	}
	var seen []string
	for range 2 {
		a, r := k.judge(ctx, request(k.probe, ""), false)
		if r.Status != Pass {
			return r
		}
		v, _ := verdict(k.probe, a.raw)
		seen = append(seen, v)
	}
	if seen[0] != seen[1] {
		return warn("remember nothing of a request with \"dry_run\": true", "the same request was answered with %s and then with %s", seen[0], seen[1])
	}
	return pass("twice the same; that it does nothing else can't be seen from here")
}

func (k *hookKit) huge(ctx context.Context) Result {
	if k.probe == nil {
		return skip("it answers at no stage")
	}
	_, r := k.judge(ctx, huge(k.probe, hugeSize), false)
	if r.Status == Fail {
		r.Do = "read lines of any length up to limits.max_message_bytes of the greeting, and quickly"
	}
	return r
}

// exits waits for the hook's end, which cause brings about.
func (k *hookKit) exits(cause func()) (child.Exit, time.Duration, bool) {
	began := time.Now()
	cause()
	timer := time.NewTimer(exitTime)
	defer timer.Stop()
	select {
	case <-k.s.process.Done():
		return k.s.process.Exit(), took(time.Since(began)), true
	case <-timer.C:
		return child.Exit{}, 0, false
	}
}

func (k *hookKit) endOfFile(context.Context) Result {
	exit, in, ended := k.exits(func() { _ = k.s.process.Stdin().Close() })
	defer k.end()
	switch {
	case !ended:
		return fail("end when stdin ends, with all that was started", "it still runs, or something that it has started, %s after its stdin ended", exitTime)
	case exit != child.Exit{}:
		return fail("end with exit status 0 when stdin ends: anything else looks like a crash", "it %s when its stdin ended", exit.How())
	}
	return pass("exit status 0 after %s", in)
}

func (k *hookKit) terminate(context.Context) Result {
	exit, in, ended := k.exits(func() { _ = unix.Kill(k.s.process.PID(), syscall.SIGTERM) })
	defer k.end()
	if !ended {
		return fail("leave SIGTERM alone, or end upon it: SIGKILL comes next", "it still runs %s after SIGTERM", exitTime)
	}
	return pass("%s after %s", exit, in)
}

func (k *hookKit) restart(ctx context.Context) Result {
	if now := fmt.Sprintf("%v", k.s.welcome); now != k.first {
		return warn("answer the greeting alike each time: hookd starts hooks anew while agents work", "it answered the greeting otherwise than at first: %s", clip(now))
	}
	return k.well(ctx)
}

func (k *hookKit) highIDs(ctx context.Context) Result {
	if err := k.start(ctx, highestID); err != nil {
		return fail("copy the request's id into the answer, byte for byte", "with the id %d: %v", uint64(highestID), err)
	}
	return k.well(ctx)
}

// stdout judges all that came and was no answer.
func (k *hookKit) stdout() Result {
	for _, n := range k.noise {
		switch n.Kind {
		case rpc.NoiseGarbage, rpc.NoiseOversize:
			return fail("print what is for people to stderr", "a line that is no message: %s", clip(n.Detail))
		case rpc.NoiseUnknownID:
			return fail("answer each request once, with its id, and nothing else", "an answer to nothing that was asked: %s", clip(n.Detail))
		case rpc.NoiseDuplicateReply:
			return fail("answer each request once: hookd starts a hook anew that does not", "a second answer to %s", n.ID)
		case rpc.NoiseRequest:
			if n.Detail != protocol.MethodProgress {
				return warn("send nothing but answers and hook.progress", "a message that hookd does not serve: %s", clip(n.Detail))
			}
		case rpc.NoiseCRLF:
			return warn(`end lines with \n alone`, `lines end with \r\n`)
		}
	}
	return pass("nothing but answers")
}
