package messages

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	testify "github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/conversation"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// known are messages by a letter each.
var known = map[string]string{
	"S": `{"role":"system","content":"be good"}`,
	"D": `{"role":"developer","content":"be brief"}`,
	"u": `{"role":"user","content":"first question"}`,
	"v": `{"role":"user","content":[{"type":"text","text":"second secret question"}]}`,
	"a": `{"role":"assistant","content":"an answer"}`,
	"c": `{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"find","arguments":"{\"q\":\"x\"}"}}]}`,
	"r": `{"role":"tool","tool_call_id":"1","content":"found a secret"}`,
	"l": `{"role":"user","content":"` + strings.Repeat(" word", 500) + `"}`,
}

func list(letters string) string {
	var parts []string
	for _, l := range letters {
		parts = append(parts, known[string(l)])
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// letters turns messages back.
func letters(t testing.TB, messages jsontext.Value) (s string) {
	for _, m := range conversation.Read(messages) {
		for l, raw := range known {
			if raw == string(m.Raw) {
				s += l
			}
		}
	}
	testify.Equal(t, list(s), string(messages), "messages keep their bytes")
	return s
}

func ask(t testing.TB, m *Messages, messages string) protocol.Decision {
	obj, err := protocol.DecodeObject([]byte(`{"messages":`+messages+`}`), 0)
	testify.NoError(t, err)
	stage := protocol.NewStageTable().Stage(protocol.StageBeforeLLM)
	req, bad := protocol.DecodeRequest(stage, obj)
	testify.Nil(t, bad)
	d, err := m.Intercept(context.Background(), req)
	testify.NoError(t, err)
	testify.NoError(t, d.Check(stage))
	return d
}

func TestMessages(t *testing.T) {
	for name, c := range map[string]struct {
		rules, in, out, reason string // out "=" is no change, "!" a deny
		warns                  bool
	}{
		"drop a role":              {rules: `{"action":"drop","roles":["user"]}`, in: "Suava", out: "Saa", reason: "messages: 2 dropped"},
		"drop a text":              {rules: `{"action":"drop","content":"second"}`, in: "Suava", out: "Suaa", reason: "messages: 1 dropped"},
		"drop a text of a role":    {rules: `{"action":"drop","roles":["assistant"],"content":"e"}`, in: "Sua", out: "Su", reason: "messages: 1 dropped"},
		"drop a pattern":           {rules: `{"action":"drop","content":"/^(first|an) /"}`, in: "Suav", out: "Sv", reason: "messages: 2 dropped"},
		"drop a result":            {rules: `{"action":"drop","roles":["tool"]}`, in: "Sucrv", out: "Suv", reason: "messages: 2 dropped"},
		"drop by an argument":      {rules: `{"action":"drop","roles":["assistant"],"content":"/^x$/"}`, in: "Sucrv", out: "=", reason: ""},
		"drop by a call":           {rules: `{"action":"drop","roles":["assistant"],"content":"find"}`, in: "Sucrv", out: "Suv", reason: "messages: 2 dropped"},
		"drop all":                 {rules: `{"action":"drop","roles":["user","assistant"]}`, in: "Sua", out: "!", reason: "the rules over messages would leave none: 2 dropped"},
		"nothing to drop":          {rules: `{"action":"drop","roles":["critic"]}`, in: "Sua", out: "="},
		"cap":                      {rules: `{"action":"cap","messages":3}`, in: "Suavav", out: "Sav", reason: "messages: 3 of the oldest left out"},
		"cap is enough":            {rules: `{"action":"cap","messages":3}`, in: "Sua", out: "="},
		"cap keeps calls":          {rules: `{"action":"cap","messages":3}`, in: "uacrav", out: "av", reason: "messages: 4 of the oldest left out"},
		"cap keeps the user":       {rules: `{"action":"cap","messages":3}`, in: "Suacra", out: "Sua", reason: "messages: 3 of the oldest left out"},
		"cap keeps system":         {rules: `{"action":"cap","messages":2}`, in: "uSaDv", out: "SDv", reason: "messages: 2 of the oldest left out", warns: true},
		"cap keeps the last group": {rules: `{"action":"cap","messages":1}`, in: "ucr", out: "=", warns: true},
		"cap by tokens":            {rules: `{"action":"cap","tokens":100}`, in: "Slau", out: "Sau", reason: "messages: 1 of the oldest left out"},
		"cap by few tokens":        {rules: `{"action":"cap","tokens":100}`, in: "Sal", out: "Sl", reason: "messages: 1 of the oldest left out", warns: true},
		"tokens are few":           {rules: `{"action":"cap","tokens":10000}`, in: "Slall", out: "="},
		"reorder":                  {rules: `{"action":"reorder"}`, in: "uSaDv", out: "SDuav", reason: "messages: system messages put first"},
		"in order":                 {rules: `{"action":"reorder"}`, in: "SDua", out: "="},
		"require":                  {rules: `{"action":"require","roles":["system"],"content":"good"}`, in: "Su", out: "="},
		"required is missing":      {rules: `{"action":"require","roles":["system"],"content":"good"}`, in: "Du", out: "!", reason: "no message is as rule 1 over messages wants one"},
		"with a reason":            {rules: `{"action":"require","content":"/good$/","reason":"be good"}`, in: "u", out: "!", reason: "be good"},
		"one after the other":      {rules: `{"action":"reorder"},{"action":"drop","content":"secret"},{"action":"cap","messages":2},{"action":"require","roles":["user"]}`, in: "uaScrvu", out: "Su", reason: "messages: system messages put first, 3 dropped, 2 of the oldest left out"},
		"dropped, then required":   {rules: `{"action":"drop","roles":["user"]},{"action":"require","roles":["user"]}`, in: "Sua", out: "!", reason: "no message is as rule 2 over messages wants one"},
		"no messages":              {rules: `{"action":"cap","messages":1},{"action":"reorder"},{"action":"drop","roles":["x"]}`, in: "", out: "="},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(jsontext.Value(`{"rules":[`+c.rules+`]}`), zap.NewNop())
			testify.NoError(t, err)
			d := ask(t, m, list(c.in))
			out := "="
			switch {
			case d.Action == protocol.ActionDeny:
				out = "!"
			case d.Action == protocol.ActionModify:
				o, err := protocol.ParseObject(d.Subject)
				testify.NoError(t, err)
				out = letters(t, o.Get("messages"))
			}
			testify.Equal(t, c.out, out)
			testify.Equal(t, c.reason, d.Reason)
			testify.Equal(t, c.warns, len(d.Warnings) > 0, d.Warnings)
		})
	}
}

