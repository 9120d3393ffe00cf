package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/sourcegraph/jsonrpc2"
	"go.uber.org/zap"

	"github.com/hookd/hookd/protocol"
)

// Request is one request or notification that was read from a peer.
type Request struct {
	// Method is never empty.
	Method string
	// ID is zero for a notification.
	ID ID
	// Params is the params object byte for byte as it was sent, nil when it was
	// absent. It may be kept and must not be changed.
	Params jsontext.Value
	// Members are the top-level members of Params, nil when Params is nil.
	Members protocol.Object
	// Peer is where the request came from.
	Peer *Peer
	// Size is the length of the line in bytes.
	Size int
}

// Notification reports whether nobody waits for an answer.
func (r *Request) Notification() bool { return r.ID == ID{} }

// Handler is all that this package knows of what its messages mean.
type Handler interface {
	// Accept is told each request and notification that may be served, in the
	// order of arrival, and says what to do. It runs on the read loop and must
	// not wait. Requests that are refused before (over a limit, shutting down,
	// id in flight) and $/cancelRequest do not come here.
	Accept(r *Request) Work
}

// Work is what a [Handler] wants done for one request.
type Work struct {
	// Run answers the request with JSON, which must not be changed afterwards,
	// or nil for null. Of errors, a [protocol.Error] is sent as it is, and any
	// other as -32603 with its text in the log only. The context ends when the peer cancels the request or
	// goes away; its cause says which. A panic is answered as -32603.
	//
	// A nil Run means -32601, and for a notification that all is done. The
	// result and error of a notification's Run are dropped, and it always runs
	// inline.
	Run func(ctx context.Context) (result []byte, err error)
	// Inline says that Run does not wait: it runs on the read loop, in order,
	// which saves a hand-off to a goroutine. It can't be cancelled by the peer.
	Inline bool
	// Undelivered is called when the answer was not written, with the reason; nil =
	// nobody wants to know. It must not wait. What was written need not have been
	// read.
	Undelivered func(reason error)
	// Last closes the peer as soon as the answer is written.
	Last bool
}

// Options are the settings of a [Peer]. The zero value works: every request
// is refused.
type Options struct {
	// Handler is told what arrives. With nil, every request is answered -32601
	// and every notification dropped; both are noise.
	Handler Handler
	// Limits bound line length, depth and open requests.
	Limits protocol.Limits
	// Bytes, when set, bounds the bytes of lines being read and of unanswered
	// requests of all peers that share it. Over it a request is answered -32002.
	Bytes *Budget
	// WriteTimeout is how long the peer may take to read what is being written
	// to it; then it is closed. Default 5 s.
	WriteTimeout time.Duration
	// FrameTimeout is how long a line may take from its first byte to its end;
	// then the peer is closed. Default 10 s.
	FrameTimeout time.Duration
	// MaxQueuedBytes is how much may wait to be written, not counting what is
	// being written; default 1 MiB. One message may always wait, even a larger
	// one. Over it a call or notification fails with [ErrOverloaded], and an
	// answer closes the peer.
	MaxQueuedBytes int
	// MaxNotifications is how many notifications per second the peer may send;
	// those above are dropped and reported once per second as
	// [NoiseNotificationFlood]. 0 means no limit.
	MaxNotifications int
	// Silent leaves lines that can't be read unanswered: they are only counted.
	// It is meant for the side that calls hooks, whose loops expect nothing but
	// requests and whose debug prints are not requests.
	Silent bool
	// FirstID is the id of the first call; default 1. A supervisor that starts
	// a process anew may begin elsewhere, so that ids of the old one match nothing.
	FirstID uint64
	// Log gets what nobody else is told (the text behind a -32603, stacks), never
	// params. nil means none.
	Log *zap.Logger
	// OnNoise is told what arrived and had no meaning. It runs on the read loop
	// and must not wait. nil drops it.
	OnNoise func(Noise)
}

