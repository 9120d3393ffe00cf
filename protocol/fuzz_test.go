package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// readByOthers is how most programs read JSON: the standard library, which
// takes the last of two equal names and any case. What the decoders here accept
// must mean the same to it.
func readByOthers(t *testing.T, raw []byte, into any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	require.NoError(t, dec.Decode(into), "%q", raw)
	_, err := dec.Token()
	require.Equal(t, io.EOF, err, "%q holds more than one value", raw)
	requireNoDuplicates(t, raw)
}

func requireNoDuplicates(t *testing.T, raw []byte) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var stack []map[string]bool // nil for an array
	name := false               // the next token is a name
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		switch tok {
		case json.Delim('{'):
			stack, name = append(stack, map[string]bool{}), true
			require.LessOrEqual(t, len(stack), DefaultMaxDepth)
			continue
		case json.Delim('['):
			stack, name = append(stack, nil), false
			require.LessOrEqual(t, len(stack), DefaultMaxDepth)
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		default:
			if names := last(stack); name && names != nil {
				require.False(t, names[tok.(string)], "%q twice in %q", tok, raw)
				names[tok.(string)], name = true, false
				continue
			}
		}
		name = last(stack) != nil
	}
}

func last(stack []map[string]bool) map[string]bool {
	if len(stack) == 0 {
		return nil
	}
	return stack[len(stack)-1]
}

func FuzzDecodeDecision(f *testing.F) {
	index := func(name Stage) byte { return byte(slices.Index(StageNames(), string(name))) }
	for _, c := range answerCases() {
		if c.stage == "" {
			c.stage = StageBeforeTool
		}
		f.Add(index(c.stage), []byte(c.in))
	}
	rows := Stages()
	f.Fuzz(func(t *testing.T, n byte, raw []byte) {
		s := &rows[int(n)%len(rows)]
		before := bytes.Clone(raw)
		d, err := DecodeDecision(s, raw)
		require.Equal(t, before, raw, "the input is left as it was")
		if err != nil {
			require.Equal(t, Decision{}, d)
			require.Less(t, len(err.Error()), 1000)
			return
		}
		if len(bytes.TrimSpace(raw)) == 0 {
			require.Equal(t, Decision{}, d)
			return
		}
		var other struct {
			Action string
			Reason string
		}
		readByOthers(t, raw, &other)
		if other.Action == "" {
			require.Equal(t, ActionContinue, d.Decided())
		} else {
			a, err := parseAction(other.Action)
			require.NoError(t, err)
			require.Equal(t, a, d.Action)
		}
		require.Equal(t, other.Reason, d.Reason)

		encoded := d.AppendJSON(nil, s)
		again, err := DecodeDecision(s, encoded)
		require.NoError(t, err, "%s", encoded)
		require.Equal(t, d.Decided(), again.Action)
		d.Action = again.Action
		require.Equal(t, fmt.Sprintf("%+v", d), fmt.Sprintf("%+v", again)) // where an empty list is none
		require.Equal(t, encoded, again.AppendJSON(nil, s))
		require.NoError(t, again.Check(s))
		if d.Subject != nil {
			_, _, err = s.Apply(Object{{s.Result, []byte(`{}`)}}, d.Subject)
			require.NoError(t, err)
		}
	})
}

func FuzzDecodeApproval(f *testing.F) {
	for _, c := range approvalCases() {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := DecodeApproval(raw)
		if err != nil {
			require.Equal(t, Approval{}, a)
			return
		}
		other := struct {
			Approved   *bool
			Reason, By string
		}{}
		readByOthers(t, raw, &other)
		require.NotNil(t, other.Approved)
		require.Equal(t, Approval{Approved: *other.Approved, Reason: other.Reason, By: other.By}, a)
		again, err := DecodeApproval(a.AppendJSON(nil))
		require.NoError(t, err)
		require.Equal(t, a, again)
	})
}

func FuzzDecodeRequest(f *testing.F) {
	for i, c := range requestCases() {
		f.Add(byte(i), []byte(c.in))
	}
	rows := Stages()
	f.Fuzz(func(t *testing.T, n byte, raw []byte) {
		s := &rows[int(n)%len(rows)]
		params, err := DecodeObject(raw, 0)
		if err != nil {
			return
		}
		readByOthers(t, raw, &map[string]any{})
		r, bad := DecodeRequest(s, params)
		if bad != nil {
			require.Equal(t, CodeInvalidParams, bad.Code)
			var data struct{ Path string }
			require.NoError(t, json.Unmarshal(bad.Data, &data))
			require.NotEmpty(t, data.Path)
			return
		}
		for _, name := range s.Required {
			require.NotNil(t, r.Subject.Get(name))
		}
		// Nothing is lost or made up on the way to a hook, and bytes stay.
		encoded := r.AppendParams(nil, r.DeadlineMS)
		sent, err := DecodeObject(encoded, 0)
		require.NoError(t, err, "%s", encoded)
		for _, m := range sent {
			switch m.Name {
			case "meta", "state": // spaces between members may go
				require.True(t, SameValue(params.Get(m.Name), m.Value))
			case "call_id": // escapes may differ
				require.Equal(t, Unquote(params.Get(m.Name)), Unquote(m.Value))
			case "deadline_ms", "dry_run":
			default:
				require.Equal(t, string(params.Get(m.Name)), string(m.Value), m.Name)
			}
		}
		for _, m := range params {
			// What may be missing: null, "no" and what only hookd reads.
			require.True(t, sent.Get(m.Name) != nil || m.Value.Kind() == 'n' || isAskParam(m.Name) || m.Name == "dry_run" || string(m.Value) == `""`, m.Name)
		}
		again, bad := DecodeRequest(s, sent)
		require.Nil(t, bad)
		require.Equal(t, string(encoded), string(again.AppendParams(nil, again.DeadlineMS)))
		require.Equal(t, r.Digest(), again.Digest())
		require.True(t, s.Tool() || r.Digest() == "", "only tool calls have a digest")
	})
}

