package protocol

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// fullResult is an answer that uses every member that this stage has.
func fullResult(s *StageInfo) Result {
	r := Result{
		Generation: 1<<64 - 1, DecidedBy: "guard", Warnings: []string{"w"},
		Degraded: []Degraded{{Hook: "slow", Outcome: OutcomeTimeout, Detail: "no answer in 5 s"}, {Hook: "gone", Outcome: OutcomeCrash}},
		Trail: []Step{
			{Hook: "guard", Outcome: OutcomeDeny, Action: ActionDeny, Duration: 1500 * time.Microsecond, Changed: []string{"a", "b"}, Recheck: true},
			{Hook: "slow", Outcome: OutcomeTimeout, Detail: "no answer"},
		},
	}
	if s.Name == StageApproveTool {
		r.Approval = &ApprovalResult{Approved: true, Reason: "ok", By: "ann", Digest: "ab12"}
		return r
	}
	r.Action, r.Reason, r.Permission, r.JumpTo = ActionContinue, "because", "net", "end"
	r.AddContext, r.State = []string{"c", "d"}, Object{{"k", jsontext.Value("1.0")}}
	if s.Allows(ActionDeny) {
		r.Action = ActionDeny
	}
	if s.Result != "" {
		r.Subject = jsontext.Value(`{"content":"x"}`)
	}
	if s.Respond != "" {
		r.Respond = jsontext.Value(`{}`)
	}
	if s.Allows(ActionInject) {
		r.Action, r.Inject = ActionInject, []jsontext.Value{jsontext.Value(message), jsontext.Value(message)}
	}
	if s.Name == StageBeforeTool {
		r.Approval = &ApprovalResult{Reason: "denied by ann: no", By: "ann", Digest: "ab12"}
	}
	return r
}

func TestResultRoundTrip(t *testing.T) {
	for _, s := range Stages() {
		want := fullResult(&s)
		raw := want.AppendJSON(nil, &s, true)
		got, err := DecodeResult(&s, raw)
		require.NoError(t, err, "%s: %s", s.Name, raw)
		require.Equal(t, &want, got, s.Name)

		want.Trail = nil
		got, err = DecodeResult(&s, want.AppendJSON(nil, &s, false))
		require.NoError(t, err)
		require.Equal(t, &want, got, "%s without its trail", s.Name)

		// The smallest answer is a continue, and a no at approve_tool.
		got, err = DecodeResult(&s, new(Result).AppendJSON(nil, &s, false))
		require.NoError(t, err)
		if s.Name == StageApproveTool {
			require.Equal(t, &Result{Approval: &ApprovalResult{}}, got)
		} else {
			require.Equal(t, &Result{Action: ActionContinue}, got)
		}
	}
}

func TestResultOnTheWire(t *testing.T) {
	s := stage(StageBeforeTool)
	full := fullResult(s)
	require.Equal(t, `{"action":"deny_tool","reason":"because","permission":"net","call":{"content":"x"},"result":{},"add_context":["c","d"],"warnings":["w"],"state":{"k":1.0},"jump_to":"end",`+
		`"approval":{"approved":false,"reason":"denied by ann: no","by":"ann","digest":"ab12"},"generation":18446744073709551615,"decided_by":"guard",`+
		`"degraded":[{"hook":"slow","outcome":"timeout","detail":"no answer in 5 s"},{"hook":"gone","outcome":"crash"}],`+
		`"trail":[{"hook":"guard","outcome":"deny","action":"deny_tool","duration_us":1500,"changed":["a","b"],"recheck":true},{"hook":"slow","outcome":"timeout","duration_us":0,"detail":"no answer"}]}`,
		string(full.AppendJSON(nil, s, true)))
	full = fullResult(stage(StageApproveTool))
	require.Equal(t, `{"approved":true,"reason":"ok","by":"ann","digest":"ab12","warnings":["w"],"generation":18446744073709551615,"decided_by":"guard",`+
		`"degraded":[{"hook":"slow","outcome":"timeout","detail":"no answer in 5 s"},{"hook":"gone","outcome":"crash"}]}`,
		string(full.AppendJSON(nil, stage(StageApproveTool), false)))
}

