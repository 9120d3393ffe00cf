package skills

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	fileName = "SKILL.md"
	// lookEvery is how long what was found is trusted.
	lookEvery = 2 * time.Second
	// maxEntries is how many entries of a folder are looked at.
	maxEntries = 5000
)

const defaultIntro = "These skills are there. When one fits what you are to do, read its file before you begin, and do as it says:"

// scanner finds skills and makes the index of them.
type scanner struct {
	config  *config
	folders []string
	log     *zap.Logger

	mu       sync.Mutex
	looked   time.Time
	files    map[string]*known // by path
	logged   map[string]bool   // problems that were, and still are
	index    string
	problems []string
}

// known is a file that was read.
type known struct {
	changed time.Time
	size    int64
	skill   *skill
	err     error
}

func newScanner(c *config, folder string, log *zap.Logger) *scanner {
	s := &scanner{config: c, log: log, files: map[string]*known{}, logged: map[string]bool{}}
	for _, f := range c.Folders {
		if !filepath.IsAbs(f) {
			f = filepath.Join(folder, f)
		}
		s.folders = append(s.folders, f)
	}
	return s
}

// current returns the index, "" when there is no skill, and what is wrong.
func (s *scanner) current() (index string, problems []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looked.IsZero() || time.Since(s.looked) >= lookEvery {
		s.scan()
		s.looked = time.Now()
	}
	return s.index, s.problems
}

// scan looks at all folders. Files that have not changed are not read again.
func (s *scanner) scan() {
	s.problems = nil
	files := map[string]*known{}
	names := map[string]string{} // where a name was first
	var list []*skill
	for _, folder := range s.folders {
		paths, err := candidates(folder)
		if err != nil {
			s.problems = append(s.problems, err.Error())
		}
		for _, path := range paths {
			if files[path] != nil {
				continue // two folders are the same
			}
			k := s.read(path)
			if k == nil {
				continue
			}
			files[path] = k
			switch {
			case k.err != nil:
				s.problems = append(s.problems, fmt.Sprintf("%s: %v", path, k.err))
			case names[k.skill.name] != "":
				s.problems = append(s.problems, fmt.Sprintf("%s: a skill has the name %q already: %s", path, k.skill.name, names[k.skill.name]))
			default:
				names[k.skill.name] = path
				if !k.skill.hidden {
					list = append(list, k.skill)
				}
			}
		}
	}
	s.files = files
	s.write(list)
	s.tell()
}

// candidates returns where in a folder skills may be.
func candidates(folder string) ([]string, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("a folder of skills can't be read: %w", err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("a folder of skills can't be read: %w", err)
	}
	paths := []string{filepath.Join(folder, fileName)}
	var names []string
	for _, e := range entries {
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range names {
		paths = append(paths, filepath.Join(folder, name, fileName))
	}
	if len(entries) > maxEntries {
		return paths, fmt.Errorf("%s has more than %d entries: not all were looked at", folder, maxEntries)
	}
	return paths, nil
}

// read reads a file that may be there, or nil.
func (s *scanner) read(path string) *known {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "not a directory") {
		return nil
	}
	if err != nil {
		return &known{err: err}
	}
	if k := s.files[path]; k != nil && k.changed.Equal(info.ModTime()) && k.size == info.Size() {
		return k
	}
	k := &known{changed: info.ModTime(), size: info.Size()}
	k.skill, k.err = readFront(path)
	return k
}

// write makes the index.
func (s *scanner) write(list []*skill) {
	s.index = ""
	if len(list) == 0 {
		return
	}
	const more = "\n(%d more are not shown)"
	var b strings.Builder
	b.WriteString(first(s.config.Intro, defaultIntro))
	shown := 0
	for _, k := range list {
		row := fmt.Sprintf("\n- %s: %s (%s)", k.name, k.description, k.path)
		if shown >= s.config.MaxSkills || b.Len()+len(row) > s.config.MaxBytes-len(more)-8 {
			break
		}
		b.WriteString(row)
		shown++
	}
	if left := len(list) - shown; left > 0 {
		fmt.Fprintf(&b, more, left)
		s.problems = append(s.problems, fmt.Sprintf("%d skills are not in the index, which has %d bytes: see max_skills and max_bytes", left, b.Len()))
	}
	s.index = b.String()
}

// tell logs problems that are new.
func (s *scanner) tell() {
	logged := map[string]bool{}
	for _, p := range s.problems {
		if !s.logged[p] {
			s.log.Warn("a skill is not offered", zap.String("why", p))
		}
		logged[p] = true
	}
	s.logged = logged
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
