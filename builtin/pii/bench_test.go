package pii

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hookd/hookd/protocol"
)

// BenchmarkIntercept judges a tool's result of 2 kB: ordinary text, and the same
// with personal data in it.
func BenchmarkIntercept(b *testing.B) {
	line := "2026-01-02 12:30:45 build 1718000000123 完成 ok in 12.5s (commit 4f2a9c1b7d04) see https://example.com/x?id=20240115123 for more; "
	plain := strings.Repeat(line, 2048/len(line)+1)[:2048]
	for name, content := range map[string]string{
		"plain": plain, "found": plain + "手机 13812345678, alice@example.com, 6222021234567890128",
	} {
		b.Run(name, func(b *testing.B) {
			p, err := New(jsontext.Value(`{"phone":"mask","bank_card":"redact","email":"hash","ip":"off"}`), "", nil, zap.NewNop())
			require.NoError(b, err)
			stage := protocol.NewStageTable().Stage(protocol.StageAfterTool)
			result := protocol.Object{{Name: "content", Value: protocol.Quote(strings.ToValidUTF8(content, ""))}}.AppendJSON(nil)
			req := &protocol.Request{Stage: stage, Subject: protocol.Object{{Name: "result", Value: result}}}
			b.SetBytes(int64(len(result)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := p.Intercept(b.Context(), req)
				require.NoError(b, err)
			}
		})
	}
}