func TestDecodeResult(t *testing.T) {
	for _, c := range []struct {
		name  string
		stage Stage
		in    string
		want  Action // "" = refused
		err   string
	}{
		{"unknown members are a newer daemon's", StageBeforeTool, `{"action":"allow","new":{"x":1},"generation":1}`, ActionAllow, ""},
		{"deny by any of its names", StageBeforeTool, `{"action":"deny"}`, ActionDeny, ""},
		{"the verdict behind the approval", StageBeforeTool, `{"approval":{"approved":true},"reason":"r","action":"continue"}`, ActionContinue, ""},
		{"null", StageBeforeTool, `null`, "", "expected an object"},
		{"nothing", StageBeforeTool, ``, "", "ends too early"},
		{"no verb", StageBeforeTool, `{"generation":1}`, "", "no verdict"},
		{"an approval is no verb", StageBeforeTool, `{"approved":true}`, "", "no verdict"},
		{"nor is a nested one", StageBeforeTool, `{"approval":{"approved":false},"approved":true}`, "", "no verdict"},
		{"verb null", StageBeforeTool, `{"action":null}`, "", "expected a string"},
		{"another case", StageBeforeTool, `{"Action":"allow"}`, "", "no verdict"},
		{"unknown verb", StageBeforeTool, `{"action":"permit"}`, "", "unknown verb"},
		{"verb of another stage", StageAfterTool, `{"action":"deny"}`, "", `"deny" is not allowed at after_tool`},
		{"two verbs", StageBeforeTool, `{"action":"deny_tool","action":"allow"}`, "", "duplicate name"},
		{"more data", StageBeforeTool, `{"action":"allow"}{}`, "", "more data"},
		{"respond without what", StageBeforeTool, `{"action":"respond"}`, "", `respond without "result"`},
		{"respond", StageBeforeLLM, `{"action":"respond","response":{}}`, ActionRespond, ""},
		{"inject without message", StageStop, `{"action":"inject"}`, "", `inject without "inject"`},
		{"wrong type in a later member", StageBeforeTool, `{"action":"allow","degraded":{}}`, "", "degraded"},
		{"wrong type in the trail", StageBeforeTool, `{"action":"allow","trail":[{"duration_us":"1"}]}`, "", "trail"},
		{"wrong type of the change", StageBeforeTool, `{"action":"modify","call":[]}`, "", "call: expected an object"},
		{"approval as text", StageBeforeTool, `{"action":"allow","approval":{"approved":"yes"}}`, "", "approval"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := DecodeResult(stage(c.stage), []byte(c.in))
			if c.want == "" {
				require.ErrorContains(t, err, c.err)
				require.Nil(t, r)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, r.Action)
		})
	}
	r, err := DecodeResult(stage(StageBeforeTool), []byte(`{"approval":{"approved":true,"Approved":false},"reason":"r","by":"b","digest":"d","action":"continue"}`))
	require.NoError(t, err)
	require.Equal(t, &Result{Action: ActionContinue, Reason: "r", Approval: &ApprovalResult{Approved: true}}, r, "the order of members does not matter")
}

func TestDecodeResultOfApproval(t *testing.T) {
	for in, yes := range map[string]bool{
		`{"approved":true}`:                                      true,
		`{"approved":true,"new":1,"generation":2}`:               true,
		`{"approved":false}`:                                     false,
		`{"approved":false,"approval":{"approved":true}}`:        false,
		`{"approval":{"approved":true},"approved":false}`:        false,
		`{"approved":false,"Approved":true,"action":"continue"}`: false,
	} {
		r, err := DecodeResult(stage(StageApproveTool), []byte(in))
		require.NoError(t, err, in)
		require.Equal(t, yes, r.Approval.Approved, in)
	}
	for _, in := range []string{`{}`, `null`, ``, `{"approved":null}`, `{"approved":"true"}`, `{"approved":1}`, `{"action":"continue"}`,
		`{"approval":{"approved":true}}`, `{"approval":null,"reason":"x"}`, `{"approved":true,"reason":1}`, `{"approved":false,"approved":true}`} {
		r, err := DecodeResult(stage(StageApproveTool), []byte(in))
		require.Error(t, err, in)
		require.Nil(t, r)
	}
}
