package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// readFile reads the file at path, once and through one descriptor. Its owner
// and permissions, and those of the folder that it was opened in, are taken
// from open descriptors, so nobody can exchange them between the check and the
// read. Folders further up are not checked. The error is a [*LoadError].
func readFile(path string) ([]byte, error) {
	fail := func(err error, problems ...string) ([]byte, error) {
		e := &LoadError{Path: path, cause: err}
		if err != nil {
			problems = append(problems, err.Error())
		}
		for _, p := range problems {
			e.Problems = append(e.Problems, Positioned{Message: p})
		}
		return nil, e
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fail(err)
	}
	dir, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return fail(err)
	}
	defer dir.Close()
	// Without O_NONBLOCK a named pipe would hold us up.
	f, err := dir.OpenFile(filepath.Base(target), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	dirInfo, err := dir.Stat(".")
	if err != nil {
		return fail(err)
	}
	info, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	if !info.Mode().IsRegular() {
		return fail(nil, "is not a regular file")
	}
	if found := append(distrust(target, info), distrust(filepath.Dir(target), dirInfo)...); len(found) > 0 {
		return fail(nil, found...)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return fail(err)
	case len(data) > maxFileBytes:
		return fail(nil, tooLarge)
	}
	return data, nil
}

// distrust says why what stands at path could be changed by others than
// hookd's user and root, and the command that mends it.
func distrust(path string, info fs.FileInfo) []string {
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	return distrustOf(path, info.Mode(), owner, os.Geteuid())
}

func distrustOf(path string, mode fs.FileMode, owner, self int) (found []string) {
	if owner != self && owner != 0 {
		found = append(found, fmt.Sprintf("%s belongs to user %d, neither to hookd's user (%d) nor to root; run: chown %d %s", path, owner, self, self, shell(path)))
	}
	if mode&0o022 != 0 && mode&fs.ModeSticky != 0 {
		found = append(found, fmt.Sprintf("%s is a folder for everybody (mode %04o); put the config into a folder of your own", path, mode.Perm()))
	} else if mode&0o022 != 0 {
		found = append(found, fmt.Sprintf("%s can be written by group or others (mode %04o); run: chmod go-w %s", path, mode.Perm(), shell(path)))
	}
	return found
}

// shell returns path as one word of a shell command.
func shell(path string) string {
	if plain(path, "/._-+@%:,=") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// systemPath is where a config for the whole machine stands.
const systemPath = "/etc/hookd/config.json"

// Find returns the config file to load: the one named by the flag --config or
// by $HOOKD_CONFIG, else the first that exists of
// $XDG_CONFIG_HOME/hookd/config.json (~/.config without that variable) and
// /etc/hookd/config.json. "" means that there is none and the defaults hold. A
// named file that is missing is an error that wraps [fs.ErrNotExist]; one that
// can't be looked at is never passed over.
func Find(flag string, getenv func(string) string) (path string, err error) {
	return find(flag, getenv, systemPath)
}

func find(flag string, getenv func(string) string, system string) (string, error) {
	if flag != "" {
		return named("--config", flag)
	}
	if path := getenv("HOOKD_CONFIG"); path != "" {
		return named("$HOOKD_CONFIG", path)
	}
	home := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(home) && getenv("HOME") != "" { // a relative one is to be ignored
		home = filepath.Join(getenv("HOME"), ".config")
	}
	for _, path := range []string{filepath.Join(home, "hookd", "config.json"), system} {
		if !filepath.IsAbs(path) {
			continue // neither variable is set
		}
		// A link that leads nowhere is there: loading it says what is wrong.
		_, err := os.Lstat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return "", fmt.Errorf("look for a config: %w", err)
		}
	}
	return "", nil
}

func named(by, path string) (string, error) {
	if _, err := os.Lstat(path); err != nil {
		return "", fmt.Errorf("the config named by %s: %w", by, err)
	}
	return path, nil
}