func FuzzDecodeEvent(f *testing.F) {
	for _, in := range []string{
		`{"kind":"turn_start","time":"2026-01-02T03:04:05Z","meta":{"iteration":1},"payload":{},"severity":"warn"}`,
		`{"kind":"x_a","source":"hookd","id":"1","seq":1,"missed":1,"own":null}`, `{"kind":"decision"}`, `{"kind":"Turn_start"}`,
		`{"kind":"error","time":"0000-01-01T00:00:00+14:00"}`, `{"kind":"error","time":"9999-12-31T23:59:59-12:00"}`,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		params, err := DecodeObject(raw, 0)
		if err != nil {
			return
		}
		ev, bad := DecodeEvent(params)
		if bad != nil {
			require.Equal(t, CodeInvalidParams, bad.Code)
			return
		}
		require.Equal(t, "agent", ev.Source)
		require.Empty(t, ev.ID)
		require.NotContains(t, HookdEvents(), ev.Kind)
		encoded := ev.AppendJSON(nil, 1, 2)
		sent, err := DecodeObject(encoded, 0)
		require.NoError(t, err, "%s", encoded)
		require.Equal(t, `"agent"`, string(sent.Get("source")))
		require.Equal(t, "1 2", string(sent.Get("seq"))+" "+string(sent.Get("missed")))
		again, bad := DecodeEvent(sent)
		require.Nil(t, bad)
		require.True(t, ev.Time.Equal(again.Time))
		require.Equal(t, time.UTC, again.Time.Location())
		require.Equal(t, string(encoded), string(again.AppendJSON(nil, 1, 2)))
	})
}

func FuzzDecodeHello(f *testing.F) {
	for _, in := range []string{
		`{"name":"a","version":1,"client":{"name":"c"},"deadline_ms":5000,"events":true}`, `{"name":"a","version":99}`, `{"name":"a","deadline_ms":-1}`,
		`{"ok":false,"reason":"no"}`, `{"ok":true,"version":1,"stages":["stop"],"max_in_flight":4,"key_strategies":{"k":"merge_map"}}`, `null`, `{"stages":["output"]}`,
	} {
		f.Add([]byte(in))
	}
	offer := []Stage{StageBeforeTool, StageStop}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if w, err := DecodeHookWelcome(raw, offer); err == nil {
			for _, s := range w.Stages {
				require.Contains(t, offer, s)
			}
			require.True(t, w.MaxInFlight >= 0 && w.MaxInFlight <= 1024)
			for _, k := range w.KeyStrategies {
				require.Contains(t, []KeyStrategy{LastWins, MergeList, MergeMap}, k)
			}
			if strings.TrimSpace(string(raw)) != "" {
				readByOthers(t, raw, &map[string]any{})
			}
		}
		params, err := DecodeObject(raw, 0)
		if err != nil {
			return
		}
		h, bad := DecodeAgentHello(params)
		if bad != nil {
			require.Contains(t, []int{CodeInvalidParams, CodeVersionMismatch}, bad.Code)
			return
		}
		require.NotEmpty(t, h.Name)
		require.Equal(t, Version, h.Version)
		for _, ms := range []int64{h.DeadlineMS, h.ApprovalDeadlineMS} {
			require.GreaterOrEqual(t, time.Duration(ms)*time.Millisecond, time.Duration(0))
		}
	})
}

func FuzzParseSubscription(f *testing.F) {
	for _, text := range []string{"", "*", "all", "tool_*", "x_*", "x_a.b", "agent.turn.end", "agent.tool.*", "gateway.start", "mcp.", "t?rn_end", "turn_strat", "[", `\*`} {
		f.Add(text, "turn_end")
	}
	f.Fuzz(func(t *testing.T, text, kind string) {
		s, err := ParseSubscription(text)
		if err != nil {
			require.Equal(t, Subscription{}, s)
			require.Less(t, len(err.Error()), 500)
			return
		}
		if pattern := s.String(); !strings.ContainsAny(pattern, "*?") {
			require.True(t, s.Matches(EventKind(pattern)))
			require.Equal(t, pattern == kind, s.Matches(EventKind(kind)))
		} else if again, err := ParseSubscription(pattern); err == nil {
			require.Equal(t, s, again)
		}
	})
}
