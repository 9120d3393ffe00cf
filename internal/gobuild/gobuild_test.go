package gobuild_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/internal/gobuild"
)

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	program, err := gobuild.Program(dir, "github.com/hookd/hookd/internal/faultagent")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "faultagent"), program)
	info, err := os.Stat(program)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o100)

	_, err = gobuild.Program(dir, "github.com/hookd/hookd/internal/nothing")
	require.ErrorContains(t, err, "build github.com/hookd/hookd/internal/nothing: go build: exit status 1")
	t.Setenv("PATH", "")
	_, err = gobuild.Program(dir, "github.com/hookd/hookd/internal/faultagent")
	require.ErrorContains(t, err, "find command go")
}
