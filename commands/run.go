package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Limits of a run.
const (
	// maxOutput is how much a script may print.
	maxOutput = 1 << 20
	// maxStderr is how much of its standard error is kept.
	maxStderr = 64 << 10
	// DefaultInFlight is how many scripts run at once, all files together.
	DefaultInFlight = 16
)

// RunnerOptions configure a [Runner].
type RunnerOptions struct {
	Spawner *child.Spawner
	// InFlight is how many scripts may run at once; 0 is [DefaultInFlight].
	InFlight int
	// HTTP makes the requests of http handlers; nil = a client of its own,
	// which follows no redirect.
	HTTP *http.Client
	// Progress is told the statusMessage of a handler that begins to run; nil =
	// nobody is.
	Progress func(hook, callID, text string)
	// Getenv looks up hookd's own environment; nil = os.Getenv.
	Getenv func(string) string
}

// Runner runs handlers. Make it with [NewRunner]; it is safe for concurrent
// use.
type Runner struct {
	o     RunnerOptions
	slots chan struct{}

	mu      sync.Mutex
	effects map[string]*effects // by rule

	// Started and Failed count runs.
	Started, Failed atomic.Int64
}

// NewRunner returns a runner.
func NewRunner(o RunnerOptions) *Runner {
	if o.InFlight <= 0 {
		o.InFlight = DefaultInFlight
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if o.Progress == nil {
		o.Progress = func(string, string, string) {}
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	return &Runner{o: o, slots: make(chan struct{}, o.InFlight), effects: map[string]*effects{}}
}

// errTimeout ends the context of a run.
var errTimeout = errors.New("the handler's timeout passed")

// run runs one handler and reads what it said.
func (r *Runner) run(ctx context.Context, f *File, name string, h *Handler, row eventRow, o *occasion, payload []byte) (verdict, error) {
	run, cancel := context.WithTimeoutCause(ctx, h.Timeout, errTimeout)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-run.Done():
		if ctx.Err() != nil {
			return verdict{}, context.Cause(ctx)
		}
		return verdict{}, &hook.Failure{Outcome: protocol.OutcomeOverloaded, Detail: fmt.Sprintf("%d scripts ran all the time (%s)", cap(r.slots), h.Timeout)}
	}
	if h.StatusMessage != "" && o.req != nil {
		r.o.Progress(name, o.req.CallID, h.StatusMessage)
	}
	r.Started.Add(1)
	var e ended
	var err error
	if h.Type == "http" {
		e, err = r.post(run, h, payload)
	} else {
		e, err = r.command(run, f, name, h, o, payload)
	}
	var v verdict
	if err == nil {
		v, err = read(o, row, f.Form, e)
	}
	if err != nil {
		r.Failed.Add(1)
		if ctx.Err() == nil && errors.Is(context.Cause(run), errTimeout) && errors.Is(err, errTimeout) {
			err = &hook.Failure{Outcome: protocol.OutcomeTimeout, Detail: fmt.Sprintf("no answer within %s", h.Timeout)}
		}
		if h.Warn {
			err = warned(err, "its check did not work, and the call went on without it")
		}
	}
	return v, err
}

// warned gives a failure a warning for the user.
func warned(err error, text string) error {
	f, ok := errors.AsType[*hook.Failure](err)
	if !ok {
		return err
	}
	c := *f
	c.Warning = text
	return &c
}

// command runs a script with the payload on its standard input.
func (r *Runner) command(ctx context.Context, f *File, name string, h *Handler, o *occasion, payload []byte) (ended, error) {
	argv := r.argv(f, h, o)
	dir, words := r.dir(f, o), argv
	if h.Args == nil {
		words = plainWords(h.Command, map[string]string{
			"CLAUDE_PROJECT_DIR": r.project(f, o), "CLAUDE_PLUGIN_ROOT": f.Folder(), "HOME": r.o.Getenv("HOME"), "PWD": dir,
		})
	}
	if missing := missingScript(words, dir); missing != "" {
		// An interpreter without its script ends with 2, which would read as a no.
		return ended{}, &hook.Failure{Outcome: protocol.OutcomeSpawnFailed, Detail: missing + ": no such file"}
	}
	var mu sync.Mutex
	var stderr bytes.Buffer
	p, err := r.o.Spawner.Start(ctx, child.Spec{
		Plain: true, // the helper costs more than many a script
		Name:  name, Argv: argv, Dir: dir, Env: r.environ(f, o), PassEnv: h.PassEnv,
		Stderr: func(line []byte, _ int64) {
			mu.Lock()
			defer mu.Unlock()
			if line != nil && stderr.Len()+len(line) < maxStderr {
				stderr.Write(line)
				stderr.WriteByte('\n')
			}
		},
	})
	if err != nil {
		if ctx.Err() != nil {
			return ended{}, context.Cause(ctx)
		}
		if f.inProject && (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOEXEC)) && f.named(h, new([]string)) > 0 {
			return ended{}, cannotRun(err.Error())
		}
		return ended{}, &hook.Failure{Outcome: protocol.OutcomeSpawnFailed, Detail: err.Error(), Err: err}
	}
	defer p.Stdout().Close()
	stop := context.AfterFunc(ctx, p.Kill) // the whole group
	defer stop()
	var writer sync.WaitGroup
	writer.Go(func() {
		// A script may end without reading; what it says counts all the same.
		_, _ = p.Stdin().Write(payload)
		_ = p.Stdin().Close()
	})
	out, readErr := io.ReadAll(io.LimitReader(p.Stdout(), maxOutput+1))
	if len(out) > maxOutput {
		p.Kill()
	}
	<-p.Done()
	writer.Wait()
	switch exit := p.Exit(); {
	case ctx.Err() != nil:
		return ended{}, context.Cause(ctx)
	case len(out) > maxOutput:
		return ended{}, &hook.Failure{Outcome: protocol.OutcomeOversize, Detail: fmt.Sprintf("it printed more than %d bytes", maxOutput)}
	case exit.Err != nil:
		return ended{}, &hook.Failure{Outcome: protocol.OutcomeCrash, Detail: exit.Err.Error(), Err: exit.Err}
	case readErr != nil:
		return ended{}, &hook.Failure{Outcome: protocol.OutcomeHookError, Detail: "read its output: " + readErr.Error(), Err: readErr}
	case f.inProject && (exit.Code == notRunnable || exit.Code == notFound) && f.named(h, new([]string)) > 0:
		return ended{}, cannotRun(fmt.Sprintf("exit status %d", exit.Code))
	default:
		mu.Lock()
		defer mu.Unlock()
		return ended{exit: exit.Code, signal: exit.Signal, stdout: out, stderr: stderr.Bytes()}, nil
	}
}

