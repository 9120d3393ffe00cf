package client

import (
	"context"
	"time"

	"github.com/hookd/hookd/protocol"
)

const (
	eventQueue    = 1024     // events that wait
	maxEventBytes = 16 << 20 // and their bytes
)

// Event is something that happened.
type Event struct {
	// Kind is one of the kinds that agents send, see [protocol.AgentEvents], or
	// a kind of one's own that starts with "x_".
	Kind protocol.EventKind
	Meta Meta
	// Time is when it happened; zero means now.
	Time time.Time
	// Payload is marshalled to an object; nil means none.
	Payload any
	// Severity is "debug", "info", "warn" or "error"; empty means "info".
	Severity string
}

// Event tells hookd's observers what happened. It never waits: the event is
// queued, and lost when the queue is full, hookd can't be reached, or its kind
// or payload can't be sent. See [Client.EventsLost].
func (c *Client) Event(ev Event) {
	params, err := ev.encode()
	if err != nil {
		c.eventsLost.Add(1)
		c.o.Log.Warn("event can't be sent", "kind", string(ev.Kind), "error", err)
		return
	}
	if c.eventBytes.Add(int64(len(params))) <= maxEventBytes && c.ctx.Err() == nil {
		select {
		case c.events <- params:
			return
		default:
		}
	}
	c.eventBytes.Add(-int64(len(params)))
	c.eventsLost.Add(1)
}

// EventsLost returns how many events could not be sent so far.
func (c *Client) EventsLost() uint64 { return c.eventsLost.Load() }

func (ev *Event) encode() ([]byte, error) {
	if ev.Time.IsZero() {
		ev.Time = time.Now()
	}
	var p params
	p.add("kind", string(ev.Kind))
	p.addMeta(ev.Meta)
	p.add("time", ev.Time.UTC().Format(time.RFC3339Nano))
	p.add("payload", ev.Payload)
	if ev.Severity != "" {
		p.add("severity", ev.Severity)
	}
	if p.err != nil {
		return nil, p.err
	}
	if _, bad := protocol.DecodeEvent(p.list); bad != nil { // hookd would drop it without a word
		return nil, bad
	}
	return p.list.AppendJSON(nil), nil
}

// sendEvents runs until Close, and then sends what is queued.
func (c *Client) sendEvents() {
	for {
		select {
		case params := <-c.events:
			c.sendEvent(params)
		case <-c.ctx.Done():
			for len(c.events) > 0 {
				c.sendEvent(<-c.events)
			}
			return
		}
	}
}

func (c *Client) sendEvent(params []byte) {
	conn, err := c.connect(c.ctx)
	if err == nil {
		err = conn.peer.Notify(context.Background(), protocol.MethodEvent, params)
	}
	c.eventBytes.Add(-int64(len(params)))
	if err != nil {
		c.eventsLost.Add(1)
		c.o.Log.Debug("event lost", "error", err)
	}
}
