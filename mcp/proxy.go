// Package mcp puts hookd in front of a Model Context Protocol server that
// speaks lines over standard input and output. Calls of tools go through
// before_tool, approve_tool and after_tool; every other line passes as it is,
// byte for byte.
//
// A line of the client that can be read in two ways is not handed on: the
// server might read another one than hookd has judged.
package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
)

// Asker is hookd, or what stands for it while it is away.
type Asker interface {
	BeforeTool(ctx context.Context, p client.BeforeTool) (client.ToolVerdict, error)
	AfterTool(ctx context.Context, p client.AfterTool) (client.ResultVerdict, error)
}

// Limits of a proxy. The zero value of [Options] has them.
const (
	// DefaultMaxLine is the longest line, in bytes.
	DefaultMaxLine = 64 << 20
	// maxCalls is how many calls of tools may be open at once. The client gets
	// an error for more.
	maxCalls   = 64
	maxDepth   = 512
	maxSettled = 1024
	// settleWithin is how long open calls may go on when the client has ended.
	settleWithin = 5 * time.Second
)

// Options configure a [Proxy].
type Options struct {
	// Server is the server's name: a tool t is asked about as mcp__Server__t.
	Server string
	// Ask is required.
	Ask Asker
	// MaxLine is the longest line that passes; 0 is [DefaultMaxLine].
	MaxLine int
	// Warn is told what was refused, never what was said; nil = nobody is. It
	// is called from several goroutines.
	Warn func(text string)
}

// Proxy stands between one client and one server. Make it with [New]; it is
// used once.
type Proxy struct {
	o        Options
	cwd      string // where the client has started the proxy; "" = nobody knows
	toClient *lineWriter
	toServer *lineWriter

	mu    sync.Mutex
	calls map[string]*call // open calls by the text of their id
	// settled are calls that were answered without the server's result, which
	// may still come.
	settled map[string]bool
	idle    chan struct{}  // closed when no call is open, once somebody waits
	seen    jsontext.Value // clientInfo of the greeting
	asking  sync.WaitGroup
}

// call is a tools/call that has no answer yet.
type call struct {
	id        jsontext.Value
	cancel    context.CancelCauseFunc
	ctx       context.Context
	forwarded bool // the server has it
	answered  bool // and has answered
	began     time.Time

	name      string // the server's name of the tool
	arguments jsontext.Value
	context   []string // what hooks want the model to know
}

// New returns a proxy.
func New(o Options) *Proxy {
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "" // it is gone: the call belongs to no project
	}
	return &Proxy{o: o, cwd: cwd, calls: map[string]*call{}, settled: map[string]bool{}}
}

// errGone is why questions end when there is nobody to get the answer.
var errGone = errors.New("the MCP client went away")

// Run relays until both sides have said all they had to say: when fromClient
// ends, toServer is closed, and Run returns when fromServer ends. It returns
// the first error of a stream other than its end. ctx cuts short what is being
// asked; the caller ends the streams.
func (p *Proxy) Run(ctx context.Context, fromClient io.Reader, toClient io.Writer, fromServer io.Reader, toServer io.WriteCloser) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.toClient, p.toServer = &lineWriter{w: toClient}, &lineWriter{w: toServer}
	var up error
	var client sync.WaitGroup
	client.Go(func() {
		up = p.lines(fromClient, func(line []byte) error { return p.fromClient(ctx, line) })
		p.settle(ctx)
		cancel(errGone)
		p.asking.Wait() // a call that is allowed still goes out before the end
		if err := toServer.Close(); up == nil && err != nil {
			up = fmt.Errorf("close the server's input: %w", err)
		}
	})
	down := p.lines(fromServer, func(line []byte) error { return p.fromServer(ctx, line) })
	p.asking.Wait()
	cancel(errGone)
	if down != nil {
		return fmt.Errorf("from the MCP server: %w", down)
	}
	// The client's side may never end: a server that is gone ends the session.
	done := make(chan struct{})
	go func() { client.Wait(); close(done) }() // ends when the caller closes fromClient
	select {
	case <-done:
		if up != nil {
			return fmt.Errorf("from the MCP client: %w", up)
		}
	case <-time.After(100 * time.Millisecond):
	}
	return nil
}

