package thin

// Unavailable returns what to tell an agent when there is no answer of the
// daemon: want is "continue", "deny" or "ask" (empty: deny where the event is a
// gate), in the agent's own words, or the nearest that the event has. The
// reason is for the model and people. Without a name, agent and event are
// guessed from the payload. For those that stay unknown a deny is exit status 2
// with the reason on standard error, which most agents read as a no.
func Unavailable(agent, event, want, reason string, payload []byte) Answer {
	switch runs := surely(payload); {
	case runs != "" && runs != agent:
		// It runs the hook that was set up for another agent.
		agent = runs
		if named := eventIn(payload); named != "" {
			event = named
		}
	case agent == "" || agent == "auto":
		agent = guessAgent(payload)
	}
	if event == "" || event == "auto" {
		event = eventIn(payload)
	}
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

// surely tells whose payload it is by marks that no other agent sets.
func surely(payload []byte) string {
	has := func(name string) bool { return index(payload, name) >= 0 }
	switch {
	case has(`"cursor_version"`):
		return "cursor"
	case has(`"agent_action_name"`):
		return "windsurf"
	case has(`"hookEventName"`) && has(`"workspaceRoot"`):
		return "grok"
	}
	return ""
}

// guessAgent is for the moment in which the daemon, which looks closer, is
// away.
func guessAgent(payload []byte) string {
	if index(payload, `"hook_event_name"`) >= 0 {
		return "claude"
	}
	return ""
}

// eventIn is what a payload calls its event.
func eventIn(payload []byte) string {
	for _, name := range [...]string{`"hook_event_name"`, `"hookEventName"`, `"agent_action_name"`} {
		if event := textMember(payload, name); event != "" {
			return event
		}
	}
	return ""
}

// textMember returns the string behind the first place where a name stands.
func textMember(payload []byte, name string) string {
	i := index(payload, name)
	if i < 0 {
		return ""
	}
	b := payload[i+len(name):]
	for len(b) > 0 && (b[0] == ' ' || b[0] == ':' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	r := reader{b: b}
	if text := r.text(); !r.bad {
		return string(text)
	}
	return ""
}
