package native

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// bare is an agent of which hookd's answers can be told apart by what it lets a
// hook do.
func bare(row Row) *Format {
	return &Format{
		Agent: "bare", Table: []Row{row, {Event: "seen", Kind: protocol.EventNotification}}, EventKeys: []string{"name"},
		Decode: func(c *Call) error {
			switch c.Stage {
			case protocol.StageBeforeTool, protocol.StageApproveTool:
				return c.SetTool("Bash", c.First("args"))
			case protocol.StageUserMessage:
				return c.SetMessage(c.First("text"))
			case protocol.StageStop:
				c.SetRequest(nil)
			case protocol.StageAfterTool:
				if c.First("text") == nil {
					return errors.New("no text")
				}
				c.SetResult(c.First("text"), false)
			}
			return nil
		},
		Render: func(c *Call, p *Plan) Answer { return Answer{Stdout: []byte(p.Reason), ExitCode: int(p.Verdict)} },
	}
}

func plan(t *testing.T, row Row, payload, result string, policy Policy) *Plan {
	t.Helper()
	c, err := bare(row).Read(row.Event, []byte(payload))
	require.NoError(t, err)
	r, err := protocol.DecodeResult(protocol.NewStageTable().Stage(row.Stage), []byte(result))
	require.NoError(t, err)
	return Resolve(c, r, policy)
}

const call = `{"args":{"command":"ls","keep":1,"drop":2}}`

// TestResolve is the declared policy: what becomes of each verb where the row
// has the flag for it, and where it has not.
func TestResolve(t *testing.T) {
	gate := Row{Event: "gate", Stage: protocol.StageBeforeTool, Block: true}
	with := func(change func(*Row)) Row {
		row := gate
		change(&row)
		return row
	}
	stop := Row{Event: "stop", Stage: protocol.StageStop}
	after := Row{Event: "after", Stage: protocol.StageAfterTool}
	prompt := Row{Event: "prompt", Stage: protocol.StageUserMessage, Block: true}
	for _, tc := range []struct {
		about   string
		row     Row
		result  string
		policy  Policy
		verdict Verdict
		reason  string
		warned  bool
	}{
		{"continue", gate, `{"action":"continue"}`, Policy{}, NoOpinion, "", false},
		{"deny", gate, `{"action":"deny","reason":"R"}`, Policy{}, Deny, "R", false},
		{"deny without a reason", gate, `{"action":"deny","decided_by":"guard"}`, Policy{}, Deny, "denied by guard", false},
		{"deny without anything", gate, `{"action":"deny"}`, Policy{}, Deny, "denied by hookd", false},
		{"deny where nothing can be", Row{Event: "gate", Stage: protocol.StageBeforeTool}, `{"action":"deny"}`, Policy{}, NoOpinion, "", true},
		{"ask", with(func(r *Row) { r.Ask = true }), `{"action":"ask","reason":"R"}`, Policy{}, Ask, "R", false},
		{"ask of an agent that can't", gate, `{"action":"ask","reason":"R"}`, Policy{}, Deny, "this needs approval, and bare can't be made to ask for it here: R", true},
		{"ask of an agent that can't, left to it", gate, `{"action":"ask"}`, Policy{Ask: FallbackSilent}, NoOpinion, "", true},
		{"allow", with(func(r *Row) { r.Allow = true }), `{"action":"allow"}`, Policy{}, Allow, "", false},
		{"allow where that means nothing", gate, `{"action":"allow"}`, Policy{}, NoOpinion, "", true},
		{"abort", with(func(r *Row) { r.Abort = true }), `{"action":"abort_turn","reason":"R"}`, Policy{}, Stop, "R", false},
		{"abort as a denial", gate, `{"action":"abort_turn","reason":"R"}`, Policy{}, Deny, "R", true},
		{"hard abort", with(func(r *Row) { r.Quit = true }), `{"action":"hard_abort","reason":"R"}`, Policy{}, Quit, "R", false},
		{"hard abort as an abort", with(func(r *Row) { r.Abort = true }), `{"action":"hard_abort","reason":"R"}`, Policy{}, Stop, "R", true},
		{"respond", gate, `{"action":"respond","result":{"content":"A"}}`, Policy{}, Deny, "This was answered instead of being run. The answer:\nA", true},
		{"respond with a strange shape", gate, `{"action":"respond","result":{"n":1}}`, Policy{}, Deny, "This was answered instead of being run. The answer:\n{\"n\":1}", true},
		{"a change that can't be taken", gate, `{"action":"modify","call":{"tool":"Bash","arguments":{"command":"pwd"}}}`, Policy{}, Deny, "a hook changed this call, and bare can't take the change", true},
		{"a change that can't be taken, run unchanged", gate, `{"action":"modify","call":{"tool":"Bash","arguments":{}}}`, Policy{Modify: FallbackSilent}, NoOpinion, "", true},
		{"no change", gate, `{"action":"modify","call":{"tool":"Bash","arguments":{"drop":2,"keep":1,"command":"ls"}}}`, Policy{}, NoOpinion, "", false},
		{"another tool", with(func(r *Row) { r.Modify = true }), `{"action":"modify","call":{"tool":"Rm","arguments":{}}}`, Policy{}, Deny, "a hook wants to call Rm instead, which bare can't do", true},
		{"denied and changed", with(func(r *Row) { r.Modify = true }), `{"action":"deny","reason":"R","call":{"tool":"Bash","arguments":{}}}`, Policy{}, Deny, "R", false},
		{"context beside a denial", gate, `{"action":"deny","reason":"R","add_context":["C","D"]}`, Policy{}, Deny, "R\nC\nD", false},
		{"context without a place", gate, `{"action":"continue","add_context":["C"]}`, Policy{}, NoOpinion, "", true},
		{"a person has approved", with(func(r *Row) { r.Allow = true }), `{"action":"continue","approval":{"approved":true,"by":"ada"}}`, Policy{}, Allow, "", false},
		{"nobody was asked", with(func(r *Row) { r.Allow = true }), `{"action":"continue","approval":{"approved":true}}`, Policy{}, NoOpinion, "", false},
		{"a step to jump to", gate, `{"action":"continue","jump_to":"x"}`, Policy{}, NoOpinion, "", true},
		{"inject nowhere", stop, `{"action":"inject","inject":{"role":"user","content":"M"}}`, Policy{}, NoOpinion, "", true},
		{"stopping is what it does", stop, `{"action":"abort_turn"}`, Policy{}, NoOpinion, "", true},
		{"after: abort", after, `{"action":"abort_turn"}`, Policy{}, NoOpinion, "", true},
		{"prompt: abort", prompt, `{"action":"abort_turn","reason":"R"}`, Policy{}, Deny, "R", true},
		{"prompt: modify", prompt, `{"action":"modify","message":{"role":"user","content":"x"}}`, Policy{}, NoOpinion, "", true},
	} {
		payload := call
		if tc.row.Stage == protocol.StageAfterTool || tc.row.Stage == protocol.StageUserMessage {
			payload = `{"text":"t"}`
		}
		p := plan(t, tc.row, payload, tc.result, tc.policy)
		require.Equal(t, tc.verdict, p.Verdict, tc.about)
		if tc.verdict != NoOpinion {
			require.Equal(t, tc.reason, p.Reason, tc.about)
		}
		require.Equal(t, tc.warned, len(p.Warnings) > 0, "%s: %v", tc.about, p.Warnings)
	}
}

