package daemon_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
)

// scraped is the page of metrics, read at most so often as it does not hold all
// of these lines: events come later than answers.
func (d *runningDaemon) scraped(t *testing.T, address string, lines ...string) string {
	t.Helper()
	page, missing := "", ""
	until(t, "the metrics are there", func() bool {
		status, text := d.metrics(t, address)
		require.Equal(t, http.StatusOK, status, text)
		page, missing = "\n"+text, ""
		for _, line := range lines {
			if !strings.Contains(page, "\n"+line+"\n") {
				missing = line
			}
		}
		return missing == ""
	})
	return page
}

func (d *runningDaemon) metrics(t *testing.T, address string) (status int, text string) {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(filepath.Dir(d.sockets.Agents), "http-token"))
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// TestMetrics asks, reads what was counted, and takes the entry out and in.
func TestMetrics(t *testing.T) {
	address := freePort(t)
	config := func(metrics string) string {
		return fmt.Sprintf(`{"http": {"listen": %q}, "approval": {"not_same_process_tree": false}, "hooks": {"builtins": {"cancel": {}, %s"human": {"priority": 20, "when": "always"},
			"summarize": {"config": {"threshold": 1000, "keep_last": 1, "command": ["false"]}}},
			"processes": {"gate": %s}}}`, address, metrics, process(t, "deny", `"intercept": ["before_tool"], "match": {"tools": ["rm"]}`))
	}
	d := startDaemon(t, config(`"metrics": {"config": {"every_steps": 1}}, `))
	a := d.dial(t)
	a.ask("hook.hello", `{"name":"claude","session_id":"s-1","events":true}`)
	a.ask("hook.before_tool", lsCall)
	a.ask("hook.before_tool", `{"tool":"rm","arguments":{}}`)
	a.ask("hook.before_tool", `{"tool":"rm","arguments":{},"dry_run":true}`)
	a.ask("hook.before_llm", fmt.Sprintf(`{"messages":[{"role":"user","content":%q},{"role":"user","content":"go on"}]}`, strings.Repeat("many words ", 1500)))
	a.ask("hook.after_llm", `{"response":{"content":"x","usage":{"input_tokens":10,"output_tokens":7}}}`)
	a.ask("hook.event", `{"kind":"llm_response","payload":{"usage":{"input_tokens":10,"output_tokens":7}}}`)
	a.ask("hook.event", `{"kind":"tool_error","payload":{}}`)
	page := d.scraped(t, address,
		`hookd_calls_total{action="continue",agent="claude",stage="before_tool"} 1`,
		`hookd_calls_total{action="deny",agent="claude",stage="before_tool"} 1`,
		`hookd_hook_turns_total{hook="gate",outcome="deny",stage="before_tool"} 1`,
		`hookd_hook_state{hook="gate",state="ready"} 1`,
		`hookd_tokens_total{agent="claude",direction="input"} 10`,
		`hookd_tool_errors_total{agent="claude"} 1`,
		`hookd_steps_total{agent="claude"} 1`,
		`hookd_record_mode{mode="batch"} 1`,
		`hookd_connections 1`,
		`hookd_config_generation 1`,
		`hookd_build_info{goversion="`+runtime.Version()+`",version="test"} 1`,
		`hook_summarization_triggered_total 1`,
		`hook_summarization_fallback_total 1`,
		`hook_summarization_tokens_before_count 1`,
		`hook_summarization_tokens_after_count 1`,
		`hook_summarization_duration_ms_count 1`,
	)
	require.NotContains(t, page, "s-1", "a session is no series")

	a.asks("hook.before_tool", `{"tool":"bash","arguments":{},"approve":true}`)
	open := d.tickets(t, 1)[0]
	d.scraped(t, address, `hookd_approvals_open 1`)
	_, err := d.approve(t, daemon.ApprovalAnswerParams{ID: open.ID})
	require.NoError(t, err)
	a.read()
	d.scraped(t, address, `hookd_approvals_open 0`, `hookd_approvals_total{answer="approved"} 1`)

	s := d.session(t, "s-1").Figures
	require.NotNil(t, s)
	require.False(t, s.Started.IsZero())
	s.Started, s.Last = daemon.SessionFigures{}.Started, daemon.SessionFigures{}.Last
	require.Equal(t, &daemon.SessionFigures{Steps: 1, ToolCalls: 2, TokensIn: 10, TokensOut: 7, Errors: 1, Denials: 1}, s)
	var list []daemon.SessionStatus
	require.NoError(t, d.control(t, daemon.MethodSessionsList, nil, &list))
	require.EqualValues(t, 10, list[0].Figures.TokensIn)

	// Taken out it counts nothing and shows nothing; back, it goes on.
	d.write(t, config(""))
	require.NoError(t, d.control(t, daemon.MethodReload, nil, nil))
	status, text := d.metrics(t, address)
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, `add "metrics": {} to hooks.builtins`)
	require.Nil(t, d.session(t, "s-1").Figures)
	a.ask("hook.before_tool", `{"tool":"rm","arguments":{}}`)
	d.write(t, config(`"metrics": {}, `))
	require.NoError(t, d.control(t, daemon.MethodReload, nil, nil))
	d.scraped(t, address, `hookd_calls_total{action="deny",agent="claude",stage="before_tool"} 1`, `hookd_config_generation 3`)
	a.conn.Close()
	until(t, "the end of the session is logged", func() bool {
		return strings.Contains(d.log.String(), `"msg":"session left: the agent disconnected"`)
	})
	require.Contains(t, d.log.String(), `"msg":"session so far"`)
}

// TestMetricsOfARefusal wants a call that became a no to be counted as one.
func TestMetricsOfARefusal(t *testing.T) {
	address := freePort(t)
	d := startDaemonWith(t, daemon.Options{
		ConfigPath: writeConfig(t, fmt.Sprintf(`{"http": {"listen": %q}, "hooks": {"builtins": {"metrics": {}}}}`, address)), Recorder: refusing{},
	})
	require.Contains(t, d.dial(t).ask("hook.before_tool", lsCall), `"action":"deny_tool"`)
	d.scraped(t, address, `hookd_calls_total{action="deny",agent="other",stage="before_tool"} 1`)
}
