package manager

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestInvariantsOfRandomChains plays scenarios made by chance, so that what
// nobody thought of is held against the invariants too.
func TestInvariantsOfRandomChains(t *testing.T) {
	for seed := range uint64(1500) {
		hooks, run := randomScenario(rand.New(rand.NewPCG(seed, 1)))
		arc := &archive{sections: map[string]string{"hooks": hooks, "run": run}}
		var s *scene
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s = newScene(t, arc)
				s.play()
			})
		})
		require.True(t, ok, "-- hooks --\n%s-- run --\n%s-- trace --\n%s", hooks, run, s.trace.String())
	}
}

// randomScenario makes the sections "hooks" and "run" of a scenario.
func randomScenario(r *rand.Rand) (hooks, run string) {
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	// At most half of the time, so that most hooks are plain ones.
	maybe := func(list ...string) string {
		if r.IntN(2) == 0 {
			return ""
		}
		return " " + one(list...)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rules%s chain_timeout=%s\n", maybe("no_approver=deny"), one("7s", "31s"))
	for i := range 1 + r.IntN(5) {
		fmt.Fprintf(&b, "h%d %s priority=%d%s%s%s%s%s%s%s\n", i,
			one("process", "process", "builtin", "builtin quick"), r.IntN(3),
			maybe("policy=deny"), maybe("mode=enforce", "mode=warn", "mode=shadow", "mode=async"), maybe("recheck"), maybe("may_respond"),
			maybe("tools=a", "tools=b", "tools=a|c"), maybe("when=asked"), maybe("events=*"))
		for range 1 + r.IntN(4) {
			switch r.IntN(5) {
			case 0:
				fmt.Fprintf(&b, "  approve_tool%s\n", one(randomApprovals()...))
			case 1:
				fmt.Fprintf(&b, "  stop%s\n", one(append(randomFailures(), ` {"action":"inject","inject":{"role":"user","content":"x"}}`, ` {"action":"abort_turn"}`, ` {}`)...))
			case 2:
				fmt.Fprintf(&b, "  after_tool%s\n", one(append(randomFailures(), ` {"action":"modify","result":{"content":"y"}}`, ` {"action":"deny"}`, ` {"action":"abort_turn"}`, ` {}`)...))
			default:
				fmt.Fprintf(&b, "  before_tool%s\n", one(randomAnswers()...))
			}
		}
	}
	var steps strings.Builder
	for range 1 + r.IntN(4) {
		tool := one("a", "b", "c")
		steps.WriteString(one(
			fmt.Sprintf(`before_tool {"tool":%q,"arguments":{"n":1}}`, tool),
			fmt.Sprintf(`before_tool {"tool":%q,"arguments":{"n":1},"approve":true}`, tool),
			fmt.Sprintf(`before_tool gone=1s {"tool":%q,"arguments":{"n":1}}`, tool),
			fmt.Sprintf(`before_tool {"tool":%q,"arguments":{"n":1},"deadline_ms":1500,"approve":true}`, tool),
			fmt.Sprintf(`approve_tool {"tool":%q,"arguments":{"n":1}}`, tool),
			fmt.Sprintf(`approve_tool gone=1s {"tool":%q,"arguments":{"n":1},"asked":false}`, tool),
			fmt.Sprintf(`after_tool {"tool":%q,"result":{"content":"x"}}`, tool),
			`stop {"request":{}}`, `stop gone=1s {"request":{}}`,
			"record_fails disk full\n"+`before_tool {"tool":"a","arguments":{"n":1}}`+"\nrecord_works", "shutdown",
		) + "\n")
	}
	return b.String(), steps.String()
}

func randomFailures() []string {
	return []string{" fail crash gone", " fail overloaded busy", " error oops", " hang", " after 2s {}", ` {"action":"perhaps"}`}
}

func randomAnswers() []string {
	return append(randomFailures(),
		` {"action":"deny","reason":"no"}`, ` {"action":"ask","permission":"p"}`, ` {"action":"allow"}`, ` {"action":"inject"}`,
		` {"action":"respond","result":{"content":"r"}}`, ` {"action":"hard_abort"}`, ` {"action":"abort_turn","warnings":["w"],"state":{"k":1}}`,
		` {"action":"modify","call":{"arguments":{"n":2}}}`, ` {"action":"modify","call":{"arguments":{ "n" : 1 }}}`, ` {"action":"modify","call":{"tool":"b"}}`,
		` {"action":"ask","call":{"tool":"c","arguments":{"n":3}}}`, ` {"action":"modify","patch":[{"op":"replace","path":"/arguments/n","value":4}]}`,
		` {"action":"modify","patch":[{"op":"remove","path":"/tool"}]}`, ` if "\"n\":2" {"action":"deny","reason":"two"}`, ` if "\"n\":2" {"action":"ask"}`, " {}")
}

func randomApprovals() []string {
	return []string{` {"approved":true}`, ` {"approved":true,"by":"anna"}`, ` {"approved":false,"reason":"no"}`, " fail crash gone", " hang", " error oops", ` {"approved":"yes"}`}
}
