package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/approval"
	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/console"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

const (
	// callShown is how many bytes of a call's arguments a line of text shows.
	callShown = 400
	// ruleShown is the same in a table of rules.
	ruleShown = 60
	// maxListBytes is how long an answer may be that holds arguments of calls.
	maxListBytes = 256 << 20
)

func (a *app) approvalsCommand() *cobra.Command {
	var p places
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "See which tool calls wait for a person, and say yes or no",
		Long: `Lists the tool calls that wait for a person. A call waits when a hook has
answered "ask" about it and the built-in human is in the config:

  "hooks": {"builtins": {"human": {"priority": 20, "when": "asked"}}}

It waits until somebody answers, until its time is over (approval_timeout_ms of
the entry, 60 s by default, a day at most), or until the agent goes away or its
own deadline comes. Everything but a yes is a no.

With "config": {"notify": ["notify-send", "hookd asks"]} in the entry a command
is started for each call; it gets the call as JSON on its standard input.

Each call has an id. An answer to it holds for exactly that call: for its tool
and its arguments, byte for byte, once. With --session or --always it becomes a
rule, which answers exactly this call also the next time; see hookd approvals
rules. In hookd approvals watch you answer with a key.

Who may reach the control socket may answer (control.group and control.allow_uids
in the config), except a process that the asking agent has started, unless
approval.not_same_process_tree is false. That is against accidents; what keeps an
agent out for certain is a user of its own.`,
		Example: `  hookd approvals
  hookd approvals watch
  hookd approvals approve bavi-nope-42
  hookd approvals deny bavi-nope-42 --reason 'not on a Friday'
  hookd approvals --json | jq '.[] | {id, tool, arguments, expires}'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []daemon.ApprovalTicket
			if err := a.controlLarge(cmd.Context(), p, daemon.MethodApprovalsList, nil, &list); err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(list)
			}
			return a.printTickets(cmd.Context(), p, list)
		},
	}
	p.flags(cmd, true)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: an array of calls")
	cmd.AddCommand(a.watchCommand(), a.answerCommand("approve", "Allow a call that waits"), a.answerCommand("deny", "Deny a call that waits"),
		a.rulesCommand(), a.revokeCommand())
	return cmd
}

// controlLarge is [app.control] for an answer that may hold arguments of calls.
func (a *app) controlLarge(ctx context.Context, p places, method string, params, out any) error {
	peer, err := a.dialLarge(ctx, p, nil)
	if err != nil {
		return err
	}
	defer peer.Close()
	return callPeer(ctx, peer, method, params, out)
}

func (a *app) dialLarge(ctx context.Context, p places, h rpc.Handler) (*rpc.Peer, error) {
	conn, err := dialSocket(ctx, client.ControlSocketPath(p.control, client.SocketPath(p.socket, a.getenv), a.getenv))
	if err != nil {
		return nil, err
	}
	return rpc.NewPeer(ctx, conn, rpc.Options{Handler: h, Limits: protocol.Limits{MaxMessageBytes: maxListBytes}}), nil
}

func (a *app) printJSON(v any) error {
	return json.MarshalWrite(a.out, v, json.Deterministic(true), jsontext.WithIndent("  "), jsontext.SpaceAfterColon(true))
}

func (a *app) printTickets(ctx context.Context, p places, list []daemon.ApprovalTicket) error {
	if len(list) == 0 {
		fmt.Fprintln(a.out, "Nothing waits for an answer.")
		var s daemon.Status
		err := a.control(ctx, p, daemon.MethodStatus, nil, &s)
		if err == nil && !slices.ContainsFunc(s.Hooks, func(h daemon.HookStatus) bool { return h.Name == "human" }) {
			fmt.Fprintln(a.err, `The built-in human is not in the config, so nobody is asked; see hookd approvals --help.`)
		}
		return nil
	}
	for _, t := range list {
		fmt.Fprintf(a.out, "%s  %s\n", a.paint(a.out, yellow, t.ID), ticketCall(&t))
		for _, line := range ticketFacts(&t) {
			fmt.Fprintf(a.out, "%*s  %s\n", len(t.ID), "", line)
		}
	}
	fmt.Fprintln(a.err, "Answer with hookd approvals approve ID or deny ID, or look at them in hookd approvals watch.")
	return nil
}

// ticketCall is a call on one line.
func ticketCall(t *daemon.ApprovalTicket) string {
	if t.Arguments == nil || t.Arguments.Kind() == 'n' {
		return fmt.Sprintf("%s (arguments of %d bytes; see hookd approvals watch)", console.Escape(t.Tool), t.ArgumentsBytes)
	}
	return console.Call(t.Tool, t.Arguments, callShown)
}

// ticketFacts are lines about why, who, and for how long.
func ticketFacts(t *daemon.ApprovalTicket) (lines []string) {
	if why := console.Escape(t.Message); why != "" {
		if t.AskedBy != "" {
			why = console.Escape(t.AskedBy) + ": " + why
		}
		lines = append(lines, why)
	}
	facts := []string{viewOf(t).Who()}
	if t.Session != "" {
		facts = append(facts, "session "+console.Escape(t.Session))
	}
	if t.CWD != "" {
		facts = append(facts, "in "+console.Escape(t.CWD))
	}
	return append(lines, strings.Join(append(facts, console.Left(time.Until(t.Expires))), ", "))
}

// viewOf is a ticket as the page shows it.
func viewOf(t *daemon.ApprovalTicket) *console.Ticket {
	return &console.Ticket{
		ID: t.ID, Digest: t.Digest, Tool: t.Tool, Arguments: t.Arguments, Message: t.Message, AskedBy: t.AskedBy, Agent: t.Agent,
		PID: t.PID, UID: t.UID, Session: t.Session, Task: t.Task, User: t.User, Node: t.Node, CWD: t.CWD, Model: t.Model,
		Opened: t.Opened, Expires: t.Expires,
	}
}

func (a *app) answerCommand(word, short string) *cobra.Command {
	var p places
	var reason string
	var session, always bool
	method := daemon.MethodApprovalsApprove
	if word == "deny" {
		method = daemon.MethodApprovalsDeny
	}
	cmd := &cobra.Command{
		Use: word + " ID", Short: short,
		Long: short + `, by the id that hookd approvals shows. The answer holds for that call
once, unless --session or --always makes a rule of it. The reason goes to the
agent, and through it to the model.

A call that nobody waits for any more can't be answered: the exit code is 1, and
what has become of it is said.`,
		Example: fmt.Sprintf("  hookd approvals %s bavi-nope-42 --reason 'seen by Ann'\n  hookd approvals %s bavi-nope-42 --session", word, word),
		Args:    oneArg("ID"), ValidArgsFunction: a.completeTickets(&p),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := daemon.ApprovalAnswerParams{ID: args[0], Reason: reason}
			switch {
			case session && always:
				return usage(cmd, "--session and --always exclude each other")
			case session:
				params.Scope = approval.ForSession
			case always:
				params.Scope = approval.Always
			}
			var done daemon.ApprovalAnswered
			if err := a.controlLarge(cmd.Context(), p, method, params, &done); err != nil {
				return err
			}
			fmt.Fprintln(a.out, answerText(&done))
			a.warnIf(done.Warning)
			return nil
		},
	}
	p.flags(cmd, true)
	f := cmd.Flags()
	f.StringVar(&reason, "reason", "", "why, for the agent and the record")
	f.BoolVar(&session, "session", false, "answer exactly this call so until the session ends")
	f.BoolVar(&always, "always", false, "answer exactly this call so until the rule is revoked")
	return cmd
}

// answerText says what an answer has done.
func answerText(d *daemon.ApprovalAnswered) string {
	word := "denied"
	if d.Approved {
		word = "allowed"
	}
	text := fmt.Sprintf("%s %s: %s", word, d.Ticket.ID, ticketCall(&d.Ticket))
	if d.Rule != nil {
		text += fmt.Sprintf("\nrule %d answers exactly this call so %s", d.Rule.Rule, ends(d.Rule))
	}
	if len(d.Also) > 0 {
		text += "\nit has answered what waited for the same: " + strings.Join(d.Also, " ")
	}
	return text
}

// ends says when a rule does.
func ends(r *daemon.ApprovalRule) string {
	if r.Scope == approval.ForSession {
		return "until the session " + console.Escape(r.Session) + " ends"
	}
	return fmt.Sprintf("until hookd approvals revoke %d", r.Rule)
}

func (a *app) rulesCommand() *cobra.Command {
	var p places
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "List the answers that hold for calls to come",
		Long: `Lists the rules that people have made by answering a call "for this session" or
"always". A rule answers exactly that call, by the digest of tool and arguments,
when it comes from the same agent of the same user in the same folder. What a
rule answers is signed with its number, its maker and its date. A rule for a
session ends with the session.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var rules []daemon.ApprovalRule
			if err := a.controlLarge(cmd.Context(), p, daemon.MethodApprovalsRules, nil, &rules); err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(rules)
			}
			if len(rules) == 0 {
				fmt.Fprintln(a.out, "There are no rules: every call is asked about.")
				return nil
			}
			w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "RULE\tANSWER\tFOR\tAGENT\tUID\tFOLDER\tMADE BY\tMADE\tUSED\tCALL")
			for _, r := range rules {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%d\t%s\n", r.Rule, yesNo(r.Approved), ruleScope(&r), dash(r.Agent), r.UID, dash(r.CWD),
					console.Escape(r.By), r.Made.Local().Format("2006-01-02 15:04"), r.Used, ruleCall(&r))
			}
			return w.Flush()
		},
	}
	p.flags(cmd, true)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func yesNo(yes bool) string {
	if yes {
		return "allow"
	}
	return "deny"
}

