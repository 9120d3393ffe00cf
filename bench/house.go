package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
)

const (
	patience = 30 * time.Second     // for what a process is about to do
	look     = 2 * time.Millisecond // between two looks whether it did
)

// object is JSON to be written.
type object = map[string]any

// house is a daemon in a process of its own, with its hooks.
type house struct {
	run            *run
	process        *child.Process
	usages         *bufio.Reader
	config         string
	agents         string // socket
	record         string // its mode
	control        *client
	waitedForReady time.Duration // from the start until every hook was ready
}

// settings returns the names of what the Go runtime reads, so that its effect
// can be measured too.
func settings() []string { return []string{"GOGC", "GOMAXPROCS", "GORACE"} }

// process is an entry of the config: this program in a part of the play.
func (r *run) process(part []string, more object) object {
	entry := object{"command": append(slices.Clone(r.Program), part...), "intercept": []string{"before_tool", "before_llm"}, "pass_env": settings()}
	for key, value := range more {
		entry[key] = value
	}
	return entry
}

// hook is the entry of a hook that does always the same.
func (r *run) hook(part string, more object) object {
	return r.process([]string{"hook", part}, more)
}

// spawn starts this program in a part of the play.
func (r *run) spawn(part ...string) (*child.Process, error) {
	return r.spawner.Start(r.ctx, child.Spec{Name: "bench-" + part[0], Argv: append(slices.Clone(r.Program), part...), PassEnv: settings()})
}

// start starts a daemon with these "hooks", which keeps no record, and waits
// until all are ready. The caller stops it.
func (r *run) start(hooks object) (*house, error) { return r.startWith("off", hooks) }

// startWith does so with a record in this mode.
func (r *run) startWith(record string, hooks object) (*house, error) {
	r.started++
	folder := filepath.Join(r.folder, strconv.Itoa(r.started))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	h := &house{run: r, config: filepath.Join(folder, "config.json"), agents: filepath.Join(folder, "a.sock"), record: record}
	if err := h.write(hooks); err != nil {
		return nil, err
	}
	var err error
	began := time.Now()
	if h.process, err = r.spawn("daemon", h.config); err != nil {
		return nil, err
	}
	h.usages = bufio.NewReader(h.process.Stdout())
	if err := h.until("every hook is ready", h.ready); err != nil {
		tail := strings.Join(h.process.StderrTail(), "\n")
		h.stop()
		return nil, fmt.Errorf("start a daemon: %w\n%s", err, tail)
	}
	h.waitedForReady = time.Since(began)
	return h, nil
}

// write replaces the config at once, as editors do.
func (h *house) write(hooks object) error {
	text, err := protocol.Marshal(object{
		"socket": object{"path": "a.sock"}, "control": object{"path": "c.sock"}, "log": object{"level": "error"}, "hooks": hooks,
		"record": object{"path": "record.db", "mode": h.record},
		"layers": object{"organisation": []string{}, "user": []string{}, "project": []string{}}, // nothing of this machine's
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(h.config+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(h.config+".new", h.config)
}

// until waits for what another process is about to do.
func (h *house) until(what string, try func() bool) error {
	for end := time.Now().Add(patience); !try(); time.Sleep(look) {
		select {
		case <-h.process.Done():
			return fmt.Errorf("the daemon ended: %s", h.process.Exit())
		case <-h.run.ctx.Done():
			return context.Cause(h.run.ctx)
		default:
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s still not so: %s", patience, what)
		}
	}
	return nil
}

func (h *house) ready() bool {
	if h.control == nil {
		c, err := dial(filepath.Join(filepath.Dir(h.config), "c.sock"))
		if err != nil {
			return false
		}
		h.control = c
	}
	s, err := h.status()
	return err == nil && s.Ready && s.Settled() && !slices.ContainsFunc(s.Hooks, func(hook daemon.HookStatus) bool { return hook.State == "failed" })
}

// ask makes one call of the control socket.
func (h *house) ask(method string, params, result any) error {
	raw, err := protocol.Marshal(params)
	if err != nil {
		return err
	}
	if _, err := h.control.w.Write(callLine(method, raw)); err != nil {
		return err
	}
	line, err := h.control.r.ReadBytes('\n')
	if err != nil {
		return err
	}
	answer := struct {
		JSONRPC string         `json:"jsonrpc"`
		ID      int            `json:"id"`
		Result  jsontext.Value `json:"result"`
		Error   jsontext.Value `json:"error"`
	}{}
	if err := protocol.Unmarshal(line, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return fmt.Errorf("%s: %s", method, answer.Error)
	}
	return protocol.Unmarshal(answer.Result, result)
}

func (h *house) status() (*daemon.Status, error) {
	s := &daemon.Status{}
	return s, h.ask(daemon.MethodStatus, object{}, s)
}

// usage asks what the daemon has allocated.
func (h *house) usage() (u usage, err error) {
	line, err := h.order(askUsage, "")
	if err != nil {
		return u, err
	}
	return u, protocol.Unmarshal(line, &u)
}

// tell gives the daemon an order and waits until it is done.
func (h *house) tell(word, path string) error {
	_, err := h.order(word, path)
	return err
}

func (h *house) order(word, path string) ([]byte, error) {
	if _, err := fmt.Fprintln(h.process.Stdin(), word, path); err != nil {
		return nil, err
	}
	return h.usages.ReadBytes('\n')
}

func (h *house) dial() (*client, error) { return dial(h.agents) }

// stop ends the daemon, in order.
func (h *house) stop() {
	if h.control != nil {
		h.control.w.Close()
	}
	_ = h.process.Stop(h.run.ctx)
	_ = h.process.Stdout().Close()
}

// expired is a context that leaves no time: what is stopped is killed.
func expired() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("no time"))
	return ctx
}
