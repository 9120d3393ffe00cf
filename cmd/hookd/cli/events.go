package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/hookd/hookd/console"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

func (a *app) eventsCommand() *cobra.Command {
	var p places
	var kinds []string
	var asJSON bool
	var count int
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Follow what happens: events and decisions",
		Long: `Follows events and decisions until it is interrupted. A person at a terminal
gets a line each; a program gets JSON lines.`,
		Example: `  hookd events
  hookd events --kind decision --kind 'tool_*' --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.follow(ctx, p, kinds, asJSON || !isTerminal(a.out), count)
		},
	}
	p.flags(cmd, true)
	cmd.Flags().StringArrayVar(&kinds, "kind", nil, "only events of this kind, which may hold * and ?; may be given several times")
	cmd.Flags().BoolVar(&asJSON, "json", false, "JSON lines also at a terminal")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "end after so many events (0 = never)")
	return cmd
}

// eventReader receives the daemon's events, in order.
type eventReader struct{ events chan jsontext.Value }

// Accept implements [rpc.Handler]. Blocking here is what slows the daemon's
// sending down; it then counts what is missed.
func (r eventReader) Accept(req *rpc.Request) rpc.Work {
	if req.Method == protocol.MethodEvent && req.Notification() {
		r.events <- req.Params
	}
	return rpc.Work{}
}

func (a *app) follow(ctx context.Context, p places, kinds []string, asJSON bool, count int) error {
	reader := eventReader{make(chan jsontext.Value)}
	peer, err := a.dialControl(ctx, p, reader)
	if err != nil {
		return err
	}
	drained := make(chan struct{})
	defer func() { // let the read loop go on, so that Close can end it
		go func() {
			defer close(drained)
			for {
				select {
				case <-reader.events:
				case <-peer.Done():
					return
				}
			}
		}()
		peer.Close()
		<-drained
	}()
	if err := callPeer(ctx, peer, daemon.MethodSubscribe, daemon.SubscribeParams{Events: kinds}, nil); err != nil {
		return err
	}
	for seen := 0; count == 0 || seen < count; seen++ {
		select {
		case ev := <-reader.events:
			line := string(ev)
			if !asJSON {
				line = a.eventLine(ev)
			}
			if _, err := fmt.Fprintln(a.out, line); err != nil {
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

// eventLine writes an event for a person: when, what, and the few facts that
// most kinds have. Agents choose most of it, so nothing reaches the terminal raw.
func (a *app) eventLine(raw jsontext.Value) string {
	var ev struct {
		Kind   string    `json:"kind"`
		Time   time.Time `json:"time"`
		Missed uint64    `json:"missed"`
		Meta   struct {
			Agent   string `json:"agent"`
			Session string `json:"session_id"`
		} `json:"meta"`
		Payload struct {
			Stage     string              `json:"stage"`
			Tool      string              `json:"tool"`
			Action    string              `json:"action"`
			Reason    string              `json:"reason"`
			Hook      string              `json:"hook"`
			State     string              `json:"state"`
			Outcome   string              `json:"outcome"`
			Detail    string              `json:"detail"`
			DecidedBy string              `json:"decided_by"`
			Degraded  []protocol.Degraded `json:"degraded"`
		} `json:"payload"`
	}
	// In an event of somebody's own a member may have another type; what was
	// read up to there is shown.
	_ = protocol.Unmarshal(raw, &ev)
	var b strings.Builder
	if ev.Missed > 0 {
		fmt.Fprintf(&b, "%s\n", a.paint(a.out, yellow, fmt.Sprintf("… %d events missed", ev.Missed)))
	}
	fmt.Fprintf(&b, "%s %-18s", a.paint(a.out, grey, ev.Time.Local().Format("15:04:05.000")), console.Escape(ev.Kind))
	for _, word := range []string{ev.Meta.Agent, ev.Payload.Stage, ev.Payload.Tool, ev.Payload.Hook, ev.Payload.State, ev.Payload.Outcome} {
		if word != "" {
			b.WriteString(" " + console.Escape(word))
		}
	}
	if ev.Payload.Action != "" {
		colour := green
		if protocol.Action(ev.Payload.Action).Stops() {
			colour = red
		}
		b.WriteString(" " + a.paint(a.out, colour, console.Escape(ev.Payload.Action)))
	}
	if ev.Payload.DecidedBy != "" {
		b.WriteString(" by " + console.Escape(ev.Payload.DecidedBy))
	}
	for _, why := range []string{ev.Payload.Reason, ev.Payload.Detail} {
		if why != "" {
			fmt.Fprintf(&b, ": %q", why) // escapes on its own
		}
	}
	for _, g := range ev.Payload.Degraded {
		b.WriteString(" " + a.paint(a.out, yellow, "("+console.Escape(g.Hook+" "+string(g.Outcome))+")"))
	}
	return b.String()
}
