package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxFileBytes is the largest file that is read. No agent's settings come near.
const maxFileBytes = 8 << 20

// backupSuffix is what the copy of a file is called, as it was before hookd
// changed it.
const backupSuffix = ".hookd-backup"

// disk is a file as it is.
type disk struct {
	path string // as the agent names it
	real string // where it is, when path is a link
	text []byte // nil = it is not there
	mode fs.FileMode
	uid  int
}

// readDisk reads a file. Links are followed; one that leads nowhere is an error,
// because writing would create a file somewhere else.
func readDisk(path string) (disk, error) {
	d := disk{path: path, real: path}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return d, fmt.Errorf("%s can't be there: a part of its path is a file and no folder", path)
	}
	if err != nil {
		return d, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if d.real, err = filepath.EvalSymlinks(path); err != nil {
			return d, fmt.Errorf("%s is a link that leads nowhere: %w", path, err)
		}
	}
	f, err := os.OpenFile(d.real, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return d, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return d, err
	}
	if !info.Mode().IsRegular() {
		return d, fmt.Errorf("%s is no regular file", path)
	}
	d.mode, d.uid = info.Mode().Perm(), -1
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		d.uid = int(st.Uid)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return d, fmt.Errorf("read %s: %w", path, err)
	}
	if len(text) > maxFileBytes {
		return d, fmt.Errorf("%s is larger than %d MiB", path, maxFileBytes>>20)
	}
	d.text = append([]byte{}, text...)
	return d, nil
}

// same reports whether the file still is what was read.
func (d disk) same() error {
	now, err := readDisk(d.path)
	if err != nil {
		return err
	}
	if now.real != d.real || (now.text == nil) != (d.text == nil) || !bytes.Equal(now.text, d.text) {
		return fmt.Errorf("%s was changed by somebody else just now; run it again", d.path)
	}
	return nil
}

// replaceFile writes a file in one step: readers see the old one or the new
// one. A file that was there keeps its mode and its owner.
func replaceFile(d disk, text []byte, mode fs.FileMode) (err error) {
	name := filepath.Join(filepath.Dir(d.real), fmt.Sprintf(".%s.%d.tmp", filepath.Base(d.real), os.Getpid()))
	tmp, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	_, err = tmp.Write(text)
	if err == nil && d.text != nil {
		err = keepOwner(tmp, d)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(name, d.real)
}

// keepOwner gives a new file the owner and the mode of the old one.
func keepOwner(tmp *os.File, d disk) error {
	if d.uid >= 0 && d.uid != os.Geteuid() {
		if err := tmp.Chown(d.uid, -1); err != nil {
			return fmt.Errorf("%s belongs to user %d, who would lose it: %w", d.path, d.uid, err)
		}
	}
	return tmp.Chmod(d.mode)
}
