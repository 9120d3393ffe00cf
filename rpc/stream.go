package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/hookd/hookd/protocol"
)

// lineStream is the jsonrpc2.ObjectStream under a peer. The library decodes
// what it reads into maps and encodes what it writes several times over, so it
// gets a small constant message in place of each one. What really was read lies
// in the stream, from ReadObject until the library has called received or the
// handler, which it does next and on the same goroutine. What is really to be
// written is taken in sending, which the library calls right before
// WriteObject and under its lock.
type lineStream struct {
	peer  *Peer
	lines lineReader

	in       envelope
	made     []envelope // answers that nobody sent, for calls whose own can't be read
	skeleton []byte

	out *message

	second        time.Time // in which so many notifications came
	notifications int
}

var requestSkeleton = []byte(`{"method":""}`)

// answerSkeleton is what the library needs to find the call that is answered.
func (s *lineStream) answerSkeleton(id uint64) []byte {
	s.skeleton = append(strconv.AppendUint(append(s.skeleton[:0], `{"id":`...), id, 10), `,"result":0}`...)
	return s.skeleton
}

// ReadObject implements jsonrpc2.ObjectStream. It returns the next message
// that means something and deals with all else by itself.
func (s *lineStream) ReadObject(v any) error {
	<-s.peer.ready
	for {
		skeleton := s.nextMadeUp()
		if skeleton == nil {
			line, err := s.lines.next()
			switch {
			case err == nil:
				s.peer.heard.Store(true)
				skeleton = s.readLine(line)
			case errors.Is(err, errWoken):
				_ = s.setReadDeadline(time.Time{})
			default:
				if long, ok := errors.AsType[*lineError](err); ok {
					s.peer.heard.Store(true)
					s.tooLong(long)
					break
				}
				s.ended(err)
				return io.EOF
			}
		}
		if skeleton != nil {
			return v.(json.Unmarshaler).UnmarshalJSON(skeleton)
		}
	}
}

// ended is called once, when nothing can be read any more.
func (s *lineStream) ended(err error) {
	if err == io.EOF {
		s.peer.halfClosed()
	}
	s.peer.Fail(err)
	s.lines.stop()
	s.peer.wg.Done()
}

// nextMadeUp returns an answer for the library that did not come from the peer.
func (s *lineStream) nextMadeUp() []byte {
	if n := len(s.made); n > 0 {
		s.in = s.made[n-1]
		s.made = s.made[:n-1]
		return s.answerSkeleton(s.in.id.id.Num)
	}
	p := s.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.forgotten)
	if n == 0 {
		return nil
	}
	id := p.forgotten[n-1]
	p.forgotten = p.forgotten[:n-1]
	s.in = envelope{made: true}
	return s.answerSkeleton(id)
}

// wake makes a read that waits return, so that ReadObject looks for answers to
// make up. Where the stream can't do that they wait for the next line.
func (s *lineStream) wake() { _ = s.setReadDeadline(time.Unix(1, 0)) }

func (s *lineStream) setReadDeadline(t time.Time) error {
	if d, ok := s.peer.rw.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(t)
	}
	return nil
}

// readLine reads one line. It returns what to give to the library, or nil.
func (s *lineStream) readLine(line []byte) []byte {
	if s.lines.crlf {
		s.noise(NoiseCRLF, ID{}, "")
	}
	e, err := parse(line, s.peer.o.Limits.MaxDepth)
	if err != nil {
		return s.unreadable(line, err)
	}
	s.in = e
	switch {
	case e.invalid != nil && !e.request && s.peer.waits(e.id):
		s.in.err = fmt.Errorf("%w: it has neither a result nor an error", ErrGarbage)
	case e.invalid != nil:
		s.noise(NoiseGarbage, e.id, e.invalid.Message+": "+clip(line))
		notification := !e.hasID && e.invalid.Code == protocol.CodeInvalidParams
		if !s.peer.o.Silent && !notification {
			s.refuse(e.id, e.invalid)
		}
		return nil
	case e.request:
		if !e.hasID && s.flooded() {
			return nil
		}
		return requestSkeleton
	}
	if !e.id.set || e.id.id.IsString {
		s.noise(NoiseUnknownID, e.id, clip(line))
		return nil
	}
	if errors.Is(s.in.err, ErrGarbage) {
		s.noise(NoiseGarbage, e.id, s.in.err.Error()+": "+clip(line))
	}
	return s.answerSkeleton(e.id.id.Num)
}

