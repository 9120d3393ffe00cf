package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/common/expfmt"
)

// fileMode lets a group read the file, that of node_exporter.
const fileMode = 0o640

// head is how every file of metrics begins.
const head = "# "

// writable reports why a file of metrics can't be written at path: it must be
// new, empty or one that was written before, in a folder that exists.
func writable(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	default:
		if err := ours(path); err != nil {
			return err
		}
	}
	probe, err := os.CreateTemp(filepath.Dir(path), temporary(path))
	if err != nil {
		return fmt.Errorf("%w; its folder must exist and be writable", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// ours refuses a file that holds something else than metrics.
func ours(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	start := make([]byte, len(head))
	n, err := io.ReadFull(f, start)
	switch {
	case errors.Is(err, io.EOF): // empty
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case string(start[:n]) != head:
		return fmt.Errorf("%s holds something else than metrics: name a new file", path)
	}
	return nil
}

// temporary is the name of what becomes the file. node_exporter reads names that
// end in .prom, which this one does not.
func temporary(path string) string { return "." + filepath.Base(path) + ".*" }

// write puts the metrics in the place of a file, all of them or nothing. What
// node_exporter has of its own under the same name, it would take for an error,
// so that go_… and process_… get hookd_ before them.
func (m *Meter) write(path string) error {
	list, err := m.registry.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	var text bytes.Buffer
	for _, family := range list {
		if name := family.GetName(); strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			family.Name = new("hookd_" + name)
		}
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			return fmt.Errorf("write metrics: %w", err)
		}
	}
	if err := replace(path, text.Bytes()); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

func replace(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), temporary(path))
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(fileMode), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}

// remove takes a file away that may be gone already.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove metrics: %w", err)
	}
	return nil
}
