package protocol

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// answerCase is one answer of a hook. The same cases are held against the JSON
// Schema.
type answerCase struct {
	name  string
	stage Stage // "" = before_tool
	in    string
	want  string // the decision as hookd writes it; "" = refused
	err   string // a part of the reason when refused
	// unseen marks what is wrong with the text and not with the value, or what
	// is judged later: a JSON Schema can't see it.
	unseen bool
}

const message = `{"role":"user","content":"go on"}`

func answerCases() []answerCase {
	const cont = `{"action":"continue"}`
	return []answerCase{
		// What says nothing lets the step pass.
		{name: "null", in: `null`, want: cont},
		{name: "null with space", in: " null\r\n", want: cont},
		{name: "empty object", in: `{}`, want: cont},
		{name: "no action", in: `{"reason":"fine"}`, want: `{"action":"continue","reason":"fine"}`},
		{name: "null members", in: `{"reason":null,"permission":null,"call":null,"patch":null,"result":null,"add_context":null,"warnings":null,"state":null,"jump_to":null}`, want: cont},
		{name: "empty lists", in: `{"add_context":[],"warnings":[],"state":{}}`, want: `{"action":"continue","state":{}}`},

		// The verb, exactly.
		{name: "unknown verb", in: `{"action":"explode"}`, err: `unknown verb "explode"`},
		{name: "verb with another case", in: `{"action":"Allow"}`, err: `did you mean "allow"`},
		{name: "verb with a space", in: `{"action":"allow "}`, err: `unknown verb "allow "`},
		{name: "verb in capitals", in: `{"action":"DENY"}`, err: "unknown verb"},
		{name: "verb of another system", in: `{"action":"approve"}`, err: "unknown verb"},
		{name: "verb with a hyphen", in: `{"action":"deny-tool"}`, err: `did you mean "deny_tool"`},
		{name: "empty verb", in: `{"action":""}`, err: "unknown verb"},
		{name: "verb null", in: `{"action":null}`, err: "action: expected a string, got null"},
		{name: "verb true", in: `{"action":true}`, err: "action: expected a string, got a boolean"},
		{name: "verb 1", in: `{"action":1}`, err: "action: expected a string, got a number"},
		{name: "verb in a list", in: `{"action":["deny"]}`, err: "action: expected a string, got an array"},
		{name: "verb by escapes", in: `{"action":"d\u0065ny"}`, want: `{"action":"deny_tool"}`},

		// Members, exactly.
		{name: "Action", in: `{"Action":"deny"}`, err: `unknown member "Action" (did you mean "action"?)`},
		{name: "ACTION", in: `{"ACTION":"deny"}`, err: "unknown member"},
		{name: "dotless i", in: `{"actıon":"deny"}`, err: "unknown member"},
		{name: "long s", in: `{"action":"deny","reaſon":"x"}`, err: "unknown member"},
		{name: "space in the name", in: `{"action ":"deny"}`, err: "unknown member"},
		{name: "NUL in the name", in: `{"action\u0000":"deny"}`, err: "unknown member"},
		{name: "empty name", in: `{"":1}`, err: "unknown member"},
		{name: "unknown and null", in: `{"actoin":null}`, err: `did you mean "action"`},
		{name: "unknown beside a verb", in: `{"action":"allow","verdict":"deny"}`, err: "unknown member"},
		{name: "another dialect: decision", in: `{"decision":"block"}`, err: `"dialect"`},
		{name: "another dialect: allow", in: `{"allow":true}`, err: `"dialect"`},
		{name: "another dialect: args", in: `{"args":{}}`, err: `"dialect"`},
		{name: "an approval", in: `{"approved":true}`, err: "approve_tool only"},
		{name: "result member of another stage", in: `{"request":{}}`, err: "unknown member"},
		{name: "inject where nothing starts another round", in: `{"inject":` + message + `}`, err: "unknown member"},

		// Text that different readers read differently.
		{name: "two actions", in: `{"action":"deny","action":"continue"}`, err: "duplicate name", unseen: true},
		{name: "two actions by escape", in: `{"action":"deny","\u0061ction":"continue"}`, err: "duplicate name", unseen: true},
		{name: "duplicate in a value", in: `{"call":{"arguments":{"a":[{"b":1,"b":2}]}}}`, err: "duplicate name", unseen: true},
		{name: "duplicate in state", in: `{"state":{"k":1,"k":2}}`, err: "duplicate name", unseen: true},
		{name: "invalid UTF-8", in: "{\"reason\":\"\xff\"}", err: "invalid UTF-8", unseen: true},
		{name: "lone surrogate", in: `{"reason":"\ud800"}`, err: "surrogate", unseen: true},
		{name: "depth 128", in: `{"action":"modify","call":{"arguments":` + nested(126) + `}}`, want: `{"action":"modify","call":{"arguments":` + nested(126) + `}}`},
		{name: "depth 129", in: `{"action":"modify","call":{"arguments":` + nested(127) + `}}`, err: "nested too deeply", unseen: true},
		{name: "trailing data", in: `{"action":"continue"} ok`, err: "more data"},
		{name: "two values", in: `{"action":"continue"}{"action":"deny"}`, err: "more data"},
		{name: "byte order mark", in: "\ufeff{}", err: "invalid character"},
		{name: "no-break space", in: "\u00a0{}", err: "invalid character"},
		{name: "next line", in: "null\u0085", err: "expected an object"},
		{name: "cut", in: `{"action":"contin`, err: "ends too early"},
		{name: "no object: string", in: `"deny"`, err: "expected an object, got a string"},
		{name: "no object: true", in: `true`, err: "expected an object"},
		{name: "no object: list", in: `[{"action":"deny"}]`, err: "expected an object"},

		// A wrong type anywhere voids the whole.
		{name: "reason 1", in: `{"action":"allow","reason":1}`, err: "reason: expected a string, got a number"},
		{name: "permission object", in: `{"action":"ask","permission":{}}`, err: "permission: expected a string"},
		{name: "jump_to list", in: `{"action":"allow","jump_to":[]}`, err: "jump_to: expected a string"},
		{name: "state list", in: `{"action":"allow","state":[]}`, err: "state: expected an object"},
		{name: "warnings text", in: `{"action":"allow","warnings":"careful"}`, err: "warnings: expected an array"},
		{name: "warnings of numbers", in: `{"action":"allow","warnings":["a",2]}`, err: "warnings.1: expected a string"},
		{name: "add_context object", in: `{"action":"allow","add_context":{}}`, err: "add_context: expected an array"},
		{name: "add_context with null", in: `{"action":"allow","add_context":["a",null]}`, err: "add_context.1: expected a string"},
		{name: "call text", in: `{"action":"modify","call":"ls"}`, err: "call: expected an object"},
		{name: "patch object", in: `{"action":"modify","patch":{}}`, err: "patch: expected an array"},
		{name: "result text", in: `{"action":"respond","result":"done"}`, err: "result: expected an object"},

		// Every member.
		{name: "everything", in: `{"jump_to":"end","state":{"b":1,"a":[2.0]},"warnings":["w"],"add_context":"one","patch":[],"permission":"p","reason":"r","action":"ask"}`,
			want: `{"action":"ask","reason":"r","permission":"p","patch":[],"add_context":["one"],"warnings":["w"],"state":{"b":1,"a":[2.0]},"jump_to":"end"}`},
		{name: "block", in: `{"action":"block","reason":"no"}`, want: `{"action":"deny_tool","reason":"no"}`},
		{name: "reasons of aborts", in: `{"action":"hard_abort","reason":"stop it"}`, want: `{"action":"hard_abort","reason":"stop it"}`},

		// Changes.
		{name: "modify nothing", in: `{"action":"modify"}`, want: `{"action":"modify"}`},
		{name: "partial call", in: `{"action":"modify","call":{"arguments":{"n":9007199254740993}}}`, want: `{"action":"modify","call":{"arguments":{"n":9007199254740993}}}`},
		{name: "numbers keep their digits", in: `{"call":{"arguments":{"a":1e400,"b":1.0,"c":-0}}}`, want: `{"action":"continue","call":{"arguments":{"a":1e400,"b":1.0,"c":-0}}}`},
		{name: "call with a typo", in: `{"action":"modify","call":{"argumnets":{}}}`, err: `call: unknown member "argumnets" (did you mean "arguments"?)`},
		{name: "call with a list for arguments", in: `{"action":"modify","call":{"arguments":[]}}`, err: "call.arguments: expected an object"},
		{name: "call with null arguments", in: `{"action":"modify","call":{"arguments":null}}`, err: "call.arguments: expected an object, got null"},
		{name: "call with a number for tool", in: `{"action":"modify","call":{"tool":7}}`, err: "call.tool: expected a string"},
		{name: "call with an empty tool", in: `{"action":"modify","call":{"tool":""}}`, err: "call.tool: is empty"},
		{name: "call with read_only as text", in: `{"action":"modify","call":{"read_only":"yes"}}`, err: "call.read_only: expected a boolean"},
		{name: "call with all params echoed", in: `{"action":"modify","call":{"meta":{"agent_id":"x"},"context":{},"call_id":"c","state":{},"tool":"bash","arguments":{},"deadline_ms":5,"dry_run":true}}`,
			want: `{"action":"modify","call":{"meta":{"agent_id":"x"},"context":{},"call_id":"c","state":{},"tool":"bash","arguments":{},"deadline_ms":5,"dry_run":true}}`},
		{name: "call and patch", in: `{"action":"modify","call":{"tool":"ls"},"patch":[]}`, err: "call and patch: give one of them"},
		{name: "call and a null patch", in: `{"action":"modify","call":{"tool":"ls"},"patch":null}`, want: `{"action":"modify","call":{"tool":"ls"}}`},
		{name: "patch", in: `{"action":"modify","patch":[{"op":"remove","path":"/arguments/x"}]}`, want: `{"action":"modify","patch":[{"op":"remove","path":"/arguments/x"}]}`},
		{name: "request", stage: StageBeforeLLM, in: `{"request":{"model":"m","messages":[],"tools":[],"options":{}}}`, want: `{"action":"continue","request":{"model":"m","messages":[],"tools":[],"options":{}}}`},
		{name: "request with an unknown member", stage: StageBeforeLLM, in: `{"request":{"temperature":1}}`, err: "request: unknown member"},
		{name: "request with messages as object", stage: StageBeforeLLM, in: `{"request":{"messages":{}}}`, err: "request.messages: expected an array"},
		{name: "message", stage: StageUserMessage, in: `{"message":{"content":[{"type":"text","text":"x"}],"any":1}}`, want: `{"action":"continue","message":{"content":[{"type":"text","text":"x"}],"any":1}}`},
		{name: "message with a number as content", stage: StageUserMessage, in: `{"message":{"content":1}}`, err: "message.content: expected a string or an array of blocks, got a number"},
		{name: "response with an object as content", stage: StageAfterLLM, in: `{"response":{"content":{}}}`, err: "response.content: expected a string or an array"},
		{name: "response without content", stage: StageAfterLLM, in: `{"response":{"content":null,"tool_calls":[]}}`, want: `{"action":"continue","response":{"content":null,"tool_calls":[]}}`},
		{name: "result at after_tool", stage: StageAfterTool, in: `{"action":"modify","result":{"content":"x"}}`, want: `{"action":"modify","result":{"content":"x"}}`},
		{name: "fixed member at after_tool", stage: StageAfterTool, in: `{"action":"modify","tool":"x"}`, err: "unknown member"},
		{name: "result and patch at after_tool", stage: StageAfterTool, in: `{"result":{},"patch":[]}`, err: "give one of them"},
		{name: "patch where nothing can be changed", stage: StageStop, in: `{"patch":[]}`, err: "nothing can be changed at stop"},

		// Answers in place of what would have run.
		{name: "respond", in: `{"action":"respond","result":{"content":"done"}}`, want: `{"action":"respond","result":{"content":"done"}}`},
		{name: "respond without result", in: `{"action":"respond"}`, err: `respond without "result"`},
		{name: "respond with null", in: `{"action":"respond","result":null}`, err: `respond without "result"`},
		{name: "respond with call only", in: `{"action":"respond","call":{}}`, err: `respond without "result"`},
		{name: "respond at before_llm", stage: StageBeforeLLM, in: `{"action":"respond","response":{}}`, want: `{"action":"respond","response":{}}`},
		{name: "respond at before_llm with the word of before_tool", stage: StageBeforeLLM, in: `{"action":"respond","result":{}}`, err: "unknown member"},
		{name: "skip the agent", stage: StageBeforeAgent, in: `{"action":"respond","response":{}}`, want: `{"action":"respond","response":{}}`},
		{name: "respond where it has no effect", stage: StageAfterTool, in: `{"action":"respond"}`, want: `{"action":"respond"}`},

		// Another round.
		{name: "inject", stage: StageStop, in: `{"action":"inject","inject":` + message + `}`, want: `{"action":"inject","inject":` + message + `}`},
		{name: "inject several", stage: StageStop, in: `{"action":"inject","inject":[` + message + `,` + message + `]}`, want: `{"action":"inject","inject":[` + message + `,` + message + `]}`},
		{name: "inject without message", stage: StageStop, in: `{"action":"inject"}`, err: `inject without "inject"`},
		{name: "inject nothing", stage: StageStop, in: `{"action":"inject","inject":[]}`, err: `inject without "inject"`},
		{name: "inject null", stage: StageStop, in: `{"action":"inject","inject":null}`, err: `inject without "inject"`},
		{name: "inject text", stage: StageStop, in: `{"action":"inject","inject":"go on"}`, err: "inject: expected an object"},
		{name: "inject without role", stage: StageStop, in: `{"action":"inject","inject":{"content":"x"}}`, err: "inject.role is missing"},
		{name: "inject without content", stage: StageStop, in: `{"action":"inject","inject":[` + message + `,{"role":"user"}]}`, err: "inject.1.content: expected a string or an array"},
		{name: "inject with a number as role", stage: StageStop, in: `{"action":"inject","inject":{"role":1,"content":"x"}}`, err: "inject.role: expected a string"},
		{name: "inject where it has no effect", in: `{"action":"inject"}`, want: `{"action":"inject"}`},
	}
}

