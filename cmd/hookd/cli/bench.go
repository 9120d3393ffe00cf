package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/bench"
)

// benchPart is the hidden command of the processes that a bench starts.
const benchPart = "__bench"

// benchFlags say what to measure and how to show it.
type benchFlags struct {
	bench.Options
	json, check, quick bool
	grow, svg          string
}

func (a *app) benchCommand() *cobra.Command {
	var b benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure hookd's speed beside what the machine can do at all",
		Long: `Starts a daemon, hooks and agents of its own, in a temporary folder, and measures
calls beside a floor: a bare exchange of lines of the same size over a socket and
over a child's pipes, and one pass of the JSON tokenizer, all in the same run.
Times are the machine's, ratios are hookd's. Nothing stays.

T10 compares with starting a process per event, by what is installed of
` + strings.Join(bench.Rivals(), ", ") + `.`,
		Example: `  hookd bench
  hookd bench --only T0,T2 --json
  hookd bench --check               # exit 1 when a target is missed three times
  hookd bench --only T10 --against python
  hookd bench --grow payload --svg payload.svg`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.valid(cmd); err != nil {
				return err
			}
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a reader who goes away must leave nothing behind
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.bench(ctx, b)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&b.json, "json", false, "print JSON: an array of targets, or an object with the points of --grow")
	f.BoolVar(&b.check, "check", false, "exit 1 when a target is missed in the best of three")
	f.BoolVar(&b.quick, "quick", false, "measure a twentieth, to see it work")
	f.StringSliceVar(&b.Only, "only", nil, "measure these targets only, such as T0,T2")
	f.StringSliceVar(&b.Against, "against", nil, "for T10: compare with these only: "+strings.Join(bench.Rivals(), ", "))
	f.BoolVar(&b.Spread, "spread", false, "let single calls (T0 to T4, T10) use all cores too; figures then vary more")
	f.StringVar(&b.grow, "grow", "", "measure instead how cost grows with one of "+strings.Join(bench.Axes(), ", "))
	f.StringVar(&b.svg, "svg", "", "with --grow: draw it into this file too")
	return cmd
}

// benchPartCommand is what the processes of a bench run.
func (a *app) benchPartCommand() *cobra.Command {
	return &cobra.Command{
		Use:    benchPart,
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE:   func(cmd *cobra.Command, args []string) error { return bench.Play(cmd.Context(), args) },
	}
}

// valid refuses words that mean nothing.
func (b *benchFlags) valid(cmd *cobra.Command) error {
	for _, list := range []struct {
		flag       string
		given, all []string
	}{{"only", b.Only, bench.IDs()}, {"against", b.Against, bench.Rivals()}, {"grow", []string{b.grow}, append(bench.Axes(), "")}} {
		for _, word := range list.given {
			if !slices.Contains(list.all, word) {
				return usage(cmd, "--%s: unknown %q, one of %s", list.flag, word, strings.TrimSuffix(strings.Join(list.all, ", "), ", "))
			}
		}
	}
	if b.svg != "" && b.grow == "" {
		return usage(cmd, "--svg draws what --grow measures")
	}
	if b.grow != "" && (b.check || len(b.Only)+len(b.Against) > 0) {
		return usage(cmd, "--grow has no targets, so --check, --only and --against mean nothing")
	}
	return nil
}

func (a *app) bench(ctx context.Context, b benchFlags) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	b.Program = []string{self, benchPart}
	if b.quick {
		b.Calls = 500
	}
	if b.check {
		b.Tries = 3
	}
	measured := func() {}
	if isTerminal(a.err) {
		b.Progress = func(id, work string) { fmt.Fprintf(a.err, "\r\x1b[Kmeasuring %s: %s", id, work) }
		measured = func() { fmt.Fprint(a.err, "\r\x1b[K") }
	}
	if b.grow != "" {
		growth, err := bench.Grow(ctx, b.Options, b.grow)
		measured()
		if err != nil {
			return err
		}
		if b.svg != "" {
			if err := os.WriteFile(b.svg, []byte(growth.SVG()), 0o644); err != nil {
				return fmt.Errorf("draw: %w", err)
			}
		}
		return a.show(b.json, growth, growth.Print)
	}
	rows, err := bench.Run(ctx, b.Options)
	measured()
	if err != nil {
		return err
	}
	if err := a.show(b.json, rows, func(w io.Writer) error { return bench.Print(w, rows, a.mark) }); err != nil || !b.check {
		return err
	}
	return allMet(rows)
}

// show writes what was measured as JSON or as a table.
func (a *app) show(asJSON bool, v any, table func(io.Writer) error) error {
	if !asJSON {
		return table(a.out)
	}
	err := json.MarshalWrite(a.out, v, jsontext.WithIndent("  "), jsontext.SpaceAfterColon(true))
	if err == nil {
		_, err = fmt.Fprintln(a.out)
	}
	return err
}

func (a *app) mark(ok bool, text string) string {
	if ok {
		return a.paint(a.out, green, text)
	}
	return a.paint(a.out, red, text)
}

// allMet fails when a target was missed.
func allMet(rows []bench.Row) error {
	var missed []string
	for _, r := range rows {
		if !r.OK {
			missed = append(missed, r.ID+" ("+r.Work+")")
		}
	}
	if missed == nil {
		return nil
	}
	return fmt.Errorf("targets missed: %s", strings.Join(missed, ", "))
}
