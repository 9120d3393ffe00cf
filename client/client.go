package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

const (
	greetTimeout = 5 * time.Second
	flushTimeout = time.Second // for what Close still writes

	firstRedial = 50 * time.Millisecond
	maxRedial   = time.Second // between two tries

	maxAnswerBytes = 64 << 20 // a longer answer is a no
	maxQueuedBytes = 64 << 20 // of calls that are not written yet
	maxSlots       = 1 << 16
)

var (
	// ErrUntrusted is wrapped by the error of a connection to a process that is
	// neither one's own nor root's. Nothing has been said to it.
	ErrUntrusted = errors.New("refusing to speak with it")
	// ErrClosed is wrapped by the error of a call after [Client.Close].
	ErrClosed = errors.New("the client is closed")

	errNoGreeting = fmt.Errorf("it did not answer the greeting within %s", greetTimeout)
)

// Client asks hookd. Make one with [Dial] or [New] and close it. Its methods
// may be called from several goroutines at once.
//
// When the connection breaks, calls that wait for an answer are over, with a
// no, and are never sent again. The next call connects again, see
// [Options.Redial]. hookd remembers per connection which calls a hook asked
// approval for; a call that it does not know needs approval.
type Client struct {
	o      Options
	dial   func(context.Context) (io.ReadWriteCloser, error) // nil: there is one connection only
	stages *protocol.StageTable
	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc

	dialing chan struct{}        // held by the one that connects
	conn    atomic.Pointer[conn] // the newest, maybe broken; never nil once made

	events      chan []byte
	eventBytes  atomic.Int64
	eventsLost  atomic.Uint64
	eventWorker sync.WaitGroup
}

// conn is one connection that has been greeted.
type conn struct {
	peer    *rpc.Peer
	welcome protocol.AgentWelcome
	slots   chan struct{} // held by calls that are not answered; hookd refuses more
}

func (c *conn) broken() bool {
	select {
	case <-c.peer.Done():
		return true
	default:
		return false
	}
}

// Dial connects to hookd's Unix socket, makes sure whose process is there, and
// greets it. It tries once; ctx is for that only.
func Dial(ctx context.Context, o Options) (*Client, error) {
	c := newClient(o)
	c.o.Socket = SocketPath(o.Socket, os.Getenv)
	c.dial = c.dialSocket
	return c.start(func() error {
		_, err := c.open(ctx)
		return err
	})
}

// New greets hookd over a stream that is open already, such as the stdin and
// stdout of a "hookd serve --stdio" that the caller has started. The stream
// belongs to the client, also when New fails, and its Close must end a Read
// that waits; rpc.Stdio makes one of two files. Who is at the other end is the
// caller's business, and there is no connecting again.
func New(ctx context.Context, rw io.ReadWriteCloser, o Options) (*Client, error) {
	c := newClient(o)
	return c.start(func() error {
		conn, err := c.greet(ctx, rw)
		c.conn.Store(conn)
		return err
	})
}

