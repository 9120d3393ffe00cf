package dialect

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// params are those of one request per stage that PicoClaw has.
func paramsOf(name protocol.Stage) string {
	switch name {
	case protocol.StageBeforeLLM:
		return `{` + ourMetaText + `,"model":"m","messages":[{"role":"user","content":"hi"}],"options":{"max_tokens":9007199254740993},"graceful_terminal":false}`
	case protocol.StageAfterLLM:
		return `{"model":"m","response":{"content":"key sk-1","finish_reason":"stop"}}`
	case protocol.StageAfterTool:
		return `{"tool":"bash","arguments":{"a":1},"duration_ms":15,"result":{"content":"key sk-1","is_error":false}}`
	}
	return `{` + ourMetaText + `,"call_id":"c","tool":"bash","arguments":{"n":9007199254740993}}`
}

func TestDecision(t *testing.T) {
	const (
		llm, afterLLM, tool, afterTool = protocol.StageBeforeLLM, protocol.StageAfterLLM, protocol.StageBeforeTool, protocol.StageAfterTool
	)
	for name, c := range map[string]struct {
		dialect Dialect
		stage   protocol.Stage
		answer  string
		wanted  string // what hookd reads, in its own words; or "error: " and a part of it
	}{
		"null":               {Picoclaw, tool, `null`, `{"action":"continue"}`},
		"empty":              {Picoclaw, tool, `{}`, `{"action":"continue"}`},
		"empty action":       {Picoclaw, tool, `{"action":""}`, `{"action":"continue"}`},
		"no action":          {Picoclaw, tool, `{"action":null,"reason":null,"call":null,"result":null}`, `{"action":"continue"}`},
		"deny":               {Picoclaw, tool, `{"action":"deny_tool","reason":"no"}`, `{"action":"deny_tool","reason":"no"}`},
		"abort":              {Picoclaw, llm, `{"action":"abort_turn","reason":"no"}`, `{"action":"abort_turn","reason":"no"}`},
		"hard abort":         {Picoclaw, afterTool, `{"action":"hard_abort"}`, `{"action":"hard_abort"}`},
		"escaped action":     {Picoclaw, tool, `{"\u0061ction":"deny\u005ftool"}`, `{"action":"deny_tool"}`},
		"another's verb":     {Picoclaw, tool, `{"action":"deny"}`, `error: its answer is in hookd's own words, so take "dialect": "picoclaw" out`},
		"unknown verb":       {Picoclaw, afterLLM, `{"action":"redact"}`, `error: unknown verb "redact"`},
		"another case":       {Picoclaw, tool, `{"Action":"deny_tool"}`, `error: unknown member "Action"`},
		"twice":              {Picoclaw, tool, `{"action":"deny_tool","action":"continue"}`, `error: duplicate name`},
		"a typo":             {Picoclaw, tool, `{"acton":"deny_tool"}`, `error: unknown member "acton" (did you mean "action"?)`},
		"message for reason": {Picoclaw, tool, `{"action":"deny_tool","message":"no"}`, `error: did you mean "reason"`},
		"action is no text":  {Picoclaw, tool, `{"action":true}`, `error: action: expected a string`},
		"no object":          {Picoclaw, tool, `[1]`, `error: expected an object`},

		"partial call":          {Picoclaw, tool, `{"action":"modify","call":{"arguments":{"n":9007199254740993.10}}}`, `{"action":"modify","call":{"arguments":{"n":9007199254740993.10}}}`},
		"call with continue":    {Picoclaw, tool, `{"call":{"tool":"sh"}}`, `{"action":"continue","call":{"tool":"sh"}}`},
		"complete call":         {Picoclaw, tool, `{"action":"modify","call":{"meta":{"AgentID":"other"},"context":null,"tool":"bash","arguments":{"n":1},"channel":"","chat_id":"","hook_result":null,"call_id":"c","tool_call_id":"c","deadline_ms":3}}`, `{"action":"modify","call":{"tool":"bash","arguments":{"n":1}}}`},
		"null in a call":        {Picoclaw, tool, `{"action":"modify","call":{"tool":"sh","arguments":null}}`, `{"action":"modify","call":{"tool":"sh"}}`},
		"nothing of it changed": {Picoclaw, tool, `{"action":"modify","call":{"channel":""}}`, `{"action":"modify"}`},
		"channel changed":       {Picoclaw, tool, `{"action":"modify","call":{"channel":"x"}}`, `{"action":"modify","warnings":["call.channel was changed, which has no effect"]}`},
		"typo in a call":        {Picoclaw, tool, `{"action":"modify","call":{"argument":{}}}`, `error: call: unknown member "argument" (did you mean "arguments"?)`},
		"empty tool":            {Picoclaw, tool, `{"call":{"tool":""}}`, `error: is empty`},
		"call is no object":     {Picoclaw, tool, `{"call":[1,2]}`, `error: call: expected an object`},

		"respond":                 {Picoclaw, tool, `{"action":"respond","result":{"for_llm":"sunny","is_error":false}}`, `{"action":"respond","result":{"content":"sunny","is_error":false}}`},
		"respond in the call":     {Picoclaw, tool, `{"action":"respond","call":{"tool":"bash","hook_result":{"for_llm":"sunny"}}}`, `{"action":"respond","call":{"tool":"bash"},"result":{"content":"sunny"}}`},
		"respond twice":           {Picoclaw, tool, `{"action":"respond","result":{},"call":{"hook_result":{}}}`, `error: result is given twice`},
		"respond without":         {Picoclaw, tool, `{"action":"respond"}`, `error: respond without "result"`},
		"a result and continue":   {Picoclaw, tool, `{"action":"continue","result":{"for_llm":"x"}}`, `error: a result goes with the action "respond"`},
		"a result and no action":  {Picoclaw, tool, `{"call":{"hook_result":{"for_llm":"x"}}}`, `error: a result goes with the action "respond"`},
		"a result and a deny":     {Picoclaw, tool, `{"action":"deny_tool","result":{"for_llm":"x"}}`, `{"action":"deny_tool","result":{"content":"x"}}`},
		"the result is no object": {Picoclaw, tool, `{"action":"respond","result":"sunny"}`, `error: result: expected an object`},
		"respond at before_llm":   {Picoclaw, llm, `{"action":"respond","response":{}}`, `error: take "dialect": "picoclaw" out`},

		"partial request":  {Picoclaw, llm, `{"action":"modify","request":{"model":"n"}}`, `{"action":"modify","request":{"model":"n"}}`},
		"complete request": {Picoclaw, llm, `{"action":"modify","request":{"meta":{},"model":"m","messages":[{"role":"user","content":"x"}],"tools":null,"options":{"max_tokens":9007199254740993},"graceful_terminal":true}}`, `{"action":"modify","request":{"model":"m","messages":[{"role":"user","content":"x"}],"options":{"max_tokens":9007199254740993}}}`},

		"complete response": {Picoclaw, afterLLM, `{"action":"modify","response":{"meta":{},"model":"m","response":{"content":"key …"}}}`, `{"action":"modify","response":{"content":"key …"}}`},
		"response too flat": {Picoclaw, afterLLM, `{"action":"modify","response":{"content":"key …"}}`, `error: what changes belongs into response.response): its answer is in hookd's own words`},

		"partial result":         {Picoclaw, afterTool, `{"action":"modify","result":{"result":{"for_llm":"key …"}}}`, `{"action":"modify","result":{"content":"key …"}}`},
		"complete result":        {Picoclaw, afterTool, `{"action":"modify","result":{"tool":"bash","arguments":{"a":1},"duration":15000000,"result":{"for_llm":"key sk-1","is_error":true}}}`, `{"action":"modify","result":{"is_error":true}}`},
		"both names":             {Picoclaw, afterTool, `{"result":{"result":{"for_llm":"a","content":"b"}}}`, `error: content and for_llm are the same`},
		"for_llm is no text":     {Picoclaw, afterTool, `{"result":{"result":{"for_llm":{}}}}`, `error: result.result.for_llm: expected a string`},
		"result too flat":        {Picoclaw, afterTool, `{"result":{"for_llm":"x"}}`, `error: result: unknown member "for_llm" (what changes belongs into result.result)`},
		"the inner is no object": {Picoclaw, afterTool, `{"result":{"result":"x"}}`, `error: result.result: expected an object`},

		"site: allow":             {PicoclawSite, tool, `{"allow":true}`, `{"action":"continue"}`},
		"site: not allow":         {PicoclawSite, tool, `{"allow":false,"reason":"no"}`, `{"action":"deny_tool","reason":"no"}`},
		"site: allow is no bool":  {PicoclawSite, tool, `{"allow":"false"}`, `error: allow: expected a boolean`},
		"site: allow and action":  {PicoclawSite, tool, `{"allow":true,"action":"deny_tool"}`, `error: action is given twice`},
		"site: args":              {PicoclawSite, tool, `{"args":{"n":9007199254740993}}`, `{"action":"continue","call":{"arguments":{"n":9007199254740993}}}`},
		"site: args and call":     {PicoclawSite, tool, `{"args":{},"call":{"arguments":{}}}`, `error: call is given twice`},
		"site: decision":          {PicoclawSite, tool, `{"decision":{"action":"deny_tool","reason":"no"}}`, `{"action":"deny_tool","reason":"no"}`},
		"site: respond":           {PicoclawSite, tool, `{"decision":{"action":"respond"},"hook_result":{"for_llm":"x"}}`, `{"action":"respond","result":{"content":"x"}}`},
		"site: hook_result alone": {PicoclawSite, tool, `{"hook_result":{"for_llm":"x"}}`, `{"action":"respond","result":{"content":"x"}}`},
		"site: hook_result, go":   {PicoclawSite, tool, `{"decision":{"action":"continue"},"hook_result":{"for_llm":"x"}}`, `error: a result goes with the action "respond"`},
		"site: a word":            {PicoclawSite, tool, `{"decision":"block"}`, `error: decision: expected an object`},
		"site: nested":            {PicoclawSite, tool, `{"decision":{"decision":{"action":"continue"}}}`, `error: decision.decision`},
		"site: nulls":             {PicoclawSite, tool, `{"decision":null,"allow":null,"args":null,"hook_result":null}`, `{"action":"continue"}`},
		"site: complete call":     {PicoclawSite, tool, `{"call":{"name":"bash","args":{"n":9007199254740993},"tool":"sh"}}`, `{"action":"continue","call":{"tool":"sh"}}`},
		"site: args in the call":  {PicoclawSite, tool, `{"call":{"args":{"n":1}}}`, `error: call.args was changed: change call.tool or call.arguments`},
		"site: plain picoclaw":    {PicoclawSite, tool, `{"action":"deny_tool"}`, `{"action":"deny_tool"}`},
		"site: elsewhere":         {PicoclawSite, llm, `{"decision":{"action":"abort_turn"}}`, `{"action":"abort_turn"}`},
		"site: allow elsewhere":   {PicoclawSite, llm, `{"allow":false}`, `error: unknown member "allow"`},

		"hookd":            {Hookd, tool, `{"action":"ask","reason":"?","warnings":["w"]}`, `{"action":"ask","reason":"?","warnings":["w"]}`},
		"hookd, flat":      {Hookd, afterTool, `{"result":{"content":"key …"}}`, `{"action":"continue","result":{"content":"key …"}}`},
		"a stage of ours":  {Picoclaw, protocol.StageStop, `{"action":"inject","inject":{"role":"user","content":"go on"}}`, `{"action":"inject","inject":{"role":"user","content":"go on"}}`},
		"our stage, wrong": {Picoclaw, protocol.StageStop, `{"allow":true}`, `error: unknown member "allow"`},
	} {
		t.Run(name, func(t *testing.T) {
			params := paramsOf(c.stage)
			if c.stage == protocol.StageStop {
				params = `{}`
			}
			d, err := c.dialect.Decision(request(t, c.stage, params), []byte(c.answer))
			if text, wrong := strings.CutPrefix(c.wanted, "error: "); wrong {
				require.ErrorContains(t, err, text)
				require.Zero(t, d)
				return
			}
			require.NoError(t, err)
			require.JSONEq(t, c.wanted, string(d.AppendJSON(nil, stage(c.stage))))
			require.Contains(t, strings.ReplaceAll(string(d.AppendJSON(nil, stage(c.stage))), " ", ""), digits(c.wanted), "numbers keep their digits")
		})
	}
}

