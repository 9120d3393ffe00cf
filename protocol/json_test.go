package protocol

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// nested returns an object of this depth.
func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + `{}` + strings.Repeat(`}`, depth-1)
}

func TestDecodeObject(t *testing.T) {
	long := strings.Repeat("n", 1<<20)
	for name, c := range map[string]struct {
		in  string
		err string // "" = accepted
	}{
		"empty":                    {`{}`, ""},
		"white space around":       {" \t\r\n{ \"a\" : 1 }\r\n", ""},
		"escapes":                  {`{"é":"\ud83d\ude00\u0000\/"}`, ""},
		"huge number":              {`{"a":1e400}`, ""},
		"no input":                 {``, "ends too early"},
		"only white space":         {" \n", "ends too early"},
		"cut in the middle":        {`{"a":[1,`, "ends too early"},
		"null":                     {`null`, "expected an object, got null"},
		"array":                    {`[{}]`, "expected an object, got an array"},
		"string":                   {`"{}"`, "expected an object, got a string"},
		"number":                   {`-1`, "expected an object, got a number"},
		"boolean":                  {`true`, "expected an object, got a boolean"},
		"trailing comma":           {`{"a":1,}`, "invalid character"},
		"comment":                  {`{/**/}`, "invalid character"},
		"single quotes":            {`{'a':1}`, "invalid character"},
		"unquoted name":            {`{a:1}`, "invalid character"},
		"NaN":                      {`{"a":NaN}`, "invalid character"},
		"leading zero":             {`{"a":01}`, "invalid character"},
		"plus sign":                {`{"a":+1}`, "invalid character"},
		"byte order mark":          {"\ufeff{}", "invalid character"},
		"NUL":                      {"\x00{}", "invalid character"},
		"no-break space":           {"\u00a0{}", "invalid character"},
		"raw control character":    {"{\"a\":\"\x01\"}", "invalid character"},
		"raw newline":              {"{\"a\":\"\n\"}", "invalid character"},
		"two values":               {`{}{}`, "more data"},
		"trailing word":            {`{} x`, "more data"},
		"trailing NUL":             {"{}\x00", "more data"},
		"invalid UTF-8":            {"{\"a\":\"\xff\"}", "invalid UTF-8"},
		"invalid UTF-8 in a name":  {"{\"\xc0\xaf\":1}", "invalid UTF-8"},
		"surrogate half in UTF-8":  {"{\"a\":\"\xed\xa0\x80\"}", "invalid UTF-8"},
		"lone high surrogate":      {`{"a":"\ud800"}`, "surrogate"},
		"lone low surrogate":       {`{"a":"\udc00x"}`, "surrogate"},
		"swapped surrogates":       {`{"a":"\udc00\ud800"}`, "surrogate"},
		"duplicate":                {`{"a":1,"a":1}`, "duplicate name"},
		"duplicate by escape":      {`{"a":1,"\u0061":1}`, "duplicate name"},
		"duplicate deep down":      {`{"a":[{"b":{"c":1,"c":2}}]}`, `duplicate name at "/a/0/b/c"`},
		"same name in other place": {`{"a":{"a":[{"a":1},{"a":2}]},"A":1}`, ""},
		"depth 128":                {nested(128), ""},
		"depth 129":                {nested(129), "nested too deeply: more than 128 levels"},
		"depth 129 of arrays":      {`{"a":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`, "nested too deeply"},
		"brackets in strings":      {`{"a":"` + strings.Repeat("[{", 1000) + `\"[\\"}`, ""},
		"wide, not deep":           {`{"a":[` + strings.Repeat("[],", 1000) + `[]]}`, ""},
		"five million levels":      {strings.Repeat("[", 5_000_000), "nested too deeply"},
		"five million closed":      {strings.Repeat("]", 5_000_000), "invalid character"},
		"long duplicate":           {`{"` + long + `":1,"` + long + `":2}`, "duplicate name"},
	} {
		t.Run(name, func(t *testing.T) {
			before := strings.Clone(c.in)
			obj, err := DecodeObject([]byte(c.in), 0)
			require.Equal(t, before, c.in, "the input is left as it was")
			if c.err == "" {
				require.NoError(t, err)
				require.NoError(t, CheckValue([]byte(c.in), 0))
				return
			}
			require.ErrorContains(t, err, c.err)
			require.Nil(t, obj)
			require.Equal(t, strings.HasPrefix(c.err, "duplicate"), errors.Is(err, ErrDuplicateName))
			require.Equal(t, strings.HasPrefix(c.err, "nested"), errors.Is(err, ErrDepth))
			require.Less(t, len(err.Error()), 300, "an error is one line for a person, however long the input")
			require.True(t, utf8.ValidString(err.Error()))
			if !strings.HasPrefix(c.err, "expected an object") {
				require.Error(t, CheckValue([]byte(c.in), 0))
			}
		})
	}
}

func TestDecodeObjectKeepsBytes(t *testing.T) {
	line := []byte(`{ "n" : 9007199254740993 , "f":1.0,"e":1e400,"s":"a\u0062<&>","o": { "z":1 , "a":2 },"\u006e2":-0}`)
	obj, err := DecodeObject(line, 0)
	require.NoError(t, err)
	require.Equal(t, `{"n":9007199254740993,"f":1.0,"e":1e400,"s":"a\u0062<&>","o":{ "z":1 , "a":2 },"n2":-0}`, string(obj.AppendJSON(nil)))
	require.Nil(t, obj.Get("missing"))
	for _, m := range obj {
		require.Equal(t, len(m.Value), cap(m.Value), "appending to a value must not write into the line")
	}
	require.Same(t, &line[8], &obj[0].Value[0], "values share the memory of the line")

	changed := obj.With("f", jsontext.Value("2")).With("new", jsontext.Value("3"))
	require.Equal(t, "2", string(changed.Get("f")))
	require.Equal(t, "f", changed[1].Name, "at its old place")
	require.Equal(t, "new", changed[len(changed)-1].Name)
	require.Equal(t, "1.0", string(obj.Get("f")), "the original is left as it is")
}

