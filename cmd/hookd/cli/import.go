package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/tailscale/hujson"

	"github.com/hookd/hookd/commands"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

func (a *app) importCommand() *cobra.Command {
	var from, to string
	var strict bool
	cmd := &cobra.Command{
		Use:   "import claude",
		Short: "Take over the hook scripts of Claude Code's settings",
		Long: `Reads the hooks of a settings.json of Claude Code and writes them as a hooks.json
that hookd runs for every agent, with the same rules for exit status and output.
Entries that call hookd itself are left out, and with a warning those that hookd
can't run, such as prompts. Comments and trailing commas are fine. The settings stay as they are: when
you install hookd as Claude Code's hook, remove the old entries there, or the
scripts run twice.

Without --to the file goes to standard output.`,
		Example: `  hookd import claude
  hookd import claude --from .claude/settings.json --to ~/.config/hookd/hooks.json`,
		Args: oneArg("claude"), ValidArgs: []string{"claude"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "claude" {
				return usage(cmd, "unknown source %q: claude", args[0])
			}
			if from == "" {
				from = filepath.Join(a.getenv("HOME"), ".claude", "settings.json")
			}
			return a.importClaude(from, to, strict)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the settings (default ~/.claude/settings.json)")
	cmd.Flags().StringVar(&to, "to", "", "the file to write, which must not exist")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail, and write nothing, when a hook can't be taken over")
	return cmd
}

func (a *app) importClaude(from, to string, strict bool) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	// People keep comments and trailing commas in it. Offsets stay as they are.
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	if plain, err := hujson.Standardize(append(bytes.Clone(content), '\n')); err == nil {
		content = plain
	}
	root, err := protocol.DecodeObject(content, 0)
	if err != nil {
		_, err := commands.Parse(from, content) // which says where
		return cmp.Or(err, fmt.Errorf("import %s: it can't be read", from))
	}
	if root.Get("hooks") == nil {
		if _, err := commands.Parse(from, content); err != nil { // a name that is almost it
			return err
		}
		return fmt.Errorf("import: %s has no hooks", from)
	}
	i := importer{path: from}
	kept, err := i.events(root.Get("hooks"))
	if err != nil {
		return fmt.Errorf("import %s: %w", from, err)
	}
	taken := protocol.Object{}
	if v := root.Get("disableAllHooks"); v != nil {
		taken = append(taken, protocol.Member{Name: "disableAllHooks", Value: v})
	}
	text := jsontext.Value(append(taken, protocol.Member{Name: "hooks", Value: kept}).AppendJSON(nil))
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		return fmt.Errorf("import %s: %w", from, err)
	}
	out, err := commands.Parse(from, text)
	if err != nil {
		return err
	}
	warnings := out.Warnings
	if f, err := commands.Parse(from, content); err == nil {
		warnings = f.Warnings // with their places in the file
	}
	for _, w := range append(i.left, warnings...) {
		fmt.Fprintf(a.err, "warning: %s\n", w)
	}
	if i.own > 0 {
		fmt.Fprintf(a.err, "left out %d entries that call hookd itself\n", i.own)
	}
	if strict && len(i.left) > 0 {
		return fmt.Errorf("import: %d hooks of %s can't be taken over, so nothing was written (--strict)", len(i.left), from)
	}
	fmt.Fprintf(a.err, "%d hooks of %s\n", len(out.Hooks(hook.LayerUser, 0, nil)), from)
	if to == "" {
		_, err := fmt.Fprintf(a.out, "%s\n", text)
		return err
	}
	return writeImported(to, append(text, '\n'))
}

func writeImported(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return hint(fmt.Errorf("import: %s is there already", path), "write to standard output, without --to, and merge by hand")
	}
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

// importer takes over what hookd can run.
type importer struct {
	path string
	own  int      // handlers that would ask hookd again
	left []string // what was left out for another reason, and why
}

// events returns the hooks without the handlers that are left out.
func (i *importer) events(hooks jsontext.Value) (jsontext.Value, error) {
	events, err := protocol.ParseObject(hooks)
	if err != nil {
		return nil, err
	}
	out := protocol.Object{}
	for _, e := range events {
		groups, err := protocol.Items(e.Value)
		if err != nil {
			return nil, fmt.Errorf("hooks.%s: %w", e.Name, err)
		}
		var keep []jsontext.Value
		for n, g := range groups {
			group, err := i.group(e.Name, n, g)
			if err != nil {
				return nil, fmt.Errorf("hooks.%s.%d: %w", e.Name, n, err)
			}
			if group != nil {
				keep = append(keep, group)
			}
		}
		if len(keep) > 0 {
			out = append(out, protocol.Member{Name: e.Name, Value: arrayOf(keep)})
		}
	}
	return out.AppendJSON(nil), nil
}

// group returns a group with the handlers that stay, or nil for none.
func (i *importer) group(event string, n int, v jsontext.Value) (jsontext.Value, error) {
	group, err := protocol.ParseObject(v)
	if err != nil {
		return nil, err
	}
	handlers, err := protocol.Items(group.Get("hooks"))
	if err != nil {
		return nil, err
	}
	var keep []jsontext.Value
	for at, h := range handlers {
		handler, err := protocol.ParseObject(h)
		if err != nil {
			return nil, err
		}
		if command := protocol.MetaString(handler, "command"); strings.Contains(command, "hookd-hook") || strings.Contains(command, "hookd hook ") {
			i.own++
			continue
		}
		if why := i.refused(event, group.With("hooks", arrayOf([]jsontext.Value{h}))); why != "" {
			i.left = append(i.left, fmt.Sprintf("%s: hooks.%s.%d.hooks.%d is left out: %s", i.path, event, n, at, why))
			continue
		}
		keep = append(keep, h)
	}
	if len(keep) == 0 {
		return nil, nil
	}
	return group.With("hooks", arrayOf(keep)).AppendJSON(nil), nil
}

// refused says why hookd can't run a group, or "".
func (i *importer) refused(event string, group protocol.Object) string {
	events := protocol.Object{{Name: event, Value: arrayOf([]jsontext.Value{group.AppendJSON(nil)})}}
	_, err := commands.Parse(i.path, protocol.Object{{Name: "hooks", Value: events.AppendJSON(nil)}}.AppendJSON(nil))
	if bad, ok := errors.AsType[*commands.FileError](err); ok {
		return bad.Message
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func arrayOf(items []jsontext.Value) jsontext.Value {
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']')
}
