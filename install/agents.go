package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookd/hookd/agent"
	"github.com/hookd/hookd/protocol"
)

// spec says all that installing has to know about one agent.
type spec struct {
	name  string
	title string
	// also are other names by which people call it.
	also []string
	// programs are what it is called in the PATH.
	programs []string
	// since is the first version whose hooks work with what is written; "" = not
	// known.
	since string
	// folders are there when the agent is used.
	folders func(p *Place) []string
	// events are all that it has, in the order in which they are written.
	events []event
	// scopes it has hooks for.
	scopes []Scope
	form   form
	// targets are the files to write, and stale those in which older entries of
	// ours may stand; nil = none.
	targets func(p *Place, s Scope) ([]target, error)
	stale   func(p *Place, s Scope) []target
	// todo says what the user has to do by hand after installing.
	todo func(p *Place, s Scope) []string
	// imports are the agents whose files this one runs too.
	imports []imported
	// check finds what is wrong in this agent's settings.
	check func(c *checkup)
	// probe is a payload of one of its events, for a round trip.
	probe probe
}

// imported is an agent whose files another one runs too.
type imported struct {
	agent string
	// scopes are those of its files that are run.
	scopes []Scope
	// off says how to stop that.
	off string
}

// specs are all agents, those with most users first.
func specs() []*spec {
	list := []*spec{
		claudeSpec(), codexSpec(), cursorSpec(), copilotSpec(), vscodeSpec(), windsurfSpec(), geminiSpec(), antigravitySpec(), kiroSpec(),
		droidSpec(), qwenSpec(), kimiSpec(), gooseSpec(), crushSpec(), clineSpec(), grokSpec(), opencodeSpec(), openhandsSpec(), hermesSpec(),
	}
	for _, s := range list {
		s.useTable()
	}
	return list
}

// useTable takes what events are good for from the table that translates them.
func (s *spec) useTable() {
	d := agent.Find(s.name)
	if d == nil {
		return
	}
	for _, row := range d.Rows() {
		i := slices.IndexFunc(s.events, func(e event) bool { return e.name == row.Event })
		if i < 0 {
			continue
		}
		s.events[i].stops = row.Gate()
		switch {
		case row.Stage == protocol.StageBeforeTool && row.Block:
			s.events[i].role = gate
		case row.Stage != "":
			s.events[i].role = decide
		default:
			s.events[i].role = watch
		}
	}
}

// Agents returns the names of all agents that hooks can be installed for.
func Agents() []string {
	var names []string
	for _, s := range specs() {
		names = append(names, s.name)
	}
	return names
}

// UnknownAgentError is returned for a name that is no agent's.
type UnknownAgentError struct{ Name string }

// Error implements error.
func (e *UnknownAgentError) Error() string {
	return fmt.Sprintf("no agent is called %q%s; there are %s", e.Name, protocol.DidYouMean(e.Name, Agents()), strings.Join(Agents(), ", "))
}

func findSpec(name string) (*spec, error) {
	for _, s := range specs() {
		if s.name == name || slices.Contains(s.also, name) {
			return s, nil
		}
	}
	return nil, &UnknownAgentError{name}
}

// all are the files in which entries of ours may stand.
func (s *spec) all(p *Place, scope Scope) ([]target, error) {
	list, err := s.targets(p, scope)
	if err != nil {
		return nil, err
	}
	if s.stale != nil {
		for _, t := range s.stale(p, scope) {
			if !slices.ContainsFunc(list, func(l target) bool { return l.path == t.path }) {
				list = append(list, t)
			}
		}
	}
	for i := range list {
		list[i].agent, list[i].place = s.name, p
	}
	return list, nil
}

// one is a spec's single file, the same editor for user and project.
func one(edit editor, user, project func(p *Place) string) func(*Place, Scope) ([]target, error) {
	return func(p *Place, s Scope) ([]target, error) {
		path := user
		if s == Project {
			path = project
		}
		return []target{{path: path(p), edit: edit}}, nil
	}
}

func both() []Scope { return []Scope{User, Project} }
