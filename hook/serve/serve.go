// Package serve runs a Go hook as a process of its own. The value is the same
// that runs inside hookd: what [hook.RolesOf] accepts. All that a program needs is
//
//	func main() { serve.Main(&guard{}) }
//
// Interceptors and approvers are called concurrently, observers in the order of
// the events. An error of the hook, a [hook.Failure] too, is the outcome
// hook_error for hookd: over a wire a hook can't name another one.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// Configurer is a hook that takes the "config" of its entry. Configure is called
// once, before all else, with an empty object when there is none. Its error refuses
// the greeting, and hookd shows it. A hook that is no Configurer refuses any config.
type Configurer interface {
	Configure(config jsontext.Value) error
}

// Options are the settings of a served hook. The zero value works.
type Options struct {
	// Name is what hookd is told; empty means the program's name.
	Name string
	// MaxInFlight is how many calls the hook works on at once, up to 1024. More
	// wait for their turn. 0 means 16. It has no effect on a [hook.Quick] hook,
	// which works on one.
	MaxInFlight int
	// KeyStrategies says per key of state how values are merged.
	KeyStrategies map[string]protocol.KeyStrategy
	// ObserverTimeout is after how long the context of Observe ends; 0 means 500 ms.
	ObserverTimeout time.Duration
	// Log gets what hookd is not told: stacks of panics, events that could not
	// be read or observed. nil means os.Stderr, which hookd puts into its log.
	Log io.Writer
}

const (
	// hookd keeps its own limits, which its config may raise. A hook that refused
	// what hookd lets through would stop the agent.
	maxMessageBytes = 1 << 30
	maxDepth        = 10_000
	maxRequests     = 4 * maxInFlight
	maxQueuedBytes  = 256 << 20

	maxInFlight = 1024 // what the protocol allows to say
)

// Main serves v on stdin and stdout and ends the program: with 0 when stdin
// ends, with 1 and a message on stderr when something went wrong, and with 2
// and a hint when a person started it on a terminal. At most one Options may be
// given. What v prints with os.Stdout goes to stderr.
//
// A program that only answers calls runs on one processor until two of them are
// in work at once: see [runtime.GOMAXPROCS], which the variable of this name and
// a hook that sets it itself overrule.
func Main(v any, options ...Options) {
	o := Options{}
	if len(options) > 0 {
		o = options[0]
	}
	o.Name = cmp.Or(o.Name, programName())
	if isTerminal(os.Stdin) {
		fmt.Fprint(os.Stderr, usage(v, o.Name))
		os.Exit(2)
	}
	stdio := rpc.Stdio(os.Stdin, os.Stdout)
	os.Stdout = os.Stderr // a stray print must not stand between the answers
	s, err := newServer(v, o)
	if err == nil {
		s.useOneProcessor()
		err = s.serve(context.Background(), stdio)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", o.Name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Serve serves v on rw, which it closes. It returns nil when the other side ends
// the stream and all calls and events are done, and an error when v is no hook,
// when the stream breaks, and the cause of ctx when that ends first.
func Serve(ctx context.Context, rw io.ReadWriteCloser, v any, o Options) error {
	s, err := newServer(v, o)
	if err != nil {
		return errors.Join(err, rw.Close())
	}
	return s.serve(ctx, rw)
}

func (s *server) serve(ctx context.Context, rw io.ReadWriteCloser) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.events.run(ctx) })
	peer := rpc.NewPeer(ctx, rw, rpc.Options{
		Handler:        s,
		Limits:         protocol.Limits{MaxMessageBytes: maxMessageBytes, MaxDepth: maxDepth, MaxInFlight: maxRequests},
		MaxQueuedBytes: maxQueuedBytes,
	})
	<-peer.Done()
	reason := peer.Err()
	_ = peer.Close() // that it can't be closed any better changes nothing
	close(s.events.queue)
	wg.Wait()
	if errors.Is(reason, io.EOF) {
		return nil
	}
	return fmt.Errorf("serve hook: %w", reason)
}

// server answers one caller.
type server struct {
	Options
	value  any
	roles  hook.Roles
	table  *protocol.StageTable
	stages []protocol.Stage // that the hook handles
	slots  chan struct{}    // holds a value per call that the hook works on
	events *observer
	log    *log.Logger

	crowded func() // called while the hook works on several calls

	// The read loop's.
	greeted bool
	refusal error // why no call is served
}

func newServer(v any, o Options) (*server, error) {
	roles, err := hook.RolesOf(v)
	if err != nil {
		return nil, fmt.Errorf("serve hook: %w", err)
	}
	o.Name = cmp.Or(o.Name, programName())
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 16)
	if o.MaxInFlight < 1 || o.MaxInFlight > maxInFlight {
		return nil, fmt.Errorf("serve hook: MaxInFlight is %d, not between 1 and %d", o.MaxInFlight, maxInFlight)
	}
	if o.Log == nil {
		o.Log = os.Stderr
	}
	s := &server{
		Options: o, value: v, roles: roles, table: protocol.NewStageTable(), stages: handled(roles),
		slots: make(chan struct{}, o.MaxInFlight), crowded: func() {}, log: log.New(o.Log, "", 0),
	}
	s.events = newObserver(roles.Observer, cmp.Or(o.ObserverTimeout, 500*time.Millisecond), s.log)
	return s, nil
}

// useOneProcessor keeps the program on one processor for as long as the hook
// works on one call. Then the goroutine that reads and the one that works take
// turns, and no call waits until another thread has been woken for it. An
// observer works beside the calls, so it keeps them all.
func (s *server) useOneProcessor() {
	if s.roles.Observer != nil || os.Getenv("GOMAXPROCS") != "" {
		return
	}
	runtime.GOMAXPROCS(1)
	s.crowded = sync.OnceFunc(func() {
		if runtime.GOMAXPROCS(0) == 1 { // as it was left
			runtime.SetDefaultGOMAXPROCS()
		}
	})
}

// handled lists where a hook can be asked.
func handled(r hook.Roles) []protocol.Stage {
	stages := []protocol.Stage{}
	for _, s := range protocol.Stages() {
		asked := r.Interceptor != nil && (r.Stages == nil || slices.Contains(r.Stages, s.Name))
		if s.Name == protocol.StageApproveTool {
			asked = r.Approver != nil
		}
		if asked {
			stages = append(stages, s.Name)
		}
	}
	return stages
}

func programName() string { return filepath.Base(os.Args[0]) }

// isTerminal reports whether a person may sit at the other end: f is a
// character device other than the one that is always empty.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// usage says to a person what to do with the program.
func usage(v any, name string) string {
	roles, err := hook.RolesOf(v)
	if err != nil {
		return fmt.Sprintf("%s: %v\n", name, err)
	}
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	entry := fmt.Sprintf(`"command": [%q]`, program)
	if stages := handled(roles); len(stages) > 0 {
		entry += fmt.Sprintf(`, "intercept": ["%s"]`, joinStages(stages, `", "`))
	}
	if roles.Observer != nil {
		entry += `, "observe": ["*"]`
	}
	return fmt.Sprintf(`%s is a hook. hookd starts it and speaks to it through stdin and stdout, so there is nothing to type here.
Put it into hookd's config, and see with "hookd check" whether it works:

  "hooks": { "processes": { %q: { %s } } }

`, name, name, entry)
}

func joinStages(stages []protocol.Stage, sep string) string {
	var b strings.Builder
	for i, s := range stages {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(string(s))
	}
	return b.String()
}
