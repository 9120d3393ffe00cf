package dialect

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// How long a PicoClaw host waits for an answer and for an approval. Then it
// goes on without the one, and takes the other for a no.
const (
	HostDeadline         = 5 * time.Second
	HostApprovalDeadline = 60 * time.Second
	// hostMargin is taken off, because being late opens the host's gates.
	hostMargin = 200 * time.Millisecond
)

// maxHostLine is how much a PicoClaw host reads in one line. After a longer one
// it never reads again, so that its gates stay open.
const maxHostLine = 1<<20 - 1024

// Host is one agent's connection that speaks PicoClaw's side of the wire and is
// served in kind. Nil is an agent that speaks as hookd does: all methods work
// on it, and leave everything as it is.
//
// Such a host reads leniently: it goes on when it is answered an error, a word
// that it does not know, or a change that it can't read. So it is never given
// any of them.
type Host struct {
	approves bool // it calls approve_tool
	observes bool // it sends its events

	asked askedCalls
}

// Recognise looks at what an agent says first and returns how it speaks: nil
// when that is hookd's own way. PicoClaw greets with modes and names no stages,
// has names in Pascal case in meta, and sends events of its own kind.
func Recognise(method string, params protocol.Object) *Host {
	switch {
	case method == MethodRuntimeEvent:
		return &Host{observes: true}
	case method == protocol.MethodHello:
		modes := params.Get("modes")
		if modes == nil || modes.Kind() != '[' || params.Get("stages") != nil {
			return nil
		}
		items, _ := protocol.Items(modes)
		has := func(mode string) bool {
			return slices.ContainsFunc(items, func(v jsontext.Value) bool { return string(v) == strconv.Quote(mode) })
		}
		return &Host{approves: has("approve"), observes: has("observe")}
	}
	if meta := params.Get("meta"); bytes.Contains(meta, []byte(`"SessionKey"`)) || bytes.Contains(meta, []byte(`"TurnID"`)) {
		if o := object(meta); o.Get("SessionKey") != nil || o.Get("TurnID") != nil {
			return &Host{}
		}
	}
	return nil
}

// Greet adds to a greeting what goes without saying for such a host.
func (h *Host) Greet(hello *protocol.AgentHello) {
	if h == nil {
		return
	}
	hello.DeadlineMS = (HostDeadline - hostMargin).Milliseconds()
	hello.ApprovalDeadlineMS = (HostApprovalDeadline - hostMargin).Milliseconds()
	hello.Events = h.observes
}

// Welcome returns the answer to a greeting.
func (h *Host) Welcome(w protocol.AgentWelcome) ([]byte, error) {
	if h == nil {
		return protocol.Marshal(w)
	}
	return []byte(`{"ok":true,"name":"hookd"}`), nil
}

// serves reports whether the stage is answered in the host's words.
func (h *Host) serves(stage *protocol.StageInfo) bool { return h != nil && shared(stage) }

// Request reads the params of a stage.
func (h *Host) Request(stage *protocol.StageInfo, params protocol.Object) (*protocol.Request, *protocol.Error) {
	if !h.serves(stage) {
		return protocol.DecodeRequest(stage, params)
	}
	req, bad := protocol.DecodeRequest(stage, h.ours(stage, params))
	switch {
	case bad != nil:
	case stage.Name == protocol.StageApproveTool:
		req.Asked = h.asked.lookup(req.Subject)
	case req.DeadlineMS == 0: // for all that the answer needs, approvals too
		req.DeadlineMS = (HostDeadline - hostMargin).Milliseconds()
	}
	return req, bad
}

// ours adds hookd's names to the params. Where a Go program has nothing to say
// it says null.
func (h *Host) ours(stage *protocol.StageInfo, params protocol.Object) protocol.Object {
	out := make(protocol.Object, 0, len(params)+1)
	for _, m := range params {
		switch {
		case m.Name == "meta":
			m.Value = ourMeta(m.Value)
		case m.Name == "messages" && isNull(m.Value):
			m.Value = jsontext.Value("[]")
		case (m.Name == "arguments" || m.Name == stage.Result) && isNull(m.Value):
			m.Value = jsontext.Value("{}")
		case m.Name == "result" && stage.Name == protocol.StageAfterTool && m.Value.Kind() == '{':
			m.Value = toOurs(object(m.Value)).AppendJSON(nil)
		case m.Name == "duration" && params.Get("duration_ms") == nil && stage.Name == protocol.StageAfterTool:
			if ms := milliseconds(m.Value); ms != nil {
				out = append(out, protocol.Member{Name: "duration_ms", Value: ms})
			}
		}
		out = append(out, m)
	}
	return out
}

