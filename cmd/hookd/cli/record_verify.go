package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/record"
)

func (a *app) recordVerifyCommand() *cobra.Command {
	var f recordFile
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Check that no record is missing, changed, added or out of place",
		Long: `Reads the whole record and checks its chain: each record holds a hash of itself
and of the one before it. The first place that does not fit is named, and the exit
code is 1.

Who can write the file can write another chain that fits. To notice that, keep the
hash that is printed somewhere else, and compare it later with the "hash" of that
record in hookd record export.`,
		Example: `  hookd record verify
  hookd record verify backup/record.db`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd, "unexpected argument %q", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.path = args[0]
			}
			path, err := a.findRecord(&f)
			if err != nil {
				return err
			}
			report, err := record.Verify(cmd.Context(), path)
			if err != nil {
				return a.explainOpen(path, err)
			}
			if asJSON {
				return a.verifyJSON(report)
			}
			if report.Broken != nil {
				fmt.Fprintf(a.out, "%s %s\n", a.paint(a.out, red, "broken:"), report.Broken)
				fmt.Fprintf(a.out, "%s fits before it: %s\n", records(report.Records), span(report))
				return errSilent
			}
			fmt.Fprintf(a.out, "%s %s in %s, %s\n", a.paint(a.out, green, "ok:"), records(report.Records), report.Path, span(report))
			if report.Gaps > 0 {
				fmt.Fprintf(a.out, "%d of them say that something is missing: hookd record export | grep '\"table\":\"gaps\"'\n", report.Gaps)
			}
			if report.Hash != "" {
				fmt.Fprintf(a.out, "the last hash is %s\n", report.Hash)
			}
			return nil
		},
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func records(n uint64) string {
	if n == 1 {
		return "1 record"
	}
	return fmt.Sprintf("%d records", n)
}

func span(r *record.Report) string {
	if r.Records == 0 {
		return "none"
	}
	return fmt.Sprintf("%d to %d", r.First, r.Last)
}

func (a *app) verifyJSON(r *record.Report) error {
	out := struct {
		OK      bool   `json:"ok"`
		Path    string `json:"path"`
		Records uint64 `json:"records"`
		First   uint64 `json:"first"`
		Last    uint64 `json:"last"`
		Hash    string `json:"hash"`
		Gaps    uint64 `json:"gaps"`
		Broken  *struct {
			Seq   uint64 `json:"seq"`
			Table string `json:"table"`
			What  string `json:"what"`
		} `json:"broken"`
	}{OK: r.Broken == nil, Path: r.Path, Records: r.Records, First: r.First, Last: r.Last, Hash: r.Hash, Gaps: r.Gaps}
	if b := r.Broken; b != nil {
		out.Broken = &struct {
			Seq   uint64 `json:"seq"`
			Table string `json:"table"`
			What  string `json:"what"`
		}{b.Seq, b.Table, b.What}
	}
	if err := a.show(true, out, nil); err != nil {
		return err
	}
	if !out.OK {
		return errSilent
	}
	return nil
}
