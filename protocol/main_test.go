package protocol

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden files and the schemas anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares got with a committed file, or writes it with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "%s is stale: run go test ./protocol -update", file)
}

func stage(name Stage) *StageInfo { return NewStageTable().Stage(name) }

// object reads a literal of a test.
func object(t testing.TB, text string) Object {
	t.Helper()
	obj, err := DecodeObject([]byte(text), 0)
	require.NoError(t, err)
	return obj
}
