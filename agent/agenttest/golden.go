// Package agenttest holds the suite that every dialect must pass: its payloads
// and its answers to the byte, and promises that hold for all of them.
package agenttest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/protocol"
)

// Golden reads the payloads of an archive, the files EVENT.json or
// EVENT.variant.json, and compares what becomes of each, and the answer to each
// of hookd's answers, with the file of the same name that ends in .out. With
// update it writes those files anew. Every row of the table must have a payload.
func Golden(t *testing.T, d native.Dialect, archive string, update bool) {
	t.Helper()
	ar, err := txtar.ParseFile(archive)
	require.NoError(t, err)
	want := map[string]string{}
	for _, f := range ar.Files {
		want[f.Name] = string(f.Data)
	}
	out := &txtar.Archive{Comment: ar.Comment}
	seen := map[string]bool{}
	for _, f := range ar.Files {
		name, event, isPayload := payloadFile(d, f.Name)
		if !isPayload {
			continue
		}
		seen[event] = true
		t.Run(name, func(t *testing.T) {
			got := Describe(t, d, event, f.Data)
			out.Files = append(out.Files, f, txtar.File{Name: name + ".out", Data: []byte(got)})
			if !update {
				require.Equal(t, want[name+".out"], got, "%s: what became of %s (run with -update and read the difference)", archive, f.Name)
			}
		})
	}
	for _, row := range d.Rows() {
		require.True(t, seen[row.Event], "%s has no payload for %s", archive, row.Event)
	}
	if update {
		require.NoError(t, os.WriteFile(archive, txtar.Format(out), 0o644))
	}
}

// payloadFile reads a file's name in an archive. The names of events may hold
// dots themselves.
func payloadFile(d native.Dialect, file string) (name, event string, isPayload bool) {
	name, isPayload = strings.CutSuffix(file, ".json")
	event, _, _ = strings.Cut(name, ".")
	for _, row := range d.Rows() {
		if len(row.Event) > len(event) && (name == row.Event || strings.HasPrefix(name, row.Event+".")) {
			event = row.Event
		}
	}
	return name, event, isPayload
}

// EachAnswer calls check with every answer to every payload of an archive. name
// says which of hookd's answers it is.
func EachAnswer(t *testing.T, d native.Dialect, archive string, check func(event, name string, a native.Answer)) {
	t.Helper()
	ar, err := txtar.ParseFile(archive)
	require.NoError(t, err)
	for _, f := range ar.Files {
		_, event, isPayload := payloadFile(d, f.Name)
		if !isPayload {
			continue
		}
		for _, want := range unavailable() {
			check(event, "unavailable "+string(want), d.Unavailable(event, want, "it does not run", f.Data))
		}
		c, err := d.Read(event, f.Data)
		if err != nil {
			continue
		}
		for _, r := range results(t, c) {
			check(c.Row.Event, r.name, d.Write(c, r.result, native.Policy{}))
			check(c.Row.Event, r.name+", laxly", d.Write(c, r.result, native.Policy{Ask: native.FallbackSilent, Modify: native.FallbackSilent, KeepPrompt: true}))
		}
	}
}

func unavailable() []native.OnUnavailable {
	return []native.OnUnavailable{native.UnavailableDefault, native.UnavailableContinue, native.UnavailableDeny, native.UnavailableAsk}
}

// Describe writes down what a dialect makes of a payload, and how it writes
// each of hookd's answers. It fails the test where a promise is broken.
func Describe(t *testing.T, d native.Dialect, event string, payload []byte) string {
	t.Helper()
	var b strings.Builder
	c, err := d.Read(event, payload)
	if err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
	} else {
		describeCall(t, &b, c)
		nothing := d.Write(c, nil, native.Policy{})
		for _, r := range results(t, c) {
			a := d.Write(c, r.result, native.Policy{})
			if r.result != nil && r.name != "continue" && same(a, nothing) {
				require.NotEmpty(t, a.Warnings, "%s: the agent is told nothing of this, and nobody hears of it", r.name)
			}
			describeAnswer(t, &b, r.name, a)
		}
	}
	for _, want := range unavailable() {
		name := "unavailable " + string(want)
		describeAnswer(t, &b, strings.TrimSpace(name), d.Unavailable(event, want, "it does not run", payload))
	}
	return b.String()
}

