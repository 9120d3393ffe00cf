package install_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/install"
)

// program is what agents are told to run in these tests. Nothing runs it.
const program = "/opt/hookd/bin/hookd-hook"

// machine is a home and a project in a folder of the test's own.
type machine struct {
	t     *testing.T
	place install.Place
	env   map[string]string
}

func newMachine(t *testing.T) *machine {
	dir := t.TempDir()
	m := &machine{t: t, env: map[string]string{}}
	m.place = install.Place{
		Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project"), Root: filepath.Join(dir, "system"),
		Getenv: func(name string) string { return m.env[name] },
	}
	require.NoError(t, os.MkdirAll(m.place.Home, 0o755))
	require.NoError(t, os.MkdirAll(m.place.Project, 0o755))
	return m
}

// write puts a file below the home; a path that begins with "project/" is one of
// the project.
func (m *machine) write(path, text string) string {
	path = m.path(path)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(m.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func (m *machine) path(path string) string {
	if rest, ok := strings.CutPrefix(path, "project/"); ok {
		return filepath.Join(m.place.Project, rest)
	}
	return filepath.Join(m.place.Home, path)
}

func (m *machine) read(path string) string {
	text, err := os.ReadFile(m.path(path))
	require.NoError(m.t, err)
	return string(text)
}

// files returns all files below the home and the project with their content.
func (m *machine) files() map[string]string {
	found := map[string]string{}
	for prefix, root := range map[string]string{"": m.place.Home, "project/": m.place.Project} {
		require.NoError(m.t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			name, _ := filepath.Rel(root, path)
			found[prefix+name] = string(text)
			return err
		}))
	}
	return found
}

// folders returns all folders.
func (m *machine) folders() []string {
	var found []string
	for _, root := range []string{m.place.Home, m.place.Project} {
		require.NoError(m.t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				found = append(found, path)
			}
			return err
		}))
	}
	return found
}

func options(agent string) install.Options {
	return install.Options{Agent: agent, Scope: install.User, Program: install.Program{Argv: []string{program}}}
}

// install installs and returns what was done.
func (m *machine) install(o install.Options) *install.Plan {
	plan, err := install.Install(m.place, o)
	require.NoError(m.t, err)
	require.NoError(m.t, plan.Apply())
	return plan
}

func (m *machine) uninstall(agent string, scope install.Scope) *install.Plan {
	plan, err := install.Uninstall(m.place, agent, scope)
	require.NoError(m.t, err)
	require.NoError(m.t, plan.Apply())
	return plan
}

// withoutBackups drops the copies that hookd keeps.
func withoutBackups(files map[string]string) map[string]string {
	rest := map[string]string{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".hookd-backup") {
			rest[name] = text
		}
	}
	return rest
}
