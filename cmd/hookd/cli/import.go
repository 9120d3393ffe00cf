package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/commands"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

func (a *app) importCommand() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "import claude",
		Short: "Take over the hook scripts of Claude Code's settings",
		Long: `Reads the hooks of a settings.json of Claude Code and writes them as a hooks.json
that hookd runs for every agent, with the same rules for exit status and output.
Entries that call hookd itself are left out. The settings stay as they are: when
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
			return a.importClaude(from, to)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the settings (default ~/.claude/settings.json)")
	cmd.Flags().StringVar(&to, "to", "", "the file to write, which must not exist")
	return cmd
}

func (a *app) importClaude(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	f, err := commands.Parse(from, content)
	if err != nil {
		return err
	}
	root, err := protocol.DecodeObject(content, 0)
	if err != nil {
		return fmt.Errorf("import %s: %w", from, err)
	}
	hooks := root.Get("hooks")
	if hooks == nil {
		return fmt.Errorf("import: %s has no hooks", from)
	}
	kept, left, err := withoutHookd(hooks)
	if err != nil {
		return fmt.Errorf("import %s: %w", from, err)
	}
	text := jsontext.Value(protocol.Object{{Name: "hooks", Value: kept}}.AppendJSON(nil))
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		return fmt.Errorf("import %s: %w", from, err)
	}
	out, err := commands.Parse(from, text)
	if err != nil {
		return err
	}
	for _, w := range f.Warnings {
		fmt.Fprintf(a.err, "warning: %s\n", w)
	}
	if left > 0 {
		fmt.Fprintf(a.err, "left out %d entries that call hookd itself\n", left)
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

// withoutHookd drops the handlers that would ask hookd again.
func withoutHookd(hooks jsontext.Value) (kept jsontext.Value, left int, err error) {
	events, err := protocol.ParseObject(hooks)
	if err != nil {
		return nil, 0, err
	}
	var out protocol.Object
	for _, e := range events {
		groups, err := protocol.Items(e.Value)
		if err != nil {
			return nil, 0, err
		}
		var keep []jsontext.Value
		for _, g := range groups {
			group, n, err := groupWithoutHookd(g)
			if err != nil {
				return nil, 0, err
			}
			left += n
			if group != nil {
				keep = append(keep, group)
			}
		}
		if len(keep) > 0 {
			out = append(out, protocol.Member{Name: e.Name, Value: arrayOf(keep)})
		}
	}
	return out.AppendJSON(nil), left, nil
}

func groupWithoutHookd(v jsontext.Value) (jsontext.Value, int, error) {
	group, err := protocol.ParseObject(v)
	if err != nil {
		return nil, 0, err
	}
	handlers, err := protocol.Items(group.Get("hooks"))
	if err != nil {
		return nil, 0, err
	}
	var keep []jsontext.Value
	for _, h := range handlers {
		handler, err := protocol.ParseObject(h)
		if err != nil {
			return nil, 0, err
		}
		if command := protocol.MetaString(handler, "command"); !strings.Contains(command, "hookd-hook") && !strings.Contains(command, "hookd hook ") {
			keep = append(keep, h)
		}
	}
	if len(keep) == 0 {
		return nil, len(handlers), nil
	}
	return group.With("hooks", arrayOf(keep)).AppendJSON(nil), len(handlers) - len(keep), nil
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