func TestApproval(t *testing.T) {
	row := Row{Event: "approve", Stage: protocol.StageApproveTool, Block: true, Allow: true}
	for result, want := range map[string]Verdict{
		`{"approved":true,"by":"ada"}`:                                               Allow,
		`{"approved":false}`:                                                         Deny,
		`{"approved":false,"reason":"nobody can be asked"}`:                          NoOpinion,
		`{"approved":false,"reason":"nobody can be asked","decided_by":"a-cheat"}`:   Deny,
		`{"approved":false,"reason":"approval timed out (60 s)","decided_by":"ada"}`: Deny,
	} {
		p := plan(t, row, call, result, Policy{})
		require.Equal(t, want, p.Verdict, result)
		require.Equal(t, want == Deny, p.Verdict == Deny && p.Reason != "", result)
	}
}

func TestChangedInput(t *testing.T) {
	row := Row{Event: "gate", Stage: protocol.StageBeforeTool, Block: true, Modify: true}
	c, err := bare(row).Read("gate", []byte(call))
	require.NoError(t, err)
	p := plan(t, row, call, `{"action":"modify","call":{"tool":"Bash","arguments":{"keep":1,"command":"pwd","more":[1]}}}`, Policy{})
	require.Equal(t, `{"command":"pwd","more":[1]}`, string(p.ChangedInput(c).AppendJSON(nil)))
	require.Empty(t, (&Plan{}).ChangedInput(c), "nothing was changed at all")

	p = plan(t, row, call, `{"action":"modify","call":{"tool":"Bash","arguments":{}}}`, Policy{})
	require.NotNil(t, p.Input, "all arguments are gone, which is a change")
	require.Equal(t, `{}`, string(c.NativeArguments(p.Input)))
}

