package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/console"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/record"
)

// recordRows is how many decisions are shown when nobody says how many.
const recordRows = 50

// recordFile says which record is meant.
type recordFile struct{ path, config string }

func (f *recordFile) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.path, "record", "", "the file of the record (default: where the config and hookd serve put it)")
	cmd.Flags().StringVar(&f.config, "config", "", "the config that says where the record is (default: as serve finds it)")
}

// find returns the file's path and, when it is not there, why.
func (a *app) findRecord(f *recordFile) (string, error) {
	if f.path != "" {
		return filepath.Abs(f.path)
	}
	file, err := config.Find(f.config, a.getenv)
	if err != nil {
		return "", err
	}
	path, kept, err := daemon.FindRecord(file, client.SocketPath("", a.getenv), a.getenv)
	if err != nil {
		return "", hint(err, "Name the file of the record with --record PATH.")
	}
	if !kept {
		return path, hint(fmt.Errorf("nothing is recorded: record.mode is off in %s", file), "Set it to batch or strict and restart hookd, or name an older file with --record PATH.")
	}
	if path == "" {
		return "", hint(errors.New("no folder for the record is known"), "Name the file with --record PATH.")
	}
	return path, nil
}

// openRecord opens the record for reading. The caller closes it.
func (a *app) openRecord(f *recordFile) (*record.Reader, error) {
	path, err := a.findRecord(f)
	if err != nil {
		return nil, err
	}
	r, err := record.OpenReader(path)
	return r, a.explainOpen(path, err)
}

func (a *app) explainOpen(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return hint(fmt.Errorf("there is no record at %s", path), "hookd serve makes it when it starts; name another file with --record PATH.")
	case errors.Is(err, fs.ErrPermission):
		return hint(err, "The record belongs to the user that hookd runs as.")
	}
	return err
}

// recordQuery are the flags that choose decisions.
type recordQuery struct {
	session, tool, verdict, hook, stage, agent string
	since, until                               string
	limit                                      int
}

func (q *recordQuery) flags(cmd *cobra.Command, limit int) {
	f := cmd.Flags()
	f.StringVar(&q.session, "session", "", "only decisions of this session")
	f.StringVar(&q.tool, "tool", "", "only about this tool")
	f.StringVar(&q.verdict, "verdict", "", "only with this answer: continue, modify, respond, ask, allow, deny, abort_turn, ...")
	f.StringVar(&q.hook, "hook", "", "only those in which this hook was asked")
	f.StringVar(&q.stage, "stage", "", "only at this stage")
	f.StringVar(&q.agent, "agent", "", "only of this agent")
	f.StringVar(&q.since, "since", "", "only from then on: 2026-05-01, '2026-05-01 13:00', an RFC 3339 time, or how long ago (30m, 2h, 7d)")
	f.StringVar(&q.until, "until", "", "only before then, written like --since")
	f.IntVar(&q.limit, "limit", limit, "the last so many; 0 = all")
}

// filter reads the flags.
func (q *recordQuery) filter(cmd *cobra.Command) (record.Filter, error) {
	f := record.Filter{
		Session: q.session, Tool: q.tool, Agent: q.agent, Hook: q.hook, Stage: protocol.Stage(q.stage), Action: protocol.Action(q.verdict), Limit: q.limit,
	}
	if q.limit < 0 {
		return f, usage(cmd, "--limit must not be negative")
	}
	if q.stage != "" && protocol.NewStageTable().Stage(f.Stage) == nil {
		return f, usage(cmd, "unknown stage %q%s", q.stage, protocol.DidYouMean(q.stage, protocol.StageNames()))
	}
	if verdicts := verdictNames(); q.verdict != "" && !slices.Contains(verdicts, q.verdict) {
		return f, usage(cmd, "unknown verdict %q, one of %s%s", q.verdict, strings.Join(verdicts, ", "), protocol.DidYouMean(q.verdict, verdicts))
	}
	var err error
	now := time.Now()
	if f.Since, err = moment(q.since, now); err != nil {
		return f, usage(cmd, "--since %q: %s", q.since, err)
	}
	if f.Until, err = moment(q.until, now); err != nil {
		return f, usage(cmd, "--until %q: %s", q.until, err)
	}
	return f, nil
}

func verdictNames() []string {
	var names []string
	for _, a := range []protocol.Action{
		protocol.ActionContinue, protocol.ActionModify, protocol.ActionRespond, protocol.ActionInject, protocol.ActionAsk, protocol.ActionAllow,
		protocol.ActionDeny, protocol.ActionAbortTurn, protocol.ActionHardAbort,
	} {
		names = append(names, string(a))
	}
	return names
}

// moment reads a time, or how long ago one was. "" is the zero time.
func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("is neither a time nor how long ago")
}

