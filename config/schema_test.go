package config

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"

	"github.com/hookd/hookd/protocol"
)

const schemaPath = "config.schema.json"

type object = map[string]any

// schemaWriter turns the types of file.go, their tags and their comments into a
// JSON Schema.
type schemaWriter struct {
	t    *testing.T
	docs map[string]string // "type.Field" → comment
	defs object
}

// TestSchemaIsFresh fails when file.go says something else than the schema.
func TestSchemaIsFresh(t *testing.T) {
	w := &schemaWriter{t: t, docs: comments(t, "file.go"), defs: object{}}
	root := w.object(reflect.TypeFor[file]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "hookd config"
	root["description"] = "The file that tells hookd which hooks to run and how. Comments and trailing commas are allowed."
	root["$defs"] = w.defs
	text, err := json.Marshal(root, json.Deterministic(true), jsontext.WithIndent("  "))
	require.NoError(t, err)
	golden(t, schemaPath, string(text)+"\n")
	golden(t, "../config.schema.json", string(text)+"\n") // a copy, beside the example that names it
}

func (w *schemaWriter) object(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name := f.Tag.Get("json")
		if name == "" {
			continue
		}
		owner := t
		for _, i := range f.Index[:len(f.Index)-1] {
			owner = owner.Field(i).Type
		}
		s := w.value(f.Type, f.Tag)
		s["description"] = w.docs[owner.Name()+"."+f.Name]
		require.NotEmpty(w.t, s["description"], "%s.%s needs a comment", owner.Name(), f.Name)
		if text, ok := f.Tag.Lookup("default"); ok {
			s["default"] = scalar(w.t, f.Type, text)
		}
		if f.Tag.Get("required") != "" {
			required = append(required, name)
		}
		properties[name] = s
	}
	s := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func (w *schemaWriter) value(t reflect.Type, tag reflect.StructTag) object {
	switch t {
	case reflect.TypeFor[jsontext.Value]():
		return object{}
	case reflect.TypeFor[pins]():
		hex := object{"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"}
		return object{"anyOf": []any{hex, object{"type": "object", "minProperties": 1, "additionalProperties": hex}}}
	case reflect.TypeFor[builtin](), reflect.TypeFor[process]():
		w.defs[t.Name()] = w.entry(t)
		return object{"$ref": "#/$defs/" + t.Name()}
	case reflect.TypeFor[eventPattern]():
		return object{"anyOf": []any{
			object{"enum": slices.Concat([]string{"*", "all", ""}, kinds(protocol.AgentEvents()), kinds(protocol.HookdEvents()))},
			object{"type": "string", "pattern": `[*?]|^x_|^(agent|channel|bus|gateway|mcp)\.`},
		}}
	case reflect.TypeFor[stageName]():
		return object{"enum": protocol.StageNames()}
	case reflect.TypeFor[pattern]():
		return object{"type": "string", "minLength": 1}
	case reflect.TypeFor[hookName]():
		return object{"type": "string", "pattern": `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`}
	case reflect.TypeFor[envName]():
		return object{"type": "string", "pattern": `^[^=\x00]+$`}
	case reflect.TypeFor[octal]():
		return object{"type": "string", "pattern": `^0*[0-7]{3}$`}
	case reflect.TypeFor[filePath]():
		return object{"type": "string", "pattern": `^([^~\x00][^\x00]*)?$`}
	case reflect.TypeFor[text]():
		return object{"type": "string", "pattern": `^[^\x00]*$`}
	}
	switch t.Kind() {
	case reflect.Pointer:
		s := w.value(t.Elem(), tag)
		if tag.Get("nullable") != "" {
			s["type"] = []any{s["type"], "null"}
		}
		return s
	case reflect.Struct:
		return w.object(t)
	case reflect.Map:
		s := object{"type": "object", "additionalProperties": w.value(t.Elem(), tag)}
		if names := w.value(t.Key(), ""); names["pattern"] != nil {
			s["propertyNames"] = names
		}
		return s
	case reflect.Slice:
		s := object{"type": "array", "items": w.value(t.Elem(), tag)}
		if tag.Get("required") != "" {
			s["minItems"] = 1
		}
		return s
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		if list := tag.Get("enum"); list != "" {
			return object{"enum": strings.Split(list, ",")}
		}
		return object{"type": "string"}
	default:
		return object{"type": "integer", "minimum": scalar(w.t, t, tag.Get("min")), "maximum": scalar(w.t, t, tag.Get("max"))}
	}
}

// entry adds to an entry's object what depends on several keys.
func (w *schemaWriter) entry(t reflect.Type) object {
	s := w.object(t)
	s["if"] = object{"required": []string{"required"}, "properties": object{"required": object{"const": true}}}
	s["then"] = object{"properties": object{"mode": object{"const": "enforce"}}}
	if t == reflect.TypeFor[builtin]() {
		few := object{"properties": object{"timeout_ms": object{"maximum": 600_000}}}
		s["dependentSchemas"] = object{"intercept": few}
	}
	if t == reflect.TypeFor[process]() {
		some := func(key string) object {
			return object{"required": []string{key}, "properties": object{key: object{"minItems": 1}}}
		}
		s["anyOf"] = []any{some("observe"), some("intercept")}
	}
	return s
}

func kinds(list []protocol.EventKind) (names []string) {
	for _, k := range list {
		names = append(names, string(k))
	}
	return names
}

func scalar(t *testing.T, typ reflect.Type, text string) any {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Slice:
		list := []any{}
		for item := range strings.SplitSeq(text, ",") {
			if item != "" {
				list = append(list, item)
			}
		}
		return list
	case reflect.String:
		return text
	case reflect.Bool:
		return text == "true"
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

// comments returns the comments on the fields of the structs in a Go file.
func comments(t *testing.T, path string) map[string]string {
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	require.NoError(t, err)
	docs := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, name := range f.Names {
					docs[spec.Name.Name+"."+name.Name] = strings.TrimSpace(strings.ReplaceAll(f.Doc.Text(), "\n", " "))
				}
			}
		}
		return true
	})
	return docs
}

