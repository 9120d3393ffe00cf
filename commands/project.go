package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/trust"
)

// Projects runs the hook files of projects: those below the folder in which a
// session works. It is one hook of a generation, the last, that stands for all
// of them; each rule leaves a step of its own in the trail.
//
// A file that nobody has trusted is not run, and that is said once. One that
// was trusted and has changed can't be believed: what it would have judged is
// denied. Rules of a project can deny, ask and add context. What else they say
// is an error, as if they had said nothing that can be read.
type Projects struct {
	o ProjectOptions

	mu     sync.Mutex
	dirs   map[string]*project
	order  []string
	warned map[string]bool
}

// ProjectOptions configure [Projects].
type ProjectOptions struct {
	// Paths are the files below a project's folder, in their order.
	Paths []string
	Trust *trust.Store
	Run   *Runner
	Log   *zap.Logger
}

// projectsKept is how many projects are remembered.
const projectsKept = 256

// projectName is what the hook is called in a generation.
const projectName = "project"

// NewProjects returns the hook.
func NewProjects(o ProjectOptions) *Projects {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return &Projects{o: o, dirs: map[string]*project{}, warned: map[string]bool{}}
}

// Hook returns the registration of the hook, or nil when no paths are
// configured.
func (p *Projects) Hook() *hook.Registration {
	if len(p.o.Paths) == 0 {
		return nil
	}
	var stages []protocol.Stage
	for _, r := range eventRows() {
		if r.stage != "" && !slices.Contains(stages, r.stage) {
			stages = append(stages, r.stage)
		}
	}
	return &hook.Registration{
		Name: projectName, Source: hook.Command, Layer: hook.LayerProject,
		Roles:  hook.Roles{Value: p, Interceptor: p, Approver: p, Stages: stages, Remote: true},
		Stages: stages, If: p, FailPolicy: hook.FailContinue, MaxRepeats: new(8),
		Timeout: commandTimeout, ApprovalTimeout: commandTimeout, ObserverTimeout: ownTimeout,
	}
}

// Remote says that the hook keeps its own time.
func (p *Projects) Remote() {}

// Abstains says that most projects have no opinion on a permission.
func (p *Projects) Abstains() {}

// project is what is known of one folder.
type project struct {
	mu    sync.Mutex
	files []*projectFile
}

// projectFile is one hook file with the state in which it was read.
type projectFile struct {
	dir   string // of the project
	rel   string
	stamp string // of the file and what it names, as the system tells it
	path  string
	state trust.State
	why   string // of a changed one, or one that can't be read
	file  *File
	rules []*scripted
	// trusted are the rules as they were when the file was last trusted; nil
	// when that was before hookd started.
	trusted []*scripted
}

// Holds reports whether a project has anything to say about a call.
func (p *Projects) Holds(req *protocol.Request) bool {
	o := ofRequest(req)
	for _, f := range p.look(o.cwd(), false) {
		if f.concerns(req, o) {
			return true
		}
	}
	return false
}

// Excludes says that a call without a folder is no project's.
func (p *Projects) Excludes(req *protocol.Request) bool {
	return !filepath.IsAbs(req.MetaString("cwd"))
}

// concerns reports whether a file means a call. Of a file that has changed the
// rules count that were trusted, or the change could take the call out of them.
// Where nobody remembers those, every tool call is meant.
func (f *projectFile) concerns(req *protocol.Request, o *occasion) bool {
	rules := f.rules
	switch f.state {
	case trust.Never:
		return false
	case trust.Changed:
		if f.trusted == nil {
			return req.Stage.Name == protocol.StageBeforeTool || req.Stage.Name == protocol.StageApproveTool
		}
		rules = f.trusted
	}
	return slices.ContainsFunc(rules, func(c *scripted) bool { return c.row.stage == req.Stage.Name && c.means(o, req) })
}

// maxPath is the longest path that a system knows, in bytes.
const maxPath = 4096

