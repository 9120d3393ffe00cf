package metrics

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/protocol"
)

// TestFile wants a file that node_exporter reads, as often as the config says,
// and that goes with the hook.
func TestFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := NewMeter(Options{State: func() *State { return &State{} }}), t.TempDir()
		path := filepath.Join(dir, "hookd.prom")
		h, err := New(jsontext.Value(`{"file":"hookd.prom","file_seconds":20}`), dir, m, zap.NewNop())
		require.NoError(t, err)
		m.Take(call(t, protocol.StageStop, `{}`))
		time.Sleep(19 * time.Second)
		synctest.Wait()
		require.NoFileExists(t, path)
		time.Sleep(time.Second)
		synctest.Wait()
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		has(t, string(text), `hookd_calls_total{action="continue",agent="other",stage="stop"} 1`)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), info.Mode().Perm())

		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
		require.NoError(t, err)
		require.Contains(t, families, "hookd_go_goroutines")
		for name := range families { // those are node_exporter's own
			require.False(t, strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_"), name)
		}

		m.Take(call(t, protocol.StageStop, `{}`))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		text, err = os.ReadFile(path)
		require.NoError(t, err)
		has(t, string(text), `hookd_calls_total{action="continue",agent="other",stage="stop"} 2`)

		// A reload makes the next hook first, and takes the file over.
		next, err := New(jsontext.Value(`{"file":"hookd.prom","file_seconds":1}`), dir, m, zap.NewNop())
		require.NoError(t, err)
		require.NoError(t, h.Close())
		require.FileExists(t, path)
		time.Sleep(time.Second)
		synctest.Wait()
		require.NoError(t, next.Close())
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

// TestFileOfAnother wants a hook that is only tried to leave the file alone.
func TestFileOfAnother(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "hookd.prom")
	require.NoError(t, os.WriteFile(path, []byte("# HELP x x\n"), 0o640))
	h, err := New(jsontext.Value(`{"file":"hookd.prom"}`), dir, NewMeter(Options{}), zap.NewNop())
	require.NoError(t, err)
	require.NoError(t, h.Close())
	require.FileExists(t, path)
}

func TestFileThatCant(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("empty", "")
	write("config.json", `{"hooks":{}}`)
	write("short", "#")
	require.NoError(t, os.Symlink(filepath.Join(dir, "empty"), filepath.Join(dir, "link")))
	for name, want := range map[string]string{
		"empty": "", "new.prom": "", "none/new.prom": "its folder must exist and be writable", "link": "is not a file", ".": "is not a file",
		"config.json": "holds something else than metrics", "short": "holds something else than metrics",
	} {
		h, err := New(jsontext.Value(`{"file":`+string(protocol.Quote(name))+`}`), dir, NewMeter(Options{}), zap.NewNop())
		if want != "" {
			require.ErrorContains(t, err, "/file: ", name)
			require.ErrorContains(t, err, want, name)
			continue
		}
		require.NoError(t, err, name)
		require.NoError(t, h.Close())
	}
}

// TestFileFails wants one line when the file can't be written any more, and one
// when it can again.
func TestFileFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "metrics")
		require.NoError(t, os.Mkdir(dir, 0o700))
		core, logs := observer.New(zap.InfoLevel)
		h, err := New(jsontext.Value(`{"file":"a.prom","file_seconds":1}`), dir, NewMeter(Options{}), zap.New(core))
		require.NoError(t, err)
		require.NoError(t, os.Remove(dir))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.NoError(t, os.Mkdir(dir, 0o700))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, logs.FilterMessage("the file of metrics is not written; what is counted goes on").Len())
		require.Equal(t, 1, logs.FilterMessage("the file of metrics is written again").Len())
		require.NoError(t, h.Close())
	})
}
