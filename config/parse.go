package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hookd/hookd/condition"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// maxFileBytes is the largest file that is read.
const (
	maxFileBytes = 1 << 20
	tooLarge     = "the file is larger than 1 MiB"
)

// Checker judges an enabled built-in entry: whether there is a built-in of its
// name, and whether it can use the entry's config. Only the caller knows which
// built-ins there are.
type Checker func(e *Entry) []Problem

// Problem is something wrong with an entry.
type Problem struct {
	// Pointer is a JSON pointer within the entry, such as "/config/path". It
	// may name what is not there; empty is the entry itself.
	Pointer string
	Message string
}

// Positioned is something wrong with a file.
type Positioned struct {
	// Line and Column start at 1 and count characters; 0 when the problem is
	// with the whole file.
	Line, Column int
	// Path names the value, such as hooks.processes.gate.timeout_ms; it may be
	// empty.
	Path    string
	Message string
}

// LoadError is why a file can't be used. Nothing of such a file is.
type LoadError struct {
	// Path is the file as it was named.
	Path string
	// Problems are all that were found, in the order of the file; never empty.
	Problems []Positioned
	cause    error
}

// Error returns one line per problem, such as
// "config.json:12:7: hooks.processes.gate.timeout_ms: …".
func (e *LoadError) Error() string {
	var lines []string
	for _, p := range e.Problems {
		line := e.Path + ":"
		if p.Line > 0 {
			line += fmt.Sprintf("%d:%d:", p.Line, p.Column)
		}
		if p.Path != "" {
			line += " " + p.Path + ":"
		}
		lines = append(lines, line+" "+p.Message)
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns what the system said when the file could not be read.
func (e *LoadError) Unwrap() error { return e.cause }

// Load reads and checks the file at path. The error is a [*LoadError]. A file,
// or a folder that holds one, which others than hookd's user and root can
// change is refused. check may be nil.
func Load(path string, check Checker) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, check)
}

// Parse checks the content of a file. Relative paths in it start at the folder
// of path as it is named, not of what a symbolic link leads to: hooks lie
// beside the file that people see, and a link that is set to a new version of
// the content must not turn every hook into another one. The error is a
// [*LoadError]. check may be nil.
func Parse(path string, data []byte, check Checker) (*Config, error) {
	base, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, &LoadError{Path: path, Problems: []Positioned{{Message: err.Error()}}, cause: err}
	}
	return parse(path, base, data, check)
}

func parse(path, base string, data []byte, check Checker) (*Config, error) {
	if len(data) > maxFileBytes {
		return nil, &LoadError{Path: path, Problems: []Positioned{{Message: tooLarge}}}
	}
	b := builder{base: base, check: check, stages: protocol.NewStageTable()}
	c := &Config{Path: path, SHA256: hash(data), source: &b.reader}
	if b.parse(data) {
		var f file
		// An object that is none leaves the defaults unset; it is reported.
		if b.value("", &b.root, reflect.ValueOf(&f).Elem(), ""); b.root.Value.Kind() == '{' {
			b.config(c, &f)
		}
	}
	if len(b.problems) > 0 {
		return nil, &LoadError{Path: path, Problems: b.positioned()}
	}
	return c, nil
}

// builder makes a config of what was read, and judges what depends on several
// values.
type builder struct {
	reader
	base   string
	check  Checker
	stages *protocol.StageTable
}