// TestMerge holds that an agent which merges is never given a change that
// merging can't make.
func TestMerge(t *testing.T) {
	row := Row{Event: "gate", Stage: protocol.StageBeforeTool, Block: true, Modify: true, Merge: true}
	without := `{"action":"modify","call":{"tool":"Bash","arguments":{"command":"pwd"}}}`
	p := plan(t, row, call, without, Policy{})
	require.Equal(t, Deny, p.Verdict)
	require.Nil(t, p.Input)
	require.Equal(t, []string{"bare has no form for modify by taking an argument out at gate: denied instead"}, p.Warnings)
	p = plan(t, row, call, without, Policy{Modify: FallbackSilent})
	require.Equal(t, NoOpinion, p.Verdict)
	require.Nil(t, p.Input)
	require.Len(t, p.Warnings, 1)
	p = plan(t, row, `{"args":"plain"}`, `{"action":"modify","call":{"tool":"Bash","arguments":{"value":"other"}}}`, Policy{})
	require.Equal(t, Deny, p.Verdict, "what is no object can't be merged")
}

// TestAskWeak holds that an ask which might run the call is said to, and is none
// where there is no verdict.
func TestAskWeak(t *testing.T) {
	row := Row{Event: "gate", Stage: protocol.StageBeforeTool, Block: true, Ask: true, AskWeak: true}
	ask := `{"action":"ask","reason":"R"}`
	p := plan(t, row, call, ask, Policy{})
	require.Equal(t, Ask, p.Verdict)
	require.Equal(t, []string{"bare runs the call without asking where its prompts are switched off; with --approve hookd's approvers decide instead"}, p.Warnings)
	p = plan(t, row, call, ask, Policy{Ask: FallbackDeny})
	require.Equal(t, Ask, p.Verdict, "the choice is for agents that have no prompt")
	require.Equal(t, Deny, Verdict(bare(row).Unavailable("gate", UnavailableAsk, "why", []byte(call)).ExitCode), "nobody can tell the mode")
}

func TestSameEvent(t *testing.T) {
	for _, same := range [][2]string{{"PreToolUse", "pre_tool_use"}, {"preToolUse", "PreToolUse"}, {"agent-turn", "AgentTurn"}, {"a_", "a"}} {
		require.True(t, SameEvent(same[0], same[1]), same)
		require.True(t, SameEvent(same[1], same[0]), same)
	}
	for _, other := range [][2]string{{"PreToolUse", "PreToolUseResult"}, {"stop", ""}, {"a.b", "ab"}} {
		require.False(t, SameEvent(other[0], other[1]), other)
		require.False(t, SameEvent(other[1], other[0]), other)
	}
	f := bare(Row{Event: "gate", Stage: protocol.StageBeforeTool, Block: true})
	f.Also = map[string]string{"door": "gate", "gate ": "gate "}
	c, err := f.Read("door", []byte(call))
	require.NoError(t, err)
	require.Equal(t, "gate", c.Row.Event)
	_, known := f.row("gate ")
	require.False(t, known)
}

func TestDefaultSession(t *testing.T) {
	f := bare(Row{Event: "gate", Stage: protocol.StageBeforeTool, Block: true})
	c, err := f.Read("gate", []byte(call))
	require.NoError(t, err)
	c.DefaultSession("")
	c.DefaultSession("s")
	c.DefaultSession("later")
	meta, err := protocol.ParseObject(c.Params.Get("meta"))
	require.NoError(t, err)
	require.Equal(t, "s", protocol.MetaString(meta, "session_id"))
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	row := Row{Event: "gate", Stage: protocol.StageBeforeTool, Block: true, Modify: true}
	for args, want := range map[string]string{
		`"plain"`:           `{"value":"plain"}`,
		`[1,2]`:             `{"value":[1,2]}`,
		`"{\"command\":1}"`: `{"command":1}`,
		`" {\"a\": 1}\n"`:   `{"a":1}`,
		`null`:              `{}`,
	} {
		c, err := bare(row).Read("gate", []byte(`{"args":`+args+`}`))
		require.NoError(t, err)
		require.Equal(t, want, string(c.Arguments.AppendJSON(nil)), args)
		if c.wrapped {
			require.Equal(t, `"other"`, string(c.NativeArguments(protocol.Object{{Name: "value", Value: protocol.Quote("other")}})))
		}
	}
}

// TestArgumentsInAString holds that text which an agent may read as an object is
// never shown to hooks as something else.
func TestArgumentsInAString(t *testing.T) {
	row := Row{Event: "gate", Stage: protocol.StageBeforeTool, Block: true}
	for _, args := range []string{`"{\"command\":\"ls\",\"command\":\"rm x\"}"`, `"{\"command\":\"rm x\"} "x"`, `"\ufeff{\"command\":1,}"`, `"{"`} {
		_, err := bare(row).Read("gate", []byte(`{"args":`+args+`}`))
		require.Error(t, err, args)
	}
	c, err := bare(row).Read("gate", []byte(`{"args":"rm x"}`))
	require.NoError(t, err)
	require.Equal(t, "rm x", c.Facts().Command, "the tool is a shell, so its only argument is what it runs")
}

