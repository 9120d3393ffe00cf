package condition

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func TestExpressions(t *testing.T) {
	call := toolCall(t, "run_command", `{
		"command": "cd /x && sudo rm -rf / > out", "force": true, "big": 12345678901234567890, "int": 42, "float": 1.5, "long": 0.1234567890123456789,
		"huge": 1e400, "list": ["a", {"b": "c"}], "map": {"b": null}, "null": null
	}`)
	for text, want := range map[string]bool{
		`command contains 'rm -rf /'`:                        true,
		`command contains 'rm -fr'`:                          false,
		"command matches `rm\\s+-rf`":                        true,
		`command matches 'r[n-z]\\s'`:                        false,
		`kind == 'shell'`:                                    true,
		`kind in ['web', 'mcp']`:                             false,
		`tool == 'run_command'`:                              true,
		`tool == 'Bash'`:                                     true,
		`'Bash' == tool`:                                     true,
		`tool != 'Bash'`:                                     false,
		`tool != 'Edit'`:                                     true,
		`tool in ['Edit', 'Shell']`:                          true,
		`tool not in ['Edit', 'Write']`:                      true,
		`tool startsWith 'Bash'`:                             false,
		`tool == command`:                                    false,
		`agent == 'claude' and session == 's1'`:              true,
		`cwd + '/' == '/repo/'`:                              true,
		`model == 'm1' && stage == 'before_tool'`:            true,
		`path == '' && url == '' && server == ''`:            true,
		`message == ''`:                                      true,
		`len(paths) == 0`:                                    true,
		`args.force == true`:                                 true,
		`args.missing == true`:                               false,
		`args.missing == nil`:                                true,
		`args.null == nil`:                                   true,
		`args.map?.b?.c == nil`:                              true,
		`args.int == 42`:                                     true,
		`args.int + 1 == 43 && args.float + 1 == 2.5`:        true,
		`args.float == 1.5`:                                  true,
		`args.big == '12345678901234567890'`:                 true,
		`args.big == '12345678901234567891'`:                 false,
		`args.long == '0.1234567890123456789'`:               true,
		`args.huge == '1e400'`:                               true,
		`args.list[1].b == 'c'`:                              true,
		`'force' in args`:                                    true,
		`len(keys(args)) == 10`:                              true,
		`args['command'] == command`:                         true,
		`any(shell.commands, .name == 'rm' && .flag('r'))`:   true,
		`any(shell.commands, .name == 'rm' && .flag('i'))`:   false,
		`shell.runs('rm') && !shell.runs('git')`:             true,
		`shell.mayRun('git')`:                                false,
		`shell.unresolved`:                                   false,
		`shell.writes == ['out']`:                            true,
		`shell.error == ''`:                                  true,
		`map(shell.commands, .name) == ['cd','sudo','rm']`:   true,
		`shell.commands[2].args == ['-rf', '/']`:             true,
		`count(shell.commands, .path startsWith 's') == 1`:   true,
		`filter(shell.commands, .open) | len() == 0`:         true,
		`any(shell.commands, .mayFlag('force'))`:             true,
		`last(shell.commands).text == 'rm -rf /'`:            true,
		`let x = lower(command); x contains 'rm' && x != ''`: true,
		`command contains 'x' ? true : false`:                true,
		`any(1..3, # == 2)`:                                  true,
		`args.missing matches 'x'`:                           false,
		"// a comment\ntrue":                                 true,
	} {
		e := compile(t, text).Explain(call)
		assert.NoError(t, e.Err, text)
		assert.Equal(t, want, e.Holds, text)
		assert.Equal(t, want, compile(t, text).Holds(call), text)
	}
}

