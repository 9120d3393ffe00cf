package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/sourcegraph/jsonrpc2"

	"github.com/hookd/hookd/protocol"
)

// lineStream is the jsonrpc2.ObjectStream under a peer. The library decodes
// what it reads into maps and encodes what it writes several times over, so it
// gets a small constant message in place of each one. A request that was read
// lies in the stream until the library has called the handler, which it does
// next and on the same goroutine. Answers are given to those who wait without
// the library, which keeps nothing of a call.
type lineStream struct {
	peer  *Peer
	lines lineReader

	in       envelope
	skeleton reflect.Value // what the library takes for a request

	sending sync.Mutex
	out     *message          // guarded by sending: what WriteObject is called for
	answer  jsonrpc2.Response // in place of out

	second        time.Time // in which so many notifications came
	notifications int
}

// ReadObject implements jsonrpc2.ObjectStream. It returns the next request or
// notification and deals with all else by itself.
func (s *lineStream) ReadObject(v any) error {
	<-s.peer.ready
	for {
		line, err := s.lines.next()
		if err != nil {
			long, ok := errors.AsType[*lineError](err)
			if !ok {
				s.ended(err)
				return io.EOF
			}
			s.peer.heard.Store(true)
			s.tooLong(long)
			continue
		}
		s.peer.heard.Store(true)
		if s.readLine(line) {
			return s.fill(v)
		}
	}
}

// fill makes v a request. The library decodes only the first one, because that
// takes it long; the others are copies.
func (s *lineStream) fill(v any) error {
	message := reflect.ValueOf(v).Elem()
	if s.skeleton.IsValid() {
		message.Set(s.skeleton)
		return nil
	}
	s.skeleton = message
	return v.(json.Unmarshaler).UnmarshalJSON([]byte(`{"method":""}`))
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

// readLine reads one line, and reports whether it is for the handler.
func (s *lineStream) readLine(line []byte) bool {
	if s.lines.crlf {
		s.noise(NoiseCRLF, ID{}, "")
	}
	e, err := parse(line, s.peer.o.Limits.MaxDepth)
	switch {
	case err != nil:
		s.unreadable(line, err)
	case e.invalid != nil && !e.request && s.peer.waits(e.id):
		s.answered(e.id, nil, fmt.Errorf("%w: it has neither a result nor an error", ErrGarbage), line)
	case e.invalid != nil:
		s.noise(NoiseGarbage, e.id, e.invalid.Message+": "+clip(line))
		notification := !e.hasID && e.invalid.Code == protocol.CodeInvalidParams
		if !s.peer.o.Silent && !notification {
			s.refuse(e.id, e.invalid)
		}
	case !e.request:
		s.answered(e.id, e.result, e.err, line)
	case e.hasID || !s.flooded():
		s.in = e
		return true
	}
	return false
}

// answered hands what a call ends with to the one that waits for it.
func (s *lineStream) answered(id ID, result jsontext.Value, err error, line []byte) {
	if !id.number() {
		s.noise(NoiseUnknownID, id, clip(line))
		return
	}
	if errors.Is(err, ErrGarbage) {
		s.noise(NoiseGarbage, id, err.Error()+": "+clip(line))
	}
	if !s.peer.endCall(id, result, err) {
		s.noise(s.peer.unasked(id), id, "")
	}
}

// unreadable deals with a line that is not JSON to trust. When it was meant as
// an answer, the call that waits for it fails now and not at its deadline.
func (s *lineStream) unreadable(line []byte, err error) {
	g := peek(line)
	s.noise(NoiseGarbage, g.id, err.Error()+": "+clip(line))
	switch {
	case !g.request && s.peer.waits(g.id):
		kind := ErrGarbage
		if errors.Is(err, protocol.ErrDuplicateName) && onlyDuplicates(line) {
			kind = ErrDuplicateMember
		}
		s.peer.endCall(g.id, nil, fmt.Errorf("%w: %w", kind, err))
	case !g.response && !s.peer.o.Silent:
		s.refuse(ID{}, protocol.Errorf(protocol.CodeParse, "%v", err))
	}
}

// tooLong deals with a line that is over a limit, of which only the beginning
// is known.
func (s *lineStream) tooLong(long *lineError) {
	g := peek(long.start)
	s.noise(NoiseOversize, g.id, clip(long.start))
	p := s.peer
	most := p.o.Limits.MaxMessageBytes
	if !g.request {
		err := fmt.Errorf("%w: more than %d bytes", ErrOversize, most)
		ended := false
		if g.id.set {
			ended = p.endCall(g.id, nil, err)
		} else { // it may be the answer to any of them
			ended = p.endCalls(err)
		}
		if g.response || p.o.Silent || ended {
			return
		}
	}
	if long.full {
		s.refuse(g.id, overloaded("too many bytes are in flight"))
	} else {
		s.refuse(g.id, protocol.Errorf(protocol.CodeMessageTooLarge, "the message is longer than %d bytes", most))
	}
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
	s.peer.sendAnswer(m)
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

// send gives a message to the library, which gives it to WriteObject. It is
// told that everything is an answer: of a call it would keep something.
func (s *lineStream) send(m *message) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.out = m
	return s.peer.conn.SendResponse(s.peer.ctx, &s.answer)
}

// WriteObject implements jsonrpc2.ObjectStream: it queues what is being sent.
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
	p.endCalls(p.Err())
	close(p.closed)
	return err
}
