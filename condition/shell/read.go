package shell

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// The limits keep a line from costing more time than an answer may take. A line
// beyond them is unresolved.
const (
	maxLine     = 64 << 10  // bytes
	maxOpening  = 3000      // opening brackets and the like, which bound how deep a line nests
	maxCode     = 10        // code within code, such as sh -c in sh -c
	maxCalls    = 12        // functions that call functions
	maxSteps    = 2000      // statements and commands
	maxSpent    = 512 << 10 // bytes of text and of expanded words
	maxCommands = 512
	maxChoices  = 16 // ways to read one command, by what its variables may hold
	maxPasses   = 4  // through the body of a loop
	maxWhy      = 5
)

// carriage stands for a carriage return that is a character of a word: the
// parser would take it for a part of the line's end.
const carriage = "\ue00d"

// Reader reads lines. The zero value is ready; it is safe for concurrent use
// and keeps parsers for the next line.
type Reader struct{ parsers sync.Pool }

// Read reads a line, or several. It is read as bash does, which other shells are
// close to; where they differ, the reading that runs more is taken.
func (x *Reader) Read(line string) *Line {
	r := &reader{pool: x, line: &Line{}}
	r.state.argsKnown = true
	r.code(line, stdin{})
	r.uncalled()
	r.written()
	return r.line
}

// reader follows one line.
type reader struct {
	pool *Reader
	line *Line
	src  string // the text that is followed just now

	state  state
	chosen map[string]*value // of a variable with several values, which is looked at; nil = another
	funcs  []*function
	calls  []call
	alias  map[string]string
	ran    []string // files that are run, as they were named

	arrivals []string  // folders into which files come whose names are not said; "" = not known
	projects []project // what runs files of a project without naming them
	built    []string  // patterns of the sources that are compiled
	ranAny   string    // a file that is run, the name of which is not known
	moved    bool      // the line may leave its folder
	searched bool      // the line changes where commands are looked for

	depth, steps, spent int
	stopped             bool
}

// function is one that the line defines.
type function struct {
	name   string
	body   *syntax.Stmt
	src    string
	called bool
}

// stdin is what a command reads.
type stdin struct {
	// given says that it is not that of the line as a whole.
	given bool
	// text is the input when known.
	text  string
	known bool
}

// call is one command that is about to run.
type call struct {
	args []field
	// more says that words may follow which are not known.
	more   bool
	in     stdin
	source string
}

// unresolved notes that something would run which can't be told.
func (r *reader) unresolved(why string) {
	r.line.Unresolved = true
	if len(r.line.Why) < maxWhy && !slices.Contains(r.line.Why, why) {
		r.line.Why = append(r.line.Why, why)
	}
}

func (r *reader) unresolvedWord(what, text string) {
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "…"
	}
	r.unresolved(what + ": " + text)
}

// step counts a step, and reports whether to go on.
func (r *reader) step() bool {
	if r.steps++; r.steps > maxSteps {
		r.stop()
	}
	return !r.stopped
}

// spend counts bytes of words, and reports whether to go on.
func (r *reader) spend(bytes int) bool {
	if r.spent += bytes; r.spent > maxSpent {
		r.stop()
	}
	return !r.stopped
}

func (r *reader) stop() {
	if !r.stopped {
		r.stopped = true
		r.unresolved("the line is too long to be followed")
	}
}

