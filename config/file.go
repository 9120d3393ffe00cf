package config

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/condition"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// file is the config as it may be written. The comments on its fields are the
// descriptions in config.schema.json. The tags bind the reader as well as the
// schema: default, enum (comma-separated), min and max (of a number, or of
// every number in a list), required, nullable.
type file struct {
	// Where an editor finds the schema of this file. hookd does not read it.
	Schema string `json:"$schema"`
	// Where agents connect. A change needs a restart.
	Socket listener `json:"socket"`
	// Where status, reload and the other control commands connect. A change needs a restart.
	Control listener `json:"control"`
	// What hookd writes to standard error.
	Log logging `json:"log"`
	// A door for agents that can post their hooks, for front ends and for metrics. A change needs a restart.
	HTTP httpDoor `json:"http"`
	// Bounds on what one agent, and all together, may make hookd hold.
	Limits limits `json:"limits"`
	// What is written down of every decision. A change needs a restart.
	Record record `json:"record"`
	// Who may say yes.
	Approval approval `json:"approval"`
	// Files of command hooks (hooks.json), besides this file. All that are there count; a project's only
	// when it is trusted.
	Layers layers `json:"layers"`
	// Who is asked and told. A PicoClaw "hooks" object can be pasted here.
	Hooks hooks `json:"hooks"`
}

type listener struct {
	// Path of the Unix socket; a relative one starts at this file's folder. Empty: hookd/ below
	// /run/user/UID, else below the state folder.
	Path filePath `json:"path" default:""`
	// Permissions of the socket, octal.
	Mode octal `json:"mode" default:"0600"`
	// Group of the socket, a name or a number. Empty: hookd's own.
	Group string `json:"group" default:""`
	// Users that may connect beside hookd's own, by number.
	AllowUIDs []int `json:"allow_uids" min:"0" max:"4294967294"`
}

type logging struct {
	// The least important lines to be written.
	Level string `json:"level" default:"info" enum:"debug,info,warn,error"`
	// json for programs, console for people.
	Format string `json:"format" default:"json" enum:"json,console"`
}

type httpDoor struct {
	// Where to listen, on loopback, such as 127.0.0.1:7465. Empty: nowhere.
	Listen loopback `json:"listen" default:""`
	// The file with the token that lets in; hookd makes it when it is missing. Empty: http-token beside
	// the socket.
	TokenFile filePath `json:"token_file" default:""`
}

type record struct {
	// off, batch (written a moment after the answer), or strict (no yes without its record on disk).
	Mode string `json:"mode" default:"batch" enum:"off,batch,strict"`
	// The database. Empty: record.db in the state folder.
	Path filePath `json:"path" default:""`
	// What it means when nothing can be written: go on and count what is missing, or deny. strict denies.
	OnFailure hook.FailPolicy `json:"on_failure" default:"continue" enum:"continue,deny"`
	// How many days a record is kept; 0: for ever.
	KeepDays int `json:"keep_days" default:"90" min:"0" max:"36500"`
	// How large the database may become; the oldest records go first. 0: without limit.
	MaxBytes int64 `json:"max_bytes" default:"1073741824" min:"0" max:"1099511627776"`
	// true: what hooks changed is kept as it was before and after.
	BeforeAfter bool `json:"before_after" default:"false"`
}

type approval struct {
	// true: an answer from a process that the asking agent has started does not count.
	NotSameProcessTree bool `json:"not_same_process_tree" default:"true"`
}

type layers struct {
	// Asked first. Only root may be able to change them, and nobody below can turn them off.
	Organisation []homePath `json:"organisation" default:"/etc/hookd/hooks.json"`
	// As much as this file.
	Config []homePath `json:"config" default:""`
	// The user's own.
	User []homePath `json:"user" default:"~/.config/hookd/hooks.json"`
	// Below the folder in which an agent's session works. They can deny, ask and add context, nothing else.
	Project []projectPath `json:"project" default:".hookd/hooks.json,.hookd/hooks.local.json"`
}