func TestDecodeDecision(t *testing.T) {
	for _, c := range answerCases() {
		if c.stage == "" {
			c.stage = StageBeforeTool
		}
		t.Run(c.name, func(t *testing.T) {
			s := stage(c.stage)
			d, err := DecodeDecision(s, []byte(c.in))
			if c.want == "" {
				require.ErrorContains(t, err, c.err)
				require.Equal(t, Decision{}, d, "nothing of it may be acted upon")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, string(d.AppendJSON(nil, s)))
			again, err := DecodeDecision(s, []byte(c.want))
			require.NoError(t, err)
			require.Equal(t, c.want, string(again.AppendJSON(nil, s)))
		})
	}
	d, err := DecodeDecision(stage(StageStop), nil)
	require.NoError(t, err)
	require.Equal(t, Decision{}, d)
}

// Every word at every stage: reading does not depend on what the stage allows,
// because a verb without effect is ignored with a warning and not unreadable.
func TestDecodeDecisionVerbs(t *testing.T) {
	words := map[string]Action{
		"continue": ActionContinue, "modify": ActionModify, "allow": ActionAllow, "ask": ActionAsk,
		"deny": ActionDeny, "deny_tool": ActionDeny, "block": ActionDeny, "abort_turn": ActionAbortTurn, "hard_abort": ActionHardAbort,
		"respond": ActionRespond, "inject": ActionInject,
	}
	for _, s := range Stages() {
		for word, want := range words {
			with := ""
			switch {
			case word == "respond" && s.Respond != "":
				with = `,"` + s.Respond + `":{}`
			case word == "inject" && s.Allows(ActionInject):
				with = `,"inject":` + message
			}
			d, err := DecodeDecision(&s, []byte(`{"action":"`+word+`"`+with+`}`))
			require.NoError(t, err, "%s at %s", word, s.Name)
			require.Equal(t, want, d.Action, "%s at %s", word, s.Name)
			said := string(want)
			if want == ActionDeny && s.Name == StageBeforeTool {
				said = "deny_tool"
			}
			require.True(t, strings.HasPrefix(string(d.AppendJSON(nil, &s)), `{"action":"`+said+`"`), "%s at %s", word, s.Name)
		}
	}
}