func TestCheckDepth(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		ok    bool
	}{
		{`[[[]]]`, 3, true},
		{`[[[]]]`, 2, false},
		{`{"a":{"b":[]}}`, 3, true},
		{`[][][][]`, 1, true},
		{`["[[[[", "\"[[", "\\", {}]`, 2, true},
		{`["\\\"[[[["]`, 1, true},
		{`["\\", [ [] ]]`, 2, false},
		{`[[["unterminated [[[[`, 3, true},
		{`]]]][[`, 1, true}, // no JSON: the parser stops at the first byte
	} {
		err := CheckDepth([]byte(c.in), c.limit)
		require.Equal(t, c.ok, err == nil, "%s with limit %d: %v", c.in, c.limit, err)
		require.Equal(t, !c.ok, errors.Is(err, ErrDepth))
	}
	deep := []byte(strings.Repeat(`{"a":[`, 2_500_000))
	require.Zero(t, testing.AllocsPerRun(1, func() { _ = CheckDepth(deep, len(deep)) }), "five million levels cost no memory")
}

func TestSameValue(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`1`, `1`, true},
		{`1`, `1.0`, false},
		{`1e2`, `100`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`1`, `"1"`, false},
		{`true`, `false`, false},
		{`null`, `null`, true},
		{`null`, `0`, false},
		{`"a"`, `"\u0061"`, true},
		{`"\/"`, `"/"`, true},
		{`"a"`, `"A"`, false},
		{`[1,2]`, `[ 1 , 2 ]`, true},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[1,1]`, false},
		{`{"a":1,"b":[{}]}`, `{ "b":[ {} ],"\u0061":1 }`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1,"b":2}`, `{"a":1,"c":2}`, false},
		{`{"a":null}`, `{"b":null}`, false},
		{`{"a":null}`, `{}`, false},
	} {
		require.Equal(t, c.same, SameValue(jsontext.Value(c.a), jsontext.Value(c.b)), "%s and %s", c.a, c.b)
		require.Equal(t, c.same, SameValue(jsontext.Value(c.b), jsontext.Value(c.a)), "%s and %s", c.b, c.a)
	}
	require.False(t, SameValue(nil, jsontext.Value("null")), "a member that is not there is not null")
	require.True(t, SameValue(nil, nil))
}

// Many members in the other order must not take quadratic time: the
// test would run for minutes.
func TestSameValueWide(t *testing.T) {
	var members []string
	for i := range 200_000 {
		members = append(members, fmt.Sprintf(`"m%d":0`, i))
	}
	a := "{" + strings.Join(members, ",") + "}"
	slices.Reverse(members)
	b := "{" + strings.Join(members, ",") + "}"
	require.True(t, SameValue(jsontext.Value(a), jsontext.Value(b)))
}

func TestAppendString(t *testing.T) {
	require.Equal(t, `"a\"\\\n<é>`+"\u2028"+`\u0000"`, string(AppendString(nil, "a\"\\\n<é>\u2028\x00")))
	require.Equal(t, "\"a\ufffdb\"", string(AppendString(nil, "a\xffb")), "what is no UTF-8 is replaced")
	require.Equal(t, `x"y"`, string(AppendString([]byte("x"), "y")))
	for _, s := range []string{"", "a", `\`, `"`, "é\U0001f600"} {
		require.Equal(t, s, Unquote(Quote(s)))
	}
}

func TestDidYouMean(t *testing.T) {
	words := []string{"continue", "deny", "abort_turn"}
	for word, want := range map[string]string{
		"Deny": "deny", "denny": "deny", "abortTurn": "abort_turn", "contine": "continue",
		"explode": "", "": "", strings.Repeat("deny", 20): "",
	} {
		got := DidYouMean(word, words)
		if want != "" {
			want = fmt.Sprintf(" (did you mean %q?)", want)
		}
		require.Equal(t, want, got, word)
	}
	// A peer's word of a mebibyte costs next to nothing.
	long := strings.Repeat("x", 1<<20)
	require.Zero(t, testing.AllocsPerRun(1, func() { DidYouMean(long, words) }))
}

func TestErrors(t *testing.T) {
	err := InvalidParams("meta.iteration", "expected %s", "an integer")
	require.Equal(t, "meta.iteration: expected an integer (-32602)", err.Error())
	require.JSONEq(t, `{"path":"meta.iteration"}`, string(err.Data))
	require.Nil(t, InvalidParams("", "no object").Data)
	wrapped := fmt.Errorf("call: %w", Errorf(CodeCancelled, "cancelled"))
	require.ErrorIs(t, wrapped, &Error{Code: CodeCancelled})
	require.NotErrorIs(t, wrapped, &Error{Code: CodeInternal})
}

func TestLimitsWithDefaults(t *testing.T) {
	require.Equal(t, Limits{MaxMessageBytes: 16 << 20, MaxDepth: 128, MaxConnections: 1024, MaxInFlight: 64, MaxBytesInFlight: 256 << 20}, Limits{}.WithDefaults())
	set := Limits{1, 2, 3, 4, 5}
	require.Equal(t, set, set.WithDefaults())
}
