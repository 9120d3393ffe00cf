package install

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Level is how bad a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Note    Level = "note"    // good to know
	Warning Level = "warning" // not as it should be
	Problem Level = "problem" // hookd is not asked, or not as it was meant
)

// Finding is one thing that was found out.
type Finding struct {
	Level Level `json:"level"`
	// Text is what is so, and Fix what to do about it.
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
	// File and Line say where; they may be missing.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// AgentReport is what was found out about one agent.
type AgentReport struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Program is where the agent's program is, and Version what it says of
	// itself; empty = not known.
	Program string `json:"program,omitempty"`
	Version string `json:"version,omitempty"`
	// Installed: there are entries of hookd in its files.
	Installed bool `json:"installed"`
	// LastEvent is when it last asked, as far as the daemon knows.
	LastEvent string    `json:"last_event,omitempty"`
	LastAt    time.Time `json:"last_at,omitzero"`
	Findings  []Finding `json:"findings"`
}

// Report is what was found out.
type Report struct {
	// OK: there is no problem.
	OK bool `json:"ok"`
	// Hookd holds what is about hookd itself and its daemon.
	Hookd  []Finding     `json:"hookd"`
	Agents []AgentReport `json:"agents"`
}

// Output is what a program wrote and how it ended.
type Output struct {
	Stdout, Stderr []byte
	Exit           int
}

// Seen is when an agent last asked.
type Seen struct {
	Event string
	At    time.Time
}

// Daemon is what a running daemon says of itself.
type Daemon struct {
	Version string
	// Ready is false when a required hook is missing.
	Ready bool
	// Last is the last event of each agent, by its name; nil = the daemon does
	// not tell.
	Last map[string]Seen
}

// Examination says what to look at, and lends what package install does not do
// itself.
type Examination struct {
	Place Place
	// Agents are the names of those to look at; empty = all that seem to be on
	// this machine.
	Agents []string
	// Program is what an installation would use now, and Version hookd's own.
	Program Program
	Version string
	// Run runs a program with this input. It returns an error when it can't be
	// started or does not end in time. It may be called several times at once.
	Run func(ctx context.Context, argv []string, stdin []byte) (Output, error)
	// Ask asks the daemon. An error means that there is none.
	Ask func(ctx context.Context) (Daemon, error)
	// Now is the time; nil = time.Now.
	Now func() time.Time
}

const (
	versionLimit = 2 * time.Second
	probeLimit   = 10 * time.Second
	atOnce       = 4 // agents looked at
)

// Examine looks at agents. The error is about the examination itself, such as an
// *[UnknownAgentError]; what is wrong with agents stands in the report.
func Examine(ctx context.Context, x Examination) (*Report, error) {
	if x.Now == nil {
		x.Now = time.Now
	}
	var chosen []*spec
	for _, name := range x.Agents {
		s, err := findSpec(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, s)
	}
	if len(x.Agents) == 0 {
		for _, s := range specs() {
			if s.here(&x.Place) || installed(&x.Place, s.name, both()) {
				chosen = append(chosen, s)
			}
		}
	}
	daemon, away := x.Ask(ctx)
	r := &Report{Agents: make([]AgentReport, len(chosen))}
	r.Hookd = x.hookd(daemon, away)
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, s := range chosen {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c := &checkup{x: &x, place: &x.Place, spec: s, named: len(x.Agents) > 0, away: away != nil, daemon: daemon}
			c.report = AgentReport{Name: s.name, Title: s.title}
			c.run(ctx)
			r.Agents[i] = c.report
		})
	}
	all.Wait()
	if len(chosen) == 0 {
		r.Hookd = append(r.Hookd, Finding{Level: Note, Text: "no coding agent was found on this machine", Fix: "name one: hookd doctor " + Agents()[0]})
	}
	r.OK = !slices.ContainsFunc(r.Hookd, isProblem)
	for _, a := range r.Agents {
		r.OK = r.OK && !slices.ContainsFunc(a.Findings, isProblem)
	}
	return r, context.Cause(ctx)
}

var versionPattern = regexp.MustCompile(`(\d{1,6})\.(\d{1,6})\.(\d{1,6})`)

func isProblem(f Finding) bool { return f.Level == Problem }

// hookd judges the daemon and the programs.
func (x *Examination) hookd(d Daemon, away error) []Finding {
	var list []Finding
	switch {
	case away != nil:
		list = append(list, Finding{Level: Problem, Text: "the daemon does not answer: " + away.Error(), Fix: "start it with: hookd serve"})
	case !d.Ready:
		list = append(list, Finding{Level: Problem, Text: "the daemon runs, but a required hook is missing", Fix: "see which and why with: hookd status"})
	case d.Version != x.Version:
		list = append(list, Finding{Level: Warning, Text: fmt.Sprintf("the daemon is version %s, and this program %s", d.Version, x.Version), Fix: "restart the daemon"})
	default:
		list = append(list, Finding{Level: OK, Text: "the daemon answers, version " + d.Version})
	}
	switch {
	case len(x.Program.Argv) == 0:
		list = append(list, Finding{Level: Problem, Text: ErrNoProgram.Error(), Fix: "put " + clientProgram + " beside hookd"})
	case x.Program.Note != "":
		list = append(list, Finding{Level: Warning, Text: x.Program.Note})
	default:
		list = append(list, Finding{Level: OK, Text: "agents are to run " + strings.Join(x.Program.Argv, " ")})
	}
	return list
}

