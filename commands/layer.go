package commands

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/trust"
)

// perFile parts the priorities of files of one layer.
const perFile = 10_000_000

// Layered are the files of one layer.
type Layered struct {
	Layer hook.Layer
	Paths []string
}

// Loaded is a file that was there.
type Loaded struct {
	Layer hook.Layer
	*File
	// SHA256 is of its content.
	SHA256 string
}

// Load reads the files of some layers that are there. A missing file is no
// error; one that can't be read, or that others could have written, is. Files
// of the organisation must be root's.
func Load(layers ...Layered) ([]Loaded, error) {
	var list []Loaded
	var problems []error
	for _, l := range layers {
		for _, path := range l.Paths {
			content, err := readFile(path, l.Layer == hook.LayerOrganisation)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				problems = append(problems, err)
				continue
			}
			f, err := Parse(path, content)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			list = append(list, Loaded{l.Layer, f, trust.Hash(content)})
		}
	}
	return list, errors.Join(problems...)
}

// Registrations returns the hooks of loaded files.
func Registrations(files []Loaded, r *Runner) []*hook.Registration {
	var list []*hook.Registration
	seen := map[string]bool{}
	place := map[hook.Layer]int{}
	for _, f := range files {
		for _, reg := range f.Hooks(f.Layer, place[f.Layer]*perFile, r) {
			for n := 2; seen[reg.Name]; n++ { // the same name in two files of a layer
				reg.Name = fmt.Sprintf("%s@%d", strings.TrimSuffix(reg.Name, fmt.Sprintf("@%d", n-1)), n)
			}
			seen[reg.Name] = true
			list = append(list, reg)
		}
		place[f.Layer]++
	}
	return list
}

// readFile reads a hook file that only those whose word counts can have
// written: hookd's user and root, for the organisation root alone.
func readFile(path string, rootOnly bool) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(real, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &FileError{Path: path, Message: "is not a file"}
	}
	folder, err := os.Stat(filepath.Dir(real))
	if err != nil {
		return nil, err
	}
	for what, i := range map[string]fs.FileInfo{path: info, filepath.Dir(real): folder} {
		if why := writable(i, rootOnly); why != "" {
			return nil, &FileError{Path: path, Message: what + " " + why}
		}
	}
	content, err := io.ReadAll(io.LimitReader(f, trust.MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > trust.MaxFileBytes {
		return nil, &FileError{Path: path, Message: "the file is larger than 1 MiB"}
	}
	return content, nil
}

func writable(info fs.FileInfo, rootOnly bool) string {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	allowed := []int{0}
	if !rootOnly {
		allowed = append(allowed, os.Geteuid())
	}
	switch {
	case !slices.Contains(allowed, int(owner.Uid)) && rootOnly:
		return "must belong to root: chown root"
	case !slices.Contains(allowed, int(owner.Uid)):
		return fmt.Sprintf("belongs to user %d: it must be yours or root's", owner.Uid)
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Sprintf("can be changed by others: chmod go-w %s", info.Name())
	}
	return ""
}
