package builtin

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(kind protocol.EventKind, meta, payload string) *hook.Event {
	ev := &hook.Event{Seq: 7, Event: &protocol.Event{
		Kind: kind, Time: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC), Severity: "info", Source: "hookd", ID: "e1",
	}}
	if meta != "" {
		ev.Meta, _ = protocol.ParseObject(jsontext.Value(meta))
	}
	if payload != "" {
		ev.Payload = jsontext.Value(payload)
	}
	return ev
}

func TestLogLines(t *testing.T) {
	decision := event("decision", `{"agent":"bot","session_id":"s","native":{"token":"hunter2"}}`,
		`{"stage":"before_tool","tool":"bash","digest":"ab","action":"deny_tool", "reason":"no\nway","decided_by":"gate","degraded":[{"hook":"x","outcome":"timeout"}],"duration_us":1200}`)
	tool := event("tool_exec_start", "", `{"tool":"bash", "arguments":{"command":"echo hunter2"},"reason":{"free":"hunter2"}}`)
	missed := event("turn_start", "", "")
	missed.Missed = 3

	for _, c := range []struct {
		name, config string
		event        *hook.Event
		want         string
	}{
		{
			"a decision", ``, decision,
			`{"time":"2026-01-02T03:04:05.678000Z","kind":"decision","severity":"info","source":"hookd","id":"e1","seq":7,"meta":{"agent":"bot","session_id":"s"},"payload_bytes":177,"payload":{"stage":"before_tool","tool":"bash","digest":"ab","action":"deny_tool","reason":"no\nway","decided_by":"gate","degraded":[{"hook":"x","outcome":"timeout"}],"duration_us":1200}}`,
		},
		{
			"no arguments", `null`, tool,
			`{"time":"2026-01-02T03:04:05.678000Z","kind":"tool_exec_start","severity":"info","source":"hookd","id":"e1","seq":7,"payload_bytes":83,"payload":{"tool":"bash"}}`,
		},
		{
			"arguments when asked for", `{"payload":true}`, tool,
			`{"time":"2026-01-02T03:04:05.678000Z","kind":"tool_exec_start","severity":"info","source":"hookd","id":"e1","seq":7,"payload_bytes":83,"payload":{"tool":"bash","arguments":{"command":"echo hunter2"},"reason":{"free":"hunter2"}}}`,
		},
		{"under the level", `{"level":"warn"}`, tool, ``},
		{
			"a gap is told whatever the level", `{"level":"warn"}`, missed,
			`{"time":"2026-01-02T03:04:05.678000Z","kind":"turn_start","severity":"info","source":"hookd","id":"e1","seq":7,"missed":3}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			l, err := NewLog(jsontext.Value(c.config), "", &out)
			require.NoError(t, err)
			require.NoError(t, l.Observe(t.Context(), c.event))
			require.NoError(t, l.Close())
			if c.want != "" {
				c.want += "\n"
				require.NoError(t, protocol.CheckValue(bytes.TrimSpace(out.Bytes()), 0))
			}
			require.Equal(t, c.want, out.String())
		})
	}
}

func TestLogFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "events.jsonl")
	for range 2 {
		l, err := NewLog(jsontext.Value(`{"path":"events.jsonl"}`), folder, nil)
		require.NoError(t, err)
		require.NoError(t, l.Observe(t.Context(), event("turn_start", "", "")))
		require.NoError(t, l.Close())
		require.ErrorContains(t, l.Observe(t.Context(), event("turn_start", "", "")), "write log: ")
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), "\n"), "the second opening appends")
}

func TestLogCannotOpen(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600))
	for path, want := range map[string]string{
		"missing/events.jsonl": "no such file or directory; its folder must exist",
		".":                    "is a directory",
		"pipe":                 "pipe",
	} {
		_, err := NewLog(jsontext.Value(`{"path":"`+path+`"}`), folder, nil)
		place, ok := errors.AsType[*ConfigError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "/path", place.JSONPointer())
		require.ErrorContains(t, err, want)
	}
	reader, err := os.OpenFile(filepath.Join(folder, "pipe"), os.O_RDWR, 0)
	require.NoError(t, err)
	defer reader.Close()
	_, err = NewLog(jsontext.Value(`{"path":"pipe"}`), folder, nil)
	require.ErrorContains(t, err, "is not a file")
}

func TestValidateLog(t *testing.T) {
	for config, want := range map[string]string{
		``:                              "",
		`null`:                          "",
		`{}`:                            "",
		`{"level":"error","path":"x"}`:  "",
		`[]`:                            "expected an object, got [",
		`{"pth":"x"}`:                   `/pth: unknown key "pth" (did you mean "path"?)`,
		`{"Path":"x"}`:                  `/Path: unknown key "Path" (did you mean "path"?)`,
		`{"path":1}`:                    "/path: expected a string, got number",
		`{"payload":"yes"}`:             "/payload: expected true or false, got string",
		`{"level":"warning"}`:           `/level: unknown level "warning", one of debug, info, warn, error (did you mean "warn"?)`,
		`{"path":"a","path":"b"}`:       `duplicate name at "/path"`,
		`{"path":"a"`:                   "the JSON ends too early",
		`{"path":"a","payload":true} 1`: "invalid character",
	} {
		err := ValidateLog(jsontext.Value(config))
		if want == "" {
			require.NoError(t, err, config)
		} else {
			require.ErrorContains(t, err, want, config)
		}
	}
}

func FuzzLogLine(f *testing.F) {
	f.Add(`{"tool":"bash"}`, "hookd", true)
	f.Add("{ \"reason\" :\n\"a\\nb\", \"degraded\": [ { } ] }", "a\nb\xff", false)
	f.Fuzz(func(t *testing.T, payload, source string, whole bool) {
		if obj, err := protocol.DecodeObject([]byte(payload), 0); err != nil || obj == nil {
			return // the protocol lets only strict objects through
		}
		var out bytes.Buffer
		ev := event("x_free", payload, payload)
		ev.Source = source
		require.NoError(t, (&Log{out: &out, payload: whole}).Observe(t.Context(), ev))
		line, ended := strings.CutSuffix(out.String(), "\n")
		require.True(t, ended)
		require.NotContains(t, line, "\n")
		require.NoError(t, protocol.CheckValue([]byte(line), protocol.DefaultMaxDepth+2))
	})
}