// digits finds the number in an answer that floating point would not keep.
func digits(s string) string {
	if i := strings.Index(s, "9007199254740993"); i >= 0 {
		return s[i : i+strings.IndexAny(s[i:], "}, ")]
	}
	return ""
}

// A text that the hook gave back as it was leaves a content of blocks alone.
func TestUntouchedResultKeepsItsBlocks(t *testing.T) {
	req := request(t, protocol.StageAfterTool, `{"tool":"t","result":{"content":[{"type":"text","text":"a"},{"type":"image","data":"…"}],"is_error":false}}`)
	d, err := Picoclaw.Decision(req, []byte(`{"action":"modify","result":{"result":{"for_llm":"a","is_error":true}}}`))
	require.NoError(t, err)
	require.Equal(t, `{"is_error":true}`, string(d.Subject))
	d, err = Picoclaw.Decision(req, []byte(`{"action":"modify","result":{"result":{"for_llm":"b"}}}`))
	require.NoError(t, err)
	require.Equal(t, `{"content":"b"}`, string(d.Subject))
}

// What came from a PicoClaw host is named as it names it, and stays so.
func TestResultOfAPicoclawHost(t *testing.T) {
	req := request(t, protocol.StageAfterTool, `{"tool":"t","result":{"content":"x","for_llm":"a"}}`)
	d, err := Picoclaw.Decision(req, []byte(`{"action":"modify","result":{"result":{"for_llm":"b"}}}`))
	require.NoError(t, err)
	require.Equal(t, `{"for_llm":"b"}`, string(d.Subject))
}

