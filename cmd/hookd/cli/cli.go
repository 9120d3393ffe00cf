// Package cli is the hookd command: one file per subcommand, each thin. Its
// [Main] is the public entry point for a main of your own, which adds in-process
// hooks to everything that hookd can do:
//
//	func main() { cli.Main(mount.Builtin{Name: "mine", New: newMine}) }
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/mount"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main runs the hookd command with the process's arguments and exits. Builtins
// are kinds of in-process hooks that a config may name beside those that ship.
func Main(builtins ...mount.Builtin) {
	helper := child.Main() // in a process that shall become a hook it does not return
	os.Exit(run(os.Args[1:], helper, builtins))
}

// Run runs the hookd command and returns its exit code: 0 ok, 1 failed, 2 the
// command line makes no sense. Data goes to stdout, everything else to stderr.
//
// Hook processes are limited in what they may do only by a program that calls
// [Main].
func Run(args []string, builtins ...mount.Builtin) int { return run(args, nil, builtins) }

func run(args []string, helper *child.Helper, builtins []mount.Builtin) int {
	a := newApp(builtins)
	a.helper = helper
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return exitOK
	}
	return a.fail(err)
}

// Command returns the hookd command with all its subcommands as data, for what
// describes it, such as man pages. Run it with [Run], which has the exit codes.
func Command(builtins ...mount.Builtin) *cobra.Command { return newApp(builtins).root() }

// app is what commands share.
type app struct {
	builtins []mount.Builtin
	helper   *child.Helper // nil: hooks are not limited
	in       *os.File
	out, err *os.File
	getenv   func(string) string
}

func newApp(builtins []mount.Builtin) *app {
	return &app{builtins: builtins, in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "hookd",
		Short: "One daemon through which hooks watch, change, stop and approve what AI agents do",
		Long: `hookd stands between AI agents and the hooks that judge them. Agents ask it
over a Unix socket before they call a model or a tool; hooks, written in any
language, answer.

Start here:
  hookd demo                     see it at work, without any setup
  hookd init --for python        write a config and a first hook (or node, go, sh)
  hookd check config.json        validate a config, start and greet its hooks
  hookd serve --config config.json
  echo '{"tool":"bash","arguments":{"command":"ls"}}' | hookd call before_tool
  hookd status`,
		SilenceUsage: true, SilenceErrors: true,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, "%s", err) })
	root.AddCommand(
		a.demoCommand(), a.initCommand(), a.serveCommand(), a.connectCommand(), a.hookCommand(), a.agentsCommand(), a.installCommand(), a.uninstallCommand(), a.doctorCommand(), a.mcpCommand(), a.checkCommand(), a.explainCommand(), a.callCommand(), a.trustCommand(), a.importCommand(), a.eventsCommand(),
		a.approvalsCommand(), a.sessionsCommand(), a.recordCommand(), a.replayCommand(), a.statusCommand(), a.pingCommand(), a.reloadCommand(), a.restartCommand(), a.enableCommand(), a.disableCommand(),
		a.conformCommand(), a.benchCommand(), a.benchPartCommand(), a.execCommand(), a.versionCommand(),
	)
	// The library's own command would take any word for a shell.
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args = noArgs
		completion.RunE = func(cmd *cobra.Command, _ []string) error {
			return usage(cmd, "SHELL is missing: bash, zsh, fish or powershell")
		}
	}
	return root
}

// usageError is a mistake on the command line.
type usageError struct {
	text string
	cmd  string
}

func (e *usageError) Error() string { return e.text }

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), cmd.CommandPath()}
}

// noArgs refuses arguments; at the root it means an unknown command.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasParent() {
		hint := ""
		if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
			hint = fmt.Sprintf(" (did you mean %q?)", s[0])
		}
		return usage(cmd, "unknown command %q%s", args[0], hint)
	}
	return usage(cmd, "unexpected argument %q", args[0])
}

// oneArg wants exactly one argument and calls it what.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return usage(cmd, "%s is missing", what)
		case 1:
			return nil
		}
		return usage(cmd, "unexpected argument %q", args[1])
	}
}

// hinted is an error with what to do next.
type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }

func hint(err error, format string, args ...any) error {
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// fail tells the user and picks the exit code.
func (a *app) fail(err error) int {
	if errors.Is(err, errSilent) {
		return exitFailed
	}
	if code, ok := errors.AsType[exitStatus](err); ok {
		return int(code)
	}
	if u, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintf(a.err, "hookd: %s\nRun '%s --help' for usage.\n", u.text, u.cmd)
		return exitUsage
	}
	if l, ok := errors.AsType[*config.LoadError](err); ok {
		fmt.Fprintf(a.err, "hookd: the config can't be used:\n%s\n", indent(l.Error()))
		return exitFailed
	}
	fmt.Fprintf(a.err, "hookd: %s\n", err)
	if h, ok := errors.AsType[*hinted](err); ok {
		fmt.Fprintf(a.err, "  %s\n", h.hint)
	}
	return exitFailed
}

// errSilent fails a command that has said everything already.
var errSilent = errors.New("failed")

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// isTerminal reports whether a person reads f.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// paint colours text for a person who did not say NO_COLOR.
func (a *app) paint(f *os.File, code, text string) string {
	if !isTerminal(f) || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	grey   = "90"
)

// version is that of the module this program was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// readInput reads a command's input, and says so when a person must type it.
func (a *app) readInput(what string, limit int64) ([]byte, error) {
	if isTerminal(a.in) {
		fmt.Fprintf(a.err, "Reading %s from standard input; end with Ctrl-D.\n", what)
	}
	data, err := io.ReadAll(io.LimitReader(a.in, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes", what, limit)
	}
	return data, nil
}
