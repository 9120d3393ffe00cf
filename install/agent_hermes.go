package install

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

func hermesHome(p *Place) string { return p.home("HERMES_HOME", ".hermes") }

func hermesSpec() *spec {
	list := events(watch, "on_session_start")
	list = append(list, events(decide, "pre_llm_call")...)
	list = append(list, events(gate, "pre_tool_call")...)
	list = append(list, events(decide, "post_tool_call")...)
	list = append(list, events(watch, "post_llm_call", "subagent_stop", "on_session_end")...)
	for i := range list {
		list[i].max = 300 * time.Second
	}
	return &spec{
		name: "hermes", title: "Hermes", also: []string{"hermes-agent"}, programs: []string{"hermes"},
		folders: func(p *Place) []string { return []string{hermesHome(p)} },
		events:  list, scopes: []Scope{User},
		// The line is split into words, without a shell.
		form: form{command: "command", direct: true, timeout: "timeout", unit: time.Second, closed: "fail_closed", closedValue: true},
		targets: func(p *Place, _ Scope) ([]target, error) {
			return []target{{path: filepath.Join(hermesHome(p), "config.yaml"), edit: yamlFile{}}}, nil
		},
		todo: func(*Place, Scope) []string {
			return []string{`Approve the hooks once: start hermes in a terminal, and it asks about each. Gateways and the desktop pass them over until then; see with: hermes hooks list`}
		},
		check: checkHermes,
		probe: probe{
			event:   "pre_tool_call",
			payload: `{"hook_event_name":"pre_tool_call","tool_name":"terminal","tool_input":{"command":"true"},"session_id":"hookd-doctor","cwd":"/","extra":{"tool_call_id":"hookd-doctor"}}`,
			answer:  hermesAnswer,
		},
	}
}

func hermesAnswer(out Output) error {
	return jsonAnswer(out, false, []int{0, 2}, "action", "decision", "message", "reason", "context")
}

// checkHermes looks whether Hermes was told to run the hooks.
func checkHermes(c *checkup) {
	for _, f := range c.found {
		root, err := readYAML(f.path, f.text)
		if err != nil {
			continue // said already
		}
		if on := yamlMember(root, "hooks_auto_accept"); on != nil && on.Value == "true" {
			continue
		}
		approved := hermesApproved(filepath.Join(hermesHome(c.place), "shell-hooks-allowlist.json"))
		var missing []string
		for _, s := range f.slots {
			if s.ours && !approved[s.event+"\x00"+s.text] {
				missing = append(missing, s.event)
			}
		}
		if len(missing) > 0 {
			c.at(Problem, f.path, 0, "not approved yet, so Hermes passes them over: "+strings.Join(missing, ", "), "start hermes in a terminal and approve them, or set hooks_auto_accept to true")
		}
	}
}

// hermesApproved reads which commands the user has approved, by event.
func hermesApproved(path string) map[string]bool {
	found := map[string]bool{}
	text, _ := setting(path, "approvals")
	if jsontext.Value(text).Kind() != '[' {
		return found
	}
	list, _ := protocol.Items(jsontext.Value(text))
	for _, item := range list {
		o, err := protocol.DecodeObject(item, 0)
		if err == nil {
			found[protocol.MetaString(o, "event")+"\x00"+protocol.MetaString(o, "command")] = true
		}
	}
	return found
}
