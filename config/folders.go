package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// folders watches the folders through which a path leads. A folder is watched
// and not the file, because a watch on a file ends when the file is replaced.
// follow and pump may run at the same time, each in one goroutine.
type folders struct {
	*fsnotify.Watcher
	// add starts a watch; a test makes it fail.
	add     func(dir string) error
	watched map[string]fs.FileInfo
}

// errNoFolders is what following without a watcher comes to.
var errNoFolders = errors.New("no notifications")

func newFolders() (*folders, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return &folders{Watcher: w, add: w.Add, watched: map[string]fs.FileInfo{}}, nil
}

// follow makes the watched folders those that path leads through now. A folder
// that was replaced by another of its name is watched anew.
func (f *folders) follow(path string) error {
	if f == nil {
		return errNoFolders
	}
	way := wayTo(path)
	for dir := range f.watched {
		if !slices.Contains(way, dir) {
			_ = f.Remove(dir) // it may be gone, and its watch with it
			delete(f.watched, dir)
		}
	}
	alive := f.WatchList()
	var errs error
	for _, dir := range way {
		info, err := os.Stat(dir)
		if err != nil {
			continue // gone since: that is an event, and we come again
		}
		if old := f.watched[dir]; old != nil && os.SameFile(old, info) && slices.Contains(alive, dir) {
			continue
		}
		_ = f.Remove(dir)
		delete(f.watched, dir)
		if err := f.add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", dir, err))
			continue
		}
		f.watched[dir] = info
	}
	return errs
}

// pump turns events and errors into "something happened" and returns after
// Close. Both channels must be read, or the watcher stands still.
func (f *folders) pump(happened chan<- struct{}, report func(error)) {
	for {
		select {
		case event, ok := <-f.Events:
			if !ok {
				return
			}
			if event.Op == fsnotify.Chmod {
				continue
			}
		case err, ok := <-f.Errors:
			if !ok {
				return
			}
			// An overflow means that events were lost: looking is the cure.
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				report(fmt.Errorf("watch the config: %w", err))
			}
		}
		wake(happened)
	}
}

// maxLinks is how many symbolic links a path may lead through, as in the
// kernel.
const maxLinks = 40

// wayTo returns the folders in which a change can turn path into another file:
// the one that holds it, each that holds a symbolic link on the way, and where
// the way breaks off, the last folder that is there. No result goes through a
// link. path must be absolute.
func wayTo(path string) []string {
	var way []string
	note := func(dir string) {
		if !slices.Contains(way, dir) {
			way = append(way, dir)
		}
	}
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." || name == ".." {
			if name == ".." {
				at = filepath.Dir(at)
			}
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case err != nil || len(rest) == 0 && info.Mode().Type() != fs.ModeSymlink:
			note(at)
			return way
		case info.Mode().Type() == fs.ModeSymlink:
			note(at)
			target, err := os.Readlink(next)
			if links++; err != nil || links > maxLinks {
				return way
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest = slices.Concat(strings.Split(target, "/"), rest)
		default:
			at = next
		}
	}
	return way
}
