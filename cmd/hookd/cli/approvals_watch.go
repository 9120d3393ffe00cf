package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/approval"
	"github.com/hookd/hookd/console"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

func (a *app) watchCommand() *cobra.Command {
	var p places
	var asJSON bool
	var count int
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Answer calls with a key, as they come",
		Long: `Shows, on a terminal, one call that waits after the other: what shall run, who
asks, why, and how much time is left. One key answers:

  y  allow it once            s  allow exactly this call for this session
  n  deny it                  a  always allow exactly this call
  r  write a reason first     ?  all keys

Nothing of a call is hidden: characters that can't be seen are written as
‹U+202E›, edits of files are shown as changes (v shows them as they are), and a
long call is paged. What has not been on the page is counted before a yes.

Without a terminal it prints a line for each call that comes and each that has
been answered, until it is interrupted, and answers nothing.`,
		Example: `  hookd approvals watch
  hookd approvals watch >calls.txt &
  hookd approvals watch --json | jq .payload`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !asJSON && count == 0 && isTerminal(a.in) && isTerminal(a.out) && a.getenv("TERM") != "dumb" {
				return a.watch(cmd.Context(), p)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.watchLines(ctx, p, asJSON, count)
		},
	}
	p.flags(cmd, true)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the events approval_requested and approval_resolved as JSON lines")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "print lines, and end after so many (0 = never)")
	return cmd
}

// watch shows the page.
func (a *app) watch(ctx context.Context, p places) error {
	s := &ticketSource{a: a, p: p}
	defer s.close()
	if err := s.call(ctx, daemon.MethodApprovalsRules, nil, nil); err != nil {
		return err // at a daemon that is not there nobody need look
	}
	return console.Run(ctx, console.Options{In: a.in, Out: a.out, Source: s, Colour: a.getenv("NO_COLOR") == ""})
}

// ticketSource is the daemon as the page sees it. A connection that breaks is
// made anew with the next question.
type ticketSource struct {
	a    *app
	p    places
	peer *rpc.Peer
}

func (s *ticketSource) call(ctx context.Context, method string, params, out any) (err error) {
	if s.peer == nil {
		if s.peer, err = s.a.dialLarge(context.WithoutCancel(ctx), s.p, nil); err != nil {
			return err
		}
	}
	err = callPeer(ctx, s.peer, method, params, out)
	if _, refused := errors.AsType[*refusedError](err); err != nil && !refused {
		s.close()
	}
	return err
}

func (s *ticketSource) close() {
	if s.peer != nil {
		s.peer.Close()
		s.peer = nil
	}
}

// Tickets implements [console.Source].
func (s *ticketSource) Tickets(ctx context.Context, known []string) (ids []string, fresh []console.Ticket, err error) {
	var list []daemon.ApprovalTicket
	if err := s.call(ctx, daemon.MethodApprovalsList, daemon.ApprovalsListParams{Known: known}, &list); err != nil {
		return nil, nil, err
	}
	for _, t := range list {
		ids = append(ids, t.ID)
		if len(t.Arguments) > 0 && t.Arguments.Kind() != 'n' { // else it is known, or comes with the next list
			fresh = append(fresh, *viewOf(&t))
		}
	}
	return ids, fresh, nil
}

// Answer implements [console.Source].
func (s *ticketSource) Answer(ctx context.Context, a *console.Answer) (string, error) {
	method := daemon.MethodApprovalsDeny
	if a.Approve {
		method = daemon.MethodApprovalsApprove
	}
	var done daemon.ApprovalAnswered
	err := s.call(ctx, method, daemon.ApprovalAnswerParams{ID: a.ID, Digest: a.Digest, Reason: a.Reason, Scope: approval.Scope(a.Scope)}, &done)
	if err != nil {
		return "", err
	}
	said := "denied " + a.ID
	if done.Approved {
		said = "allowed " + a.ID
	}
	if done.Rule != nil {
		said += fmt.Sprintf(", and by rule %d from now on", done.Rule.Rule)
	}
	if done.Warning != "" {
		said += " (" + done.Warning + ")"
	}
	return said, nil
}

// lineReader receives the daemon's events until it is over.
type lineReader struct {
	events chan jsontext.Value
	over   <-chan struct{}
}