// How a shell ends that could not run what it was told to.
const (
	notRunnable = 126
	notFound    = 127
)

// cannotRun is the failure of a project's script that was trusted and can't be
// run any more: its mode, or what it needs, is another one.
func cannotRun(why string) error {
	return &hook.Failure{Outcome: protocol.OutcomeUntrustedChanged, Detail: "a script that was trusted can't be run: " + why}
}

// argv is what is run: the program of the exec form, or a shell with the line.
func (r *Runner) argv(f *File, h *Handler, o *occasion) []string {
	if h.Args == nil {
		return []string{"sh", "-c", h.Command}
	}
	expand := strings.NewReplacer("${CLAUDE_PROJECT_DIR}", r.project(f, o), "${CLAUDE_PLUGIN_ROOT}", f.Folder())
	argv := []string{expand.Replace(h.Command)}
	for _, a := range h.Args {
		argv = append(argv, expand.Replace(a))
	}
	return argv
}

// dir is where a script starts: the folder of its file in hookd's form, the
// session's folder in Claude Code's, or for a project's own file the project.
func (r *Runner) dir(f *File, o *occasion) string {
	if f.inProject || f.Form == FormHookd {
		return f.start()
	}
	for _, dir := range []string{o.cwd(), r.project(f, o), r.o.Getenv("HOME")} {
		if info, err := os.Stat(dir); filepath.IsAbs(dir) && err == nil && info.IsDir() {
			return dir
		}
	}
	return "/"
}

// maxClimb is how many folders above the session's are looked at.
const maxClimb = 64

// project is the root of what the session works on: the nearest folder with a
// mark of one, up to the home folder, else the session's own. For a file of a
// project it is that project, whose scripts were trusted.
func (r *Runner) project(f *File, o *occasion) string {
	cwd := o.cwd()
	switch {
	case f.inProject:
		return f.root()
	case !filepath.IsAbs(cwd):
		return cwd
	}
	home := filepath.Clean(r.o.Getenv("HOME"))
	dir := filepath.Clean(cwd)
	for range maxClimb {
		for _, mark := range []string{".git", ".claude", ".hookd"} {
			if mark == ".claude" && dir == home {
				continue // the user's settings, not a project's
			}
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
				return dir
			}
		}
		if dir == home || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return cwd
}

// environ is what scripts that were written for Claude Code look for.
func (r *Runner) environ(f *File, o *occasion) map[string]string {
	env := map[string]string{
		"CLAUDE_PROJECT_DIR": r.project(f, o), "CLAUDE_PLUGIN_ROOT": f.Folder(),
		"HOOKD_AGENT": protocol.MetaString(o.meta, "agent"), "HOOKD_SESSION": o.session(),
	}
	if effort := protocol.MetaString(members(o.native.Get("effort")), "level"); effort != "" {
		env["CLAUDE_EFFORT"] = effort
	}
	for name, value := range env {
		if value == "" || strings.Contains(value, "\x00") {
			delete(env, name)
		}
	}
	return env
}

// post sends the payload to a URL. A status beyond 2xx is a failure; an empty
// body is no opinion.
func (r *Runner) post(ctx context.Context, h *Handler, payload []byte) (ended, error) {
	fail := func(format string, args ...any) (ended, error) {
		if ctx.Err() != nil {
			return ended{}, context.Cause(ctx)
		}
		return ended{}, errOutput(format, args...)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(payload))
	if err != nil {
		return fail("%v", err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range h.Headers {
		req.Header.Set(name, r.header(value, h.AllowedEnv))
	}
	resp, err := r.o.HTTP.Do(req)
	if err != nil {
		return fail("post: %v", unwrapURL(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	switch {
	case err != nil:
		return fail("read the answer: %v", err)
	case len(body) > maxOutput:
		return ended{}, &hook.Failure{Outcome: protocol.OutcomeOversize, Detail: fmt.Sprintf("it answered more than %d bytes", maxOutput)}
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return fail("it answered with status %d", resp.StatusCode)
	case plain(body) != "" && !strings.HasPrefix(plain(body), "{"):
		return fail("its answer is no JSON object")
	}
	return ended{stdout: body}, nil
}

// unwrapURL drops the URL, which may hold a secret, from an error.
func unwrapURL(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// header puts the allowed variables into a header's value.
func (r *Runner) header(value string, allowed []string) string {
	return os.Expand(value, func(name string) string {
		for _, a := range allowed {
			if a == name {
				return r.o.Getenv(name)
			}
		}
		return ""
	})
}