// Answers in another dialect are refused by hookd's own, and the message names
// the setting and what hookd calls the thing.
func TestOtherDialectsAreNamed(t *testing.T) {
	const pico, site = `put "dialect": "picoclaw" into its entry`, `put "dialect": "picoclaw-site" into its entry`
	for _, c := range []struct {
		stage          protocol.Stage
		answer         string
		setting, words string
	}{
		{protocol.StageBeforeTool, `{"allow":false}`, site, "here action"},
		{protocol.StageBeforeTool, `{"args":{"n":1}}`, site, "here call.arguments"},
		{protocol.StageBeforeTool, `{"decision":{"action":"continue"}}`, site, "here action"},
		{protocol.StageBeforeTool, `{"decision":{"action":"respond"},"hook_result":{"for_llm":"x"}}`, site, "here action, result"},
		{protocol.StageBeforeTool, `{"hook_result":{"for_llm":"x"}}`, site, "here result, action"},
		{protocol.StageBeforeTool, `{"action":"respond","call":{"tool":"t","hook_result":{"for_llm":"x"}}}`, pico, "here action, result, call.tool"},
		{protocol.StageBeforeTool, `{"action":"modify","call":{"tool":"t","arguments":{},"channel":"","chat_id":""}}`, pico, "here action, call.tool, call.arguments"},
		{protocol.StageBeforeLLM, `{"action":"modify","request":{"model":"m","graceful_terminal":false}}`, pico, "here action, request.model"},
		{protocol.StageAfterLLM, `{"action":"modify","response":{"model":"m","response":{"content":"x"}}}`, pico, "here action, response.content"},
		{protocol.StageAfterTool, `{"action":"modify","result":{"tool":"bash","result":{"for_llm":"x","is_error":false}}}`, pico, "here action, result.content, result.is_error"},
		{protocol.StageAfterTool, `{"action":"modify","result":{"result":{"for_llm":"x"}}}`, pico, "here action, result.content"},
		// Nobody reads these, but the right name is told.
		{protocol.StageAfterTool, `{"action":"modify","result":{"for_llm":"x"}}`, "", "hookd has it as result.content"},
		{protocol.StageBeforeTool, `{"action":"deny_tool","message":"no"}`, "", `did you mean "reason"`},
		{protocol.StageBeforeTool, `{"decision":"block"}`, "", `hookd reads "action"`},
		{protocol.StageAfterLLM, `{"action":"redact"}`, "", `unknown verb "redact"`},
	} {
		t.Run(c.answer, func(t *testing.T) {
			for _, d := range []Dialect{"", Hookd} {
				_, err := d.Decision(request(t, c.stage, paramsOf(c.stage)), []byte(c.answer))
				require.ErrorContains(t, err, c.setting)
				require.ErrorContains(t, err, c.words)
				require.Less(t, len(err.Error()), 300)
				require.NotContains(t, err.Error(), "sk-1", "no payload in messages")
			}
		})
	}
	_, err := Picoclaw.Decision(request(t, protocol.StageBeforeTool, paramsOf("")), []byte(`{"allow":false}`))
	require.ErrorContains(t, err, site)
	_, err = Hookd.Approval([]byte(`{"allow":true}`))
	require.ErrorContains(t, err, site)
	require.ErrorContains(t, err, "here approved")
}

