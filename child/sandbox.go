package child

import (
	"os"
	"path/filepath"
	"slices"
)

// Sandbox is what a child may reach. It is enforced as far as the system can;
// see [Process.Confinement]. The zero value is only what programs need to
// start.
type Sandbox struct {
	// Read and Write are files, and folders with all that is in them. They must
	// be there when the child is started. What may be written may be read.
	Read, Write []string
	// Network lets the child open connections and listen.
	Network bool
}

// fence returns the sandbox of a child that runs the program at path in dir.
func (s *Sandbox) fence(path, dir string) (*fence, error) {
	if s == nil {
		return nil, nil
	}
	for _, list := range []struct {
		key   string
		paths []string
	}{{"sandbox.read", s.Read}, {"sandbox.write", s.Write}} {
		for _, p := range list.paths {
			if _, err := os.Stat(p); err != nil {
				return nil, &StartError{"open to the hook", p, errnoOf(err), "create it, or correct " + list.key}
			}
		}
	}
	if dir == "" {
		dir = "."
	}
	return &fence{
		Read: append(slices.Clip(s.Read), dir), Write: s.Write, Common: append(needed(s.Network), withInterpreters(path)...), Network: s.Network,
	}, nil
}

// needed is what programs read to start. It holds nobody's secrets.
func needed(network bool) []string {
	paths := []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives", "/etc/localtime",
		"/dev/zero", "/dev/random", "/dev/urandom",
	}
	if network {
		paths = append(paths, "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services",
			"/etc/ssl", "/etc/pki", "/etc/ca-certificates")
	}
	return paths
}

// withInterpreters returns the program at path and what runs it when it is a
// script.
func withInterpreters(path string) []string {
	files := []string{path}
	for range 5 { // the kernel follows no more
		interpreter, script := readInterpreter(path)
		if !script || !filepath.IsAbs(interpreter) || slices.Contains(files, interpreter) {
			break
		}
		files = append(files, interpreter)
		path = interpreter
	}
	return files
}

// Gaps returns what of a sandbox this system can't enforce, in words for
// people; nil when it is all enforced, or there is none.
func Gaps(s *Sandbox) []string {
	if s == nil {
		return nil
	}
	return gaps(s.Network)
}
