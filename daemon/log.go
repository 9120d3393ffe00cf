package daemon

import (
	"bytes"
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/hookd/hookd/builtin/secrets"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/config"
)

// newLogger writes to stderr: JSON for machines, lines for people. Nothing is
// sampled, so that no failure of a hook goes missing. Hooks and agents choose
// some of the words, so each line is searched for secrets before it is written.
func newLogger(c config.Log, level zap.AtomicLevel, stderr io.Writer) (*zap.Logger, error) {
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	enc.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(enc)
	if c.Format == "console" {
		encoder = zapcore.NewConsoleEncoder(enc)
	}
	s, err := secrets.New(nil, "", nil, zap.NewNop())
	if err != nil {
		return nil, fmt.Errorf("mask of the log: %w", err)
	}
	out := &maskedWriter{stderr, text.Masker(s.Scrubber())}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), level)).Named("hookd"), nil
}

// maskedWriter masks what is written. Each Write is one line.
type maskedWriter struct {
	w    io.Writer
	mask func([]byte) []byte
}

func (m *maskedWriter) Write(line []byte) (int, error) {
	bare, end := bytes.CutSuffix(line, []byte{'\n'})
	out := m.mask(bytes.Clone(bare)) // zap uses its buffer again
	if end {
		out = append(bytes.Clone(out), '\n')
	}
	if _, err := m.w.Write(out); err != nil {
		return 0, err
	}
	return len(line), nil
}
