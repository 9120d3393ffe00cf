package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/builtin/budget"
	"github.com/hookd/hookd/builtin/inputguard"
	"github.com/hookd/hookd/builtin/instructions"
	"github.com/hookd/hookd/builtin/loop"
	"github.com/hookd/hookd/builtin/messages"
	"github.com/hookd/hookd/builtin/metrics"
	"github.com/hookd/hookd/builtin/pii"
	"github.com/hookd/hookd/builtin/policy"
	"github.com/hookd/hookd/builtin/secrets"
	"github.com/hookd/hookd/builtin/skills"
	"github.com/hookd/hookd/builtin/summarize"
	"github.com/hookd/hookd/builtin/telemetry"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/mount"
)

// When the built-ins that ship are asked, unless their entries say otherwise.
// What ends a session comes first; what takes secrets out comes before what
// reads or keeps; what costs most comes last.
const (
	firstCancel       = 10
	firstGuard        = 20
	firstSecret       = 30
	firstPII          = 40
	firstPolicy       = 50
	firstLoop         = 60
	firstBudget       = 70
	firstInstructions = 80
	firstSkills       = 90
	firstMessages     = 100
	firstSummarize    = 110
)

// shipped are the kinds of in-process hooks that come with hookd, except those
// through which people rule (people.go) and those that write the record. What
// they count outlives reloads. spawner returns who starts processes; nil: nobody
// does.
func shipped(stderr io.Writer, spawner func() *child.Spawner, takers *takers) []mount.Builtin {
	key := text.NewKey() // of hashes, where a config names none: one for each start
	calls, ledger := loop.NewTable(0), budget.NewLedger(0)
	given, offered, summaries := instructions.NewTable(0), skills.NewTable(0), summarize.NewTable(0)
	return []mount.Builtin{
		{
			Name: "input_guard", Priority: firstGuard, Validate: inputguard.Validate,
			New: func(c mount.BuiltinContext) (any, error) { return inputguard.New(c.Config, c.Folder, c.Log) },
		},
		{
			Name: "secrets", Priority: firstSecret, Validate: secrets.Validate,
			New: func(c mount.BuiltinContext) (any, error) { return secrets.New(c.Config, c.Folder, key, c.Log) },
		},
		{
			Name: "pii", Priority: firstPII, Validate: pii.Validate,
			New: func(c mount.BuiltinContext) (any, error) { return pii.New(c.Config, c.Folder, key, c.Log) },
		},
		{
			Name: "policy", Priority: firstPolicy, Validate: policy.Validate,
			New: func(c mount.BuiltinContext) (any, error) { return policy.New(c.Config) },
		},
		{
			Name: "loop", Priority: firstLoop, Validate: loop.Validate, Events: loop.Events(),
			New: func(c mount.BuiltinContext) (any, error) { return loop.New(c.Config, calls) },
		},
		{
			Name: "budget", Priority: firstBudget, Validate: budget.Validate, Events: budget.Events(),
			New: func(c mount.BuiltinContext) (any, error) { return budget.New(c.Config, c.Folder, ledger, c.Log) },
		},
		{
			Name: "instructions", Priority: firstInstructions, Validate: instructions.Validate, Events: instructions.Events(),
			New: func(c mount.BuiltinContext) (any, error) { return instructions.New(c.Config, c.Folder, given, c.Log) },
		},
		{
			Name: "skills", Priority: firstSkills, Validate: skills.Validate, Events: skills.Events(),
			New: func(c mount.BuiltinContext) (any, error) { return skills.New(c.Config, c.Folder, offered, c.Log) },
		},
		{
			Name: "messages", Priority: firstMessages, Validate: messages.Validate,
			New: func(c mount.BuiltinContext) (any, error) { return messages.New(c.Config, c.Log) },
		},
		{
			Name: "summarize", Priority: firstSummarize, Timeout: 20 * time.Second, Validate: summarize.Validate, Events: summarize.Events(),
			New: func(c mount.BuiltinContext) (any, error) {
				return summarize.New(c.Config, c.Folder, summaries, runOnce(spawner, c.Name, c.Folder), &http.Client{}, takers.summaries(), c.Log)
			},
		},
		{
			Name: "metrics", Validate: metrics.Validate, Events: metrics.Events(),
			New: func(c mount.BuiltinContext) (any, error) { return metrics.New(c.Config, c.Folder, takers.meter, c.Log) },
		},
		{
			Name: "telemetry", Validate: telemetry.Validate, Events: telemetry.Events(),
			New: func(c mount.BuiltinContext) (any, error) {
				return telemetry.New(c.Config, c.Folder, takers.traces, c.Log)
			},
		},
		{
			Name: "log", Validate: builtin.ValidateLog,
			New: func(c mount.BuiltinContext) (any, error) {
				return builtin.NewLog(c.Config, c.Folder, stderr)
			},
			Events: []string{"*"},
		},
	}
}

// nobody starts processes for those who only look at hooks.
func nobody() *child.Spawner { return nil }

// offlineRegistry knows the same kinds of hooks as a daemon, for those who do
// without one: own are those besides the ones that ship.
func offlineRegistry(stderr io.Writer, own []mount.Builtin) (*mount.Registry, error) {
	r, err := mount.NewRegistry(slices.Concat(shipped(stderr, nobody, newTakers()), newPeople().builtins(), newBook().builtins(), own)...)
	if err != nil {
		return nil, fmt.Errorf("built-in hooks: %w", err)
	}
	return r, nil
}

// loadOffline loads a config as a daemon would; the path "" means the defaults. The
// error is a [config.LoadError] when the file can't be read as a config.
func loadOffline(path string, stderr io.Writer, own []mount.Builtin) (*mount.Registry, *config.Config, error) {
	r, err := offlineRegistry(stderr, own)
	if err != nil {
		return nil, nil, err
	}
	if path == "" {
		return r, config.Default(), nil
	}
	cfg, err := config.Load(path, r.Check)
	if err != nil {
		return nil, nil, err
	}
	return r, cfg, nil
}

// maxOnce is how much a program that runs once may print.
const maxOnce = 1 << 20

// runOnce returns how a built-in runs a program: it gets stdin, and what it
// prints is returned. Its process group is gone when the function returns.
func runOnce(spawner func() *child.Spawner, name, folder string) summarize.Run {
	return func(ctx context.Context, argv []string, stdin []byte) ([]byte, error) {
		s := spawner()
		if s == nil {
			return nil, errors.New("no processes are started here")
		}
		p, err := s.Start(ctx, child.Spec{Name: name, Argv: argv, Dir: folder})
		if err != nil {
			return nil, err
		}
		defer p.Stdout().Close()
		stop := context.AfterFunc(ctx, p.Kill)
		defer stop()
		var writing sync.WaitGroup
		writing.Go(func() { // a program may answer before it has read all
			_, _ = p.Stdin().Write(stdin)
			_ = p.Stdin().Close()
		})
		out, err := io.ReadAll(io.LimitReader(p.Stdout(), maxOnce))
		exit := p.Stop(ctx)
		writing.Wait()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		case exit.Code != 0:
			return nil, fmt.Errorf("%s %s", argv[0], exit.How())
		}
		return out, nil
	}
}