// same reports whether an agent reads the same in two answers.
func same(a, b native.Answer) bool {
	return string(a.Stdout) == string(b.Stdout) && string(a.Stderr) == string(b.Stderr) && a.ExitCode == b.ExitCode
}

func describeCall(t *testing.T, b *strings.Builder, c *native.Call) {
	t.Helper()
	if c.Stage != "" {
		fmt.Fprintf(b, "stage: %s\n", c.Stage)
		req, rpcErr := protocol.DecodeRequest(stageInfo(c.Stage), wire(t, c.Params))
		require.Nil(t, rpcErr, "the params are not those of %s", c.Stage)
		require.Empty(t, req.Extra, "the params hold more than those of %s", c.Stage)
		for _, m := range c.Params {
			if m.Name == "meta" {
				m.Value = withoutPayload(t, c, m.Value)
			}
			fmt.Fprintf(b, "  %s: %s\n", m.Name, m.Value)
		}
	}
	if c.Kind != "" {
		fmt.Fprintf(b, "event: %s\n", c.Kind)
		ev, rpcErr := protocol.DecodeEvent(wire(t, c.EventParams))
		require.Nil(t, rpcErr, "the params are not those of an event")
		fmt.Fprintf(b, "  payload: %s\n", ev.Payload)
		if c.Stage == "" {
			fmt.Fprintf(b, "  meta: %s\n", withoutPayload(t, c, c.EventParams.Get("meta")))
		}
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(b, "  warning: %s\n", w)
	}
}

// wire gives params as they arrive at the daemon: on one line.
func wire(t *testing.T, params protocol.Object) protocol.Object {
	t.Helper()
	line := params.AppendJSON(nil)
	require.NotContains(t, string(line), "\n")
	arrived, err := protocol.DecodeObject(line, 0)
	require.NoError(t, err)
	return arrived
}

// withoutPayload holds that meta.native has all of the payload, and leaves it
// out of what is shown.
func withoutPayload(t *testing.T, c *native.Call, metaJSON jsontext.Value) jsontext.Value {
	t.Helper()
	meta, err := protocol.ParseObject(metaJSON)
	require.NoError(t, err)
	natively, err := protocol.ParseObject(meta.Get("native"))
	require.NoError(t, err)
	require.Equal(t, string(c.Raw), string(natively.Get("payload")))
	return meta.With("native", natively.With("payload", jsontext.Value(`{…}`)).AppendJSON(nil)).AppendJSON(nil)
}

func describeAnswer(t *testing.T, b *strings.Builder, name string, a native.Answer) {
	t.Helper()
	CheckAnswer(t, a)
	fmt.Fprintf(b, "%s: exit %d", name, a.ExitCode)
	if len(a.Stdout) > 0 {
		fmt.Fprintf(b, " %s", a.Stdout)
	}
	if len(a.Stderr) > 0 {
		fmt.Fprintf(b, " stderr %s", strconv.Quote(string(a.Stderr)))
	}
	b.WriteString("\n")
	for _, w := range a.Warnings {
		fmt.Fprintf(b, "  warning: %s\n", w)
	}
}

// CheckAnswer holds what is true of every answer: stdout is nothing or one JSON
// object on one line, unless it is text, and the exit code is one that an agent
// understands.
func CheckAnswer(t *testing.T, a native.Answer) {
	t.Helper()
	require.NotEqual(t, 1, a.ExitCode, "1 means nothing to any agent")
	if len(a.Stdout) == 0 || a.Text {
		require.NotEqual(t, a.Text, len(a.Stdout) == 0, "text of nothing")
		return
	}
	_, err := protocol.DecodeObject(a.Stdout, 0)
	require.NoError(t, err, "stdout is %s", a.Stdout)
	require.NotContains(t, string(a.Stdout), "\n")
}

func stageInfo(name protocol.Stage) *protocol.StageInfo { return protocol.NewStageTable().Stage(name) }
