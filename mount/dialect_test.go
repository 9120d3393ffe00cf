package mount

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/dialect"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// scriptEntry runs one of the scripts in testdata. They are written for other
// dialects and know nothing of hookd.
func scriptEntry(t *testing.T, script string, d dialect.Dialect, stages ...protocol.Stage) *config.Entry {
	t.Helper()
	interpreter := map[string]string{".py": "python3", ".mjs": "node"}[filepath.Ext(script)]
	if _, err := exec.LookPath(interpreter); err != nil {
		t.Skipf("%s is not installed", interpreter)
	}
	path, err := filepath.Abs(filepath.Join("testdata", script))
	require.NoError(t, err)
	e := processEntry("script", interpreter, path)
	e.Dialect, e.Intercept = string(d), stages
	e.Env = map[string]string{"PICOCLAW_HOOK_LOG_FILE": filepath.Join(t.TempDir(), "log")}
	return e
}

func allToolStages() []protocol.Stage {
	return []protocol.Stage{protocol.StageBeforeTool, protocol.StageApproveTool, protocol.StageAfterTool}
}

// ask is a request of an agent that speaks hookd's own words.
func ask(t *testing.T, name protocol.Stage, params string) *protocol.Request {
	t.Helper()
	obj, err := protocol.DecodeObject([]byte(params), 0)
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(name), obj)
	require.Nil(t, bad)
	req.Timeout = patience
	return req
}

// decided asks the script and returns its decision in hookd's words.
func decided(t *testing.T, m *Mounted, name protocol.Stage, params string) string {
	t.Helper()
	req := ask(t, name, params)
	d, err := m.process.Intercept(t.Context(), req)
	require.NoError(t, err)
	return string(d.AppendJSON(nil, req.Stage))
}

func approved(t *testing.T, m *Mounted, tool string) bool {
	t.Helper()
	a, err := m.process.Approve(t.Context(), ask(t, protocol.StageApproveTool, `{"tool":"`+tool+`","arguments":{}}`))
	require.NoError(t, err)
	return a.Approved
}

// refused asks the script without its setting.
func refused(t *testing.T, m *Mounted, d dialect.Dialect, name protocol.Stage, params string, texts ...string) {
	t.Helper()
	req := ask(t, name, params)
	var err error
	if name == protocol.StageApproveTool {
		_, err = m.process.Approve(t.Context(), req)
	} else {
		_, err = m.process.Intercept(t.Context(), req)
	}
	wantOutcome(t, err, protocol.OutcomeBadAnswer, append(texts, `put "dialect": "`+string(d)+`" into its entry`)...)
}

// toldOf sends an event and waits until the script has noted a line with all
// the texts.
func toldOf(t *testing.T, m *Mounted, e *config.Entry, kind protocol.EventKind, payload string, texts ...string) {
	t.Helper()
	ev := &protocol.Event{
		Kind: kind, Meta: protocol.Object{{Name: "session_id", Value: protocol.Quote("s-1")}}, Payload: jsontext.Value(payload),
		Time: time.Now().UTC(), Severity: "info", Source: "agent", ID: "1",
	}
	require.NoError(t, m.process.Observe(t.Context(), &hook.Event{Event: ev, Seq: 1}))
	waitFor(t, "the script notes "+strings.Join(texts, " "), func() bool {
		text, _ := os.ReadFile(e.Env["PICOCLAW_HOOK_LOG_FILE"]) // not there before the first event
		for _, want := range texts {
			if !strings.Contains(string(text), want) {
				return false
			}
		}
		return true
	})
}

const (
	metaParams  = `"meta":{"session_id":"s-1"},"context":{"inbound":{"channel":"cli","chat_id":"c-1"}},`
	rmCall      = `{` + metaParams + `"tool":"rm","arguments":{}}`
	lsCall      = `{` + metaParams + `"tool":"ls","arguments":{}}`
	fetchCall   = `{` + metaParams + `"tool":"fetch","arguments":{"url":"u","n":9007199254740993},"x_ray":1}`
	weatherCall = `{` + metaParams + `"tool":"weather","arguments":{}}`
	toolSaid    = `{` + metaParams + `"tool":"cat","arguments":{},"duration_ms":15,"result":{"content":"key sk-1","is_error":false}}`
)

func TestPicoclawGate(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	e := scriptEntry(t, "picoclaw_gate.py", dialect.Picoclaw, allToolStages()...)
	m := b.mountReady(t, e)
	require.Equal(t, "gate", m.Status().Greeted)
	require.Equal(t, `{"action":"continue"}`, decided(t, m, protocol.StageBeforeTool, lsCall))
	require.Equal(t, `{"action":"deny_tool","reason":"no rm in s-1/c-1/turn.tool.before"}`, decided(t, m, protocol.StageBeforeTool, rmCall))
	require.Equal(t, `{"action":"modify","call":{"tool":"fetch","arguments":{"url": "u", "n": 9007199254740993, "safe": true}}}`, decided(t, m, protocol.StageBeforeTool, fetchCall))
	require.Equal(t, `{"action":"respond","call":{"tool":"weather"},"result":{"content":"sunny","is_error":false}}`, decided(t, m, protocol.StageBeforeTool, weatherCall))
	require.Equal(t, `{"action":"modify","result":{"content":"key *** after 15 ms","is_error":false}}`, decided(t, m, protocol.StageAfterTool, toolSaid))
	require.True(t, approved(t, m, "ls"))
	require.False(t, approved(t, m, "rm"))
	toldOf(t, m, e, protocol.EventToolExecEnd, `{"tool":"cat","duration_ms":15}`, "agent.tool.exec_end s-1", `"Tool": "cat"`, `"Duration": 15000000`)
	require.Empty(t, m.Status().Noise)

	// Without the setting the answers that mean something else are refused.
	e = scriptEntry(t, "picoclaw_gate.py", dialect.Hookd, allToolStages()...)
	m = b.mountReady(t, e)
	require.Equal(t, `{"action":"continue"}`, decided(t, m, protocol.StageBeforeTool, lsCall))
	require.Contains(t, decided(t, m, protocol.StageBeforeTool, rmCall), `"action":"deny_tool"`)
	require.False(t, approved(t, m, "rm"))
	refused(t, m, dialect.Picoclaw, protocol.StageBeforeTool, fetchCall, "call.arguments")
	refused(t, m, dialect.Picoclaw, protocol.StageBeforeTool, weatherCall, "here action, result, call.tool")
	refused(t, m, dialect.Picoclaw, protocol.StageAfterTool, toolSaid, "result.result is one level too deep")
}

