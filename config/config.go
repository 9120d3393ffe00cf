// Package config reads hookd's one config file: strictly, with a place for
// everything that is wrong, and again when it changes.
//
// A file is JSON with comments and trailing commas. It is checked in three
// steps: the syntax, each value against the type and the tags of its field in
// file.go, and then what depends on several values. All problems of a step are
// reported at once. The same tags make config.schema.json, so that an editor
// says what the daemon would say.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Config is one good version of the file. Defaults are filled in, so no zero
// value means "default", except an empty [Listener.Path]. It must not be
// changed.
type Config struct {
	// Path is the file as it was named, and SHA256 its content's hash in hex.
	// Both are empty when there is no file.
	Path, SHA256 string
	// Socket is for agents, Control for those who rule hookd.
	Socket, Control Listener
	HTTP            HTTP
	Log             Log
	Limits          protocol.Limits
	Record          Record
	Approval        Approval
	Layers          Layers
	Hooks           Hooks

	// source is what was read, for places in it; nil when there is no file.
	source *reader
}

// Problem returns what is wrong with an entry as if it had been found in the
// file. It is for what shows only when the hook runs.
func (c *Config) Problem(e *Entry, message string) *LoadError { return c.ProblemAt(e.Pointer, message) }

// ProblemAt is [Config.Problem] for the value at a JSON pointer.
func (c *Config) ProblemAt(pointer, message string) *LoadError {
	p := Positioned{Path: dotted(pointer), Message: message}
	if c.source != nil {
		p.Line, p.Column = c.source.place(c.source.offset(pointer))
	}
	return &LoadError{Path: c.Path, Problems: []Positioned{p}}
}

// Listener says where to listen and who may connect.
type Listener struct {
	// Path is absolute. Empty means the standard place, which depends on the
	// user and not on this file, so that a client finds it without one.
	Path string
	// Mode is the socket's permissions.
	Mode os.FileMode
	// Group is a name or a number; empty leaves the group as it is.
	Group string
	// AllowUIDs are users that may connect beside hookd's own.
	AllowUIDs []int
}

// Log says what hookd writes to standard error.
type Log struct {
	// Level is debug, info, warn or error.
	Level string
	// Format is json or console.
	Format string
}

// HTTP says where the HTTP door is.
type HTTP struct {
	// Listen is an address on loopback; empty: there is no door.
	Listen string
	// TokenFile is absolute; empty means the standard place, beside the socket.
	TokenFile string
}

// Record says what is written down.
type Record struct {
	// Mode is off, batch or strict.
	Mode string
	// Path is absolute; empty means the standard place, in the state folder.
	Path      string
	OnFailure hook.FailPolicy
	// KeepDays and MaxBytes bound what is kept; 0 = without limit.
	KeepDays    int
	MaxBytes    int64
	BeforeAfter bool
}

// Approval says who may say yes.
type Approval struct {
	NotSameProcessTree bool
}

// Layers are the files of command hooks. All paths but those of Project are
// absolute; those start at the folder in which a session works.
type Layers struct {
	Organisation, Config, User, Project []string
}

// Hooks is who is asked and told.
type Hooks struct {
	// Enabled false means that every stage answers continue, with a warning.
	Enabled  bool
	Defaults Defaults
	// Entries are sorted by name. Disabled ones are among them.
	Entries []Entry
}

// Defaults hold for entries that say nothing else; entries have them filled in
// already.
type Defaults struct {
	ObserverTimeout    time.Duration
	InterceptorTimeout time.Duration
	ApprovalTimeout    time.Duration
	// ChainTimeout is for all interceptors of one call together.
	ChainTimeout time.Duration
	FailPolicy   hook.FailPolicy
	// NoApprover says what a call means that nobody asked to have approved and
	// nobody can approve.
	NoApprover NoApprover
}

// NoApprover is a value of [Defaults.NoApprover].
type NoApprover string

// The values of no_approver.
const (
	Approve NoApprover = "approve"
	Deny    NoApprover = "deny"
)

