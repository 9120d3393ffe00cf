package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// status asks the control socket, as hookd status does.
func (d *runningDaemon) status(t testing.TB) *daemon.Status {
	t.Helper()
	var s daemon.Status
	require.NoError(t, d.control(t, daemon.MethodStatus, nil, &s))
	return &s
}

func (d *runningDaemon) control(t testing.TB, method string, params, result any) error {
	t.Helper()
	conn, err := net.Dial("unix", d.sockets.Control)
	require.NoError(t, err)
	peer := rpc.NewPeer(context.Background(), conn, rpc.Options{})
	defer peer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var raw []byte
	if params != nil {
		raw, err = protocol.Marshal(params)
		require.NoError(t, err)
	}
	answer, err := peer.Call(ctx, method, raw)
	if err == nil && result != nil {
		require.NoError(t, json.Unmarshal(answer, result))
	}
	return err
}

// agent is a bare agent: lines over a socket and nothing that could hide what
// the daemon does.
type agent struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
	id   int
}

func (d *runningDaemon) dial(t testing.TB) *agent {
	t.Helper()
	conn, err := net.Dial("unix", d.sockets.Agents)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &agent{t: t, conn: conn, r: bufio.NewReaderSize(conn, 1<<20)}
}

func (a *agent) send(line string) {
	a.t.Helper()
	_, err := a.conn.Write([]byte(line + "\n"))
	require.NoError(a.t, err)
}

// answer is a line from the daemon.
type answer struct {
	ID     any             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (a *agent) read() answer {
	a.t.Helper()
	require.NoError(a.t, a.conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	line, err := a.r.ReadString('\n')
	require.NoError(a.t, err)
	var ans answer
	require.NoError(a.t, json.Unmarshal([]byte(line), &ans), line)
	return ans
}

// ask makes one request and returns its result, or its error as text.
func (a *agent) ask(method, params string) string {
	a.t.Helper()
	a.id++
	a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, a.id, method, params))
	ans := a.read()
	require.EqualValues(a.t, a.id, ans.ID)
	if ans.Error != nil {
		return fmt.Sprintf("error %d: %s", ans.Error.Code, ans.Error.Message)
	}
	return string(ans.Result)
}