func ruleScope(r *daemon.ApprovalRule) string {
	if r.Scope == approval.ForSession {
		return "session " + console.Escape(r.Session)
	}
	return "always"
}

func ruleCall(r *daemon.ApprovalRule) string {
	if r.Arguments == nil || r.Arguments.Kind() == 'n' {
		return fmt.Sprintf("%s (large arguments, digest %.12s)", console.Escape(r.Tool), r.Digest)
	}
	return console.Call(r.Tool, r.Arguments, ruleShown)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return console.Escape(text)
}

func (a *app) revokeCommand() *cobra.Command {
	var p places
	cmd := &cobra.Command{
		Use:   "revoke RULE",
		Short: "End a rule, by the number that hookd approvals rules shows",
		Long: `Ends a rule: from now on the call is asked about again. Calls that it has
answered stay answered.`,
		Example: "  hookd approvals revoke 3",
		Args:    oneArg("RULE"), ValidArgsFunction: a.completeRules(&p),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 1 {
				return usage(cmd, "%q is no number of a rule", args[0])
			}
			var rule daemon.ApprovalRule
			if err := a.controlLarge(cmd.Context(), p, daemon.MethodApprovalsRevoke, daemon.ApprovalRevokeParams{Rule: n}, &rule); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "revoked rule %d: %s\n", rule.Rule, ruleCall(&rule))
			return nil
		},
	}
	p.flags(cmd, true)
	return cmd
}

// completeTickets offers the ids of the calls that wait.
func (a *app) completeTickets(p *places) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (ids []cobra.Completion, _ cobra.ShellCompDirective) {
		var list []daemon.ApprovalTicket
		if len(args) == 0 && a.controlLarge(cmd.Context(), *p, daemon.MethodApprovalsList, nil, &list) == nil {
			for _, t := range list {
				ids = append(ids, cobra.CompletionWithDesc(t.ID, console.Call(t.Tool, t.Arguments, ruleShown)))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRules offers the numbers of the rules.
func (a *app) completeRules(p *places) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (numbers []cobra.Completion, _ cobra.ShellCompDirective) {
		var rules []daemon.ApprovalRule
		if len(args) == 0 && a.controlLarge(cmd.Context(), *p, daemon.MethodApprovalsRules, nil, &rules) == nil {
			for _, r := range rules {
				numbers = append(numbers, cobra.CompletionWithDesc(strconv.Itoa(r.Rule), ruleCall(&r)))
			}
		}
		return numbers, cobra.ShellCompDirectiveNoFileComp
	}
}
