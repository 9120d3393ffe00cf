package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/client"
)

const (
	commandTime = 10 * time.Second
	maxOutput   = 64 << 10 // bytes of a result
)

// tools are three real tools that work in one folder.
type tools struct {
	folder      string
	root        *os.Root // files outside of the folder are not reached, by no link either
	temporary   bool
	commandTime time.Duration
}

// openTools lets tools work in folder, and in a new one if it is empty.
func openTools(folder string) (t *tools, err error) {
	t = &tools{folder: folder, commandTime: commandTime}
	if folder == "" {
		t.temporary = true
		if t.folder, err = os.MkdirTemp("", "agent"); err != nil {
			return nil, err
		}
	}
	t.root, err = os.OpenRoot(t.folder)
	return t, err
}

func (t *tools) close() {
	_ = t.root.Close()
	if t.temporary {
		_ = os.RemoveAll(t.folder)
	}
}

// definitions are what the model is told of the tools.
func (t *tools) definitions() any {
	type tool struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	return []tool{
		{"read_file", "{path}: returns the text of a file"},
		{"write_file", "{path, content}: writes a file"},
		{"bash", "{command}: runs a shell command"},
	}
}

// readOnly tells hooks what a tool does; nil means anything.
func (t *tools) readOnly(tool string) *bool {
	if tool == "bash" {
		return nil
	}
	return new(tool == "read_file")
}

// run runs a tool. Arguments are read strictly: names in another case or twice
// would mean one thing to a hook and another here.
func (t *tools) run(ctx context.Context, tool string, arguments jsontext.Value) client.Result {
	var args struct {
		Path    string `json:"path"`
		Content string `json:"content"`
		Command string `json:"command"`
	}
	var out string
	err := json.Unmarshal(arguments, &args, json.RejectUnknownMembers(true))
	switch {
	case err != nil:
	case tool == "read_file":
		out, err = t.readFile(args.Path)
	case tool == "write_file":
		out, err = t.writeFile(args.Path, args.Content)
	case tool == "bash":
		out, err = t.bash(ctx, args.Command)
	default:
		err = errors.New("there is no such tool")
	}
	if err != nil {
		return client.Result{Content: out + "[" + err.Error() + "]", IsError: true}
	}
	return client.Result{Content: out}
}

func (t *tools) readFile(name string) (string, error) {
	file, err := t.root.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var out capped
	_, err = io.Copy(&out, file)
	return out.text.String(), err
}

func (t *tools) writeFile(name, content string) (string, error) {
	if err := t.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return "", err
	}
	return "written", t.root.WriteFile(name, []byte(content), 0o644)
}

// bash runs a command, and ends it with all that it has started when it takes
// too long.
func (t *tools) bash(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.commandTime, fmt.Errorf("stopped after %s", t.commandTime))
	defer cancel()
	var out capped
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.folder, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay): // something in the background still writes
		_ = cmd.Cancel()
	}
	return out.text.String(), err
}

// capped keeps the beginning of what is written to it.
type capped struct{ text bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	c.text.Write(p[:min(len(p), maxOutput-c.text.Len())])
	return len(p), nil
}
