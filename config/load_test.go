package config

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// safeDir makes a folder that nobody else can write to, whatever the umask.
func safeDir(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestLoad(t *testing.T) {
	path := write(t, filepath.Join(safeDir(t), "config.json"), `{"log": {"level": "warn"}}`)
	c, err := Load(path, nil)
	require.NoError(t, err)
	require.Equal(t, path, c.Path)
	require.Equal(t, hash([]byte(`{"log": {"level": "warn"}}`)), c.SHA256)
	require.Equal(t, "warn", c.Log.Level)

	write(t, path, `{"log": {"level": "warm"}}`)
	_, err = Load(path, nil)
	require.EqualError(t, err, path+`:1:19: log.level: unknown value "warm" (did you mean "warn"?)`)

	write(t, path, `{"log": {}`+string(make([]byte, maxFileBytes)))
	_, err = Load(path, nil)
	require.EqualError(t, err, path+": the file is larger than 1 MiB")
}

func TestLoadWhatIsNoFile(t *testing.T) {
	dir := safeDir(t)
	missing := filepath.Join(dir, "missing.json")
	_, err := Load(missing, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	var load *LoadError
	require.ErrorAs(t, err, &load)

	link := filepath.Join(dir, "link.json")
	require.NoError(t, os.Symlink(missing, link))
	_, err = Load(link, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "missing.json")

	_, err = Load(dir, nil)
	require.ErrorContains(t, err, "is not a regular file")

	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = Load(pipe, nil) // must not wait for a writer
	require.ErrorContains(t, err, "is not a regular file")
}

// Relative paths start where the file is named, not where a link leads.
func TestRelativePathsAndLinks(t *testing.T) {
	named, held := safeDir(t), safeDir(t)
	write(t, filepath.Join(held, "v1.json"), `{"socket": {"path": "s.sock"}, "hooks": {"processes": {"a": {"command": ["./a"], "observe": ["*"]}}}}`)
	link := filepath.Join(named, "config.json")
	require.NoError(t, os.Symlink(filepath.Join(held, "v1.json"), link))
	c, err := Load(link, nil)
	require.NoError(t, err)
	require.Equal(t, named+"/s.sock", c.Socket.Path)
	require.Equal(t, named, c.Hooks.Entries[0].Dir)
	require.Equal(t, named+"/a", c.Hooks.Entries[0].Command[0])

	t.Chdir(named)
	c, err = Load("config.json", nil)
	require.NoError(t, err)
	require.Equal(t, named, c.Hooks.Entries[0].Dir)
}

func TestOthersCanWrite(t *testing.T) {
	dir := safeDir(t)
	held := filepath.Join(dir, "the real folder")
	require.NoError(t, os.Mkdir(held, 0o700))
	file := write(t, filepath.Join(held, "config.json"), `{}`)
	link := filepath.Join(dir, "link.json")
	require.NoError(t, os.Symlink(file, link))

	require.NoError(t, os.Chmod(file, 0o664))
	require.NoError(t, os.Chmod(held, 0o707))
	_, err := Load(link, nil)
	require.EqualError(t, err, fmt.Sprintf(`%[1]s: %[2]s can be written by group or others (mode 0664); run: chmod go-w '%[2]s'
%[1]s: %[3]s can be written by group or others (mode 0707); run: chmod go-w '%[3]s'`, link, file, held))

	// Folders further up, also the one of the link, are not checked.
	require.NoError(t, os.Chmod(file, 0o644))
	require.NoError(t, os.Chmod(held, 0o755))
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err = Load(link, nil)
	require.NoError(t, err)
}

func TestDistrust(t *testing.T) {
	for _, tt := range []struct {
		mode        fs.FileMode
		owner, self int
		want        []string
	}{
		{0o600, 1000, 1000, nil},
		{0o755, 0, 1000, nil},
		{0o644, 0, 0, nil},
		{0o600, 1001, 1000, []string{"/a/it's belongs to user 1001, neither to hookd's user (1000) nor to root; run: chown 1000 '/a/it'\\''s'"}},
		{0o600, 1000, 0, []string{"/a/it's belongs to user 1000, neither to hookd's user (0) nor to root; run: chown 0 '/a/it'\\''s'"}},
		{0o620, 0, 0, []string{"/a/it's can be written by group or others (mode 0620); run: chmod go-w '/a/it'\\''s'"}},
		{0o777 | fs.ModeSticky, 0, 1000, []string{"/a/it's is a folder for everybody (mode 0777); put the config into a folder of your own"}},
		{0o666, 7, 8, []string{
			"/a/it's belongs to user 7, neither to hookd's user (8) nor to root; run: chown 8 '/a/it'\\''s'",
			"/a/it's can be written by group or others (mode 0666); run: chmod go-w '/a/it'\\''s'",
		}},
	} {
		require.Equal(t, tt.want, distrustOf("/a/it's", tt.mode, tt.owner, tt.self))
	}
}

// While somebody keeps exchanging the file for one that is not to be trusted,
// nothing of that one is ever loaded.
func TestExchangeBetweenCheckAndRead(t *testing.T) {
	dir := safeDir(t)
	path, next := filepath.Join(dir, "config.json"), filepath.Join(dir, "next")
	write(t, path, `{"log": {"level": "info"}}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			for i := 0; ctx.Err() == nil; i++ {
				text, mode := `{"log": {"level": "info"}}`, fs.FileMode(0o600)
				if i%2 == 0 {
					text, mode = `{"log": {"level": "debug"}}`, 0o666
				}
				if err := os.WriteFile(next, []byte(text), mode); err != nil {
					return err
				}
				if err := os.Chmod(next, mode); err != nil {
					return err
				}
				if err := os.Rename(next, path); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	good, refused := 0, 0
	for began := time.Now(); time.Since(began) < time.Second || good == 0 || refused == 0; {
		c, err := Load(path, nil)
		if err != nil {
			refused++
			continue
		}
		good++
		require.Equal(t, "info", c.Log.Level)
	}
	cancel()
	require.NoError(t, <-done)
}

func TestFind(t *testing.T) {
	dir := safeDir(t)
	xdg, home, system := filepath.Join(dir, "xdg"), filepath.Join(dir, "home"), filepath.Join(dir, "etc", "config.json")
	var inXDG, inHome = filepath.Join(xdg, "hookd", "config.json"), filepath.Join(home, ".config", "hookd", "config.json")
	env := map[string]string{"XDG_CONFIG_HOME": xdg, "HOME": home}
	look := func(flag string) (string, error) { return find(flag, func(k string) string { return env[k] }, system) }
	must := func(want string) {
		t.Helper()
		got, err := look("")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	put := func(path string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		write(t, path, `{}`)
	}
	must("")
	put(system)
	must(system)
	put(inHome)
	must(system)
	env["XDG_CONFIG_HOME"] = ""
	must(inHome)
	env["XDG_CONFIG_HOME"] = "relative/is/ignored"
	must(inHome)
	env["XDG_CONFIG_HOME"] = xdg
	put(inXDG)
	must(inXDG)

	// A link that leads nowhere is not passed over.
	require.NoError(t, os.Remove(inXDG))
	require.NoError(t, os.Symlink("nowhere", inXDG))
	must(inXDG)

	env["HOOKD_CONFIG"] = filepath.Join(dir, "named.json")
	_, err := look("")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "HOOKD_CONFIG")
	put(env["HOOKD_CONFIG"])
	must(env["HOOKD_CONFIG"])

	_, err = look(filepath.Join(dir, "flag.json"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "--config")
	got, err := look(system)
	require.NoError(t, err)
	require.Equal(t, system, got)

	// With neither variable there is only the system's.
	env = map[string]string{}
	must(system)
}
