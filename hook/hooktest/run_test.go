package hooktest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

func TestInProcess(t *testing.T) {
	Run(t, func(t *testing.T) Harness {
		roles, err := hook.RolesOf(Hook())
		require.NoError(t, err)
		return direct{roles}
	})
}

func TestProcess(t *testing.T) { Run(t, spawn) }

// spawned is a hook in a process of its own, spoken to without hookd.
type spawned struct {
	t      *testing.T
	cmd    *exec.Cmd
	peer   *rpc.Peer
	stderr bytes.Buffer
}

func spawn(t *testing.T) Harness {
	childIn, toChild, err := os.Pipe()
	require.NoError(t, err)
	fromChild, childOut, err := os.Pipe()
	require.NoError(t, err)
	h := &spawned{t: t, cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(os.Environ(), asHook+"=1", "GORACE=atexit_sleep_ms=0") // else -race adds a second to each exit
	h.cmd.Stdin, h.cmd.Stdout, h.cmd.Stderr = childIn, childOut, &h.stderr
	require.NoError(t, h.cmd.Start())
	require.NoError(t, childIn.Close())
	require.NoError(t, childOut.Close())
	h.peer = rpc.NewPeer(context.Background(), rpc.Stdio(fromChild, toChild), rpc.Options{Silent: true})

	var stages []protocol.Stage
	for _, s := range protocol.Stages() {
		stages = append(stages, s.Name)
	}
	hello, err := protocol.Marshal(protocol.HookHello{Name: "reference", Version: protocol.Version, Stages: stages, Events: []string{"*"}})
	require.NoError(t, err)
	answer, err := h.peer.Call(t.Context(), protocol.MethodHello, hello)
	require.NoError(t, err)
	welcome, err := protocol.DecodeHookWelcome(answer, stages)
	require.NoError(t, err)
	require.Equal(t, stages, welcome.Stages)
	return h
}

func (h *spawned) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	return remote(h, ctx, req, func(answer []byte) (protocol.Decision, error) { return protocol.DecodeDecision(req.Stage, answer) })
}

func (h *spawned) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	return remote(h, ctx, req, protocol.DecodeApproval)
}

func (h *spawned) Observe(ctx context.Context, ev *hook.Event) error {
	return h.peer.Notify(ctx, protocol.MethodEvent, ev.AppendJSON(nil, ev.Seq, ev.Missed))
}

// Close ends the hook as hookd does: by closing its stdin.
func (h *spawned) Close() {
	require.NoError(h.t, h.peer.Close())
	require.NoError(h.t, h.cmd.Wait(), "stderr: %s", &h.stderr)
}

func remote[T any](h *spawned, ctx context.Context, req *protocol.Request, read func([]byte) (T, error)) (T, error) {
	answer, err := call(ctx, req, func(ctx context.Context, req *protocol.Request) (jsontext.Value, error) {
		return h.peer.Call(ctx, req.Stage.Method(), req.AppendParams(nil, req.Timeout.Milliseconds()))
	})
	if err != nil {
		var none T
		return none, err
	}
	return read(answer)
}
