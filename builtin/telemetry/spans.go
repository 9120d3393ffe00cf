package telemetry

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/hookd/hookd/protocol"
)

// scope is how the spans say who made them.
const scope = "github.com/hookd/hookd"

// The attributes of spans. Those of gen_ai are OpenTelemetry's own words.
const (
	keyAgentID      = attribute.Key("agent.id")
	keyTaskID       = attribute.Key("task.id")
	keyConversation = attribute.Key("conversation.id")
	keyModelID      = attribute.Key("model.id")
	keyStatus       = attribute.Key("status")
	keyToolName     = attribute.Key("tool.name")

	keyGenOperation    = attribute.Key("gen_ai.operation.name")
	keyGenAgentID      = attribute.Key("gen_ai.agent.id")
	keyGenAgentName    = attribute.Key("gen_ai.agent.name")
	keyGenConversation = attribute.Key("gen_ai.conversation.id")
	keyGenModel        = attribute.Key("gen_ai.request.model")
	keyGenTool         = attribute.Key("gen_ai.tool.name")
	keyGenCall         = attribute.Key("gen_ai.tool.call.id")

	keyTurn       = attribute.Key("hookd.turn.id")
	keyParentTurn = attribute.Key("hookd.parent_turn.id")
	keyEnd        = attribute.Key("hookd.run.end")
	keyCalls      = attribute.Key("hookd.run.calls")
	keyStopped    = attribute.Key("hookd.run.stopped_calls")
	keyStage      = attribute.Key("hookd.stage")
	keyVerdict    = attribute.Key("hookd.verdict")
	keyDecidedBy  = attribute.Key("hookd.decided_by")
	keyApproved   = attribute.Key("hookd.approved")
	keyDegraded   = attribute.Key("hookd.degraded")
	keyGeneration = attribute.Key("hookd.generation")
	keyUnseen     = attribute.Key("hookd.hooks_left_out")
	keyReason     = attribute.Key("hookd.reason")
	keyHook       = attribute.Key("hookd.hook")
	keyOutcome    = attribute.Key("hookd.outcome")
	keyAction     = attribute.Key("hookd.action")
	keyChanged    = attribute.Key("hookd.changed")
	keyRecheck    = attribute.Key("hookd.recheck")
)

func newProvider(c *config, to sdktrace.SpanProcessor) *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", c.ServiceName))),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(*c.Sample))),
		sdktrace.WithIDGenerator(idGenerator{}),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeValueLengthLimit: 2 * maxReason, AttributeCountLimit: 64, EventCountLimit: 64, AttributePerEventCountLimit: 4,
		}),
		sdktrace.WithSpanProcessor(to),
	)
}

// attributes collects those that have a value.
type attributes []attribute.KeyValue

func (a *attributes) text(key attribute.Key, value string) {
	if value != "" {
		*a = append(*a, key.String(value))
	}
}

func (a *attributes) count(key attribute.Key, n int64) {
	if n != 0 {
		*a = append(*a, key.Int64(n))
	}
}

func (a *attributes) flag(key attribute.Key, set bool) {
	if set {
		*a = append(*a, key.Bool(true))
	}
}

// run are the attributes that a run and the calls of it share.
func (a *attributes) run(r *run) {
	agentID := r.agentID
	if agentID == "" {
		agentID = r.agent
	}
	a.text(keyAgentID, agentID)
	a.text(keyGenAgentID, r.agentID)
	a.text(keyGenAgentName, r.agent)
	a.text(keyTaskID, r.task)
	a.text(keyConversation, r.session)
	a.text(keyGenConversation, r.session)
	a.text(keyModelID, r.model)
	a.text(keyGenModel, r.model)
}

func nameOf(i *ids) string { return strings.TrimSpace("invoke_agent " + i.agent) }

func runAttributes(r *run) attributes {
	a := make(attributes, 0, 20)
	a.run(r)
	a.text(keyGenOperation, "invoke_agent")
	a.text(keyTurn, r.turn)
	a.text(keyParentTurn, r.parentTurn)
	a.text(keyStatus, r.status)
	a.text(keyEnd, r.how)
	a = append(a, keyCalls.Int64(r.calls), keyStopped.Int64(r.stopped))
	a.count(keyDegraded, r.degraded)
	return a
}

