package condition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// seeds are texts of conditions.
var seeds = []string{
	`command contains 'rm -rf /'`, `any(shell.commands, .name == 'rm' && .flag('r'))`, `shell.unresolved`, "command matches `a+`", `args.x?.y == 1 ? true : false`,
	`Bash(git *)`, `Edit(~/src/**)`, `WebFetch(domain:*.x)`, `mcp__a__*`, `Agent(x)`, `tool in ['Bash', 'Edit']`, `let x = command; x + 'y' == path`,
	`all(1..9, all(1..9, # > 0))`, `len(filter(keys(args), # startsWith 'a')) > 0`, `[args.x] | map(# + #) | first() == 1`, `Bash(`, `(`, `'`, `-`, "a\nb ==",
	`"\u00e4" == message && not (stage in ["stop"])`, `args.x[1:2] == nil`, `if true { true } else { false }`, `{"a": 1}.a == 1`,
}

// FuzzCompile reads any text as a condition. An error has a place in the text,
// and what was read can be asked.
func FuzzCompile(f *testing.F) {
	for _, text := range seeds {
		f.Add(text)
	}
	req := shellCall(f, "cd /x && sudo rm -rf \"$Y\" > out")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Compile(text)
		if err != nil {
			var typed *Error
			require.ErrorAs(t, err, &typed)
			require.Positive(t, typed.Line)
			require.Positive(t, typed.Column)
			require.NotEmpty(t, typed.Message)
			return
		}
		require.Equal(t, text, c.String())
		begin := time.Now()
		e := c.Explain(req)
		require.Less(t, time.Since(begin), 20*time.Second, "judging must end")
		require.True(t, e.Err == nil || e.Holds, "what fails holds")
	})
}

// FuzzHolds asks conditions about any arguments.
func FuzzHolds(f *testing.F) {
	for _, arguments := range []string{
		`{"command":"ls"}`, `{"command":["bash","-lc","rm x"]}`, `{"file_path":"../../x","edits":[{"a":1}]}`, `{"url":"https://x\\y"}`, `{"x":12345678901234567890}`,
		`{"input":"*** Begin Patch\n*** Add File: a\n"}`, `{"command":"$(","x":{"y":[null,true,1e999]}}`,
	} {
		for _, tool := range []string{"Bash", "Edit", "WebFetch", "mcp__a__b", "apply_patch", "Task", "pwsh"} {
			f.Add(tool, arguments, "/repo")
		}
	}
	var list []*Condition
	for _, text := range seeds {
		if c, err := Compile(text); err == nil {
			list = append(list, c)
		}
	}
	f.Fuzz(func(t *testing.T, tool, arguments, cwd string) {
		if protocol.CheckValue([]byte(arguments), 0) != nil {
			t.Skip()
		}
		req := &protocol.Request{Meta: protocol.Object{{Name: "cwd", Value: protocol.Quote(cwd)}}}
		req.Subject = protocol.Object{{Name: "tool", Value: protocol.Quote(tool)}, {Name: "arguments", Value: []byte(arguments)}}
		for _, c := range list {
			e := c.Explain(req)
			require.True(t, e.Err == nil || e.Holds, "what fails holds")
			if e.Err == nil {
				require.Equal(t, e.Holds, c.Holds(req), "the same answer each time")
			}
		}
	})
}
