package protocol

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// Every reference of the OpenRPC document leads somewhere.
func TestOpenRPC(t *testing.T) {
	doc := OpenRPC()
	golden(t, "../schema/openrpc.json", doc)
	var methods struct {
		Methods []struct {
			Name string `json:"name"`
		} `json:"methods"`
	}
	require.NoError(t, Unmarshal(doc, &methods))
	require.Len(t, methods.Methods, len(Stages())+3)
	refs := regexp.MustCompile(`"\$ref": "https://hookd.dev/schema/(\w+).schema.json#([^"]+)"`).FindAllSubmatch(doc, -1)
	require.NotEmpty(t, refs)
	for _, ref := range refs {
		v := parse(t, schemas()[string(ref[1])])
		for step := range strings.SplitSeq(string(ref[2][1:]), "/") {
			in, ok := v.(map[string]any)
			require.True(t, ok && in[step] != nil, "%s", ref[0])
			v = in[step]
		}
	}
}

func schemas() map[string][]byte {
	return map[string][]byte{"request": RequestSchema(), "answer": AnswerSchema(), "result": ResultSchema()}
}

func TestSchemasAreFresh(t *testing.T) {
	for name, got := range schemas() {
		golden(t, "../schema/"+name+".schema.json", got)
	}
}

func parse(t testing.TB, raw []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err)
	return v
}

// compile returns the compiled schema of every stage. When it is given, change
// may alter the schema before.
func compile(t testing.TB, name string, change func(doc any)) map[Stage]*jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	doc := parse(t, schemas()[name])
	if change != nil {
		change(doc)
	}
	url := "https://hookd.dev/schema/" + name + ".schema.json"
	require.NoError(t, c.AddResource(url, doc))
	_, err := c.Compile(url) // against the draft itself, too
	require.NoError(t, err)
	stages := map[Stage]*jsonschema.Schema{}
	for _, s := range StageNames() {
		stages[Stage(s)], err = c.Compile(url + "#/$defs/" + s)
		require.NoError(t, err)
	}
	return stages
}

// accepts reports whether text is JSON that the schema takes.
func accepts(s *jsonschema.Schema, text string) bool {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	return err == nil && s.Validate(v) == nil
}

// A validator with the schema and hookd's decoder say the same about every
// answer at every stage.
func TestAnswerSchemaAgrees(t *testing.T) {
	compiled := compile(t, "answer", nil)
	cases := answerCases()
	for _, c := range approvalCases() {
		cases = append(cases, answerCase{name: c.name, in: c.in, unseen: c.unseen})
	}
	require.Greater(t, len(cases), 60)
	for _, c := range cases {
		if own := cmp.Or(c.stage, StageBeforeTool); c.err != "" {
			require.Equal(t, c.unseen, accepts(compiled[own], c.in), "%s: a schema sees it or not", c.name)
		}
		for _, s := range Stages() {
			_, err := DecodeDecision(&s, []byte(c.in))
			if s.Name == StageApproveTool {
				_, err = DecodeApproval([]byte(c.in))
			}
			if seen := accepts(compiled[s.Name], c.in); seen != (err == nil) {
				require.True(t, c.unseen && seen, "%s at %s: schema %t, decoder %v\n%s", c.name, s.Name, seen, err, c.in)
			}
		}
	}
}

func TestRequestSchemaAgrees(t *testing.T) {
	compiled := compile(t, "request", nil)
	for _, c := range requestCases() {
		for _, s := range Stages() {
			_, err := DecodeRequest(&s, object(t, c.in))
			if seen := accepts(compiled[s.Name], c.in); seen != (err == nil) {
				require.True(t, c.unseen && seen, "%s at %s: schema %t, decoder %v\n%s", c.name, s.Name, seen, err, c.in)
			}
		}
	}
}

// Everything that hookd sends is in the schema, also the members of its parts.
func TestResultSchemaIsWhole(t *testing.T) {
	compiled := compile(t, "result", closeObjects)
	for _, s := range Stages() {
		full := fullResult(&s)
		for _, r := range []Result{full, {}} {
			raw := r.AppendJSON(nil, &s, true)
			require.NoError(t, compiled[s.Name].Validate(parse(t, raw)), "%s: %s", s.Name, raw)
		}
		for _, bad := range []string{`null`, `{}`, `{"generation":1}`, `{"action":"explode","generation":1}`, `{"action":1,"generation":1}`,
			`{"approved":"yes","generation":1}`, `{"action":"continue","approved":true,"degraded":{},"generation":1}`} {
			_, err := DecodeResult(&s, []byte(bad))
			require.Error(t, err, "%s at %s", bad, s.Name)
			require.False(t, accepts(compiled[s.Name], bad), "%s at %s", bad, s.Name)
		}
	}
}

// closeObjects forbids all members that a schema does not describe.
func closeObjects(doc any) {
	switch v := doc.(type) {
	case map[string]any:
		if _, ok := v["properties"]; ok {
			v["additionalProperties"] = false
		}
		for _, part := range v {
			closeObjects(part)
		}
	case []any:
		for _, part := range v {
			closeObjects(part)
		}
	}
}

// Each member says in words what it is, for the people who read it in an
// editor.
func TestSchemasDescribeMembers(t *testing.T) {
	for name, raw := range schemas() {
		for stage, def := range parse(t, raw).(map[string]any)["$defs"].(map[string]any) {
			members, _ := def.(map[string]any)["properties"].(map[string]any)
			for member, schema := range members {
				s := schema.(map[string]any)
				require.True(t, s["description"] != nil || s["$ref"] != nil, "%s: %s.%s", name, stage, member)
			}
		}
	}
}
