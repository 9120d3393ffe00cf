package loop

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
	"weak"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/builtin/sessions"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Table holds what was called last in each session. Guards that share one go on
// where the one before them stopped.
type Table = sessions.Table[sessions.Agents[streak]]

// NewTable returns an empty table for at most this many sessions; 0 means
// [sessions.Most].
func NewTable(most int) *Table { return sessions.New[sessions.Agents[streak]](most) }

// streak is a call that was made some times in a row.
type streak struct {
	digest [sha256.Size]byte
	times  int
	last   asked
}

// sameCall is how long a call with the id and the arguments of the last one can
// be that one, asked about once more. Agents that begin to number anew in each
// turn use an id again, but not so soon.
const sameCall = 3 * time.Second

// asked is the last call that was counted.
type asked struct {
	callID string // "" = none, or too long to keep
	at     time.Time
	again  bool // it was asked about once more
	// run is the same in all that one request asks; the request is not kept.
	run weak.Pointer[protocol.Member]
}

// maxCallID is how long an id of a call may be to be remembered.
const maxCallID = 256

func askedOf(req *protocol.Request) asked {
	a := asked{at: time.Now()}
	if len(req.CallID) <= maxCallID {
		a.callID = strings.Clone(req.CallID)
	}
	if len(req.Meta) > 0 {
		a.run = weak.Make(&req.Meta[0])
	}
	return a
}

// repeats reports whether now is about the call that s has counted last.
func (s *streak) repeats(now *asked, digest [sha256.Size]byte) bool {
	if now.run != (weak.Pointer[protocol.Member]{}) && now.run == s.last.run {
		return true // a later hook has changed it
	}
	if now.callID == "" || now.callID != s.last.callID || digest != s.digest || s.last.again || now.at.Sub(s.last.at) >= sameCall {
		return false
	}
	s.last.run, s.last.again = now.run, true
	return true
}

// Guard is an interceptor that counts how often a session makes the same call in
// a row. Make it with [New]; it needs no closing.
type Guard struct {
	table      *Table
	warn, deny int
	except     hook.Match
}

// New makes a Guard that counts in table. The error is a *[builtin.ConfigError].
func New(config jsontext.Value, table *Table) (*Guard, error) {
	c, except, err := readConfig(config)
	if err != nil {
		return nil, err
	}
	return &Guard{table, c.Warn, c.Deny, except}, nil
}

// Stages are where a Guard is asked.
func (*Guard) Stages() []protocol.Stage { return []protocol.Stage{protocol.StageBeforeTool} }

// Events are what a Guard is told.
func Events() []string { return []string{string(protocol.EventSessionEnd)} }

// Quick marks that a Guard waits for nothing.
func (*Guard) Quick() {}

// Observe forgets sessions that are over.
func (g *Guard) Observe(_ context.Context, ev *hook.Event) error {
	if ev.Kind == protocol.EventSessionEnd {
		g.table.Drop(sessions.Key(ev.Meta))
	}
	return nil
}

// Intercept counts the call, and warns or denies when it was made too often.
// Refused calls count too, so the same call stays refused.
func (g *Guard) Intercept(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
	tool := req.Tool()
	if req.Stage.Name != protocol.StageBeforeTool || g.except.HasTools() && g.except.Matches(tool, true, "") {
		return protocol.Decision{}, nil
	}
	times := g.count(req, digest(req))
	switch {
	case g.deny > 0 && times >= g.deny:
		return hook.Deny("this is call %d in a row of %s with the same arguments, which leads nowhere: do something else, or ask the user (it is refused from call %d on)", times, tool, g.deny), nil
	case g.warn > 0 && times >= g.warn:
		text := fmt.Sprintf("This is call %d in a row of %s with the same arguments.", times, tool)
		d := protocol.Decision{Warnings: []string{text}, AddContext: []string{text + " If it did not help before, it won't now: do something else."}}
		if g.deny > 0 {
			d.AddContext[0] += fmt.Sprintf(" From call %d on it is refused.", g.deny)
		}
		return d, nil
	}
	return protocol.Decision{}, nil
}

// count returns how often the call was made in a row, this time included. A dry
// run leaves no trace. A guard may be asked twice about one call, when a later
// hook has changed it or the agent asks once more: that counts once.
func (g *Guard) count(req *protocol.Request, digest [sha256.Size]byte) (times int) {
	key, agent := sessions.Key(req.Meta), sessions.Agent(req.Meta)
	if req.DryRun {
		times = 1
		g.table.Look(key, func(a *sessions.Agents[streak]) {
			if s := (*a)[agent]; s != nil && s.digest == digest {
				times = s.times + 1
			}
		})
		return times
	}
	now := askedOf(req)
	g.table.Do(key, func(a *sessions.Agents[streak]) {
		s := a.Of(agent)
		if s.times == 0 || !s.repeats(&now, digest) {
			if s.digest != digest {
				s.digest, s.times = digest, 0
			}
			s.times++
			s.last = now
		}
		times = s.times
	})
	return times
}

// digest identifies a call by the tool and its arguments, whatever the white
// space and the order of their members.
func digest(req *protocol.Request) (d [sha256.Size]byte) {
	h := sha256.New()
	h.Write([]byte(req.Tool()))
	h.Write([]byte{0})
	args := jsontext.Value(strings.Clone(string(req.Subject.Get("arguments"))))
	if args.Format(jsontext.ReorderRawObjects(true), jsontext.Multiline(false), jsontext.SpaceAfterColon(false), jsontext.SpaceAfterComma(false)) != nil {
		args = req.Subject.Get("arguments") // never: it was checked
	}
	h.Write(args)
	h.Sum(d[:0])
	return d
}
