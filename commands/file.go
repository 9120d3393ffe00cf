package commands

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/condition"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Form is a way to write hooks.json.
type Form string

// The forms.
const (
	// FormClaude is that of Claude Code's settings: groups with a matcher, and
	// its rules for exit status and output to the letter.
	FormClaude Form = "claude"
	// FormHookd has a version, and rules with names, policies and limits.
	FormHookd Form = "hookd"
)

// File is a hooks.json that was read.
type File struct {
	// Path is absolute; scripts of [FormHookd] run in its folder.
	Path string
	Form Form
	// Disabled: nothing in it runs.
	Disabled bool
	Rules    []Rule
	// Warnings say what was left out and why; nothing is left out that could
	// deny.
	Warnings []string

	inProject bool // a project's own file
}

// Rule is one line of hooks: who is meant, and what runs.
type Rule struct {
	// Event is Claude Code's name of it, such as PreToolUse.
	Event string
	// Name is unique in its event; made up where the file has none.
	Name    string
	Enabled bool
	// Priority orders rules of one event; where none is written it is the place
	// in the file.
	Priority int
	// Matcher is what the file says; see [newMatcher].
	Matcher string
	matcher *matcher
	// If narrows it further; IfText is how it is written.
	IfText string
	cond   *condition.Condition
	// MaxRepeats limits, per session, how often the rule has an effect; nil =
	// unlimited.
	MaxRepeats *int
	Handlers   []Handler
	// Pointer is the rule's place in the file.
	Pointer string
}

// Handler is one thing to run.
type Handler struct {
	// Type is command or http.
	Type string
	// Command is a line for sh -c, or with Args a program.
	Command string
	Args    []string
	// URL and Headers are for http. AllowedEnv names variables that headers may
	// use.
	URL        string
	Headers    map[string]string
	AllowedEnv []string
	Timeout    time.Duration
	// StatusMessage is told to observers while the handler runs.
	StatusMessage string
	FailPolicy    hook.FailPolicy
	// Warn: a failure that is passed over is shown to the user.
	Warn bool
	// Async: nobody waits for it, and it decides nothing.
	Async bool
	// IfText and cond are the handler's own condition (Claude's form).
	IfText string
	cond   *condition.Condition
	// PassEnv names variables that it gets from hookd's own environment.
	PassEnv []string
}

// Limits.
const (
	maxRules   = 1000
	maxTimeout = 10 * time.Minute
	// What holds when the file does not say. An answer is wanted before the user
	// has to wait long for a prompt.
	promptTimeout  = 30 * time.Second
	commandTimeout = 10 * time.Minute
	ownTimeout     = 30 * time.Second
)

// FileError is what is wrong with a hooks.json.
type FileError struct {
	Path string
	// Line and Column start at 1; 0 = the whole file.
	Line, Column int
	// Pointer is the place, such as /hooks/PreToolUse/0/matcher.
	Pointer string
	Message string
}

// Error returns "path:line:column: place: message".
func (e *FileError) Error() string {
	text := e.Path + ":"
	if e.Line > 0 {
		text += fmt.Sprintf("%d:%d:", e.Line, e.Column)
	}
	if e.Pointer != "" {
		text += " " + strings.ReplaceAll(strings.TrimPrefix(e.Pointer, "/"), "/", ".") + ":"
	}
	return text + " " + e.Message
}

// Parse reads a hooks.json. A root with "version" is of hookd's form, any other
// of Claude Code's, whose settings.json can be read as it is: keys beside
// "hooks" mean nothing here. What can't be read makes the whole file unusable.
// The error is a *[FileError].
func Parse(path string, content []byte) (*File, error) {
	p := &parser{path: path, content: content}
	f, err := p.file()
	if err != nil {
		return nil, p.positioned(err)
	}
	return f, nil
}

// parser turns one file into rules. Its functions return an error with a
// pointer, [at].
type parser struct {
	path    string
	content []byte
	form    Form
	f       *File
}

// at is an error with its place.
type at struct {
	pointer string
	err     error
}

func (a *at) Error() string { return a.pointer + ": " + a.err.Error() }

func problem(pointer, format string, args ...any) error {
	return &at{pointer, fmt.Errorf(format, args...)}
}

func (p *parser) positioned(err error) *FileError {
	e := &FileError{Path: p.path, Message: err.Error()}
	if a, ok := errors.AsType[*at](err); ok {
		e.Pointer, e.Message = a.pointer, a.err.Error()
		e.Line, e.Column = place(p.content, p.find(a.pointer))
		return e
	}
	if m, ok := errors.AsType[*misread](err); ok {
		e.Line, e.Column = place(p.content, m.offset)
	}
	return e
}

