package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/agent"
	"github.com/hookd/hookd/protocol"
)

func (a *app) agentsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "agents [NAME...]",
		Short: "Show which coding agents hookd speaks with, and what each of their events can do",
		Long: `Prints a line per agent and event: what it is to hookd, and what the agent lets a
hook do there. What an agent has no form for is done in the nearest way it has,
and the answer's warnings say so; docs/agents.md has that list.`,
		Example: "  hookd agents\n  hookd agents claude codex\n  hookd agents --json",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			list := agent.All()
			if len(args) > 0 {
				list = nil
			}
			for _, name := range args {
				d := agent.Find(name)
				if d == nil {
					return usage(cmd, "unknown agent %q%s: one of %s", name, protocol.DidYouMean(name, agent.Names()), strings.Join(agent.Names(), ", "))
				}
				list = append(list, d)
			}
			return a.show(asJSON, agentRows(list), func(w io.Writer) error {
				_, err := io.WriteString(w, agent.Text(list...))
				return err
			})
		},
		ValidArgsFunction: cobra.FixedCompletions(agent.Names(), cobra.ShellCompDirectiveNoFileComp),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array of {agent, event, stage, kind, can, note}")
	return cmd
}

type agentRow struct {
	Agent string   `json:"agent"`
	Event string   `json:"event"`
	Stage string   `json:"stage"`
	Kind  string   `json:"kind"`
	Can   []string `json:"can"`
	Note  string   `json:"note"`
}

func agentRows(list []agent.Dialect) []agentRow {
	rows := []agentRow{}
	for _, d := range list {
		for _, r := range d.Rows() {
			rows = append(rows, agentRow{d.Name(), r.Event, string(r.Stage), string(r.Kind), append([]string{}, agent.Capabilities(r)...), r.Note})
		}
	}
	return rows
}
