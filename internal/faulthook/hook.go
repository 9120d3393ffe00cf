package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/internal/fault"
	"github.com/hookd/hookd/protocol"
)

// longestLine is more than hookd sends by default.
const longestLine = 64 << 20

// hook is the state of this program.
type hook struct {
	mode         fault.Mode
	while, until string // files that say when the mode holds
	events       atomic.Int64
}

// wrong reports whether the mode holds now.
func (h *hook) wrong() bool {
	return (h.while == "" || exists(h.while)) && (h.until == "" || !exists(h.until))
}

// lives reports whether the mode is this one and holds now.
func (h *hook) lives(l fault.Life) bool { return h.mode.Life == l && h.wrong() }

// message is what hookd sends, as far as this hook looks at it.
type message struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Error  jsontext.Value `json:"error"` // hookd answers what it was asked
	Params struct {
		ID        jsontext.Value `json:"id"`
		Arguments jsontext.Value `json:"arguments"`
		Context   fault.Orders   `json:"context"`
	} `json:"params"`
}

// live is served until hookd closes stdin.
func (h *hook) live(stdin io.Reader) {
	switch {
	case h.lives(fault.ExitAtStart):
		say("I can't start")
		os.Exit(h.mode.Number)
	case h.lives(fault.StopAtStart):
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case h.lives(fault.IgnoresTerm):
		signal.Ignore(syscall.SIGTERM)
		defer time.Sleep(time.Hour)
	}
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			say("can't read what hookd sent:", err)
			os.Exit(65)
		}
		h.hear(&m)
	}
}

func (h *hook) hear(m *message) {
	switch {
	case m.Method == protocol.MethodHello:
		h.greet(string(m.ID))
	case m.Method == protocol.MethodEvent:
		h.events.Add(1)
	case m.Method == "$/cancelRequest":
		say("cancelled", string(m.Params.ID))
	case m.Error != nil:
		say("hookd says", string(m.Error))
	case m.ID != nil:
		orders := m.Params.Context
		if h.mode.Life == "" && h.mode.Name != "obey" && h.wrong() {
			orders = h.mode.Calls
		}
		if orders.Deaf != "" {
			say("deaf")
			waitFor(orders.Deaf)
		}
		yes := fault.Yes
		if m.Method == "hook."+string(protocol.StageApproveTool) {
			yes = `$RESULT{"approved":true}}`
		}
		go h.obey(orders, fault.Facts{ID: string(m.ID), Arguments: string(m.Params.Arguments)}, yes) // ends with this program
	}
}

// greet answers the greeting, or not.
func (h *hook) greet(id string) {
	answer := `{"ok":true}`
	switch {
	case h.lives(fault.NoGreeting):
		return
	case h.lives(fault.Refuses):
		answer = `{"ok":false,"reason":"no licence"}`
	case h.lives(fault.Version99):
		answer = `{"version":99}`
	case h.lives(fault.ClosesStdin):
		os.Stdin.Close()
	}
	h.write(fault.Says(answer), fault.Facts{ID: id})
	switch {
	case h.lives(fault.CrashLoop):
		time.AfterFunc(time.Duration(h.mode.Number)*time.Millisecond, func() { os.Exit(3) })
	case h.lives(fault.ClosesStdout):
		os.Stdout.Close()
	case h.lives(fault.NeverReads), h.lives(fault.ClosesStdin):
		time.Sleep(time.Hour)
	}
}

// write writes what stands in the orders.
func (h *hook) write(o fault.Orders, facts fault.Facts) {
	facts.Events = h.events.Load()
	text := o.Expand(o.Write, facts)
	if !o.Open {
		text += "\n"
	}
	then := ""
	if o.Then != "" {
		then = o.Expand(o.Then, facts) + "\n"
	}
	out := io.Writer(os.Stdout)
	if o.Times > 1 {
		b := bufio.NewWriterSize(os.Stdout, 64<<10)
		defer b.Flush()
		out = b
	}
	for range max(o.Times, 1) {
		if _, err := io.WriteString(out, text); err != nil {
			return // hookd may have closed it
		}
	}
	_, _ = io.WriteString(out, then)
}

func say(words ...any) { fmt.Fprintln(os.Stderr, words...) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// waitFor waits for a file that somebody will make.
func waitFor(path string) {
	for path != "" && !exists(path) {
		time.Sleep(2 * time.Millisecond)
	}
}