// Peer is one end of a stream of JSON-RPC lines. Its methods may be called
// from several goroutines at once.
type Peer struct {
	o       Options
	rw      io.ReadWriteCloser
	fd      syscall.RawConn // what rw writes to, nil when there is none
	ctx     context.Context // ends when the peer begins to close; the base of all requests
	cancel  context.CancelCauseFunc
	conn    *jsonrpc2.Conn
	stream  lineStream
	out     outbox
	workers *workers
	own     bool                       // workers are this peer's alone
	ready   chan struct{}              // closed when conn is set
	closed  chan struct{}              // closed when rw is
	heard   atomic.Bool                // a line has arrived
	timer   atomic.Pointer[time.Timer] // stopped, for the next call with a limit
	wg      sync.WaitGroup             // the read loop and requests

	mu         sync.Mutex
	nextID     uint64
	calls      map[uint64]*call               // waiting for their answers
	late       map[uint64]struct{}            // given up; an answer to them is late
	open       map[ID]context.CancelCauseFunc // requests being answered on goroutines
	inFlight   int                            // those and the one on the read loop
	unanswered int                            // those and what is being queued as their answers
	draining   bool
	idle       []func() // called when unanswered is 0 and all is written
}

// call is where a caller waits for an answer. The caller, the read loop and the
// end of the stream agree through Peer.calls which of them ends it: who takes it out.
type call struct {
	message
	ended  chan struct{} // gets one value, for which it has room, when the rest is set
	result jsontext.Value
	err    error
}

// end is called by the one that took the call out.
func (c *call) end(result jsontext.Value, err error) {
	c.result, c.err = result, err
	c.ended <- struct{}{}
}

// NewPeer starts reading rw, which belongs to the peer from now on; its Close
// must end a Read and a Write that wait. When ctx ends, the peer closes. Somebody
// must call [Peer.Close] or [Peer.Shutdown].
//
// When rw is a [syscall.Conn], messages are written through the descriptor that it
// gives (of two, the one for writing), which saves a goroutine per message. When it
// has a method ReadConn() (syscall.RawConn, error), or is a [net.Conn], lines are
// read through that one.
func NewPeer(ctx context.Context, rw io.ReadWriteCloser, o Options) *Peer {
	p := newPeer(ctx, rw, o, newWorkers())
	p.own = true
	p.start()
	return p
}

func newPeer(ctx context.Context, rw io.ReadWriteCloser, o Options, ws *workers) *Peer {
	o.Limits = o.Limits.WithDefaults()
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 5*time.Second)
	o.FrameTimeout = cmp.Or(o.FrameTimeout, 10*time.Second)
	o.MaxQueuedBytes = cmp.Or(o.MaxQueuedBytes, 1<<20)
	o.FirstID = cmp.Or(o.FirstID, 1)
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.OnNoise == nil {
		o.OnNoise = func(Noise) {}
	}
	p := &Peer{o: o, rw: rw, workers: ws, nextID: o.FirstID, ready: make(chan struct{}), closed: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.stream.peer = p
	p.stream.lines = lineReader{
		r:       rw,
		max:     o.Limits.MaxMessageBytes,
		budget:  o.Bytes,
		timeout: o.FrameTimeout,
		slow:    func() { p.Fail(ErrSlowLine) },
	}
	p.out = outbox{w: rw, timeout: o.WriteTimeout, max: o.MaxQueuedBytes, closed: p.cantWrite}
	p.fd = descriptor(rw)
	if nonblocking(p.fd) {
		p.out.raw = p.fd
	}
	var in syscall.RawConn
	switch rw := rw.(type) {
	case interface {
		ReadConn() (syscall.RawConn, error)
	}:
		in, _ = rw.ReadConn()
	case net.Conn:
		in = p.fd
	}
	if nonblocking(in) {
		p.stream.lines.raw = in
	}
	return p
}

func (p *Peer) start() {
	p.wg.Add(1) // until the read loop ends
	p.conn = jsonrpc2.NewConn(p.ctx, &p.stream, handler{p}, jsonrpc2.SetLogger(noLog{}))
	close(p.ready)
}

// noLog keeps the library from writing to stderr: what it would say is either
// noise or the reason in Err.
type noLog struct{}

func (noLog) Printf(string, ...any) {}

// Call sends a request and waits for its answer. params are JSON, nil for none; they
// may be kept until they are written and must not be changed meanwhile. When ctx ends,
// Call returns its cause and the peer is told with $/cancelRequest.
//
// Errors are a *[protocol.Error] when the peer answered with one, and otherwise wrap
// [ErrClosed], [ErrOversize], [ErrGarbage], [ErrDuplicateMember] or [ErrOverloaded].
func (p *Peer) Call(ctx context.Context, method string, params []byte) (jsontext.Value, error) {
	return p.CallWithin(ctx, 0, nil, method, params)
}

