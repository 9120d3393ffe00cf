package skills

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/sessions"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Table holds which index each agent of a session was given last.
type Table = sessions.Table[sessions.Agents[given]]

// given is the digest of an index.
type given [sha256.Size]byte

// NewTable returns an empty table for at most this many sessions; 0 means
// [sessions.Most].
func NewTable(most int) *Table { return sessions.New[sessions.Agents[given]](most) }

// Skills is an interceptor that gives models an index of skills. Make it with
// [New]; it needs no closing.
type Skills struct {
	always  bool
	scanner *scanner
	table   *Table
}

// New makes Skills and looks for them. folder is where relative paths start. A
// folder that is not there is logged, and looked for again. The error is a
// *[builtin.ConfigError].
func New(config jsontext.Value, folder string, table *Table, log *zap.Logger) (*Skills, error) {
	c, err := readConfig(config)
	if err != nil {
		return nil, err
	}
	s := &Skills{always: c.Always, scanner: newScanner(c, folder, log), table: table}
	s.scanner.current()
	return s, nil
}

// Stages are where Skills are asked.
func (*Skills) Stages() []protocol.Stage {
	return []protocol.Stage{protocol.StageInjectInstructions}
}

// Events are what Skills are told.
func Events() []string {
	return []string{string(protocol.EventSessionEnd), string(protocol.EventAfterCompact)}
}

// Observe forgets what was given where that is gone.
func (s *Skills) Observe(_ context.Context, ev *hook.Event) error {
	if ev.Kind == protocol.EventSessionEnd || ev.Kind == protocol.EventAfterCompact {
		s.table.Drop(sessions.Key(ev.Meta))
	}
	return nil
}

// maxWarnings is how many problems a user is shown at once.
const maxWarnings = 5

// Intercept gives the index, once per session and agent, and again when it has
// changed.
func (s *Skills) Intercept(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
	if req.Stage.Name != protocol.StageInjectInstructions {
		return protocol.Decision{}, nil
	}
	index, problems := s.scanner.current()
	if index == "" && len(problems) == 0 {
		return protocol.Decision{}, nil
	}
	digest := given(sha256.Sum256(fmt.Append(nil, index, problems)))
	key, agent := sessions.Key(req.Meta), sessions.Agent(req.Meta)
	fresh := true
	if req.DryRun {
		s.table.Look(key, func(a *sessions.Agents[given]) {
			last := (*a)[agent]
			fresh = last == nil || *last != digest
		})
	} else {
		s.table.Do(key, func(a *sessions.Agents[given]) {
			last := a.Of(agent)
			fresh = *last != digest
			*last = digest
		})
	}
	var d protocol.Decision
	if index != "" && (fresh || s.always) {
		d.AddContext = []string{index}
	}
	if fresh {
		for i, p := range problems {
			if i == maxWarnings {
				d.Warnings = append(d.Warnings, fmt.Sprintf("%d more problems with skills are in the log", len(problems)-i))
				break
			}
			d.Warnings = append(d.Warnings, "a skill is not offered: "+p)
		}
	}
	return d, nil
}
