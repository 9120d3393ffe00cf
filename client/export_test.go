package client

import (
	"context"
	"io"
	"net"

	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// WithCreds sets whose process is at the other end, whoever it is.
func (o Options) WithCreds(f func(net.Conn) (rpc.Creds, error)) Options {
	o.creds = f
	return o
}

// DialWith is Dial over streams of the test's.
func DialWith(ctx context.Context, o Options, dial func(context.Context) (io.ReadWriteCloser, error)) (*Client, error) {
	c := newClient(o)
	c.dial = dial
	return c.start(func() error {
		_, err := c.open(ctx)
		return err
	})
}

// ReadToolAnswer reads an answer to before_tool about bash {"n":1}.
func ReadToolAnswer(raw []byte, approveLater bool) (ToolVerdict, error) {
	c := newClient(Options{})
	q := c.query(protocol.StageBeforeTool, Call{})
	q.subject.add("tool", "bash")
	q.subject.add("arguments", map[string]int{"n": 1})
	q.approve = !approveLater
	r, err := q.read(raw)
	if err != nil {
		r = noVerdict(err)
	}
	return r.toolVerdict(approveLater), err
}
