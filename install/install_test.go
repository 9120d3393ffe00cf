package install_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/install"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

// TestGolden installs into the files in testdata/golden: those named in/ are
// there before, those named out/ after. Installing again changes nothing, and
// uninstalling gives the same bytes as before.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/golden/*.txtar")
	require.NoError(t, err)
	tested := map[string]bool{}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		agent, _, _ := strings.Cut(name, "-")
		tested[agent] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, path, agent)
		})
	}
	for _, agent := range install.Agents() {
		require.True(t, tested[agent], "nothing in testdata/golden is for %s", agent)
	}
}

func golden(t *testing.T, path, agent string) {
	archive, err := txtar.ParseFile(path)
	require.NoError(t, err)
	m := newMachine(t)
	o := options(agent)
	comment := string(archive.Comment)
	if strings.Contains(comment, "scope: project") {
		o.Scope = install.Project
	}
	if strings.Contains(comment, "approve") {
		o.Approve, o.OnUnavailable, o.Autostart, o.Socket, o.Timeout = true, "ask", true, "/run/hookd/s.sock", 90*time.Second
	}
	before := map[string]string{}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "in/"); ok {
			before[name] = string(f.Data)
			m.write(name, string(f.Data))
		}
	}
	plan := m.install(o)
	require.NotEmpty(t, plan.Changes)
	require.NotEmpty(t, plan.Diff())
	after := withoutBackups(m.files())
	for name := range before {
		if before[name] != after[name] {
			require.Equal(t, before[name], m.files()[name+".hookd-backup"], "the copy of %s", name)
		}
	}
	if *update {
		writeGolden(t, path, archive, after)
	} else {
		want := map[string]string{}
		for _, f := range archive.Files {
			if name, ok := strings.CutPrefix(f.Name, "out/"); ok {
				want[name] = string(f.Data)
			}
		}
		for name, text := range after {
			require.Equal(t, want[name], text, name)
		}
		require.Len(t, after, len(want))
	}

	again := m.install(o)
	require.Empty(t, again.Changes, "the second time")
	require.Empty(t, again.Diff())

	m.uninstall(agent, o.Scope)
	require.Equal(t, before, m.files())
	require.Empty(t, m.uninstall(agent, o.Scope).Changes)
}

func writeGolden(t *testing.T, path string, archive *txtar.Archive, after map[string]string) {
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "out/") })
	var names []string
	for name := range after {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		archive.Files = append(archive.Files, txtar.File{Name: "out/" + name, Data: []byte(after[name])})
	}
	require.NoError(t, os.WriteFile(path, txtar.Format(archive), 0o644))
}

// Without any file an agent gets its own, and nothing of it is left behind.
func TestCreated(t *testing.T) {
	for _, agent := range install.Agents() {
		for _, scope := range []install.Scope{install.User, install.Project} {
			t.Run(agent+" "+string(scope), func(t *testing.T) {
				t.Parallel()
				m := newMachine(t)
				for _, dir := range []string{".config", "Documents"} { // which are there on most machines
					require.NoError(t, os.Mkdir(m.path(dir), 0o755))
				}
				folders := m.folders()
				o := options(agent)
				o.Scope = scope
				plan, err := install.Install(m.place, o)
				if (agent == "kimi" || agent == "hermes") && scope == install.Project {
					require.ErrorContains(t, err, " has no hooks for a project, only for a user")
					return
				}
				require.NoError(t, err)
				require.NoError(t, plan.Apply())
				files := m.files()
				require.NotEmpty(t, files)
				for name, text := range files {
					require.Equal(t, scope == install.Project, strings.HasPrefix(name, "project/"), name)
					require.True(t, strings.HasSuffix(text, "\n"), name)
				}
				require.Empty(t, m.install(o).Changes)
				m.uninstall(agent, scope)
				require.Empty(t, m.files())
				require.Equal(t, folders, m.folders(), "install made them")
			})
		}
	}
}

// Folders that hold something else, and those around every agent's, stay.
func TestFoldersStay(t *testing.T) {
	for _, agent := range install.Agents() {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			plan := m.install(options(agent))
			for _, c := range plan.Changes {
				require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(c.Path), "mine"), nil, 0o600))
			}
			with := m.folders()
			m.uninstall(agent, install.User)
			require.Equal(t, with, m.folders())
			for name := range m.files() {
				require.Equal(t, "mine", filepath.Base(name))
			}
		})
	}
}

// A link in the way is the user's.
func TestLinkedFolderStays(t *testing.T) {
	m := newMachine(t)
	real := t.TempDir()
	require.NoError(t, os.Mkdir(m.path(".config"), 0o755))
	require.NoError(t, os.Symlink(real, m.path(".config/crush")))
	m.install(options("crush"))
	require.FileExists(t, filepath.Join(real, "crush.json"))
	m.uninstall("crush", install.User)
	require.NoFileExists(t, filepath.Join(real, "crush.json"))
	info, err := os.Lstat(m.path(".config/crush"))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
}

// A program that moved, another timeout and fewer events change the entries that
// are there, and nothing else.
func TestUpdate(t *testing.T) {
	for _, agent := range install.Agents() {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			old := options(agent)
			old.Program.Argv = []string{"/old place/hookd", "hook"}
			old.Timeout = 7 * time.Second
			all := m.install(old).Events

			o := options(agent)
			m.install(o)
			updated := m.files()
			fresh := newMachine(t)
			fresh.install(o)
			require.Equal(t, fresh.files(), updated)

			o.Events = all[:1]
			require.Equal(t, all[:1], m.install(o).Events)
			fresh = newMachine(t)
			fresh.install(o)
			require.Equal(t, fresh.files(), m.files())
			m.uninstall(agent, install.User)
			require.Empty(t, m.files())
		})
	}
}