type limits struct {
	// The longest message, in bytes.
	MaxMessageBytes int `json:"max_message_bytes" default:"16777216" min:"1024" max:"1073741824"`
	// How deeply JSON values in a message may nest.
	MaxDepth int `json:"max_depth" default:"128" min:"8" max:"10000"`
	// How many agents may be connected at once.
	MaxConnections int `json:"max_connections" default:"1024" min:"1" max:"65536"`
	// How many requests of one agent may be unanswered at once.
	MaxInFlight int `json:"max_in_flight" default:"64" min:"1" max:"65536"`
	// How many bytes of unanswered requests all agents together may have. At least max_message_bytes.
	MaxBytesInFlight int64 `json:"max_bytes_in_flight" default:"268435456" min:"1024" max:"1099511627776"`
}

type hooks struct {
	// false: no hook is asked, every stage answers continue, with a warning in it.
	Enabled bool `json:"enabled" default:"true"`
	// What holds for entries that say nothing else.
	Defaults defaults `json:"defaults"`
	// Hooks that run inside hookd, by name. They are asked before processes.
	Builtins map[hookName]builtin `json:"builtins"`
	// Hooks that are programs, by a name of your choice. hookd starts them once and keeps them
	// running.
	Processes map[hookName]process `json:"processes"`
}

type defaults struct {
	// How long an observer may work on one event, in milliseconds.
	ObserverTimeoutMS int `json:"observer_timeout_ms" default:"500" min:"1" max:"600000"`
	// How long an interceptor may take for one answer, in milliseconds.
	InterceptorTimeoutMS int `json:"interceptor_timeout_ms" default:"5000" min:"1" max:"600000"`
	// How long an approver may take, in milliseconds. No answer is a no.
	ApprovalTimeoutMS int `json:"approval_timeout_ms" default:"60000" min:"1" max:"86400000"`
	// How long all interceptors of one call may take together, in milliseconds. When it ends, the
	// call is denied.
	ChainTimeoutMS int `json:"chain_timeout_ms" default:"30000" min:"1" max:"3600000"`
	// What it means when a hook does not answer: continue without it, or deny.
	FailPolicy hook.FailPolicy `json:"fail_policy" default:"continue" enum:"continue,deny"`
	// What it means when a tool call is to be approved, no hook asked for that, and no approver is
	// configured.
	NoApprover NoApprover `json:"no_approver" default:"approve" enum:"approve,deny"`
}

