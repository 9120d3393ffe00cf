package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/console"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/record"
)

const (
	// sqliteMagic is how a record begins.
	sqliteMagic = "SQLite format 3\x00"
	// maxReplayLine is the longest line of a file of decisions.
	maxReplayLine = 64 << 20
	// asksPerson is the verdict where a person is asked.
	asksPerson = "asks a person"
	// approver is the built-in that asks one.
	approver = "human"
)

func (a *app) replayCommand() *cobra.Command {
	var f recordFile
	var q recordQuery
	var asJSON, check bool
	cmd := &cobra.Command{
		Use:   "replay FILE|ID...",
		Short: "Take recorded calls through today's config, and see which verdicts would differ",
		Long: `Starts the hooks of the config as "hookd check" does and asks them again, as dry
runs, about calls that were recorded. It prints those whose verdict is another one
today. No daemon is needed, nothing is recorded, and no agent notices.

What is replayed are the decisions with these IDs from the record, or those in
FILE: lines of JSON from "hookd record --json" or "hookd record export", a record
itself (record.db), or - for standard input. The filters choose among them, and
among the whole record when there is neither FILE nor ID.

Some calls can't be judged again as they were: those whose long texts were cut, and
those that hookd denied because the record failed, are counted and left out; what
was masked is masked in the replay too. People are not asked again, so a call about
which one was asked counts as the same when one would be asked. Command hooks are
not run: a script does not know of dry runs.

The exit code is 0, also when verdicts differ; with --check it is 1 then.`,
		Example: `  hookd replay 4711
  hookd replay --config next.json --since 7d
  hookd record --json --limit 0 > calls.jsonl; hookd replay --check calls.jsonl`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := q.filter(cmd)
			if err != nil {
				return err
			}
			if len(args) == 0 && cmd.Flags().NFlag() == 0 {
				return usage(cmd, "FILE or ID is missing; --since, --session and the like choose from the record")
			}
			report, err := a.replay(cmd, &f, filter, args)
			if err != nil {
				return err
			}
			if err := a.show(asJSON, report, func(io.Writer) error { return a.printReplay(report) }); err != nil {
				return err
			}
			if check && report.Differ > 0 {
				return errSilent
			}
			return nil
		},
	}
	f.flags(cmd)
	cmd.Flags().Lookup("config").Usage = "the config whose hooks are asked (default: as serve finds it)"
	q.flags(cmd, 0)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: {replayed, same, differ, skipped, decisions: [{id, stage, tool, was, now, by, reason, ...}], warnings}")
	cmd.Flags().BoolVar(&check, "check", false, "exit with 1 when a verdict differs, for CI")
	return cmd
}

// replayReport is what a replay found.
type replayReport struct {
	Replayed int `json:"replayed"`
	Same     int `json:"same"`
	Differ   int `json:"differ"`
	Skipped  int `json:"skipped"`
	// Decisions are those that differ.
	Decisions []replayed `json:"decisions"`
	Warnings  []string   `json:"warnings"`

	unreadable map[string]int // why decisions were left out
}

// replayed is a decision that would be another one.
type replayed struct {
	ID    uint64         `json:"id"`
	Time  time.Time      `json:"time,omitzero"`
	Stage protocol.Stage `json:"stage"`
	Tool  string         `json:"tool"`
	Was   string         `json:"was"`
	Now   string         `json:"now"`
	// By and Reason are of the verdict today.
	By     string `json:"by"`
	Reason string `json:"reason"`
	// Masked: hooks saw less than they did then.
	Masked bool `json:"masked"`
}

func (a *app) replay(cmd *cobra.Command, f *recordFile, filter record.Filter, args []string) (*replayReport, error) {
	path, err := config.Find(f.config, a.getenv)
	if err != nil {
		return nil, err
	}
	ctx := cmd.Context()
	house, err := daemon.OpenReplay(ctx, daemon.ReplayOptions{ConfigPath: path, Builtins: a.builtins, Helper: a.helper, Version: version()})
	if err != nil {
		return nil, err
	}
	defer house.Close()
	report := &replayReport{Decisions: []replayed{}, Warnings: append([]string{}, house.Warnings...), unreadable: map[string]int{}}
	stages := protocol.NewStageTable()
	err = a.recorded(cmd, f, filter, args, func(d *record.Decision) error { return report.try(ctx, house, stages, d) })
	return report, err
}

