package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// envelope is one line that was read: a JSON-RPC message around a payload.
// Everything in it shares the memory of the line.
type envelope struct {
	size int
	id   ID
	// hasID says that there is an id member, whatever is in it.
	hasID bool

	request bool // it has a method, so it can't be an answer
	method  string
	params  jsontext.Value
	members protocol.Object

	response bool // it has a result or an error
	result   jsontext.Value
	// err is, of an answer, what the call ends with: the error the other side
	// answered with or what is wrong with its answer.
	err error

	// invalid says why it is not a message that may be acted on.
	invalid *protocol.Error
}

// parser reads envelopes. It is kept and reused because its parts are large.
type parser struct {
	dec jsontext.Decoder
	buf bytes.Buffer
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// parse reads a line in one pass. An error means that the line is not JSON
// that can be trusted; then the envelope is empty.
func parse(line []byte, maxDepth int) (envelope, error) {
	if err := protocol.CheckDepth(line, maxDepth); err != nil {
		return envelope{}, err
	}
	// Many readers end a line at a carriage return too, and would find another
	// message in the rest. In a string it can only stand escaped.
	if bytes.IndexByte(line, '\r') >= 0 {
		return envelope{}, errors.New(`a carriage return between tokens: a line ends with \n, and may hold no other line end`)
	}
	p := parsers.Get().(*parser)
	e, usual := p.usual(line)
	var err error
	if !usual {
		p.reset(line)
		e, err = p.envelope(line)
	}
	p.reset(nil) // don't keep the line
	parsers.Put(p)
	if err != nil {
		return envelope{}, protocol.JSONError(err)
	}
	return e, nil
}

// reset makes the decoder read from a bytes.Buffer, of which it takes the
// bytes as they are instead of copying them.
func (p *parser) reset(line []byte) {
	p.buf = *bytes.NewBuffer(line)
	p.dec.Reset(&p.buf)
}

func (p *parser) envelope(line []byte) (envelope, error) {
	e := envelope{size: len(line)}
	if p.dec.PeekKind() != '{' {
		v, err := p.dec.ReadValue()
		if err != nil {
			return e, err
		}
		what := "a message is one JSON object"
		if v.Kind() == '[' {
			what = "batches are not supported: send one request per line"
		}
		e.invalid = protocol.Errorf(protocol.CodeInvalidRequest, "%s", what)
		return e, p.end(line)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return e, err
	}
	var version, id, method, params, unknown jsontext.Value
	var rpcError jsontext.Value
	for p.dec.PeekKind() != '}' {
		name, err := p.dec.ReadValue()
		if err != nil {
			return e, err
		}
		var to *jsontext.Value
		switch string(unquote(name)) {
		case "jsonrpc":
			to = &version
		case "id":
			to = &id
		case "method":
			to = &method
		case "params":
			if p.dec.PeekKind() == '{' {
				from := p.dec.InputOffset()
				if e.members, err = protocol.ReadMembers(&p.dec); err != nil {
					return e, err
				}
				// What stands between the name and the object: spaces and a colon.
				from += int64(bytes.IndexByte(line[from:], '{'))
				e.params = line[from:p.dec.InputOffset():p.dec.InputOffset()]
				continue
			}
			to = &params
		case "result":
			to = &e.result
		case "error":
			to = &rpcError
		default:
			to = &unknown
		}
		if *to, err = p.dec.ReadValue(); err != nil {
			return e, err
		}
		if to == &unknown {
			unknown = name
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return e, err
	}
	if err := p.end(line); err != nil {
		return e, err
	}

	validID := false
	if e.hasID = id != nil; e.hasID {
		e.id, validID = parseID(id)
	}
	e.request = method != nil
	e.response = e.result != nil || rpcError != nil
	if e.response && !e.request {
		e.outcome(rpcError)
		switch { // a misspelt verdict must not read as none
		case unknown != nil:
			e.result, e.err = nil, fmt.Errorf("%w: %q is not a member of an answer", ErrGarbage, clipName(string(unquote(unknown))))
		case version != nil && string(version) != `"2.0"`:
			e.result, e.err = nil, fmt.Errorf(`%w: its jsonrpc is not "2.0"`, ErrGarbage)
		}
		return e, nil
	}
	// The order is from what makes the rest pointless to what is only wrong.
	switch {
	case string(version) != `"2.0"`:
		e.invalid = invalidRequest("jsonrpc", `must be "2.0"`)
	case e.hasID && !validID:
		e.invalid = invalidRequest("id", "must be an integer from 0 to 2^53-1 or a string of at most %d bytes", maxIDBytes)
	case method == nil:
		e.invalid = invalidRequest("method", "is missing")
	case e.response:
		e.invalid = invalidRequest("method", "stands beside a result or an error")
	case method.Kind() != '"' || len(method) == 2:
		e.invalid = invalidRequest("method", "must be a string that is not empty")
	case unknown != nil:
		e.invalid = invalidRequest(clipName(string(unquote(unknown))), "is not a member of a request")
	case params != nil:
		e.invalid = protocol.InvalidParams("params", "must be an object")
	default:
		e.method = string(unquote(method))
	}
	return e, nil
}

// end checks that nothing stands behind the message.
func (p *parser) end(line []byte) error {
	rest := bytes.TrimLeft(line[p.dec.InputOffset():], " \t\r")
	if len(rest) > 0 {
		return errors.New("more data after the message")
	}
	return nil
}

// outcome sets what a call ends with when e is its answer.
func (e *envelope) outcome(rpcError jsontext.Value) {
	switch {
	case rpcError == nil:
		return
	case e.result == nil || e.result.Kind() == 'n':
		e.result = nil
		if err := readError(rpcError); err != nil {
			e.err = err
		} else {
			e.err = fmt.Errorf("%w: its error member is not a JSON-RPC error", ErrGarbage)
		}
	case rpcError.Kind() != 'n': // "error": null beside a result is common
		e.result = nil
		e.err = fmt.Errorf("%w: it has both a result and an error", ErrGarbage)
	}
}

// readError reads an error object, nil when it is none.
func readError(v jsontext.Value) *protocol.Error {
	if v.Kind() != '{' {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(v))
	obj, err := protocol.ReadMembers(dec)
	if err != nil {
		return nil
	}
	code, err := strconv.Atoi(string(obj.Get("code")))
	text := obj.Get("message")
	if err != nil || text == nil || text.Kind() != '"' {
		return nil
	}
	return &protocol.Error{Code: code, Message: string(unquote(text)), Data: obj.Get("data")}
}

// unquote decodes a JSON string that a decoder has checked.
func unquote(v jsontext.Value) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	b, _ := jsontext.AppendUnquote(nil, []byte(v))
	return b
}

// clipName shortens a name that a peer has chosen.
func clipName(s string) string { return s[:min(len(s), 128)] }

func invalidRequest(path, format string, args ...any) *protocol.Error {
	e := protocol.InvalidParams(path, format, args...)
	e.Code = protocol.CodeInvalidRequest
	return e
}

// onlyDuplicates reports whether the only thing wrong with a line is that it holds
// a name twice.
func onlyDuplicates(line []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewBuffer(line), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadValue(); err != nil {
		return false
	}
	return len(bytes.TrimLeft(line[dec.InputOffset():], " \t\r")) == 0
}

// glance is what can be told of a line without reading it as JSON: whether it
// is a request or an answer, and its id.
type glance struct {
	id                ID
	request, response bool
}

// peek looks at the members of the outermost object for as long as it can
// tell where they begin and end. The line may be cut anywhere and need not be
// valid. An id counts only when it is there whole and once.
func peek(b []byte) (g glance) {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		return g
	}
	i++
	ids := 0
	for {
		for i = skipSpace(b, i); i < len(b) && b[i] == ','; i = skipSpace(b, i+1) {
		}
		if i == len(b) || b[i] != '"' {
			return g
		}
		from := i + 1
		if i = stringEnd(b, from); i < 0 {
			return g
		}
		name := string(b[from:i])
		if i = skipSpace(b, i+1); i == len(b) || b[i] != ':' {
			return g
		}
		i = skipSpace(b, i+1)
		end := valueEnd(b, i)
		switch name {
		case "method":
			g.request = true
		case "result", "error":
			g.response = true
		case "id":
			if end < 0 {
				return g
			}
			if ids++; ids > 1 {
				g.id = ID{}
			} else {
				g.id, _ = parseID(b[i:end])
			}
		}
		if end < 0 {
			return g
		}
		i = end
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the index of the quote that ends the string beginning at
// i, or -1.
func stringEnd(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// valueEnd returns the index behind the value that begins at i, or -1 when
// its end is not there to see.
func valueEnd(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = stringEnd(b, i+1); i < 0 {
				return -1
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}
