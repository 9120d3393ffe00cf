package protocol

import (
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func TestDecodeAgentHello(t *testing.T) {
	for _, c := range []struct {
		in   string
		want *AgentHello // nil = refused
		path string
		code int
	}{
		{`{"name":"a"}`, &AgentHello{Name: "a", Version: 1}, "", 0},
		{`{"name":"a","version":1,"client":{"name":"c","version":"2","os":"x"},"session_id":"s","deadline_ms":5000,"approval_deadline_ms":60000,"events":true,"new":{}}`,
			&AgentHello{Name: "a", Version: 1, Client: Software{"c", "2"}, SessionID: "s", DeadlineMS: 5000, ApprovalDeadlineMS: 60000, Events: true}, "", 0},
		{`{"name":"a","version":null,"client":null,"session_id":null,"deadline_ms":null,"approval_deadline_ms":null,"events":null}`, &AgentHello{Name: "a", Version: 1}, "", 0},
		{`{"name":"a","deadline_ms":0}`, &AgentHello{Name: "a", Version: 1}, "", 0},
		{`{}`, nil, "name", CodeInvalidParams},
		{`{"Name":"a"}`, nil, "name", CodeInvalidParams},
		{`{"name":""}`, nil, "name", CodeInvalidParams},
		{`{"name":null}`, nil, "name", CodeInvalidParams},
		{`{"name":1}`, nil, "name", CodeInvalidParams},
		{`{"name":"a","version":"1"}`, nil, "version", CodeInvalidParams},
		{`{"name":"a","version":1.0}`, nil, "version", CodeInvalidParams},
		{`{"name":"a","version":2}`, nil, "", CodeVersionMismatch},
		{`{"name":"a","version":99}`, nil, "", CodeVersionMismatch},
		{`{"name":"a","version":0}`, nil, "", CodeVersionMismatch},
		{`{"name":"a","client":"c"}`, nil, "client", CodeInvalidParams},
		{`{"name":"a","client":{"name":1}}`, nil, "client", CodeInvalidParams},
		{`{"name":"a","session_id":1}`, nil, "session_id", CodeInvalidParams},
		{`{"name":"a","deadline_ms":-1}`, nil, "deadline_ms", CodeInvalidParams},
		{`{"name":"a","deadline_ms":"5"}`, nil, "deadline_ms", CodeInvalidParams},
		{`{"name":"a","approval_deadline_ms":1.5}`, nil, "approval_deadline_ms", CodeInvalidParams},
		{`{"name":"a","events":"true"}`, nil, "events", CodeInvalidParams},
	} {
		h, err := DecodeAgentHello(object(t, c.in))
		if c.want != nil {
			require.Nil(t, err, c.in)
			require.Equal(t, c.want, h, c.in)
			continue
		}
		require.Nil(t, h, c.in)
		require.NotNil(t, err, c.in)
		require.Equal(t, c.code, err.Code, c.in)
		var data struct {
			Path     string
			Min, Max int
		}
		require.NoError(t, json.Unmarshal(err.Data, &data))
		require.Equal(t, c.path, data.Path, c.in)
		if c.code == CodeVersionMismatch {
			require.Equal(t, [2]int{1, 1}, [2]int{data.Min, data.Max}, "the range that is spoken")
		}
	}
}

func TestWelcomeOnTheWire(t *testing.T) {
	raw, err := Marshal(AgentWelcome{OK: true, Name: "hookd", Version: Version, Server: Software{Name: "hookd", Version: "1.2"}, Generation: 3, Limits: Limits{MaxMessageBytes: 16, MaxInFlight: 2}})
	require.NoError(t, err)
	require.JSONEq(t, `{"ok":true,"name":"hookd","version":1,"server":{"name":"hookd","version":"1.2"},"generation":3,"limits":{"max_message_bytes":16,"max_in_flight":2}}`, string(raw))
}

func TestHookHelloOnTheWire(t *testing.T) {
	raw, err := Marshal(HookHello{Name: "gate", Version: Version, Modes: Modes([]Stage{StageBeforeTool}, true), Stages: []Stage{StageBeforeTool}, Events: []string{"tool_*"}, Config: jsontext.Value(`{"n":1.0}`)})
	require.NoError(t, err)
	require.Equal(t, `{"name":"gate","version":1,"modes":["observe","tool"],"stages":["before_tool"],"events":["tool_*"],"server":{"name":""},"generation":0,"limits":{"max_message_bytes":0,"max_in_flight":0},"config":{"n":1.0}}`, string(raw))
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		stages   []Stage
		observes bool
		want     []string
	}{
		{nil, false, []string{}},
		{nil, true, []string{"observe"}},
		{[]Stage{StageAfterLLM}, false, []string{"llm"}},
		{[]Stage{StageApproveTool, StageAfterTool, StageBeforeLLM}, true, []string{"observe", "llm", "tool", "approve"}},
		{[]Stage{StageStop, StageOutput}, false, []string{}},
	} {
		require.Equal(t, c.want, Modes(c.stages, c.observes))
	}
}

