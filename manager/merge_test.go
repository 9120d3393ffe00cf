package manager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// A few copies that double a value each time must not fill the memory.
func TestPatchBomb(t *testing.T) {
	ops := []string{`{"op":"add","path":"/arguments/a","value":"` + strings.Repeat("x", 1000) + `"}`}
	for i := range 40 {
		ops = append(ops, fmt.Sprintf(`{"op":"copy","from":"/arguments","path":"/arguments/b%d"}`, i))
	}
	req := request(t, protocol.StageBeforeTool, aCall)
	_, _, err := applyPatch(req.Stage, req.Subject, []byte("["+strings.Join(ops, ",")+"]"))
	require.ErrorContains(t, err, "patch: ")
}

// strictParts are the two values of a fuzz input, when a wire would let them
// pass.
func strictParts(t *testing.T, a, b string, kindA, kindB jsontext.Kind) (x, y jsontext.Value) {
	x, y = jsontext.Value(a), jsontext.Value(b)
	if protocol.CheckValue(x, 0) != nil || protocol.CheckValue(y, 0) != nil || x.Kind() != kindA || y.Kind() != kindB {
		t.Skip("a wire would not let it pass")
	}
	return x, y
}

func object(t *testing.T, v jsontext.Value) protocol.Object {
	t.Helper()
	o, err := protocol.DecodeObject(v, 0)
	require.NoError(t, err, "%s", v)
	return o
}

// keepsBytes holds that members which did not change are the same bytes.
func keepsBytes(t *testing.T, before, after protocol.Object, changed func(name string) bool) {
	t.Helper()
	for _, m := range before {
		if !changed(m.Name) {
			require.Equal(t, string(m.Value), string(after.Get(m.Name)), m.Name)
		}
	}
}

// checkSubject holds what must be true of a subject after any change.
func checkSubject(t *testing.T, stage *protocol.StageInfo, before, after protocol.Object, changed []string) {
	t.Helper()
	wire := after.AppendJSON(nil)
	again := object(t, wire)
	for _, name := range stage.Required {
		require.NotNil(t, again.Get(name))
	}
	if !stage.Wrapped() {
		require.NoError(t, stage.CheckSubject("", again))
		keepsBytes(t, before, again, func(n string) bool { return slices.Contains(changed, n) })
		return
	}
	inner, was := object(t, again.Get(stage.Result)), object(t, before.Get(stage.Result))
	require.NoError(t, stage.CheckSubject("", inner))
	keepsBytes(t, was, inner, func(n string) bool { return slices.Contains(changed, n) })
}

// subjects are a flat and a wrapped subject around a fuzzed object.
func subjects(t *testing.T, v jsontext.Value) []*protocol.Request {
	var list []*protocol.Request
	for stage, params := range map[protocol.Stage]string{
		protocol.StageBeforeTool: fmt.Sprintf(`{"tool":"b\u0061sh","arguments":%s,"read_only":false}`, v),
		protocol.StageAfterTool:  fmt.Sprintf(`{"result":%s}`, v),
	} {
		obj, err := protocol.DecodeObject([]byte(params), 0)
		if err != nil {
			continue // too deep by one
		}
		if req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(stage), obj); bad == nil {
			list = append(list, req)
		}
	}
	return list
}

// FuzzApplyPatch: whatever a patch does, the subject stays strict JSON of the
// right types, and what it leaves alone keeps its bytes.
func FuzzApplyPatch(f *testing.F) {
	for _, patch := range []string{
		`[{"op":"add","path":"/arguments/x","value":{"y":[1,2.50,"\u00e9"]}}]`, `[{"op":"remove","path":"/content"}]`,
		`[{"op":"replace","path":"","value":{"tool":"x","arguments":{}}}]`, `[{"op":"move","from":"/a","path":"/arguments/b/-"}]`,
		`[{"op":"copy","from":"","path":"/b"}]`, `[{"op":"test","path":"/arguments/a","value":[null]}]`, `[{"op":"test","path":""}]`,
		`[{"op":"replace","path":"/a/+1","value":null}]`, `[{"op":"add","path":"//","value":1},{"op":"remove","path":"/"}]`, `[{"op":null}]`, `[null]`, `[]`,
		`[{"op":"add","path":"/~0~1","value":1e400}]`, `[{"op":"copy","from":"/arguments/","path":"/arguments/a/0"}]`,
	} {
		f.Add(`{"a":[null,1.0, 2],"content":"x","\u0062":{"c":9007199254740993}}`, patch)
		f.Add(`{"":{"":[]},"a":{"b":[]},"content":[{"type":"text"}]}`, patch)
	}
	f.Fuzz(func(t *testing.T, doc, patch string) {
		v, p := strictParts(t, doc, patch, '{', '[')
		for _, req := range subjects(t, v) {
			before := string(req.Subject.AppendJSON(nil))
			after, changed, err := applyPatch(req.Stage, req.Subject, p)
			require.Equal(t, before, string(req.Subject.AppendJSON(nil)), "the old subject is left alone")
			if err != nil {
				require.Nil(t, changed)
				continue
			}
			checkSubject(t, req.Stage, req.Subject, after, changed)
			if len(changed) == 0 {
				require.Equal(t, before, string(after.AppendJSON(nil)))
			}
		}
	})
}