// ourMeta adds hookd's names to meta.
func ourMeta(v jsontext.Value) jsontext.Value {
	meta := object(v)
	out := meta
	for _, n := range metaNames() {
		if s := protocol.MetaString(meta, n.theirs); s != "" && meta.Get(n.ours) == nil {
			out = append(out, protocol.Member{Name: n.ours, Value: protocol.Quote(s)})
		}
	}
	if i := meta.Get("Iteration"); i != nil && i.Kind() == '0' && meta.Get("iteration") == nil {
		out = append(out, protocol.Member{Name: "iteration", Value: i})
	}
	if len(out) == len(meta) {
		return v
	}
	return out.AppendJSON(nil)
}

// Event reads the params of an event.
func (h *Host) Event(method string, params protocol.Object) (*protocol.Event, *protocol.Error) {
	if h == nil || method != MethodRuntimeEvent {
		return protocol.DecodeEvent(params)
	}
	var own, meta protocol.Object
	scope := inside(params, "scope")
	for _, n := range [][2]string{{"agent_id", "agent_id"}, {"session_key", "session_id"}, {"turn_id", "turn_id"}} {
		if s := protocol.MetaString(scope, n[0]); s != "" {
			meta = append(meta, protocol.Member{Name: n[1], Value: protocol.Quote(s)})
		}
	}
	if s := protocol.MetaString(inside(params, "correlation"), "parent_turn_id"); s != "" {
		meta = append(meta, protocol.Member{Name: "parent_turn_id", Value: protocol.Quote(s)})
	}
	var kind protocol.EventKind
	if v := params.Get("kind"); v != nil && v.Kind() == '"' {
		kind = ourKind(protocol.Unquote(v))
	}
	own = append(own, protocol.Member{Name: "kind", Value: protocol.Quote(kind)}, protocol.Member{Name: "meta", Value: meta.AppendJSON(nil)})
	for _, m := range params {
		switch m.Name {
		case "time", "severity", "scope", "correlation", "attrs":
			own = append(own, m)
		case "payload":
			if m.Value.Kind() == '{' {
				m.Value = ourPayload(kind, object(m.Value)).AppendJSON(nil)
			}
			own = append(own, m)
		}
	}
	return protocol.DecodeEvent(own)
}

// Refusal answers a stage that can't be served with the strongest "no" there
// is. To an agent that reads every error as one, it is the error.
func (h *Host) Refusal(stage *protocol.StageInfo, err error) ([]byte, error) {
	if !h.serves(stage) {
		return nil, err
	}
	reason := err.Error()
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		reason = e.Message // the code is for programs
	}
	no := &protocol.Result{Action: stage.OnFailure, Reason: reason}
	return h.Answer(&protocol.Request{Stage: stage}, nil, no, nil), nil
}

// Answer returns the answer to a stage. params are those of the agent as they
// came; due says whether an approver would be asked about a call of this tool.
func (h *Host) Answer(req *protocol.Request, params protocol.Object, res *protocol.Result, due func(tool string) bool) []byte {
	stage := req.Stage
	if !h.serves(stage) {
		return res.AppendJSON(make([]byte, 0, 256), stage, req.Trail)
	}
	if stage.Name == protocol.StageApproveTool {
		return approvalAnswer(res)
	}
	a := h.answer(req, params, res, due)
	b := a.appendJSON(stage)
	if len(b) > maxHostLine {
		a = hostAnswer{action: stage.OnFailure, reason: "what the hooks made of it is longer than the host can read"}
		b = a.appendJSON(stage)
	}
	return b
}

func approvalAnswer(res *protocol.Result) []byte {
	approved, reason := false, res.Reason
	if res.Approval != nil {
		approved, reason = res.Approval.Approved, res.Approval.Reason
	}
	b := strconv.AppendBool([]byte(`{"approved":`), approved)
	b = append(b, `,"reason":`...)
	return append(protocol.AppendString(b, reason), '}')
}

// hostAnswer is what a host is told at a stage other than approve_tool.
type hostAnswer struct {
	action protocol.Action
	reason string
	name   string // of what it gets besides: the stage's result, or "result"
	value  protocol.Object
}

func (a *hostAnswer) appendJSON(stage *protocol.StageInfo) []byte {
	action := a.action
	if action == protocol.ActionDeny {
		action = protocol.WireDenyTool
		if stage.Name != protocol.StageBeforeTool {
			action = protocol.ActionAbortTurn // there, deny_tool is no word
		}
	}
	out := protocol.Object{{Name: "action", Value: protocol.Quote(action)}}
	if a.reason != "" {
		out = append(out, protocol.Member{Name: "reason", Value: protocol.Quote(a.reason)})
	}
	if a.name != "" {
		out = append(out, protocol.Member{Name: a.name, Value: a.value.AppendJSON(nil)})
	}
	return out.AppendJSON(nil)
}

