package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The watchdog hears nothing from a hookd that is stuck, and hears in time from
// one whose canary takes as long as it may.
func TestFeed(t *testing.T) {
	t.Parallel()
	const interval = 30 * time.Second
	stuck := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	for name, c := range map[string]struct {
		canary func(context.Context) error
		gap    time.Duration // the longest without food in ten minutes
	}{
		"quick": {func(context.Context) error { return nil }, 10 * time.Second},
		"slow":  {func(context.Context) error { time.Sleep(9 * time.Second); return nil }, 10 * time.Second},
		"fails": {func(context.Context) error { return errors.New("refused") }, 10 * time.Minute},
		"stuck": {stuck, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				last, gap := time.Now(), time.Duration(0)
				look := func() { gap, last = max(gap, time.Since(last)), time.Now() }
				feed(ctx, interval, c.canary, look)
				look()
				require.Equal(t, c.gap, gap)
			})
		})
	}
}

func TestHeadline(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Status{
		"generation 1, 0 hooks": {Ready: true, Generation: 1},
		"generation 2, 3 hooks (b backoff)": {Ready: true, Generation: 2, Hooks: []HookStatus{
			{Name: "a", State: "ready", Required: true}, {Name: "b", State: "backoff"}, {Name: "c", State: stateDisabled},
		}},
		"waiting for required hooks: a, b; generation 1, 2 hooks (a starting, b failed)": {Generation: 1, Hooks: []HookStatus{
			{Name: "a", State: "starting", Required: true}, {Name: "b", State: "failed", Required: true},
		}},
		"generation 1, 0 hooks; the config file was refused: x.json:1:2: no": {
			Ready: true, Generation: 1, Config: ConfigStatus{Error: "x.json:1:2: no\nx.json:2:2: no"},
		},
	} {
		require.Equal(t, want, s.headline())
	}
}
