package demo

import (
	"context"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/protocol"
)

// arguments are those of the agent's one tool, a shell.
type arguments struct {
	Command string `json:"command"`
}

func (d *demo) call() client.Call {
	return client.Call{Meta: client.Meta{CWD: d.path("work")}, Trail: true}
}

// tool is what an agent does with a tool call of its model.
func (d *demo) tool(command string, want protocol.Action) error {
	d.say("agent", "before_tool: "+command)
	v, err := d.ask(command)
	if err != nil {
		return err
	}
	return d.heed(v, want)
}

func (d *demo) ask(command string) (client.ToolVerdict, error) {
	return d.agent.BeforeTool(d.ctx, client.BeforeTool{Call: d.call(), Tool: "bash", Arguments: arguments{command}})
}

// heed runs what hookd returned, which may be another command than was asked
// about, and hands the result on only after hookd has seen it.
func (d *demo) heed(v client.ToolVerdict, want protocol.Action) error {
	d.answer(v.Answer)
	if v.Action != want {
		return fmt.Errorf("hookd decided %q where the story says %q", v.Action, want)
	}
	if !v.Allowed {
		d.say("ran", "nothing; the model reads the reason as the tool's result")
		return nil
	}
	var args arguments
	if err := json.Unmarshal(v.Arguments, &args); err != nil {
		return err
	}
	d.say("ran", args.Command)
	output, err := d.run(args.Command)
	if err != nil {
		return err
	}
	d.say("output", output)
	done, err := d.agent.AfterTool(d.ctx, client.AfterTool{Call: d.call(), Tool: v.Tool, Arguments: v.Arguments, Result: client.Result{Content: output}})
	if err != nil {
		return err
	}
	if done.Action != protocol.ActionContinue {
		d.say("agent", "after_tool: may the model read this?")
		d.answer(done.Answer)
		d.say("model", content(done.Result))
	}
	return nil
}

// run is the tool: a real shell, in the demo's folder.
func (d *demo) run(command string) (string, error) {
	p, err := d.tools.Start(d.ctx, child.Spec{
		Name: "bash", Argv: []string{"sh", "-c", command}, Dir: d.path("work"), Env: map[string]string{"HOME": d.path("home")},
	})
	if err != nil {
		return "", err
	}
	defer context.AfterFunc(d.ctx, p.Kill)()
	defer p.Stdout().Close()
	p.Stdin().Close()
	output, err := io.ReadAll(p.Stdout())
	<-p.Done()
	if exit := p.Exit(); err == nil && exit != (child.Exit{}) {
		err = fmt.Errorf("%s: %s: %v", command, exit, p.StderrTail())
	}
	return string(output), err
}

// content is the text in a message or a tool's result.
func content(v jsontext.Value) string {
	members, err := protocol.DecodeObject(v, 0)
	if err != nil {
		return err.Error()
	}
	return protocol.ContentText(members.Get("content"))
}
