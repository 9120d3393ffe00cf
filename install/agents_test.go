package install

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent"
	"github.com/hookd/hookd/protocol"
)

// notInstalled are rows of the tables of package agent that no file of the agent
// names.
var notInstalled = map[string][]string{
	"codex":   {"notify"},                   // is set in config.toml, for one program alone
	"copilot": {"UserPromptSubmit", "Stop"}, // other names for events that are installed
	// What is installed as "event".
	"opencode": {"session.created", "session.idle", "session.compacted", "session.error", "session.deleted"},
}

// Every event that hookd has a question for, or can tell observers of, is
// installed or left out for a reason, and a round trip asks before a tool.
func TestEventsMatchTable(t *testing.T) {
	for _, s := range specs() {
		t.Run(s.name, func(t *testing.T) {
			d := agent.Find(s.name)
			if d == nil {
				t.Skip("package agent has no dialect for it")
			}
			for _, row := range d.Rows() {
				if slices.Contains(notInstalled[s.name], row.Event) {
					continue
				}
				i := slices.IndexFunc(s.events, func(e event) bool { return e.name == row.Event })
				if i < 0 {
					t.Errorf("%s is in the table and not installed", row.Event)
					continue
				}
				if row.Stage == protocol.StageBeforeTool && row.Block {
					require.Empty(t, s.events[i].left, "%s is a gate and must be installed", row.Event)
				}
			}
			call, err := d.Read(s.probe.event, []byte(s.probe.payload))
			require.NoError(t, err)
			require.Equal(t, protocol.StageBeforeTool, call.Stage)
			for _, r := range []*protocol.Result{{Action: protocol.ActionContinue}, {Action: protocol.ActionDeny, Reason: "no"}} {
				a := d.Write(call, r, agent.Policy{})
				require.NoError(t, s.probe.answer(Output{Stdout: a.Stdout, Stderr: a.Stderr, Exit: a.ExitCode}), "%s", r.Action)
			}
		})
	}
	for _, name := range agent.Names() {
		_, err := findSpec(name)
		require.NoError(t, err, "an agent without an installer")
	}
}

// Where an agent can be made to say no when it can't run hookd-hook, it is at
// every event that stands before something which hookd can stop.
func TestClosed(t *testing.T) {
	closed := 0
	for _, s := range specs() {
		d := agent.Find(s.name)
		if d == nil || s.form.closed == "" {
			continue
		}
		o := &Options{Agent: s.name, Program: Program{Argv: []string{"/bin/hookd-hook"}}}
		entries, err := s.entries(o)
		require.NoError(t, err)
		open, err := s.entries(&Options{Agent: s.name, Program: o.Program, OnUnavailable: "continue"})
		require.NoError(t, err)
		for i, e := range entries {
			for _, row := range d.Rows() {
				if row.Event == e.event {
					require.Equal(t, row.Gate(), e.value.Get(s.form.closed) != nil, "%s %s", s.name, e.event)
					closed++
				}
			}
			require.Nil(t, open[i].value.Get(s.form.closed), "%s %s", s.name, e.event)
		}
	}
	require.NotZero(t, closed)
}

// Names are unique, also those that people use.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range specs() {
		for _, name := range append([]string{s.name}, s.also...) {
			require.False(t, seen[name], name)
			seen[name] = true
		}
		events := map[string]bool{}
		for _, e := range s.events {
			require.False(t, events[e.name], "%s: %s", s.name, e.name)
			events[e.name] = true
		}
	}
}