func TestApproval(t *testing.T) {
	yes, no := protocol.Approval{Approved: true, Reason: "r"}, protocol.Approval{}
	for name, c := range map[string]struct {
		dialect Dialect
		answer  string
		wanted  protocol.Approval
		err     string
	}{
		"yes":                 {Picoclaw, `{"approved":true,"reason":"r"}`, yes, ""},
		"no":                  {Picoclaw, `{"approved":false}`, no, ""},
		"empty reason":        {Picoclaw, `{"approved":false,"reason":""}`, no, ""},
		"null reason":         {Picoclaw, `{"approved":false,"reason":null}`, no, ""},
		"null":                {Picoclaw, `null`, no, `"approved" is missing`},
		"continue is no yes":  {Picoclaw, `{"action":"continue"}`, no, `unknown member "action"`},
		"a text":              {Picoclaw, `{"approved":"true"}`, no, "expected a boolean"},
		"hookd's own":         {Picoclaw, `{"approved":true,"by":"me"}`, no, `take "dialect": "picoclaw" out`},
		"site's":              {Picoclaw, `{"allow":true}`, no, `"picoclaw-site"`},
		"site: allow":         {PicoclawSite, `{"allow":true,"reason":"r"}`, yes, ""},
		"site: not":           {PicoclawSite, `{"allow":false}`, no, ""},
		"site: approved":      {PicoclawSite, `{"approved":true,"reason":"r"}`, yes, ""},
		"site: both":          {PicoclawSite, `{"approved":true,"allow":true}`, no, `unknown member "allow"`},
		"site: a number":      {PicoclawSite, `{"allow":1}`, no, "expected a boolean"},
		"site: twice":         {PicoclawSite, `{"allow":false,"allow":true}`, no, "duplicate name"},
		"site: decision":      {PicoclawSite, `{"decision":{"action":"continue"}}`, no, "unknown member"},
		"hookd":               {Hookd, `{"approved":true,"reason":"r"}`, yes, ""},
		"hookd: another case": {Hookd, `{"Approved":true}`, no, `unknown member "Approved"`},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := c.dialect.Approval([]byte(c.answer))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.Zero(t, a)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.wanted, a)
		})
	}
}

