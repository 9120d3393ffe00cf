package install

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"
)

// What is added stands where a person would have put it, and taking it away
// again gives the same bytes.
func TestDocumentAddAndRemove(t *testing.T) {
	value := jsontext.Value(`{"list":[1,"two"],"deep":[{"x":true}],"none":{}}`)
	tests := []struct{ name, in, out string }{
		{"two blanks", "{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"new\": {\n    \"list\": [1, \"two\"],\n    \"deep\": [\n      {\n        \"x\": true\n      }\n    ],\n    \"none\": {}\n  }\n}\n"},
		{"tabs", "{\n\t\"a\": 1\n}", "{\n\t\"a\": 1,\n\t\"new\": {\n\t\t\"list\": [1, \"two\"],\n\t\t\"deep\": [\n\t\t\t{\n\t\t\t\t\"x\": true\n\t\t\t}\n\t\t],\n\t\t\"none\": {}\n\t}\n}"},
		{"one line", `{"a":1}`, `{"a":1,"new":{"list":[1,"two"],"deep":[{"x":true}],"none":{}}}`},
		{"one tidy line", `{"a": 1}`, `{"a": 1, "new": {"list": [1, "two"], "deep": [{"x": true}], "none": {}}}`},
		{"trailing comma", "{\n \"a\": 1,\n}", "{\n \"a\": 1,\n \"new\": {\n  \"list\": [1, \"two\"],\n  \"deep\": [\n   {\n    \"x\": true\n   }\n  ],\n  \"none\": {}\n },\n}"},
		{"comment behind the last", "{\n \"a\": 1 // one\n}", "{\n \"a\": 1, // one\n \"new\": {\n  \"list\": [1, \"two\"],\n  \"deep\": [\n   {\n    \"x\": true\n   }\n  ],\n  \"none\": {}\n }\n}"},
		{"comment below the last", "{\n \"a\": 1\n // end\n}", "{\n \"a\": 1,\n // end\n \"new\": {\n  \"list\": [1, \"two\"],\n  \"deep\": [\n   {\n    \"x\": true\n   }\n  ],\n  \"none\": {}\n }\n}"},
		{"comment in one line", "{\"a\":1 // one\n}", "{\"a\":1, // one\n\"new\":{\"list\":[1,\"two\"],\"deep\":[{\"x\":true}],\"none\":{}}\n}"},
		{"windows", "{\r\n  \"a\": 1\r\n}\r\n", "{\r\n  \"a\": 1,\r\n  \"new\": {\r\n    \"list\": [1, \"two\"],\r\n    \"deep\": [\r\n      {\r\n        \"x\": true\r\n      }\r\n    ],\r\n    \"none\": {}\r\n  }\r\n}\r\n"},
		{"byte order mark", "\xef\xbb\xbf{\"a\":1}", "\xef\xbb\xbf{\"a\":1,\"new\":{\"list\":[1,\"two\"],\"deep\":[{\"x\":true}],\"none\":{}}}"},
		{"empty", "{}", "{\n  \"new\": {\n    \"list\": [1, \"two\"],\n    \"deep\": [\n      {\n        \"x\": true\n      }\n    ],\n    \"none\": {}\n  }\n}"},
		{"only a comment", "{\n  // mine\n}", "{\n  // mine\n  \"new\": {\n    \"list\": [1, \"two\"],\n    \"deep\": [\n      {\n        \"x\": true\n      }\n    ],\n    \"none\": {}\n  }\n}"},
		{"digits", `{"n":1.50e+2,"big":123456789012345678901234567890}`, `{"n":1.50e+2,"big":123456789012345678901234567890,"new":{"list":[1,"two"],"deep":[{"x":true}],"none":{}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := parseDocument("f.json", []byte(tt.in))
			require.NoError(t, err)
			require.NoError(t, d.add(&d.root, "new", value))
			require.Equal(t, tt.out, string(d.bytes()))
			require.NoError(t, d.remove(&d.root, memberIndex(&d.root, "new")))
			require.Equal(t, tt.in, string(d.bytes()))
		})
	}
}

// Taking something out leaves comments where they are, and never lets one
// swallow what follows.
func TestDocumentRemove(t *testing.T) {
	tests := []struct{ name, in, out string }{
		{"first", "{\n  \"x\": 1,\n  \"b\": 2\n}", "{\n  \"b\": 2\n}"},
		{"middle", `{"a":1,"x":1,"b":2}`, `{"a":1,"b":2}`},
		{"only", "{\n  \"x\": 1\n}", "{}"},
		{"last with a comma", "{\"a\":1,\n\"x\":1,\n}", "{\"a\":1,\n}"},
		{"comments around", "{\n  // above\n  \"x\": 1, // behind\n  \"b\": 2\n}", "{\n  // above\n // behind\n  \"b\": 2\n}"},
		{"a comment that ends with its line", "{ // c\n\"x\":1,\"b\":2}", "{ // c\n\"b\":2}"},
		{"the same at the end", "{\"b\":2, // c\n\"x\":1}", "{\"b\":2 // c\n}"},
		{"the same alone", "{ // c\n\"x\":1}", "{ // c\n}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := parseDocument("f.json", []byte(tt.in))
			require.NoError(t, err)
			require.NoError(t, d.remove(&d.root, memberIndex(&d.root, "x")))
			require.Equal(t, tt.out, string(d.bytes()))
		})
	}
}

// A file that can't be read is named with its place.
func TestDocumentErrors(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"broken", "{\n  \"a\": ,\n}", "f.json:2:8: not JSON"},
		{"cut off", "{\n  \"a\": [1", "f.json:3:1: not JSON"},
		{"two values", "{} {}", "f.json:1:4: not JSON"},
		{"an array", "\n[]", "f.json:2:1: an object is expected here"},
		{"too deep", strings.Repeat(`{"a":`, 300), "f.json:1:1001: nested more than 200 levels deep"},
		{"no Unicode", "{\"a\":\"\xff\"}", "f.json:1:7: a text that is no Unicode"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseDocument("f.json", []byte(tt.in))
			require.ErrorContains(t, err, tt.want)
			require.IsType(t, &FileError{}, err)
		})
	}
	d, err := parseDocument("f.json", []byte("{\"a\":1,\n\"a\":2}"))
	require.NoError(t, err)
	_, err = d.lookup("a")
	require.EqualError(t, err, `f.json:2:1: "a" stands here a second time; keep one of them`)
}

// FuzzDocument adds a member to any object in any file, and takes it out again.
func FuzzDocument(f *testing.F) {
	for _, s := range []string{
		"{}", "{\n}", `{"a":1}`, "{\"a\":1,}", "{\"a\":1 // c\n}", "{ // c\n}", "{/*c*/}", "{\"a\":{\"b\":[1,2,], // c\n}}", "\xef\xbb\xbf{ }", "{\r\n\t\"a\" : {} \r\n}",
		"{\"a\":1, // c\n}", "{\"a\":1/**/,/**/}", "{\"hooks\":{\"A\":[{\"hooks\":[{}]}]}}", "", " ", "// c", "{}//",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := parseDocument("f.json", text)
		if err != nil {
			return
		}
		before := d.bytes()
		members := d.root.Value.(*hujson.Object).Members
		for i := range members {
			if nameOf(&members[i]) == "hookd new" {
				return
			}
		}
		meant := raw(&d.root)
		require.NoError(t, d.add(&d.root, "hookd new", jsontext.Value(`{"a":[{"b":1}]}`)), "%q", before)
		added, err := d.lookup("hookd new", "a")
		require.NoError(t, err)
		require.NotNil(t, added, "%q became %q", before, d.text)
		require.NoError(t, d.remove(&d.root, memberIndex(&d.root, "hookd new")), "%q", before)
		require.Equal(t, string(meant), string(raw(&d.root)), "%q", before)
		switch {
		case d.root.IsStandard() && len(members) > 0:
			require.Equal(t, string(before), string(d.bytes()))
		default: // blanks may differ around comments
			require.Equal(t, strings.Join(strings.Fields(string(before)), ""), strings.Join(strings.Fields(string(d.bytes())), ""))
		}
	})
}
