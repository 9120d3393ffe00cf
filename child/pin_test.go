package child

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func TestPins(t *testing.T) { bothWays(t, quick, pins) }

func pins(t *testing.T, s *Spawner) {
	dir := t.TempDir()
	script, rules := filepath.Join(dir, "gate"), filepath.Join(dir, "rules")
	const good = "#!/bin/sh\ncat rules\n"
	write(t, script, good, 0o755)
	write(t, rules, "rules", 0o644)
	cat, err := Resolve("cat", "")
	require.NoError(t, err)
	binary, err := os.ReadFile(cat)
	require.NoError(t, err)

	spec := Spec{Argv: []string{script}, Dir: dir, Pins: []Pin{{script, digestOf([]byte(good))}, {rules, digestOf([]byte("rules"))}, {"cat", digestOf(binary)}}}
	require.Equal(t, "rules", readAll(t, start(t, s, spec)))

	refused := func(text string) *ChangedError {
		p, err := s.Start(t.Context(), spec)
		require.Nil(t, p)
		changed, ok := errors.AsType[*ChangedError](err)
		require.True(t, ok, "%v", err)
		require.ErrorContains(t, err, text)
		for _, pin := range spec.Pins {
			if e := pin.Check(); e != nil {
				require.EqualError(t, err, e.Error())
				return changed
			}
		}
		require.FailNow(t, "no pin says so")
		return nil
	}
	write(t, rules, "others", 0o644)
	changed := refused("trust " + rules + ": its SHA-256 is " + digestOf([]byte("others")) + ", not " + digestOf([]byte("rules")))
	require.Equal(t, ChangedError{Want: digestOf([]byte("rules")), Got: digestOf([]byte("others"))}, *changed)

	// Gone is another content too, for the program as well.
	require.NoError(t, os.Remove(rules))
	require.ErrorIs(t, refused("no such file"), unix.ENOENT)
	write(t, rules, "rules", 0o644)
	require.NoError(t, os.Remove(script))
	refused("no such file")
	write(t, script, good, 0o755)
	require.Equal(t, "rules", readAll(t, start(t, s, spec)), "it matches again")

	require.NoError(t, os.Remove(rules))
	require.NoError(t, unix.Mkfifo(rules, 0o600))
	refused("no regular file")
	spec.Pins = []Pin{{"no-such-command", strings.Repeat("0", 64)}}
	refused("nowhere in PATH")
}

// A pinned binary runs under its own name.
func TestPinnedBinary(t *testing.T) {
	bothWays(t, quick, func(t *testing.T, s *Spawner) {
		cat, err := Resolve("cat", "")
		require.NoError(t, err)
		binary, err := os.ReadFile(cat)
		require.NoError(t, err)
		for _, name := range []string{"cat", cat} {
			p := start(t, s, Spec{Argv: []string{name}, Pins: []Pin{{name, digestOf(binary)}}})
			require.Contains(t, p.Confinement().Active, "sha256")
			_, err = p.Stdin().WriteString("through\n")
			require.NoError(t, err)
			require.Equal(t, "through", firstLine(t, p))
		}
	})
}