// recorded hands over the decisions that are meant, one after the other.
func (a *app) recorded(cmd *cobra.Command, f *recordFile, filter record.Filter, args []string, each func(*record.Decision) error) error {
	if len(args) == 0 {
		r, err := a.openRecord(f)
		if err != nil {
			return err
		}
		defer r.Close()
		return queried(cmd.Context(), r, filter, each)
	}
	var ids []uint64
	for _, arg := range args {
		if id, err := strconv.ParseUint(arg, 10, 63); err == nil && id > 0 {
			ids = append(ids, id)
			continue
		}
		if err := a.fromFile(cmd.Context(), arg, filter, each); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	r, err := a.openRecord(f)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, id := range ids {
		d, err := r.Get(cmd.Context(), id)
		if errors.Is(err, record.ErrNotFound) {
			return hint(fmt.Errorf("there is no decision %d in the record", id), "IDs are in the first column of hookd record.")
		}
		if err == nil {
			err = each(d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func queried(ctx context.Context, r *record.Reader, filter record.Filter, each func(*record.Decision) error) error {
	for d, err := range r.Query(ctx, filter) {
		if err == nil {
			err = each(d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fromFile reads decisions from a record, or from lines of JSON.
func (a *app) fromFile(ctx context.Context, path string, filter record.Filter, each func(*record.Decision) error) error {
	in := a.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return hint(err, "Name a file, - for standard input, or an ID from hookd record.")
		}
		defer file.Close()
		in = file
	}
	lines := bufio.NewReaderSize(in, 64<<10)
	if magic, _ := lines.Peek(len(sqliteMagic)); string(magic) == sqliteMagic {
		at, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		r, err := record.OpenReader(at)
		if err != nil {
			return err
		}
		defer r.Close()
		return queried(ctx, r, filter, each)
	}
	scan := bufio.NewScanner(lines)
	scan.Buffer(nil, maxReplayLine)
	for n := 1; scan.Scan(); n++ {
		line := bytes.TrimSpace(scan.Bytes())
		if len(line) == 0 {
			continue
		}
		d, err := decisionLine(line)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if d == nil || !chosen(&filter, d) {
			continue
		}
		if err := each(d); err != nil {
			return err
		}
	}
	if err := scan.Err(); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// exported is a decision as hookd record writes it: as --json does, or as a row
// of an export, whose names differ here and there.
type exported struct {
	Table       string          `json:"table"`
	ID          uint64          `json:"id"`
	Seq         uint64          `json:"seq"`
	Time        time.Time       `json:"time"`
	Session     string          `json:"session"`
	Agent       string          `json:"agent"`
	Stage       protocol.Stage  `json:"stage"`
	Tool        string          `json:"tool"`
	Action      protocol.Action `json:"action"`
	Reason      string          `json:"reason"`
	Trail       []exportedStep  `json:"trail"`
	Params      jsontext.Value  `json:"params"`
	ParamsBytes int64           `json:"params_bytes"`
	Masked      bool            `json:"masked"`
	DryRun      bool            `json:"dry_run"`
	Unrecorded  bool            `json:"unrecorded"`
}

type exportedStep struct {
	Hook    string           `json:"hook"`
	Outcome protocol.Outcome `json:"outcome"`
}

// decisionLine reads a line; nil when it is a record of another kind.
func decisionLine(line []byte) (*record.Decision, error) {
	var e exported
	if err := protocol.Unmarshal(line, &e); err != nil {
		return nil, fmt.Errorf("is no decision as hookd record --json writes it: %w", err)
	}
	if e.Table != "" && e.Table != "decisions" {
		return nil, nil
	}
	if e.Stage == "" || e.Action == "" {
		return nil, errors.New("is no decision as hookd record --json writes it: it has no stage or no action")
	}
	d := &record.Decision{
		ID: max(e.ID, e.Seq), Time: e.Time, Session: e.Session, Agent: e.Agent, Stage: e.Stage, Tool: e.Tool, Action: e.Action, Reason: e.Reason,
		Params: e.Params.Clone(), ParamsBytes: e.ParamsBytes, Masked: e.Masked, DryRun: e.DryRun, Unrecorded: e.Unrecorded,
	}
	for _, s := range e.Trail {
		d.Trail = append(d.Trail, protocol.Step{Hook: s.Hook, Outcome: s.Outcome})
	}
	return d, nil
}

// chosen applies the filters to a decision from a file.
func chosen(f *record.Filter, d *record.Decision) bool {
	asked := f.Hook == ""
	for _, s := range d.Trail {
		asked = asked || s.Hook == f.Hook
	}
	return asked && (f.Session == "" || f.Session == d.Session) && (f.Tool == "" || f.Tool == d.Tool) && (f.Agent == "" || f.Agent == d.Agent) &&
		(f.Stage == "" || f.Stage == d.Stage) && (f.Action == "" || f.Action == d.Action) &&
		(f.Since.IsZero() || !d.Time.Before(f.Since)) && (f.Until.IsZero() || d.Time.Before(f.Until))
}

// try asks about one decision again.
func (r *replayReport) try(ctx context.Context, house *daemon.Replay, stages *protocol.StageTable, d *record.Decision) error {
	skip := func(why string) error {
		r.Skipped++
		r.unreadable[why]++
		return nil
	}
	switch {
	case d.DryRun:
		return skip("were dry runs")
	case d.Unrecorded:
		return skip("were denied because the record failed")
	}
	call, err := d.Replay()
	if err != nil {
		return skip("were too long to be kept whole")
	}
	stage := stages.Stage(call.Stage)
	members, err := protocol.DecodeObject(call.Params, 0)
	if stage == nil || err != nil {
		return skip("can't be read by this version")
	}
	req, bad := protocol.DecodeRequest(stage, members)
	if bad != nil {
		return skip("can't be read by this version")
	}
	res, err := house.Call(ctx, call.Agent, req)
	if err != nil {
		return fmt.Errorf("replay %d: %w", d.ID, err)
	}
	r.Replayed++
	action, reason := verdictOf(stage, res)
	was, now := verdictWith(string(d.Action), d.Trail), verdictWith(string(action), res.Trail)
	if was == now {
		r.Same++
		return nil
	}
	r.Differ++
	r.Decisions = append(r.Decisions, replayed{
		ID: d.ID, Time: d.Time, Stage: d.Stage, Tool: d.Tool, Was: was, Now: now, By: res.DecidedBy, Reason: reason, Masked: d.Masked,
	})
	return nil
}

// verdictOf is the answer in one word, as the record has it.
func verdictOf(stage *protocol.StageInfo, res *protocol.Result) (protocol.Action, string) {
	if stage.Name != protocol.StageApproveTool {
		d := protocol.Decision{Action: res.Action}
		return d.Decided(), res.Reason
	}
	if res.Approval != nil && res.Approval.Approved {
		return protocol.ActionAllow, res.Approval.Reason
	}
	return protocol.ActionDeny, res.Reason
}

// verdictWith is the answer, or that a person was to give it.
func verdictWith(action string, trail []protocol.Step) string {
	for _, s := range trail {
		if s.Outcome != protocol.OutcomeNotRun && s.Hook == approver {
			return asksPerson
		}
	}
	return action
}

func (a *app) printReplay(r *replayReport) error {
	for _, text := range r.Warnings {
		fmt.Fprintf(a.err, "%s: %s\n", a.paint(a.err, yellow, "warning"), text)
	}
	if len(r.Decisions) > 0 {
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tSTAGE\tTOOL\tWAS\tNOW\tBY\tREASON")
		for _, d := range r.Decisions {
			now := d.Now
			if d.Masked {
				now += " (masked)"
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, d.Stage, dash(d.Tool), d.Was, now, dash(d.By), console.Escape(d.Reason))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	fmt.Fprintf(a.out, "%d replayed: %d the same, %d differ\n", r.Replayed, r.Same, r.Differ)
	for _, why := range slices.Sorted(maps.Keys(r.unreadable)) {
		fmt.Fprintf(a.out, "%d left out, because they %s\n", r.unreadable[why], why)
	}
	return nil
}
