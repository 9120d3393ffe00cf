package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/mcp"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

func (a *app) mcpCommand() *cobra.Command {
	var p places
	var server string
	away := awayDeny
	policies := []string{awayContinue, awayDeny}
	cmd := &cobra.Command{
		Use:   "mcp [flags] -- CMD [ARG...]",
		Short: "Put hookd in front of an MCP server that speaks over stdio",
		Long: `Starts CMD, an MCP server, and stands between it and the MCP client that started
hookd. Every tools/call is asked about as a call of the tool mcp__NAME__TOOL:
before_tool, approvals where a hook asks for them, and after_tool with what the
server answered. A denied call becomes the tool's error, with the reason.
Everything else passes as it is.

The server gets hookd's own environment, as it would from the client.`,
		Example: `  hookd mcp --server files -- npx -y @modelcontextprotocol/server-filesystem /data

In an MCP client's config, put it before the command that is there:
  {"mcpServers": {"files": {"command": "hookd",
    "args": ["mcp", "--server", "files", "--", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/data"]}}}`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, "the server's command is missing: hookd mcp -- CMD")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(policies, away) {
				return usage(cmd, "--on-unavailable %q: one of %s", away, strings.Join(policies, ", "))
			}
			if server == "" {
				server = serverName(args)
			}
			if !serverNames.MatchString(server) {
				return usage(cmd, "--server %q: letters, digits, dots and dashes", server)
			}
			return a.mcp(cmd.Context(), p, server, away == awayContinue, args)
		},
	}
	p.flags(cmd, false)
	cmd.Flags().StringVar(&server, "server", "", "the server's name in tool names (default: the command's)")
	cmd.Flags().StringVar(&away, "on-unavailable", away, "the answer while no daemon is there: continue or deny")
	_ = cmd.RegisterFlagCompletionFunc("on-unavailable", cobra.FixedCompletions(policies, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return cmd
}

var serverNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(_[A-Za-z0-9.-]+)*$`)

// serverName is what to call a server that nobody gave a name: the last word
// of the command that looks like a program.
func serverName(argv []string) string {
	name := filepath.Base(argv[0])
	switch strings.TrimRight(name, "0123456789.") {
	case "npx", "node", "python", "uvx", "uv", "bunx", "deno", "sh", "bash":
		for _, arg := range argv[1:] {
			if !strings.HasPrefix(arg, "-") && arg != "run" {
				name = filepath.Base(arg)
				break
			}
		}
	}
	name = strings.TrimSuffix(name, filepath.Ext(name))
	return strings.Trim(regexp.MustCompile(`[^A-Za-z0-9.-]+`).ReplaceAllString(name, "-"), "-.")
}

// mcpGrace is how long the server may take to end after its input has.
const mcpGrace = 5 * time.Second

func (a *app) mcp(ctx context.Context, p places, server string, pass bool, argv []string) error {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if name != "" {
			env[name] = value
		}
	}
	spawner := child.NewSpawner()
	defer spawner.Close()
	process, err := spawner.Start(ctx, child.Spec{
		Name: server, Argv: argv, Env: env,
		Stderr: func(line []byte, dropped int64) {
			if line != nil {
				fmt.Fprintf(a.err, "%s\n", line)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("start the MCP server: %w", err)
	}
	defer process.Stdout().Close()
	asker := &mcpAsker{pass: pass, options: client.Options{
		Name: "mcp", Version: version(), Socket: client.SocketPath(p.socket, a.getenv), ApprovalDeadline: -1,
	}}
	defer asker.close()
	proxy := mcp.New(mcp.Options{Server: server, Ask: asker, Warn: func(text string) { fmt.Fprintln(a.err, "hookd: "+text) }})
	stdio := rpc.Stdio(a.in, a.out)
	err = proxy.Run(ctx, stdio, stdio, process.Stdout(), process.Stdin())
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), mcpGrace)
	defer cancel()
	exit := process.Stop(stopping)
	_ = stdio.Close() // ends a read that still waits
	if err == nil && exit.Code > 0 {
		err = fmt.Errorf("the MCP server %s", exit.How())
	}
	return err
}

// mcpAsker asks the daemon, and finds it again when it was away.
type mcpAsker struct {
	options client.Options
	pass    bool // while no daemon is there, calls go on

	mu sync.Mutex
	c  *client.Client
}

func (m *mcpAsker) dial(ctx context.Context) (*client.Client, error) {
	m.mu.Lock()
	c := m.c
	m.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := client.Dial(ctx, m.options)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.c != nil { // another call was faster
		_ = c.Close() // nothing was sent
		return m.c, nil
	}
	m.c = c
	return c, nil
}

func (m *mcpAsker) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.c != nil {
		_ = m.c.Close() // all calls have ended
	}
}

// away reports whether err means that nobody judged, and calls go on then.
func (m *mcpAsker) away(ctx context.Context, err error) bool {
	return err != nil && m.pass && ctx.Err() == nil && !errors.Is(err, client.ErrUntrusted)
}

func (m *mcpAsker) BeforeTool(ctx context.Context, p client.BeforeTool) (client.ToolVerdict, error) {
	c, err := m.dial(ctx)
	if err == nil {
		var v client.ToolVerdict
		if v, err = c.BeforeTool(ctx, p); err == nil {
			return v, nil
		}
	}
	if m.away(ctx, err) {
		arguments, _ := protocol.Marshal(p.Arguments) // they came as JSON
		return client.ToolVerdict{Allowed: true, Tool: p.Tool, Arguments: arguments}, nil
	}
	return client.ToolVerdict{Answer: client.Answer{Reason: "hookd gave no verdict: " + err.Error()}}, err
}

func (m *mcpAsker) AfterTool(ctx context.Context, p client.AfterTool) (client.ResultVerdict, error) {
	c, err := m.dial(ctx)
	if err == nil {
		var v client.ResultVerdict
		if v, err = c.AfterTool(ctx, p); err == nil {
			return v, nil
		}
	}
	result, _ := protocol.Marshal(p.Result) // as above
	if m.away(ctx, err) {
		return client.ResultVerdict{Allowed: true, Result: result}, nil
	}
	why, _ := protocol.Marshal(client.Result{Content: "withheld: hookd gave no verdict: " + err.Error(), IsError: true})
	return client.ResultVerdict{Result: why}, err
}