func TestPicoclawRewriter(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	stages := []protocol.Stage{protocol.StageBeforeLLM, protocol.StageAfterLLM, protocol.StageAfterTool, protocol.StageApproveTool}
	request := `{` + metaParams + `"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[],"graceful_terminal":false}`
	said := `{` + metaParams + `"model":"m","response":{"content":"key sk-1","finish_reason":"stop"}}`

	m := b.mountReady(t, scriptEntry(t, "picoclaw_rewriter.mjs", dialect.Picoclaw, stages...))
	require.Equal(t, `{"action":"modify","request":{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"weather"}}]}}`,
		decided(t, m, protocol.StageBeforeLLM, request))
	require.Equal(t, `{"action":"modify","response":{"content":"key ***","finish_reason":"stop"}}`, decided(t, m, protocol.StageAfterLLM, said))
	require.Equal(t, `{"action":"modify","result":{"content":"key ***"}}`, decided(t, m, protocol.StageAfterTool, toolSaid))
	_, err := m.process.Approve(t.Context(), ask(t, protocol.StageApproveTool, lsCall))
	wantOutcome(t, err, protocol.OutcomeBadAnswer, `unknown member "action"`, `{"approved": true|false`)

	m = b.mountReady(t, scriptEntry(t, "picoclaw_rewriter.mjs", dialect.Hookd, stages...))
	refused(t, m, dialect.Picoclaw, protocol.StageBeforeLLM, request, "request.tools")
	refused(t, m, dialect.Picoclaw, protocol.StageAfterLLM, said, "response.content")
	refused(t, m, dialect.Picoclaw, protocol.StageAfterTool, toolSaid, "result.content")
}

func TestSiteGate(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	e := scriptEntry(t, "site_gate.py", dialect.PicoclawSite, allToolStages()[:2]...)
	m := b.mountReady(t, e)
	require.Equal(t, `{"action":"continue"}`, decided(t, m, protocol.StageBeforeTool, lsCall))
	require.Equal(t, `{"action":"deny_tool","reason":"no rm"}`, decided(t, m, protocol.StageBeforeTool, rmCall))
	require.Equal(t, `{"action":"continue","call":{"arguments":{"url": "u", "n": 9007199254740993, "safe": true}}}`, decided(t, m, protocol.StageBeforeTool, fetchCall))
	require.Equal(t, `{"action":"respond","result":{"content":"sunny","is_error":false}}`, decided(t, m, protocol.StageBeforeTool, weatherCall))
	require.True(t, approved(t, m, "ls"))
	require.False(t, approved(t, m, "rm"))
	// It answers events too; nobody waits for that.
	toldOf(t, m, e, protocol.EventTurnStart, `{"message":"hi"}`, "turn_start", `{"UserMessage": "hi"}`)
	waitFor(t, "the answer to the event is counted", func() bool { return m.Status().Noise["unknown_id"] == 1 })
	require.Equal(t, Ready, m.Status().State)

	m = b.mountReady(t, scriptEntry(t, "site_gate.py", dialect.Hookd, allToolStages()[:2]...))
	refused(t, m, dialect.PicoclawSite, protocol.StageBeforeTool, rmCall, "action")
	refused(t, m, dialect.PicoclawSite, protocol.StageApproveTool, lsCall, "approved")
	// PicoClaw's own dialect is another one.
	m = b.mountReady(t, scriptEntry(t, "site_gate.py", dialect.Picoclaw, allToolStages()[:2]...))
	refused(t, m, dialect.PicoclawSite, protocol.StageBeforeTool, rmCall, "action")
}

func TestSiteBudget(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	const search = `{"tool":"search","arguments":{"q":"x"}}`
	m := b.mountReady(t, scriptEntry(t, "site_budget.mjs", dialect.PicoclawSite, allToolStages()[:2]...))
	for range 2 {
		require.Equal(t, `{"action":"continue","call":{"arguments":{"q":"x","limit":10}}}`, decided(t, m, protocol.StageBeforeTool, search))
	}
	require.Equal(t, `{"action":"deny_tool","reason":"the budget is used up"}`, decided(t, m, protocol.StageBeforeTool, search))
	require.True(t, approved(t, m, "ls"))

	m = b.mountReady(t, scriptEntry(t, "site_budget.mjs", dialect.Hookd, allToolStages()[:2]...))
	refused(t, m, dialect.PicoclawSite, protocol.StageBeforeTool, search, "action")
	refused(t, m, dialect.PicoclawSite, protocol.StageApproveTool, lsCall, "approved")
}