// roots are the projects that a folder belongs to, the outermost first: all
// folders from it upwards that have a hook file, or had a trusted one. Work in a
// folder of a project is work in the project, whatever lies between. Where links
// lead to the folder, what is around its real place counts, too.
func (p *Projects) roots(cwd string) []string {
	grants, err := p.o.Trust.Grants()
	if err != nil {
		grants = nil // the file itself says so when it is read
	}
	cwd = filepath.Clean(cwd)
	for len(cwd) > maxPath { // nothing can be there
		cwd = filepath.Dir(cwd)
	}
	list := p.above(nil, cwd, grants)
	if real, err := filepath.EvalSymlinks(cwd); err == nil && real != cwd {
		list = p.above(list, real, grants)
	}
	slices.SortStableFunc(list, func(a, b string) int { return len(a) - len(b) })
	return list
}

// above adds the folders from dir upwards that have a hook file.
func (p *Projects) above(list []string, dir string, grants []trust.Grant) []string {
	for ; ; dir = filepath.Dir(dir) {
		if slices.ContainsFunc(p.o.Paths, func(rel string) bool {
			path := filepath.Join(dir, rel)
			_, err := os.Lstat(path)
			return err == nil || slices.ContainsFunc(grants, func(g trust.Grant) bool { return g.Path == path })
		}) && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
		if dir == filepath.Dir(dir) {
			return list
		}
	}
}

// look returns the files of the projects around cwd. When it is asked for
// afresh, they are read and compared with what was trusted as they are now;
// otherwise only when the system says that something has changed.
func (p *Projects) look(cwd string, afresh bool) []*projectFile {
	if !filepath.IsAbs(cwd) {
		return nil
	}
	var out []*projectFile
	for _, dir := range p.roots(cwd) {
		for _, f := range p.lookIn(dir, afresh) {
			if !slices.ContainsFunc(out, func(o *projectFile) bool { return o.path == f.path }) {
				out = append(out, f)
			}
		}
	}
	return out
}

// lookIn returns the files of one project.
func (p *Projects) lookIn(root string, afresh bool) []*projectFile {
	p.mu.Lock()
	dir := p.dirs[root]
	if dir == nil {
		dir = &project{}
		for _, rel := range p.o.Paths {
			dir.files = append(dir.files, &projectFile{rel: rel})
		}
		p.dirs[root] = dir
		p.order = append(p.order, root)
		if len(p.order) > projectsKept {
			delete(p.dirs, p.order[0])
			p.order = p.order[1:]
		}
	}
	p.mu.Unlock()
	dir.mu.Lock()
	defer dir.mu.Unlock()
	out := make([]*projectFile, 0, len(dir.files))
	for i, f := range dir.files {
		if afresh && f.path != "" || p.stamp(root, f) != f.stamp {
			dir.files[i] = p.read(root, f.rel, f)
			dir.files[i].stamp = p.stamp(root, dir.files[i])
		}
		if f := dir.files[i]; f.path != "" {
			out = append(out, f)
		}
	}
	return out
}

// stamp is what the system tells of a file, of those that it names and of the
// list of trusted files, without reading them.
func (p *Projects) stamp(cwd string, f *projectFile) string {
	var b strings.Builder
	paths := []string{filepath.Join(cwd, f.rel), p.o.Trust.Path}
	if f.file != nil {
		paths = append(paths, f.file.Names()...)
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			b.WriteString("-;")
			continue
		}
		fmt.Fprintf(&b, "%d,%d,%v", info.ModTime().UnixNano(), info.Size(), info.Mode())
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			fmt.Fprintf(&b, ",%d", st.Ino)
		}
		b.WriteByte(';')
	}
	return b.String()
}

