package metrics

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Hook is an observer that turns a [Meter] on while it is mounted. Of several
// hooks of one Meter the config of the newest holds. Make it with [New] and
// close it.
type Hook struct {
	meter  *Meter
	config *config
	log    *zap.Logger
	path   string // of the file; "" = none

	lines chan line
	stop  chan struct{}
	works sync.WaitGroup
	wrote bool // the file; of the goroutine that writes it, and of Close after it
}

// line is what is logged of a session.
type line struct {
	text    string
	session string
	agent   string
	figures Figures
}

const (
	soFar = "session so far"
	ended = "session ended"
	gone  = "session left: the agent disconnected"
	// maxLines is how many lines wait for the log; those beyond are left out.
	maxLines = 64
)

// New makes a Hook of a Meter. folder is where a relative path of the file
// starts. The caller closes the Hook. The error is a *[builtin.ConfigError].
func New(config jsontext.Value, folder string, meter *Meter, log *zap.Logger) (*Hook, error) {
	c, err := readConfig(config)
	if err != nil {
		return nil, err
	}
	h := &Hook{meter: meter, config: c, log: log, lines: make(chan line, maxLines), stop: make(chan struct{})}
	if h.path = c.File; h.path != "" {
		if !filepath.IsAbs(h.path) {
			h.path = filepath.Join(folder, h.path)
		}
		if err := writable(h.path); err != nil {
			return nil, problem("/file", "%w", err)
		}
	}
	meter.enter(h)
	h.works.Go(h.work)
	return h, nil
}

// Close ends the counting, unless another Hook of the Meter is mounted. It takes
// the file away, so that nobody reads figures that stand still.
func (h *Hook) Close() error {
	alone := h.meter.leave(h)
	close(h.stop)
	h.works.Wait()
	if h.wrote && alone {
		return remove(h.path)
	}
	return nil
}

// Events are what a Hook is told.
func Events() []string {
	return []string{
		string(protocol.EventSessionEnd), string(protocol.EventLLMResponse), string(protocol.EventToolExecEnd), string(protocol.EventToolError),
		string(protocol.EventAgentError), string(protocol.EventAgentTimeout), string(protocol.EventError),
	}
}

// Observe counts what agents tell in events.
func (h *Hook) Observe(_ context.Context, ev *hook.Event) error {
	h.meter.observe(h, ev.Event)
	return nil
}

// say hands a line to the goroutine that logs, and never waits.
func (h *Hook) say(l line) {
	l.session = strings.Clone(l.session) // it may share the memory of a request
	select {
	case h.lines <- l:
	default:
	}
}

// work logs lines and writes the file until the hook is closed.
func (h *Hook) work() {
	var due <-chan time.Time
	if h.path != "" {
		tick := time.NewTicker(time.Duration(*h.config.FileSeconds) * time.Second)
		defer tick.Stop()
		due = tick.C
	}
	failing := false
	for {
		select {
		case l := <-h.lines:
			h.print(l)
		case <-due:
			err := h.meter.write(h.path)
			if err != nil && !failing {
				h.log.Error("the file of metrics is not written; what is counted goes on", zap.Error(err))
			} else if err == nil && failing {
				h.log.Info("the file of metrics is written again")
			}
			failing = err != nil
			h.wrote = h.wrote || err == nil
		case <-h.stop:
			for { // what was said before
				select {
				case l := <-h.lines:
					h.print(l)
				default:
					return
				}
			}
		}
	}
}

func (h *Hook) print(l line) {
	f := &l.figures
	fields := []zap.Field{
		zap.String("session", l.session), zap.String("agent", l.agent), zap.Int64("steps", f.Steps), zap.Int64("tool_calls", f.ToolCalls),
		zap.Int64("tokens_in", f.Usage.Input), zap.Int64("tokens_out", f.Usage.Output),
	}
	if f.Usage.Total > 0 {
		fields = append(fields, zap.Int64("tokens_unsplit", f.Usage.Total))
	}
	h.log.Info(l.text, append(fields, zap.Int64("errors", f.Errors()), zap.Int64("denials", f.Denials), zap.Duration("since_start", f.Last.Sub(f.Started)))...)
}
