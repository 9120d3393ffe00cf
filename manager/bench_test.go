package manager

import (
	"context"
	"testing"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// BenchmarkCall is what the manager itself costs a before_tool call of 200
// bytes.
func BenchmarkCall(b *testing.B) {
	yes := goHook{intercept: func(context.Context, *protocol.Request) (protocol.Decision, error) { return hook.Continue(), nil }}
	quick := yes.registration("quick")
	quick.Roles.Quick = true
	for _, c := range []struct {
		name  string
		hooks []*hook.Registration
	}{
		{"no_hook", nil},
		{"one_quick", []*hook.Registration{quick}},
		{"one_inprocess", []*hook.Registration{yes.registration("plain")}},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := mounted(b, c.hooks...)
			caller := &Caller{Name: "bench"}
			req := request(b, protocol.StageBeforeTool, `{"meta":{"session_id":"s1","turn_id":"t1"},"call_id":"c1","tool":"bash","arguments":{"command":"go test ./... -race -count=1 -timeout 120s && go vet ./...","timeout":120000,"cwd":"/srv/project"}}`)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Call(b.Context(), caller, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
