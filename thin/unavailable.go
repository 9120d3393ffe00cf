package thin

// Unavailable returns what to tell an agent when there is no answer of the
// daemon: want is "continue", "deny" or "ask" (empty: deny where the event is a
// gate), in the agent's own words, or the nearest that the event has. The
// reason is for the model and people. Without a name, agent and event are
// guessed from the payload. For those that stay unknown a deny is exit status 2
// with the reason on standard error, which most agents read as a no.
func Unavailable(agent, event, want, reason string, payload []byte) Answer {
	agent, event = resolve(agent, event, payload)
	stdout, stderr, exit, known := answerFor(agent, event, want)
	if !known {
		if want == "continue" {
			return Answer{Stderr: []byte(reason + "\n")}
		}
		return Answer{Stderr: []byte(reason + "\n"), Exit: 2}
	}
	quoted := appendString(nil, []byte(reason))
	return Answer{Stdout: fill(stdout, quoted[1:len(quoted)-1]), Stderr: fill(stderr, []byte(reason)), Exit: exit}
}

// resolve finds out who asks about what.
func resolve(agent, event string, payload []byte) (string, string) {
	if runs := surely(payload); runs != "" && runs != agent {
		// It runs the hook that was set up for another agent. Nothing that a
		// payload says may turn a gate into something else.
		named := eventIn(payload)
		if named == "" {
			named = event
		}
		if agent == "" || agent == "auto" || gate(runs, named) || !gate(agent, event) {
			agent, event = runs, named
		}
	} else if agent == "" || agent == "auto" {
		agent = guessAgent(payload)
	}
	if event == "" || event == "auto" {
		event = eventIn(payload)
	}
	return agent, event
}

// reasonMark stands for the reason in the table of answers.
const reasonMark = "{{reason}}"

func fill(template string, reason []byte) []byte {
	var out []byte
	for {
		i := index([]byte(template), reasonMark)
		if i < 0 {
			return append(out, template...)
		}
		out = append(append(out, template[:i]...), reason...)
		template = template[i+len(reasonMark):]
	}
}

// gate reports whether an event is one that can be denied.
func gate(agent, event string) bool {
	out, err, exit, known := answerFor(agent, event, "deny")
	yes, _, fine, _ := answerFor(agent, event, "continue")
	return known && (out != yes || exit != fine || err != "" && exit != 0)
}

// surely tells whose payload it is by marks that no other agent sets.
func surely(payload []byte) string {
	has := func(name string) bool { _, ok := member(payload, name); return ok }
	switch {
	case has("cursor_version"):
		return "cursor"
	case has("agent_action_name"):
		return "windsurf"
	case has("hookEventName") && has("workspaceRoot"):
		return "grok"
	}
	return ""
}

// guessAgent is for the moment in which the daemon, which looks closer, is
// away.
func guessAgent(payload []byte) string {
	if _, ok := member(payload, "hook_event_name"); ok {
		return "claude"
	}
	return ""
}

// eventIn is what a payload calls its event.
func eventIn(payload []byte) string {
	for _, name := range [...]string{"hook_event_name", "hookEventName", "agent_action_name"} {
		if value, ok := member(payload, name); ok {
			r := reader{b: value}
			if text := r.text(); !r.bad && len(text) > 0 {
				return string(text)
			}
		}
	}
	return ""
}

// member finds a member of the payload itself, never one inside of it: what a
// tool is called with is the model's to choose. It returns what stands behind
// the colon.
func member(payload []byte, name string) (value []byte, ok bool) {
	depth := 0
	for i := 0; i < len(payload); i++ {
		switch payload[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			r := reader{b: payload[i:]}
			text := r.text()
			if r.bad {
				return nil, false
			}
			i = len(payload) - len(r.b) - 1 // the closing quote
			rest := space(r.b)
			if depth == 1 && len(rest) > 0 && rest[0] == ':' && string(text) == name {
				return space(rest[1:]), true
			}
		}
	}
	return nil, false
}

func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}
