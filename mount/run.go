package mount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// run is one life of a process hook's program, from its start to its end.
type run struct {
	p       *process
	program program
	peer    *rpc.Peer
	welcome protocol.HookWelcome
	slots   chan struct{} // holds one value per call that the child owes an answer
	idle    chan struct{} // closed when the run drains and the last call has left
	news    chan struct{} // wakes the supervisor
	faults  chan fault    // the first one ends the run

	good    atomic.Bool  // it has answered a call
	garbage atomic.Int64 // unreadable lines
	strange atomic.Int64 // answers to nothing that was asked

	// Guarded by process.mu.
	calls    int // that are inside
	draining bool
	reason   string // why hookd ends it

	// The read loop's.
	garbageBurst, requestBurst burst
	progressBurst              burst // the read loop's
	logged                     map[rpc.NoiseKind]time.Time

	mu       sync.Mutex
	overdue  []time.Time // of the calls that were given up and hold their slot: when their time is over
	early    int         // late answers that came before their call was known to be given up
	timeouts int         // calls in a row
	oversize int         // lines in a row
}

// fault is a reason for hookd to end a run.
type fault struct {
	reason string          // "": it has ended by itself
	drain  context.Context // until it ends, calls in flight may finish before; nil: they may not
	within time.Duration   // for that; 0: no other limit
	kill   bool            // without the steps of a stop
	wanted bool            // by somebody else, so it is nothing bad
	taken  chan struct{}   // to be closed when nobody is let in any more; may be nil
}

const (
	// maxNotifications is how many a child may send per second.
	maxNotifications = 1000
	// noiseLogPause is between two lines in the log about the same kind of noise.
	noiseLogPause = 10 * time.Second
	// epochs keep the ids of a run apart from those of earlier runs.
	epochBits, epochs = 32, 1 << 20
	// longestApproval is longer than an entry can ask for.
	longestApproval = 25 * time.Hour
)

func newRun(p *process, program program, number int) *run {
	r := &run{
		p: p, program: program, idle: make(chan struct{}), news: make(chan struct{}, 1), faults: make(chan fault, 1),
		garbageBurst: burst{limit: p.timing.garbage}, requestBurst: burst{limit: p.timing.requests},
		progressBurst: burst{limit: burstLimit{progressPerSecond + 1, time.Second}},
		logged:        map[rpc.NoiseKind]time.Time{},
	}
	r.peer = rpc.NewPeer(context.Background(), program, rpc.Options{
		Handler: r, Limits: p.limits, Silent: true, MaxNotifications: maxNotifications,
		MaxQueuedBytes: max(p.limits.MaxMessageBytes/4, 1<<20), WriteTimeout: p.unread(),
		FirstID: uint64(number%epochs)<<epochBits + 1, Log: p.log, OnNoise: r.noise,
	})
	return r
}

// unread is how long the hook may leave its stdin unread. An approver that
// works on one call at a time reads nothing as long as a person thinks.
func (p *process) unread() time.Duration {
	if slices.Contains(p.offer.Stages, protocol.StageApproveTool) {
		return longestApproval
	}
	return 0 // as the stream has it
}

// greet says hello and takes the answer to it over.
func (r *run) greet(ctx context.Context) error {
	hello, err := r.p.dialect.Hello(r.p.offer)
	if err != nil {
		return err
	}
	answer, err := r.peer.Call(ctx, protocol.MethodHello, hello)
	refusal, refused := errors.AsType[*protocol.Error](err)
	switch {
	case refused && refusal.Code == protocol.CodeMethodNotFound:
		// It knows no greeting, which is a yes.
	case refused:
		return fmt.Errorf("it refused the greeting: %s", clip(refusal.Error()))
	case err != nil:
		return err
	default:
		if r.welcome, err = protocol.DecodeHookWelcome(answer, r.p.offer.Stages); err != nil {
			return fmt.Errorf("its answer to the greeting: %w", err)
		}
		if r.welcome.Refused {
			return fmt.Errorf("it refused the greeting: %s", clip(r.welcome.Reason))
		}
	}
	if _, err := mergeStrategies(r.p.strategies, r.welcome.KeyStrategies); err != nil {
		return fmt.Errorf("its answer to the greeting: %w", err)
	}
	if r.welcome.Stages == nil {
		r.welcome.Stages = r.p.offer.Stages
	}
	r.slots = make(chan struct{}, max(r.p.maxInFlight, 1))
	if r.p.maxInFlight == 0 && r.welcome.MaxInFlight > 0 {
		r.slots = make(chan struct{}, r.welcome.MaxInFlight)
	}
	return nil
}

