package telemetry

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/protocol"
)

// watched is [newFor] with its log.
func watched(t *testing.T, way http.RoundTripper, config string) (*Telemetry, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	to, err := build(jsontext.Value(config), t.TempDir(), NewSink(), zap.New(core), way)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, to.Close()) })
	return to, logs
}

const there = `{"endpoint":"http://collector.example:4318"}`

// TestRetry wants spans that a collector could not take at once to come, and
// those that it refuses not to be sent again.
func TestRetry(t *testing.T) {
	for name, c := range map[string]struct {
		answers []int // 0: the network fails
		posts   int
		sent    bool
	}{
		"at once":            {[]int{200}, 1, true},
		"busy, then not":     {[]int{503, 429, 200}, 3, true},
		"away, then there":   {[]int{0, 0, 0, 200}, 4, true},
		"away":               {[]int{0, 0, 0, 0, 200}, 4, false},
		"refused":            {[]int{401, 200}, 1, false},
		"redirected":         {[]int{307, 200}, 1, false},
		"broken":             {[]int{500, 200}, 1, false},
		"gateway, then gone": {[]int{502, 404, 200}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{answer: func(_ context.Context, n int) int { return c.answers[n-1] }}
				to, logs := watched(t, s, there)
				pass(t, to, `{}`, llm)
				time.Sleep(time.Minute)
				require.Equal(t, c.posts, s.count())
				want, words := Stats{OpenRuns: 1, SentSpans: 1}, 0
				if !c.sent {
					want, words = Stats{OpenRuns: 1, FailedSpans: 1}, 1
				}
				require.Equal(t, want, to.Stats())
				require.Equal(t, words, logs.Len(), "%v", logs.All())
				s.mu.Lock()
				s.answer = nil
				s.mu.Unlock()
			})
		})
	}
}

// TestComplaints wants one line a minute about a collector that is away, with
// counts, and without what is secret.
func TestComplaints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{answer: func(context.Context, int) int { return http.StatusUnauthorized }}
		to, logs := watched(t, s, `{"endpoint":"https://collector.example/tenant-`+canary+`"}`)
		for range 100 {
			pass(t, to, `{}`, llm)
			time.Sleep(3 * time.Second)
		}
		require.Equal(t, 5, logs.Len())
		require.NoError(t, to.Close())
		all := logs.All()
		last := all[len(all)-1]
		require.EqualValues(t, to.Stats().FailedSpans, last.ContextMap()["failed_spans"])
		require.Equal(t, "the collector answers 401 Unauthorized", last.ContextMap()["error"])
		for _, entry := range all {
			require.NotContains(t, fmt.Sprint(entry.Message, entry.ContextMap()), canary)
		}
	})
}

// TestSlowCollector wants nobody to wait for a collector that does not answer:
// neither calls nor the end. What does not fit is counted.
func TestSlowCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{answer: func(ctx context.Context, _ int) int { <-ctx.Done(); return 0 }}
		to, logs := watched(t, s, there)
		began := time.Now()
		const calls = 3 * maxSpans
		for range calls {
			pass(t, to, `{}`, llm)
		}
		require.Zero(t, time.Since(began), "no call waits")
		synctest.Wait()
		time.Sleep(time.Minute)
		before := time.Now()
		require.NoError(t, to.Close())
		require.LessOrEqual(t, time.Since(before), closeWithin)
		stats := to.Stats()
		require.Positive(t, stats.DroppedRecords+stats.DroppedSpans)
		require.EqualValues(t, calls+1, stats.DroppedRecords+stats.DroppedSpans+stats.FailedSpans, "%+v", stats)
		require.NotZero(t, logs.Len())
	})
}

// TestCollectorDown closes in time when nobody listens, over the real network.
func TestCollectorDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	to, logs := watched(t, nil, `{"endpoint":"http://`+address+`/`+canary+`"}`)
	pass(t, to, `{}`, user, stop)
	began := time.Now()
	require.NoError(t, to.Close())
	require.Less(t, time.Since(began), 2*closeWithin)
	require.EqualValues(t, 3, to.Stats().FailedSpans)
	require.Equal(t, 1, logs.Len())
	require.Contains(t, logs.All()[0].ContextMap()["error"], "refused")
	require.NotContains(t, logs.All()[0].ContextMap()["error"], canary)
}

// TestHangingCollector gives up one that takes a connection and says nothing.
func TestHangingCollector(t *testing.T) {
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer server.Close()
	defer close(end)
	to, _ := watched(t, nil, `{"endpoint":"`+server.URL+`"}`)
	pass(t, to, `{}`, user)
	began := time.Now()
	require.NoError(t, to.Close())
	require.Less(t, time.Since(began), closeWithin+time.Second)
	require.EqualValues(t, 2, to.Stats().FailedSpans)
}

// TestRedirect keeps the headers from another server.
func TestRedirect(t *testing.T) {
	other := &store{}
	elsewhere := httptest.NewServer(other)
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "h"), []byte("Authorization: Bearer "+canary), 0o600))
	to, err := New(jsontext.Value(`{"endpoint":"`+server.URL+`","headers_file":"h"}`), folder, NewSink(), zap.NewNop())
	require.NoError(t, err)
	pass(t, to, `{}`, user)
	require.NoError(t, to.Close())
	require.Zero(t, other.count())
	require.EqualValues(t, 2, to.Stats().FailedSpans)
}

// TestUnencryptedHeaders warns of headers that others on the network can read.
func TestUnencryptedHeaders(t *testing.T) {
	for endpoint, want := range map[string]int{"http://collector.example": 1, "https://collector.example": 0, "http://127.0.0.1:1": 0, "http://[::1]:1": 0, "http://localhost": 0} {
		core, logs := observer.New(zapcore.DebugLevel)
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "h"), []byte("A: "+canary), 0o600))
		to, err := New(jsontext.Value(`{"endpoint":"`+endpoint+`","headers_file":"`+filepath.Join(folder, "h")+`"}`), "", NewSink(), zap.New(core))
		require.NoError(t, err)
		require.NoError(t, to.Close())
		require.Equal(t, want, logs.Len(), endpoint)
	}
}

// BenchmarkRecord is what a call pays.
func BenchmarkRecord(b *testing.B) {
	to, err := build(jsontext.Value(there), b.TempDir(), NewSink(), zap.NewNop(), &store{})
	require.NoError(b, err)
	defer to.Close()
	rec := decided(b, tool, `{"agent_id":"a","session_id":"s","turn_id":"u"}`, protocol.Result{Trail: make([]protocol.Step, 3)})
	b.ReportAllocs()
	for b.Loop() {
		to.Take(rec)
	}
}
