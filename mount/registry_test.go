package mount

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// note is a built-in of these tests: an observer that can be closed, and a
// tool hook.
type note struct {
	hook.NoTool
	closed int
}

func (n *note) Observe(context.Context, *hook.Event) error { return nil }
func (n *note) Close() error {
	n.closed++
	return errors.New("the disk is full")
}

// placed is a ConfigError.
type placed struct{ at, text string }

func (p placed) Error() string       { return p.at + ": " + p.text }
func (p placed) JSONPointer() string { return p.at }

func builtin(name string, value any) Builtin {
	return Builtin{Name: name, New: func(BuiltinContext) (any, error) { return value, nil }}
}

func builtinEntry(name, text string) *config.Entry {
	e := processEntry(name)
	e.Source, e.Command, e.Dir, e.MaxInFlight, e.Dialect = hook.InProcess, nil, "", 0, ""
	e.Observe, e.Intercept = nil, nil
	if text != "" {
		e.Config = jsontext.Value(text)
	}
	return e
}

func TestRegistryRefuses(t *testing.T) {
	fine := builtin("log", &note{})
	for want, list := range map[string][]Builtin{
		`register built-in "": it has no name`:                     {builtin("", &note{})},
		`register built-in "log": the name stands twice`:           {fine, fine},
		`register built-in "log": it has no New`:                   {{Name: "log"}},
		`register built-in "log": unknown event "turn_ned" (did`:   {{Name: "log", New: fine.New, Events: []string{"turn_ned"}}},
		`register built-in "log": unknown stage "befor_tool" (did`: {{Name: "log", New: fine.New, Stages: []protocol.Stage{"befor_tool"}}},
	} {
		_, err := NewRegistry(list...)
		require.ErrorContains(t, err, want)
	}
}

func TestRegistryChecksEntries(t *testing.T) {
	strict := builtin("strict", &note{})
	strict.Validate = func(c jsontext.Value) error {
		switch string(c) {
		case "":
			return errors.New("it needs a config")
		case "{}":
			return nil
		}
		return fmt.Errorf("read it: %w", placed{"/path", "is too long"})
	}
	r, err := NewRegistry(strict, builtin("plain", &note{}))
	require.NoError(t, err)
	require.Equal(t, []string{"plain", "strict"}, r.Names())
	var _ config.Checker = r.Check

	for _, c := range []struct {
		name, config string
		want         []config.Problem
	}{
		{"plain", ``, nil},
		{"plain", `null`, nil},
		{"plain", `{ }`, nil},
		{"plain", `{"a":1}`, []config.Problem{{Pointer: "/config", Message: "the built-in plain takes no config"}}},
		{"strict", `{}`, nil},
		{"strict", ``, []config.Problem{{Pointer: "/config", Message: "it needs a config"}}},
		{"strict", `{"path":""}`, []config.Problem{{Pointer: "/config/path", Message: "read it: /path: is too long"}}},
		{"plian", ``, []config.Problem{{Message: `unknown built-in "plian" (did you mean "plain"?): known are plain, strict`}}},
	} {
		require.Equal(t, c.want, r.Check(builtinEntry(c.name, c.config)), "%s %s", c.name, c.config)
	}
	require.Nil(t, r.Check(processEntry("other", "true")), "a process is not its business")
	empty, err := NewRegistry()
	require.NoError(t, err)
	require.Contains(t, empty.Check(builtinEntry("log", ""))[0].Message, "this hookd has none")
}