// Entry is one hook.
type Entry struct {
	// Name is unique among all entries.
	Name   string
	Source hook.Source
	// Pointer is the JSON pointer of the entry in the file.
	Pointer string
	Enabled bool
	// Priority is 0 when the entry does not say, and Prioritised false.
	Priority    int
	Prioritised bool

	// Command is the argv of a process; empty for a built-in. Its first word
	// is an absolute path, or a bare name to be found through PATH.
	Command []string
	// Dir is where a process starts, absolute: the config file's folder when
	// the entry names none. Empty for a built-in.
	Dir     string
	Env     map[string]string
	PassEnv []string
	// MaxInFlight is how many calls a process works on at once; 0 leaves it to
	// the process, which says so in its greeting or gets one.
	MaxInFlight int
	// Dialect is what a process speaks; empty for a built-in.
	Dialect string
	// Sandbox is what a process may reach; nil = what hookd may.
	Sandbox *Sandbox
	// Pins are files without whose right content a process is not started.
	Pins []Pin

	// Observe and Intercept are what the hook is told and asked. Of a built-in,
	// nil means everything it can do and empty means nothing.
	Observe   []protocol.Subscription
	Intercept []protocol.Stage
	// Match is made from the patterns MatchTools and MatchAgents.
	Match                   hook.Match
	MatchTools, MatchAgents []string
	// If narrows Match further, and IfText is how it is written; nil and "" =
	// no condition.
	If     hook.Condition
	IfText string

	Timeout         time.Duration
	ApprovalTimeout time.Duration
	ObserverTimeout time.Duration
	FailPolicy      hook.FailPolicy
	Required        bool
	Recheck         bool
	Mode            hook.Mode
	// When is empty when the entry does not say it.
	When hook.When
	// Timed says that the entry has a timeout_ms of its own.
	Timed bool
	// OwnTimeout is what timeout_ms of a built-in says that names no stages under
	// intercept: the limit for whatever it does. 0 = nothing.
	OwnTimeout time.Duration
	MayRespond bool
	// MaxRepeats limits inject per session; nil means unlimited.
	MaxRepeats    *int
	KeyStrategies map[string]protocol.KeyStrategy
	// Canary tries the hook now and then; nil = it is not tried.
	Canary *Canary
	// Config is the hook's own, compact; nil when there is none.
	Config jsontext.Value
}

// ProcessKey returns a hash over what makes the running instance. An entry
// that is changed and keeps its key can keep its process over a reload:
// priority, match, timeouts, policy and the like live outside of it.
func (e *Entry) ProcessKey() string {
	observe := make([]string, len(e.Observe))
	for i, s := range e.Observe {
		observe[i] = s.String()
	}
	if e.Observe == nil {
		observe = nil
	}
	pinned := make([]string, 0, 2*len(e.Pins))
	for _, p := range e.Pins {
		pinned = append(pinned, p.Path, p.SHA256)
	}
	// Strings, lists and maps of them, and a value that was checked: this
	// can't fail.
	text, _ := json.Marshal([]any{
		e.Name, e.Source, e.Command, e.Dir, e.Env, e.PassEnv, observe, e.Intercept, e.MaxInFlight, e.Dialect, e.Config,
		e.Sandbox, pinned,
	}, json.Deterministic(true), json.FormatNilSliceAsNull(true))
	return hash(text)
}

// Files returns the files whose change on disk makes a process another hook:
// those of its command and those that are pinned. A built-in has none.
func (e *Entry) Files() []string {
	files := e.CommandFiles()
	for _, p := range e.Pins {
		if path := p.File(); path != "" && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	return files
}

// CommandFiles returns the files in a process's command as they are now: its
// program, and the arguments that name a file.
func (e *Entry) CommandFiles() []string {
	var files []string
	for i, arg := range e.Command {
		path := arg
		switch {
		case i == 0 && !strings.Contains(arg, "/"):
			path = lookPath(arg)
		case !filepath.IsAbs(arg):
			path = filepath.Join(e.Dir, arg)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, path)
		}
	}
	return files
}

// lookPath finds a program as a child's start will, or returns "".
func lookPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); filepath.IsAbs(path) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// Default returns what holds without any file: the defaults, and the built-in
// log, which writes to standard error.
func Default() *Config {
	// The text is a constant and a test reads it, so there is no error.
	c, _ := parse("", "/", []byte(`{"hooks":{"builtins":{"log":{"priority":10}}}}`), nil)
	c.SHA256, c.source = "", nil
	return c
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
