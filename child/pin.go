package child

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// Pin is the content that a file must have when a child is started.
type Pin struct {
	// Path is the file, or a bare name to be found through PATH.
	Path string
	// SHA256 is the digest of its content, in lower case hex.
	SHA256 string
}

// ChangedError says that a pinned file is not what it was. It is what a
// [StartError] wraps then.
type ChangedError struct {
	Want string
	// Got is the file's digest; empty when it can't be read, for the reason Err.
	Got string
	Err error
}

// Error says what the digest is and what it should be.
func (e *ChangedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("its SHA-256 can't be compared with %s: %v", e.Want, e.Err)
	}
	return fmt.Sprintf("its SHA-256 is %s, not %s", e.Got, e.Want)
}

// Unwrap returns why the file can't be read, or nil.
func (e *ChangedError) Unwrap() error { return e.Err }

// Check compares a pinned file with its digest. The error is a *StartError that
// wraps a *ChangedError.
func (p Pin) Check() error {
	file, err := p.open()
	if err != nil {
		return err
	}
	return file.Close()
}

// open opens the pinned file and returns it when its content is right. The
// caller closes it.
func (p Pin) open() (*os.File, error) {
	path := p.path()
	if path == "" {
		return nil, p.changed(p.Path, "", errors.New("it is nowhere in PATH"))
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe would hold us up
	if err != nil {
		return nil, p.changed(path, "", errnoOf(err))
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	h := sha256.New()
	if err == nil {
		_, err = io.Copy(h, file)
	}
	if err != nil {
		file.Close()
		return nil, p.changed(path, "", errnoOf(err))
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != p.SHA256 {
		file.Close()
		return nil, p.changed(path, got, nil)
	}
	return file, nil
}

// path returns where the file is now; "" when a bare name is nowhere in PATH.
func (p Pin) path() string {
	if strings.Contains(p.Path, "/") {
		return p.Path
	}
	path, err := Resolve(p.Path, "")
	if err != nil {
		return ""
	}
	return path
}

func (p Pin) changed(path, got string, err error) error {
	return &StartError{"trust", path, &ChangedError{p.SHA256, got, err}, "restore the file, or write its new digest into sha256 when the change is wanted"}
}

// verify compares all pinned files. It returns the program, open, when it is
// one of them and a binary: a script's interpreter opens it by its name. The
// caller closes it.
func verify(pins []Pin, program string) (open *os.File, err error) {
	defer func() {
		if err != nil && open != nil {
			open.Close()
			open = nil
		}
	}()
	for _, p := range pins {
		file, err := p.open()
		if err != nil {
			return open, err
		}
		if p.path() == program && open == nil && isBinary(file) {
			open = file
			continue
		}
		file.Close()
	}
	return open, nil
}

// isBinary reports whether the kernel loads the file itself.
func isBinary(file *os.File) bool {
	head := make([]byte, 4)
	_, err := file.ReadAt(head, 0)
	return err == nil && bytes.Equal(head, []byte("\x7fELF"))
}
