package cli

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/protocol"
)

//go:embed starter
var starterFiles embed.FS

// starter is a first hook in some language.
type starter struct {
	language string
	needs    string   // the program without which it does not run
	File     string   // in starter/, and in the new folder
	Command  []string // what the config mounts
	Build    []string // makes that of the file; nil = it runs as it is
}

func starters() []starter {
	return []starter{
		{"python", "python3", "hook.py", []string{"python3", "hook.py"}, nil},
		{"node", "node", "hook.mjs", []string{"node", "hook.mjs"}, nil},
		{"go", "go", "hook/main.go", []string{"hook/hook"}, []string{"go", "build", "-o", "hook/hook", "hook/main.go"}},
		{"sh", "sh", "hook.sh", []string{"sh", "hook.sh"}, nil},
	}
}

func (a *app) initCommand() *cobra.Command {
	var languages []string
	for _, s := range starters() {
		languages = append(languages, s.language)
	}
	var language string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a config to start from, and a first hook",
		Long: `Writes a commented config.json, and config.schema.json by which an editor
completes and checks it, into DIR or the current folder. With --for it adds a
hook of a few lines that works at once. It asks nothing and overwrites nothing.

A config in ~/.config/hookd is found without --config.`,
		Example: `  hookd init
  hookd init --for python my-hooks    # or ` + strings.Join(languages, ", "),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd, "unexpected argument %q", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			if language == "" {
				return a.writeFirst(cmd.Context(), dir, nil)
			}
			i := slices.Index(languages, language)
			if i < 0 {
				return usage(cmd, "no first hook for %q%s; there is one for %s", language, protocol.DidYouMean(language, languages), strings.Join(languages, ", "))
			}
			return a.writeFirst(cmd.Context(), dir, &starters()[i])
		},
	}
	cmd.Flags().StringVar(&language, "for", "", "add a first hook in this language: "+strings.Join(languages, ", "))
	// It fails only for a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(languages, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// writeFirst writes the files, builds the hook, and says what comes next. first
// is nil for a config without a hook.
func (a *app) writeFirst(ctx context.Context, dir string, first *starter) error {
	files, err := firstFiles(first)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if _, err := os.Lstat(path); err == nil {
			return hint(fmt.Errorf("%s is there already, and nothing is overwritten", path), "Name another folder: %s init DIR", typed())
		}
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := writeNew(path, f.text); err != nil {
			return err
		}
		fmt.Fprintln(a.out, "wrote", path)
	}
	if first != nil {
		if err := a.prepare(ctx, dir, first); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, "config.json")
	check := typed() + " check " + shellWord(path)
	if first != nil {
		check = `echo '{"tool":"bash","arguments":{"command":"rm -rf build"}}' | ` + typed() + " check --call before_tool " + shellWord(path)
	}
	fmt.Fprintf(a.out, "\nNext:\n  %s\n  %s serve --config %s\n", check, typed(), shellWord(path))
	_, err = config.Load(path, nil) // the folder may be one that others can write
	return err
}

// shellWord returns s as a shell reads it back.
func shellWord(s string) string {
	if !strings.ContainsAny(s, " \t\n'\"\\`$&|;<>()*?[]{}#~!") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

type newFile struct {
	name string
	text []byte
}

func firstFiles(first *starter) ([]newFile, error) {
	t, err := template.ParseFS(starterFiles, "starter/config.json.tmpl")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, first); err != nil { // a nil starter is false
		return nil, err
	}
	files := []newFile{{"config.json", text.Bytes()}, {"config.schema.json", config.Schema()}}
	if first == nil {
		return files, nil
	}
	hook, err := fs.ReadFile(starterFiles, "starter/"+first.File)
	return append(files, newFile{first.File, hook}), err
}

// writeNew writes a file that must not be there yet, and its folder.
func writeNew(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// prepare builds the hook where it has to be built. A language that is missing
// is no error: it may come later.
func (a *app) prepare(ctx context.Context, dir string, first *starter) error {
	if _, err := child.Resolve(first.needs, ""); err != nil {
		fmt.Fprintf(a.err, "%s: %s is not installed; the hook does not run without it\n", a.paint(a.err, yellow, "warning"), first.needs)
		return nil
	}
	if first.Build == nil {
		return nil
	}
	env := map[string]string{} // all of one's own: this is no hook, but a tool of the user
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	spawner := child.NewSpawner()
	defer spawner.Close()
	p, err := spawner.Start(ctx, child.Spec{Argv: first.Build, Dir: dir, Env: env})
	if err != nil {
		return err
	}
	defer p.Stdout().Close()
	p.Stdin().Close()
	<-p.Done()
	if exit := p.Exit(); exit != (child.Exit{}) {
		return fmt.Errorf("%s: %s\n%s", strings.Join(first.Build, " "), exit, indent(strings.Join(p.StderrTail(), "\n")))
	}
	fmt.Fprintln(a.out, "built", filepath.Join(dir, first.Command[0]), "with", strings.Join(first.Build, " "))
	return nil
}
