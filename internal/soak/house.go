package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/internal/gobuild"
	"github.com/hookd/hookd/internal/invariant"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// patience is how long is waited for what must come.
const patience = 90 * time.Second

// module is what import paths of this repository begin with.
const module = "github.com/hookd/hookd/"

// house is the daemon that is soaked, and its folder.
type house struct {
	folder, config  string
	agents, control string // sockets
	hook, agent     string // programs
	process         *os.Process
	ended           chan struct{} // the daemon's process has

	asking sync.Mutex
	ask    *os.File
	say    *bufio.Reader

	keep bool
}

// start builds the programs and starts a daemon. The caller stops it.
func start(o options) (h *house, err error) {
	folder, err := os.MkdirTemp("/tmp", "soak") // a socket's path must be short
	if err != nil {
		return nil, err
	}
	h = &house{
		folder: folder, config: filepath.Join(folder, "config.json"), agents: filepath.Join(folder, "a.sock"),
		control: filepath.Join(folder, "c.sock"), ended: make(chan struct{}), keep: o.keep,
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.stop())
		}
	}()
	if h.hook, err = gobuild.Program(folder, module+"internal/faulthook"); err != nil {
		return h, err
	}
	if h.agent, err = gobuild.Program(folder, module+"internal/faultagent"); err != nil {
		return h, err
	}
	if err = h.write(h.entries(0)); err != nil {
		return h, err
	}
	if err = h.launch(); err != nil {
		return h, err
	}
	return h, h.until("every hook is ready", func() bool {
		s, err := h.status()
		return err == nil && len(invariant.Unwell(s)) == 0
	})
}

// launch starts this program as the daemon, its stderr in a file.
func (h *house) launch() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(h.log())
	if err != nil {
		return err
	}
	defer log.Close()
	stdin, ask, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	say, stdout, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdout.Close()
	h.ask, h.say = ask, bufio.NewReader(say)
	h.process, err = os.StartProcess(self, []string{self, asDaemon, h.config}, &os.ProcAttr{
		Files: []*os.File{stdin, stdout, log},
	})
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	go func() { // ends with the daemon, for which stop waits
		_, _ = h.process.Wait()
		close(h.ended)
	}()
	return nil
}

func (h *house) log() string { return filepath.Join(h.folder, "hookd.log") }

// stop ends the daemon and removes the folder.
func (h *house) stop() error {
	var err error
	if h.process != nil {
		h.ask.Close()
		select {
		case <-h.ended:
		case <-time.After(patience):
			err = errors.Join(errors.New("the daemon did not end"), h.process.Kill())
			<-h.ended
		}
	}
	if h.keep {
		fmt.Println("kept:", h.folder)
		return err
	}
	return errors.Join(err, os.RemoveAll(h.folder))
}

// until waits for what must come.
func (h *house) until(what string, so func() bool) error {
	for end := time.Now().Add(patience); !so(); time.Sleep(10 * time.Millisecond) {
		select {
		case <-h.ended:
			return fmt.Errorf("the daemon has ended; the end of its log: %s", h.tail())
		default:
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s still not so: %s", patience, what)
		}
	}
	return nil
}

// tail returns the end of the daemon's log.
func (h *house) tail() string {
	text, err := os.ReadFile(h.log())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// call makes one call of the control socket, and makes it again as long as hookd
// says that it can't do that now.
func (h *house) call(method string, params, result any) error {
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := h.callOnce(method, params, result)
		if e, ok := errors.AsType[*protocol.Error](err); !ok || e.Code != protocol.CodeOverloaded || time.Now().After(end) {
			return err
		}
	}
}

func (h *house) callOnce(method string, params, result any) error {
	conn, err := net.Dial("unix", h.control)
	if err != nil {
		return err
	}
	peer := rpc.NewPeer(context.Background(), conn, rpc.Options{})
	defer peer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var raw []byte
	if params != nil {
		if raw, err = protocol.Marshal(params); err != nil {
			return err
		}
	}
	answer, err := peer.Call(ctx, method, raw)
	if err == nil && result != nil {
		err = protocol.Unmarshal(answer, result)
	}
	return err
}

func (h *house) status() (*daemon.Status, error) {
	s := &daemon.Status{}
	return s, h.call(daemon.MethodStatus, nil, s)
}

// statusOf is the status of one hook.
func (h *house) statusOf(name string) (daemon.HookStatus, error) {
	s, err := h.status()
	if err != nil {
		return daemon.HookStatus{}, err
	}
	i := slices.IndexFunc(s.Hooks, func(hook daemon.HookStatus) bool { return hook.Name == name })
	if i < 0 {
		return daemon.HookStatus{}, fmt.Errorf("status does not know %s", name)
	}
	return s.Hooks[i], nil
}

// restart starts a hook anew. refused: hookd told why that can't be, and the old
// one goes on.
func (h *house) restart(name string) (refused bool, err error) {
	err = h.call(daemon.MethodRestart, daemon.HookParams{Name: name}, nil)
	if _, ok := err.(*protocol.Error); ok {
		return true, nil
	}
	return false, err
}

// usage is what the daemon uses, which it tells itself when it is asked with "",
// or with askStacks.
func (h *house) usage(question string) (u invariant.Usage, err error) {
	h.asking.Lock()
	defer h.asking.Unlock()
	if _, err := h.ask.WriteString(question + "\n"); err != nil {
		return u, err
	}
	line, err := h.say.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the daemon has ended; the end of its log: %s", h.tail())
	}
	if err != nil {
		return u, err
	}
	return u, protocol.Unmarshal(line, &u)
}
