package text

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookd/hookd/builtin"
)

// minKey is how many bytes a key has at least.
const minKey = 16

// KeyConfig says where the key of hashes comes from, as a part of a built-in's
// config. At most one of its members is set.
type KeyConfig struct {
	// HashKey is the key itself.
	HashKey string `json:"hash_key"`
	// HashKeyEnv names an environment variable of hookd that holds the key.
	HashKeyEnv string `json:"hash_key_env"`
	// HashKeyFile is the path of a file that holds the key; a relative one starts
	// at the config's folder.
	HashKeyFile string `json:"hash_key_file"`
}

// Validate reports what is wrong with it without opening anything. The error is
// a *[builtin.ConfigError].
func (c *KeyConfig) Validate() error {
	set := 0
	for _, s := range []string{c.HashKey, c.HashKeyEnv, c.HashKeyFile} {
		if s != "" {
			set++
		}
	}
	if set > 1 {
		return &builtin.ConfigError{Err: errors.New("hash_key, hash_key_env and hash_key_file: give one of them")}
	}
	if c.HashKey != "" && len(c.HashKey) < minKey {
		return &builtin.ConfigError{Pointer: "/hash_key", Err: fmt.Errorf("is too short to keep a secret: %d bytes at least", minKey)}
	}
	return nil
}

// Given reports whether the config names a key.
func (c *KeyConfig) Given() bool { return *c != KeyConfig{} }

// Load returns the key that the config names, else fallback, else a random one.
// The error is a *[builtin.ConfigError] and never holds the key.
func (c *KeyConfig) Load(folder string, fallback []byte) ([]byte, error) {
	fail := func(pointer, format string, args ...any) ([]byte, error) {
		return nil, &builtin.ConfigError{Pointer: pointer, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case c.HashKey != "":
		return []byte(c.HashKey), nil
	case c.HashKeyEnv != "":
		key := os.Getenv(c.HashKeyEnv)
		if len(key) < minKey {
			return fail("/hash_key_env", "the environment variable %s of hookd must hold a key of %d bytes at least", c.HashKeyEnv, minKey)
		}
		return []byte(key), nil
	case c.HashKeyFile != "":
		data, err := ReadFile(folder, c.HashKeyFile, maxKeyFile)
		if err != nil {
			return fail("/hash_key_file", "%w", err)
		}
		if data = bytes.TrimSpace(data); len(data) < minKey {
			return fail("/hash_key_file", "%s must hold a key of %d bytes at least", c.HashKeyFile, minKey)
		}
		return data, nil
	case len(fallback) > 0:
		return fallback, nil
	}
	return NewKey(), nil
}

const maxKeyFile = 64 << 10

// NewKey returns a random key.
func NewKey() []byte {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return key
}

// ReadFile reads a file that a config names; a relative path starts at folder.
// A file of more than most bytes, and what is no file, is an error.
func ReadFile(folder, path string, most int64) ([]byte, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Size() > most:
		return nil, fmt.Errorf("%s has %d bytes, %d at most", path, info.Size(), most)
	}
	return os.ReadFile(path)
}
