// Command custom is hookd with a hook of one's own inside. The hook runs in
// hookd's process, which costs microseconds instead of a round trip, and a
// config names it like any built-in:
//
//	{"hooks": {"builtins": {"no-sudo": {"fail_policy": "deny"}}}}
//
// Everything else is the hookd command: go run ./examples/custom serve
package main

import (
	"context"
	"strings"

	"github.com/hookd/hookd/cmd/hookd/cli"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
)

func main() {
	cli.Main(mount.Builtin{
		Name: "no-sudo",
		New:  func(mount.BuiltinContext) (any, error) { return noSudo{}, nil },
	})
}

// noSudo denies shell commands that start with sudo.
type noSudo struct{ hook.NoTool }

// BeforeTool implements [hook.ToolInterceptor].
func (noSudo) BeforeTool(_ context.Context, call *hook.ToolCall) (protocol.Decision, error) {
	var args struct {
		Command string `json:"command"`
	}
	if err := call.Decode(&args); err != nil {
		return hook.Continue(), nil // no shell command
	}
	if strings.HasPrefix(strings.TrimSpace(args.Command), "sudo ") {
		return hook.Deny("sudo is not for agents"), nil
	}
	return hook.Continue(), nil
}

// Quick tells hookd that no call ever waits.
func (noSudo) Quick() {}
