package hook_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// noSecrets keeps tools away from .env files. This is all that a hook needs to
// be; serve.Main(noSecrets{}) of package hook/serve makes a program of it.
type noSecrets struct{ hook.NoTool }

func (noSecrets) BeforeTool(_ context.Context, call *hook.ToolCall) (protocol.Decision, error) {
	if strings.Contains(string(call.Arguments), ".env") {
		return hook.Deny("%s may not touch .env files: ask the user for what you need", call.Tool), nil
	}
	return hook.Continue(), nil
}

func Example() {
	roles, err := hook.RolesOf(noSecrets{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("asked at", roles.Stages)

	req := &protocol.Request{
		Stage: protocol.NewStageTable().Stage(protocol.StageBeforeTool),
		Subject: protocol.Object{
			{Name: "tool", Value: protocol.Quote("read_file")},
			{Name: "arguments", Value: []byte(`{"path":"app/.env"}`)},
		},
	}
	d, err := roles.Interceptor.Intercept(context.Background(), req)
	fmt.Println(d.Action, d.Reason, err)
	// Output:
	// asked at [before_tool after_tool]
	// deny read_file may not touch .env files: ask the user for what you need <nil>
}
