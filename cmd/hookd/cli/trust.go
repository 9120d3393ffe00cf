package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/commands"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/trust"
)

func (a *app) trustCommand() *cobra.Command {
	var file string
	var list, forget, asJSON bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Trust the hook files of a project, as they are now",
		Long: `Records the hook files below DIR (default: the current folder), such as
.hookd/hooks.json, and every file that their commands name, by their hashes. hookd
runs them for agents that work in that folder from then on, until one of them
changes: what it would have judged is denied then, until you have looked again.

What is trusted is printed. A project's hooks can deny, ask and add context;
they can't allow or change anything.`,
		Example: "  hookd trust\n  hookd trust ~/src/app\n  hookd trust --list\n  hookd trust --forget ~/src/app",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := daemon.TrustList(a.getenv)
			if path == "" {
				return errors.New("no folder for hookd's state is known: set HOME or XDG_STATE_HOME")
			}
			store := &trust.Store{Path: path}
			if list {
				return a.trusted(store, asJSON)
			}
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			paths, err := a.projectPaths(file)
			if err != nil {
				return err
			}
			return a.trust(store, dir, paths, forget)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "the config file, which may name other files (default: as serve finds it)")
	f.BoolVar(&list, "list", false, "print what is trusted")
	f.BoolVar(&forget, "forget", false, "take the trust away")
	f.BoolVar(&asJSON, "json", false, "with --list: print JSON")
	return cmd
}

// projectPaths are the files of a project that the config names.
func (a *app) projectPaths(file string) ([]string, error) {
	path, err := config.Find(file, a.getenv)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return config.Default().Layers.Project, nil
	}
	c, err := config.Load(path, nil)
	if err != nil {
		return nil, err
	}
	return c.Layers.Project, nil
}

func (a *app) trusted(store *trust.Store, asJSON bool) error {
	grants, err := store.Grants()
	if err != nil {
		return err
	}
	if grants == nil {
		grants = []trust.Grant{}
	}
	return a.show(asJSON, grants, func(w io.Writer) error {
		for _, g := range grants {
			fmt.Fprintf(w, "%s  since %s, with %d files that it names\n", g.Path, g.At.Format(time.DateOnly), len(g.Files))
		}
		return nil
	})
}

func (a *app) trust(store *trust.Store, dir string, paths []string, forget bool) error {
	done := 0
	for _, rel := range paths {
		path, content, err := trust.Open(dir, rel)
		if forget {
			had, err := store.Forget(path)
			if err != nil {
				return err
			}
			if had {
				done++
				fmt.Fprintf(a.out, "%s is not trusted any more\n", path)
			}
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("trust: %w", err)
		}
		f, err := commands.Parse(path, content)
		if err != nil {
			return err
		}
		grant, err := store.Trust(path, content, f.Names())
		if err != nil {
			return err
		}
		done++
		a.printGrant(f, grant)
	}
	if done == 0 {
		abs, err := filepath.Abs(dir)
		if err != nil {
			abs = dir
		}
		return hint(fmt.Errorf("%s has no hook file", abs), "hookd looks for: %q", paths)
	}
	return nil
}

func (a *app) printGrant(f *commands.File, g trust.Grant) {
	fmt.Fprintf(a.out, "%s\n", g.Path)
	for _, r := range f.Hooks(hook.LayerProject, 0, nil) {
		fmt.Fprintf(a.out, "  %s\n", r.Name)
	}
	for name, sum := range g.Files {
		fmt.Fprintf(a.out, "  names %s (%.12s…)\n", name, sum)
	}
	for _, r := range f.Rules {
		for i := range r.Handlers {
			if f.Opaque(&r.Handlers[i]) {
				fmt.Fprintf(a.err, "warning: %s/%s: not all that %q runs can be told from its text; all files beside the hook file are compared, others are not\n", r.Event, r.Name, r.Handlers[i].Command)
			}
		}
	}
	fmt.Fprintln(a.out, "  is trusted as it is now")
	for _, w := range f.Warnings {
		fmt.Fprintf(a.err, "warning: %s\n", w)
	}
	if info, err := os.Stat(g.Path); err == nil && info.Mode().Perm()&0o022 != 0 {
		fmt.Fprintf(a.err, "warning: others can change %s; when they do, hookd denies what it judges\n", g.Path)
	}
}