// Accept implements [rpc.Handler]. Waiting here slows the daemon's sending
// down; it then counts what is missed.
func (r *lineReader) Accept(req *rpc.Request) rpc.Work {
	if req.Method == protocol.MethodEvent && req.Notification() {
		select {
		case r.events <- req.Params:
		case <-r.over:
		}
	}
	return rpc.Work{}
}

// watchLines prints a line for each call that comes and that ends.
func (a *app) watchLines(ctx context.Context, p places, asJSON bool, count int) error {
	over, cancel := context.WithCancel(ctx)
	reader := &lineReader{make(chan jsontext.Value), over.Done()}
	peer, err := a.dialLarge(context.WithoutCancel(ctx), p, reader)
	if err != nil {
		cancel()
		return err
	}
	defer peer.Close()
	defer cancel()
	kinds := []string{string(protocol.EventApprovalRequested), string(protocol.EventApprovalResolved)}
	if err := callPeer(ctx, peer, daemon.MethodSubscribe, daemon.SubscribeParams{Events: kinds}, nil); err != nil {
		return err
	}
	shown, printed := map[string]bool{}, 0
	show := func(line string) error {
		printed++
		_, err := fmt.Fprintln(a.out, line)
		return err
	}
	if !asJSON {
		var list []daemon.ApprovalTicket
		if err := a.controlLarge(ctx, p, daemon.MethodApprovalsList, nil, &list); err != nil {
			return err
		}
		for _, t := range list {
			shown[t.ID] = true
			if err := show(fmt.Sprintf("%s  waits    %s  %s  (%s)", clock(t.Opened), t.ID, ticketCall(&t), strings.Join(ticketFacts(&t), "; "))); err != nil {
				return err
			}
		}
	}
	for count == 0 || printed < count {
		select {
		case raw := <-reader.events:
			line := string(raw)
			if !asJSON {
				line = approvalLine(raw, shown)
			}
			if line == "" {
				continue
			}
			if err := show(line); err != nil {
				return err
			}
		case <-peer.Done():
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("the daemon ended: %w", peer.Err())
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }

// approvalLine writes an event as a line; "" = that was shown already.
func approvalLine(raw jsontext.Value, shown map[string]bool) string {
	var ev struct {
		Kind   protocol.EventKind `json:"kind"`
		Time   time.Time          `json:"time"`
		Missed uint64             `json:"missed"`
		Meta   struct {
			Agent   string `json:"agent"`
			Session string `json:"session_id"`
		} `json:"meta"`
		Payload struct {
			Ticket    string         `json:"ticket"`
			Tool      string         `json:"tool"`
			Arguments jsontext.Value `json:"arguments"`
			Message   string         `json:"message"`
			Approved  bool           `json:"approved"`
			By        string         `json:"by"`
			Reason    string         `json:"reason"`
		} `json:"payload"`
	}
	// hookd makes these events itself.
	_ = protocol.Unmarshal(raw, &ev)
	missed := ""
	if ev.Missed > 0 {
		missed = fmt.Sprintf("… %d events missed\n", ev.Missed)
	}
	id := ev.Payload.Ticket
	if ev.Kind == protocol.EventApprovalRequested {
		if shown[id] {
			return strings.TrimSuffix(missed, "\n")
		}
		shown[id] = true
		facts := []string{dash(ev.Meta.Agent)}
		if ev.Meta.Session != "" {
			facts = append(facts, "session "+console.Escape(ev.Meta.Session))
		}
		if ev.Payload.Message != "" {
			facts = append([]string{console.Escape(ev.Payload.Message)}, facts...)
		}
		return fmt.Sprintf("%s%s  waits    %s  %s  (%s)", missed, clock(ev.Time), id, console.Call(ev.Payload.Tool, ev.Payload.Arguments, callShown), strings.Join(facts, "; "))
	}
	delete(shown, id)
	word := "denied "
	if ev.Payload.Approved {
		word = "allowed"
	}
	line := fmt.Sprintf("%s%s  %s  %s", missed, clock(ev.Time), word, id)
	if ev.Payload.By != "" {
		line += "  by " + console.Escape(ev.Payload.By)
	}
	if ev.Payload.Reason != "" {
		line += ": " + console.Escape(ev.Payload.Reason)
	}
	return line
}
