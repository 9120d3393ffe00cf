package serve

import (
	"context"
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// configured is a tool hook with a config that must be an object or none.
type configured struct {
	hook.NoTool
	config jsontext.Value
	calls  int
}

func (c *configured) Configure(config jsontext.Value) error {
	c.config = config
	c.calls++
	switch {
	case string(config) == `"panic"`:
		panic("boom")
	case config.Kind() != '{':
		return errors.New("config: expected an object")
	}
	return nil
}

func (c *configured) Approve(context.Context, *protocol.Request) (protocol.Approval, error) {
	return protocol.Approval{Approved: true}, nil
}

func TestGreeting(t *testing.T) {
	observer := observe(func(context.Context, *hook.Event) error { return nil })
	for name, c := range map[string]struct {
		hook  any
		hello string
		want  string
	}{
		"all of the offer": {&configured{}, `{"name":"x","version":1,"stages":["before_tool"],"events":[],"config":{"a":1}}`,
			`{"ok":true,"name":"me","version":1,"stages":["before_tool"],"max_in_flight":16,"key_strategies":{"tags":"merge_list"}}`},
		"a part of the offer": {&configured{}, `{"stages":["approve_tool","before_llm","after_tool"]}`,
			`{"ok":true,"name":"me","version":1,"stages":["approve_tool","after_tool"],"max_in_flight":16,"key_strategies":{"tags":"merge_list"}}`},
		"a caller without stages": {&configured{}, `{"name":"x","version":1,"modes":["tool"]}`,
			`{"ok":true,"name":"me","version":1,"stages":["before_tool","approve_tool","after_tool"],"max_in_flight":16,"key_strategies":{"tags":"merge_list"}}`},
		"events only": {observer, `{"stages":[],"events":["*"]}`,
			`{"ok":true,"name":"me","version":1,"stages":[],"max_in_flight":16,"key_strategies":{"tags":"merge_list"}}`},
		"null for a config": {&configured{}, `{"config":null}`,
			`{"ok":true,"name":"me","version":1,"stages":["before_tool","approve_tool","after_tool"],"max_in_flight":16,"key_strategies":{"tags":"merge_list"}}`},
		"an empty config for one that takes none": {observer, `{"config":{ }}`,
			`{"ok":true,"name":"me","version":1,"stages":[],"max_in_flight":16,"key_strategies":{"tags":"merge_list"}}`},

		"nothing of the offer": {&configured{}, `{"stages":["before_llm","stop"]}`,
			`{"ok":false,"reason":"it can be asked at before_tool, approve_tool, after_tool, not at before_llm, stop","name":"me","version":1}`},
		"stages for an observer": {observer, `{"stages":["before_llm"],"events":["*"]}`,
			`{"ok":false,"reason":"it only observes, and can't be asked at before_llm","name":"me","version":1}`},
		"events for an interceptor": {&configured{}, `{"stages":["before_tool"],"events":["turn_end","tool_*"]}`,
			`{"ok":false,"reason":"it observes nothing, and can't be told of turn_end, tool_*","name":"me","version":1}`},
		"a bad config": {&configured{}, `{"config":[1]}`,
			`{"ok":false,"reason":"config: expected an object","name":"me","version":1}`},
		"a panic over the config": {&configured{}, `{"config":"panic"}`,
			`{"ok":false,"reason":"panic: boom","name":"me","version":1}`},
		"a config for one that takes none": {observer, `{"config":{"level":"debug"}}`,
			`{"ok":false,"reason":"config: it takes none","name":"me","version":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, c.hook, Options{Name: "me", KeyStrategies: map[string]protocol.KeyStrategy{"tags": protocol.MergeList}, Log: &recorder{}})
			require.Equal(t, c.want, ask(t, p, protocol.MethodHello, c.hello))
		})
	}
}

func TestGreetingThatIsNone(t *testing.T) {
	p := start(t, &configured{}, Options{})
	require.Equal(t, protocol.CodeVersionMismatch, refused(t, p, protocol.MethodHello, `{"version":2}`).Code)
	require.Equal(t, protocol.CodeInvalidParams, refused(t, p, protocol.MethodHello, `{"stages":7}`).Code)
	ask(t, p, protocol.MethodHello, `{}`)
	e := refused(t, p, protocol.MethodHello, `{}`)
	require.Equal(t, protocol.CodeInvalidRequest, e.Code)
	require.Contains(t, e.Message, "already")
}

func TestCallsWithoutAGreetingAreServedWithoutAConfig(t *testing.T) {
	c := &configured{}
	p := start(t, c, Options{})
	require.Equal(t, `{"action":"continue"}`, ask(t, p, beforeTool, bash))
	require.Equal(t, `{"approved":true}`, ask(t, p, "hook.approve_tool", bash))
	require.Equal(t, 1, c.calls)
	require.Equal(t, `{}`, string(c.config))
}

// A hook that refused its config must not judge with another one.
func TestCallsAfterARefusalAreRefused(t *testing.T) {
	p := start(t, struct {
		*configured
		observe
	}{&configured{}, func(context.Context, *hook.Event) error { panic("it must not be told of events either") }}, Options{Log: failing{t}})
	require.Contains(t, ask(t, p, protocol.MethodHello, `{"config":[]}`), `"ok":false`)
	e := refused(t, p, beforeTool, bash)
	require.Equal(t, protocol.CodeInvalidRequest, e.Code)
	require.Contains(t, e.Message, "it refused the greeting: config: expected an object")
	require.NoError(t, p.Notify(t.Context(), protocol.MethodEvent, []byte(`{"kind":"turn_end"}`)))
}

// failing is a log that must stay empty.
type failing struct{ t *testing.T }

func (f failing) Write(b []byte) (int, error) {
	f.t.Errorf("logged: %s", b)
	return len(b), nil
}
