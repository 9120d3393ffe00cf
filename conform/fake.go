package conform

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookd/hookd/protocol"
)

// fake says how hookd misbehaves. Where it says nothing, everything is allowed.
//
// An answer is text in which ID, APPROVAL, REFUSAL and PADDING are filled in.
// It may end in hangUp or in silence.
type fake struct {
	absent   bool   // nobody listens
	greeting string // to hook.hello
	before   string // to before_tool
	approve  string // to approve_tool
	change   bool   // the call is answered with another
	approval bool   // it is about approvals
}

const (
	hangUp  = "\x00hang up"
	silence = "\x00silence"
)

const (
	paddingSize = 20 << 20
	// greetingTime is how long an agent waits for its welcome, whatever it told.
	greetingTime = 5 * time.Second
	// spare is what an agent gets beyond that and the deadlines that it has told.
	spare = 5 * time.Second
)

// seen is what an agent has sent.
type seen struct {
	before   bool          // it has asked about a tool call
	named    bool          // the arguments held the path of the file
	approval bool          // it has asked for an approval
	after    bool          // it has told of a result
	garbage  string        // a line that can't be read
	deadline time.Duration // how long it may wait for the answer that stays out; 0: not said
}

// played is a fake hookd that listens.
type played struct {
	fake     fake
	listener net.Listener // nil when nobody listens
	wg       sync.WaitGroup
	// overdue is closed when the agent has waited longer than it said.
	overdue chan struct{}

	mu      sync.Mutex
	seen    seen
	conns   map[net.Conn]struct{}
	stopped bool
	late    *time.Timer
}

// play listens at a socket. The caller stops it.
func play(socket string, f fake) (*played, error) {
	p := &played{fake: f, overdue: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	if f.absent {
		return p, nil
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen in place of hookd: %w", err)
	}
	p.listener = l
	if err := os.Chmod(socket, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("listen in place of hookd: %w", err)
	}
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			if p.stopped {
				_ = conn.Close()
			}
			p.conns[conn] = struct{}{}
			p.mu.Unlock()
			p.wg.Go(func() {
				p.serve(conn)
				_ = conn.Close()
			})
		}
	})
	return p, nil
}

// stop hangs up and returns what was seen.
func (p *played) stop() seen {
	if p.listener != nil {
		_ = p.listener.Close() // this removes the socket
	}
	p.mu.Lock()
	p.stopped = true
	for conn := range p.conns {
		_ = conn.Close()
	}
	if p.late != nil {
		p.late.Stop()
	}
	p.mu.Unlock()
	p.wg.Wait()
	return p.seen
}

// serve answers one connection until it ends.
func (p *played) serve(conn net.Conn) {
	lines := bufio.NewReaderSize(conn, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		message, err := protocol.DecodeObject(bytes.TrimSpace(line), 0)
		if err != nil {
			p.note(func(s *seen) { s.garbage = fmt.Sprintf("%q (%v)", clip(string(line)), err) })
			continue
		}
		answer := p.answer(message)
		text, end := strings.CutSuffix(answer, hangUp)
		if err := write(conn, strings.TrimSuffix(text, silence)); err != nil || end {
			return
		}
	}
}

// write fills the padding in.
func write(conn net.Conn, text string) error {
	before, after, padded := strings.Cut(text, "PADDING")
	if _, err := conn.Write([]byte(before)); err != nil || !padded {
		return err
	}
	piece := bytes.Repeat([]byte("x"), 64<<10)
	for range paddingSize / len(piece) {
		if _, err := conn.Write(piece); err != nil {
			return err
		}
	}
	_, err := conn.Write([]byte(after))
	return err
}

func (p *played) note(change func(*seen)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.seen)
}

// answer returns the answer to a message; "" to a notification.
func (p *played) answer(message protocol.Object) string {
	id := message.Get("id")
	method := message.Get("method")
	if id == nil || method == nil || method.Kind() != '"' {
		return ""
	}
	params, err := protocol.ParseObject(message.Get("params"))
	if err != nil {
		return ""
	}
	request := protocol.Request{Subject: params}
	yes := fmt.Sprintf(`{"approved":true,"digest":%q}`, request.Digest())
	approve := string(params.Get("approve")) == "true"
	result := `{"action":"continue"}`
	own := "" // what the case says
	switch protocol.Unquote(method) {
	case protocol.MethodHello:
		p.note(func(s *seen) { s.deadline = deadlines(params) })
		result, own = `{"ok":true,"name":"hookd","version":1,"server":{"name":"hookd","version":"conform"},"generation":1,`+
			`"limits":{"max_message_bytes":16777216,"max_in_flight":64}}`, p.fake.greeting
	case "hook.before_tool":
		arguments := params.Get("arguments")
		named := bytes.Contains(arguments, []byte(asked))
		p.note(func(s *seen) {
			s.before, s.named, s.approval = true, s.named || named, s.approval || approve
		})
		result, own = `{"action":"continue"APPROVAL}`, p.fake.before
		if p.fake.change && named {
			arguments = bytes.ReplaceAll(arguments, []byte(asked), []byte(changed))
			request.Subject = request.Subject.With("arguments", arguments)
			yes = fmt.Sprintf(`{"approved":true,"digest":%q}`, request.Digest())
			result = fmt.Sprintf(`{"action":"modify","call":{"tool":%s,"arguments":%s}APPROVAL}`, params.Get("tool"), arguments)
		}
	case "hook.approve_tool":
		p.note(func(s *seen) { s.approval = true })
		result, own = yes, p.fake.approve
	case "hook.after_tool":
		p.note(func(s *seen) { s.after = true })
	}
	if strings.HasSuffix(own, silence) {
		p.await(protocol.Unquote(method) == protocol.MethodHello)
	}
	if own == "" {
		own = fmt.Sprintf(`{"jsonrpc":"2.0","id":ID,"result":%s}`+"\n", result)
	}
	approval, refusal := "", ""
	if approve {
		approval, refusal = `,"approval":`+yes, `,"approval":{"approved":false,"reason":"no"}`
	}
	own = strings.NewReplacer("APPROVAL", approval, "REFUSAL", refusal).Replace(own)
	own = strings.Replace(own, `"id":ID`, `"id":`+string(id), 1)
	return own
}

// await sets the clock by which an agent that gets no answer has to give up.
func (p *played) await(greeting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if greeting {
		p.seen.deadline = max(p.seen.deadline, greetingTime)
	}
	if p.seen.deadline > 0 && p.late == nil {
		p.late = time.AfterFunc(p.seen.deadline+spare, func() { close(p.overdue) })
	}
}

// deadlines is how long an agent may wait for an answer by its greeting.
func deadlines(hello protocol.Object) time.Duration {
	var sum time.Duration
	for _, name := range []string{"deadline_ms", "approval_deadline_ms"} {
		if ms, err := strconv.ParseInt(string(hello.Get(name)), 10, 32); err == nil {
			sum += time.Duration(ms) * time.Millisecond
		}
	}
	return sum
}
