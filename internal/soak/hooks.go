package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookd/hookd/internal/invariant"
	"github.com/hookd/hookd/protocol"
)

// secret stands in the environment of each hook and in the arguments of each
// call, and must be told nowhere.
const secret = "open-sesame-5f2e"

// limit is the longest message, in bytes: so small that it is reached.
const limit = 1 << 20

// recordName is the file of the record, in the soak's folder.
const recordName = "record.db"

// Times of the config, in milliseconds.
const (
	hookTimeout     = 1000
	chainTimeout    = 5000
	approvalTimeout = 3000
)

// patient is a hook that goes wrong at times. It is asked about a tool of its
// own name.
type patient struct {
	name   string
	denies bool
	entry  object // what its entry says besides
	mode   string // its life, while its file is there
}

type object = map[string]any

// approves is the name of the patient that is asked for approvals.
const approves = "human"

// well is the hook that matches every call and never goes wrong.
const well = "witness"

// patients are seven, so that hookd has eight hooks.
func patients() []patient {
	return []patient{
		{name: "gate", denies: true, mode: "crashloop=50ms", entry: object{"required": true}},
		{name: approves, denies: true, mode: "exit=2", entry: object{"intercept": []string{"before_tool", "approve_tool"}}},
		{name: "lax", mode: "stop"},
		{name: "spy", mode: "hello-never", entry: object{"observe": []string{"*"}}},
		{name: "scribe", denies: true, mode: "noread", entry: object{"observe": []string{"x_storm", "decision"}}},
		{name: "mule", mode: "ignoreterm", entry: object{"max_in_flight": 2}},
		{name: "clerk", denies: true, mode: "closestdin"},
	}
}

// matched are the hooks that a call of a tool concerns, in their order.
func (p *patient) matched() []invariant.Hook {
	return []invariant.Hook{{Name: p.name, Denies: p.denies}, {Name: well, Denies: true}}
}

// approver is the only one of them that approves.
func (s *soak) approver() *patient {
	for i, p := range s.patients {
		if p.name == approves {
			return &s.patients[i]
		}
	}
	return nil
}

// file is there while the hook lives wrongly.
func (h *house) file(p *patient) string { return filepath.Join(h.folder, p.name+".wrong") }

// entries are the hooks of the config. version is what changes in one of them.
func (h *house) entries(version int) object {
	entry := func(more object, command ...string) object {
		e := object{
			"command": command, "env": object{"TOKEN": secret}, "intercept": []string{"before_tool"},
			"timeout_ms": hookTimeout, "max_in_flight": 16,
		}
		for key, value := range more {
			e[key] = value
		}
		return e
	}
	all := object{well: entry(object{"priority": 10, "fail_policy": "deny", "max_in_flight": 256, "observe": []string{"x_calm"}}, h.hook, "-mode", "well")}
	for _, p := range patients() {
		e := entry(p.entry, h.hook, "-mode", p.mode, "-while="+h.file(&p)) // no argument is the path of a file that comes and goes
		e["match"] = object{"tools": []string{p.name}}
		e["fail_policy"] = "continue"
		if p.denies {
			e["fail_policy"] = "deny"
		}
		if p.name == "clerk" {
			e["config"] = object{"version": version}
		}
		all[p.name] = e
	}
	return all
}

// write replaces the config at once, as editors do.
func (h *house) write(entries object) error {
	text, err := protocol.Marshal(object{
		"socket": object{"path": "a.sock"}, "control": object{"path": "c.sock"}, "log": object{"level": "warn"},
		"limits": object{"max_message_bytes": limit}, "record": object{"path": recordName},
		"layers": object{"organisation": []string{}, "user": []string{}, "project": []string{}}, // nothing of this machine's
		"hooks":  object{"defaults": object{"chain_timeout_ms": chainTimeout, "approval_timeout_ms": approvalTimeout, "observer_timeout_ms": 500}, "processes": entries},
	})
	if err != nil {
		return err
	}
	return h.replace(text)
}

func (h *house) replace(text []byte) error {
	if err := os.WriteFile(h.config+".new", text, 0o600); err != nil {
		return fmt.Errorf("write the config: %w", err)
	}
	return os.Rename(h.config+".new", h.config)
}
