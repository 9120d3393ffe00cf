package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/console"
)

func (a *app) recordSessionsCommand() *cobra.Command {
	var f recordFile
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List recorded sessions with what became of their calls",
		Long: `Lists the sessions of which decisions are recorded, those seen last first. What
runs now is in hookd sessions.`,
		Example: "  hookd record sessions\n  hookd record sessions --json | jq '.[] | select(.denied > 0)'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usage(cmd, "--limit must not be negative")
			}
			r, err := a.openRecord(&f)
			if err != nil {
				return err
			}
			defer r.Close()
			list, err := r.Sessions(cmd.Context(), limit)
			if err != nil {
				return err
			}
			rows := []recordedSession{}
			for _, s := range list {
				rows = append(rows, recordedSession(s))
			}
			return a.show(asJSON, rows, func(io.Writer) error { return a.printRecordSessions(rows) })
		},
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: an array of sessions")
	cmd.Flags().IntVar(&limit, "limit", recordRows, "at most so many; 0 = all")
	return cmd
}

// recordedSession is a [record.SessionSummary] for programs.
type recordedSession struct {
	Session  string    `json:"session"`
	Agent    string    `json:"agent"`
	User     string    `json:"user"`
	Model    string    `json:"model"`
	CWD      string    `json:"cwd"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Calls    uint64    `json:"calls"`
	Denied   uint64    `json:"denied"`
	Asked    uint64    `json:"asked"`
	Degraded uint64    `json:"degraded"`
}

func (a *app) printRecordSessions(list []recordedSession) error {
	if len(list) == 0 {
		fmt.Fprintln(a.out, "No session is recorded.")
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tAGENT\tUSER\tFIRST\tLAST\tCALLS\tDENIED\tASKED\tDEGRADED")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\n", console.Escape(s.Session), dash(s.Agent), dash(s.User),
			s.First.Local().Format("2006-01-02 15:04:05"), s.Last.Local().Format("2006-01-02 15:04:05"), s.Calls, s.Denied, s.Asked, s.Degraded)
	}
	return w.Flush()
}