// TestUnavailable is what is said without a verdict, per kind of event.
func TestUnavailable(t *testing.T) {
	gate := Row{Event: "e", Stage: protocol.StageBeforeTool, Block: true}
	asks := gate
	asks.Ask = true
	approve := Row{Event: "e", Stage: protocol.StageApproveTool, Block: true, Allow: true}
	compact := Row{Event: "e", Stage: protocol.StageBeforeCompact, Block: true}
	stop := Row{Event: "e", Stage: protocol.StageStop, Inject: true}
	watched := Row{Event: "e", Stage: protocol.StageBeforeTool}
	for _, tc := range []struct {
		about string
		row   Row
		want  [4]Verdict // default, continue, deny, ask
	}{
		{"a gate", gate, [4]Verdict{Deny, NoOpinion, Deny, Deny}},
		{"a gate that can ask", asks, [4]Verdict{Deny, NoOpinion, Deny, Ask}},
		{"the agent is about to ask", approve, [4]Verdict{Deny, NoOpinion, Deny, NoOpinion}},
		{"a compaction is no gate", compact, [4]Verdict{NoOpinion, NoOpinion, Deny, NoOpinion}},
		{"a stop stops", stop, [4]Verdict{NoOpinion, NoOpinion, NoOpinion, NoOpinion}},
		{"nothing can be denied", watched, [4]Verdict{NoOpinion, NoOpinion, NoOpinion, NoOpinion}},
	} {
		for i, want := range [...]OnUnavailable{UnavailableDefault, UnavailableContinue, UnavailableDeny, UnavailableAsk} {
			for _, payload := range []string{`{"args":{},"text":"t"}`, `{"broken`} {
				a := bare(tc.row).Unavailable("e", want, "why", []byte(payload))
				require.Equal(t, int(tc.want[i]), a.ExitCode, "%s, %q, %s", tc.about, want, payload)
				require.NotEmpty(t, a.Warnings)
				if tc.want[i] == Deny {
					require.Equal(t, "hookd gave no verdict: why", string(a.Stdout))
				}
			}
		}
	}
	require.Equal(t, int(Deny), bare(gate).Unavailable("", UnavailableDefault, "why", nil).ExitCode, "what it is about can't be told")
	require.Equal(t, int(NoOpinion), bare(gate).Unavailable("seen", UnavailableDefault, "why", nil).ExitCode)
	require.Equal(t, int(NoOpinion), bare(gate).Unavailable("unheard of", UnavailableDefault, "why", nil).ExitCode)
	require.Equal(t, int(Deny), bare(gate).Unavailable("", UnavailableDefault, "why", []byte(`{"name":"e",`)).ExitCode)
}

func TestReadNamesTheEvent(t *testing.T) {
	f := bare(Row{Event: "gate", Stage: protocol.StageBeforeTool, Block: true})
	c, err := f.Read("Gate", []byte(call))
	require.NoError(t, err)
	require.Equal(t, "gate", c.Row.Event, "other letters are no other event")

	c, err = f.Read("", []byte(`{"name":"unheard \u0000of","x":1}`))
	require.NoError(t, err)
	require.EqualValues(t, "x_bare.unheard \x00of", c.Kind)
	require.Empty(t, c.Stage)

	_, err = f.Read("gate", []byte(`{"name":"unheard of"}`))
	require.EqualError(t, err, `the payload of bare's gate can't be read: it names another event, "unheard of"`)
	_, err = f.Read("", []byte(`{}`))
	require.EqualError(t, err, "the payload of bare can't be read: neither it nor the command line names the event")

	long := make([]byte, 200)
	for i := range long {
		long[i] = 0xe4
	}
	c, err = f.Read(string(long), []byte(`{}`))
	require.NoError(t, err)
	require.LessOrEqual(t, len(c.Kind), maxKindBytes)
	_, rpcErr := protocol.DecodeEvent(c.EventParams)
	require.Nil(t, rpcErr)
}

func TestChoices(t *testing.T) {
	for word, want := range map[string]OnUnavailable{"": "", "continue": UnavailableContinue, "allow": UnavailableContinue, "deny": UnavailableDeny, "ask": UnavailableAsk} {
		got, err := ParseOnUnavailable(word)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := ParseOnUnavailable("denny")
	require.EqualError(t, err, `unknown choice "denny" (did you mean "deny"?): continue, deny or ask`)
	_, err = ParseFallback("context")
	require.ErrorContains(t, err, "deny or silent")
	require.Equal(t, FallbackDeny, Policy{}.gap(protocol.StageBeforeTool, partAsk))
	require.Equal(t, FallbackSilent, Policy{}.gap(protocol.StageStop, "anything else"))
	require.Equal(t, FallbackDeny, Policy{}.gap(protocol.StageBeforeLLM, partRespond))
}
