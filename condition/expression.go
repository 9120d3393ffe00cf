package condition

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/hookd/hookd/condition/shell"
	"github.com/hookd/hookd/protocol"
)

// freeTicks is how many rounds of its loops an expression has before the clock
// is looked at.
const freeTicks = 16

// Errors of an expression that exceeds its limits.
var (
	errTime  = fmt.Errorf("it takes longer than %s", maxTime)
	errValue = errors.New("a value is longer than 1 MiB")
)

// environment is what an expression is checked against and run with.
type environment struct {
	Tool    string         `expr:"tool"`
	Kind    string         `expr:"kind"`
	Command string         `expr:"command"`
	Path    string         `expr:"path"`
	Paths   []string       `expr:"paths"`
	URL     string         `expr:"url"`
	Server  string         `expr:"server"`
	Args    map[string]any `expr:"args"`
	Agent   string         `expr:"agent"`
	Session string         `expr:"session"`
	CWD     string         `expr:"cwd"`
	Message string         `expr:"message"`
	Model   string         `expr:"model"`
	Stage   string         `expr:"stage"`
	Shell   *shellFacts    `expr:"shell"`
	// Run is for the functions that are put into an expression; texts can't name
	// it.
	Run *run `expr:"_run"`
}

// shellFacts are the fields of shell.
type shellFacts struct {
	Commands   []commandFacts    `expr:"commands"`
	Writes     []string          `expr:"writes"`
	Unresolved bool              `expr:"unresolved"`
	Error      string            `expr:"error"`
	Runs       func(string) bool `expr:"runs"`
	MayRun     func(string) bool `expr:"mayRun"`
}

func shellFields() []string {
	return []string{"commands", "writes", "unresolved", "error", "runs", "mayRun"}
}

// commandFacts are the fields of one command.
type commandFacts struct {
	Name    string            `expr:"name"`
	Path    string            `expr:"path"`
	Args    []string          `expr:"args"`
	Text    string            `expr:"text"`
	Open    bool              `expr:"open"`
	Flag    func(string) bool `expr:"flag"`
	MayFlag func(string) bool `expr:"mayFlag"`
}

func commandFields() []string {
	return []string{"name", "path", "args", "text", "open", "flag", "mayFlag"}
}

// functionNames returns the functions that expressions may call. Those are left
// out that can make much out of little, know the time, or lose digits.
func functionNames() []string {
	return []string{
		"all", "none", "any", "one", "filter", "map", "find", "findIndex", "findLast", "findLastIndex", "count", "len",
		"trim", "trimPrefix", "trimSuffix", "upper", "lower", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix",
		"int", "float", "first", "last", "keys", "values",
	}
}

// expression is a condition in the language of expressions.
type expression struct {
	text     string
	program  *vm.Program
	fields   []string
	args     []string // the arguments that are looked at; nil = all
	patterns []pattern
}

