// Package child runs one operating system process on behalf of hookd: it
// starts it in a process group and an environment of its own, hands out its
// pipes, drains its standard error and ends it without leaving a process of
// that group behind. It knows nothing of what is said over the pipes and never
// restarts anything.
package child

import (
	"maps"
	"slices"
	"strings"
)

// Spec says what to start. Only Argv is needed.
type Spec struct {
	// Name is what hookd calls this child. It stands in messages and reaches
	// the child as HOOKD_HOOK.
	Name string
	// Argv is the program and its arguments, never a shell line. See Resolve
	// for how the program is found.
	Argv []string
	// Dir is the folder the child starts in; "" is hookd's own.
	Dir string
	// Env holds variables that are set on top of everything else.
	Env map[string]string
	// PassEnv names variables to copy from hookd's own environment. Names that
	// Withheld reports are not copied.
	PassEnv []string
	// Plain starts the child without the Helper: for what is started all the
	// time, or is no hook at all. It is not limited then.
	Plain bool
	// Background gives the child a lower priority: nobody waits for it.
	Background bool
	// Sandbox limits what the child may reach; nil is what hookd may. Without
	// a Helper it is not enforced.
	Sandbox *Sandbox
	// Pins are files without whose right content the child is not started.
	Pins []Pin
	// Stderr, if set, is called for the lines the child writes to standard
	// error, from a single goroutine, never after Done is closed. It must not
	// block: the child's standard error is not read meanwhile. line is
	// printable, has no line end, and is valid only during the call.
	//
	// dropped is 0 with a line. A call with a nil line reports how many bytes
	// were not handed over since the last report, because lines were too long
	// or came too fast; it comes at most once per 10 s, and once at the end.
	Stderr func(line []byte, dropped int64)
}

// inherited are the variables every child gets. The LC_ names are written out
// so that nothing else can travel under that prefix.
var inherited = []string{
	"PATH", "HOME", "LANG", "TZ", "TMPDIR",
	"LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT",
	"LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
}

// withheld are names, or prefixes that end in *, which change what code a child
// runs or tell it about hookd's own sockets.
var withheld = []string{
	"LD_*", "DYLD_*", "NODE_OPTIONS", "PYTHON*", "BASH_ENV",
	"NOTIFY_SOCKET", "LISTEN_*", "WATCHDOG_*", "HOOKD_*",
}

// Environ returns the environment of a child of this spec as sorted NAME=value
// entries; it is never nil. lookup reads hookd's own environment, like
// os.LookupEnv. A child gets, later ones winning: a fixed list of harmless
// variables (PATH HOME LANG LC_* TZ TMPDIR), HOOKD_HOOK, what PassEnv names
// except what Withheld reports, and Env, which is passed as it is.
func Environ(spec Spec, lookup func(string) (string, bool)) []string {
	env := map[string]string{}
	pass := func(names []string) {
		for _, name := range names {
			if value, ok := lookup(name); ok {
				env[name] = value
			}
		}
	}
	pass(inherited)
	env["HOOKD_HOOK"] = spec.Name
	pass(slices.DeleteFunc(slices.Clone(spec.PassEnv), isWithheld))
	maps.Copy(env, spec.Env)

	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// Withheld returns the names in spec.PassEnv that a child does not get, so that
// the caller can say so: they change what code it runs or tell it about hookd's
// own sockets. An entry in Env passes them on purpose.
func Withheld(spec Spec) []string {
	return slices.DeleteFunc(slices.Clone(spec.PassEnv), func(name string) bool { return !isWithheld(name) })
}

func isWithheld(name string) bool {
	return slices.ContainsFunc(withheld, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == prefix || open && strings.HasPrefix(name, prefix)
	})
}