// A long word of a hook neither costs time nor fills the log.
func TestDecodeDecisionLongWords(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	for _, in := range []string{
		`{"action":"` + long + `"}`, `{"` + long + `":1}`, `{"call":{"` + long + `":1}}`, `{"state":{"` + long + `":1,"` + long + `":2}}`,
	} {
		_, err := DecodeDecision(stage(StageBeforeTool), []byte(in))
		require.Error(t, err)
		require.Less(t, len(err.Error()), 300)
		require.Equal(t, strings.ToValidUTF8(err.Error(), "?"), err.Error(), "no character is cut in two")
	}
}

type approvalCase struct {
	name, in string
	want     *Approval // nil = refused
	err      string
	unseen   bool
}

func approvalCases() []approvalCase {
	return []approvalCase{
		{name: "yes", in: `{"approved":true}`, want: &Approval{Approved: true}},
		{name: "no", in: `{"approved":false,"reason":"too risky","by":"ann"}`, want: &Approval{Reason: "too risky", By: "ann"}},
		{name: "null beside", in: ` {"approved":true,"reason":null,"by":null} `, want: &Approval{Approved: true}},
		{name: "missing", in: `{"reason":"sure"}`, err: `"approved" is missing`},
		{name: "empty", in: `{}`, err: `"approved" is missing`},
		{name: "null", in: `null`, err: `"approved" is missing`},
		{name: "null approved", in: `{"approved":null}`, err: "expected a boolean, got null"},
		{name: "true as text", in: `{"approved":"true"}`, err: "expected a boolean, got a string"},
		{name: "1", in: `{"approved":1}`, err: "expected a boolean, got a number"},
		{name: "object", in: `{"approved":{}}`, err: "expected a boolean"},
		{name: "another case", in: `{"approved":false,"Approved":true}`, err: "unknown member"},
		{name: "unknown", in: `{"approved":true,"until":"noon"}`, err: "unknown member"},
		{name: "reason of another type", in: `{"approved":true,"reason":1}`, err: "reason: expected a string"},
		{name: "by of another type", in: `{"approved":true,"by":[]}`, err: "by: expected a string"},
		{name: "a decision", in: `{"action":"continue"}`, err: `{"approved": true|false`},
		{name: "another dialect", in: `{"allow":true}`, err: "dialect"},
		{name: "a bare true", in: `true`, err: "expected an object"},
		{name: "a list", in: `[{"approved":true}]`, err: "expected an object"},
		{name: "next line", in: "\u0085null", err: "invalid character"},
		{name: "more data", in: `{"approved":true}{"approved":false}`, err: "more data"},
		{name: "twice", in: `{"approved":false,"approved":true}`, err: "duplicate name", unseen: true},
		{name: "twice by escape", in: `{"approved":false,"\u0061pproved":true}`, err: "duplicate name", unseen: true},
		{name: "lone surrogate", in: `{"approved":true,"reason":"\udead"}`, err: "surrogate", unseen: true},
	}
}

