package install

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Scope is for whom hooks are installed.
type Scope string

// The scopes.
const (
	// User is for all that this user does with the agent.
	User Scope = "user"
	// Project is for all who use the agent in one folder.
	Project Scope = "project"
)

// Place is where agents keep their files.
type Place struct {
	// Home is the user's folder. Required.
	Home string
	// Project is the folder of the project. Required for [Project].
	Project string
	// Root is put before the paths of files that belong to the machine; empty = /.
	Root string
	// Getenv reads the environment, in which some agents are told other places.
	// nil = there is none.
	Getenv func(string) string
}

// errNoProject is returned when a project is asked for and none is named.
var errNoProject = errors.New("which project is meant is not known")

func (p *Place) getenv(name string) string {
	if p.Getenv == nil {
		return ""
	}
	return p.Getenv(name)
}

// home is a folder below the user's, unless the variable names another.
func (p *Place) home(variable string, names ...string) string {
	if dir := p.getenv(variable); variable != "" && filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(append([]string{p.Home}, names...)...)
}

// config is a folder below ~/.config.
func (p *Place) config(name string) string {
	return filepath.Join(p.home("XDG_CONFIG_HOME", ".config"), name)
}

// in is a path below the project.
func (p *Place) in(names ...string) string {
	return filepath.Join(append([]string{p.Project}, names...)...)
}

// empties reports whether a folder, once it is empty, goes with the last file of
// hookd's: one of an agent's, and none that systems or people make.
func (p *Place) empties(dir string) bool {
	if p == nil {
		return false
	}
	config := p.home("XDG_CONFIG_HOME", ".config")
	for _, kept := range []string{
		p.Home, p.Project, config, p.home("", ".config"), p.home("", "Documents"), p.home("", ".local"), p.home("", ".local", "share"),
		p.home("", "Library"), p.home("", "Library", "Application Support"),
	} {
		if dir == filepath.Clean(kept) {
			return false
		}
	}
	for _, around := range []string{p.Home, p.Project, config} {
		if around != "" && strings.HasPrefix(dir, filepath.Clean(around)+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
