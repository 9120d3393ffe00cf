package record

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

const cardNumber = "4111 1111 1111 1111"

// cardMask takes out whole card numbers only, as any mask does.
func cardMask(v jsontext.Value) jsontext.Value {
	return regexp.MustCompile(`4111 1111 1111 1111`).ReplaceAll(v, []byte("[card]"))
}

// What lies across a cut is as little in the record as what is before it,
// wherever the cut is.
func TestMaskAcrossCuts(t *testing.T) {
	key := "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	path := recordPath(t)
	s := openStore(t, Options{Path: path, Mask: cardMask, MaxParams: 2048}, faults{})
	n := 0
	after := func(content string) {
		n++
		require.NoError(t, s.Record(t.Context(), call(t, protocol.StageAfterTool,
			`{"tool":"read_file","arguments":{},"result":{"content":`+string(protocol.Quote(content))+`}}`, protocol.Result{})))
	}
	for _, around := range []int{previewChars, 2048, 4096, 8192, previewWindow} {
		for at := max(around-400, 0); at <= around; at += 7 {
			for _, what := range []string{cardNumber, key, "password=" + key} {
				text := strings.Repeat("x ", at/2) + what + " tail "
				after(text)
				after(text + strings.Repeat("y ", 6000))
				require.NoError(t, s.ToolRun(&ToolRun{Tool: "t", Status: "ok", Preview: text + strings.Repeat("y ", 6000)}))
				require.NoError(t, s.Security(&SecurityEvent{What: "w", Message: text + strings.Repeat("y ", 6000)}))
			}
		}
	}
	for k := range 20 { // the mask makes them so short that they need no second cut
		after(strings.Repeat("n", k) + " " + strings.Repeat(cardNumber+" , ", 4000))
		after(strings.Repeat("n", k) + " " + strings.Repeat(cardNumber, 4000))
		list := protocol.Object{}
		for i := range 30 {
			list = append(list, protocol.Member{Name: "m" + string(rune('a'+i)), Value: protocol.Quote(strings.Repeat("n", k) + strings.Repeat(" "+cardNumber, 40))})
		}
		require.NoError(t, s.Record(t.Context(), call(t, protocol.StageBeforeTool, `{"tool":"bash","arguments":`+string(list.AppendJSON(nil))+`}`, protocol.Result{})))
		deny := protocol.Result{Action: protocol.ActionDeny, Reason: strings.Repeat("z", 175+k) + " " + cardNumber + " and " + key}
		require.NoError(t, s.Record(t.Context(), call(t, protocol.StageBeforeTool, `{"tool":"bash","arguments":{}}`, deny)))
	}
	closeStore(t, s)
	seen := 0
	for _, line := range exported(t, path) {
		require.NotContains(t, line, "4111 1")
		require.NotContains(t, line, "ghp_")
		if strings.Contains(line, "[card]") {
			seen++
		}
	}
	require.Greater(t, seen, 100, "what is whole is masked, and its surroundings are kept")
	for _, row := range mustAudit(t, path) {
		require.LessOrEqual(t, len(row.Preview), previewChars+len("…"))
	}
}

func mustAudit(t *testing.T, path string) []AuditRow {
	list, err := openReader(t, path).AuditLog(t.Context(), "", 0)
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

// The words about the rest tell of all that was left out, also after a second
// cut.
func TestCutTwice(t *testing.T) {
	once, short := shrink(raw(`{"a":"`+strings.Repeat("word ", 2000)+`"}`), 4000)
	require.True(t, short)
	twice, short := shrink(dropEdges(once), 2000)
	require.True(t, short)
	text := protocol.Unquote(twice[len(`{"a":`) : len(twice)-1])
	kept, more := cutNote(text)
	require.Equal(t, 10000, len(kept)+more)
	require.Equal(t, 1, strings.Count(text, "not recorded"))
}