// code follows a text as code of this shell.
func (r *reader) code(text string, in stdin) {
	switch {
	case r.depth >= maxCode:
		r.unresolved("code stands in code too deeply")
		return
	case len(text) > maxLine || openings(text) > maxOpening:
		r.unresolved("the line is too long to be followed")
		return
	case strings.IndexByte(text, 0) >= 0:
		r.unresolved("the line holds a zero byte")
		return
	case !r.spend(len(text)):
		return
	}
	r.depth++
	if n := strings.Count(text, "\r"); n > 0 {
		// A terminal makes it a new line, bash a character of a word. Where all
		// lines end in it as on Windows, it makes no difference.
		if n != strings.Count(text, "\r\n") || n < strings.Count(text, "\n") || strings.Contains(text, "\\\r") {
			r.maybe(func() { r.parse(strings.ReplaceAll(text, "\r", carriage), in) })
		}
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	r.parse(text, in)
	r.depth--
}

// openings counts what may nest, also where it stands in quotes.
func openings(text string) (n int) {
	for _, opening := range []string{"(", "{", "[", "`", "if", "while", "until"} {
		n += strings.Count(text, opening)
	}
	return n
}

func (r *reader) parse(text string, in stdin) {
	parser, ok := r.pool.parsers.Get().(*syntax.Parser)
	if !ok {
		parser = syntax.NewParser()
	}
	var stmts []*syntax.Stmt
	var bad error
	for s, err := range parser.StmtsSeq(strings.NewReader(text)) {
		// No break: the parser may yield its error twice.
		if bad == nil && err == nil {
			stmts = append(stmts, s)
		} else if bad == nil {
			bad = err
		}
	}
	if bad != nil {
		if r.line.Syntax == "" {
			r.line.Syntax = bad.Error()
		}
		r.unresolved("the line can't be read: " + bad.Error())
	}
	r.pool.parsers.Put(parser)
	src := r.src
	r.src = text
	r.stmts(stmts, in)
	r.src = src
}

// inChild follows a text as code of another shell.
func (r *reader) inChild(text string, in stdin, args []field, name string) {
	saved, chosen := r.state, r.chosen
	r.state, r.chosen = saved.child(), nil
	r.state.args, r.state.argsKnown = args, !slices.ContainsFunc(args, func(f field) bool { return f.splits })
	if name != "" {
		r.state.set("0", value{words: []field{{text: name}}}, false)
	}
	r.code(text, in)
	r.state, r.chosen = saved, chosen
}

// later follows a text that runs some time, when variables hold who knows what.
func (r *reader) later(f field, in string) {
	text := f.text
	if f.unsafe || f.glob {
		r.unresolvedWord(in+" is not known", f.text)
		return
	}
	saved, chosen := r.state, r.chosen
	r.state, r.chosen = state{wild: true}, nil
	r.code(text, stdin{})
	r.state, r.chosen = saved, chosen
}

// uncalled follows the functions that were defined and not called: something
// that is not seen may call them.
func (r *reader) uncalled() {
	for i := 0; i < len(r.funcs); i++ { // more may come
		if f := r.funcs[i]; !f.called {
			f.called = true
			r.state, r.chosen, r.src = state{wild: true}, nil, f.src
			r.stmt(f.body, stdin{given: true})
		}
	}
}

// source returns the text of a node.
func (r *reader) source(n syntax.Node) string { return r.span(n.Pos(), n.End()) }

func (r *reader) span(start, end syntax.Pos) string {
	from, to := start.Offset(), end.Offset()
	if from > to || to > uint(len(r.src)) {
		return "$…" // not of this text: a default of some variable
	}
	return r.src[from:to]
}

// maybe follows what may run or not, or runs in a shell of its own.
func (r *reader) maybe(f func()) {
	before := r.state.clone()
	f()
	r.state.join(&before)
}

// repeat follows what may run any number of times, until nothing new comes out.
func (r *reader) repeat(f func()) {
	for range maxPasses {
		before := r.state.clone()
		f()
		r.state.join(&before)
		if r.state.equal(&before) || r.stopped {
			return
		}
	}
	r.state.forgetAll()
	f()
}

// emit adds a command to those that were found.
func (r *reader) emit(name, file string, c *call) {
	cmd := Command{Name: name, Path: file, Args: make([]string, 0, len(c.args)-1), Open: c.more, Source: c.source}
	size := len(name)
	for i := range c.args[1:] {
		f := &c.args[1+i]
		cmd.Args = append(cmd.Args, f.text)
		cmd.Open = cmd.Open || f.mayBeOption()
		size += 1 + len(f.text)
	}
	if !r.spend(size) {
		return
	}
	var text strings.Builder
	text.Grow(size)
	text.WriteString(name)
	for _, arg := range cmd.Args {
		text.WriteByte(' ')
		text.WriteString(arg)
	}
	cmd.Text = text.String()
	if strings.Contains(cmd.Text, carriage) {
		cmd.Text, cmd.Source = strings.ReplaceAll(cmd.Text, carriage, "\r"), strings.ReplaceAll(cmd.Source, carriage, "\r")
		for i := range cmd.Args {
			cmd.Args[i] = strings.ReplaceAll(cmd.Args[i], carriage, "\r")
		}
	}
	same := func(o Command) bool {
		return o.Text == cmd.Text && o.Path == cmd.Path && o.Open == cmd.Open && (cmd.Source == "" || o.Source == cmd.Source)
	}
	switch {
	case slices.ContainsFunc(r.line.Commands, same):
	case len(r.line.Commands) == maxCommands:
		r.unresolved(fmt.Sprintf("more than %d commands", maxCommands))
	default:
		r.line.Commands = append(r.line.Commands, cmd)
	}
}
