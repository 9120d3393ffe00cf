package install

import (
	"bytes"
	_ "embed" // for the plug-in
	"errors"
	"path/filepath"
	"strings"

	"github.com/hookd/hookd/protocol"
)

// opencodePlugin is what OpenCode loads. The line with opencodeSettings is
// written anew for every installation.
//
//go:embed opencode/hookd.js
var opencodePlugin []byte

// opencodeSessions stands for all events of sessions, which OpenCode tells in one
// hook.
const opencodeSessions = "event"

// opencodeSettings begins the line with the plug-in's settings.
const opencodeSettings = "const settings = "

func opencodeHome(p *Place) string {
	if dir := p.getenv("OPENCODE_CONFIG_DIR"); filepath.IsAbs(dir) {
		return dir
	}
	return p.config("opencode")
}

func opencodeSpec() *spec {
	list := events(gate, "tool.execute.before")
	list = append(list, events(decide, "tool.execute.after", "chat.message")...)
	list = append(list, events(watch, opencodeSessions)...)
	return &spec{
		name: "opencode", title: "OpenCode", programs: []string{"opencode"}, since: "1.18.29",
		folders: func(p *Place) []string { return []string{opencodeHome(p)} },
		events:  list, scopes: both(),
		form: form{command: "command", direct: true},
		targets: one(opencodeFile(),
			func(p *Place) string { return filepath.Join(opencodeHome(p), "plugins", "hookd.js") },
			func(p *Place) string { return p.in(".opencode", "plugins", "hookd.js") }),
		todo: func(*Place, Scope) []string {
			return []string{"Start opencode (1.18.29 or later) anew: it loads plug-ins at its start."}
		},
		probe: probe{
			event:   "tool.execute.before",
			payload: `{"hook_event_name":"tool.execute.before","session_id":"hookd-doctor","call_id":"hookd-doctor","cwd":"/","tool_name":"bash","tool_input":{"command":"true"}}`,
			answer:  opencodeAnswer,
		},
	}
}

func opencodeFile() wholeFile {
	return wholeFile{comment: "//", skip: 1, render: renderPlugin, read: readPlugin}
}

// renderPlugin puts the commands into the plug-in.
func renderPlugin(want []entry) ([]byte, error) {
	calls := protocol.Object{}
	for _, e := range want {
		calls = append(calls, object(e.event, e.call.Argv())...)
	}
	var b bytes.Buffer
	found := false
	for line := range bytes.Lines(opencodePlugin) {
		if bytes.HasPrefix(line, []byte(opencodeSettings)) && !found {
			found = true
			line = append(append([]byte(opencodeSettings), calls.AppendJSON(nil)...), '\n')
		}
		b.Write(line)
	}
	if !found {
		return nil, errors.New("the plug-in for OpenCode has no line for its settings")
	}
	return b.Bytes(), nil
}

// readPlugin finds the calls in a plug-in of ours.
func readPlugin(text []byte) []entry {
	var list []entry
	for line := range bytes.Lines(text) {
		settings, ok := strings.CutPrefix(strings.TrimSpace(string(line)), opencodeSettings)
		if !ok {
			continue
		}
		calls, err := protocol.DecodeObject([]byte(settings), 0)
		if err != nil {
			return nil
		}
		for _, m := range calls {
			var argv []string
			if items, err := protocol.Items(m.Value); err == nil && m.Value.Kind() == '[' {
				for _, item := range items {
					if item.Kind() == '"' {
						argv = append(argv, protocol.Unquote(item))
					}
				}
			}
			if c, ours := readCall(argv); ours {
				list = append(list, entry{event: m.Name, call: c})
			}
		}
		return list
	}
	return nil
}

func opencodeAnswer(out Output) error {
	return jsonAnswer(out, false, []int{0, 2}, "decision", "reason", "args", "output", "context")
}
