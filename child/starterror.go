package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrClosed is why a Spawner that was closed starts nothing any more.
var ErrClosed = errors.New("the spawner is closed")

// StartError says why a child was not started. Unwrap leads to the errno, or to
// exec.ErrNotFound, ErrClosed or the cause of the context.
type StartError struct {
	Op   string // what was tried, such as "run"
	Path string // on which file, folder or command
	Err  error  // why not
	Hint string // what to do about it; may be empty
}

// Error says what failed, on what, why, and what to do next.
func (e *StartError) Error() string {
	text := e.Op + " " + e.Path + ": " + e.Err.Error()
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }

// Resolve returns the absolute path of the file that runs for argv0 in dir
// ("" is the current folder). A name without a slash is looked for in hookd's
// PATH; a relative path with a slash is relative to dir. The error is a
// *StartError when dir or the file is missing or can't be run at first sight.
func Resolve(argv0, dir string) (string, error) {
	if dir != "" {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = syscall.ENOTDIR
		}
		if err != nil {
			return "", &StartError{"enter folder", dir, errnoOf(err), "create it, or correct dir"}
		}
	}
	if !strings.Contains(argv0, "/") {
		path, err := exec.LookPath(argv0)
		switch {
		case errors.Is(err, exec.ErrDot):
			return "", &StartError{"find command", argv0, exec.ErrDot, "write ./" + argv0 + " if the file in the current folder is meant"}
		case err != nil:
			return "", &StartError{"find command", argv0, exec.ErrNotFound, "install it, add its folder to hookd's PATH, or give its full path"}
		}
		return path, nil
	}
	path := argv0
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	// The child changes to dir before it is executed, so the path must not
	// depend on the current folder.
	path, err := filepath.Abs(path)
	if err != nil {
		return "", &StartError{"run", argv0, errnoOf(err), ""}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", &StartError{"run", path, errnoOf(err), "correct the path in command"}
	case err != nil:
		return "", &StartError{"run", path, errnoOf(err), ""}
	case info.IsDir():
		return "", &StartError{"run", path, syscall.EISDIR, "name a file in it"}
	case info.Mode()&0o111 == 0:
		return "", &StartError{"run", path, syscall.EACCES, "make it executable: chmod +x " + path}
	}
	return path, nil
}

// explain turns what the system said about executing path into an error a
// person can act on. Resolve has seen the file, so an error that reads "no such
// file" is about another file.
func explain(path string, err error) *StartError {
	failed := &StartError{Op: "run", Path: path, Err: errnoOf(err)}
	interpreter, script := readInterpreter(path)
	switch {
	case errors.Is(err, syscall.ENOENT) && script:
		failed.Err = fmt.Errorf("bad interpreter %q: %w", interpreter, failed.Err)
		failed.Hint = "install it, or correct the #! line"
		if strings.HasSuffix(interpreter, "\r") {
			failed.Hint = "the #! line ends in a carriage return: save the file with Unix line ends"
		}
	case errors.Is(err, syscall.ENOENT):
		failed.Hint = "the file is gone, or the program loader it was built for is missing here"
	case errors.Is(err, syscall.EACCES) && script:
		failed.Hint = fmt.Sprintf("check the permissions of the file, of its folders and of its interpreter %q", interpreter)
	case errors.Is(err, syscall.EACCES):
		failed.Hint = "check the permissions of the file and of its folders, and that its file system may hold programs (noexec)"
	case errors.Is(err, syscall.ENOEXEC):
		failed.Hint = "it is neither a program for this machine nor a script with a #! line: add one such as #!/bin/sh"
	case errors.Is(err, syscall.ETXTBSY):
		failed.Hint = "the file is still open for writing: wait until it is written, or replace it by a rename"
	case errors.Is(err, syscall.E2BIG):
		failed.Hint = "arguments and environment are too large together"
	}
	return failed
}

// readInterpreter returns the interpreter that the script at path names, and
// whether it names one.
func readInterpreter(path string) (string, bool) {
	file, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer file.Close()
	head := make([]byte, 256) // what the kernel looks at
	n, _ := io.ReadFull(file, head)
	return interpreterOf(head[:n])
}

// interpreterOf reads a #! line as the kernel does: blanks end the path, other
// white space is part of it.
func interpreterOf(head []byte) (string, bool) {
	line, script := bytes.CutPrefix(head, []byte("#!"))
	if !script {
		return "", false
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	line = bytes.TrimLeft(line, " \t")
	if end := bytes.IndexAny(line, " \t\x00"); end >= 0 {
		line = line[:end]
	}
	return string(line), len(line) > 0
}

// errnoOf strips the path and operation that the os package put around an
// errno, because StartError names them itself.
func errnoOf(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}