// CallWithin is [Peer.Call] with a time limit, which costs less than a context that
// ends: when within has passed, it returns cause in place of that of ctx. 0 = no limit.
func (p *Peer) CallWithin(ctx context.Context, within time.Duration, cause error, method string, params []byte) (jsontext.Value, error) {
	if ctx.Err() != nil {
		return nil, notSent{context.Cause(ctx)}
	}
	c := &call{ended: make(chan struct{}, 1)}
	id := p.addCall(c)
	c.encodeRequest(id, method, params)
	if err := p.send(&c.message); err != nil {
		p.takeCall(id)
		return nil, err
	}
	var limit <-chan time.Time
	if within > 0 {
		timer := p.startTimer(within)
		defer p.stopTimer(timer)
		limit = timer.C
	}
	select {
	case <-c.ended:
		return c.result, c.err
	case <-limit:
	case <-ctx.Done():
		cause = context.Cause(ctx)
	}
	switch given, sent := p.giveUp(id, c); {
	case given && sent:
		return nil, cause
	case given:
		return nil, notSent{cause}
	}
	<-c.ended // it came at the same moment
	return c.result, c.err
}

func (p *Peer) startTimer(d time.Duration) *time.Timer {
	if t := p.timer.Swap(nil); t != nil {
		t.Reset(d)
		return t
	}
	return time.NewTimer(d)
}

func (p *Peer) stopTimer(t *time.Timer) {
	t.Stop()
	p.timer.Store(t)
}

// addCall lets a call wait for its answer, and gives it an id.
func (p *Peer) addCall(c *call) ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.nextID
	p.nextID++
	if p.calls == nil {
		p.calls = map[uint64]*call{}
	}
	p.calls[id] = c
	return NumberID(id)
}

// takeCall takes a call out of those that wait. It returns nil when there is none.
func (p *Peer) takeCall(id ID) *call {
	if !id.number() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[id.id.Num]
	delete(p.calls, id.id.Num)
	return c
}

// endCall ends the call that waits for this id, and reports whether there is one.
func (p *Peer) endCall(id ID, result jsontext.Value, err error) bool {
	c := p.takeCall(id)
	if c != nil {
		c.end(result, err)
	}
	return c != nil
}

// endCalls ends all calls that wait, and reports whether there are any.
func (p *Peer) endCalls(err error) bool {
	p.mu.Lock()
	calls := p.calls
	p.calls = nil
	p.mu.Unlock()
	for _, c := range calls {
		c.end(nil, err)
	}
	return len(calls) > 0
}

// waits reports whether a call waits for an answer with this id.
func (p *Peer) waits(id ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return id.number() && p.calls[id.id.Num] != nil
}

// maxLate is how many given-up calls are remembered, to name late answers.
const maxLate = 1024

// giveUp takes a call out whose caller waits no longer, and tells the peer. It
// reports false when somebody else ends the call.
func (p *Peer) giveUp(id ID, c *call) (given, sent bool) {
	n := id.id.Num
	p.mu.Lock()
	if p.calls[n] == nil {
		p.mu.Unlock()
		return false, true
	}
	delete(p.calls, n)
	if p.late == nil {
		p.late = map[uint64]struct{}{}
	} else if len(p.late) >= maxLate {
		clear(p.late)
	}
	p.late[n] = struct{}{}
	p.mu.Unlock()
	if p.out.withdraw(&c.message) { // it was never asked
		p.mu.Lock()
		delete(p.late, n)
		p.mu.Unlock()
		return true, false
	}
	// When so much waits that this does not fit, the peer won't miss it.
	_ = p.notify(&message{}, cancelMethod, fmt.Appendf(nil, `{"id":%d}`, n))
	return true, true
}

// notSent is the cause of a call's end that is an [ErrNotSent] too.
type notSent struct{ cause error }

func (e notSent) Error() string   { return e.cause.Error() }
func (e notSent) Unwrap() []error { return []error{ErrNotSent, e.cause} }

// unasked names an answer that no call waits for.
func (p *Peer) unasked(id ID) NoiseKind {
	n := id.id.Num
	p.mu.Lock()
	defer p.mu.Unlock()
	switch _, late := p.late[n]; {
	case late:
		delete(p.late, n)
		return NoiseLateReply
	case n >= p.o.FirstID && n < p.nextID && p.calls[n] == nil:
		return NoiseDuplicateReply
	}
	return NoiseUnknownID
}

