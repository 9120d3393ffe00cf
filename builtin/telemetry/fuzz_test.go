package telemetry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

// FuzzMeta wants runs to begin and end whatever stands in meta, with ids that
// are bounded and can be sent.
func FuzzMeta(f *testing.F) {
	f.Add([]byte(`{"session_id":"s","turn_id":"u","parent_turn_id":"u"}`))
	f.Add([]byte(`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","trace_id":"x"}`))
	f.Add([]byte(`{"traceparent":"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more","model":"\u0000\ud83d\ude00"}`))
	f.Add([]byte(`{"task_id":null,"agent":7}`))
	f.Fuzz(func(t *testing.T, meta []byte) {
		o, err := protocol.DecodeObject(meta, 0)
		if err != nil {
			return
		}
		i := takeIDs(o)
		for _, s := range []string{i.agent, i.agentID, i.session, i.task, i.turn, i.parentTurn, i.model, i.traceparent, i.traceID} {
			require.LessOrEqual(t, len(s), maxText)
		}
		s := &store{}
		to, err := build([]byte(`{"endpoint":"http://h"}`), "", NewSink(), zap.NewNop(), s)
		require.NoError(t, err)
		for _, stage := range []protocol.Stage{protocol.StageBeforeLLM, protocol.StageStop} {
			to.Take(&manager.Record{
				Caller: bot, Request: &protocol.Request{Stage: stages.Stage(stage), Meta: o}, Result: &protocol.Result{}, Started: time.Now(),
			})
		}
		require.NoError(t, to.Observe(t.Context(), eventOf(protocol.EventTurnEnd, o)))
		require.NoError(t, to.Observe(t.Context(), eventOf(protocol.EventSessionEnd, o)))
		require.NoError(t, to.Close())
		stats := to.Stats()
		require.Zero(t, stats.OpenRuns+stats.FailedSpans+stats.DroppedSpans+stats.DroppedRecords, "%+v", stats)
		require.Contains(t, []int64{0, 3}, stats.SentSpans) // an agent may say that its trace is not sampled
	})
}