func TestDecodeApproval(t *testing.T) {
	for _, c := range approvalCases() {
		t.Run(c.name, func(t *testing.T) {
			a, err := DecodeApproval([]byte(c.in))
			if c.want == nil {
				require.ErrorContains(t, err, c.err)
				require.Equal(t, Approval{}, a)
				require.False(t, a.Approved, "the zero value is a no")
				return
			}
			require.NoError(t, err)
			require.Equal(t, *c.want, a)
			again, err := DecodeApproval(a.AppendJSON(nil))
			require.NoError(t, err)
			require.Equal(t, a, again)
		})
	}
	_, err := DecodeApproval(nil)
	require.ErrorContains(t, err, "missing")
}

func TestApply(t *testing.T) {
	for _, c := range []struct {
		name    string
		stage   Stage
		subject string
		change  string
		want    string
		changed []string
	}{
		{"a partial call leaves the tool alone", StageBeforeTool, `{"tool":"bash","arguments":{"command":"rm"}}`, `{"arguments":{"command":"ls"}}`,
			`{"tool":"bash","arguments":{"command":"ls"}}`, []string{"arguments"}},
		{"arguments are replaced, not merged", StageBeforeTool, `{"tool":"bash","arguments":{"a":1,"b":2}}`, `{"arguments":{"a":1}}`,
			`{"tool":"bash","arguments":{"a":1}}`, []string{"arguments"}},
		{"the same meaning is no change", StageBeforeTool, `{"tool":"b\u0061sh","arguments":{ "a": 1,"b":[2] }}`, `{"arguments":{"b":[2],"a":1},"tool":"bash"}`,
			`{"tool":"b\u0061sh","arguments":{ "a": 1,"b":[2] }}`, nil},
		{"another number text is a change", StageBeforeTool, `{"tool":"t","arguments":{"n":9007199254740993}}`, `{"arguments":{"n":9007199254740992}}`,
			`{"tool":"t","arguments":{"n":9007199254740992}}`, []string{"arguments"}},
		{"a new member", StageBeforeTool, `{"tool":"t","arguments":{}}`, `{"read_only":true}`,
			`{"tool":"t","arguments":{},"read_only":true}`, []string{"read_only"}},
		{"params given back change nothing", StageBeforeTool, `{"tool":"t","arguments":{}}`, `{"meta":{"agent_id":"forged"},"context":{},"call_id":"c","state":{},"deadline_ms":1,"dry_run":true,"tool":"u"}`,
			`{"tool":"u","arguments":{}}`, []string{"tool"}},
		{"nothing", StageBeforeTool, `{"tool":"t","arguments":{}}`, `{}`, `{"tool":"t","arguments":{}}`, nil},
		{"request", StageBeforeLLM, `{"model":"big","messages":[ 1.0 ],"tools":[]}`, `{"model":"small","tools":[ ]}`,
			`{"model":"small","messages":[ 1.0 ],"tools":[]}`, []string{"model"}},
		{"wrapped: untouched members keep their bytes", StageAfterTool, `{"result":{"n": 1e400 ,"content":"secret","o":{ "a":1 }}}`, `{"content":"***"}`,
			`{"result":{"n":1e400,"content":"***","o":{ "a":1 }}}`, []string{"content"}},
		{"wrapped: the same", StageAfterTool, `{"result":{ "content" : "x" }}`, `{"content":"x"}`, `{"result":{ "content" : "x" }}`, nil},
		{"wrapped: an empty object", StageUserMessage, `{"message":{}}`, `{"role":"user","content":"x"}`,
			`{"message":{"role":"user","content":"x"}}`, []string{"role", "content"}},
		{"wrapped: null is a value", StageOutput, `{"output":{"content":"x"}}`, `{"content":null}`, `{"output":{"content":null}}`, []string{"content"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, before := stage(c.stage), object(t, c.subject)
			after, changed, err := s.Apply(before, jsontext.Value(c.change))
			require.NoError(t, err)
			require.Equal(t, c.want, string(after.AppendJSON(nil)))
			require.Equal(t, c.changed, changed)
			require.Equal(t, string(object(t, c.subject).AppendJSON(nil)), string(before.AppendJSON(nil)), "the old subject is left as it is")
			if s.Wrapped() {
				require.Equal(t, string(after.Get(s.Result)), string(s.SubjectValue(after)))
			} else {
				require.Equal(t, c.want, string(s.SubjectValue(after)))
			}
		})
	}
}

