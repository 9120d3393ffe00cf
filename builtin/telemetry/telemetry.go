// Package telemetry is a hook that writes traces of what agents do and what
// hookd says to it, for an OpenTelemetry collector: a span for each run of an
// agent, below it one for each call at a stage, and below these one for each
// hook's turn.
//
// What is shown to it goes through a bounded queue to one goroutine, which keeps
// the table of open runs and makes the spans; another one sends them. Neither
// the calls nor hookd's end wait for a collector. Where something is full, the
// newest is left out and counted.
//
// Spans hold ids, names, verdicts and times. What users, models and tools said
// is not read.
package telemetry

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

// Telemetry makes traces of what it is shown: of events, as an observer, and of
// calls through its [Sink]. Make it with [New] and close it.
type Telemetry struct {
	queue   chan *item // nil without an endpoint
	reasons bool
	dropped atomic.Int64
	closed  atomic.Bool

	sink   *Sink
	runs   *runs
	batch  *batch
	stop   chan struct{}
	worker sync.WaitGroup
	once   sync.Once
}

// queueLen is how many calls and events may wait until spans are made of them.
const queueLen = 4096

// Stats are counts since the hook was made.
type Stats struct {
	// OpenRuns is how many runs are open now.
	OpenRuns int64
	// DroppedRecords counts calls and events that came faster than spans could
	// be made of them.
	DroppedRecords int64
	// SentSpans were taken by the collector; FailedSpans it did not take;
	// DroppedSpans came while too many waited for it.
	SentSpans, FailedSpans, DroppedSpans int64
}

// New makes a Telemetry that is shown the calls of sink. Without an endpoint in
// the config it does nothing. folder is where a relative path of the headers
// file starts. The collector is not asked whether it is there. The caller closes
// the Telemetry. The error is a *[builtin.ConfigError].
func New(config jsontext.Value, folder string, sink *Sink, log *zap.Logger) (*Telemetry, error) {
	return build(config, folder, sink, log, nil)
}

// build is [New] with another way to the collector; nil is HTTP.
func build(raw jsontext.Value, folder string, sink *Sink, log *zap.Logger, way http.RoundTripper) (*Telemetry, error) {
	c, err := readConfig(raw)
	if err != nil {
		return nil, err
	}
	if c.Endpoint == "" {
		log.Warn("the config of the hook has no endpoint: no traces are sent")
		return &Telemetry{}, nil
	}
	to, err := newCollector(c, folder, log, way)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{queue: make(chan *item, queueLen), reasons: c.Reasons, sink: sink, stop: make(chan struct{})}
	t.batch = newBatch(to, log, &t.dropped)
	t.runs = newRuns(c, t.batch)
	t.worker.Go(t.work)
	sink.add(t)
	return t, nil
}

// Active reports whether there is a collector to send to.
func (t *Telemetry) Active() bool { return t.queue != nil }

// Events are what a Telemetry is told: how runs begin and end, and what has no
// stage. hookd makes most others of calls, which are recorded anyway.
func Events() []string {
	var names []string
	for _, k := range []protocol.EventKind{
		protocol.EventSessionEnd, protocol.EventTurnStart, protocol.EventTurnEnd, protocol.EventAgentStart, protocol.EventAgentEnd,
		protocol.EventAgentError, protocol.EventAgentTimeout, protocol.EventIterationStart, protocol.EventIterationEnd,
		protocol.EventLLMRetry, protocol.EventInterruptReceived, protocol.EventError,
	} {
		names = append(names, string(k))
	}
	return names
}

// Quick marks that a Telemetry waits for nothing.
func (*Telemetry) Quick() {}

// Take takes down a call whose answer does not change any more. It never waits
// and keeps nothing of rec. It may be called concurrently, also after Close,
// when it does nothing. Dry runs are left out.
func (t *Telemetry) Take(rec *manager.Record) {
	if t.queue == nil || t.closed.Load() || rec.Request.DryRun {
		return
	}
	t.push(&item{call: takeCall(rec, t.reasons)})
}

// Observe takes down an event of an agent's. It never waits and never fails.
// What hookd derives from calls is left out: the calls are recorded.
func (t *Telemetry) Observe(_ context.Context, ev *hook.Event) error {
	if t.queue == nil || t.closed.Load() || ev.Source != "agent" {
		return nil
	}
	t.push(&item{note: takeNote(ev.Event)})
	return nil
}

func (t *Telemetry) push(it *item) {
	select {
	case t.queue <- it:
	default:
		t.dropped.Add(1)
	}
}

// work makes spans of what comes, and ends the runs whose time is up.
func (t *Telemetry) work() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(t.runs.untilNext(time.Now()))
		select {
		case it := <-t.queue:
			t.runs.take(it, time.Now())
		case <-timer.C:
			t.runs.expire(time.Now())
		case <-t.stop:
			for {
				select {
				case it := <-t.queue:
					t.runs.take(it, time.Now())
					continue
				default:
				}
				break
			}
			t.runs.close(time.Now())
			return
		}
	}
}

// Close ends the spans of all open runs and sends what there is. A collector
// that does not answer is given up after 1.5 s.
func (t *Telemetry) Close() error {
	if t.queue == nil {
		return nil
	}
	t.once.Do(func() {
		t.sink.remove(t)
		t.closed.Store(true)
		close(t.stop)
		t.worker.Wait()
		t.batch.close()
	})
	return nil
}

// Stats returns the counts.
func (t *Telemetry) Stats() Stats {
	s := Stats{DroppedRecords: t.dropped.Load()}
	if t.queue != nil {
		s.OpenRuns = t.runs.open.Load()
		s.SentSpans, s.FailedSpans, s.DroppedSpans = t.batch.sent.Load(), t.batch.failed.Load(), t.batch.dropped.Load()
	}
	return s
}