// noise hears what came from the child and had no meaning. It runs on the
// peer's read loop.
func (r *run) noise(n rpc.Noise) {
	t, now := &r.p.timing, time.Now()
	garbage := ""
	switch n.Kind {
	case rpc.NoiseLateReply:
		r.answeredLate()
	case rpc.NoiseDuplicateReply:
		r.fail(fault{reason: "it answered a call twice", drain: context.Background(), within: t.drain})
	case rpc.NoiseUnknownID:
		r.strange.Add(1)
	case rpc.NoiseGarbage:
		garbage = n.Detail
		r.garbage.Add(1)
		if r.garbageBurst.hit(now) {
			r.fail(fault{reason: fmt.Sprintf("it wrote %d unreadable lines within %s", t.garbage.count, t.garbage.window)})
		}
	case rpc.NoiseOversize:
		r.mu.Lock()
		r.oversize++
		many := r.oversize >= t.oversize
		r.mu.Unlock()
		if many {
			r.fail(fault{reason: fmt.Sprintf("it wrote %d lines in a row that are too long", t.oversize)})
		}
	case rpc.NoiseRequest:
		if n.ID != (rpc.ID{}) && r.requestBurst.hit(now) {
			r.fail(fault{reason: fmt.Sprintf("it sent %d requests within %s, and hookd serves none", t.requests.count, t.requests.window), kill: true})
		}
	case rpc.NoiseNotificationFlood:
		r.fail(fault{reason: fmt.Sprintf("it sent more than %d notifications in a second", maxNotifications), kill: true})
	}
	r.p.count(string(n.Kind), garbage)
	if n.Kind != rpc.NoiseCRLF && now.Sub(r.logged[n.Kind]) >= noiseLogPause {
		r.logged[n.Kind] = now
		r.p.log.Warn("noise from the hook", zap.String("kind", string(n.Kind)), zap.Stringer("id", n.ID), zap.String("detail", n.Detail))
	}
}

// fail asks the supervisor to end the run. The first reason counts.
func (r *run) fail(f fault) {
	select {
	case r.faults <- f:
	default:
	}
}

// wake makes the supervisor look at the run again.
func (r *run) wake() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// answered notes that a call got its answer in time.
func (r *run) answered() {
	r.mu.Lock()
	r.timeouts, r.oversize = 0, 0
	r.mu.Unlock()
}

// proved notes that an answer could be read.
func (r *run) proved() {
	if !r.good.Load() && !r.good.Swap(true) {
		r.wake()
	}
}

// gaveUp notes that nobody waits for a call any longer. The call keeps its
// slot until its late answer comes; until then the hook's time is over at
// overdue. timedOut says that this is now.
func (r *run) gaveUp(overdue time.Time, timedOut bool) {
	r.mu.Lock()
	if timedOut {
		if r.timeouts++; r.timeouts >= r.p.timing.timeouts {
			r.fail(fault{reason: fmt.Sprintf("%d calls in a row got no answer in time%s", r.timeouts, r.strangeAnswers())})
		}
	}
	if r.early > 0 { // its answer was quicker than we are
		r.early--
		<-r.slots
	} else {
		r.overdue = append(r.overdue, overdue)
	}
	r.mu.Unlock()
	r.wake()
}

// answeredLate frees the slot of a call that was given up. Which one does not
// matter: slots are alike.
func (r *run) answeredLate() {
	r.mu.Lock()
	if len(r.overdue) == 0 {
		r.early++
	} else {
		r.overdue = slices.Delete(r.overdue, 0, 1)
		<-r.slots
	}
	r.mu.Unlock()
	r.wake()
}

func (r *run) strangeAnswers() string {
	if n := r.strange.Load(); n > 0 {
		return fmt.Sprintf("; %d answers had an id that was not asked: a hook must answer with the id of the request as it was sent", n)
	}
	return ""
}

// debts reports how the run fares at now: whether the child owes an answer
// whose time is over, whether it is stuck, because all its slots are held by
// such calls for too long, and when to look again (zero: at the next news).
func (r *run) debts(now time.Time) (owes, stuck bool, again time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var last time.Time
	for _, t := range r.overdue {
		if !t.After(now) {
			owes = true
		} else if again.IsZero() || t.Before(again) {
			again = t
		}
		if t.After(last) {
			last = t
		}
	}
	if len(r.overdue) > 0 && len(r.overdue) == cap(r.slots) {
		limit := last.Add(r.p.timing.stuck)
		stuck = !limit.After(now)
		if again.IsZero() {
			again = limit
		}
	}
	return owes, stuck, again
}