// entry is what built-ins and processes have in common.
type entry struct {
	// false: the entry is checked but not started.
	Enabled bool `json:"enabled" default:"true"`
	// Lower is asked first; entries with the same priority are asked by name. Built-ins come
	// before processes. Default: 0; a built-in may have its own.
	Priority *int `json:"priority" min:"-1000000" max:"1000000"`
	// Events the hook is told: names, patterns such as tool_*, or * for all. A built-in without
	// this key gets all that it handles.
	Observe []eventPattern `json:"observe"`
	// Stages at which the hook is asked. A built-in without this key is asked at all that it handles.
	Intercept []stageName `json:"intercept"`
	// Narrows which calls and events the hook is asked about.
	Match match `json:"match"`
	// Narrows them further: an expression such as command contains 'rm -rf', or a rule such as
	// Bash(git push *). What can't be judged counts as true.
	If ifText `json:"if" default:""`
	// How long one answer may take at the stages of intercept, in milliseconds. Of a hook that
	// only approves or only observes, it is the limit for that. Default: hooks.defaults.
	TimeoutMS *int `json:"timeout_ms" min:"1" max:"600000"`
	// How long an approval may take, in milliseconds. Default: hooks.defaults.
	ApprovalTimeoutMS *int `json:"approval_timeout_ms" min:"1" max:"86400000"`
	// How long the hook may work on one event, in milliseconds. Default: hooks.defaults.
	ObserverTimeoutMS *int `json:"observer_timeout_ms" min:"1" max:"600000"`
	// What it means when this hook does not answer. Default: hooks.defaults. Every gate wants deny.
	FailPolicy hook.FailPolicy `json:"fail_policy" enum:"continue,deny"`
	// true: fail_policy is deny, and hookd is not ready before this hook is. Only with mode enforce.
	Required bool `json:"required" default:"false"`
	// true: the hook is asked once more when a later hook changed what it judged, also when its
	// fail_policy is continue.
	Recheck bool `json:"recheck" default:"false"`
	// enforce: the answer counts. warn: a deny becomes a warning. shadow: asked and recorded,
	// never applied. async: not waited for.
	Mode hook.Mode `json:"mode" default:"enforce" enum:"enforce,warn,shadow,async"`
	// Which tool calls an approver is asked about: always, or asked (only those for which an
	// interceptor asked for approval). Default: always; of the built-in human: asked.
	When hook.When `json:"when" enum:"always,asked"`
	// true: an answer "respond" of this hook stands as it is. false: every approver is asked about it,
	// also one that is asked on request only; when there is none, no_approver decides.
	MayRespond bool `json:"may_respond" default:"false"`
	// How often per session this hook may start another round at stop. null: without limit.
	MaxRepeats *int `json:"max_repeats" default:"8" min:"0" max:"1000000" nullable:"true"`
	// How values for one key of state are merged, by key: last_wins, merge_list or merge_map.
	KeyStrategies map[string]protocol.KeyStrategy `json:"key_strategies" enum:"last_wins,merge_list,merge_map"`
	// A call whose right answer is known. The hook is asked it, as a dry run, when it is loaded, at each
	// reload and once a minute while it is idle. While it answers wrongly only its deny, ask and abort
	// count, and any other answer denies.
	Canary *canary `json:"canary"`
	// Handed to the hook as it is.
	Config jsontext.Value `json:"config"`
}

type canary struct {
	// Where the hook is asked; not approve_tool.
	Stage stageName `json:"stage" required:"true"`
	// What it is asked: the params of a call at that stage.
	Params jsontext.Value `json:"params" required:"true"`
	// The verb of the right answer.
	Expect protocol.Action `json:"expect" required:"true" enum:"continue,modify,respond,allow,ask,deny,inject,abort_turn,hard_abort"`
}

type builtin struct {
	entry
	// How long one answer may take, in milliseconds; of human, how long a person has. More than
	// 600000 only without intercept. Default: hooks.defaults; a built-in may have its own.
	TimeoutMS *int `json:"timeout_ms" min:"1" max:"86400000"`
}

type process struct {
	entry
	// How hookd and the hook talk: lines over standard input and output.
	Transport string `json:"transport" default:"stdio" enum:"stdio"`
	// The program and its arguments, never a shell line. A program without a slash is found
	// through PATH; a relative path starts at this file's folder.
	Command []text `json:"command" required:"true"`
	// Where the program starts. Default: this file's folder, where relative paths start too.
	Dir filePath `json:"dir" default:""`
	// Variables for the program, on top of a short list of harmless ones.
	Env map[envName]text `json:"env"`
	// Names of variables that the program gets from hookd's own environment.
	PassEnv []envName `json:"pass_env"`
	// How many calls the program works on at once; 0: as many as it says in its greeting, and one
	// when it says nothing, as a script does that answers one line after the other.
	MaxInFlight int `json:"max_in_flight" default:"0" min:"0" max:"1024"`
	// What the program speaks: hookd's own protocol, PicoClaw's (picoclaw), or what the examples on
	// PicoClaw's website answer (picoclaw-site).
	Dialect string `json:"dialect" default:"hookd" enum:"hookd,picoclaw,picoclaw-site"`
	// What the program may reach, as far as the system can enforce that. Without this key: what hookd may.
	Sandbox *sandbox `json:"sandbox"`
	// The SHA-256, in hex, that the program's file must have, or the program is not started and every
	// call is denied. An object pins several files, by path: {"gate.py": "…"}.
	SHA256 pins `json:"sha256"`
}

