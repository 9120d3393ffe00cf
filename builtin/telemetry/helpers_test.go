package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

// store is a collector: it keeps what it is sent. It serves HTTP, and is a
// transport for tests in which time stands still.
type store struct {
	mu      sync.Mutex
	spans   []*tracepb.Span
	raw     []byte // all bodies
	service string
	headers http.Header
	path    string
	posts   int
	// answer, if set, returns the status of the n-th post, or 0 for a failure of
	// the network.
	answer func(ctx context.Context, n int) int
}

func (s *store) take(req *http.Request) int {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return 0
	}
	s.mu.Lock()
	s.posts++
	n, answer := s.posts, s.answer
	s.headers, s.path = req.Header.Clone(), req.URL.Path
	s.mu.Unlock()
	if answer != nil {
		if status := answer(req.Context(), n); status != http.StatusOK {
			return status
		}
	}
	var data tracepb.TracesData
	if proto.Unmarshal(body, &data) != nil {
		return http.StatusBadRequest
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = append(s.raw, body...)
	for _, r := range data.ResourceSpans {
		s.service = attributesOf(r.Resource.Attributes)["service.name"]
		for _, scope := range r.ScopeSpans {
			s.spans = append(s.spans, scope.Spans...)
		}
	}
	return http.StatusOK
}

// ServeHTTP implements http.Handler.
func (s *store) ServeHTTP(w http.ResponseWriter, req *http.Request) { w.WriteHeader(s.take(req)) }

// RoundTrip implements http.RoundTripper.
func (s *store) RoundTrip(req *http.Request) (*http.Response, error) {
	status := s.take(req)
	if status == 0 {
		if err := context.Cause(req.Context()); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("connect to %s: refused", "there")
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(nil)), Header: http.Header{}, Request: req}, nil
}

func (s *store) all() []*tracepb.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.spans)
}

// count returns how often something was sent.
func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posts
}

// named returns the spans with a name, by start.
func (s *store) named(name string) (found []*tracepb.Span) {
	for _, span := range s.all() {
		if span.Name == name {
			found = append(found, span)
		}
	}
	slices.SortStableFunc(found, func(a, b *tracepb.Span) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
	return found
}

// one returns the only span with a name.
func (s *store) one(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	found := s.named(name)
	require.Len(t, found, 1, "%s in\n%s", name, s.tree())
	return found[0]
}

// tree shows all traces: name, status and how a run ended.
func (s *store) tree() string {
	spans := s.all()
	slices.SortStableFunc(spans, func(a, b *tracepb.Span) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
	var b strings.Builder
	var show func(span *tracepb.Span, depth int)
	show = func(span *tracepb.Span, depth int) {
		a := attributesOf(span.Attributes)
		fmt.Fprintf(&b, "%s%s %s", strings.Repeat("  ", depth), span.Name, a["status"])
		for _, key := range []string{"hookd.verdict", "hookd.outcome", "hookd.run.end"} {
			if a[key] != "" {
				b.WriteString(" " + a[key])
			}
		}
		b.WriteString("\n")
		for _, child := range spans {
			if bytes.Equal(child.ParentSpanId, span.SpanId) {
				show(child, depth+1)
			}
		}
	}
	for _, span := range spans {
		if !slices.ContainsFunc(spans, func(p *tracepb.Span) bool { return bytes.Equal(p.SpanId, span.ParentSpanId) }) {
			show(span, 0)
		}
	}
	return b.String()
}

func attributesOf(list []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *commonpb.AnyValue_BoolValue:
			out[kv.Key] = fmt.Sprint(v.BoolValue)
		case *commonpb.AnyValue_IntValue:
			out[kv.Key] = fmt.Sprint(v.IntValue)
		default:
			out[kv.Key] = kv.Value.String()
		}
	}
	return out
}

