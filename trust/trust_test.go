package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestStates(t *testing.T) {
	dir := t.TempDir()
	s := &Store{Path: filepath.Join(dir, "state", "trusted.json")}
	script, later := write(t, filepath.Join(dir, "p/check.py"), "1"), filepath.Join(dir, "p/later.py")
	file, content := filepath.Join(dir, "p/hooks.json"), []byte(`{}`)
	files := []string{script, later}
	check := func(want State, why string, content []byte) {
		t.Helper()
		state, text, err := s.State(file, content, files)
		require.NoError(t, err)
		require.Equal(t, want, state, text)
		require.Contains(t, text, why)
	}
	check(Never, "", content)
	g, err := s.Trust(file, content, files)
	require.NoError(t, err)
	require.Equal(t, map[string]string{script: Hash([]byte("1"))}, g.Files)
	check(Trusted, "", content)
	check(Changed, "is not what was trusted", []byte(`{ }`))
	write(t, script, "2")
	check(Changed, "check.py has changed", content)
	write(t, script, "1")
	check(Trusted, "", content)
	write(t, later, "new")
	check(Changed, "later.py was not there", content)
	require.NoError(t, os.Remove(later))
	require.NoError(t, os.Remove(script))
	check(Changed, "check.py can't be read any more", content)

	info, err := os.Stat(s.Path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	had, err := s.Forget(file)
	require.NoError(t, err)
	require.True(t, had)
	check(Never, "", content)
	had, err = s.Forget(file)
	require.NoError(t, err)
	require.False(t, had)
}

func TestListThatCannotBeBelieved(t *testing.T) {
	dir := t.TempDir()
	s := &Store{Path: filepath.Join(dir, "trusted.json")}
	_, err := s.Trust("/p", []byte("x"), nil)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(s.Path, 0o666))
	state, _, err := s.State("/p", []byte("x"), nil)
	require.ErrorIs(t, err, ErrUnsafe)
	require.Equal(t, Never, state)
	require.NoError(t, os.Chmod(s.Path, 0o600))
	for _, text := range []string{"{", `{"version":2}`, `{"version":1,"grants":[],"more":1}`, `{"version":1,"grants":[{"path":"/p","path":"/q"}]}`} {
		require.NoError(t, os.WriteFile(s.Path, []byte(text), 0o600))
		_, err := s.Grants()
		require.Error(t, err, text)
	}
	require.NoError(t, os.Remove(s.Path))
	require.NoError(t, os.Symlink(write(t, filepath.Join(dir, "elsewhere"), `{"version":1,"grants":[]}`), s.Path))
	_, err = s.Grants()
	require.Error(t, err, "a link")

	var none *Store
	grants, err := none.Grants()
	require.NoError(t, err)
	require.Empty(t, grants)
}

func TestGrantsAtTheSameTime(t *testing.T) {
	s := &Store{Path: filepath.Join(t.TempDir(), "trusted.json")}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			_, err := s.Trust(strings.Repeat("/p", i+1), nil, nil)
			require.NoError(t, err)
		})
	}
	all.Wait()
	grants, err := s.Grants()
	require.NoError(t, err)
	require.Len(t, grants, 20)
}

func TestOpen(t *testing.T) {
	project := t.TempDir()
	const rel = ".hookd/hooks.json"
	_, _, err := Open(project, rel)
	require.ErrorIs(t, err, fs.ErrNotExist)
	write(t, filepath.Join(project, rel), "{}")
	path, content, err := Open(project, rel)
	require.NoError(t, err)
	require.Equal(t, "{}", string(content))
	require.True(t, filepath.IsAbs(path))

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(project, link))
	same, _, err := Open(link, rel)
	require.NoError(t, err, "the project itself may be a link")
	require.Equal(t, path, same)

	for name, make := range map[string]func(p string){
		"link":        func(p string) { require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(p, rel))) },
		"pipe":        func(p string) { require.NoError(t, syscall.Mkfifo(filepath.Join(p, rel), 0o600)) },
		"folder":      func(p string) { require.NoError(t, os.Mkdir(filepath.Join(p, rel), 0o700)) },
		"too large":   func(p string) { write(t, filepath.Join(p, rel), strings.Repeat(" ", MaxFileBytes+1)) },
		"linked path": func(p string) {},
	} {
		t.Run(name, func(t *testing.T) {
			p := t.TempDir()
			if name == "linked path" {
				require.NoError(t, os.Symlink(filepath.Join(project, ".hookd"), filepath.Join(p, ".hookd")))
			} else {
				require.NoError(t, os.Mkdir(filepath.Join(p, ".hookd"), 0o700))
			}
			make(p)
			_, _, err := Open(p, rel)
			require.Error(t, err)
			require.False(t, errors.Is(err, fs.ErrNotExist), "%v", err)
		})
	}
	_, _, err = Open(project, "../x")
	require.Error(t, err)
}