// writeCall makes the span of a call and those of its hooks.
func (rs *runs) writeCall(r *run, c *call) {
	if !r.span.IsRecording() {
		return // not sampled
	}
	a := make(attributes, 0, 24)
	a.run(r)
	status := statusOK
	if c.undecided {
		status = statusError
	}
	a.text(keyStatus, status)
	a.text(keyStage, string(c.stage))
	a.text(keyVerdict, string(c.verdict))
	a.text(keyDecidedBy, c.decidedBy)
	a.text(keyToolName, c.tool)
	a.text(keyGenTool, c.tool)
	if c.tool != "" {
		a.text(keyGenCall, c.callID)
	}
	if c.approved != nil {
		a = append(a, keyApproved.Bool(*c.approved))
	}
	a.count(keyDegraded, int64(c.degraded))
	a.count(keyGeneration, int64(c.generation))
	a.count(keyUnseen, int64(c.unseen))
	a.text(keyReason, c.reason)
	ctx, span := rs.tracer.Start(r.ctx, "hookd "+string(c.stage), trace.WithTimestamp(c.started), trace.WithAttributes(a...))
	end := c.started.Add(c.took)
	rs.writeSteps(ctx, c, end)
	if c.undecided {
		span.SetStatus(codes.Error, "no decision")
	}
	span.End(trace.WithTimestamp(end))
}

// writeSteps makes the spans of the hooks of a call. They were asked one after
// another; when each began is not known, so one is laid behind the other.
func (rs *runs) writeSteps(ctx context.Context, c *call, end time.Time) {
	at := c.started
	for i := range c.steps {
		s := &c.steps[i]
		a := make(attributes, 0, 8)
		a.text(keyHook, s.hook)
		a.text(keyOutcome, string(s.outcome))
		a.text(keyAction, string(s.action))
		status := statusOK
		switch {
		case s.outcome == protocol.OutcomeTimeout:
			status = statusTimeout
		case s.outcome.Failed():
			status = statusError
		}
		a.text(keyStatus, status)
		a.flag(keyChanged, s.changed)
		a.flag(keyRecheck, s.recheck)
		a.text(keyReason, s.detail)
		_, span := rs.tracer.Start(ctx, "hook "+s.hook, trace.WithTimestamp(at), trace.WithAttributes(a...))
		if at = at.Add(max(s.took, 0)); at.After(end) {
			at = end
		}
		if status != statusOK {
			span.SetStatus(codes.Error, string(s.outcome))
		}
		span.End(trace.WithTimestamp(at))
	}
}

// parentContext is what the span of a run starts in: the span that the agent
// names, else that of the run that has started this one, else the trace that the
// agent names, else nothing.
func parentContext(i *ids, parent *run) context.Context {
	ctx := context.Background()
	if parent != nil && (i.traceparent == "" || i.traceparent == parent.traceparent) {
		return parent.ctx
	}
	if sc := remoteSpan(i.traceparent); sc.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, sc)
	}
	if id, ok := traceID(i.traceID); ok {
		return context.WithValue(ctx, wantedTrace{}, id)
	}
	return ctx
}

// remoteSpan reads a W3C traceparent. What can't be read is no span.
func remoteSpan(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	return trace.SpanContextFromContext(ctx)
}

// traceID reads a trace's id: 32 hex digits, not all zero, or the same written
// as a UUID with hyphens.
func traceID(text string) (id trace.TraceID, ok bool) {
	if len(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' {
		text = text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	}
	if len(text) != 2*len(id) {
		return id, false
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return trace.TraceID{}, false
	}
	return id, id.IsValid()
}

// wantedTrace is the key of the trace that a context asks for.
type wantedTrace struct{}

// idGenerator makes ids at random, but for a trace that the context asks for.
type idGenerator struct{}

// NewIDs implements [sdktrace.IDGenerator].
func (g idGenerator) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	id, ok := ctx.Value(wantedTrace{}).(trace.TraceID)
	for !ok {
		fill(id[:])
		ok = id.IsValid()
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements [sdktrace.IDGenerator].
func (idGenerator) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		fill(id[:])
	}
	return id
}

func fill(b []byte) {
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
}
