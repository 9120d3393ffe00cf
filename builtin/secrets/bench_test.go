package secrets

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hookd/hookd/protocol"
)

// BenchmarkIntercept judges a tool's result of 2 kB: a log, a piece of code with
// many a key and token in it, and the log with a secret at its end.
func BenchmarkIntercept(b *testing.B) {
	log := sized("2026-01-02 12:30:45 build 1718000000123 完成 ok in 12.5s (commit 4f2a9c1b7d04) see https://example.com/x for more; ")
	code := sized("func (c *Client) token(key string) (string, error) { auth := c.headers[\"x-api-key\"]; return c.secretFor(key, auth) }\n")
	for name, content := range map[string]string{
		"log": log, "code": code, "found": log + " AKIA" + "QYLPMN5HHHFPZAM2 ",
	} {
		b.Run(name, func(b *testing.B) {
			s, err := New(jsontext.Value(`{"canaries":["a-canary-nobody-says"]}`), "", nil, zap.NewNop())
			require.NoError(b, err)
			stage := protocol.NewStageTable().Stage(protocol.StageAfterTool)
			result := protocol.Object{{Name: "content", Value: protocol.Quote(content)}}.AppendJSON(nil)
			req := &protocol.Request{Stage: stage, Subject: protocol.Object{{Name: "result", Value: result}}}
			b.SetBytes(int64(len(result)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := s.Intercept(b.Context(), req)
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkNew reads the rules and prepares the search for their keywords.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, err := New(nil, "", nil, zap.NewNop())
		require.NoError(b, err)
	}
}

func sized(line string) string {
	return strings.ToValidUTF8(strings.Repeat(line, 2048/len(line)+1)[:2048], "")
}
