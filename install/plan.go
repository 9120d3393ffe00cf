package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// target is a file that an agent reads and how hookd's entries stand in it.
type target struct {
	agent string
	path  string
	edit  editor
	// only is the event that the file is for; "" = all.
	only string
	mode fs.FileMode // of a new file; 0 = 0644
	// prune is a folder that is hookd's own: it and what is below it go when they
	// are empty. "" = none.
	prune string
	place *Place
}

// Change is what would become of one file.
type Change struct {
	// Path is the file as the agent names it, and Real where it is when Path is a
	// link.
	Path, Real string
	// Before and After are its content; nil = there is no such file.
	Before, After []byte
	// Backup is where the content before is kept; empty = nothing is lost.
	Backup string

	old    disk
	mode   fs.FileMode
	backup bool   // the content before goes to Backup
	drop   string // a backup that is of no use any more
	prune  string
	place  *Place
}

// Plan is what installing or uninstalling would do. Nothing is written before
// [Plan.Apply].
type Plan struct {
	Agent string
	Title string
	Scope Scope
	// Changes are the files that would change; none = nothing to do.
	Changes []Change
	// Events are the agent's own names of those that are installed.
	Events []string
	// LeftOut says for events that are installed only when named why that is so, a
	// line per reason.
	LeftOut []string
	// Todo is what the user has to do by hand, and Warnings what they should
	// know.
	Todo, Warnings []string
}

// Diff returns what changes as a unified diff; empty when nothing does.
func (p *Plan) Diff() string {
	var b strings.Builder
	for _, c := range p.Changes {
		old, now := c.Path, c.Path
		if c.Before == nil {
			old = "/dev/null"
		}
		if c.After == nil {
			now = "/dev/null"
		}
		text := string(diff.Diff(old, c.Before, now, c.After))
		_, text, _ = strings.Cut(text, "\n") // a line of its own before the two names
		b.WriteString(text)
	}
	return b.String()
}

// Apply writes what the plan says, each file in one step. When one can't be
// written, those before it have been; the error names the file.
func (p *Plan) Apply() error {
	for i, c := range p.Changes {
		if err := c.apply(); err != nil {
			if i > 0 {
				return fmt.Errorf("%w (%d of %d files have been written)", err, i, len(p.Changes))
			}
			return err
		}
	}
	return nil
}

func (c *Change) apply() error {
	if err := c.old.same(); err != nil {
		return err
	}
	if c.After == nil {
		if err := os.Remove(c.old.path); err != nil {
			return err
		}
		return c.tidy()
	}
	if err := os.MkdirAll(filepath.Dir(c.old.real), 0o755); err != nil {
		return err
	}
	if c.backup {
		kept, err := readDisk(c.Backup)
		if kept.mode = c.old.mode; err == nil { // no more open than the file is now
			err = replaceFile(kept, c.Before, c.old.mode)
		}
		if err != nil {
			return fmt.Errorf("keep a copy of %s: %w", c.Path, err)
		}
	}
	if err := replaceFile(c.old, c.After, c.mode); err != nil {
		return fmt.Errorf("write %s: %w", c.Path, err)
	}
	return c.tidy()
}

// tidy removes what nobody needs any more.
func (c *Change) tidy() error {
	if c.drop != "" {
		if err := os.Remove(c.drop); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if c.After != nil {
		return nil
	}
	for dir := filepath.Dir(c.Path); c.prune != "" && strings.HasPrefix(dir, c.prune) || c.place.empties(dir); dir = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() { // a link is the user's
			break
		}
		if os.Remove(dir) != nil { // it is not empty
			break
		}
	}
	return nil
}

// planInstall works out what a file becomes; nil = it stays as it is.
func planInstall(t target, entries []entry) (*Change, error) {
	old, err := readDisk(t.path)
	if err != nil {
		return nil, err
	}
	after, err := t.edit.merge(t.path, old.text, entries)
	if err != nil || old.text != nil && bytes.Equal(after, old.text) {
		return nil, err
	}
	c := t.change(old, after)
	c.keep(t, old)
	return c, nil
}

func (t target) change(old disk, after []byte) *Change {
	c := &Change{Path: t.path, Real: old.real, Before: old.text, After: after, old: old, mode: t.mode, prune: t.prune, place: t.place}
	if c.mode == 0 {
		c.mode = 0o644
	}
	return c
}

// keep decides whether a copy of the file is kept. One is, unless all of it was
// hookd's, or there is a copy already that differs in nothing but that.
func (c *Change) keep(t target, old disk) {
	if old.text == nil {
		return
	}
	rest, _, err := t.edit.strip(t.path, t.agent, old.text)
	if err != nil || t.edit.blank(t.path, rest) && len(rest) != len(old.text) {
		return
	}
	c.Backup = old.real + backupSuffix
	kept, err := readDisk(c.Backup)
	if err == nil && kept.text != nil {
		if was, _, err := t.edit.strip(t.path, t.agent, kept.text); err == nil && bytes.Equal(was, rest) {
			c.Backup = ""
			return
		}
	}
	c.backup = true
}

// planUninstall works out what is left of a file without our entries; nil =
// there are none.
func planUninstall(t target) (*Change, error) {
	old, err := readDisk(t.path)
	if err != nil || old.text == nil {
		return nil, err
	}
	rest, ours, err := t.edit.strip(t.path, t.agent, old.text)
	if err != nil || len(ours) == 0 {
		return nil, err
	}
	kept, err := readDisk(old.real + backupSuffix)
	if err != nil {
		kept.text = nil // what can't be read can't help
	}
	c := t.change(old, rest)
	switch {
	case kept.text != nil && t.comesFrom(kept.text, old.text, rest, ours):
		c.After, c.drop = kept.text, kept.path
	case kept.text == nil && t.edit.blank(t.path, rest) && old.real == old.path:
		c.After = nil
	default:
		if c.keep(t, old); kept.text != nil && !c.backup {
			c.drop = kept.path // it holds no more than what is left
		}
	}
	return c, nil
}

// comesFrom reports whether the file is the copy with our entries and nothing
// else, so that the copy can take its place again to the byte.
func (t target) comesFrom(kept, now, rest []byte, ours []entry) bool {
	if _, old, err := t.edit.strip(t.path, ours[0].call.Agent, kept); err != nil || len(old) > 0 {
		return false
	}
	if bytes.Equal(kept, rest) {
		return true
	}
	again, err := t.edit.merge(t.path, kept, ours)
	return err == nil && bytes.Equal(again, now)
}
