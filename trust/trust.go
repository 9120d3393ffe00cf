// Package trust remembers which hook files of projects a person has looked at.
// A file that came with a repository is not run because it is there, and one
// that was trusted is not run when it, or a script that it names, has changed
// since.
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxFileBytes is the largest hook file of a project that is read.
const MaxFileBytes = 1 << 20

// State says how far a file is trusted.
type State string

// The states.
const (
	// Never: nobody has trusted the file. It is not run.
	Never State = "never"
	// Trusted: it is what somebody has trusted.
	Trusted State = "trusted"
	// Changed: it was trusted, and it or a file that it names is another one now.
	Changed State = "changed"
)

// Grant is a file that was trusted, with everything that it names.
type Grant struct {
	// Path is absolute, with symbolic links resolved.
	Path string `json:"path"`
	// SHA256 is of the content, in hex.
	SHA256 string `json:"sha256"`
	// Files are the other files that its commands name, by absolute path.
	Files map[string]string `json:"files,omitzero"`
	// At is when, and By the user.
	At time.Time `json:"at"`
	By int       `json:"by"`
}

// Store is the list of what is trusted, a file of one's own. It is read anew
// each time, so that a grant counts at once. The zero value trusts nothing.
type Store struct {
	// Path of the list; its folder is made when something is trusted.
	Path string
}

type list struct {
	Version int     `json:"version"`
	Grants  []Grant `json:"grants"`
}

// ErrUnsafe is wrapped by the error about a list that others could have
// written.
var ErrUnsafe = errors.New("others can change it")

// Grants returns what is trusted, by path. A missing list is empty.
func (s *Store) Grants() ([]Grant, error) {
	if s == nil || s.Path == "" {
		return nil, nil
	}
	data, err := readOwn(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list of trusted files: %w", err)
	}
	var l list
	if err := json.Unmarshal(data, &l, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("list of trusted files %s: %w", s.Path, err)
	}
	if l.Version != 1 {
		return nil, fmt.Errorf("list of trusted files %s: version %d is not known", s.Path, l.Version)
	}
	return l.Grants, nil
}

// readOwn reads a file that nobody but its owner, who must be oneself or root,
// can have written.
func readOwn(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 ||
		ok && int(owner.Uid) != os.Geteuid() && owner.Uid != 0 {
		return nil, fmt.Errorf("%s: %w: it must be a file of yours that nobody else can write (chmod 600)", path, ErrUnsafe)
	}
	return io.ReadAll(io.LimitReader(f, 16<<20))
}

// State compares a file as it is now, content and named files, with what was
// trusted. why names what has changed, for people. An error means that the list
// can't be read; nothing is trusted then.
func (s *Store) State(path string, content []byte, files []string) (state State, why string, err error) {
	grants, err := s.Grants()
	if err != nil {
		return Never, "", err
	}
	i := slices.IndexFunc(grants, func(g Grant) bool { return g.Path == path })
	if i < 0 {
		return Never, "", nil
	}
	g := grants[i]
	if Hash(content) != g.SHA256 {
		return Changed, path + " is not what was trusted on " + g.At.Format(time.DateOnly), nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.Files)) {
		if !slices.Contains(files, name) {
			files = append(files[:len(files):len(files)], name)
		}
	}
	for _, name := range files {
		trusted, known := g.Files[name]
		now, err := HashFile(name)
		switch {
		case !known && err == nil:
			return Changed, name + " was not there when the hooks that name it were trusted", nil
		case known && err != nil:
			return Changed, fmt.Sprintf("%s can't be read any more: %v", name, err), nil
		case known && now != trusted:
			return Changed, name + " has changed since the hooks that name it were trusted", nil
		}
	}
	return Trusted, "", nil
}

// Trust records a file as it is now, with the files that it names; those that
// are not there are left out.
func (s *Store) Trust(path string, content []byte, files []string) (Grant, error) {
	g := Grant{Path: path, SHA256: Hash(content), At: time.Now().UTC().Truncate(time.Second), By: os.Getuid()}
	for _, name := range files {
		sum, err := HashFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return g, fmt.Errorf("trust %s: %w", path, err)
		}
		if g.Files == nil {
			g.Files = map[string]string{}
		}
		g.Files[name] = sum
	}
	return g, s.change(func(list []Grant) []Grant {
		return append(slices.DeleteFunc(list, func(o Grant) bool { return o.Path == path }), g)
	})
}

// Forget takes trust away and reports whether there was any.
func (s *Store) Forget(path string) (bool, error) {
	had := false
	err := s.change(func(list []Grant) []Grant {
		return slices.DeleteFunc(list, func(o Grant) bool {
			had = had || o.Path == path
			return o.Path == path
		})
	})
	return had, err
}

// change writes the list anew, whole or not at all.
func (s *Store) change(f func([]Grant) []Grant) error {
	dir := filepath.Dir(s.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("list of trusted files: %w", err)
	}
	lock, err := os.OpenFile(s.Path+".lock", os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("list of trusted files: %w", err)
	}
	defer lock.Close() // and with it the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("list of trusted files: lock: %w", err)
	}
	grants, err := s.Grants()
	if err != nil {
		return err
	}
	data, err := json.Marshal(list{Version: 1, Grants: f(grants)}, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("list of trusted files: %w", err)
	}
	temp, err := os.CreateTemp(dir, ".trusted-*") // mode 0600
	if err != nil {
		return fmt.Errorf("list of trusted files: %w", err)
	}
	defer os.Remove(temp.Name()) // gone when all went well
	_, err = temp.Write(append(data, '\n'))
	if err == nil {
		err = temp.Sync()
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp.Name(), s.Path)
	}
	if err != nil {
		return fmt.Errorf("list of trusted files: %w", err)
	}
	return nil
}

// Hash is the SHA-256 of a content, in hex.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// HashFile is [Hash] of a file's content.
func HashFile(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", path)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Open reads the hook file at rel below a project's folder, without following
// any link on the way. It returns the file's absolute path. A missing file is
// fs.ErrNotExist.
func Open(project, rel string) (path string, content []byte, err error) {
	if !filepath.IsLocal(rel) {
		return "", nil, fmt.Errorf("%s is not below the project", rel)
	}
	// The project's own folder may be reached by links: people do that.
	real, err := filepath.EvalSymlinks(project)
	if err != nil { // under its own name it may have been trusted
		return filepath.Join(filepath.Clean(project), rel), nil, err
	}
	if real, err = filepath.Abs(real); err != nil {
		return "", nil, err
	}
	path = filepath.Join(real, rel)
	root, err := os.OpenRoot(real)
	if err != nil {
		return path, nil, err
	}
	defer root.Close()
	for dir := filepath.Dir(filepath.Clean(rel)); dir != "."; dir = filepath.Dir(dir) {
		info, err := root.Lstat(dir)
		if err != nil {
			return path, nil, err
		}
		if !info.IsDir() {
			return path, nil, fmt.Errorf("%s is a link or no folder", filepath.Join(real, dir))
		}
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		if info, lerr := root.Lstat(rel); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return path, nil, fmt.Errorf("%s is a link", path)
		}
		return path, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return path, nil, err
	}
	if !info.Mode().IsRegular() {
		return path, nil, fmt.Errorf("%s is not a file", path)
	}
	content, err = io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err == nil && len(content) > MaxFileBytes {
		err = fmt.Errorf("%s is larger than %d bytes", path, MaxFileBytes)
	}
	return path, content, err
}