// A decision made in Go must be one that could have come over the wire.
func TestDecisionCheck(t *testing.T) {
	value := func(s string) jsontext.Value { return jsontext.Value(s) }
	for _, c := range []struct {
		name  string
		stage Stage
		d     Decision
		err   string
	}{
		{"zero", StageStop, Decision{}, ""},
		{"change", StageBeforeTool, Decision{Action: ActionModify, Subject: value(`{"arguments":{}}`), State: Object{{"k", value("1")}}}, ""},
		{"deny where there is none", StageStop, Decision{Action: ActionDeny}, ""}, // ignored with a warning
		{"unknown verb", StageBeforeTool, Decision{Action: "explode"}, "unknown verb"},
		{"no JSON", StageBeforeTool, Decision{Subject: value(`{`)}, "ends too early"},
		{"no object", StageBeforeTool, Decision{Subject: value(`"ls"`)}, "call: expected an object"},
		{"empty value", StageBeforeTool, Decision{Respond: value(``)}, "invalid character"},
		{"two members in one", StageBeforeTool, Decision{Respond: value(`{},"action":"allow"`)}, "duplicate name"},
		{"unknown member", StageBeforeTool, Decision{Subject: value(`{"args":{}}`)}, "unknown member"},
		{"change where there is none", StageStop, Decision{Subject: value(`{}`)}, "nothing can be changed at stop"},
		{"respond without what", StageBeforeLLM, Decision{Action: ActionRespond}, "respond without"},
		{"inject without message", StageStop, Decision{Action: ActionInject}, "inject without"},
		{"state that is no JSON", StageStop, Decision{State: Object{{"k", nil}}}, "invalid character"},
	} {
		err := c.d.Check(stage(c.stage))
		if c.err == "" {
			require.NoError(t, err, c.name)
		} else {
			require.ErrorContains(t, err, c.err, c.name)
		}
	}
}

