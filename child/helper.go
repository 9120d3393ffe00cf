package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
)

// helperWord is the first argument of the helper.
const helperWord = "__exec"

// The files that the helper is started with, beside the standard three.
const (
	statusFD  = 3
	programFD = 4 // only when a pinned program is executed
)

// helperExit is the exit code of a helper that could not become the child. It
// decides nothing: what went wrong stands in the status pipe.
const helperExit = 125

// Helper lets a Spawner start its children through this program itself: a copy
// of it limits itself and then becomes the child. Get it from Main; nil starts
// children directly, without these limits.
type Helper struct{ path string }

// Main must be called first in the main of a program, or in TestMain, that
// wants a Helper. In a process that a Spawner has started as one it does not
// return, but becomes the child.
func Main() *Helper {
	if len(os.Args) > 1 && os.Args[1] == helperWord {
		becomeChild(os.Args[2:])
	}
	path := "/proc/self/exe" // also when the file was replaced since
	if _, err := os.Stat(path); err != nil {
		if path, err = os.Executable(); err != nil {
			return nil
		}
	}
	return &Helper{path}
}

// Confinement says how a child is limited beyond what its user is.
type Confinement struct {
	// Active are the measures in force, such as "no_new_privs" or "nofile=1024".
	Active []string `json:"active"`
	// Missing are those that were wanted and could not be had, with the reason.
	Missing []string `json:"missing"`
}

// unconfined is how a child is limited that is started without a Helper.
func unconfined(sandbox *Sandbox) *Confinement {
	c := &Confinement{Active: []string{}, Missing: []string{"limits: this program does not start hooks through itself"}}
	if sandbox != nil {
		c.Missing = append(c.Missing, "sandbox: nothing of it is enforced, for the same reason")
	}
	return c
}

// errand is what the helper is to do.
type errand struct {
	Path    string `json:"path"`
	Program bool   `json:"program"` // execute the open file, not what is at Path now
	Parent  int    `json:"parent"`
	// Background is [Spec.Background].
	Background bool   `json:"background,omitempty"`
	Fence      *fence `json:"fence"`
}

// report is a line from the helper: at last what is in force, or what failed.
type report struct {
	Confinement *Confinement  `json:"confinement,omitempty"`
	Op          string        `json:"op,omitempty"`
	Errno       syscall.Errno `json:"errno,omitempty"`
	Text        string        `json:"text,omitempty"`
}

// becomeChild is the helper. It never returns.
func becomeChild(args []string) {
	// Some limits are a thread's. The one that executes the program is the one
	// that stays.
	runtime.LockOSThread()
	status := os.NewFile(statusFD, "status")
	tell := func(r report) {
		line, err := json.Marshal(r)
		if err == nil {
			_, err = status.Write(append(line, '\n'))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "hookd "+helperWord+" is what hookd itself starts hooks with; it is of no other use")
			os.Exit(helperExit)
		}
	}
	var e errand
	if len(args) < 2 || json.Unmarshal([]byte(args[0]), &e) != nil {
		tell(report{Op: "start", Text: "the helper was called with other arguments than this hookd gives it: hookd was replaced, restart it"})
		os.Exit(helperExit)
	}
	c, err := confine(&e)
	if err != nil {
		tell(failed("confine", err))
		os.Exit(helperExit)
	}
	tell(report{Confinement: c})
	path := e.Path
	if e.Program {
		path = fmt.Sprintf("/proc/self/fd/%d", programFD)
	}
	tell(failed("run", syscall.Exec(path, args[1:], os.Environ())))
	os.Exit(helperExit)
}

func failed(op string, err error) report {
	r := report{Op: op, Text: err.Error()}
	r.Errno, _ = errors.AsType[syscall.Errno](err)
	return r
}

// lead makes cmd start the helper, which then becomes what cmd was. status is
// where it says how that went.
func (h *Helper) lead(cmd *exec.Cmd, o order, status *os.File) error {
	text, err := json.Marshal(errand{Path: cmd.Path, Program: o.program != nil, Parent: os.Getpid(), Background: o.Background, Fence: o.fence})
	if err != nil {
		return err
	}
	// A program that is several commands tells by its own name which it is.
	cmd.Args = append([]string{os.Args[0], helperWord, string(text)}, cmd.Args...)
	cmd.Path = h.path
	cmd.ExtraFiles = []*os.File{status}
	if o.program != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, o.program)
	}
	return nil
}

// maxReport is more than a helper has to say, in bytes.
const maxReport = 64 << 10

// awaitHelper waits until the helper has become the program, and returns what
// is in force then. The error is a *StartError, or the cause of ctx.
func awaitHelper(ctx context.Context, status *os.File, path string) (*Confinement, error) {
	defer status.Close()
	defer context.AfterFunc(ctx, func() {
		_ = status.SetReadDeadline(time.Unix(1, 0)) // a pipe has deadlines
	})()
	text, err := io.ReadAll(io.LimitReader(status, maxReport))
	if ctx.Err() != nil && err != nil {
		return nil, context.Cause(ctx)
	}
	var c *Confinement
	for line := range bytes.Lines(text) {
		var r report
		if json.Unmarshal(line, &r) != nil {
			break
		}
		switch {
		case r.Op == "":
			c = r.Confinement
		case r.Op == "run":
			return nil, explain(path, r.Errno)
		default:
			return nil, &StartError{r.Op, path, errors.New(r.Text), ""}
		}
	}
	if c == nil {
		return nil, &StartError{"start", path, errors.New("the helper ended before it could become this program"), "start it again; when that does not help, hookd was replaced: restart it"}
	}
	return c, nil
}