// place turns an offset into a line and a column, in characters.
func place(content []byte, offset int) (line, column int) {
	if offset < 0 || offset > len(content) {
		return 0, 0
	}
	before := content[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte{'\n'}) + 1, len([]rune(string(before[start:]))) + 1
}

// find returns the offset of the value at a pointer, or of the nearest one
// around it.
func (p *parser) find(pointer string) int {
	dec := jsontext.NewDecoder(bytes.NewReader(p.content))
	best, found := -1, -1
	for {
		start := dec.InputOffset()
		if _, err := dec.ReadToken(); err != nil {
			break
		}
		here := string(dec.StackPointer())
		if here == pointer && found < 0 {
			for int(start) < len(p.content) && strings.ContainsRune(" \t\r\n,:", rune(p.content[start])) {
				start++
			}
			found = int(start)
		}
		if found < 0 && strings.HasPrefix(pointer, here+"/") && best < int(start) {
			best = int(start)
		}
	}
	return max(found, best, 0)
}

func (p *parser) file() (*File, error) {
	if bytes.HasPrefix(p.content, []byte("\xEF\xBB\xBF")) {
		return nil, errors.New("the file starts with a byte order mark: save it without one")
	}
	root, err := protocol.DecodeObject(p.content, 0)
	if err != nil {
		return nil, p.syntax(err)
	}
	p.f = &File{Path: p.path, Form: FormClaude}
	if root.Get("version") != nil {
		p.f.Form = FormHookd
	}
	p.form = p.f.Form
	for _, m := range root {
		at := "/" + escape(m.Name)
		switch {
		case m.Name == "hooks":
			err = p.events(at, m.Value)
		case m.Name == "$schema" || m.Name == "description":
		case p.form == FormClaude && m.Name == "disableAllHooks":
			err = p.boolean(at, m.Value, &p.f.Disabled)
		case p.form == FormClaude:
			// Settings hold much else. A letter too many must not hide the hooks.
			if protocol.DidYouMean(m.Name, []string{"hooks"}) != "" {
				err = problem(at, "unknown key: did you mean \"hooks\"?")
			}
		case m.Name == "version":
			if string(m.Value) != "1" {
				err = problem(at, "this hookd reads version 1")
			}
		case m.Name == "disabled":
			err = p.boolean(at, m.Value, &p.f.Disabled)
		default:
			err = unknown(at, m.Name, "version", "disabled", "hooks", "$schema", "description")
		}
		if err != nil {
			return nil, err
		}
	}
	return p.f, nil
}

// syntax finds the place of a mistake that the strict reader only names.
func (p *parser) syntax(err error) error {
	dec := jsontext.NewDecoder(bytes.NewReader(p.content))
	_, cause := dec.ReadValue()
	if s, ok := errors.AsType[*jsontext.SyntacticError](cause); ok {
		return &misread{err, int(s.ByteOffset)}
	}
	if errors.Is(cause, io.ErrUnexpectedEOF) {
		return &misread{err, len(p.content)}
	}
	return err
}

// misread is a mistake in words, with its place.
type misread struct {
	error
	offset int
}

func unknown(pointer, name string, known ...string) error {
	hint := protocol.DidYouMean(name, known)
	if hint == "" {
		hint = "; known: " + strings.Join(known, ", ")
	}
	return problem(pointer, "unknown key%s", hint)
}

// escape is for a JSON pointer.
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

func (p *parser) events(pointer string, v jsontext.Value) error {
	events, err := object(pointer, v)
	if err != nil {
		return err
	}
	for _, m := range events {
		at := pointer + "/" + escape(m.Name)
		event, err := eventNamed(m.Name, p.form)
		if err != nil {
			return problem(at, "%v", err)
		}
		groups, err := array(at, m.Value)
		if err != nil {
			return err
		}
		for i, group := range groups {
			if err := p.rule(fmt.Sprintf("%s/%d", at, i), event, i, group); err != nil {
				return err
			}
			if len(p.f.Rules) > maxRules {
				return problem(at, "more than %d rules", maxRules)
			}
		}
	}
	return p.names()
}

// names makes sure that every rule can be told apart.
func (p *parser) names() error {
	seen := map[string]string{}
	for i := range p.f.Rules {
		r := &p.f.Rules[i]
		key := r.Event + "/" + r.Name
		if other, twice := seen[key]; twice {
			return problem(r.Pointer, "the name %q stands twice among the rules of %s (also %s)", r.Name, r.Event, other)
		}
		seen[key] = r.Pointer
	}
	return nil
}