// committed returns the schema as an editor has it.
func committed(t *testing.T) *jsonschema.Schema {
	schema, err := jsonschema.NewCompiler().Compile(schemaPath)
	require.NoError(t, err)
	return schema
}

// validate judges a file. It returns false for one that is not even JSON.
func validate(t *testing.T, schema *jsonschema.Schema, path string) (err error, isJSON bool) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if data, err = hujson.Standardize(append(data, '\n')); err != nil {
		return nil, false
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, false
	}
	return schema.Validate(v), true
}

// What hookd loads, an editor does not complain about.
func TestSchemaAcceptsGoodFiles(t *testing.T) {
	schema := committed(t)
	for _, path := range append(files(t, "testdata/good/*.json"), "../config.example.json") {
		err, isJSON := validate(t, schema, path)
		require.True(t, isJSON, path)
		require.NoError(t, err, path)
	}
}

// What hookd refuses, an editor shows, but for what no schema can say.
func TestSchemaRefusesBadFiles(t *testing.T) {
	beyond := []string{
		"builtin-config", "builtin-config-missing", "builtin-unknown", "duplicate-key-entry", "duplicate-key-env",
		"duplicate-key-escaped", "duplicate-key-in-config", "duplicate-key-top", "duplicate-name-across", "http-not-loopback", "http-port", "layers-project", "duplicate-process", "invalid-utf8",
		"key-strategies-differ", "limits-together", "lone-surrogate", "socket-path-long", "socket-same-path", "timeout-exponent", "too-deep",
	}
	schema := committed(t)
	var accepted []string
	for _, path := range files(t, "testdata/bad/*.json") {
		if err, isJSON := validate(t, schema, path); isJSON && err == nil {
			accepted = append(accepted, strings.TrimSuffix(filepath.Base(path), ".json"))
		}
	}
	require.ElementsMatch(t, beyond, accepted)
}
