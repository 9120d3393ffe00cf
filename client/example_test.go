package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/rpc"
)

// turn is the loop of a small agent: it asks hookd about every tool call that
// the model wants, and tells the model what came of it.
func turn(ctx context.Context, hooks *client.Client, model *scripted) {
	for {
		call := model.next()
		if call.Tool == "" {
			stop, _ := hooks.Stop(ctx, client.Stop{})
			if !stop.Again {
				return
			}
			model.tell(stop.Inject...)
			continue
		}
		may, err := hooks.BeforeTool(ctx, client.BeforeTool{Tool: call.Tool, Arguments: call.Arguments})
		if err != nil {
			log.Print(err) // may is a no then
		}
		result := may.Result
		if may.Allowed {
			out := run(may.Tool, may.Arguments) // not call: hooks may have changed it
			done, _ := hooks.AfterTool(ctx, client.AfterTool{Tool: may.Tool, Arguments: may.Arguments, Result: out})
			result = done.Result
		}
		model.tell(result)
		if may.EndsTurn() {
			return
		}
	}
}

func Example() {
	socket, stop := someHookd()
	defer stop()

	hooks, err := client.Dial(context.Background(), client.Options{Name: "my-agent", Socket: socket})
	if err != nil {
		log.Fatal(err) // no hooks, no agent
	}
	defer hooks.Close()
	turn(context.Background(), hooks, &scripted{calls: []toolCall{
		{"echo", json.RawMessage(`{"text":"hi"}`)},
		{"rm", json.RawMessage(`{"path":"/"}`)},
	}})
	// Output:
	// {"content":"echo says hi","is_error":false}
	// {"content":"not on my machine","is_error":true}
}

// What follows stands in for a model, its tools, and a daemon with one hook.

type toolCall struct {
	Tool      string
	Arguments json.RawMessage
}

type scripted struct{ calls []toolCall }

func (s *scripted) next() (c toolCall) {
	if len(s.calls) > 0 {
		c, s.calls = s.calls[0], s.calls[1:]
	}
	return c
}

func (s *scripted) tell(messages ...jsontext.Value) {
	for _, m := range messages {
		fmt.Println(m)
	}
}

func run(tool string, arguments []byte) client.Result {
	var args struct{ Text string }
	if err := json.Unmarshal(arguments, &args); err != nil {
		return client.Result{Content: err.Error(), IsError: true}
	}
	return client.Result{Content: tool + " says " + args.Text}
}

func someHookd() (socket string, stop func()) {
	dir, err := os.MkdirTemp("/tmp", "h")
	if err != nil {
		log.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	stopServing, err := serveOn(socket, &hookd{answer: func(r *rpc.Request) rpc.Work {
		if r.Method == "hook.before_tool" && strings.Contains(string(r.Params), `"rm"`) {
			return say(`{"action":"deny_tool","reason":"not on my machine","decided_by":"guard"}`)
		}
		return say(yes(r))
	}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	return socket, func() {
		stopServing()
		_ = os.RemoveAll(dir)
	}
}
