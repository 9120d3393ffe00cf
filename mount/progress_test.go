package mount

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What a hook says of a call it works on is told on, at most so often; what
// else it says by itself is noise.
func TestProgress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []Progress
		p, _ := startFake(t, func(j *job) { j.onProgress = func(p Progress) { told = append(told, p) } }, func(f *far) {
			f.greet(`{}`)
			f.write("%s", `{"jsonrpc":"2.0","method":"hook.progress","params":{"call_id":"c1","text":"reading 3 of 9 files"}}`)
			f.write("%s", `{"jsonrpc":"2.0","method":"hook.progress","params":{"text":"`+strings.Repeat("ä", 400)+`"}}`)
			f.write("%s", `{"jsonrpc":"2.0","method":"hook.progress","params":{"text":7}}`)
			f.write("%s", `{"jsonrpc":"2.0","method":"hook.unheard_of","params":{}}`)
			for range 30 {
				f.write("%s", `{"jsonrpc":"2.0","method":"hook.progress","params":{"text":"again"}}`)
			}
			<-f.done
		})
		require.NoError(t, p.ready(t.Context()))
		synctest.Wait()
		require.Equal(t, Progress{Hook: "gate", CallID: "c1", Text: "reading 3 of 9 files"}, told[0])
		require.Less(t, len(told[1].Text), progressBytes+8)
		require.True(t, strings.HasSuffix(told[1].Text, "ä…"))
		require.Len(t, told, progressPerSecond-1, "one of ten held no text")
		require.EqualValues(t, 23, p.status().Noise["progress_dropped"])
		require.EqualValues(t, 2, p.status().Noise["request_from_peer"], "the one without a text, and the unknown method")
		time.Sleep(time.Second)
		require.Equal(t, Ready, p.status().State)
	})
}
