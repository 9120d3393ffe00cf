// Package dialect reads and writes other ways to speak hookd's wire: those of
// PicoClaw, whose documented hook protocol hookd's own has grown from. It is
// used on both sides. Towards a hook process a [Dialect] stands in its entry of
// the config; an agent that speaks another way is recognised and becomes a
// [Host]. There is no I/O here, and what a dialect does not define is as
// unreadable as anywhere else.
package dialect

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Dialect is how a hook process speaks. The zero value is hookd's own way.
type Dialect string

// The dialects.
const (
	// Hookd is hookd's own protocol.
	Hookd Dialect = "hookd"
	// Picoclaw is PicoClaw's protocol as its agent speaks it.
	Picoclaw Dialect = "picoclaw"
	// PicoclawSite is Picoclaw and what the examples on PicoClaw's website answer.
	PicoclawSite Dialect = "picoclaw-site"
)

// MethodRuntimeEvent is the notification that carries an event of PicoClaw's.
const MethodRuntimeEvent = "hook.runtime_event"

// foreign reports whether the dialect has other words at this stage. PicoClaw
// knows five stages; the others are spoken as hookd speaks them.
func (d Dialect) foreign(stage *protocol.StageInfo) bool {
	return (d == Picoclaw || d == PicoclawSite) && shared(stage)
}

func shared(stage *protocol.StageInfo) bool {
	switch stage.Name {
	case protocol.StageBeforeLLM, protocol.StageAfterLLM, protocol.StageBeforeTool, protocol.StageApproveTool, protocol.StageAfterTool:
		return true
	}
	return false
}

// Hello returns the params with which a hook is greeted.
func (d Dialect) Hello(h protocol.HookHello) (jsontext.Value, error) {
	params, err := protocol.Marshal(h)
	if err != nil || d != PicoclawSite {
		return params, err
	}
	return append(params[:len(params)-1], `,"protocol_version":1}`...), nil
}

// Params returns the params with which a hook is asked. deadlineMS is the time
// that is left for its answer.
func (d Dialect) Params(req *protocol.Request, deadlineMS int64) []byte {
	if d.foreign(req.Stage) {
		req = d.shown(req)
	}
	return req.AppendParams(nil, deadlineMS)
}

// shown returns the request as the hook is shown it: with everything that hookd
// says, and with the names that the dialect has for it beside.
func (d Dialect) shown(req *protocol.Request) *protocol.Request {
	r := *req
	r.Meta = hookMeta(req)
	r.Extra = slices.Clone(req.Extra)
	fill := func(name string, v jsontext.Value) {
		if r.Extra.Get(name) == nil {
			r.Extra = append(r.Extra, protocol.Member{Name: name, Value: v})
		}
	}
	inbound := inside(object(req.Context), "inbound")
	for _, name := range []string{"channel", "chat_id"} {
		v := inbound.Get(name)
		if v == nil {
			v = jsontext.Value(`""`)
		}
		fill(name, v)
	}
	if !req.Stage.Tool() {
		return &r
	}
	if req.CallID != "" {
		fill("tool_call_id", protocol.Quote(req.CallID))
	}
	if req.Stage.Name == protocol.StageAfterTool {
		fill("duration", nanoseconds(req.Fixed.Get("duration_ms")))
		r.Subject = req.Subject.With("result", shownResult(req).AppendJSON(nil))
	}
	if d == PicoclawSite {
		for _, names := range [][2]string{{"name", "tool"}, {"args", "arguments"}} {
			v := req.Subject.Get(names[1])
			if v == nil {
				v = req.Fixed.Get(names[1])
			}
			if v != nil {
				r.Extra = r.Extra.With(names[0], v)
			}
		}
	}
	return &r
}

// hookMeta adds PicoClaw's names, all of which are always there, to meta. What
// has come from a PicoClaw host under these names stays.
func hookMeta(req *protocol.Request) protocol.Object {
	meta := slices.Clone(req.Meta)
	fill := func(name string, v jsontext.Value) {
		if meta.Get(name) == nil {
			meta = append(meta, protocol.Member{Name: name, Value: v})
		}
	}
	for _, n := range metaNames() {
		fill(n.theirs, protocol.Quote(protocol.MetaString(req.Meta, n.ours)))
	}
	iteration := req.Meta.Get("iteration")
	if iteration == nil || iteration.Kind() != '0' {
		iteration = jsontext.Value("0")
	}
	fill("Iteration", iteration)
	fill("TracePath", protocol.Quote(tracePath(req.Stage.Name)))
	fill("Source", protocol.Quote("runTurn"))
	return meta
}

type namePair struct{ theirs, ours string }

// metaNames are the texts of meta that both sides have.
func metaNames() []namePair {
	return []namePair{{"AgentID", "agent_id"}, {"TurnID", "turn_id"}, {"ParentTurnID", "parent_turn_id"}, {"SessionKey", "session_id"}}
}

func tracePath(stage protocol.Stage) string {
	switch stage {
	case protocol.StageBeforeLLM:
		return "turn.llm.request"
	case protocol.StageAfterLLM:
		return "turn.llm.response"
	case protocol.StageBeforeTool:
		return "turn.tool.before"
	case protocol.StageApproveTool:
		return "turn.tool.approve"
	}
	return "turn.tool.after"
}
