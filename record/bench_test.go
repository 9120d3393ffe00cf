package record

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkRecordBatch is what a decision pays for its record in mode batch,
// when the disk keeps up.
func BenchmarkRecordBatch(b *testing.B) {
	s := openStore(b, Options{Path: recordPath(b)}, faults{})
	rec := toolCall(b, 1)
	ctx := context.Background()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%1024 == 0 {
			b.StopTimer()
			for s.Status().Queued > 0 {
				time.Sleep(time.Millisecond)
			}
			b.StartTimer()
		}
		if err := s.Record(ctx, rec); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecordBatchFull is what it pays when more comes than the disk takes:
// the throughput of the writer.
func BenchmarkRecordBatchFull(b *testing.B) {
	s := openStore(b, Options{Path: recordPath(b)}, faults{})
	rec := toolCall(b, 1)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, s.Record(ctx, rec))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}

// BenchmarkRecordStrict64 is how many decisions 64 agents get in mode strict.
func BenchmarkRecordStrict64(b *testing.B) {
	s := openStore(b, Options{Path: recordPath(b), Mode: ModeStrict}, faults{})
	rec := toolCall(b, 1)
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Record(context.Background(), rec); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}

func BenchmarkMaskSecrets(b *testing.B) {
	v := raw(`{"meta":{"session_id":"abc"},"tool":"bash","arguments":{"command":"go test ./... && git commit -m \"done\" && curl https://example.com/a?b=c"}}`)
	b.SetBytes(int64(len(v)))
	b.ReportAllocs()
	for b.Loop() {
		MaskSecrets(v)
	}
}