// TestFailuresHold shows that what can't be judged counts as true.
func TestFailuresHold(t *testing.T) {
	long := string(protocol.Quote(strings.Repeat("x", maxValue+1)))
	call := toolCall(t, "Bash", `{"command":`+long+`,"other":`+long+`,"n":1,"s":"x","list":[1]}`)
	for text, want := range map[string]string{
		`args.n == 2 && args.a.b == 1`:       "",
		`args.a.b == 1`:                      "column 8: cannot fetch b from <nil>",
		`args.n > 'x'`:                       "column 8: invalid operation: int > string",
		`args.s + 1 == 2`:                    "+ needs two texts or two numbers",
		`args.n matches 'x'`:                 "matches needs a text, got int",
		`args.n && true`:                     "invalid operation: bool(int)",
		`args.list[5] == 1`:                  "index out of range",
		`command contains 'y'`:               "command: a value is longer than 1 MiB",
		`args.other contains 'y'`:            "args: a value is longer than 1 MiB",
		`'other' in args && false`:           "args: a value is longer than 1 MiB",
		`args.s == 'y'`:                      "",
		`all(1..99999, all(1..99999, true))`: "memory budget exceeded",
		`len(map(1..60000, #)) > 0`:          "memory budget exceeded",
		doubling(40) + ` == ''`:              "a value is longer than 1 MiB",
		`int(args.s) == 1`:                   "invalid operation: int(x)",
	} {
		e := compile(t, text).Explain(call)
		if want == "" {
			assert.NoError(t, e.Err, text)
			assert.False(t, e.Holds, text)
			continue
		}
		assert.ErrorContains(t, e.Err, want, text)
		assert.True(t, e.Holds, text)
		assert.True(t, compile(t, text).Holds(call), text)
	}
}

// doubling makes an expression of a text that is 2^n characters long.
func doubling(n int) string {
	return strings.Repeat("map(", n) + "['x']" + strings.Repeat(", # + #)", n) + "[0]"
}

// TestTimeLimit lets a clock run that is read in each loop.
func TestTimeLimit(t *testing.T) {
	call := toolCall(t, "Bash", `{"command":"ls"}`)
	for text, want := range map[string]bool{
		`all(1..10, # > 0) && path == 'x'`:                            false,
		`all(1..90, # > 0) && path == 'x'`:                            true,
		`all(1..9, all(1..20, # > 0)) && path == 'x'`:                 true,
		`count(map(1..90, # + 1), # > 500) > 0`:                       true,
		"(command matches `x` || command matches `y`) && path == `x`": false,
	} {
		c := compile(t, text)
		var reads atomic.Int64
		c.now = func() time.Time { return time.UnixMilli(reads.Add(1)) }
		e := c.Explain(call)
		require.Equal(t, want, e.Holds, text)
		if want {
			require.ErrorContains(t, e.Err, "it takes longer than 50ms", text)
		}
	}
}

func TestPatternLimit(t *testing.T) {
	c := compile(t, `command matches '([a-z]{1,30}[0-9]){1,20}x'`)
	require.False(t, c.Holds(shellCall(t, "ls")))
	e := c.Explain(shellCall(t, strings.Repeat("a", 500_000)))
	require.True(t, e.Holds)
	require.ErrorContains(t, e.Err, "a pattern is too long for a text as long as this")
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "column 1: the condition is empty: leave it out, or write what must be true",
		"  \n":                             "column 1: the condition is empty: leave it out, or write what must be true",
		`comand contains 'x'`:              `column 1: unknown name "comand" (did you mean "command"?)`,
		"tool == 'x' &&\n  kid == 1":       `line 2, column 3: unknown name "kid" (did you mean "kind"?)`,
		`ä == 'ü' || comand == ''`:         `column 1: unknown name "ä"; there are tool, kind`,
		`'ü' == tool || comand == ''`:      `column 16: unknown name "comand"`,
		`split(command, ' ') == []`:        `column 1: unknown name "split"; there are`,
		`repeat('x', 9) == ''`:             `unknown name "repeat"`,
		`now() == nil`:                     `unknown name "now"`,
		`$env == nil`:                      `unknown name "$env"`,
		`_tick(_run)`:                      `unknown name "_tick"`,
		`_run == nil`:                      `unknown name "_run"`,
		`Tool == 'x'`:                      `unknown name "Tool" (did you mean "tool"?)`,
		`shell.comands == nil`:             `column 7: shell has no field "comands" (did you mean "commands"?)`,
		`any(shell.commands, .nam == 'x')`: `column 22: command has no field "nam" (did you mean "name"?)`,
		`command.x == 1`:                   `column 9: a value of type string has no field "x"`,
		`kind == 'shel'`:                   `column 9: there is no kind "shel" (did you mean "shell"?)`,
		`'files' != kind`:                  `there is no kind "files"`,
		`kind in ['shell', 'bash']`:        `column 19: there is no kind "bash"`,
		`stage == 'beforeTool'`:            `there is no stage "beforeTool" (did you mean "before_tool"?)`,
		`command`:                          "column 1: the condition is no yes or no but of type string: compare it with something",
		`len(command)`:                     "no yes or no but of type int",
		`args.force`:                       "compare it, as in args.force == true",
		`command startsWith 1`:             "column 9: invalid operation: startsWith (mismatched types string and int)",
		`shell.runs(1)`:                    "column 12: cannot use int as argument (type string) to call runs",
		`command ==`:                       "unexpected token EOF",
		`command == 'x`:                    "literal not terminated",
		`command matches path`:             "column 17: the pattern of matches must be a text in quotes",
		`command matches '('`:              "missing closing )",
		`command matches 'a\s'`:            "a backslash in quotes is written twice",
		`command matches '` + strings.Repeat("x", maxPattern+1) + `'`: "column 17: the pattern is longer than 512 bytes",
		`command matches '((a{30}){30}b{99}){2}'`:                     "the pattern",
		`command matches '[a-z]{900}[a-z]{900}[a-z]{900}'`:            "column 17: the pattern is too large: repeat less",
		strings.Repeat("true && ", 600) + "true":                      "exceeds maximum allowed nodes",
		`command == '` + strings.Repeat("x", maxText) + `'`:           "the condition is longer than 8 KiB",
	} {
		c, err := Compile(text)
		require.Error(t, err, text)
		require.Nil(t, c)
		assert.ErrorContains(t, err, want, text)
		var typed *Error
		require.ErrorAs(t, err, &typed, text)
		assert.Positive(t, typed.Line, text)
		assert.Positive(t, typed.Column, text)
		assert.NotContains(t, err.Error(), "\n", text)
		assert.NotContains(t, err.Error(), "interface {}", text)
		assert.NotContains(t, err.Error(), "condition.", text)
	}
}