func TestMountBuiltin(t *testing.T) {
	value := &note{}
	var got BuiltinContext
	log := Builtin{
		Name: "log", Validate: func(c jsontext.Value) error { return nil },
		New: func(c BuiltinContext) (any, error) {
			got = c
			return value, nil
		},
		Events: []string{"turn_*"}, Stages: []protocol.Stage{protocol.StageBeforeTool}, Priority: 30, Timeout: 20 * time.Second,
	}
	r, err := NewRegistry(log)
	require.NoError(t, err)
	m := NewMounter(MounterOptions{Registry: r, Folder: "/etc/hookd"})
	e := builtinEntry("log", `{"path":"x"}`)
	mounted, err := m.Mount(t.Context(), e, 9)
	require.NoError(t, err)
	require.IsType(t, &zap.Logger{}, got.Log)
	got.Log = nil
	require.Equal(t, BuiltinContext{Name: "log", Config: jsontext.Value(`{"path":"x"}`), Folder: "/etc/hookd", Generation: 9}, got)

	require.NoError(t, mounted.Ready(t.Context()))
	require.False(t, mounted.Changed())
	require.ErrorContains(t, mounted.Restart(t.Context()), `hook "log" runs inside hookd`)
	s := mounted.Status()
	require.WithinDuration(t, time.Now(), s.Started, time.Minute)
	s.Started = time.Time{}
	require.Equal(t, Status{Name: "log", State: Ready}, s)

	reg, err := mounted.Registration(e)
	require.NoError(t, err)
	require.Equal(t, hook.InProcess, reg.Source)
	require.True(t, reg.Observes("turn_end"))
	require.False(t, reg.Observes("tool_error"))
	require.True(t, reg.Handles(protocol.StageBeforeTool))
	require.False(t, reg.Handles(protocol.StageAfterTool))
	require.Equal(t, 30, reg.Priority)
	require.Equal(t, 20*time.Second, reg.Timeout)
	e.Prioritised, e.Priority, e.Timed, e.Timeout = true, 5, true, time.Second // the entry says so
	reg, err = mounted.Registration(e)
	require.NoError(t, err)
	require.Equal(t, 5, reg.Priority)
	require.Equal(t, time.Second, reg.Timeout)

	require.EqualError(t, mounted.Close(t.Context()), `close hook "log": the disk is full`)
	require.NoError(t, mounted.Close(t.Context()))
	require.Equal(t, 1, value.closed)
	require.Equal(t, Stopped, mounted.Status().State)
}

func TestWhatABuiltinHandles(t *testing.T) {
	every := processEntry("x").Observe
	for name, c := range map[string]struct {
		value     any
		observe   []protocol.Subscription
		intercept []protocol.Stage
		events    int
		stages    []protocol.Stage
		err       string
	}{
		"all it can":   {value: &note{}, events: 1, stages: []protocol.Stage{protocol.StageBeforeTool, protocol.StageAfterTool}},
		"only a part":  {value: &note{}, observe: every[:0], intercept: []protocol.Stage{protocol.StageAfterTool}, stages: []protocol.Stage{protocol.StageAfterTool}},
		"only events":  {value: &note{}, intercept: []protocol.Stage{}, events: 1, stages: []protocol.Stage{}},
		"too much":     {value: &note{}, intercept: []protocol.Stage{protocol.StageStop}, err: "it does not handle stop"},
		"no such role": {value: approver{}, observe: every, err: "it is no observer"},
		"an approver":  {value: approver{}, stages: []protocol.Stage{protocol.StageApproveTool}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NewRegistry(builtin("x", c.value))
			require.NoError(t, err)
			e := builtinEntry("x", "")
			e.Observe, e.Intercept = c.observe, c.intercept
			mounted, err := NewMounter(MounterOptions{Registry: r}).Mount(t.Context(), e, 1)
			require.NoError(t, err)
			reg, err := mounted.Registration(e)
			if c.err != "" {
				require.ErrorContains(t, err, `mount "x": `+c.err)
				return
			}
			require.NoError(t, err)
			require.Len(t, reg.Events, c.events)
			require.Equal(t, c.stages, reg.Stages)
		})
	}
}

type approver struct{}

func (approver) Approve(context.Context, *protocol.Request) (protocol.Approval, error) {
	return protocol.Approval{}, nil
}

func TestBuiltinThatCannotBeMounted(t *testing.T) {
	useless := struct{ hook.Quick }{}
	half := &struct{ *note }{&note{}}
	bad := builtin("bad", nil)
	bad.New = func(BuiltinContext) (any, error) { return nil, errors.New("no such folder") }
	invalid := builtin("invalid", &note{})
	invalid.Validate = func(jsontext.Value) error { return errors.New("wrong") }
	r, err := NewRegistry(builtin("useless", useless), bad, invalid, builtin("half", half))
	require.NoError(t, err)
	m := NewMounter(MounterOptions{Registry: r})
	for name, want := range map[string]string{
		"useless": "fills no role",
		"bad":     `mount "bad": no such folder`,
		"invalid": `mount "invalid": wrong`,
		"unknown": `mount "unknown": unknown built-in "unknown"`,
	} {
		_, err := m.Mount(t.Context(), builtinEntry(name, ""), 1)
		require.ErrorContains(t, err, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Mount(ended, builtinEntry("half", ""), 1)
	require.ErrorIs(t, err, context.Canceled)
}