func (p *parser) rule(pointer, event string, index int, v jsontext.Value) error {
	members, err := object(pointer, v)
	if err != nil {
		return err
	}
	r := Rule{Event: event, Name: fmt.Sprint(index + 1), Enabled: true, Priority: index, Pointer: pointer}
	if event == "Stop" || event == "SubagentStop" {
		r.MaxRepeats = new(8)
	}
	var handlers jsontext.Value
	for _, m := range members {
		at := pointer + "/" + escape(m.Name)
		own := p.form == FormHookd
		switch {
		case m.Name == "matcher":
			err = p.text(at, m.Value, &r.Matcher)
		case m.Name == "hooks":
			handlers = m.Value
		case own && m.Name == "name":
			if err = p.text(at, m.Value, &r.Name); err == nil && (r.Name == "" || len(r.Name) > 128) {
				err = problem(at, "a name has 1 to 128 characters")
			}
		case own && m.Name == "if":
			err = p.text(at, m.Value, &r.IfText)
		case own && m.Name == "enabled":
			err = p.boolean(at, m.Value, &r.Enabled)
		case own && m.Name == "priority":
			err = p.integer(at, m.Value, &r.Priority, -1_000_000, 1_000_000)
		case own && m.Name == "max_repeats":
			r.MaxRepeats = nil
			if m.Value.Kind() != 'n' {
				r.MaxRepeats = new(int)
				err = p.integer(at, m.Value, r.MaxRepeats, 0, 1_000_000)
			}
		case own && m.Name == "description":
		case own:
			err = unknown(at, m.Name, "name", "matcher", "if", "enabled", "priority", "max_repeats", "description", "hooks")
		default:
			// Claude Code ignores what it does not know here.
			p.warn(at, "unknown key, ignored")
		}
		if err != nil {
			return err
		}
	}
	if handlers == nil {
		return problem(pointer, "hooks is missing: there is nothing to run")
	}
	if r.matcher, err = newMatcher(event, r.Matcher); err != nil {
		return problem(pointer+"/matcher", "%v", err)
	}
	if r.cond, err = compile(r.IfText); err != nil {
		return problem(pointer+"/if", "%v", err)
	}
	list, err := array(pointer+"/hooks", handlers)
	if err != nil {
		return err
	}
	for i, item := range list {
		h, err := p.handler(fmt.Sprintf("%s/hooks/%d", pointer, i), event, item)
		if err != nil {
			return err
		}
		r.Handlers = append(r.Handlers, h)
	}
	p.f.Rules = append(p.f.Rules, r)
	return nil
}

func compile(text string) (*condition.Condition, error) {
	if text == "" {
		return nil, nil
	}
	return condition.Compile(text)
}

func (p *parser) handler(pointer, event string, v jsontext.Value) (h Handler, err error) {
	members, err := object(pointer, v)
	if err != nil {
		return h, err
	}
	own := p.form == FormHookd
	h.FailPolicy, h.Timeout = hook.FailContinue, defaultTimeout(p.form, event)
	for _, m := range members {
		at := pointer + "/" + escape(m.Name)
		switch {
		case m.Name == "type":
			err = p.text(at, m.Value, &h.Type)
		case m.Name == "command":
			err = p.text(at, m.Value, &h.Command)
		case m.Name == "args":
			h.Args, err = texts(at, m.Value)
		case m.Name == "url":
			err = p.text(at, m.Value, &h.URL)
		case m.Name == "headers":
			h.Headers, err = table(at, m.Value)
		case m.Name == "allowedEnvVars":
			h.AllowedEnv, err = texts(at, m.Value)
		case m.Name == "timeout":
			err = p.seconds(at, m.Value, &h.Timeout)
		case m.Name == "statusMessage":
			err = p.text(at, m.Value, &h.StatusMessage)
		case m.Name == "async":
			err = p.boolean(at, m.Value, &h.Async)
		case own && m.Name == "pass_env":
			h.PassEnv, err = texts(at, m.Value)
		case own && m.Name == "fail_policy":
			h.FailPolicy, err = policy(at, m.Value)
		case own && m.Name == "on_error":
			err = p.onError(at, m.Value, &h)
		case own:
			err = unknown(at, m.Name, "type", "command", "args", "url", "headers", "allowedEnvVars", "timeout", "statusMessage", "async", "pass_env", "fail_policy", "on_error")
		case m.Name == "if":
			err = p.text(at, m.Value, &h.IfText)
		case m.Name == "onFailure":
			h.FailPolicy, err = policy(at, m.Value)
		case m.Name == "shell":
			if string(m.Value) != `"bash"` && string(m.Value) != `"sh"` {
				err = problem(at, "only bash and sh run here")
			}
		default:
			// once, name and the like change nothing that hookd does.
		}
		if err != nil {
			return h, err
		}
	}
	return h, p.finish(pointer, event, &h)
}

