package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutcomes(t *testing.T) {
	const (
		answered = "continue allow modify respond ask deny inject abort_turn hard_abort"
		noAnswer = "timeout crash spawn_failed starting breaker_open panic hook_error"
		denies   = "garbage bad_answer oversize canary_failed untrusted_changed overloaded chain_deadline"
		noSay    = "cancelled not_run limit_reached async shadow"
	)
	want := map[Outcome]string{}
	for class, words := range map[string]string{"answered": answered, "no answer": noAnswer, "denies": denies, "no say": noSay} {
		for _, w := range strings.Fields(words) {
			want[Outcome(w)] = class
		}
	}
	require.Len(t, Outcomes(), len(want))
	for _, o := range Outcomes() {
		class, known := want[o]
		require.True(t, known, o)
		delete(want, o) // each word once
		require.Equal(t, class == "no answer", o.NoAnswer(), o)
		require.Equal(t, class == "denies", o.AlwaysDenies(), o)
		require.Equal(t, class == "no answer" || class == "denies", o.Failed(), o)
		if _, err := parseAction(string(o)); class == "answered" {
			require.NoError(t, err)
		} else {
			require.Error(t, err, o)
		}
	}
	require.NotContains(t, Outcomes(), Outcome(""), "an outcome that nobody set is not a legal one")
}