// FuzzDecision: whatever a hook answers, in whatever dialect it is read, it is
// unreadable or a decision that hookd itself could have been given; and a no is
// never read as anything else.
func FuzzDecision(f *testing.F) {
	for _, answer := range []string{
		`null`, `{}`, `{"action":"deny_tool","reason":"no"}`, `{"allow":false}`, `{"allow":true,"args":{"a":1}}`, `{"decision":{"action":"abort_turn"}}`,
		`{"action":"respond","call":{"hook_result":{"for_llm":"x"}}}`, `{"result":{"tool":"t","result":{"for_llm":"x","is_error":true}}}`,
		`{"response":{"response":{"content":"x"}}}`, `{"request":{"model":"m","messages":[],"graceful_terminal":false}}`, `{"approved":true}`,
		`{"action":"modify","call":{"channel":"x","arguments":{"n":9007199254740993}}}`, `[1]`, `{"result":[1]}`, `{"decision":[1]}`, `{"action":""}`, ` null `,
	} {
		for s := range 5 {
			f.Add([]byte(answer), uint8(s))
		}
	}
	names := []protocol.Stage{protocol.StageBeforeTool, protocol.StageAfterTool, protocol.StageBeforeLLM, protocol.StageAfterLLM, protocol.StageStop}
	requests := map[protocol.Stage]*protocol.Request{}
	for _, name := range names[:4] {
		requests[name] = request(f, name, paramsOf(name))
	}
	requests[protocol.StageStop] = request(f, protocol.StageStop, `{}`)
	f.Fuzz(func(t *testing.T, answer []byte, which uint8) {
		req := requests[names[int(which)%len(names)]]
		for _, d := range []Dialect{Hookd, Picoclaw, PicoclawSite} {
			decision, err := d.Decision(req, answer)
			if err != nil {
				require.Zero(t, decision)
				continue
			}
			require.NoError(t, decision.Check(req.Stage), "%s: %s", d, answer)
			if given, err := protocol.DecodeObject(answer, 0); err == nil {
				verb := given.Get("action")
				if verb == nil && d == PicoclawSite {
					verb = inside(given, "decision").Get("action")
				}
				if verb != nil && verb.Kind() == '"' && protocol.Unquote(verb) != "" {
					want := protocol.Unquote(verb)
					if want == "deny_tool" || want == "block" {
						want = "deny"
					}
					require.Equal(t, want, string(decision.Decided()))
				}
				if string(given.Get("allow")) == "false" {
					require.Equal(t, protocol.ActionDeny, decision.Decided())
				}
			}
			if decision.Subject != nil {
				_, _, err := req.Stage.Apply(req.Subject, decision.Subject)
				require.NoError(t, err)
			}
		}
		for _, d := range []Dialect{Hookd, Picoclaw, PicoclawSite} {
			if a, err := d.Approval(answer); err != nil {
				require.Zero(t, a)
			}
		}
	})
}