func start(s *tracepb.Span) time.Time { return time.Unix(0, int64(s.StartTimeUnixNano)) }
func took(s *tracepb.Span) time.Duration {
	return time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano)
}
func traceOf(s *tracepb.Span) string { return hex.EncodeToString(s.TraceId) }

// newFor makes a Telemetry with a transport; members stand in its config beside
// the endpoint.
func newFor(t *testing.T, way http.RoundTripper, members string) *Telemetry {
	t.Helper()
	hook, err := build(jsontext.Value(`{"endpoint":"http://127.0.0.1:4318"`+members+`}`), t.TempDir(), NewSink(), zap.NewNop(), way)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, hook.Close()) })
	return hook
}

var stages = protocol.NewStageTable()

// asks is a request as an agent sends it.
func asks(t testing.TB, stage protocol.Stage, params string) *protocol.Request {
	t.Helper()
	members, err := protocol.DecodeObject([]byte(params), 0)
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(stages.Stage(stage), members)
	require.Nil(t, bad)
	return req
}

// paramsOf are params of a stage with a meta.
func paramsOf(stage protocol.Stage, meta string) string {
	subject := map[protocol.Stage]string{
		protocol.StageUserMessage: `"message":{"content":"` + canary + `"}`,
		protocol.StageBeforeAgent: `"request":{"input":"` + canary + `"}`,
		protocol.StageBeforeLLM:   `"model":"small-1","messages":[{"role":"user","content":"` + canary + `"}]`,
		protocol.StageAfterLLM:    `"response":{"content":"` + canary + `"}`,
		protocol.StageBeforeTool:  `"tool":"bash","arguments":{"command":"` + canary + `"},"call_id":"c-1"`,
		protocol.StageApproveTool: `"tool":"bash","arguments":{"command":"` + canary + `"},"call_id":"c-1"`,
		protocol.StageAfterTool:   `"tool":"bash","arguments":{},"result":{"content":"` + canary + `"}`,
		protocol.StageStop:        `"request":{"last_message":"` + canary + `"}`,
		protocol.StageOutput:      `"output":{"content":"` + canary + `"}`,
	}[stage]
	return `{"meta":` + meta + `,"context":{"secret":"` + canary + `"},` + subject + `}`
}

// canary stands everywhere where users, models, tools and hooks may write.
const canary = "CANARY-7f3a"

var bot = &manager.Caller{Name: "bot"}

// decided is a record of a call that took 10 ms until now.
func decided(t testing.TB, stage protocol.Stage, meta string, res protocol.Result) *manager.Record {
	t.Helper()
	req := asks(t, stage, paramsOf(stage, meta))
	res.Generation = 3
	return &manager.Record{
		Caller: bot, Request: req, Final: req.Subject, Result: &res,
		Started: time.Now().Add(-10 * time.Millisecond), Duration: 10 * time.Millisecond,
	}
}

// pass records calls that nobody minded.
func pass(t testing.TB, hook *Telemetry, meta string, stages ...protocol.Stage) {
	t.Helper()
	for _, stage := range stages {
		hook.Take(decided(t, stage, meta, protocol.Result{}))
	}
}

// tell sends an event of the agent's.
func tell(t testing.TB, to *Telemetry, kind protocol.EventKind, meta string) {
	t.Helper()
	members, err := protocol.DecodeObject([]byte(`{"kind":"`+string(kind)+`","payload":{"message":"`+canary+`"},"meta":`+meta+`}`), 0)
	require.NoError(t, err)
	ev, bad := protocol.DecodeEvent(members)
	require.Nil(t, bad)
	ev.Time = time.Now()
	ev.Meta = ev.Meta.With("agent", protocol.Quote("bot"))
	require.NoError(t, to.Observe(t.Context(), &hook.Event{Event: ev}))
}

// eventOf is an event of an agent's, as an observer gets it.
func eventOf(kind protocol.EventKind, meta protocol.Object) *hook.Event {
	return &hook.Event{Event: &protocol.Event{Kind: kind, Meta: meta, Source: "agent", Time: time.Now()}}
}