func newClient(o Options) *Client {
	c := &Client{
		o: o.withDefaults(), stages: protocol.NewStageTable(),
		dialing: make(chan struct{}, 1), events: make(chan []byte, eventQueue),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

func (c *Client) start(connect func() error) (*Client, error) {
	if err := connect(); err != nil {
		c.cancel(ErrClosed)
		return nil, err
	}
	c.eventWorker.Go(c.sendEvents)
	return c, nil
}

// Welcome returns what hookd said of itself when it was connected to last.
func (c *Client) Welcome() protocol.AgentWelcome { return c.conn.Load().welcome }

// Close ends the connection. Calls that wait are over, with a no; events that
// wait are written, within a second. It returns nil.
func (c *Client) Close() error {
	c.cancel(ErrClosed)
	flush, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	late := context.AfterFunc(flush, func() { c.conn.Load().peer.Fail(ErrClosed) })
	defer late()
	c.eventWorker.Wait()
	c.dialing <- struct{}{} // who connects just now gives up
	defer func() { <-c.dialing }()
	// What could not be written in time is lost, as it would be a moment later.
	_ = c.conn.Load().peer.Shutdown(flush)
	return nil
}

// connect returns an open connection, making one if need be.
func (c *Client) connect(ctx context.Context) (*conn, error) {
	if conn := c.conn.Load(); !conn.broken() {
		return conn, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()

	began := time.Now()
	for delay := firstRedial; ; delay = min(2*delay, maxRedial) {
		conn, err := c.open(ctx)
		if err == nil || ctx.Err() != nil || !passing(err) || time.Since(began)+delay > c.o.Redial {
			return conn, err
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// passing reports whether a connection may succeed a little later.
func passing(err error) bool {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Code == protocol.CodeShuttingDown || e.Code == protocol.CodeOverloaded
	}
	return !errors.Is(err, ErrUntrusted)
}

// open makes one try at a connection, unless there is one by now.
func (c *Client) open(ctx context.Context) (*conn, error) {
	select {
	case c.dialing <- struct{}{}:
		defer func() { <-c.dialing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	old := c.conn.Load()
	switch {
	case old != nil && !old.broken():
		return old, nil
	case c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case c.dial == nil:
		return nil, old.peer.Err()
	}
	rw, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := c.greet(ctx, rw)
	if err != nil {
		return nil, err
	}
	c.conn.Store(conn)
	if old != nil {
		c.o.Log.Info("connected to hookd again", "after", old.peer.Err(), "generation", conn.welcome.Generation)
		_ = old.peer.Close()
	}
	return conn, nil
}

func (c *Client) dialSocket(ctx context.Context) (io.ReadWriteCloser, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, "unix", c.o.Socket)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("connect to hookd: %w; start it with \"hookd serve\", or name its socket in $HOOKD_SOCKET", err)
	case err != nil:
		return nil, fmt.Errorf("connect to hookd: %w", err)
	}
	if err := c.trust(nc); err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("connect to hookd at %s: %w", c.o.Socket, err)
	}
	return nc, nil
}

// trust makes sure that what listens is not somebody else's program, which
// would be shown all the agent does and could allow all of it.
func (c *Client) trust(nc net.Conn) error {
	creds, err := c.o.creds(nc)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	own := os.Geteuid()
	if creds.UID != own && creds.UID != 0 && !slices.Contains(c.o.AllowUIDs, creds.UID) {
		return fmt.Errorf("%w: it is a process of uid %d, not of uid %d or root; if that is meant, add it to Options.AllowUIDs",
			ErrUntrusted, creds.UID, own)
	}
	return nil
}

// greet makes a connection of a stream.
func (c *Client) greet(ctx context.Context, rw io.ReadWriteCloser) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, greetTimeout, errNoGreeting)
	defer cancel()
	var said atomic.Pointer[string] // a refusal that is no answer to the greeting
	peer := rpc.NewPeer(context.Background(), rw, rpc.Options{
		Limits:         protocol.Limits{MaxMessageBytes: maxAnswerBytes},
		MaxQueuedBytes: maxQueuedBytes,
		Silent:         true,
		OnNoise: func(n rpc.Noise) {
			said.Store(&n.Detail)
			c.o.Log.Debug("hookd said something unexpected", "kind", string(n.Kind), "detail", n.Detail)
		},
	})
	w, err := c.hello(ctx, peer)
	if err != nil {
		_ = peer.Close()
		if detail := said.Load(); detail != nil && errors.Is(err, rpc.ErrClosed) {
			err = fmt.Errorf("%w; it said %s", err, *detail)
		}
		return nil, fmt.Errorf("greet hookd: %w", err)
	}
	slots := w.Limits.WithDefaults().MaxInFlight
	return &conn{peer: peer, welcome: w, slots: make(chan struct{}, max(1, min(slots, maxSlots)))}, nil
}

func (c *Client) hello(ctx context.Context, peer *rpc.Peer) (protocol.AgentWelcome, error) {
	var none, w protocol.AgentWelcome
	params, err := encode(protocol.AgentHello{
		Name: c.o.Name, Version: protocol.Version, Client: protocol.Software{Name: c.o.Name, Version: c.o.Version},
		SessionID: c.o.SessionID, DeadlineMS: milliseconds(c.o.Deadline), ApprovalDeadlineMS: milliseconds(c.o.ApprovalDeadline),
		Events: c.o.OwnEvents,
	})
	if err != nil {
		return none, err
	}
	raw, err := peer.Call(ctx, protocol.MethodHello, params)
	if err != nil {
		return none, err
	}
	if err := protocol.Unmarshal(raw, &w); err != nil {
		return none, fmt.Errorf("its answer can't be read: %w", err)
	}
	if !w.OK || w.Version != protocol.Version {
		return none, fmt.Errorf("its answer is no welcome to version %d of the protocol", protocol.Version)
	}
	return w, nil
}