// Notify sends a notification and returns when it is written. Calls and answers
// overtake it. When ctx ends first, it is withdrawn and the cause of ctx returned.
func (p *Peer) Notify(ctx context.Context, method string, params []byte) error {
	return p.NotifyAll(ctx, method, params)
}

// NotifyAll sends several notifications as [Peer.Notify] sends one: all of them or none.
func (p *Peer) NotifyAll(ctx context.Context, method string, params ...[]byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m := &message{patient: true, done: make(chan error, 1)}
	m.encodeNotifications(method, params)
	if err := p.send(m); err != nil {
		return err
	}
	select {
	case err := <-m.done:
		return err
	case <-ctx.Done():
	}
	if p.out.withdraw(m) {
		return context.Cause(ctx)
	}
	return <-m.done // it has begun; the write deadline ends it
}

// TryNotify queues a notification like [Peer.Notify] and does not wait.
func (p *Peer) TryNotify(method string, params []byte) error {
	return p.notify(&message{patient: true}, method, params)
}

func (p *Peer) notify(m *message, method string, params []byte) error {
	m.encodeRequest(ID{}, method, params)
	return p.send(m)
}

// send writes a message, or leaves it to the one that writes.
func (p *Peer) send(m *message) error {
	err := p.stream.send(m)
	if errors.Is(err, jsonrpc2.ErrClosed) {
		<-p.ctx.Done()
		return p.Err()
	}
	if err == nil {
		p.out.kick()
	}
	return err
}

// sendAnswer is send for what nobody can be told an error of. A peer that
// leaves its answers unread is closed.
func (p *Peer) sendAnswer(m *message) {
	err := p.send(m)
	if err == nil {
		return
	}
	if m.lost != nil {
		m.lost(err)
	}
	if errors.Is(err, ErrOverloaded) {
		p.Fail(fmt.Errorf("%w: %w", ErrSlowReader, err))
	}
}

// lastLines is how long answers are still read from a peer that nothing can be
// written to any more: a program that answers and exits has both at once.
const lastLines = 250 * time.Millisecond

func (p *Peer) cantWrite(reason error) {
	switch {
	case p.ctx.Err() != nil:
	case errors.Is(reason, ErrSlowReader):
		p.Fail(reason)
	default:
		time.AfterFunc(lastLines, func() { p.Fail(reason) })
	}
}

// InFlight returns how many requests of the peer are being answered.
func (p *Peer) InFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inFlight
}

// Done is closed when the peer begins to close.
func (p *Peer) Done() <-chan struct{} { return p.ctx.Done() }

// Err is nil while the peer is open, and then wraps [ErrClosed] and the reason.
func (p *Peer) Err() error {
	return closedBy(context.Cause(p.ctx))
}

// Shutdown refuses new requests with -32003, waits until the open ones are answered
// and written, and closes. When ctx ends first, it closes at once and returns its cause.
func (p *Peer) Shutdown(ctx context.Context) error {
	done := make(chan struct{})
	p.mu.Lock()
	p.draining = true
	p.mu.Unlock()
	p.whenIdle(func() { close(done) })
	var err error
	select {
	case <-done:
	case <-p.ctx.Done():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = p.Close()
	return err
}

// whenIdle calls f as soon as no request is open and all answers are written,
// or never will be.
func (p *Peer) whenIdle(f func()) {
	p.mu.Lock()
	idle := p.unanswered == 0
	if !idle {
		p.idle = append(p.idle, f)
	}
	p.mu.Unlock()
	if idle {
		p.out.whenIdle(f)
	}
}

// Fail closes the peer for a reason and does not wait, so a [Handler] may call it.
func (p *Peer) Fail(reason error) {
	if p.ctx.Err() == nil && (errors.Is(reason, ErrSlowReader) || errors.Is(reason, ErrSlowLine) || errors.Is(reason, ErrFlood)) {
		p.o.Log.Warn("connection closed", zap.Error(reason))
	}
	p.cancel(closedBy(reason))
}

// Close closes the stream, ends the contexts of open requests and waits for them.
// A [Handler] must not call it: see [Peer.Fail] and [Work].
func (p *Peer) Close() error {
	p.Fail(ErrShutdown)
	<-p.closed
	p.out.wg.Wait()
	p.wg.Wait()
	if p.own {
		p.workers.close()
	}
	return nil
}
