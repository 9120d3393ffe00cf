package pii

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/protocol"
)

// PII is an interceptor that keeps personal data from passing. Make it with
// [New]; it needs no closing.
type PII struct {
	scrubber text.Scrubber
}

// New makes a PII. folder is where a relative hash_key_file starts. key is used
// for hashes when config names none; when it is empty too, a random one is made,
// and hashes of the same value differ from hook to hook and from start to start.
// The error is a *[builtin.ConfigError].
func New(config jsontext.Value, folder string, key []byte, log *zap.Logger) (*PII, error) {
	f, err := newFinder(config)
	if err != nil {
		return nil, err
	}
	if key, err = f.config.Load(folder, key); err != nil {
		return nil, err
	}
	if !f.config.Given() && slices.Contains(f.with[:], text.Hash) {
		log.Info("no hash_key is configured: the hashes of personal data are others after a restart")
	}
	return &PII{text.Scrubber{Finder: f, Key: key}}, nil
}

// Stages are where a PII is asked.
func (*PII) Stages() []protocol.Stage {
	return []protocol.Stage{protocol.StageUserMessage, protocol.StageBeforeLLM, protocol.StageAfterTool, protocol.StageOutput}
}

// Quick marks that a PII waits for nothing: it reads each byte a few times.
func (*PII) Quick() {}

// Intercept denies what is blocked and replaces the rest.
func (p *PII) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	return p.scrubber.Judge(ctx, req)
}