// settle gives calls that are open when the client has said all it had to say
// a moment to come to their end.
func (p *Proxy) settle(ctx context.Context) {
	p.mu.Lock()
	if len(p.calls) == 0 {
		p.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	p.idle = idle
	p.mu.Unlock()
	timer := time.NewTimer(settleWithin)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// lines calls f for every line; a last one without an end counts.
func (p *Proxy) lines(r io.Reader, f func(line []byte) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(in, p.o.MaxLine)
		if len(bytes.TrimSpace(line)) > 0 {
			if err := f(line); err != nil {
				return err
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit {
			return nil, fmt.Errorf("a line is longer than %d bytes", limit)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// lineWriter writes whole lines, from several goroutines.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *lineWriter) write(line []byte) error {
	if len(line) == 0 || line[len(line)-1] != '\n' {
		line = append(line[:len(line):len(line)], '\n')
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(line)
	return err
}

// fromClient hands a line on, or takes it for a call of a tool.
func (p *Proxy) fromClient(ctx context.Context, line []byte) error {
	m, err := readMessage(line)
	if err != nil {
		p.o.Warn("a line of the MCP client was refused: " + err.Error())
		return p.toClient.write(refusal(m.id, protocol.CodeParse, "hookd does not hand on what can be read in two ways: "+err.Error()))
	}
	switch {
	case m.batch:
		p.o.Warn("a batch was refused")
		return p.toClient.write(refusal(nil, protocol.CodeInvalidRequest, "hookd takes one message per line, no batch"))
	case m.method == "notifications/cancelled" && p.cancelled(m):
		return nil // the server has never seen the call
	case m.method == "initialize":
		p.greeted(m)
	case m.method == "tools/call":
		return p.call(ctx, m, line)
	}
	return p.toServer.write(line)
}

// cancelled ends the questions about a call that the client no longer wants,
// and reports whether the server need not know.
func (p *Proxy) cancelled(m message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[idKey(m.params.Get("requestId"))]
	if c == nil || c.forwarded {
		return false
	}
	c.cancel(errors.New("the MCP client cancelled the call"))
	return true
}

func (p *Proxy) greeted(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = m.params.Get("clientInfo")
}

// call asks about a call of a tool, beside the reading.
func (p *Proxy) call(ctx context.Context, m message, line []byte) error {
	if m.id == nil {
		p.o.Warn("a tools/call without id was refused: nobody could read the answer")
		return nil
	}
	name, arguments, err := m.toolCall()
	if err != nil {
		return p.toClient.write(refusal(m.id, protocol.CodeInvalidParams, err.Error()))
	}
	c := &call{id: m.id, name: name, arguments: arguments, began: time.Now()}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	if why := p.open(c); why != "" {
		c.cancel(nil)
		return p.toClient.write(refusal(m.id, protocol.CodeInvalidRequest, why))
	}
	p.asking.Go(func() {
		if err := p.before(c, m, line); err != nil {
			p.o.Warn("a call could not be handed on: " + err.Error())
			p.close(c)
		}
	})
	return nil
}

func (p *Proxy) open(c *call) (why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch key := idKey(c.id); {
	case p.calls[key] != nil:
		return "a call with this id is open already"
	case len(p.calls) >= maxCalls:
		return fmt.Sprintf("%d calls are open already", maxCalls)
	default:
		delete(p.settled, key)
		p.calls[key] = c
	}
	return ""
}

func (p *Proxy) close(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.cancel(nil)
	if p.calls[idKey(c.id)] == c {
		delete(p.calls, idKey(c.id))
	}
	if len(p.calls) == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

func (p *Proxy) prefix() string { return "mcp__" + p.o.Server + "__" }

// question is what both questions about a call have in common.
func (p *Proxy) question(c *call) client.Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := client.Call{CallID: string(c.id), Meta: client.Meta{CWD: p.cwd}}
	if c.id.Kind() == '"' {
		q.CallID = protocol.Unquote(c.id)
	}
	about := protocol.Object{{Name: "server", Value: protocol.Quote(p.o.Server)}}
	if p.seen != nil {
		about = append(about, protocol.Member{Name: "client", Value: p.seen})
	}
	q.Context = jsontext.Value(protocol.Object{{Name: "mcp", Value: about.AppendJSON(nil)}}.AppendJSON(nil))
	return q
}

// before asks, and hands the call on or answers it.
func (p *Proxy) before(c *call, m message, line []byte) error {
	v, err := p.o.Ask.BeforeTool(c.ctx, client.BeforeTool{Call: p.question(c), Tool: p.prefix() + c.name, Arguments: c.arguments})
	if context.Cause(c.ctx) != nil {
		p.close(c)
		return nil // a cancelled call gets no answer
	}
	if err != nil {
		p.o.Warn("hookd gave no verdict: " + c.name + ": " + err.Error())
	}
	name, ok := c.name, true
	if v.Allowed && v.Tool != p.prefix()+c.name {
		name, ok = cutPrefix(v.Tool, p.prefix())
	}
	switch {
	case !v.Allowed && v.Result != nil && v.Action == protocol.ActionRespond:
		p.close(c)
		return p.toClient.write(response(c.id, withContext(resultOf(v.Result), v.AddContext)))
	case !v.Allowed:
		p.close(c)
		return p.toClient.write(response(c.id, failed(v.Reason, v.AddContext)))
	case !ok:
		p.close(c)
		return p.toClient.write(response(c.id, failed(fmt.Sprintf("a hook turned the call into one of %q, which this server does not have", v.Tool), nil)))
	}
	if name != c.name || !bytes.Equal(v.Arguments, c.arguments) && !protocol.SameValue(v.Arguments, c.arguments) {
		line = m.withCall(name, v.Arguments)
		c.name, c.arguments = name, v.Arguments
	}
	c.context = v.AddContext
	p.mu.Lock()
	gone := context.Cause(c.ctx) != nil // cancelled just now
	c.forwarded = !gone
	p.mu.Unlock()
	if gone {
		p.close(c)
		return nil
	}
	c.began = time.Now()
	return p.toServer.write(line)
}

// fromServer hands a line on, or asks about the result that it holds.
func (p *Proxy) fromServer(ctx context.Context, line []byte) error {
	m, err := readMessage(line)
	if err != nil || m.method != "" || m.id == nil {
		// What the server says is not for hookd to judge, except the results of
		// calls, and those must be found.
		if err != nil && p.anyForwarded() {
			p.o.Warn("a line of the MCP server was withheld: it may be the result of a call and can't be read: " + err.Error())
			return p.withhold(m.id)
		}
		return p.toClient.write(line)
	}
	p.mu.Lock()
	c := p.calls[idKey(m.id)]
	mine := c != nil && c.forwarded
	again := mine && c.answered || c == nil && p.settled[idKey(m.id)]
	if mine {
		c.answered = true
	}
	p.mu.Unlock()
	switch {
	case again:
		p.o.Warn("a second result of one call was dropped")
		return nil
	case !mine:
		return p.toClient.write(line)
	}
	p.asking.Go(func() {
		defer p.close(c)
		if err := p.after(ctx, c, m, line); err != nil {
			p.o.Warn("a result could not be handed on: " + err.Error())
		}
	})
	return nil
}

// after asks about a result.
func (p *Proxy) after(ctx context.Context, c *call, m message, line []byte) error {
	result, isError := m.result, false
	if m.failure != nil { // the call itself went wrong: an error without content
		result, isError = protocol.Object{{Name: "content", Value: protocol.Quote(m.errorText())}}, true
	} else if string(m.result.Get("isError")) == "true" {
		isError = true
	}
	asked := neutral(result, isError)
	v, err := p.o.Ask.AfterTool(ctx, client.AfterTool{
		Call: p.question(c), Tool: p.prefix() + c.name, Arguments: c.arguments, Result: asked, Duration: time.Since(c.began),
	})
	if err != nil {
		p.o.Warn("hookd gave no verdict on a result: " + c.name + ": " + err.Error())
	}
	context := append(c.context, v.AddContext...)
	switch {
	case v.Allowed && protocol.SameValue(v.Result, asked) && len(context) == 0:
		return p.toClient.write(line)
	case v.Allowed && m.failure != nil && protocol.SameValue(v.Result, asked):
		return p.toClient.write(line) // an error has no place for context
	case v.Allowed && protocol.SameValue(v.Result, asked):
		return p.toClient.write(response(c.id, withContext(m.result, context)))
	}
	return p.toClient.write(response(c.id, withContext(merged(m.result, resultOf(v.Result)), context)))
}

func (p *Proxy) anyForwarded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c.forwarded {
			return true
		}
	}
	return false
}

// withhold answers a call whose result can't be read; when its id can't be
// read either, all that are open.
func (p *Proxy) withhold(id jsontext.Value) error {
	p.mu.Lock()
	var open []*call
	for key, c := range p.calls {
		if c.forwarded && !c.answered && (id == nil || key == idKey(id)) {
			c.answered = true
			if len(p.settled) >= maxSettled {
				clear(p.settled)
			}
			p.settled[key] = true
			open = append(open, c)
		}
	}
	p.mu.Unlock()
	for _, c := range open {
		p.close(c)
		if err := p.toClient.write(response(c.id, failed("the MCP server's result can't be read, so it was withheld", nil))); err != nil {
			return err
		}
	}
	return nil
}
