package instructions

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/text"
)

// file is a text that is read again when its file changes.
type file struct {
	path string
	log  *zap.Logger

	mu      sync.Mutex
	text    string
	looked  time.Time
	changed time.Time // as the file says
	size    int64
	failed  bool
}

// lookEvery is how long a file is trusted not to have changed.
const lookEvery = time.Second

// open reads the file for the first time.
func open(folder, path string, log *zap.Logger) (*file, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	f := &file{path: path, log: log, looked: time.Now()}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return f, f.read(info)
}

func (f *file) read(info os.FileInfo) error {
	data, err := text.ReadFile("", f.path, maxText)
	if err != nil {
		return err
	}
	f.text, f.changed, f.size = strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD")), info.ModTime(), info.Size()
	return nil
}

// current returns the text. When the file can't be read any more, that is the
// text that was read last, and the log says so.
func (f *file) current() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) < lookEvery {
		return f.text
	}
	f.looked = time.Now()
	info, err := os.Stat(f.path)
	if err == nil && (f.failed || !info.ModTime().Equal(f.changed) || info.Size() != f.size) {
		err = f.read(info)
	}
	if err != nil && !f.failed {
		f.log.Warn("a file of instructions can't be read any more: its last text stays", zap.String("file", f.path), zap.Error(err))
	}
	f.failed = err != nil
	return f.text
}
