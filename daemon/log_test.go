package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hookd/hookd/config"
)

// What hooks and agents say gets into the log, and their secrets don't.
func TestSecretsDoNotReachTheLog(t *testing.T) {
	t.Parallel()
	const secret = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
	for _, format := range []string{"json", "console"} {
		var out bytes.Buffer
		log, err := newLogger(config.Log{Format: format}, zap.NewAtomicLevel(), &out)
		require.NoError(t, err)
		log.Warn("hook warns", zap.String("warning", "the token is "+secret), zap.Strings("tail", []string{"a", secret}),
			zap.Error(errors.New("it printed "+secret)), zap.ByteString("line", []byte("export TOKEN="+secret)), zap.Int("pid", 4711))
		log.Info("says "+secret, zap.String("path", "/run/user/1000/hookd.sock"))
		require.NotContains(t, out.String(), secret[4:])
		require.NotContains(t, out.String(), secret[:12])
		require.Contains(t, out.String(), "/run/user/1000/hookd.sock")
		require.Contains(t, out.String(), "4711")
		require.Equal(t, 2, bytes.Count(out.Bytes(), []byte("\n")))
		if format == "json" {
			for line := range bytes.Lines(out.Bytes()) {
				require.True(t, json.Valid(line), "%s", line)
			}
		}
	}
}

func BenchmarkLogLine(b *testing.B) {
	log, err := newLogger(config.Log{Format: "json"}, zap.NewAtomicLevel(), &bytes.Buffer{})
	require.NoError(b, err)
	for b.Loop() {
		log.Warn("hook failed", zap.String("hook", "gate"), zap.String("stage", "before_tool"), zap.String("outcome", "timeout"), zap.String("detail", "no answer within 5s"))
	}
}