// read reads a hook file and finds out how far it is trusted. was is what was
// known of it: a file that was trusted and is gone or unreadable has changed.
func (p *Projects) read(cwd, rel string, was *projectFile) *projectFile {
	f := &projectFile{dir: cwd, rel: rel, trusted: was.trusted}
	path, content, err := trust.Open(cwd, rel)
	known := p.granted(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !known:
		return f
	case err != nil && !known:
		p.say(path, "hook file of a project can't be read and is not run", zap.String("path", path), zap.Error(err))
		return f
	case err != nil:
		f.path, f.state, f.why = path, trust.Changed, err.Error()
		f.file = was.file
		return f
	}
	f.path = path
	file, err := Parse(path, content)
	if err != nil && !known {
		p.say(path, "hook file of a project is wrong and is not run", zap.String("path", path), zap.Error(err))
		f.path = ""
		return f
	}
	if err != nil {
		f.state, f.why = trust.Changed, err.Error()
		f.file = was.file
		return f
	}
	f.file = file
	file.inProject = true
	for _, rule := range file.sorted() {
		if !rule.Enabled || file.Disabled {
			continue
		}
		for i := range rule.Handlers {
			h := &rule.Handlers[i]
			if h.Async || row(rule.Event).stage == "" {
				continue
			}
			f.rules = append(f.rules, &scripted{file: file, rule: rule, handler: h, row: row(rule.Event), runner: p.o.Run, name: file.name(hook.LayerProject, rule, i), counter: path})
		}
	}
	f.state, f.why, err = p.o.Trust.State(path, content, file.Names())
	if err != nil {
		f.state = trust.Changed
		f.why = err.Error()
	}
	switch f.state {
	case trust.Trusted:
		f.trusted = f.rules
	case trust.Never:
		f.trusted = nil
		p.say(path, "hook file of a project is not trusted and is not run: look at it, then: hookd trust "+cwd, zap.String("path", path))
	case trust.Changed:
		p.say(path+f.why, "hook file of a project has changed since it was trusted: what it judges is denied until you look at it, then: hookd trust "+cwd,
			zap.String("path", path), zap.String("why", f.why))
	}
	return f
}

func (p *Projects) granted(path string) bool {
	grants, err := p.o.Trust.Grants()
	return err != nil || slices.ContainsFunc(grants, func(g trust.Grant) bool { return g.Path == path })
}

// Seen reports whether any session has worked in a project with a hook file.
func (p *Projects) Seen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, dir := range p.dirs {
		dir.mu.Lock()
		seen := slices.ContainsFunc(dir.files, func(f *projectFile) bool { return f.path != "" })
		dir.mu.Unlock()
		if seen {
			return true
		}
	}
	return false
}

// say logs something once.
func (p *Projects) say(key, text string, fields ...zap.Field) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.warned[key] {
		return
	}
	if len(p.warned) > 4*projectsKept {
		clear(p.warned)
	}
	p.warned[key] = true
	p.o.Log.Warn(text, fields...)
}

// changed is the failure of a file that can't be believed.
func (f *projectFile) changed() error {
	return &hook.Failure{Outcome: protocol.OutcomeUntrustedChanged, Detail: f.why + "; look at it, then: hookd trust " + f.dir}
}

// Intercept asks the rules of the projects, one after the other.
func (p *Projects) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	var d protocol.Decision
	o := ofRequest(req)
	for _, f := range p.look(o.cwd(), true) {
		if f.state == trust.Changed && f.concerns(req, o) {
			return protocol.Decision{}, f.changed()
		}
		if f.state != trust.Trusted {
			continue
		}
		for _, c := range f.rules {
			if c.row.stage != req.Stage.Name || !c.means(o, req) {
				continue
			}
			step, stop, err := p.turn(ctx, c, req, &d)
			d.Steps = append(d.Steps, step)
			if err != nil || stop {
				return d, err
			}
		}
	}
	return d, nil
}

