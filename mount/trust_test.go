package mount

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/protocol"
)

// A pinned file that has changed denies every call until it is as it was,
// whatever the policy, and opens no breaker.
func TestUntrusted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var foreign atomic.Bool
		foreign.Store(true)
		p, seen := startFake(t, func(j *job) {
			start := j.start
			j.start = func(ctx context.Context) (program, error) {
				if foreign.Load() {
					return nil, &child.StartError{Op: "trust", Path: "/home/gate", Err: &child.ChangedError{Want: "aa", Got: "bb"}}
				}
				return start(ctx)
			}
		}, func(f *far) { f.each(func(m message) { f.answer(m.id, `{}`) }) })
		require.ErrorContains(t, p.ready(t.Context()), "trust /home/gate: its SHA-256 is bb, not aa")
		for range 20 {
			time.Sleep(15 * time.Second)
			_, err := p.Intercept(t.Context(), toolCall(time.Second))
			wantOutcome(t, err, protocol.OutcomeUntrustedChanged, "it could not be started: its SHA-256 is bb, not aa")
			require.NotContains(t, err.Error(), "/home", "agents need no paths")
		}
		synctest.Wait()
		wantStates(t, seen, Untrusted)

		foreign.Store(false)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		_, err := p.Intercept(t.Context(), toolCall(time.Second))
		require.NoError(t, err)
		wantStates(t, seen, Ready)

		// A restart looks at once.
		foreign.Store(true)
		require.ErrorContains(t, p.renew(t.Context()), "not aa")
		_, err = p.Intercept(t.Context(), toolCall(time.Second))
		wantOutcome(t, err, protocol.OutcomeUntrustedChanged)
		foreign.Store(false)
		require.NoError(t, p.renew(t.Context()))
	})
}

// A real child: pinned, in a sandbox, and with all limits.
func TestProcessOfAnEntryIsConfined(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "gate.sh")
	text := "while read -r line; do id=${line#*\\\"id\\\":}; id=${id%%,*}\n" +
		`echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"reason":"'"$(cat rules; cat ../secret 2>/dev/null; cat "$1")"'"}}'; done` + "\n"
	outside := filepath.Join(t.TempDir(), "argument")
	for path, text := range map[string]string{script: text, filepath.Join(dir, "rules"): "rules", filepath.Join(filepath.Dir(dir), "secret"): " secret", outside: " argument"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	digest := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:])
	}
	b := newBench(t, func(o *MounterOptions) {
		require.NoError(t, o.Spawner.Close())
		o.Spawner = child.New(child.Options{Helper: self})
	})
	b.timing.greeting = patience // the helper is this whole test, maybe with the race detector
	e := processEntry("gate", "sh", script, outside)
	e.Dir, e.Sandbox, e.Pins = dir, &config.Sandbox{}, []config.Pin{{Path: script, SHA256: digest(script), Pointer: "/p"}}
	m := b.mountReady(t, e)
	d, err := intercept(t, m, patience)
	require.NoError(t, err)
	want := "rules argument"
	if gaps := child.Gaps(&child.Sandbox{}); len(gaps) > 0 && strings.Contains(gaps[0], "nothing of it") {
		want = "rules secret argument"
	}
	require.Equal(t, want, d.Reason)
	s := m.Status()
	require.Contains(t, s.Confinement.Active, "nofile=1024")
	require.Contains(t, s.Confinement.Active, "sha256")
	require.Subset(t, s.Confinement.Missing, child.Gaps(&child.Sandbox{}))
	require.NotEmpty(t, b.logs.FilterMessage("hook is not limited in every way").All())
	if runtime.GOOS == "linux" {
		require.Contains(t, s.Confinement.Active, "no_new_privs")
	}

	require.Empty(t, CheckPins(&config.Config{}, e))
	require.NoError(t, os.WriteFile(script, []byte(text+"#"), 0o600))
	require.True(t, m.Changed())
	problems := CheckPins(&config.Config{}, e)
	require.Len(t, problems, 1)
	require.ErrorContains(t, problems[0], "its SHA-256 is "+digest(script))
	require.ErrorContains(t, m.Restart(t.Context()), "its SHA-256 is "+digest(script))
	require.Equal(t, Untrusted, m.Status().State)
	_, err = intercept(t, m, patience)
	wantOutcome(t, err, protocol.OutcomeUntrustedChanged)
	require.NoError(t, os.WriteFile(script, []byte(text), 0o600))
	require.NoError(t, m.Restart(t.Context()))
	_, err = intercept(t, m, patience)
	require.NoError(t, err)
}
