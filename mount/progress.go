package mount

import (
	"strings"
	"time"

	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

const (
	// progressPerSecond is how much progress of one hook is told on.
	progressPerSecond = 10
	// progressBytes is how long a text may be; the rest is cut off.
	progressBytes = 500
)

// Progress is a hook's word about a call that it still works on.
type Progress struct {
	Hook string
	// CallID is what the agent calls the call; empty when the hook did not say.
	CallID string
	Text   string
}

// Accept implements [rpc.Handler]: of what a hook says by itself only progress
// has a meaning. It runs on the read loop.
func (r *run) Accept(req *rpc.Request) rpc.Work {
	switch {
	case req.Method == protocol.MethodProgress && req.Notification():
		r.progressed(req.Members)
	case req.Notification():
		r.noise(rpc.Noise{Kind: rpc.NoiseRequest, Detail: clip(req.Method)})
	}
	return rpc.Work{} // a request is answered -32601, and counted
}

func (r *run) progressed(params protocol.Object) {
	if r.progressBurst.hit(time.Now()) {
		r.p.count("progress_dropped", "")
		return
	}
	p := Progress{Hook: r.p.name, CallID: textOf(params, "call_id"), Text: textOf(params, "text")}
	if len(p.Text) > progressBytes {
		p.Text = strings.ToValidUTF8(p.Text[:progressBytes], "") + "…"
	}
	switch {
	case p.Text == "":
		r.noise(rpc.Noise{Kind: rpc.NoiseRequest, Detail: protocol.MethodProgress + " without a text"})
	case r.p.onProgress != nil:
		r.p.onProgress(p)
	}
}

// textOf returns a member that is a text, or "".
func textOf(o protocol.Object, name string) string {
	if v := o.Get(name); v.Kind() == '"' {
		return protocol.Unquote(v)
	}
	return ""
}
