package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/protocol"
)

// maxCallBytes is how much a command reads from standard input.
const maxCallBytes = 16 << 20

func (a *app) callCommand() *cobra.Command {
	var p places
	var agent string
	cmd := &cobra.Command{
		Use:   "call STAGE",
		Short: "Ask the daemon as an agent would, and print its decision",
		Long: `Reads the params of a stage as JSON from standard input, asks the daemon, and
prints the decision as one line of JSON. The exit code is 0 whatever was
decided, and 1 when there was no decision.

Stages, in the order of a run:
  ` + stageList(),
		Example: `  echo '{"tool":"bash","arguments":{"command":"ls"}}' | hookd call before_tool
  echo '{"tool":"bash","arguments":{"command":"ls"},"trail":true}' | hookd call before_tool`,
		Args: oneArg("STAGE"), ValidArgs: protocol.StageNames(),
		RunE: func(cmd *cobra.Command, args []string) error { return a.call(cmd, p, args[0], agent) },
	}
	p.flags(cmd, false)
	cmd.Flags().StringVar(&agent, "agent", "hookd-call", "the name to greet with, which the config's \"agents\" patterns see")
	return cmd
}

func stageList() string {
	var b bytes.Buffer
	width := 0
	for i, name := range protocol.StageNames() {
		switch {
		case i == 0:
		case width+len(name) > 68:
			b.WriteString("\n  ")
			width = 0
		default:
			b.WriteString(" ")
		}
		b.WriteString(name)
		width += len(name) + 1
	}
	return b.String()
}

// stageParams reads a stage's params from standard input.
func (a *app) stageParams(cmd *cobra.Command, name string) (*protocol.StageInfo, []byte, error) {
	stage := protocol.NewStageTable().Stage(protocol.Stage(name))
	if stage == nil {
		return nil, nil, usage(cmd, "unknown stage %q%s", name, protocol.DidYouMean(name, protocol.StageNames()))
	}
	data, err := a.readInput("the params of "+name, maxCallBytes)
	if err != nil {
		return nil, nil, err
	}
	data = bytes.TrimSpace(data)
	if err := protocol.CheckValue(data, 0); err != nil {
		return nil, nil, fmt.Errorf("the params of %s: %w", name, err)
	}
	return stage, protocol.Compact(data), nil // one line, for the wire
}

func (a *app) call(cmd *cobra.Command, p places, name, agent string) error {
	stage, params, err := a.stageParams(cmd, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	peer, err := a.dialAgents(ctx, p)
	if err != nil {
		return err
	}
	defer peer.Close()
	if err := callPeer(ctx, peer, protocol.MethodHello, protocol.AgentHello{Name: agent}, nil); err != nil {
		return err
	}
	result, err := peer.Call(ctx, stage.Method(), params)
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return fmt.Errorf("no decision: %w", e)
	}
	if err != nil {
		return fmt.Errorf("no decision: %w", err)
	}
	_, err = fmt.Fprintf(a.out, "%s\n", result)
	return err
}
