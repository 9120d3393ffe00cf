package pii

import (
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/secrets"
	"github.com/hookd/hookd/builtin/text"
)

// Masker returns a function for what is about to be written to disk: it replaces
// personal data and secrets in a value of JSON, or in a text. The configs are
// those of a [PII] and of a [secrets.Secrets]; nil means their defaults. What
// they block is replaced by a label. folder and key are as in [New]. Errors are
// *[builtin.ConfigError].
//
// The function is safe for concurrent use; it does not change its argument and
// may return it. JSON stays valid JSON, in which a number can become a string.
func Masker(pii, secret jsontext.Value, folder string, key []byte) (func(text []byte) []byte, error) {
	s, err := secrets.New(secret, folder, key, zap.NewNop())
	if err != nil {
		return nil, err
	}
	p, err := New(pii, folder, key, zap.NewNop())
	if err != nil {
		return nil, err
	}
	return text.Masker(s.Scrubber(), &p.scrubber), nil
}
