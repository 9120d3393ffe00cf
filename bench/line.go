package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// client sends lines and reads lines, with the least that this takes.
type client struct {
	w io.WriteCloser
	r *bufio.Reader
}

func newClient(w io.WriteCloser, r io.Reader) *client {
	return &client{w, bufio.NewReaderSize(r, 64<<10)}
}

// dial connects to a socket. The caller closes w.
func dial(path string) (*client, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	return newClient(conn, conn), nil
}

// exchange sends a line and returns the next one, valid until the next exchange.
func (c *client) exchange(line []byte) ([]byte, error) {
	if _, err := c.w.Write(line); err != nil {
		return nil, err
	}
	answer, err := c.r.ReadSlice('\n')
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return answer, err
}

// asking returns an exchange whose answer must hold want. A hook that was
// passed over stands in "degraded", and is not what is to be measured.
func (c *client) asking(line []byte, want string) func() error {
	return func() error {
		answer, err := c.exchange(line)
		if err != nil {
			return err
		}
		if !bytes.Contains(answer, []byte(want)) || bytes.Contains(answer, []byte(`"degraded"`)) {
			return fmt.Errorf("unexpected answer: %s", bytes.TrimSpace(answer[:min(len(answer), 500)]))
		}
		return nil
	}
}

const continues = `"action":"continue"`

func callLine(method string, params []byte) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params)
}

// toolParams are params of before_tool of about n bytes.
func toolParams(tool, command string, n int) []byte {
	head := fmt.Sprintf(`{"tool":%q,"arguments":{"command":"%s`, tool, command)
	return []byte(head + strings.Repeat("x", max(n-len(head)-3, 0)) + `"}}`)
}

// toolLine is a call of before_tool whose params have about 200 bytes.
func toolLine(tool string) []byte {
	return callLine("hook.before_tool", toolParams(tool, "", 200))
}

// modelParams are params of before_llm of about n bytes, in messages of the
// size that a conversation has.
func modelParams(n int) []byte {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 40)
	text = text[:min(len(text), max(n-100, 1))]
	var b bytes.Buffer
	b.WriteString(`{"model":"m","messages":[{"role":"system","content":"be kind"}`)
	for b.Len() < n {
		fmt.Fprintf(&b, `,{"role":"user","content":%q}`, text)
	}
	b.WriteString(`],"options":{"temperature":0.2}}`)
	return b.Bytes()
}