// What is read without looking inside means what it would mean otherwise.
func TestCommonAnswers(t *testing.T) {
	for _, stage := range Stages() {
		for _, raw := range []string{`{}`, `{"action":"continue"}`} {
			short, err := DecodeDecision(&stage, []byte(raw))
			long, other := DecodeDecision(&stage, []byte(raw+" "))
			require.Equal(t, other, err, "%s at %s", raw, stage.Name)
			require.Equal(t, long, short, "%s at %s", raw, stage.Name)
		}
	}
}

func TestCompact(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"b c","d":[1.50,"\" ,"]}`:   `{"a":"b c","d":[1.50,"\" ,"]}`,
		`{"a": "b c"}`:                    `{"a":"b c"}`,
		`{"a":"\\" ,"b":"<\u003c"}`:       `{"a":"\\","b":"<\u003c"}`,
		"[\"\\\\\\\"  \",\t1,\r\n2 ]":     `["\\\"  ",1,2]`,
		` "a  b" `:                        `"a  b"`,
		`{"z":1,"a":{"b":[ ]}}`:           `{"z":1,"a":{"b":[]}}`,
		`"not closed`:                     `"not closed`,
		`"not closed \`:                   `"not closed \`,
		`{"a":1e5,"b":9007199254740993 }`: `{"a":1e5,"b":9007199254740993}`,
	} {
		require.Equal(t, want, string(Compact([]byte(in))), "%q", in)
	}
}