// finish judges what depends on several keys.
func (p *parser) finish(pointer, event string, h *Handler) (err error) {
	switch h.Type {
	case "command":
		if h.Command == "" {
			return problem(pointer+"/command", "is missing: there is nothing to run")
		}
		if strings.Contains(h.Command, "\x00") || slices.ContainsFunc(h.Args, func(a string) bool { return strings.Contains(a, "\x00") }) {
			return problem(pointer+"/command", "a zero byte can't stand here")
		}
	case "http":
		if !strings.HasPrefix(h.URL, "http://") && !strings.HasPrefix(h.URL, "https://") {
			return problem(pointer+"/url", "expected a URL that starts with http:// or https://")
		}
	case "":
		return problem(pointer, "type is missing: command or http")
	case "mcp_tool", "prompt", "agent", "function":
		return problem(pointer+"/type", "hookd runs no handlers of type %s; command and http are known", h.Type)
	default:
		return problem(pointer+"/type", "unknown type %q%s; command and http are known", h.Type, protocol.DidYouMean(h.Type, []string{"command", "http"}))
	}
	if h.cond, err = compile(h.IfText); err != nil {
		return problem(pointer+"/if", "%v", err)
	}
	if h.IfText != "" && !isToolEvent(event) {
		p.warn(pointer+"/if", "there is no tool at "+event+", so this handler never runs")
	}
	return nil
}

func defaultTimeout(form Form, event string) time.Duration {
	switch {
	case form == FormHookd:
		return ownTimeout
	case event == "UserPromptSubmit":
		return promptTimeout
	}
	return commandTimeout
}

func policy(pointer string, v jsontext.Value) (hook.FailPolicy, error) {
	switch string(v) {
	case `"continue"`, `"allow"`:
		return hook.FailContinue, nil
	case `"block"`, `"deny"`:
		return hook.FailDeny, nil
	}
	return "", problem(pointer, "expected \"continue\" or \"block\" (\"deny\" is the same)")
}

func (p *parser) onError(pointer string, v jsontext.Value, h *Handler) error {
	switch string(v) {
	case `"log"`:
		h.Warn = false
	case `"warn"`:
		h.Warn = true
	default:
		return problem(pointer, "expected \"log\" or \"warn\"")
	}
	return nil
}

func (p *parser) warn(pointer, text string) {
	e := p.positioned(problem(pointer, "%s", text))
	p.f.Warnings = append(p.f.Warnings, e.Error())
}

func (p *parser) seconds(pointer string, v jsontext.Value, into *time.Duration) error {
	var n float64
	if v.Kind() != '0' || protocol.Unmarshal(v, &n) != nil || n <= 0 || n > maxTimeout.Seconds() {
		return problem(pointer, "expected seconds, more than 0 and at most %g", maxTimeout.Seconds())
	}
	*into = max(time.Duration(n*float64(time.Second)), time.Millisecond)
	return nil
}

func (p *parser) text(pointer string, v jsontext.Value, into *string) error {
	if v.Kind() != '"' {
		return problem(pointer, "expected a string")
	}
	*into = protocol.Unquote(v)
	return nil
}

func (p *parser) boolean(pointer string, v jsontext.Value, into *bool) error {
	if k := v.Kind(); k != 't' && k != 'f' {
		return problem(pointer, "expected true or false")
	}
	*into = v.Kind() == 't'
	return nil
}

func (p *parser) integer(pointer string, v jsontext.Value, into *int, low, high int) error {
	if err := protocol.Unmarshal(v, into); err != nil || *into < low || *into > high {
		return problem(pointer, "expected a whole number from %d to %d", low, high)
	}
	return nil
}

func object(pointer string, v jsontext.Value) (protocol.Object, error) {
	if v.Kind() != '{' {
		return nil, problem(pointer, "expected an object")
	}
	return protocol.ParseObject(v)
}

func array(pointer string, v jsontext.Value) ([]jsontext.Value, error) {
	if v.Kind() != '[' {
		return nil, problem(pointer, "expected an array")
	}
	return protocol.Items(v)
}

func texts(pointer string, v jsontext.Value) ([]string, error) {
	list := []string{}
	if err := protocol.Unmarshal(v, &list); err != nil || v.Kind() != '[' {
		return nil, problem(pointer, "expected an array of strings")
	}
	return list, nil
}

func table(pointer string, v jsontext.Value) (map[string]string, error) {
	t := map[string]string{}
	if err := protocol.Unmarshal(v, &t); err != nil || v.Kind() != '{' {
		return nil, problem(pointer, "expected an object of strings")
	}
	return t, nil
}

// Folder is where scripts of the file run and relative paths start.
func (f *File) Folder() string { return filepath.Dir(f.Path) }

// sorted returns the rules of the file in the order in which they are asked.
func (f *File) sorted() []*Rule {
	var list []*Rule
	for i := range f.Rules {
		list = append(list, &f.Rules[i])
	}
	slices.SortStableFunc(list, func(a, b *Rule) int { return cmp.Compare(a.Priority, b.Priority) })
	return list
}
