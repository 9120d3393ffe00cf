// Command agent is a small agent that asks hookd at every step of its loop,
// and does what an agent has to do on every verb. The tools are real, the model
// is a file of answers, so that a run shows what hooks do and nothing else:
//
//	hookd serve --config config.example.json &
//	go run ./examples/agent examples/agent/script.json
//
// It prints what happens, a line each. The loop is in loop.go; agent.py and
// agent.ts are the part of it that no agent can leave out, in other languages.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
)

// options are what the command line says.
type options struct {
	script   string
	folder   string // where the tools work; empty means a new one, which is removed in the end
	socket   string // empty means the usual place
	patience time.Duration
	redial   time.Duration // see [client.Options]
}

func main() {
	var o options
	flag.StringVar(&o.socket, "socket", "", "hookd's socket (default $HOOKD_SOCKET, or the usual place)")
	flag.DurationVar(&o.patience, "patience", time.Minute, "how long to wait for a decision, and as long again for people who approve")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: agent [flags] SCRIPT [FOLDER]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if o.script, o.folder = flag.Arg(0), flag.Arg(1); o.script == "" || flag.NArg() > 2 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// run holds one session: it works through the script and prints to out.
func run(ctx context.Context, o options, out io.Writer) error {
	script, err := readScript(o.script)
	if err != nil {
		return err
	}
	tools, err := openTools(o.folder)
	if err != nil {
		return err
	}
	defer tools.close()
	hooks, err := client.Dial(ctx, client.Options{
		Name: "example-agent", SessionID: rand.Text(), Socket: o.socket,
		Deadline: o.patience, ApprovalDeadline: o.patience, Redial: o.redial,
	})
	if err != nil {
		return fmt.Errorf("no hooks, no agent: %w", err)
	}
	defer hooks.Close()

	a := &agent{hooks: hooks, model: &model{name: script.Model}, tools: tools, out: transcript{out}}
	a.meta.CWD = tools.folder // hooks judge relative paths by it
	// Hookd makes the events that the calls imply. Those that it can't see come from here.
	hooks.Event(client.Event{Kind: protocol.EventSessionStart, Meta: a.meta, Payload: map[string]any{"source": "startup"}})
	reason := "the script is over"
	for i, turn := range script.Turns {
		a.meta.TurnID = fmt.Sprintf("turn-%d", i+1)
		if !a.turn(ctx, script.System, turn) {
			reason = "ended before the script was"
			break
		}
	}
	a.out.line("session", "%s", reason)
	hooks.Event(client.Event{Kind: protocol.EventSessionEnd, Meta: a.meta, Payload: map[string]any{"reason": reason}})
	return nil
}