type sandbox struct {
	// Files and folders that may be read and executed, beside those of the system, the program itself,
	// the files that its command names, and dir.
	Read []filePath `json:"read"`
	// Files and folders that may be changed, and read.
	Write []filePath `json:"write"`
	// true: it may open connections and listen.
	Network bool `json:"network" default:"false"`
}

type match struct {
	// Names of tools: plain words, | between alternatives, * and ? as globs, or /…/ for a regular
	// expression. Ignored where there is no tool. Empty: all.
	Tools []pattern `json:"tools"`
	// Names of agents, in the same way. Empty: all.
	Agents []pattern `json:"agents"`
}

// checked is a text that has a form of its own. The reader asks it after the
// text was set. The error must not quote what may be a secret.
type checked interface{ check() error }

type (
	hookName     string
	envName      string
	eventPattern string
	stageName    string
	pattern      string
	octal        string
	filePath     string
	homePath     string
	projectPath  string
	loopback     string
	ifText       string
	text         string
)

func (n hookName) check() error {
	if n == "" || len(n) > 64 || !plain(string(n[:1]), "") || !plain(string(n), "._-") {
		return errors.New("bad name: use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first")
	}
	return nil
}

func (n envName) check() error {
	if n == "" || strings.ContainsAny(string(n), "=\x00") {
		return errors.New("bad variable name: it is empty or holds = or a zero byte")
	}
	return nil
}

func (p eventPattern) check() error {
	_, err := protocol.ParseSubscription(string(p))
	return err
}

func (n stageName) check() error {
	if names := protocol.StageNames(); !slices.Contains(names, string(n)) {
		return fmt.Errorf("unknown stage %s%s", quote(string(n)), suggest(string(n), names))
	}
	return nil
}

func (p pattern) check() error {
	_, err := hook.NewMatch([]string{string(p)}, nil)
	if m, ok := errors.AsType[*hook.MatchError](err); ok {
		return m.Err
	}
	return err
}

func (m octal) check() error {
	if bits, err := strconv.ParseUint(string(m), 8, 32); err != nil || bits > 0o777 || len(m) < 3 {
		return fmt.Errorf("bad mode %s: expected three octal digits such as \"0600\"", quote(string(m)))
	}
	return nil
}

func (p filePath) check() error {
	if strings.HasPrefix(string(p), "~") {
		return errors.New("~ is not expanded here: write the path in full")
	}
	return text(p).check()
}

// check of a path in which a leading ~/ is expanded.
func (p homePath) check() error {
	if rest, ok := strings.CutPrefix(string(p), "~"); ok && rest != "" && rest[0] != '/' {
		return errors.New("only ~/ is expanded here, not another user's ~name")
	}
	return text(p).check()
}

func (p projectPath) check() error {
	if p == "" || !filepath.IsLocal(string(p)) {
		return errors.New("must be a path below the project's folder")
	}
	return text(p).check()
}

func (l loopback) check() error {
	if l == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(string(l))
	if err != nil {
		return errors.New("expected an address and a port, such as 127.0.0.1:7465")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s is not on loopback: others on the network could reach it", quote(host))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("bad port %s: agents' configs name it, so it must be fixed", quote(port))
	}
	return nil
}

func (c ifText) check() error {
	if c == "" {
		return nil
	}
	_, err := condition.Compile(string(c))
	return err
}

func (t text) check() error {
	if strings.Contains(string(t), "\x00") {
		return errors.New("a zero byte can't stand here")
	}
	return nil
}

// quote returns what somebody wrote for use in a message, not too long.
func quote(s string) string {
	if r := []rune(s[:min(len(s), 256)]); len(r) > 60 {
		return strconv.Quote(string(r[:60])) + "…"
	}
	return strconv.Quote(s)
}

// suggest names the candidate that word was meant to be, or all of them.
func suggest(word string, candidates []string) string {
	if len(word) <= 64 { // distances to a long word take long
		if hint := protocol.DidYouMean(word, candidates); hint != "" {
			return hint
		}
	}
	return "; known: " + strings.Join(candidates, ", ")
}
