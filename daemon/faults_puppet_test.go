package daemon_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hookd/hookd/protocol"
)

// asPuppet says how a puppet starts.
const asPuppet = "HOOKD_TEST_PUPPET"

// orders are what a puppet does with a call; they come in the call's context.
// The zero value is a hook that says yes. What there is to do is done in the
// order of the fields.
type orders struct {
	// Deaf: it says so on stderr and reads nothing more until this file is there.
	Deaf string `json:"deaf,omitempty"`
	// Stderr is how many bytes it writes there, in lines of 1000.
	Stderr int `json:"stderr,omitempty"`
	// Leave starts a process that outlives it: "hold" one that keeps its pipes,
	// "escape" one in a session of its own that does. Its id goes to stderr.
	Leave string `json:"leave,omitempty"`
	// After: it waits until this file is there.
	After string `json:"after,omitempty"`
	// Silent: it writes no answer.
	Silent bool `json:"silent,omitempty"`
	// Write is what it writes instead of a yes, Times over (0 is once), a line
	// end behind it unless Open. In it $ID, $RESULT, $EVENTS, $PAD and $FF stand
	// for the id of the call, an answer up to its result, how many events came,
	// Pad bytes, and a byte that is not UTF-8.
	Write string `json:"write,omitempty"`
	Times int    `json:"times,omitempty"`
	Open  bool   `json:"open,omitempty"`
	Pad   int    `json:"pad,omitempty"`
	// Signal is sent to itself, and Exit ends it.
	Signal syscall.Signal `json:"signal,omitempty"`
	Exit   *int           `json:"exit,omitempty"`
}

// says are the orders to answer with this result.
func says(result string) orders { return orders{Write: `$RESULT` + result + `}`} }

// puppet is a hook on the bare wire that does what it is told, right or wrong.
// How it starts:
//
//	exit=N         it ends with N before it is greeted
//	stop           it is stopped before it is greeted
//	crash=FILE     it ends soon after it was greeted while the file is there
//	stubborn=FILE  neither the end of stdin nor SIGTERM ends it until the file is there
func puppet(how string) {
	how, arg, _ := strings.Cut(how, "=")
	switch {
	case how == "exit":
		fmt.Fprintln(os.Stderr, "I can't start")
		exit(arg)
	case how == "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case how == "stubborn" && !exists(arg):
		signal.Ignore(syscall.SIGTERM)
		defer time.Sleep(time.Hour)
	}
	var events atomic.Int64
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				ID      json.RawMessage
				Context orders
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			panic(err)
		}
		switch {
		case m.Method == protocol.MethodHello:
			orders{}.obey(string(m.ID), `{}`, &events)
			if how == "crash" && exists(arg) {
				time.AfterFunc(300*time.Millisecond, func() { os.Exit(3) })
			}
		case m.Method == protocol.MethodEvent:
			events.Add(1)
		case m.Method == "$/cancelRequest":
			fmt.Fprintln(os.Stderr, "cancelled", string(m.Params.ID))
		case m.Method == "hook.approve_tool":
			go m.Params.Context.obey(string(m.ID), `{"approved":true}`, &events)
		default:
			if file := m.Params.Context.Deaf; file != "" {
				fmt.Fprintln(os.Stderr, "deaf")
				waitFor(file)
			}
			go m.Params.Context.obey(string(m.ID), `{}`, &events)
		}
	}
}

// obey answers one call, with yes unless it shall do something else.
func (o orders) obey(id, yes string, events *atomic.Int64) {
	for range o.Stderr / 1000 {
		fmt.Fprintln(os.Stderr, strings.Repeat("!", 999))
	}
	if o.Leave != "" {
		cmd := exec.Command("sleep", "1000")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: o.Leave == "escape"}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stderr, "left", cmd.Process.Pid)
	}
	waitFor(o.After)
	if !o.Silent {
		text := o.Write
		if text == "" {
			text = "$RESULT" + yes + "}"
		}
		text = strings.ReplaceAll(text, "$RESULT", `{"jsonrpc":"2.0","id":$ID,"result":`)
		text = strings.NewReplacer("$ID", id, "$EVENTS", strconv.FormatInt(events.Load(), 10), "$PAD", strings.Repeat("x", o.Pad), "$FF", "\xff").Replace(text)
		if !o.Open {
			text += "\n"
		}
		for range max(o.Times, 1) {
			_, _ = os.Stdout.WriteString(text) // hookd may have closed it
		}
	}
	if o.Signal != 0 {
		_ = syscall.Kill(os.Getpid(), o.Signal)
	}
	if o.Exit != nil {
		os.Exit(*o.Exit)
	}
}

func exit(code string) {
	n, err := strconv.Atoi(code)
	if err != nil {
		panic(err)
	}
	os.Exit(n)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// waitFor waits for a file that the test will make.
func waitFor(path string) {
	for path != "" && !exists(path) {
		time.Sleep(2 * time.Millisecond)
	}
}
