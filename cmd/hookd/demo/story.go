package demo

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
)

// play tells the story, scene by scene.
func (d *demo) play() error {
	if err := d.introduce(); err != nil {
		return err
	}
	for i, scene := range []struct {
		title string
		play  func() error
	}{
		{"A request to the model holds a secret", d.secret},
		{"A harmless command runs, and prints the secret", d.harmless},
		{"A dangerous command does not run", d.dangerous},
		{"A deploy is rewritten: the agent runs what hookd returned", d.rewritten},
		{"A command needs approval, and nobody answers (the limit is 1 s here, usually 60 s)", d.unapproved},
		{"A hook is killed while it is asked; its fail_policy is deny", d.killed},
		{"The config is edited while hookd runs", d.edited},
		{"The hook is killed again; its fail_policy is continue now", d.killedAgain},
		{"The agent stops; the observer has noted", d.noted},
	} {
		d.title(fmt.Sprintf("%d. %s", i+1, scene.title))
		if err := scene.play(); err != nil {
			return fmt.Errorf("scene %d: %w", i+1, err)
		}
	}
	return nil
}

// introduce shows the hooks as soon as all of them are there.
func (d *demo) introduce() error {
	s, err := d.status("the hooks", func(s *daemon.Status) bool {
		for _, h := range s.Hooks {
			if h.State != string(mount.Ready) {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	d.title("The hooks")
	does := map[string]string{
		"redact":      "takes secrets out of what the model reads",
		"review-gate": "denies or asks about commands that are hard to undo",
		"dry-run":     "makes a dry run of every deploy",
		"on-call":     "is a person who approves, and is not there",
		"notify":      "only observes",
	}
	for _, h := range s.Hooks {
		runs := fmt.Sprintf("pid %d", h.PID)
		if h.PID == 0 {
			runs = "inside hookd"
		}
		d.print("  %-11s %s (%s)", h.Name, does[h.Name], runs)
	}
	for _, e := range d.plan.StandIns {
		d.print("  %s", d.Paint(yellow, fmt.Sprintf("The demo stands in for %s: %s.", e.Script, e.Why)))
	}
	return nil
}

func (d *demo) secret() error {
	const text = "Deploy it. The key is AKIAIOSFODNN7EXAMPLE."
	d.say("agent", "before_llm: "+text)
	v, err := d.agent.BeforeLLM(d.ctx, client.BeforeLLM{Call: d.call(), Model: "none", Messages: []map[string]string{{"role": "user", "content": text}}})
	if err != nil {
		return err
	}
	d.answer(v.Answer)
	if v.Action != protocol.ActionModify {
		return fmt.Errorf("hookd decided %q", v.Action)
	}
	var messages []jsontext.Value
	if err := json.Unmarshal(v.Messages, &messages); err != nil {
		return err
	}
	d.say("model", content(messages[0]))
	return nil
}

func (d *demo) harmless() error { return d.tool("cat deploy.env", protocol.ActionContinue) }

func (d *demo) dangerous() error {
	if err := d.tool("rm -rf ~/", protocol.ActionDeny); err != nil {
		return err
	}
	if _, err := os.Stat(d.path("home/thesis.txt")); err != nil {
		return err
	}
	d.say("home", "~/thesis.txt is still there")
	return nil
}

func (d *demo) rewritten() error { return d.tool("sh deploy.sh production", protocol.ActionModify) }

func (d *demo) unapproved() error { return d.tool("git push", protocol.ActionDeny) }

func (d *demo) killed() error { return d.kill("dry-run", protocol.ActionDeny) }

func (d *demo) killedAgain() error {
	if err := d.kill("dry-run", protocol.ActionContinue); err != nil {
		return err
	}
	d.say("so", "a gate wants fail_policy deny; continue suits a hook that only adds or reports")
	return nil
}

// kill kills a hook's process in the middle of a call, and shows what becomes
// of the call and of the hook.
func (d *demo) kill(name string, want protocol.Action) error {
	s, err := d.status(name, func(s *daemon.Status) bool { return hookOf(s, name).State == string(mount.Ready) })
	if err != nil {
		return err
	}
	pid := hookOf(s, name).PID
	const command = "sh deploy.sh production"
	d.say("agent", "before_tool: "+command)
	// A process that stands still can't answer before it is killed.
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	type answer struct {
		verdict client.ToolVerdict
		err     error
	}
	answered := make(chan answer, 1)
	go func() { // waited for below
		v, err := d.ask(command)
		answered <- answer{v, err}
	}()
	looks := 0
	_, err = d.status("the call to reach "+name, func(s *daemon.Status) bool {
		if hookOf(s, name).InFlight > 0 {
			looks++ // the second look finds the call surely under way
		}
		return looks == 2
	})
	d.say("demo", fmt.Sprintf("kill -9 %d, which is %s", pid, name))
	err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
	a := <-answered
	if err = errors.Join(err, a.err); err != nil {
		return err
	}
	if err := d.heed(a.verdict, want); err != nil {
		return err
	}
	s, err = d.status(name+" to be started again", func(s *daemon.Status) bool {
		h := hookOf(s, name)
		return h.State == string(mount.Ready) && h.PID != pid
	})
	if err != nil {
		return err
	}
	d.say("hookd", fmt.Sprintf("has started %s again: pid %d", name, hookOf(s, name).PID))
	return nil
}

// edited changes the config twice: first with a mistake.
func (d *demo) edited() error {
	before, err := d.Status(d.ctx, d.sockets.Control)
	if err != nil {
		return err
	}
	d.plan.Policy = "contineu"
	d.say("edit", `config.json: the "fail_policy" of dry-run becomes "contineu"`)
	if err := d.configure(); err != nil {
		return err
	}
	s, err := d.status("the config to be refused", func(s *daemon.Status) bool { return s.Config.Error != "" })
	if err != nil {
		return err
	}
	d.say("hookd", d.Paint(red, fmt.Sprintf("refused, generation %d stays:", s.Generation))+"\n"+s.Config.Error)

	d.plan.Policy, d.plan.Log = "continue", true
	d.say("edit", `it becomes "continue", and "log" is added, which writes all events to a file`)
	if err := d.configure(); err != nil {
		return err
	}
	s, err = d.status("the config to be read", func(s *daemon.Status) bool { return s.Generation > before.Generation })
	if err != nil {
		return err
	}
	var added, kept []string
	for _, h := range s.Hooks {
		switch old := hookOf(before, h.Name); {
		case old.Name == "":
			added = append(added, h.Name)
		case h.PID != 0 && h.PID == old.PID:
			kept = append(kept, fmt.Sprintf("%s %d", h.Name, h.PID))
		}
	}
	d.say("hookd", fmt.Sprintf("%s: %s is new; the others keep their processes:\n%s",
		d.Paint(green, fmt.Sprintf("generation %d", s.Generation)), strings.Join(added, ", "), strings.Join(kept, ", ")))
	return nil
}

// noted ends the agent's turn, and shows the observer's file when that has been
// noted, too.
func (d *demo) noted() error {
	if _, err := d.agent.Stop(d.ctx, client.Stop{Call: d.call(), Request: map[string]any{"reason": "completed"}}); err != nil {
		return err
	}
	var notes string
	err := d.wait("the observer's notes", func() (bool, error) {
		text, err := os.ReadFile(d.path("notify.log"))
		notes = string(text)
		return strings.HasSuffix(notes, "turn_end\n"), err
	})
	d.say("notify", notes)
	return err
}

// hookOf returns the status of a hook; the zero value when there is none.
func hookOf(s *daemon.Status, name string) daemon.HookStatus {
	for _, h := range s.Hooks {
		if h.Name == name {
			return h
		}
	}
	return daemon.HookStatus{}
}