// compileExpression reads and checks an expression.
func compileExpression(text string) (judge, error) {
	in := &inspector{text: text}
	options := []expr.Option{
		expr.Env(&environment{}), expr.AsBool(), expr.WarnOnAny(), expr.MaxNodes(maxNodes), expr.DisableAllBuiltins(),
		expr.Patch(&names{in}), expr.Patch(in),
		expr.Function("_tick", tick, new(func(*run) bool)),
		expr.Function("_match", match, new(func(*run, int, any) bool)),
		expr.Function("_same", same, new(func(*run, ...string) bool)),
		expr.Function("_join", join, new(func(*run, string, string) string), new(func(*run, any, any) any)),
	}
	for _, name := range functionNames() {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err := expr.Compile(text, options...)
	switch {
	case in.err != nil:
		return nil, in.err
	case err != nil:
		return nil, expressionError(text, err)
	}
	e := &expression{text: text, program: program, fields: in.fields(), patterns: in.patterns}
	if in.argsWhole == len(in.args) { // every use names the argument
		e.args = in.args
	}
	return e, nil
}

func (e *expression) uses() []string { return e.fields }

// judge runs the expression.
func (e *expression) judge(f *facts) (bool, string, error) {
	env := &environment{Run: &run{facts: f, patterns: e.patterns}}
	for _, name := range e.fields {
		if !e.fill(env, f, name) {
			return true, "", fmt.Errorf("%s: %w", name, errValue)
		}
	}
	machine := vm.VM{MemoryBudget: maxMemory}
	out, err := machine.Run(e.program, env)
	if err != nil {
		return true, "", expressionError(e.text, err)
	}
	holds, ok := out.(bool)
	if !ok {
		return true, "", errors.New("the condition is no yes or no")
	}
	return holds, "", nil
}

// fill sets a field, unless its value is too long.
func (e *expression) fill(env *environment, f *facts, name string) bool {
	switch name {
	case "args":
		return e.fillArgs(env, f)
	case "shell":
		env.Shell = shellFactsOf(f.shell())
		return true
	case "paths":
		env.Paths = f.paths()
		return true
	}
	value, _ := f.field(name).(string)
	switch name {
	case "tool":
		env.Tool = value
	case "kind":
		env.Kind = value
	case "command":
		env.Command = value
	case "path":
		env.Path = value
	case "url":
		env.URL = value
	case "server":
		env.Server = value
	case "agent":
		env.Agent = value
	case "session":
		env.Session = value
	case "cwd":
		env.CWD = value
	case "message":
		env.Message = value
	case "model":
		env.Model = value
	case "stage":
		env.Stage = value
	}
	return len(value) <= maxValue
}

// fillArgs sets the arguments that the expression looks at.
func (e *expression) fillArgs(env *environment, f *facts) bool {
	env.Args = map[string]any{}
	size := 0
	for _, m := range f.arguments() {
		if e.args != nil && !slices.Contains(e.args, m.Name) {
			continue
		}
		if size += len(m.Value); size > maxValue {
			return false
		}
		env.Args[m.Name] = valueOf(m.Value)
	}
	return true
}

func shellFactsOf(line *shell.Line) *shellFacts {
	s := &shellFacts{
		Commands: make([]commandFacts, len(line.Commands)), Writes: line.Writes, Unresolved: line.Unresolved, Error: line.Syntax,
		Runs: line.Runs, MayRun: line.MayRun,
	}
	for i := range line.Commands {
		c := &line.Commands[i]
		s.Commands[i] = commandFacts{c.Name, c.Path, c.Args, c.Text, c.Open, c.Flag, c.MayFlag}
	}
	return s
}

// run is one run of an expression, and what it has used of its limits. What does
// not loop is bounded by the length of the texts.
type run struct {
	facts    *facts
	patterns []pattern
	ticks    int
	until    time.Time
	joined   int
	matched  int
}

// tick stands in the body of each loop of an expression. A short loop does not
// look at the clock, so that a machine which stands still for a moment changes
// no answer.
func tick(params ...any) (any, error) {
	r := params[0].(*run)
	switch r.ticks++; {
	case r.ticks == freeTicks:
		r.until = r.facts.now().Add(maxTime)
	case r.ticks > freeTicks && r.facts.now().After(r.until):
		return nil, errTime
	}
	return true, nil
}

// match stands for the operator matches.
func match(params ...any) (any, error) {
	r := params[0].(*run)
	p := &r.patterns[params[1].(int)]
	switch s := params[2].(type) {
	case nil:
		return false, nil
	case string:
		if r.matched += len(s) * p.steps; r.matched > maxMatching {
			return nil, errMatching
		}
		return p.re.MatchString(s), nil
	}
	return nil, fmt.Errorf("matches needs a text, got %T", params[2])
}

// same stands for comparisons of tool with names.
func same(params ...any) (any, error) {
	tool := params[0].(*run).facts.tool
	for _, name := range params[1:] {
		if protocol.SameTool(name.(string), tool) {
			return true, nil
		}
	}
	return false, nil
}

// join stands for the operator + where texts may be joined.
func join(params ...any) (any, error) {
	r := params[0].(*run)
	a, okA := params[1].(string)
	b, okB := params[2].(string)
	if okA && okB {
		if r.joined += len(a) + len(b); r.joined > maxJoined {
			return nil, errValue
		}
		return strings.Join([]string{a, b}, ""), nil
	}
	switch x := params[1].(type) {
	case int:
		switch y := params[2].(type) {
		case int:
			return x + y, nil
		case float64:
			return float64(x) + y, nil
		}
	case float64:
		switch y := params[2].(type) {
		case int:
			return x + float64(y), nil
		case float64:
			return x + y, nil
		}
	}
	return nil, fmt.Errorf("+ needs two texts or two numbers, got %T and %T", params[1], params[2])
}