// turn asks one rule and takes over what a project may say.
func (p *Projects) turn(ctx context.Context, c *scripted, req *protocol.Request, d *protocol.Decision) (step protocol.Step, stop bool, err error) {
	said, err := c.Intercept(ctx, req)
	step = protocol.Step{Hook: c.name, Outcome: protocol.OutcomeContinue}
	if err == nil {
		err = allowedFrom(&said)
	}
	if err != nil {
		if ctx.Err() != nil {
			return step, true, context.Cause(ctx)
		}
		step = failedStep(c.name, err)
		if c.handler.FailPolicy == hook.FailDeny || alwaysDenies(err) {
			p.deny(req.Stage, c, &step, d)
			return step, true, nil
		}
		d.Warnings = append(d.Warnings, c.name+": "+step.Detail)
		return step, false, nil
	}
	step.Action = said.Decided()
	step.Outcome, step.Detail = protocol.Outcome(step.Action), said.Reason
	d.AddContext = append(d.AddContext, said.AddContext...)
	d.Warnings = append(d.Warnings, said.Warnings...)
	switch said.Action {
	case protocol.ActionDeny, protocol.ActionAbortTurn:
		d.Action, d.Reason, d.Inject = said.Action, said.Reason, nil
		return step, true, nil
	case protocol.ActionAsk:
		d.Action, d.Reason = said.Action, orElse(d.Reason, said.Reason)
	case protocol.ActionInject:
		d.Action, d.Inject = said.Action, append(d.Inject, said.Inject...)
	}
	return step, false, nil
}

// deny makes a failure that must not pass the strongest no that the stage knows.
func (p *Projects) deny(stage *protocol.StageInfo, c *scripted, step *protocol.Step, d *protocol.Decision) {
	why := "its answer can't be trusted"
	if step.Outcome.NoAnswer() {
		why = "its fail_policy is deny"
	}
	reason := fmt.Sprintf("hook %q gave no verdict, and %s (%s: %s)", c.name, why, step.Outcome, step.Detail)
	if stage.OnFailure == protocol.ActionContinue {
		d.Warnings = append(d.Warnings, reason)
		return
	}
	d.Action, d.Reason, d.Inject = stage.OnFailure, reason, nil
}

// allowedFrom refuses what a project may not say.
func allowedFrom(d *protocol.Decision) error {
	bad := ""
	switch {
	case d.Action == protocol.ActionAllow:
		bad = "allow"
	case d.Subject != nil || d.Patch != nil || d.Action == protocol.ActionModify:
		bad = "a change"
	case d.Action == protocol.ActionRespond:
		bad = "respond"
	}
	if bad == "" {
		return nil
	}
	return &hook.Failure{Outcome: protocol.OutcomeBadAnswer, Detail: bad + " from a project's hook file: those can deny, ask and add context"}
}

// Approve asks the rules of the projects about a permission. They can refuse.
func (p *Projects) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	a := protocol.Approval{Abstained: true}
	o := ofRequest(req)
	for _, f := range p.look(o.cwd(), true) {
		if f.state == trust.Changed && f.concerns(req, o) {
			return protocol.Approval{}, f.changed()
		}
		if f.state != trust.Trusted {
			continue
		}
		for _, c := range f.rules {
			if c.row.stage != req.Stage.Name || !c.means(o, req) {
				continue
			}
			said, err := c.Approve(ctx, req)
			if err != nil {
				return protocol.Approval{}, err
			}
			step := protocol.Step{Hook: c.name, Outcome: protocol.OutcomeContinue}
			switch {
			case said.Abstained:
			case said.Approved:
				step.Outcome, step.Detail = protocol.OutcomeBadAnswer, "allow from a project's hook file: those can deny, ask and add context"
			default:
				step.Outcome = protocol.OutcomeDeny
				return protocol.Approval{Reason: said.Reason, Steps: append(a.Steps, step)}, nil
			}
			a.Steps = append(a.Steps, step)
		}
	}
	return a, nil
}