func (b *builder) config(c *Config, f *file) {
	c.Socket = b.listener("/socket", &f.Socket)
	c.Control = b.listener("/control", &f.Control)
	if c.Socket.Path != "" && c.Socket.Path == c.Control.Path {
		b.judge("/control/path", "is the same as socket.path: agents and those who rule hookd need a socket each")
	}
	c.Log = Log(f.Log)
	c.HTTP = HTTP{Listen: string(f.HTTP.Listen), TokenFile: b.path(f.HTTP.TokenFile)}
	c.Record = Record{
		Mode: f.Record.Mode, Path: b.path(f.Record.Path), OnFailure: f.Record.OnFailure,
		KeepDays: f.Record.KeepDays, MaxBytes: f.Record.MaxBytes, BeforeAfter: f.Record.BeforeAfter,
	}
	if c.Record.Mode == "strict" {
		c.Record.OnFailure = hook.FailDeny
	}
	c.Approval = Approval(f.Approval)
	c.Layers = Layers{
		Organisation: b.homePaths(f.Layers.Organisation), Config: b.homePaths(f.Layers.Config), User: b.homePaths(f.Layers.User),
		Project: words(f.Layers.Project),
	}
	c.Limits = protocol.Limits(f.Limits)
	if c.Limits.MaxBytesInFlight < int64(c.Limits.MaxMessageBytes) {
		b.judge("/limits/max_bytes_in_flight", "is less than max_message_bytes (%d), so the largest message could never be taken", c.Limits.MaxMessageBytes)
	}
	d := &f.Hooks.Defaults
	c.Hooks = Hooks{Enabled: f.Hooks.Enabled, Defaults: Defaults{
		ObserverTimeout:    ms(d.ObserverTimeoutMS),
		InterceptorTimeout: ms(d.InterceptorTimeoutMS),
		ApprovalTimeout:    ms(d.ApprovalTimeoutMS),
		ChainTimeout:       ms(d.ChainTimeoutMS),
		FailPolicy:         d.FailPolicy,
		NoApprover:         d.NoApprover,
	}}
	for name, p := range f.Hooks.Processes {
		e := b.entry(hook.Process, name, &p.entry, &c.Hooks.Defaults)
		b.process(&e, &p)
		if _, twice := f.Hooks.Builtins[name]; twice {
			b.add(e.Pointer, b.offset(e.Pointer), "the name stands under builtins too: all hooks need different names")
		}
		c.Hooks.Entries = append(c.Hooks.Entries, e)
	}
	for name, p := range f.Hooks.Builtins {
		p.entry.TimeoutMS = p.TimeoutMS
		e := b.entry(hook.InProcess, name, &p.entry, &c.Hooks.Defaults)
		b.stageTimeout(&e, p.TimeoutMS)
		c.Hooks.Entries = append(c.Hooks.Entries, e)
	}
	slices.SortFunc(c.Hooks.Entries, func(x, y Entry) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Source, y.Source))
	})
	b.strategies(c.Hooks.Entries)
	if b.check == nil {
		return
	}
	for i := range c.Hooks.Entries {
		if e := &c.Hooks.Entries[i]; e.Enabled && e.Source == hook.InProcess {
			for _, p := range b.check(e) {
				b.judge(e.Pointer+p.Pointer, "%s", p.Message)
			}
		}
	}
}

func (b *builder) listener(pointer string, f *listener) Listener {
	mode, _ := strconv.ParseUint(string(f.Mode), 8, 32) // checked when read
	l := Listener{Path: b.path(f.Path), Mode: os.FileMode(mode), Group: f.Group}
	l.AllowUIDs = append(l.AllowUIDs, f.AllowUIDs...) // nil when empty: listeners are compared
	// The system's limit includes the zero byte at the end.
	if limit := len(syscall.RawSockaddrUnix{}.Path) - 1; len(l.Path) > limit {
		b.judge(pointer+"/path", "the path of the socket has %d bytes, the system allows %d: choose a shorter folder", len(l.Path), limit)
	}
	return l
}

// path makes a path that was given absolute.
func (b *builder) path(p filePath) string {
	if p == "" || filepath.IsAbs(string(p)) {
		return string(p)
	}
	return filepath.Join(b.base, string(p))
}

// homePaths makes paths absolute, with ~/ as the home folder.
func (b *builder) homePaths(list []homePath) []string {
	var out []string
	for _, p := range list {
		path := string(p)
		if rest, ok := strings.CutPrefix(path, "~"); ok {
			path = filepath.Join(os.Getenv("HOME"), rest)
		}
		out = append(out, b.path(filePath(path)))
	}
	return out
}

func (b *builder) entry(source hook.Source, name hookName, f *entry, d *Defaults) Entry {
	group := "/hooks/processes/"
	if source == hook.InProcess {
		group = "/hooks/builtins/"
	}
	e := Entry{
		Name: string(name), Source: source, Pointer: group + escape(string(name)), Enabled: f.Enabled, Prioritised: f.Priority != nil,
		MatchTools: words(f.Match.Tools), MatchAgents: words(f.Match.Agents),
		FailPolicy: cmp.Or(f.FailPolicy, d.FailPolicy), Required: f.Required, Recheck: f.Recheck, Mode: f.Mode, When: f.When,
		MayRespond: f.MayRespond, MaxRepeats: f.MaxRepeats, KeyStrategies: f.KeyStrategies, Config: f.Config,
	}
	if f.Priority != nil {
		e.Priority = *f.Priority
	}
	// What can't be read here was reported when it was checked.
	e.Match, _ = hook.NewMatch(e.MatchTools, e.MatchAgents)
	if f.If != "" {
		if c, err := condition.Compile(string(f.If)); err == nil {
			e.If, e.IfText = c, string(f.If)
		}
	}
	if f.Observe != nil {
		e.Observe = []protocol.Subscription{}
	}
	for _, text := range f.Observe {
		s, _ := protocol.ParseSubscription(string(text))
		e.Observe = append(e.Observe, s)
	}
	if f.Intercept != nil {
		e.Intercept = []protocol.Stage{}
	}
	for _, stage := range words(f.Intercept) {
		if s := protocol.Stage(stage); !slices.Contains(e.Intercept, s) {
			e.Intercept = append(e.Intercept, s)
		}
	}
	e.timeouts(f, d)
	e.Canary = b.canary(&e, f.Canary)
	if e.Required && e.Mode != hook.Enforce {
		b.judge(e.Pointer+"/mode", "a required hook can't run in mode %s: its answer would not count", e.Mode)
	}
	if len(e.Observe) == 0 && len(e.Intercept) == 0 && (source == hook.Process || e.Observe != nil && e.Intercept != nil) {
		b.judge(e.Pointer, "the hook would never be called: name events under observe or stages under intercept")
	}
	return e
}

