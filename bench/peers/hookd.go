package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/hook/serve"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
)

// asPart is the first argument of the processes that this program starts.
const asPart = "__part"

// play is what such a process does.
func play(part []string, helper *child.Helper) error {
	switch {
	case part[0] == "hookd" && len(part) == 2:
		return beHookd(part[1], helper)
	case part[0] == "hook":
		serve.Main(yes{})
	case part[0] == "nri" && len(part) == 3:
		return beRuntimePlugin(part[1], part[2])
	case part[0] == "go-plugin":
		beGRPCPlugin()
		return nil
	}
	return fmt.Errorf("no such part: %q", part)
}

// beHookd serves until stdin ends.
func beHookd(config string, helper *child.Helper) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { // until the process ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel(errors.New("the bench is done"))
	}()
	return daemon.Run(ctx, daemon.Options{ConfigPath: config, Version: "bench", Helper: helper, Alone: true, Builtins: []mount.Builtin{
		{Name: "six", New: func(mount.BuiltinContext) (any, error) { return six{}, nil }},
	}})
}

// six is a hook with six rules.
type six struct{}

// rules are texts that no command may hold.
func rules() []string {
	return []string{"rm -rf /", "mkfs.", "dd if=/dev/zero", "chmod -R 777 /", "curl http://", "> /dev/sda"}
}

// Quick implements [hook.Quick]: looking for six texts takes a microsecond.
func (six) Quick() {}

// Intercept implements [hook.Interceptor].
func (six) Intercept(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
	arguments, err := protocol.ParseObject(req.Subject.Get("arguments"))
	if err != nil {
		return protocol.Decision{}, err
	}
	command := protocol.Unquote(arguments.Get("command"))
	for _, rule := range rules() {
		if strings.Contains(command, rule) {
			return hook.Deny("%s is not for agents", rule), nil
		}
	}
	return hook.Continue(), nil
}

// yes is a hook that continues.
type yes struct{}

// Intercept implements [hook.Interceptor].
func (yes) Intercept(context.Context, *protocol.Request) (protocol.Decision, error) {
	return hook.Continue(), nil
}

// command is what the call wants to run: about 200 bytes, and nothing that is
// forbidden.
func command() string { return "ls -l " + strings.Repeat("some/folder/", 14) }

// house is a hookd that runs.
type house struct {
	process *os.Process
	stdin   *os.File
	socket  string
	record  string
}

// start starts a hookd with these hooks and a record in this mode.
func (b *bench) start(record string, hooks map[string]any) (*house, error) {
	b.names++
	dir := filepath.Join(b.folder, fmt.Sprintf("hookd%d", b.names))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	text, err := protocol.Marshal(map[string]any{
		"socket": map[string]any{"path": "a.sock"}, "control": map[string]any{"path": "c.sock"},
		"log": map[string]any{"level": "error"}, "hooks": hooks,
		"record": map[string]any{"path": "record.db", "mode": record},
		"layers": map[string]any{"organisation": []string{}, "user": []string{}, "project": []string{}}, // nothing of this machine's
	})
	if err != nil {
		return nil, err
	}
	h := &house{socket: filepath.Join(dir, "a.sock"), record: filepath.Join(dir, "record.db")}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600); err != nil {
		return nil, err
	}
	if h.process, h.stdin, err = b.spawn(b.self, nil, asPart, "hookd", filepath.Join(dir, "config.json")); err != nil {
		return nil, err
	}
	return h, b.until("hookd answers", func() bool {
		c, err := h.client()
		if err != nil {
			return false
		}
		defer c.conn.Close()
		return c.ask() == nil
	})
}

// spawn starts a program that ends with its stdin.
func (b *bench) spawn(path string, out *os.File, args ...string) (*os.Process, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer read.Close()
	p, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{Files: []*os.File{read, out, os.Stderr}, Env: os.Environ()})
	if err != nil {
		write.Close()
		return nil, nil, err
	}
	return p, write, nil
}

func (h *house) stop() {
	h.stdin.Close()
	_, _ = h.process.Wait()
}

// until waits for what another process is about to do.
func (b *bench) until(what string, so func() bool) error {
	for end := time.Now().Add(10 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if b.ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("still not so: %s", what)
		}
	}
	return nil
}

// client is an agent that writes a line and reads a line.
type client struct {
	conn net.Conn
	r    *bufio.Reader
	line []byte
}

func (h *house) client() (*client, error) {
	conn, err := net.Dial("unix", h.socket)
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReader(conn), fmt.Appendf(nil,
		`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":{"tool":"bash","arguments":{"command":%q}}}`+"\n", command())}, nil
}

func (c *client) ask() error {
	if _, err := c.conn.Write(c.line); err != nil {
		return err
	}
	answer, err := c.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.Contains(answer, []byte(`"action":"continue"`)) || bytes.Contains(answer, []byte(`"degraded"`)) {
		return fmt.Errorf("unexpected answer: %s", answer)
	}
	return nil
}

// children are hooks, so many processes that continue.
func (b *bench) children(n int) map[string]any {
	entries := map[string]any{}
	for i := range n {
		entries[fmt.Sprintf("hook%d", i)] = map[string]any{
			"command": []string{b.self, asPart, "hook"}, "intercept": []string{"before_tool"}, "fail_policy": "deny",
		}
	}
	return map[string]any{"processes": entries}
}

// oneMore returns what one more hook process costs, in microseconds, beside
// peers that are measured in turn.
func (b *bench) oneMore(theirs ...*series) (us float64, err error) {
	var ours []*series
	for _, n := range []int{1, 2} {
		h, err := b.start("off", b.children(n))
		if h != nil {
			defer h.stop()
		}
		if err != nil {
			return 0, err
		}
		c, err := h.client()
		if err != nil {
			return 0, err
		}
		defer c.conn.Close()
		ours = append(ours, &series{do: c.ask})
	}
	if err := b.inTurn(append(ours, theirs...)...); err != nil {
		return 0, err
	}
	return ours[1].p(0.5) - ours[0].p(0.5), nil
}