// Names returns the files that the commands of a hook file name, by absolute
// path, whether they are there or not. A change of one is a change of the file.
// Where a command names none that can be found, or something that only runs
// tell, all that lies beside the hook file counts.
func (f *File) Names() []string {
	var list []string
	for _, r := range f.Rules {
		for _, h := range r.Handlers {
			if h.Type != "command" {
				continue
			}
			if found := f.named(&h, &list); found == 0 || f.Opaque(&h) {
				f.beside(&list)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// named adds the files that a handler's command can mean, and says how many
// there are.
func (f *File) named(h *Handler, list *[]string) (found int) {
	words := append([]string{h.Command}, h.Args...)
	if h.Args == nil {
		words = shellWords(h.Command)
	}
	for _, word := range words {
		found += f.name1(word, list)
	}
	return found
}

// name1 adds the files that a word can be, and says how many there are.
func (f *File) name1(word string, list *[]string) (found int) {
	if rest, ok := strings.CutPrefix(word, "~/"); ok {
		word = filepath.Join(os.Getenv("HOME"), rest)
	}
	word = f.expand(word)
	if word == "" || strings.HasPrefix(word, "-") {
		return 0
	}
	for _, base := range []string{f.Folder(), f.root()} {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, word)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			*list = append(*list, path)
			found++
		}
	}
	return found
}

// expand puts in the variables whose values are known before a script runs.
func (f *File) expand(word string) string {
	return os.Expand(word, func(name string) string {
		name, instead, _ := strings.Cut(name, ":-")
		switch name {
		case "CLAUDE_PROJECT_DIR":
			return f.root()
		case "PWD":
			return f.start()
		case "CLAUDE_PLUGIN_ROOT":
			return f.Folder()
		case "HOME":
			return os.Getenv("HOME")
		}
		return instead
	})
}

// Opaque reports whether a handler runs something that can't be told from its
// text: a variable, a pattern, a module, a command of a command.
func (f *File) Opaque(h *Handler) bool {
	if h.Type != "command" {
		return false
	}
	line := strings.Join(append([]string{h.Command}, h.Args...), " ")
	for _, known := range []string{"CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "PWD", "HOME"} {
		line = strings.NewReplacer("${"+known+"}", "", "$"+known, "").Replace(line)
	}
	if strings.ContainsAny(line, "$`*?[{") {
		return true
	}
	for _, word := range strings.Fields(line) {
		switch filepath.Base(word) {
		case "-m", "make", "npm", "npx", "yarn", "pnpm", "cd", "eval", "source", ".", "xargs", "just", "task", "go", "cargo", "uv", "deno", "bun":
			return true
		}
	}
	return false
}

// besideFiles is how many files beside a hook file are compared.
const besideFiles = 1000

// beside adds the files below the hook file's folder, but not the hook files.
func (f *File) beside(list *[]string) {
	n := 0
	_ = filepath.WalkDir(f.Folder(), func(path string, e fs.DirEntry, err error) error { // what can't be read is no file
		if err != nil || n > besideFiles {
			return nil
		}
		if e.Type().IsRegular() && path != f.Path {
			n++
			*list = append(*list, path)
		}
		return nil
	})
}

// root is the project's folder, where the file lies one or two levels below it.
func (f *File) root() string { return filepath.Dir(f.Folder()) }

// start is where the scripts of a project's file start: what they name from there
// is what was trusted, wherever the session is.
func (f *File) start() string {
	if f.Form == FormHookd {
		return f.Folder()
	}
	return f.root()
}

// shellWords parts a command line as roughly as is needed to find the files in
// it: white space and operators separate, and quotes are taken away, or separate
// too.
func shellWords(line string) []string {
	const between = " \t\n\r|&;<>()="
	part := func(line, at string) []string {
		return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(at, r) })
	}
	return append(part(strings.NewReplacer("'", "", `"`, "").Replace(line), between), part(line, between+"'\"`")...)
}
