package record

import (
	"database/sql/driver"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

// previewChars is how much of a tool's output the audit log shows, and
// previewWindow how much of it is masked before it is cut.
const previewChars, previewWindow = 200, 4 << 10

// decision is what is kept of a [manager.Record] after the call: copies of what
// is not known to be immutable, and no more work than that. The rest is done by
// the writer.
type decision struct {
	call       uint64
	buf        []byte // params, then the final subject when it is another
	paramsEnd  int
	asked      *protocol.Request // nil = to be read from buf
	digest     string            // of what was judged last; "" = to be computed
	agent      string
	session    string
	pid, uid   int
	stage      *protocol.StageInfo
	action     protocol.Action
	reason     string
	decidedBy  string
	permission string
	approval   protocol.ApprovalResult
	approved   bool // there is an approval
	respond    jsontext.Value
	trail      []protocol.Step
	degraded   []protocol.Degraded
	warnings   []string
	generation uint64
	duration   time.Duration
	dryRun     bool
	err        string
	denied     bool // refuse was called
}

// maxPooled is how large a buffer may be that is kept for the next call.
const maxPooled = 64 << 10

// keptAsked is how long the message of a request may be, in bytes, for the request to
// be kept beside its copy, which saves reading it again.
const keptAsked = 8 << 10

// size is how many bytes wait with the decision, about.
func (d *decision) size() int {
	n := len(d.buf) + 512 + 128*len(d.trail)
	if d.asked != nil {
		n += d.asked.Size
	}
	return n
}

// copyOf takes over what a record holds.
func (d *decision) copyOf(rec *manager.Record, beforeAfter bool) {
	req, res := rec.Request, rec.Result
	d.call = rec.Call
	d.buf = appendParams(d.buf[:0], req)
	d.paramsEnd = len(d.buf)
	d.asked, d.digest = nil, rec.Digest
	if 0 < req.Size && req.Size <= keptAsked {
		d.asked = req
	}
	if res.Subject != nil || !sameObject(rec.Final, req.Subject) {
		d.buf = rec.Final.AppendJSON(d.buf)
	}
	d.agent, d.session, d.pid, d.uid = rec.Caller.Name, rec.Caller.SessionID, rec.Caller.PID, rec.Caller.UID
	d.stage = req.Stage
	d.action, d.reason, d.decidedBy, d.permission = res.Action, res.Reason, res.DecidedBy, res.Permission
	d.approved = res.Approval != nil
	if d.approved {
		d.approval = *res.Approval
	}
	d.respond = nil
	if beforeAfter && res.Respond != nil {
		d.respond = slices.Clone(res.Respond)
	}
	d.trail = append(d.trail[:0], res.Trail...)
	d.degraded = append(d.degraded[:0], res.Degraded...)
	d.warnings = append(d.warnings[:0], res.Warnings...)
	d.generation, d.duration, d.dryRun = res.Generation, rec.Duration, req.DryRun
	d.err, d.denied = "", false
	if rec.Err != nil {
		d.err = rec.Err.Error()
	}
}

// sameObject reports whether two objects are the same members in the same
// memory, so that no bytes need to be compared.
func sameObject(a, b protocol.Object) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// appendParams appends what a request was asked with, so that it can be asked
// again.
func appendParams(b []byte, req *protocol.Request) []byte {
	b = req.AppendParams(b, 0)
	end := func(text string) {
		b = b[:len(b)-1]
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(b, text...), '}')
	}
	if req.Approve {
		end(`"approve":true`)
	}
	if req.Asked != nil {
		if *req.Asked {
			end(`"asked":true`)
		} else {
			end(`"asked":false`)
		}
	}
	return b
}

// clear forgets what would keep memory alive.
func (d *decision) clear() {
	if cap(d.buf) > maxPooled {
		d.buf = nil
	}
	d.asked = nil
	clear(d.trail)
	clear(d.degraded)
	clear(d.warnings)
	d.respond = nil
}

// verdict is the answer in one word, also for an approval, as the agent got it.
func (d *decision) verdict() (protocol.Action, string) {
	if d.stage.Name != protocol.StageApproveTool {
		dec := protocol.Decision{Action: d.action}
		return dec.Decided(), d.reason
	}
	if d.approved && d.approval.Approved {
		return protocol.ActionAllow, d.approval.Reason
	}
	return protocol.ActionDeny, d.approval.Reason
}

// unrecordedReason is what an agent is told whose answer became a no because
// it could not be recorded.
const unrecordedReason = "the decision could not be recorded"

// refuse makes the decision the no that the agent got instead, and says what it
// would have been.
func (d *decision) refuse(cause error) {
	if d.denied {
		return // at an earlier attempt to write it
	}
	d.denied = true
	was, _ := d.verdict()
	d.err = cause.Error() + " (would have been " + string(was) + ")"
	if d.approved {
		d.approval.Approved, d.approval.Reason = false, unrecordedReason
	}
	if d.stage.Name == protocol.StageApproveTool || d.action.Stops() {
		return
	}
	d.action, d.reason, d.decidedBy = d.stage.OnFailure, unrecordedReason, ""
	if d.action == protocol.ActionContinue {
		d.action = protocol.ActionAbortTurn
	}
}

