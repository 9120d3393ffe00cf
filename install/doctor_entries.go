package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// programs looks at what the entries run.
func (c *checkup) programs(ctx context.Context, ours []placed) {
	seen := map[string]bool{}
	for _, o := range ours {
		if seen[o.call.Program[0]] {
			continue
		}
		path := o.call.Program[0]
		seen[path] = true
		fix := c.reinstall(o.file.scope)
		if !strings.HasPrefix(path, "/") {
			c.at(Warning, o.file.path, o.line, fmt.Sprintf("%s is run by its name, so the PATH of %s decides which one it is", path, c.spec.title), fix)
			continue
		}
		if err := runnable(path); err != nil {
			c.at(Problem, o.file.path, o.line, fmt.Sprintf("%s can't be run: %v", path, err), fix)
			continue
		}
		if len(c.x.Program.Argv) > 0 && path != c.x.Program.Argv[0] {
			c.at(Warning, o.file.path, o.line, fmt.Sprintf("%s is run, and this hookd would use %s", path, c.x.Program.Argv[0]), fix)
		}
		c.programVersion(ctx, o)
	}
}

// programVersion compares the version of what is run with hookd's own.
func (c *checkup) programVersion(ctx context.Context, o placed) {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	argv := []string{o.call.Program[0], "--version"}
	if len(o.call.Program) > 1 {
		argv[1] = "version"
	}
	out, err := c.x.Run(ctx, argv, nil)
	said := strings.TrimSpace(string(out.Stdout))
	switch {
	case err != nil:
		c.at(Problem, o.file.path, o.line, fmt.Sprintf("%s does not run: %v", argv[0], err), c.reinstall(o.file.scope))
	case out.Exit != 0 || said == "" || strings.HasSuffix(said, "(devel)"): // it does not tell; a round trip shows whether both understand each other
	case !slices.Contains(strings.Fields(said), c.x.Version):
		c.at(Warning, o.file.path, o.line, fmt.Sprintf("%s is %s, and this hookd is %s", argv[0], printable(said, 80), c.x.Version), "bring both to one version")
	}
}

// complete looks for events at which hookd is not asked.
func (c *checkup) complete(ours []placed) {
	var gates, rest []string
	for _, e := range c.spec.events {
		if e.left != "" || slices.ContainsFunc(ours, func(o placed) bool { return o.event == e.name }) {
			continue
		}
		if e.role == gate {
			gates = append(gates, e.name)
		} else {
			rest = append(rest, e.name)
		}
	}
	scope := ours[0].file.scope
	if len(gates) > 0 {
		c.add(Problem, "hookd is not asked before what these events stand for: "+strings.Join(gates, ", "), c.reinstall(scope))
	}
	if len(rest) > 0 {
		c.add(Note, "not installed: "+strings.Join(rest, ", "), c.reinstall(scope))
	}
	if len(gates)+len(rest) == 0 {
		c.add(OK, fmt.Sprintf("installed at every usual event (%d), in %s", len(ours), files(ours)), "")
	}
}

func files(ours []placed) string {
	var paths []string
	for _, o := range ours {
		if !slices.Contains(paths, o.file.path) {
			paths = append(paths, o.file.path)
		}
	}
	if len(paths) > 3 {
		paths = append(paths[:2], fmt.Sprintf("%d more files", len(paths)-2))
	}
	return strings.Join(paths, ", ")
}

// twice finds events that reach hookd more than once, and entries that do not
// see all of an event.
func (c *checkup) twice(ours []placed) {
	first := map[string]placed{}
	for _, o := range ours {
		if (o.matcher != "" && o.matcher != "*" && o.matcher != ".*") && c.role(o.event) == gate {
			c.at(Warning, o.file.path, o.line, fmt.Sprintf("at %s hookd is asked about %q only", o.event, o.matcher), "remove the matcher, and narrow in hookd's own config instead")
		}
		before, again := first[o.event]
		if !again {
			first[o.event] = o
			continue
		}
		// Kiro's hooks belong to one of several agents.
		if c.spec.name == "kiro" && before.file.path != o.file.path {
			continue
		}
		c.at(Warning, o.file.path, o.line, fmt.Sprintf("hookd is asked twice at %s: also by %s:%d", o.event, before.file.path, before.line), "uninstall one of the two")
	}
}

func (c *checkup) role(event string) role {
	for _, e := range c.spec.events {
		if e.name == event {
			return e.role
		}
	}
	return watch
}

// others names the foreign hooks that run beside ours where it matters.
func (c *checkup) others(ours []placed) {
	count := map[string][]string{}
	var order []string
	for _, f := range c.found {
		for _, s := range f.slots {
			if s.ours || s.text == "" || c.role(s.event) != gate {
				continue
			}
			if count[s.event] == nil {
				order = append(order, s.event)
			}
			count[s.event] = append(count[s.event], fmt.Sprintf("%s (%s:%d, %s)", printable(s.text, 60), f.path, s.line, c.side(f, s, ours)))
		}
	}
	for _, event := range order {
		c.add(Note, fmt.Sprintf("other hooks run at %s too: %s", event, strings.Join(count[event], "; ")),
			"when two hooks change the same call, what comes out depends on the agent; run them through hookd to have an order")
	}
}

// side says whether a foreign hook stands before or after ours.
func (c *checkup) side(f foundFile, s slot, ours []placed) string {
	for _, o := range ours {
		if o.event == s.event && o.file.path == f.path {
			if s.group < o.group || s.group == o.group && s.index < o.index {
				return "before hookd"
			}
			return "after hookd"
		}
	}
	return "in another file"
}

// lastSeen says when the agent last asked.
func (c *checkup) lastSeen() {
	if c.away || c.daemon.Last == nil {
		return
	}
	seen, ok := c.daemon.Last[c.spec.name]
	if !ok {
		c.add(Note, "it has not asked since the daemon was started", "use it once and look again; if it stays so, it does not run its hooks")
		return
	}
	c.report.LastEvent, c.report.LastAt = seen.Event, seen.At
	c.add(OK, fmt.Sprintf("it last asked %s ago: %s", age(c.x.Now().Sub(seen.At)), seen.Event), "")
}

func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return strings.TrimSuffix(d.Round(time.Hour).String(), "0m0s")
}
