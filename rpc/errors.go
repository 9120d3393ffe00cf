package rpc

import (
	"errors"
	"fmt"
)

// What a [Peer.Call] can fail with besides a protocol.Error and the cause of
// its context. They come wrapped with details: test with errors.Is.
var (
	// ErrClosed means that the stream ended; the reason is wrapped too, io.EOF
	// when the peer ended it.
	ErrClosed = errors.New("connection closed")
	// ErrOversize means that the answer is longer than Limits.MaxMessageBytes.
	ErrOversize = errors.New("message too large")
	// ErrGarbage means that the answer can't be read.
	ErrGarbage = errors.New("unreadable answer")
	// ErrDuplicateMember means that the answer holds a name twice and is
	// otherwise readable.
	ErrDuplicateMember = errors.New("answer holds a name twice")
	// ErrNotSent means that nothing of the call was written when its context
	// ended, so that the peer owes no answer. The context's cause is wrapped too.
	ErrNotSent = errors.New("the call was not sent")
	// ErrOverloaded means that too much waits to be written already.
	ErrOverloaded = errors.New("too much is waiting to be written")
)

// Why a peer was closed or a context of a request ended.
var (
	// ErrCancelled is the cause of the context of a request that its sender
	// cancelled.
	ErrCancelled = errors.New("cancelled by the caller")
	// ErrSlowLine is the reason when a line took longer than FrameTimeout.
	ErrSlowLine = errors.New("a line was not finished in time")
	// ErrSlowReader is the reason when the peer did not read what was written
	// to it: a write took longer than WriteTimeout, or too many answers wait.
	ErrSlowReader = errors.New("the other side does not read")
	// ErrFlood is the reason when the peer sent nothing but blank lines, or a
	// line many times over the limit.
	ErrFlood = errors.New("the other side floods the stream")
	// ErrShutdown is the reason after [Peer.Close] and [Peer.Shutdown].
	ErrShutdown = errors.New("shut down")
)

// closedBy wraps a reason, unless it is nil, in ErrClosed.
func closedBy(reason error) error {
	if reason == nil || errors.Is(reason, ErrClosed) {
		return reason
	}
	return fmt.Errorf("%w: %w", ErrClosed, reason)
}
