package approval

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errShutdown = &protocol.Error{Message: "shutting down"}

// events collects what a desk publishes.
type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) publish(kind protocol.EventKind, _ protocol.Object, payload jsontext.Value) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, string(kind)+" "+string(payload))
}

func (e *events) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.list...)
}

func newDesk(t testing.TB, o Options) *Desk {
	t.Helper()
	o.ShuttingDown = errShutdown
	d, err := NewDesk(o)
	require.NoError(t, err)
	return d
}

// request is a call to be approved, by an agent in the session s-1.
func request(t testing.TB, params string) *protocol.Request {
	t.Helper()
	obj, err := protocol.DecodeObject([]byte(params), 0)
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(protocol.StageApproveTool), obj)
	require.Nil(t, bad)
	req.Timeout = time.Minute
	return req
}

const push = `{"tool":"bash","arguments":{"command":"git push"},"meta":{"agent":"bot","session_id":"s-1","cwd":"/repo"},"ask":{"reason":"publishes","by":"gate"}}`

// asked is a call under way.
type asked struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	answer protocol.Approval
	err    error
}

// ask puts a call on the desk, from process 7 of user 1000.
func ask(t testing.TB, d *Desk, req *protocol.Request) *asked {
	t.Helper()
	return askFrom(context.Background(), d, req)
}

func askFrom(ctx context.Context, d *Desk, req *protocol.Request) *asked {
	a := &asked{done: make(chan struct{})}
	ctx, a.cancel = context.WithCancelCause(WithAgent(ctx, &Agent{PID: 7, UID: 1000}))
	go func() {
		defer close(a.done)
		a.answer, a.err = d.Ask(ctx, req, nil)
	}()
	return a
}

func (a *asked) wait() (protocol.Approval, error) {
	<-a.done
	a.cancel(nil)
	return a.answer, a.err
}

// ticket waits for the only open ticket.
func ticket(t testing.TB, d *Desk) Ticket {
	t.Helper()
	return tickets(t, d, 1)[0]
}

func tickets(t testing.TB, d *Desk, n int) (list []Ticket) {
	t.Helper()
	require.Eventually(t, func() bool { list = d.Open(); return len(list) == n }, 10*time.Second, time.Millisecond)
	return list
}

var ann = Ruler{UID: 1000, PID: 99, Name: "ann"}