// unreadable deals with a line that is not JSON to trust. When it was meant as
// an answer, the call that waits for it fails now and not at its deadline.
func (s *lineStream) unreadable(line []byte, err error) []byte {
	g := peek(line)
	s.noise(NoiseGarbage, g.id, err.Error()+": "+clip(line))
	switch {
	case !g.request && s.peer.waits(g.id):
		kind := ErrGarbage
		if errors.Is(err, protocol.ErrDuplicateName) && onlyDuplicates(line) {
			kind = ErrDuplicateMember
		}
		s.in = envelope{id: g.id, err: fmt.Errorf("%w: %w", kind, err)}
		return s.answerSkeleton(g.id.id.Num)
	case !g.response && !s.peer.o.Silent:
		s.refuse(ID{}, protocol.Errorf(protocol.CodeParse, "%v", err))
	}
	return nil
}

// tooLong deals with a line that is over a limit, of which only the beginning
// is known.
func (s *lineStream) tooLong(long *lineError) {
	g := peek(long.start)
	s.noise(NoiseOversize, g.id, clip(long.start))
	p := s.peer
	most := p.o.Limits.MaxMessageBytes
	if !g.request {
		waiting := []uint64{g.id.id.Num}
		if !g.id.set { // it may be the answer to any of them
			waiting = p.waiting()
		} else if !p.waits(g.id) {
			waiting = nil
		}
		for _, id := range waiting {
			s.made = append(s.made, envelope{made: true, id: NumberID(id), err: fmt.Errorf("%w: more than %d bytes", ErrOversize, most)})
		}
		if g.response || p.o.Silent || len(waiting) > 0 {
			return
		}
	}
	if long.full {
		s.refuse(g.id, overloaded("too many bytes are in flight"))
	} else {
		s.refuse(g.id, protocol.Errorf(protocol.CodeMessageTooLarge, "the message is longer than %d bytes", most))
	}
}

// waits reports whether a call waits for an answer with this id.
func (p *Peer) waits(id ID) bool {
	if !id.set || id.id.IsString {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[id.id.Num] != nil
}

// waiting returns the ids of all calls that wait.
func (p *Peer) waiting() []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.calls))
}

// flooded counts a notification, and reports whether it is one too many.
func (s *lineStream) flooded() bool {
	most := s.peer.o.MaxNotifications
	if most == 0 {
		return false
	}
	now := time.Now()
	if now.Sub(s.second) >= time.Second {
		s.second, s.notifications = now, 0
	}
	s.notifications++
	if s.notifications == most+1 {
		s.noise(NoiseNotificationFlood, ID{}, fmt.Sprintf("more than %d notifications in a second", most))
	}
	return s.notifications > most
}

// refuse answers a line that is not served.
func (s *lineStream) refuse(id ID, e *protocol.Error) {
	m := &message{}
	m.encodeError(id, e)
	s.peer.send(m)
}

func (s *lineStream) noise(kind NoiseKind, id ID, detail string) {
	s.peer.o.OnNoise(Noise{Kind: kind, ID: id, Detail: detail})
}

const clipBytes = 256

// clip returns the beginning of a line so that it can be shown.
func clip(line []byte) string {
	if len(line) > clipBytes {
		return strconv.QuoteToASCII(string(line[:clipBytes])) + "…"
	}
	return strconv.QuoteToASCII(string(line))
}

// received implements jsonrpc2.OnRecv: it hands an answer to the one that waits.
// Without a request the library has no such call, or not yet.
func (s *lineStream) received(req *jsonrpc2.Request, resp *jsonrpc2.Response) {
	if resp == nil {
		return
	}
	e := s.in
	s.in = envelope{}
	id := resp.ID.Num
	if req != nil {
		if c := s.peer.takeCall(id); c != nil {
			c.result, c.err = e.result, e.err
			return
		}
	}
	if !e.made {
		s.noise(s.peer.unasked(id), e.id, "")
	}
}

// unasked names an answer that no call waits for.
func (p *Peer) unasked(id uint64) NoiseKind {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch _, late := p.late[id]; {
	case late:
		delete(p.late, id)
		return NoiseLateReply
	case id >= p.o.FirstID && id < p.nextID && p.calls[id] == nil:
		return NoiseDuplicateReply
	}
	return NoiseUnknownID
}

// sending implements jsonrpc2.OnSend.
func (s *lineStream) sending(req *jsonrpc2.Request, resp *jsonrpc2.Response) {
	if resp != nil {
		s.out = &message{}
		s.out.encodeResponse(resp)
		return
	}
	s.out = req.ExtraFields[0].Value.(*message)
}

// WriteObject implements jsonrpc2.ObjectStream: it queues the message taken in
// sending. The one that sends it calls outbox.kick when it has left the library.
func (s *lineStream) WriteObject(any) error {
	m := s.out
	s.out = nil
	return s.peer.out.put(m)
}

// Close implements jsonrpc2.ObjectStream. The library calls it once.
func (s *lineStream) Close() error {
	p := s.peer
	p.out.close(p.Err())
	err := p.rw.Close()
	close(p.closed)
	return err
}