// columns makes the row of a decision, and the rows of the hooks that failed in
// it. unrecorded is why the answer became a no; nil when it did not.
func (w *writer) columns(d *decision, unrecorded error) []driver.Value {
	undelivered := d.err != ""
	if unrecorded != nil {
		d.refuse(unrecorded)
	}
	params := jsontext.Value(d.buf[:d.paramsEnd])
	req, final := d.request()
	judged := final.Subject
	action, reason := d.verdict()
	session := d.session
	if s := req.MetaString("session_id"); s != "" {
		session = s
	}
	agent := d.agent
	if agent == "" {
		agent = req.MetaString("agent")
	}
	var names []string
	var before, after protocol.Object
	if d.paramsEnd < len(d.buf) {
		names, before, after = changes(d.stage, req.Subject, judged)
	}
	if d.respond != nil {
		after = append(after, protocol.Member{Name: d.stage.Respond, Value: d.respond})
	}
	if !w.opts.BeforeAfter {
		before, after = nil, nil
	}
	kept, hidden, cut := w.maskParams(params)
	status, ms, preview := toolRun(d, final, action)
	pid, uid := peer(d.pid, d.uid)
	v := w.values[:0]
	v = append(v, id(session), id(agent), w.text(req.MetaString("user_id")), id(req.MetaString("model")), id(req.MetaString("cwd")), pid, uid,
		string(d.stage.Name), id(final.Tool()), id(req.CallID), d.digestOf(final),
		string(action), w.text(reason), textOrNull(d.decidedBy), w.text(d.permission))
	if d.approved {
		v = append(v, flag(d.approval.Approved), w.text(d.approval.Reason), w.text(d.approval.By))
	} else {
		v = append(v, nil, nil, nil)
	}
	v = append(v, w.trail(d), w.jsonArray(protocol.AppendDegraded(nil, d.degraded), len(`,"degraded":`)), w.strings(d.warnings), w.strings(names),
		w.object(before), w.object(after), kept, cut, flagOrNull(hidden),
		numberOrNull(d.generation), d.duration.Microseconds(), flagOrNull(d.dryRun), flagOrNull(undelivered), flagOrNull(unrecorded != nil),
		w.text(d.err), textOrNull(status), ms, w.beginning(preview, previewChars))
	w.values = v
	return v
}

// request reads the params back, and returns the request as it was asked and as
// the hooks made it. What was read once before can be read again.
func (d *decision) request() (asked, final *protocol.Request) {
	if asked = d.asked; asked == nil {
		asked = &protocol.Request{Stage: d.stage}
		if obj, err := protocol.ParseObject(d.buf[:d.paramsEnd:d.paramsEnd]); err == nil {
			if req, refused := protocol.DecodeRequest(d.stage, obj); refused == nil {
				asked = req
			}
		}
	}
	if d.paramsEnd == len(d.buf) {
		return asked, asked
	}
	made := *asked
	if obj, err := protocol.ParseObject(d.buf[d.paramsEnd:]); err == nil {
		made.Subject = obj
	}
	return asked, &made
}

// digestOf is the digest of what was judged last.
func (d *decision) digestOf(final *protocol.Request) string {
	if d.digest == "" {
		d.digest = digest(final)
	}
	return d.digest
}

// changes says which members hooks changed: of the subject, or of the object
// that is wrapped in it.
func changes(stage *protocol.StageInfo, was, is protocol.Object) (names []string, before, after protocol.Object) {
	if stage.Wrapped() {
		was, _ = protocol.ParseObject(was.Get(stage.Result))
		is, _ = protocol.ParseObject(is.Get(stage.Result))
	}
	for _, m := range is {
		old := was.Get(m.Name)
		if protocol.SameValue(old, m.Value) {
			continue
		}
		names = append(names, m.Name)
		if old != nil {
			before = append(before, protocol.Member{Name: m.Name, Value: old})
		}
		after = append(after, m)
	}
	for _, m := range was {
		if is.Get(m.Name) == nil {
			names = append(names, m.Name)
			before = append(before, m)
		}
	}
	return names, before, after
}

// toolRun is what the audit log tells about a tool: how it ended, or that it
// was kept from running.
func toolRun(d *decision, req *protocol.Request, action protocol.Action) (status string, ms driver.Value, preview string) {
	switch {
	case d.stage.Name == protocol.StageAfterTool:
		status = "ok"
		res, err := protocol.ParseObject(req.Subject.Get("result"))
		if err == nil && string(res.Get("is_error")) == "true" {
			status = "error"
		}
		if n := req.Fixed.Get("duration_ms"); n != nil {
			ms = wholeNumber(n)
		}
		if err == nil {
			preview = protocol.ContentText(res.Get("content"))
		}
		return status, ms, preview
	case d.stage.Tool() && action.Stops():
		_, reason := d.verdict()
		return "denied", nil, reason
	}
	return "", nil, ""
}