// FuzzApply: the same for a merged change that a wire has let pass.
func FuzzApply(f *testing.F) {
	for _, change := range []string{
		`{"tool":"x"}`, `{"arguments":{"a":1}}`, `{"content":"y","new":1}`, `{"read_only":true,"tool":"bash"}`, `{"tool":"bash","arguments":{"b":1,"a":2}}`, `{}`, `{"content":null}`,
	} {
		f.Add(`{"a":2, "b":1.0}`, change)
		f.Add(`{"content":[{"type":"text","text":"\u00e9"}],"n":12345678901234567890}`, change)
	}
	f.Fuzz(func(t *testing.T, doc, change string) {
		v, c := strictParts(t, doc, change, '{', '{')
		for _, req := range subjects(t, v) {
			d := protocol.Decision{Action: protocol.ActionModify, Subject: c}
			if d.Check(req.Stage) != nil {
				continue
			}
			before := string(req.Subject.AppendJSON(nil))
			after, changed, err := req.Stage.Apply(req.Subject, c)
			require.NoError(t, err)
			require.Equal(t, before, string(req.Subject.AppendJSON(nil)), "the old subject is left alone")
			checkSubject(t, req.Stage, req.Subject, after, changed)
			given := object(t, c)
			for _, name := range changed {
				require.NotNil(t, given.Get(name), "nobody spoke of %q", name)
			}
		}
	})
}

// FuzzMergeState: merged state is strict JSON, keys that were not set keep
// their bytes, and lists and maps lose nothing.
func FuzzMergeState(f *testing.F) {
	for _, set := range []string{`{"list":[3],"map":{"x":{"z":1}},"last":1}`, `{"list":{},"map":[],"new":null}`, `{"map":{"x":7}}`, `{}`} {
		f.Add(`{"list":[1, 2.0],"map":{"x":{"y":9007199254740993}},"last":"\u00e9"}`, set)
		f.Add(`{"list":"no","map":null}`, set)
	}
	strategies := map[string]protocol.KeyStrategy{"list": protocol.MergeList, "map": protocol.MergeMap, "last": protocol.LastWins}
	f.Fuzz(func(t *testing.T, old, set string) {
		a, b := strictParts(t, old, set, '{', '{')
		state, given := object(t, a), object(t, b)
		merged := object(t, mergeState(state, given, strategies).AppendJSON(nil))
		keepsBytes(t, state, merged, func(n string) bool { return given.Get(n) != nil })
		require.Equal(t, object(t, a), state, "the old state is left alone")
		for _, m := range given {
			got, had := merged.Get(m.Name), state.Get(m.Name)
			switch {
			case m.Name == "list" && had.Kind() == '[' && m.Value.Kind() == '[':
				x, _ := protocol.Items(had)
				y, _ := protocol.Items(m.Value)
				z, err := protocol.Items(got)
				require.NoError(t, err)
				require.Equal(t, append(x, y...), z)
			case m.Name == "map" && had.Kind() == '{' && m.Value.Kind() == '{':
				whole, part := object(t, got), object(t, m.Value)
				keepsBytes(t, object(t, had), whole, func(n string) bool { return part.Get(n) != nil })
				for _, p := range part {
					require.NotNil(t, whole.Get(p.Name))
				}
			default:
				require.Equal(t, string(m.Value), string(got))
			}
		}
	})
}

// A patch may not cost as many times the subject as it has operations.
func TestPatchWithManyOperations(t *testing.T) {
	stage := protocol.NewStageTable().Stage(protocol.StageBeforeTool)
	subject := request(t, protocol.StageBeforeTool, aCall).Subject
	op := `{"op":"add","path":"/arguments/x","value":1}`
	many := func(n int) []byte { return []byte("[" + strings.Repeat(op+",", n-1) + op + "]") }
	_, changed, err := applyPatch(stage, subject, many(patchOps))
	require.NoError(t, err)
	require.Equal(t, []string{"arguments"}, changed)
	_, _, err = applyPatch(stage, subject, many(patchOps+1))
	require.ErrorContains(t, err, "1001 operations are too many")
}

// What a patch says stays out of the error: it may be payload.
func TestPatchErrorIsShort(t *testing.T) {
	stage := protocol.NewStageTable().Stage(protocol.StageBeforeTool)
	_, _, err := applyPatch(stage, request(t, protocol.StageBeforeTool, aCall).Subject, []byte(`[{"op":"`+strings.Repeat("x", 1<<20)+`","path":"/"}]`))
	require.Error(t, err)
	require.Less(t, len(err.Error()), 300)
}
