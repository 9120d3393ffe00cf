package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookd/hookd/protocol"
)

// probe is a harmless event of an agent, and what an answer to it may look like.
type probe struct {
	event   string
	payload string
	answer  func(Output) error
}

// roundTrip sends the probe through the command that the agent runs, as a dry
// run, and judges the answer.
func (c *checkup) roundTrip(ctx context.Context, ours []placed) {
	i := slices.IndexFunc(ours, func(o placed) bool { return o.event == c.spec.probe.event })
	if i < 0 || c.away {
		return // said already
	}
	o := ours[i]
	if runnable(o.call.Program[0]) != nil {
		return // said already
	}
	call := Call{Program: o.call.Program, Agent: c.spec.name, Event: o.event, Flags: probeFlags(o.call.Flags)}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var out Output
	argv, err := c.spec.form.run(call.Argv(), c.place.getenv)
	if err == nil {
		out, err = c.x.Run(ctx, argv, []byte(c.spec.probe.payload))
	}
	if err == nil {
		err = c.spec.probe.answer(out)
	}
	if err == nil && withoutDaemon(out) {
		err = errors.New("hookd-hook answered in place of the daemon: " + verdict(out))
	}
	said := printable(strings.TrimSpace(string(out.Stderr)), 200)
	switch {
	case err != nil:
		text := fmt.Sprintf("the round trip of %s failed: %v", o.event, err)
		if said != "" {
			text += "; it said: " + said
		}
		c.at(Problem, o.file.path, o.line, text, c.byHand(argv, call))
	case said != "" && out.Exit == 0:
		c.at(Warning, o.file.path, o.line, fmt.Sprintf("the round trip of %s worked, and said: %s", o.event, said), "")
	default:
		c.add(OK, fmt.Sprintf("a round trip of %s works: %s", o.event, verdict(out)), "")
	}
}

// byHand is what the user can try.
func (c *checkup) byHand(argv []string, call Call) string {
	line, err := shellLine(call.Argv())
	if err != nil {
		line = strings.Join(call.Argv(), " ")
	}
	if c.spec.form.login && len(argv) == 3 {
		return fmt.Sprintf("try it by hand: %s -lc %q; your shell's profile must print nothing", argv[0], line)
	}
	return "try it by hand: " + line
}

// withoutDaemon reports whether an answer is the one that is given when the
// daemon gave none; its reason begins in one way.
func withoutDaemon(out Output) bool {
	return bytes.HasPrefix(out.Stderr, []byte("hookd: ")) || bytes.HasPrefix(out.Stderr, []byte("hookd-hook: ")) || bytes.Contains(out.Stdout, []byte(`"hookd: `))
}

// probeFlags are the flags of an entry without those that would ask people or
// start something, and with a short time.
func probeFlags(flags []string) []string {
	kept := []string{"--dry-run", "--timeout", "5s"}
	for i := 0; i < len(flags); i++ {
		switch name, _, joined := strings.Cut(flags[i], "="); name {
		case "--approve", "--autostart":
		case "--timeout":
			if !joined {
				i++
			}
		default:
			kept = append(kept, flags[i])
		}
	}
	return kept
}

func verdict(out Output) string {
	switch text := printable(strings.TrimSpace(string(out.Stdout)), 120); {
	case text != "":
		return text
	case out.Exit == 0:
		return "no objection"
	}
	return "denied"
}

// The judges of answers. Each knows what its agent reads.

func claudeAnswer(out Output) error {
	return jsonAnswer(out, false, []int{0, 2}, "continue", "stopReason", "systemMessage", "suppressOutput", "decision", "reason", "hookSpecificOutput")
}

func cursorAnswer(out Output) error {
	if err := jsonAnswer(out, true, []int{0}, "continue", "permission", "user_message", "agent_message", "updated_input"); err != nil {
		return err
	}
	return member(out, "permission", "allow", "deny", "ask")
}

func copilotAnswer(out Output) error {
	// Any other exit status denies, whatever is printed.
	return jsonAnswer(out, false, []int{0}, "permissionDecision", "permissionDecisionReason", "modifiedArgs", "additionalContext")
}

func geminiAnswer(out Output) error {
	return jsonAnswer(out, true, []int{0}, "decision", "reason", "systemMessage", "suppressOutput", "continue", "stopReason", "hookSpecificOutput")
}

func antigravityAnswer(out Output) error {
	if err := jsonAnswer(out, true, []int{0}, "decision", "reason", "permissionOverrides", "overwrite"); err != nil {
		return err
	}
	return member(out, "decision", "allow", "deny", "ask", "force_ask", "deny_unless_prior_grant")
}

func gooseAnswer(out Output) error {
	return jsonAnswer(out, false, []int{0, 2}, "decision", "reason")
}

func kimiAnswer(out Output) error {
	return jsonAnswer(out, false, []int{0, 2}, "hookSpecificOutput")
}

func crushAnswer(out Output) error {
	return jsonAnswer(out, false, []int{0, 2, 49}, "version", "decision", "halt", "reason", "context", "updated_input", "hookSpecificOutput")
}

func clineAnswer(out Output) error {
	if err := jsonAnswer(out, true, []int{0}, "cancel", "contextModification", "errorMessage"); err != nil {
		return err
	}
	return member(out, "cancel", "true", "false")
}

func grokAnswer(out Output) error {
	return jsonAnswer(out, false, []int{0, 2}, "decision", "reason")
}

func openhandsAnswer(out Output) error {
	return jsonAnswer(out, false, []int{0, 2}, "decision", "reason", "additionalContext", "continue")
}

// silentAnswer is of agents that read the exit status alone.
func silentAnswer(out Output) error {
	if out.Exit != 0 && out.Exit != 2 {
		return fmt.Errorf("exit status %d, where 0 or 2 is an answer", out.Exit)
	}
	return nil
}

// jsonAnswer wants one object with known names, or nothing unless it is needed.
func jsonAnswer(out Output, needed bool, exits []int, names ...string) error {
	if !slices.Contains(exits, out.Exit) {
		return fmt.Errorf("exit status %d, which is no answer", out.Exit)
	}
	text := strings.TrimSpace(string(out.Stdout))
	if text == "" {
		if needed {
			return errors.New("nothing was printed, and the agent wants an object")
		}
		return nil
	}
	members, err := protocol.DecodeObject([]byte(text), 0)
	if err != nil {
		return fmt.Errorf("what was printed is no object: %w", err)
	}
	for _, m := range members {
		if !slices.Contains(names, m.Name) {
			return fmt.Errorf("the agent does not know %q in an answer", m.Name)
		}
	}
	return nil
}

// member wants one of these values.
func member(out Output, name string, values ...string) error {
	members, err := protocol.DecodeObject([]byte(strings.TrimSpace(string(out.Stdout))), 0)
	if err != nil {
		return err
	}
	text := string(members.Get(name))
	if members.Get(name).Kind() == '"' {
		text = protocol.Unquote(members.Get(name))
	}
	if !slices.Contains(values, text) {
		return fmt.Errorf("%s is %q, and one of %s is needed", name, text, strings.Join(values, ", "))
	}
	return nil
}
