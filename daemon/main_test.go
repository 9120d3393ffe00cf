package daemon_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/hook/serve"
	"github.com/hookd/hookd/internal/gobuild"
	"github.com/hookd/hookd/protocol"
)

// asHook in the environment turns the test binary into a hook process.
const asHook = "HOOKD_TEST_HOOK"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(asHook); mode {
	case "":
		// The faults wait more than they work.
		flag.Parse()
		if err := flag.Set("test.parallel", "32"); err != nil {
			log.Fatal(err)
		}
		folder, err := os.MkdirTemp("", "hookd-programs")
		if err != nil {
			log.Fatal(err)
		}
		programs.folder = folder
		goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
			os.RemoveAll(folder)
			os.Exit(code)
		}))
	case "echo":
		echoLines(os.Stdin, os.Stdout)
	case "quick":
		serve.Main(quick{})
	case "daemon":
		daemonProcess()
	default:
		serve.Main(scripted(mode))
	}
}

// programs are commands of this repository that tests run as processes. Each is
// compiled when the first test asks for it.
var programs struct {
	folder string
	mu     sync.Mutex
	paths  map[string]string
}

// program returns the path of the command at internal/NAME or cmd/NAME.
func program(t testing.TB, name string) string {
	t.Helper()
	programs.mu.Lock()
	defer programs.mu.Unlock()
	if path := programs.paths[name]; path != "" {
		return path
	}
	path, err := gobuild.Program(programs.folder, "github.com/hookd/hookd/"+name)
	require.NoError(t, err)
	if programs.paths == nil {
		programs.paths = map[string]string{}
	}
	programs.paths[name] = path
	return path
}

// quick is a hook that continues and says that it never waits.
type quick struct{ hook.NoTool }

func (quick) Quick() {}

// scripted is a hook that does always the same.
type scripted string

// Configure implements [serve.Configurer].
func (s scripted) Configure(jsontext.Value) error {
	if s == "refuse" {
		return errors.New("not today")
	}
	if s == "ignore-term" {
		signal.Ignore(syscall.SIGTERM)
	}
	return nil
}

// Intercept implements [hook.Interceptor].
func (s scripted) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	switch s {
	case "hang", "ignore-term":
		select {}
	case "crash":
		os.Exit(3)
	case "slow":
		time.Sleep(250 * time.Millisecond) // what a reviewer's work takes
		return hook.Deny("scripted"), nil
	case "slow-continue":
		time.Sleep(time.Second) // long enough for two reloads
	case "deny":
		return hook.Deny("scripted"), nil
	case "ask-hookd":
		return hook.Deny("%s", askHookd(req)), nil
	}
	return hook.Continue(), nil
}

// Approve implements [hook.Approver].
func (s scripted) Approve(context.Context, *protocol.Request) (protocol.Approval, error) {
	if s == "hang" {
		select {}
	}
	return protocol.Approval{Approved: true}, nil
}

// askHookd connects to hookd from inside a hook and returns what it says.
func askHookd(req *protocol.Request) string {
	var args struct {
		Socket string `json:"socket"`
	}
	if err := protocol.Unmarshal(req.Subject.Get("arguments"), &args); err != nil {
		return err.Error()
	}
	conn, err := net.Dial("unix", args.Socket)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// runningDaemon is a daemon in this process, with real sockets.
type runningDaemon struct {
	sockets daemon.Sockets
	config  string
	stop    func() error
	log     *logBuffer
}

// startDaemon runs a daemon with this config until the test ends.
func startDaemon(t testing.TB, config string) *runningDaemon {
	t.Helper()
	return startDaemonWith(t, daemon.Options{ConfigPath: writeConfig(t, config)})
}

func writeConfig(t testing.TB, config string) string {
	t.Helper()
	path := filepath.Join(shortDir(t), "config.json")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	return path
}

func startDaemonWith(t testing.TB, o daemon.Options) *runningDaemon {
	t.Helper()
	dir := shortDir(t)
	d := &runningDaemon{config: o.ConfigPath, log: &logBuffer{}}
	serving := make(chan daemon.Sockets, 1)
	if o.Socket == "" {
		o.Socket, o.ControlSocket = filepath.Join(dir, "a.sock"), filepath.Join(dir, "c.sock")
	}
	o.Stderr, o.Version = d.log, "test"
	o.Getenv = noEnv
	o.Serving = func(s daemon.Sockets) { serving <- s }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- daemon.Run(ctx, o) }()
	var once sync.Once
	var err error
	d.stop = func() error {
		once.Do(func() { cancel(); err = <-done })
		return err
	}
	t.Cleanup(func() {
		if err := d.stop(); err != nil {
			t.Errorf("the daemon ended with: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the daemon:\n%s", d.log)
		}
	})
	select {
	case d.sockets = <-serving:
	case err := <-done:
		done <- err
		t.Fatalf("the daemon did not start: %v\n%s", err, d.log)
	}
	status := d.status(t)
	for end := time.Now().Add(10 * time.Second); !status.Settled(); status = d.status(t) {
		require.True(t, time.Now().Before(end), "hooks are not ready: %+v", status.Hooks)
		time.Sleep(5 * time.Millisecond)
	}
	return d
}

// noEnv is an environment in which nothing is set, so that what a daemon keeps
// lies beside its sockets.
func noEnv(string) string { return "" }

// shortDir is a folder whose name leaves room for a socket's.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hookd")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// logBuffer keeps what the daemon logs.
type logBuffer struct {
	mu   sync.Mutex
	text []byte
}

var _ io.Writer = (*logBuffer)(nil)

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	return len(b), nil
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