// TestOdd wants messages of no known form to pass.
func TestOdd(t *testing.T) {
	m, err := New(jsontext.Value(`{"rules":[{"action":"drop","roles":["x"]},{"action":"reorder"},{"action":"drop","content":"z"},{"action":"cap","tokens":1}]}`), zap.NewNop())
	testify.NoError(t, err)
	testify.Empty(t, ask(t, m, `[]`))
	d := ask(t, m, `[1,null,"y",[],{}]`)
	testify.Equal(t, `{"messages":[{}]}`, string(d.Subject))
}

func TestConcurrently(t *testing.T) {
	m, err := New(jsontext.Value(`{"rules":[{"action":"cap","tokens":100}]}`), zap.NewNop())
	testify.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if ask(t, m, list("Slau")).Action != protocol.ActionModify {
					t.Error("not capped")
				}
			}
		})
	}
	wg.Wait()
}

func TestRoles(t *testing.T) {
	m, err := New(nil, zap.NewNop())
	testify.NoError(t, err)
	roles, err := hook.RolesOf(m)
	testify.NoError(t, err)
	testify.Equal(t, []protocol.Stage{protocol.StageBeforeLLM}, roles.Stages)
	testify.Equal(t, protocol.Decision{}, ask(t, m, list("ua")))
}