// checkup is the examination of one agent.
type checkup struct {
	x      *Examination
	place  *Place
	spec   *spec
	report AgentReport
	named  bool // the user named the agent
	away   bool // there is no daemon
	daemon Daemon

	found []foundFile
}

// foundFile is a file of the agent that was read.
type foundFile struct {
	scope Scope
	path  string
	real  string
	text  []byte
	slots []slot
}

func (c *checkup) add(l Level, text, fix string) {
	c.report.Findings = append(c.report.Findings, Finding{Level: l, Text: text, Fix: fix})
}

func (c *checkup) at(l Level, file string, line int, text, fix string) {
	c.report.Findings = append(c.report.Findings, Finding{l, text, fix, file, line})
}

// reinstall is what brings the entries up to date.
func (c *checkup) reinstall(scope Scope) string {
	line := "hookd install " + c.spec.name
	if scope == Project {
		line += " --project " + c.place.Project
	}
	return line
}

func (c *checkup) run(ctx context.Context) {
	c.version(ctx)
	for _, scope := range c.spec.scopes {
		if scope == User || c.place.Project != "" {
			c.read(scope)
		}
	}
	ours := c.ours()
	c.report.Installed = len(ours) > 0
	if len(ours) == 0 {
		level := Note
		if c.named {
			level = Problem
		}
		if !slices.ContainsFunc(c.report.Findings, isProblem) {
			c.add(level, "hookd is not installed for "+c.spec.title, c.reinstall(User))
		}
		return
	}
	c.programs(ctx, ours)
	c.complete(ours)
	c.twice(ours)
	c.others(ours)
	if c.spec.check != nil {
		c.spec.check(c)
	}
	for _, text := range c.spec.runsToo(c.place) {
		c.add(Warning, text, "")
	}
	c.roundTrip(ctx, ours)
	c.lastSeen()
}

// version finds the agent's program and asks it for its version.
func (c *checkup) version(ctx context.Context) {
	c.report.Program = findInPath(c.spec.programs, c.place.getenv)
	if c.report.Program == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	out, err := c.x.Run(ctx, []string{c.report.Program, "--version"}, nil)
	if err != nil || out.Exit != 0 {
		c.add(Note, "its version is not known: it did not answer --version", "")
		return
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out.Stdout)), "\n")
	c.report.Version = printable(line, 80)
	if older(c.report.Version, c.spec.since) {
		c.add(Warning, fmt.Sprintf("its hooks work with hookd from version %s on", c.spec.since), "upgrade "+c.spec.title)
	}
}

// older reports whether a program says a version that is before another; what
// can't be read is not.
func older(said, since string) bool {
	read := func(text string) (v [3]int, ok bool) {
		found := versionPattern.FindStringSubmatch(text)
		for i := range v {
			if found == nil {
				return v, false
			}
			v[i], _ = strconv.Atoi(found[i+1]) // digits
		}
		return v, true
	}
	is, ok := read(said)
	first, known := read(since)
	return ok && known && slices.Compare(is[:], first[:]) < 0
}

// printable makes a foreign text fit for a terminal.
func printable(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return -1
		}
		return r
	}, s)
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// read reads the files of a scope.
func (c *checkup) read(scope Scope) {
	targets, err := c.spec.all(c.place, scope)
	if err != nil {
		c.add(Problem, err.Error(), "")
		return
	}
	for _, t := range targets {
		file, err := readDisk(t.path)
		if err != nil {
			c.at(Problem, t.path, 0, err.Error(), "make it readable, or remove it")
			continue
		}
		if file.text == nil {
			continue
		}
		slots, err := t.edit.scan(t.path, file.text)
		if bad, ok := errors.AsType[*FileError](err); ok {
			c.at(Problem, t.path, bad.Line, fmt.Sprintf("%s (column %d)", bad.Text, bad.Column), c.spec.title+" can't read it either: correct it")
			continue
		}
		if err == nil {
			_, _, err = t.edit.strip(t.path, c.spec.name, file.text)
		}
		if err != nil {
			c.at(Warning, t.path, 0, err.Error(), "")
		}
		c.found = append(c.found, foundFile{scope, t.path, file.real, file.text, slots})
	}
}

// placed is an entry of ours and where it stands.
type placed struct {
	slot
	file *foundFile
}

func (c *checkup) ours() []placed {
	var list []placed
	for i := range c.found {
		for _, s := range c.found[i].slots {
			if s.ours && s.call.Agent == c.spec.name {
				list = append(list, placed{s, &c.found[i]})
			} else if s.ours {
				c.at(Warning, c.found[i].path, s.line, fmt.Sprintf("an entry here says --agent %s, and this file is read by %s", s.call.Agent, c.spec.title), "remove it, and: "+c.reinstall(c.found[i].scope))
			}
		}
	}
	return list
}