func TestDecodeHookWelcome(t *testing.T) {
	offer := []Stage{StageBeforeTool, StageStop}
	for _, c := range []struct {
		in   string
		want HookWelcome
		err  string
	}{
		{in: ``}, {in: `null`}, {in: " null\n"}, {in: `{}`}, {in: `{"ok":true}`}, {in: `{"ok":null,"version":null,"stages":null}`},
		{in: `{"action":"continue","protocol_version":1,"modes":["tool"],"Ok":false}`},
		{in: `{"ok":true,"name":"me","version":1,"reason":7}`, want: HookWelcome{Name: "me"}},
		{in: `{"name":{"first":"x"}}`},
		{in: `{"ok":false,"reason":"no licence"}`, want: HookWelcome{Refused: true, Reason: "no licence"}},
		{in: `{"stages":["stop"]}`, want: HookWelcome{Stages: []Stage{StageStop}}},
		{in: `{"stages":[]}`, want: HookWelcome{Stages: []Stage{}}},
		{in: `{"max_in_flight":8,"key_strategies":{"a":"merge_list","b":"merge_map","c":"last_wins"}}`,
			want: HookWelcome{MaxInFlight: 8, KeyStrategies: map[string]KeyStrategy{"a": MergeList, "b": MergeMap, "c": LastWins}}},
		{in: `true`, err: "expected an object"},
		{in: `{"ok":"false"}`, err: "ok: expected a boolean"},
		{in: `{"ok":0}`, err: "ok: expected a boolean"},
		{in: `{"ok":true,"ok":false}`, err: "duplicate name"},
		{in: `{"version":2}`, err: "the hook speaks 2, hookd speaks 1"},
		{in: `{"version":"1"}`, err: `the hook speaks "1"`},
		{in: `{"stages":"stop"}`, err: "stages: expected an array"},
		{in: `{"stages":["before_llm"]}`, err: `stages: "before_llm" was not offered`},
		{in: `{"stages":[1]}`, err: "stages.0: expected a string"},
		{in: `{"max_in_flight":0}`, err: "from 1 to 1024"},
		{in: `{"max_in_flight":1025}`, err: "from 1 to 1024"},
		{in: `{"max_in_flight":1.5}`, err: "from 1 to 1024"},
		{in: `{"key_strategies":[]}`, err: "key_strategies: expected an object"},
		{in: `{"key_strategies":{"a":"merge_lst"}}`, err: `key_strategies.a: unknown strategy "merge_lst" (did you mean "merge_list"?)`},
		{in: `{"key_strategies":{"a":1}}`, err: "key_strategies.a: expected a string"},
	} {
		w, err := DecodeHookWelcome([]byte(c.in), offer)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.in)
			continue
		}
		require.NoError(t, err, c.in)
		require.Equal(t, c.want, w, c.in)
	}
}
