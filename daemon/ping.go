package daemon

import (
	"bufio"
	"context"
	"fmt"
	"net"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Ping finds out whether a daemon does its work: it greets it over the socket
// for agents, as an agent does, and asks for its status over the control
// socket. It asks no hook anything, so a hook that hangs does not make the
// daemon look dead. ctx limits both; a refusal is a *[protocol.Error].
func Ping(ctx context.Context, s Sockets) (*Status, error) {
	if err := greet(ctx, s.Agents); err != nil {
		return nil, err
	}
	return askStatus(ctx, s.Control)
}

func greet(ctx context.Context, path string) error {
	_, err := exchange(ctx, path, protocol.MethodHello, `{"name":"hookd-ping","version":1}`)
	return err
}

func askStatus(ctx context.Context, path string) (*Status, error) {
	result, err := exchange(ctx, path, MethodStatus, `{}`)
	if err != nil {
		return nil, err
	}
	var status Status
	if err := protocol.Unmarshal(result, &status); err != nil {
		return nil, fmt.Errorf("%s at %s: unreadable answer: %w", MethodStatus, path, err)
	}
	return &status, nil
}

// exchange makes one call over a connection of its own. It reads the bare line,
// because a refusal of the whole connection is an answer too.
func exchange(ctx context.Context, path, method, params string) (jsontext.Value, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, sent := fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params)
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s at %s: no answer: %w", method, path, context.Cause(ctx))
	case err != nil && sent != nil:
		return nil, sent
	case err != nil:
		return nil, fmt.Errorf("%s at %s: no answer: %w", method, path, err)
	}
	var answer struct {
		Result jsontext.Value `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := protocol.Unmarshal(line, &answer); err != nil {
		return nil, fmt.Errorf("%s at %s: unreadable answer: %w", method, path, err)
	}
	if e := answer.Error; e != nil {
		return nil, protocol.Errorf(e.Code, "%s", e.Message)
	}
	return answer.Result, nil
}