// answer says a result in the host's words. What can't be said in them is a no.
func (h *Host) answer(req *protocol.Request, params protocol.Object, res *protocol.Result, due func(tool string) bool) hostAnswer {
	stage := req.Stage
	no := func(reason string) hostAnswer { return hostAnswer{action: stage.OnFailure, reason: reason} }
	final := req.Subject
	if res.Subject != nil && !stage.Wrapped() {
		final = object(res.Subject)
	}
	a := hostAnswer{action: protocol.ActionContinue, reason: res.Reason}
	switch res.Action {
	case protocol.ActionDeny, protocol.ActionAbortTurn, protocol.ActionHardAbort:
		a.action = res.Action
		return a
	case protocol.ActionRespond:
		if stage.Name != protocol.StageBeforeTool {
			return no("a hook answered in place of the model, which the host can't take")
		}
		result, whole := toTheirs(object(res.Respond))
		if !whole {
			return no("a hook gave a result that is more than text, which the host can't take")
		}
		return hostAnswer{protocol.ActionRespond, res.Reason, "result", result}
	case protocol.ActionAsk:
		tool := protocol.Request{Subject: final}
		if !h.approves || due == nil || !due(tool.Tool()) {
			if a.reason == "" {
				a.reason = "it needs approval, and nobody can be asked"
			}
			return no(a.reason)
		}
		a.reason = "" // approve_tool comes next, and says it all
	}
	if stage.Name == protocol.StageBeforeTool {
		h.asked.remember(final, res.Action == protocol.ActionAsk)
	}
	if res.Subject == nil {
		return a
	}
	a.action, a.name = protocol.ActionModify, stage.Result
	if !stage.Wrapped() {
		a.value = replace(stage, params, final)
		return a
	}
	changed, problem := theirSubject(stage, params, object(res.Subject))
	if problem != "" {
		return no(problem)
	}
	a.value = params.With(stage.Result, changed.AppendJSON(nil))
	return a
}

// replace puts the final subject into all the params of the host, which takes
// what it gets in place of what it had.
func replace(stage *protocol.StageInfo, params, final protocol.Object) protocol.Object {
	var out protocol.Object
	for _, m := range params {
		if !slices.Contains(stage.Subject, m.Name) {
			out = append(out, m)
		}
	}
	for _, m := range final {
		if m.Name != "read_only" { // no param of the host's
			out = append(out, m)
		}
	}
	return out
}

// theirSubject names what a model or a tool has said as the host does.
func theirSubject(stage *protocol.StageInfo, params, subject protocol.Object) (out protocol.Object, problem string) {
	const more = "a hook made more than text of it, which the host can't take"
	content := subject.Get("content")
	said, whole := text(content)
	if stage.Name == protocol.StageAfterLLM {
		if content != nil && content.Kind() == '[' {
			subject = subject.With("content", protocol.Quote(said))
		}
		if !whole {
			return nil, more
		}
		return subject, ""
	}
	before, forLLM := inside(params, "result"), subject.Get("for_llm")
	had := before.Get("for_llm")
	switch {
	case had == nil || before.Get("content") != nil || content == nil: // nothing was named otherwise
		return subject, ""
	case forLLM == nil: // as it should be
	case protocol.SameValue(content, had): // a hook used the host's name
		return without(subject, "content"), ""
	case forLLM.Kind() != '"' || protocol.Unquote(forLLM) != said:
		return nil, "hooks changed content and for_llm of the result, which are the same, in two ways"
	}
	if !whole {
		return nil, more
	}
	return without(subject, "content").With("for_llm", protocol.Quote(said)), ""
}

// maxAsked is how many calls are remembered.
const maxAsked = 1024

// askedCalls remembers which calls of the host a hook asked approval for. hookd
// does that too, by the bytes of the arguments; but this host decodes them and
// encodes them again before it asks for the approval.
type askedCalls struct {
	mu     sync.Mutex
	calls  map[[sha256.Size]byte]bool
	order  [][sha256.Size]byte
	oldest int
}

func (a *askedCalls) remember(call protocol.Object, asked bool) {
	key, ok := meaning(call)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil {
		a.calls = map[[sha256.Size]byte]bool{}
	}
	if _, known := a.calls[key]; !known {
		if len(a.order) < maxAsked {
			a.order = append(a.order, key)
		} else {
			delete(a.calls, a.order[a.oldest])
			a.order[a.oldest] = key
			a.oldest = (a.oldest + 1) % maxAsked
		}
	}
	a.calls[key] = asked
}

// lookup returns nil when the call is not known.
func (a *askedCalls) lookup(call protocol.Object) *bool {
	key, ok := meaning(call)
	a.mu.Lock()
	defer a.mu.Unlock()
	if asked, known := a.calls[key]; ok && known {
		return &asked
	}
	return nil
}

// meaning is what a call means to a program that reads numbers as floating
// point and does not keep the order of members.
func meaning(call protocol.Object) (key [sha256.Size]byte, ok bool) {
	var v struct {
		Tool      string         `json:"tool"`
		Arguments map[string]any `json:"arguments"`
	}
	if protocol.Unmarshal(call.AppendJSON(nil), &v) != nil {
		return key, false
	}
	b, err := protocol.Marshal(v)
	return sha256.Sum256(b), err == nil
}
