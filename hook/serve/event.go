package serve

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/internal/lazycontext"
	"github.com/hookd/hookd/protocol"
)

// observerQueue is how many events may wait for the hook: more than a pipe
// holds, so that all that hookd has written is read at once after a pause. More
// are lost, the newest first, and the next event says how many.
const observerQueue = 8192

// observer feeds the hook its events, apart from the calls.
type observer struct {
	hook    hook.Observer
	timeout time.Duration
	log     *log.Logger
	queue   chan *hook.Event

	missed uint64 // lost since the last one that fitted; the read loop's
}

func newObserver(h hook.Observer, timeout time.Duration, l *log.Logger) *observer {
	return &observer{hook: h, timeout: timeout, log: l, queue: make(chan *hook.Event, observerQueue)}
}

// push queues an event and never waits.
func (o *observer) push(params protocol.Object) {
	ev, err := decodeEvent(params)
	if err != nil {
		o.log.Printf("an event can't be read: %v", err)
		return
	}
	ev.Missed += o.missed
	select {
	case o.queue <- ev:
		o.missed = 0
	default:
		o.missed = ev.Missed + 1
	}
}

// run works off the queue until it is closed and empty.
func (o *observer) run(ctx context.Context) {
	for ev := range o.queue {
		o.observe(ctx, ev)
	}
}

func (o *observer) observe(ctx context.Context, ev *hook.Event) {
	limited := lazycontext.WithDeadline(ctx, time.Now().Add(o.timeout), context.DeadlineExceeded)
	defer limited.Release()
	defer func() {
		if p := recover(); p != nil {
			o.log.Printf("panic in Observe(%s): %v\n%s", ev.Kind, p, debug.Stack())
		}
	}()
	if err := o.hook.Observe(limited, ev); err != nil {
		o.log.Printf("observe %s: %v", ev.Kind, err)
	}
}

// decodeEvent reads an event as hookd sends it to a hook: with the kinds and
// members that only hookd may set.
func decodeEvent(params protocol.Object) (*hook.Event, error) {
	ev := &hook.Event{Event: &protocol.Event{}}
	for _, m := range params {
		if m.Value.Kind() == 'n' {
			continue
		}
		var err error
		switch m.Name {
		case "kind":
			err = text(m.Value, &ev.Kind)
		case "meta":
			ev.Meta, err = protocol.DecodeObject(m.Value, maxDepth)
		case "time":
			err = ev.Time.UnmarshalJSON(m.Value)
		case "payload":
			ev.Payload = m.Value
		case "severity":
			err = text(m.Value, &ev.Severity)
		case "source":
			err = text(m.Value, &ev.Source)
		case "id":
			err = text(m.Value, &ev.ID)
		case "seq":
			ev.Seq, err = strconv.ParseUint(string(m.Value), 10, 64)
		case "missed":
			ev.Missed, err = strconv.ParseUint(string(m.Value), 10, 64)
		default:
			ev.Extra = append(ev.Extra, m)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return ev, nil
}

// text reads a JSON string. Reflection would be most of what an event costs.
func text[T ~string](v jsontext.Value, to *T) error {
	if v.Kind() != '"' {
		return errors.New("not a string")
	}
	*to = T(protocol.Unquote(v))
	return nil
}
