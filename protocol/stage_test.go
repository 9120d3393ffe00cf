package protocol

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table as a person reads it; a change of a row must be seen in a review.
func TestStagesGolden(t *testing.T) {
	var b strings.Builder
	dash := func(list ...string) string {
		if s := strings.Join(list, " "); s != "" {
			return s
		}
		return "-"
	}
	for _, s := range Stages() {
		var verbs []string
		for _, v := range s.Verbs {
			verbs = append(verbs, string(v))
		}
		fmt.Fprintf(&b, "%s\n", s.Name)
		for _, row := range [][2]string{
			{"method", s.Method()},
			{"subject", dash(s.Subject...)},
			{"required", dash(s.Required...)},
			{"fixed", dash(s.Fixed...)},
			{"result", dash(s.Result)},
			{"wrapped", fmt.Sprint(s.Wrapped())},
			{"respond", dash(s.Respond)},
			{"verbs", dash(verbs...)},
			{"timeout", s.Timeout.String()},
			{"on failure", dash(string(s.OnFailure))},
			{"event", dash(string(s.Event))},
		} {
			fmt.Fprintf(&b, "  %-10s %s\n", row[0], row[1])
		}
	}
	golden(t, "testdata/stages.txt", []byte(b.String()))
}

// What the protocol says about verbs and failures, in its own words.
func TestStageRules(t *testing.T) {
	rules := map[Stage]struct{ verbs, onFailure string }{
		StageUserMessage:        {"modify deny", "deny"},
		StageBeforeAgent:        {"modify respond deny", "deny"},
		StageSystemPrompt:       {"modify", "abort_turn"},
		StageInjectInstructions: {"", "continue"},
		StageBeforeLLM:          {"modify respond deny", "deny"},
		StageAfterLLM:           {"modify", "abort_turn"},
		StageBeforeTool:         {"modify respond ask allow deny", "deny"},
		StageApproveTool:        {"", "deny"},
		StageAfterTool:          {"modify", "abort_turn"},
		StageBeforeCompact:      {"deny", "continue"},
		StageStop:               {"inject", "continue"},
		StageOutput:             {"modify deny", "deny"},
	}
	verbs := []Action{ActionContinue, ActionModify, ActionRespond, ActionAllow, ActionAsk, ActionDeny, ActionInject, ActionAbortTurn, ActionHardAbort}
	require.Len(t, Stages(), len(rules))
	for _, s := range Stages() {
		want := strings.Fields("continue abort_turn hard_abort " + rules[s.Name].verbs)
		for _, v := range verbs {
			require.Equal(t, slices.Contains(want, string(v)), s.Allows(v), "%s at %s", v, s.Name)
		}
		require.False(t, s.Allows(""), s.Name)
		require.False(t, s.Allows("deny_tool"), s.Name)
		require.Equal(t, rules[s.Name].onFailure, string(s.OnFailure), s.Name)
		require.Equal(t, strings.HasSuffix(string(s.Name), "_tool"), s.Tool(), s.Name)
		require.Equal(t, s.Allows(ActionRespond), s.Respond != "", s.Name)
		require.Equal(t, s.Allows(ActionModify), s.Result != "", s.Name)
	}
}

func TestStageTable(t *testing.T) {
	table := NewStageTable()
	require.Len(t, StageNames(), 12)
	for _, name := range StageNames() {
		require.Equal(t, name, string(table.Stage(Stage(name)).Name))
		require.Same(t, table.Stage(Stage(name)), table.Method("hook."+name))
	}
	for _, unknown := range []string{"", "before_tool ", "Before_tool", "hook.", "hook.hello", "hook.before_tool"} {
		require.Nil(t, table.Stage(Stage(unknown)), unknown)
	}
	for _, unknown := range []string{"", "hook.", "before_tool", "hook.hello", "hook.hook.before_tool", "Hook.before_tool"} {
		require.Nil(t, table.Method(unknown), unknown)
	}
	require.Nil(t, new(StageTable).Stage(StageStop))

	Stages()[0].Verbs[0] = "broken" // a caller may change its copy
	require.Equal(t, ActionModify, Stages()[0].Verbs[0])
}

func TestActionOrder(t *testing.T) {
	order := []Action{ActionContinue, ActionAllow, ActionModify, ActionRespond, ActionAsk, ActionDeny, ActionAbortTurn, ActionHardAbort}
	for i := 1; i < len(order); i++ {
		require.Greater(t, order[i].Rank(), order[i-1].Rank(), "%s over %s", order[i], order[i-1])
	}
	for _, a := range order {
		require.Equal(t, a == ActionDeny || a == ActionAbortTurn || a == ActionHardAbort, a.Stops(), a)
	}
	require.False(t, ActionInject.Stops(), "several hooks may inject")
	require.Zero(t, Action("").Rank())
	require.Equal(t, ActionContinue, (&Decision{}).Decided())
}
