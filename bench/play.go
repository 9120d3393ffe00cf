package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/hook/serve"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
)

// Play is what a process does that [Run] has started, by the words of its part.
// It ends with stdin; as a hook it exits. The program must have called
// [child.Main] first.
func Play(ctx context.Context, part []string) error {
	switch {
	case len(part) == 1 && part[0] == "echo":
		return echoLines(os.Stdin, os.Stdout)
	case len(part) == 3 && part[0] == "listen":
		return playListen(part[1], part[2])
	case len(part) == 2 && part[0] == "daemon":
		return playDaemon(ctx, part[1])
	case len(part) == 2 && part[0] == "hook":
		serve.Main(player(part[1]))
	case len(part) == 3 && part[0] == "observe":
		serve.Main(&watcher{stuck: part[1] == "stuck", file: part[2]})
	}
	return fmt.Errorf("no such part: %q", part)
}

func playListen(how, path string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	defer l.Close()
	go echoConnections(l, how == blocking) // until the process ends
	fmt.Println("ok")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// usage is what a daemon has allocated since it started.
type usage struct {
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
}

// Words for the daemon of a bench, which stand on lines of its stdin, followed
// by a path.
const (
	askUsage     = "usage"
	beginProfile = "begin" // of profiles whose names begin with the path
	endProfile   = "end"
)

// playDaemon serves until stdin ends, and answers each line from there by one
// with its usage.
func playDaemon(ctx context.Context, config string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // until the process ends
		err := obey(os.Stdin, os.Stdout)
		if err == nil {
			err = errors.New("the bench is done")
		}
		cancel(err)
	}()
	return daemon.Run(ctx, daemon.Options{ConfigPath: config, Helper: child.Main(), Alone: true, Builtins: []mount.Builtin{
		{Name: "bench", New: func(mount.BuiltinContext) (any, error) { return player("continue"), nil }},
		{Name: "bench-quick", New: func(mount.BuiltinContext) (any, error) { return quick{player("continue")}, nil }},
		{Name: "bench-slow", New: func(mount.BuiltinContext) (any, error) { return player("slow"), nil }},
	}, Version: "bench"})
}

// obey does what stands on lines, and answers each.
func obey(orders io.Reader, answers io.Writer) error {
	var p profiler
	for lines := bufio.NewScanner(orders); lines.Scan(); {
		word, path, _ := strings.Cut(lines.Text(), " ")
		var err error
		switch word {
		case beginProfile:
			err = p.begin(path)
		case endProfile:
			err = p.end(path)
		}
		if err != nil {
			return err
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		line, err := protocol.Marshal(usage{m.Mallocs, m.TotalAlloc})
		if err == nil {
			_, err = answers.Write(append(line, '\n'))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// slowHook is how long a slow hook takes: so long that the calls of all agents
// wait for it at once.
const slowHook = 500 * time.Millisecond

// quick is a hook that never waits, as most of those that ship.
type quick struct{ player }

// Quick implements [hook.Quick].
func (quick) Quick() {}

// player is a hook that does always the same.
type player string

// Intercept implements [hook.Interceptor].
func (p player) Intercept(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
	switch p {
	case "hang":
		select {}
	case "crash":
		os.Exit(3)
	case "slow":
		time.Sleep(slowHook)
	case "rule":
		if bytes.Contains(req.Subject.Get("arguments"), []byte("rm -rf /")) {
			return hook.Deny("deletes everything"), nil
		}
	}
	return hook.Continue(), nil
}

// watcher is an observer that counts ends of tools, and writes the number into a
// file when the turn ends; or one that is stuck.
type watcher struct {
	stuck bool
	file  string
	seen  int
}

// Observe implements [hook.Observer].
func (w *watcher) Observe(_ context.Context, ev *hook.Event) error {
	if w.stuck {
		select {}
	}
	if ev.Kind != protocol.EventTurnEnd {
		w.seen++
		return nil
	}
	// Renamed, so that nobody reads half of it.
	if err := os.WriteFile(w.file+".new", fmt.Append(nil, w.seen), 0o600); err != nil {
		return err
	}
	return os.Rename(w.file+".new", w.file)
}
