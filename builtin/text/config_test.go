package text

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/builtin"
)

func TestAllow(t *testing.T) {
	a, err := NewAllow("/allow", []string{"Alice@Example.com", "/@example\\.org$/", "１３８"})
	require.NoError(t, err)
	for value, want := range map[string]bool{
		"alice@example.com": true, "bob@example.com": false, "bob@example.org": true, "bob@example.org.cn": false, "138": true, "1380": false,
	} {
		require.Equal(t, want, a.Has(value), value)
	}
	require.True(t, a.Has("138 ", "138"), "one of its spellings")
	require.False(t, (&Allow{}).Has("x"))
	for text, want := range map[string]string{
		"":    "/allow/1: is empty",
		"//":  "/allow/1: the pattern // allows everything",
		"/(/": "/allow/1: bad regular expression /(/",
	} {
		_, err := NewAllow("/allow", []string{"x", text})
		require.ErrorContains(t, err, want)
	}
}

func TestKey(t *testing.T) {
	folder := t.TempDir()
	key := strings.Repeat("k", minKey)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "key"), []byte(key+"f\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "short"), []byte("short"), 0o600))
	t.Setenv("HOOKD_TEST_KEY", key+"e")
	t.Setenv("HOOKD_TEST_SHORT", "short")
	for _, c := range []struct {
		config   KeyConfig
		fallback string
		want     string
	}{
		{KeyConfig{HashKey: key + "c"}, "fallback", key + "c"},
		{KeyConfig{HashKeyEnv: "HOOKD_TEST_KEY"}, "fallback", key + "e"},
		{KeyConfig{HashKeyFile: "key"}, "fallback", key + "f"},
		{KeyConfig{HashKeyFile: filepath.Join(folder, "key")}, "", key + "f"},
		{KeyConfig{}, "fallback", "fallback"},
	} {
		require.NoError(t, c.config.Validate())
		got, err := c.config.Load(folder, []byte(c.fallback))
		require.NoError(t, err)
		require.Equal(t, c.want, string(got))
	}
	random, err := (&KeyConfig{}).Load(folder, nil)
	require.NoError(t, err)
	again, err := (&KeyConfig{}).Load(folder, nil)
	require.NoError(t, err)
	require.Len(t, random, 32)
	require.NotEqual(t, random, again)

	for _, c := range []struct {
		config        KeyConfig
		pointer, want string
	}{
		{KeyConfig{HashKeyEnv: "HOOKD_TEST_UNSET"}, "/hash_key_env", "the environment variable HOOKD_TEST_UNSET of hookd must hold a key"},
		{KeyConfig{HashKeyEnv: "HOOKD_TEST_SHORT"}, "/hash_key_env", "must hold a key of 16 bytes"},
		{KeyConfig{HashKeyFile: "missing"}, "/hash_key_file", "no such file"},
		{KeyConfig{HashKeyFile: "."}, "/hash_key_file", "is not a file"},
		{KeyConfig{HashKeyFile: "short"}, "/hash_key_file", "must hold a key of 16 bytes"},
	} {
		_, err := c.config.Load(folder, []byte("fallback"))
		place, ok := errors.AsType[*builtin.ConfigError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, c.pointer, place.Pointer)
		require.ErrorContains(t, err, c.want)
	}
	require.ErrorContains(t, (&KeyConfig{HashKey: "short"}).Validate(), "/hash_key: is too short")
	require.ErrorContains(t, (&KeyConfig{HashKey: key, HashKeyEnv: "X"}).Validate(), "give one of them")
}

func TestReadFileBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big")
	require.NoError(t, os.WriteFile(path, []byte("12345"), 0o600))
	_, err := ReadFile("", path, 4)
	require.ErrorContains(t, err, "has 5 bytes, 4 at most")
	data, err := ReadFile("", path, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(data))
}
