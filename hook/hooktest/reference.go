package hooktest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Hook returns the hook that [Run] works with: it fills all roles, at all
// stages, and does what the request's context tells it to. Each value has a
// memory of its own, so a harness needs a new one.
func Hook() any { return &reference{full: make(chan struct{})} }

// script is the context of a request to the reference hook, and the payload of
// an event.
type script struct {
	// Do is one of the orders below.
	Do order `json:"do"`
	// Answer is the decision or approval to give, as a hook would write it.
	Answer jsontext.Value `json:"answer"`
	// Calls is how many calls meet.
	Calls int `json:"calls"`
}

// json writes the script with the answer as it stands.
func (s script) json() jsontext.Value {
	answer := s.Answer
	if answer == nil {
		answer = jsontext.Value("null")
	}
	return fmt.Appendf(nil, `{"do":%q,"answer":%s,"calls":%d}`, s.Do, answer, s.Calls)
}

// order is what the reference hook is told to do. The zero value means to give
// the answer of the script.
type order string

const (
	doAnswer   order = ""
	doFail     order = "fail"     // return an error
	doPanic    order = "panic"    // panic
	doWait     order = "wait"     // wait until the context ends
	doMeet     order = "meet"     // wait until so many calls have come, then answer
	doWaiting  order = "waiting"  // say how many calls wait now
	doEcho     order = "echo"     // say what the request was
	doDeadline order = "deadline" // say how much time is left
	doEvents   order = "events"   // say which events came
)

// What the reference hook says stands in these members of state.
const (
	saysParams  = "params"
	saysWaiting = "waiting"
	saysLeft    = "left_ms"
	saysEvents  = "events"
)

var errScripted = errors.New("scripted error")

type reference struct {
	mu      sync.Mutex
	waiting int
	met     int
	full    chan struct{} // closed when as many have met as shall
	events  []byte        // a JSON array without its brackets
}

func (h *reference) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	s, err := readScript(req)
	if err != nil {
		return protocol.Decision{}, err
	}
	switch s.Do {
	case doWaiting:
		return says(saysWaiting, strconv.Itoa(h.count(&h.waiting, 0))), nil
	case doEcho:
		return says(saysParams, string(req.AppendParams(nil, 0))), nil
	case doDeadline:
		left := "null"
		if end, ok := ctx.Deadline(); ok {
			left = strconv.FormatInt(time.Until(end).Milliseconds(), 10)
		}
		return says(saysLeft, left), nil
	case doEvents:
		h.mu.Lock()
		defer h.mu.Unlock()
		return says(saysEvents, "["+string(h.events)+"]"), nil
	}
	if err := h.obey(ctx, req, s); err != nil {
		return protocol.Decision{}, err
	}
	return protocol.DecodeDecision(req.Stage, s.Answer)
}

func (h *reference) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	s, err := readScript(req)
	if err == nil {
		err = h.obey(ctx, req, s)
	}
	switch {
	case err != nil:
		return protocol.Approval{}, err
	case s.Do == doEcho:
		return protocol.Approval{Approved: true, Reason: string(req.AppendParams(nil, 0))}, nil
	}
	return protocol.DecodeApproval(s.Answer)
}

func (h *reference) Observe(_ context.Context, ev *hook.Event) error {
	h.mu.Lock()
	if h.events != nil {
		h.events = append(h.events, ',')
	}
	h.events = ev.AppendJSON(h.events, ev.Seq, ev.Missed)
	h.mu.Unlock()
	var s script
	if err := protocol.Unmarshal(ev.Payload, &s); err != nil {
		return err
	}
	switch s.Do {
	case doFail:
		return errScripted
	case doPanic:
		panic(errScripted)
	}
	return nil
}

// obey does what comes before an answer.
func (h *reference) obey(ctx context.Context, req *protocol.Request, s script) error {
	switch s.Do {
	case doAnswer, doEcho:
		return nil
	case doFail:
		return errScripted
	case doPanic:
		panic(errScripted)
	case doWait:
		h.count(&h.waiting, 1)
		defer h.count(&h.waiting, -1)
		<-ctx.Done()
		return context.Cause(ctx)
	case doMeet:
		if h.count(&h.met, 1) == s.Calls {
			close(h.full)
		}
		select {
		case <-h.full:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("the script says %q, which is no order", s.Do)
}

func (h *reference) count(calls *int, n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	*calls += n
	return *calls
}

func readScript(req *protocol.Request) (s script, err error) {
	err = protocol.Unmarshal(req.Context, &s)
	return s, err
}

func says(member, value string) protocol.Decision {
	return protocol.Decision{State: protocol.Object{{Name: member, Value: jsontext.Value(value)}}}
}