func (a *app) recordCommand() *cobra.Command {
	var f recordFile
	var q recordQuery
	var asJSON, follow bool
	cmd := &cobra.Command{
		Use:   "record [query]",
		Short: "Look up what was decided, and prove that nothing is missing",
		Long: `Shows the last decisions from the record, oldest first. The record is a file that
hookd writes while it decides; it is only read here, also while hookd runs, and
no daemon is needed.

The record is the file of --record, else the one that the config names as
record.path, else record.db in the state folder ($STATE_DIRECTORY, or
$XDG_STATE_HOME/hookd, which is ~/.local/state/hookd).

Filters narrow what is shown; several must all hold. What an agent, a model or a
tool said is shown as it was recorded: without secrets and personal data.`,
		Example: `  hookd record
  hookd record --verdict deny --since 2h
  hookd record --session s-81 --tool bash --limit 0
  hookd record --follow
  hookd record --json --since 1d | jq 'select(.degraded)'
  hookd record show 4711`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] != "query" {
				return usage(cmd, "unknown command %q%s; filters are flags, such as --tool %s", args[0], protocol.DidYouMean(args[0], []string{"show", "export", "verify", "sessions", "query"}), args[0])
			}
			if len(args) > 1 {
				return usage(cmd, "unexpected argument %q", args[1])
			}
			return nil
		},
		ValidArgs: []string{"query"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := q.filter(cmd)
			if err != nil {
				return err
			}
			r, err := a.openRecord(&f)
			if err != nil {
				return err
			}
			defer r.Close()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.printRecord(ctx, r, filter, asJSON, follow)
		},
	}
	f.flags(cmd)
	q.flags(cmd, recordRows)
	cmd.Flags().BoolVar(&asJSON, "json", false, "a line of JSON for each decision, with all that is known of it")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new decisions as they come, until interrupted")
	cmd.AddCommand(a.recordShowCommand(), a.recordExportCommand(), a.recordVerifyCommand(), a.recordSessionsCommand())
	return cmd
}

func (a *app) printRecord(ctx context.Context, r *record.Reader, f record.Filter, asJSON, follow bool) error {
	decisions := r.Query(ctx, f)
	if follow {
		decisions = r.Follow(ctx, f)
	}
	out := bufio.NewWriter(a.out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !asJSON && follow {
		w.Init(out, 14, 0, 2, ' ', 0) // columns can't wait for what comes
	}
	n := 0
	for d, err := range decisions {
		if err != nil {
			return errors.Join(w.Flush(), out.Flush(), err)
		}
		if asJSON {
			_, err = out.Write(append(d.AppendJSON(nil), '\n'))
		} else {
			if n == 0 {
				fmt.Fprintln(w, "ID\tTIME\tAGENT\tSESSION\tSTAGE\tTOOL\tVERDICT\tBY\tREASON")
			}
			_, err = fmt.Fprintln(w, strings.Join(decisionRow(d), "\t"))
		}
		n++
		if follow && err == nil {
			if err = w.Flush(); err == nil {
				err = out.Flush()
			}
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(w.Flush(), out.Flush()); err != nil {
		return err
	}
	if n == 0 && !asJSON && !follow {
		fmt.Fprintln(a.out, "No decision is recorded that fits.")
	}
	if n == f.Limit && n == recordRows && !follow && isTerminal(a.out) {
		fmt.Fprintf(a.err, "These are the last %d; --limit 0 shows all.\n", n)
	}
	return nil
}

// reasonChars is how much of a reason a row shows.
const reasonChars = 60

func decisionRow(d *record.Decision) []string {
	verdict := string(d.Action)
	for _, more := range []struct {
		is   bool
		word string
	}{{d.DryRun, "dry run"}, {d.Unrecorded, "unrecorded"}, {d.Undelivered, "undelivered"}, {len(d.Degraded) > 0, "degraded"}} {
		if more.is {
			verdict += " (" + more.word + ")"
		}
	}
	reason := []rune(console.Escape(d.Reason))
	if len(reason) > reasonChars {
		reason = append(reason[:reasonChars-1], '…')
	}
	return []string{
		strconv.FormatUint(d.ID, 10), d.Time.Local().Format("2006-01-02 15:04:05"), dash(d.Agent), dash(d.Session), string(d.Stage), dash(d.Tool),
		verdict, dash(by(d)), string(reason),
	}
}

// by is who has decided: a hook, or who approved.
func by(d *record.Decision) string {
	if d.DecidedBy == "" && d.Approval != nil {
		return d.Approval.By
	}
	return d.DecidedBy
}

func (a *app) recordExportCommand() *cobra.Command {
	var f recordFile
	var to string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the whole record as lines of JSON",
		Long: `Writes every record of every kind, oldest first, as a line of JSON each:
decisions, amendments, approvals, approval_rules, session_events, hook_failures,
config_changes, security_events, tool_runs, gaps and anchors. "table" says which,
"seq" is the number and "hash" the place in the chain.

--to writes a file with mode 0600, which must not be there yet.`,
		Example: `  hookd record export --to record.jsonl
  hookd record export | gzip > record.jsonl.gz`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			r, err := a.openRecord(&f)
			if err != nil {
				return err
			}
			defer r.Close()
			var out io.Writer = a.out
			if to != "" && to != "-" {
				file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
				if errors.Is(err, fs.ErrExist) {
					return hint(fmt.Errorf("%s is there already", to), "Name another file, or remove it.")
				}
				if err != nil {
					return err
				}
				defer file.Close()
				out = file
			}
			n, err := r.Export(cmd.Context(), out, 0)
			if err != nil {
				return err
			}
			if file, ok := out.(*os.File); ok && file != a.out {
				if err := file.Sync(); err != nil {
					return err
				}
			}
			fmt.Fprintf(a.err, "%d records\n", n)
			return nil
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "write to this file (default: standard output)")
	return cmd
}