func TestExplain(t *testing.T) {
	call := toolCall(t, "Bash", `{"command":"$X rm","n":12345678901234567890}`)
	e := compile(t, `tool == 'Bash' && args.n != nil && shell.mayRun('rm')`).Explain(call)
	require.True(t, e.Holds)
	require.NoError(t, e.Err)
	require.False(t, e.Rule)
	require.Len(t, e.Fields, 2)
	require.Equal(t, "tool", e.Fields[0].Name)
	require.JSONEq(t, `"Bash"`, string(e.Fields[0].Value))
	require.Equal(t, "args", e.Fields[1].Name)
	require.Contains(t, string(e.Fields[1].Value), "12345678901234567890")
	require.Equal(t, []string{"a command word is not known: $X"}, e.Shell.Why)

	e = compile(t, `Bash(git *)`).Explain(call)
	require.True(t, e.Holds)
	require.True(t, e.Rule)
	require.Equal(t, "it is not known what it runs: a command word is not known: $X", e.Why)
	require.NotNil(t, e.Shell)

	require.Nil(t, compile(t, `tool == 'x'`).Explain(call).Shell)
	require.Equal(t, `tool == 'x'`, compile(t, `tool == 'x'`).String())
}

// TestConcurrent shares conditions, as a daemon does.
func TestConcurrent(t *testing.T) {
	c, rule := compile(t, `any(shell.commands, .name == 'rm' && .flag('r')) && command matches 'rm'`), compile(t, "Bash(rm *)")
	bad, good := shellCall(t, "sudo rm -rf /"), shellCall(t, "git status")
	t.Run("callers", func(t *testing.T) {
		for range 8 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for range 100 {
					require.True(t, c.Holds(bad) && rule.Holds(bad))
					require.False(t, c.Holds(good) || rule.Holds(good))
				}
			})
		}
	})
}

func BenchmarkHolds(b *testing.B) {
	call := shellCall(b, "cd /tmp && env FOO=1 go test ./... 2>&1 | tail -n 20")
	for _, text := range []string{
		`command contains 'rm -rf /'`, "command matches `rm\\s+-[rf]`", `tool == 'Edit'`, `shell.mayRun('rm')`,
		`any(shell.commands, .name == 'rm' && .mayFlag('r')) || shell.unresolved`, `Bash(git *)`,
	} {
		b.Run(text, func(b *testing.B) {
			c := compile(b, text)
			b.ReportAllocs()
			for b.Loop() {
				c.Holds(call)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(`any(shell.commands, .name == 'rm' && .flag('r'))`); err != nil {
			b.Fatal(err)
		}
	}
}