// timeouts chooses the limits of an entry. timeout_ms is for what the hook
// does: its interceptor stages, or when it has none its approvals, or when it
// has none of those either its events.
func (e *Entry) timeouts(f *entry, d *Defaults) {
	e.Timeout, e.ApprovalTimeout, e.ObserverTimeout = d.InterceptorTimeout, d.ApprovalTimeout, d.ObserverTimeout
	if f.TimeoutMS != nil {
		e.Timed = true
		// A built-in that does not say where it intercepts may do so anywhere.
		anywhere := e.Source == hook.InProcess && e.Intercept == nil
		switch {
		case len(e.Intercept) == 1 && e.Intercept[0] == protocol.StageApproveTool:
			e.ApprovalTimeout = ms(*f.TimeoutMS)
		case len(e.Intercept) == 0 && len(e.Observe) > 0 && !anywhere:
			e.ObserverTimeout = ms(*f.TimeoutMS)
		default:
			e.Timeout = ms(*f.TimeoutMS)
		}
		if anywhere && f.ApprovalTimeoutMS == nil {
			e.OwnTimeout = ms(*f.TimeoutMS)
		}
	}
	if f.ApprovalTimeoutMS != nil {
		e.ApprovalTimeout = ms(*f.ApprovalTimeoutMS)
	}
	if f.ObserverTimeoutMS != nil {
		e.ObserverTimeout = ms(*f.ObserverTimeoutMS)
	}
}

// stageTimeout refuses a timeout_ms of a built-in that only one without stages
// of its choice may have: that can be one which asks people.
func (b *builder) stageTimeout(e *Entry, timeoutMS *int) {
	const most = 600_000
	if timeoutMS != nil && *timeoutMS > most && e.Intercept != nil {
		b.judge(e.Pointer+"/timeout_ms", outOfRange, strconv.Itoa(*timeoutMS), 1, most, fmt.Sprintf(" (%s)", ms(most)))
	}
}

func (b *builder) process(e *Entry, f *process) {
	e.Command, e.PassEnv = words(f.Command), words(f.PassEnv)
	e.MaxInFlight, e.Dialect = f.MaxInFlight, f.Dialect
	if e.Dir = b.path(f.Dir); e.Dir == "" {
		e.Dir = b.base
	}
	if f.Env != nil {
		e.Env = map[string]string{}
	}
	for name, value := range f.Env {
		e.Env[string(name)] = string(value)
	}
	if len(e.Command) == 0 || e.Command[0] == "" {
		b.judge(e.Pointer+"/command", "the command is empty: name the program to start, such as [\"python3\", \"gate.py\"]")
		return
	}
	program := filePath(e.Command[0])
	if err := program.check(); err != nil {
		b.judge(e.Pointer+"/command/0", "%s", err)
	}
	if strings.Contains(e.Command[0], "/") {
		e.Command[0] = b.path(program)
	}
	b.protect(e, f)
}

// strategies reports keys of state that two hooks would merge in different
// ways. Entries are sorted, so the message is always the same.
func (b *builder) strategies(entries []Entry) {
	first := map[string]*Entry{}
	for i := range entries {
		e := &entries[i]
		for key, s := range e.KeyStrategies {
			if !e.Enabled {
				continue
			}
			if first[key] == nil {
				first[key] = e
			} else if other := first[key].KeyStrategies[key]; other != s {
				b.judge(e.Pointer+"/key_strategies/"+escape(key), "%s here, but %s in %s: one key can be merged in one way only", s, other, quote(first[key].Name))
			}
		}
	}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func words[S ~string](list []S) []string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}
