package builtin

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Log is an observer that writes each event, decisions among them, as one line
// of JSON. What was said and done may hold secrets, so a line holds who, what
// and how it ended, but neither messages nor arguments unless the config asks
// for payloads. Make it with [NewLog] and close it.
type Log struct {
	out     io.Writer
	file    *os.File // nil when out is somebody else's
	payload bool
	level   int
}

// logConfig is the config of a [Log].
type logConfig struct {
	// Path of the file that lines are appended to; empty means stderr.
	Path string `json:"path"`
	// Level is the least severity that is written; empty means all.
	Level string `json:"level"`
	// Payload writes whole payloads, secrets and all.
	Payload bool `json:"payload"`
}

var logLevels = []string{"debug", "info", "warn", "error"}

// ValidateLog reports what is wrong in the config of a [Log]: an object with
// "path" (empty: stderr), "level" (debug, info, warn, error) and "payload"
// (true: also messages and arguments), all optional. The error is a
// *[ConfigError].
func ValidateLog(config jsontext.Value) error {
	_, err := readLogConfig(config)
	return err
}

func readLogConfig(config jsontext.Value) (logConfig, error) {
	c := logConfig{}
	if err := ReadConfig(config, &c); err != nil {
		return c, err
	}
	if c.Level != "" && !slices.Contains(logLevels, c.Level) {
		return c, &ConfigError{"/level", fmt.Errorf("unknown level %q, one of %s%s", c.Level, strings.Join(logLevels, ", "), protocol.DidYouMean(c.Level, logLevels))}
	}
	return c, nil
}

// NewLog opens a log. A relative path in config is relative to folder. Without
// a path lines go to stderr, one Write each, maybe from several goroutines at
// once. A file is made with mode 0600 in a folder that must exist. The caller
// closes the log. An error about the config is a *[ConfigError].
func NewLog(config jsontext.Value, folder string, stderr io.Writer) (*Log, error) {
	c, err := readLogConfig(config)
	if err != nil {
		return nil, err
	}
	l := &Log{out: stderr, payload: c.Payload, level: slices.Index(logLevels, c.Level)}
	if c.Path == "" {
		return l, nil
	}
	if !filepath.IsAbs(c.Path) {
		c.Path = filepath.Join(folder, c.Path)
	}
	// Non-blocking, so that opening a named pipe without a reader does not hang.
	file, err := os.OpenFile(c.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, &ConfigError{"/path", fmt.Errorf("%w; its folder must exist and be writable", err)}
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() && info.Mode()&os.ModeDevice == 0 {
		file.Close()
		return nil, &ConfigError{"/path", fmt.Errorf("%s is not a file", c.Path)}
	}
	l.out, l.file = file, file
	return l, nil
}

// Observe writes one line. An error means that the line, or a part of it, is
// missing.
func (l *Log) Observe(_ context.Context, ev *hook.Event) error {
	if ev.Missed == 0 && slices.Index(logLevels, ev.Severity) < l.level {
		return nil
	}
	if _, err := l.out.Write(l.line(ev)); err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

// Close closes the file, if the log has one.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// idMembers of meta, and summaryMembers of a payload, stand in every line that
// has them. None of them holds what a user, a model or a tool said, but reason
// and detail may quote it, because a hook wrote them for people.
var (
	idMembers = []string{
		"agent", "agent_id", "session_id", "turn_id", "parent_turn_id", "task_id", "user_id", "node_id",
		"iteration", "model", "cwd", "trace_id", "generation",
	}
	summaryMembers = []string{
		"stage", "tool", "digest", "action", "reason", "decided_by", "degraded", "duration_us", "duration_ms",
		"is_error", "status", "steps", "ticket", "approved", "by", "hook", "outcome", "state", "detail", "generation",
	}
)

func (l *Log) line(ev *hook.Event) []byte {
	b := append(make([]byte, 0, 512), `{"time":"`...)
	b = ev.Time.AppendFormat(b, "2006-01-02T15:04:05.000000Z07:00")
	b = append(b, `","kind":`...)
	b = protocol.AppendString(b, ev.Kind)
	for _, m := range [][2]string{{"severity", ev.Severity}, {"source", ev.Source}, {"id", ev.ID}} {
		if m[1] != "" {
			b = appendMember(b, m[0], protocol.Quote(m[1]))
		}
	}
	b = appendMember(b, "seq", strconv.AppendUint(nil, ev.Seq, 10))
	if ev.Missed > 0 {
		b = appendMember(b, "missed", strconv.AppendUint(nil, ev.Missed, 10))
	}
	b = appendPicked(b, "meta", ev.Meta, idMembers)
	if ev.Payload != nil {
		b = appendMember(b, "payload_bytes", strconv.AppendInt(nil, int64(len(ev.Payload)), 10))
		if l.payload {
			b = appendMember(b, "payload", protocol.Compact(ev.Payload))
		} else if members, err := protocol.ParseObject(ev.Payload); err == nil {
			b = appendPicked(b, "payload", members, summaryMembers)
		}
	}
	return append(b, "}\n"...)
}

// appendPicked appends those members of an object that are picked, if any. A
// member that is an object or a list can hold anything and is left out, except
// "degraded", which hookd makes.
func appendPicked(b []byte, name string, from protocol.Object, picked []string) []byte {
	var some protocol.Object
	for _, m := range from {
		free := (m.Value.Kind() == '{' || m.Value.Kind() == '[') && m.Name != "degraded"
		if slices.Contains(picked, m.Name) && !free {
			some = append(some, protocol.Member{Name: m.Name, Value: protocol.Compact(m.Value)})
		}
	}
	if some == nil {
		return b
	}
	return appendMember(b, name, some.AppendJSON(nil))
}

func appendMember(b []byte, name string, value []byte) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return append(b, value...)
}
