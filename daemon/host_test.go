package daemon_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// asking is an entry whose hook asks for approval of every call.
func asking() string {
	const script = `while read -r line; do
	id=${line#*\"id\":}
	case $line in *\"id\":*) printf '{"jsonrpc":"2.0","id":%s,"result":{"action":"ask","reason":"sure?"}}\n' "${id%%,*}" ;; esac
done`
	return fmt.Sprintf(`{"command": ["sh", "-c", %q], "intercept": ["before_tool"], "fail_policy": "deny"}`, script)
}

const hostCall = `{"meta":{"AgentID":"main","TurnID":"t-1","SessionKey":"s-1","Iteration":1},"tool":"bash","arguments":{}}`

// An agent that greets as PicoClaw does is answered in PicoClaw's words, and
// with nothing in them that it does not know.
func TestPicoclawHost(t *testing.T) {
	d := startDaemon(t, fmt.Sprintf(`{"hooks": {"processes": {"asking": %s, "approver": %s}}}`,
		asking(), process(t, "continue", `"intercept": ["approve_tool"], "match": {"tools": ["bash"]}`)))
	for _, c := range []struct{ modes, tool, wanted string }{
		{`["observe","tool","approve"]`, "bash", `{"action":"continue"}`},
		{`["tool"]`, "bash", `{"action":"deny_tool","reason":"sure?"}`},            // it will not ask for the approval
		{`["tool","approve"]`, "other", `{"action":"deny_tool","reason":"sure?"}`}, // nobody approves this tool
	} {
		a := d.dial(t)
		require.Equal(t, `{"ok":true,"name":"hookd"}`, a.ask("hook.hello", `{"name":"hookd","version":1,"modes":`+c.modes+`}`))
		require.Equal(t, c.wanted, a.ask("hook.before_tool", fmt.Sprintf(`{"meta":{"SessionKey":"s-1"},"tool":%q,"arguments":{}}`, c.tool)), c.modes)
		require.Equal(t, `{"action":"deny_tool","reason":"tool: is missing"}`, a.ask("hook.before_tool", `{"arguments":{}}`))
		require.Equal(t, `{"approved":false,"reason":"arguments: expected an object, got a string"}`, a.ask("hook.approve_tool", `{"tool":"bash","arguments":""}`))
	}
	a := d.dial(t)
	a.ask("hook.hello", `{"name":"hookd","version":1,"modes":["tool","approve"]}`)
	require.Equal(t, `{"action":"continue"}`, a.ask("hook.before_tool", hostCall))
	require.Equal(t, `{"approved":true,"reason":""}`, a.ask("hook.approve_tool", hostCall))
	require.Equal(t, `{"approved":false,"reason":"nobody can be asked"}`, a.ask("hook.approve_tool", `{"tool":"other","arguments":{}}`))
}

// It need not greet: what it says first shows who it is.
func TestPicoclawHostIsRecognised(t *testing.T) {
	d := startDaemon(t, one(t, "slow", ""))
	const denied = `{"action":"deny_tool","reason":"scripted"}`
	a := d.dial(t)
	require.Equal(t, denied, a.ask("hook.before_tool", hostCall))
	require.Equal(t, denied, a.ask("hook.before_tool", lsCall), "once is enough")

	a = d.dial(t)
	a.send(`{"jsonrpc":"2.0","method":"hook.runtime_event","params":{"kind":"agent.turn.start","payload":{"UserMessage":"hi"}}}`)
	a.send(`{"jsonrpc":"2.0","method":"hook.runtime_event","params":{"kind":"agent.unheard.of"}}`)
	require.Equal(t, denied, a.ask("hook.before_tool", lsCall))
	require.EqualValues(t, 1, d.status(t).Counters.EventsDropped)

	// Who speaks hookd's own words may carry such names in meta.
	a = d.dial(t)
	a.ask("hook.hello", `{"name":"a"}`)
	require.Contains(t, a.ask("hook.before_tool", hostCall), `"decided_by":"gate"`)
	a = d.dial(t)
	require.Contains(t, a.ask("hook.before_tool", lsCall), `"decided_by":"gate"`)
	require.Contains(t, a.ask("hook.before_tool", hostCall), `"decided_by":"gate"`)
}
