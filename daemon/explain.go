package daemon

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hookd/hookd/commands"
	"github.com/hookd/hookd/condition"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/trust"
)

// ExplainOptions say what to explain.
type ExplainOptions struct {
	// ConfigPath is the file; empty means none.
	ConfigPath string
	Builtins   []mount.Builtin
	Getenv     func(string) string
	// Request is the call.
	Request *protocol.Request
}

// Explained is a hook that a config or a file names, and whether a call means
// it.
type Explained struct {
	Name     string `json:"name"`
	Source   string `json:"source"`
	Layer    string `json:"layer"`
	Priority int    `json:"priority"`
	// Asked: the hook would be asked, as far as its turn finds the call as it is
	// now. An earlier hook may change that.
	Asked bool `json:"asked"`
	// Why says which of its rules decided that.
	Why string `json:"why"`
	// Role is what it would be asked as: interceptor or approver.
	Role string `json:"role"`
	// FailPolicy, Mode and When say what its answer, or none, would be worth.
	FailPolicy string `json:"fail_policy"`
	Mode       string `json:"mode"`
	When       string `json:"when,omitzero"`
}

// Explain says which hooks a call means, in the order in which they would be
// asked, without starting or running any. The error is a [config.LoadError]
// when the file can't be read as a config.
func Explain(o ExplainOptions) ([]Explained, error) {
	registry, cfg, err := loadOffline(o.ConfigPath, io.Discard, o.Builtins)
	if err != nil {
		return nil, err
	}
	files, err := commands.Load(layerFiles(cfg.Layers)...)
	if err != nil {
		return nil, fmt.Errorf("command hooks: %w", err)
	}
	x := explainer{registry: registry, req: o.Request, agent: o.Request.MetaString("agent")}
	for i := range cfg.Hooks.Entries {
		x.entry(&cfg.Hooks.Entries[i])
	}
	scripts := commands.NewRunner(commands.RunnerOptions{Getenv: o.Getenv})
	for _, f := range files {
		x.written(f.File, f.Layer)
	}
	for _, r := range commands.Registrations(files, scripts) {
		x.script(r, true)
	}
	for _, r := range x.project(cfg, scripts, o.Getenv) {
		x.script(r, false)
	}
	slices.SortStableFunc(x.list, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.role, b.role), cmp.Compare(a.source, b.source), cmp.Compare(a.layer, b.layer), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name))
	})
	out := []Explained{}
	for _, p := range x.list {
		out = append(out, p.Explained)
	}
	return out, nil
}

// placed is an explained hook with what orders it.
type placed struct {
	Explained
	role, source, layer int
}

type explainer struct {
	registry *mount.Registry
	req      *protocol.Request
	agent    string
	list     []placed
	rules    map[string]written // by the names of their hooks
}

// written is what a file of command hooks says about a hook.
type written struct {
	file    *commands.File
	rule    *commands.Rule
	handler *commands.Handler
}

// written notes what a file says about each of its hooks.
func (x *explainer) written(f *commands.File, layer hook.Layer) {
	if x.rules == nil {
		x.rules = map[string]written{}
	}
	for i := range f.Rules {
		rule := &f.Rules[i]
		for j := range rule.Handlers {
			name := fmt.Sprintf("%s:%s/%s", layer, rule.Event, rule.Name)
			if len(rule.Handlers) > 1 {
				name += fmt.Sprintf("#%d", j+1)
			}
			x.rules[name] = written{f, rule, &rule.Handlers[j]}
		}
	}
}

// because says which of a rule's matcher and conditions decided.
func (x *explainer) because(name string, req *protocol.Request, meant bool) string {
	w, ok := x.rules[name]
	if !ok {
		return ""
	}
	if !meant && w.rule.Matcher != "" && !w.matches(req) {
		return fmt.Sprintf("its matcher %q does not mean %q", w.rule.Matcher, req.Tool())
	}
	var why []string
	for _, text := range []string{w.rule.IfText, w.handler.IfText} {
		if text == "" {
			continue
		}
		if c, err := condition.Compile(text); err == nil {
			holds, how := explainIf(c, req)
			if !meant && !holds {
				return how
			}
			why = append(why, how)
		}
	}
	return strings.Join(why, "; ")
}

// matches reports whether the matcher alone means a call.
func (w written) matches(req *protocol.Request) bool {
	text := protocol.Object{{Name: "hooks", Value: protocol.Object{{Name: w.rule.Event, Value: slices.Concat(
		[]byte(`[{"matcher":`), protocol.Quote(w.rule.Matcher), []byte(`,"hooks":[{"type":"command","command":"true"}]}]`),
	)}}.AppendJSON(nil)}}
	if w.file.Form == commands.FormHookd {
		text = append(protocol.Object{{Name: "version", Value: []byte("1")}}, text...)
	}
	f, err := commands.Parse(w.file.Path, text.AppendJSON(nil))
	if err != nil {
		return true
	}
	for _, r := range f.Hooks(hook.LayerUser, 0, nil) {
		return r.If.Holds(req)
	}
	return true
}

// entry explains an entry of the config.
func (x *explainer) entry(e *config.Entry) {
	for _, stage := range x.stages() {
		if stage == protocol.StageApproveTool && e.Source == hook.InProcess && e.Intercept == nil && slices.Contains(strings.Fields(judging+" "+watching), e.Name) {
			continue // it approves nothing
		}
		p := placed{Explained: Explained{
			Name: e.Name, Source: string(e.Source), Layer: hook.LayerConfig.String(), Priority: x.registry.Priority(e),
			FailPolicy: string(e.FailPolicy), Mode: string(e.Mode), Role: "interceptor",
		}}
		if e.Source != hook.InProcess {
			p.source = 1
		}
		if stage == protocol.StageApproveTool {
			p.Role, p.role, p.When = "approver", 1, string(e.When)
		}
		p.Asked, p.Why = x.meant(e, stage)
		x.list = append(x.list, p)
	}
}

// stages are where the call goes: a call that is to be approved also asks the
// approvers.
func (x *explainer) stages() []protocol.Stage {
	if x.req.Stage.Name == protocol.StageBeforeTool {
		return []protocol.Stage{protocol.StageBeforeTool, protocol.StageApproveTool}
	}
	return []protocol.Stage{x.req.Stage.Name}
}

func (x *explainer) meant(e *config.Entry, stage protocol.Stage) (bool, string) {
	tool := x.req.Tool()
	switch {
	case !e.Enabled:
		return false, "it is disabled (enabled: false)"
	case e.Source == hook.InProcess && slices.Contains(strings.Fields(watching), e.Name):
		return false, "it only watches"
	case e.Source == hook.InProcess && e.Intercept == nil:
		// What it can do shows only when it is made.
	case !slices.Contains(e.Intercept, stage):
		return false, fmt.Sprintf("%s is not among its stages (%s)", stage, joined(e.Intercept))
	}
	byTool, _ := hook.NewMatch(e.MatchTools, nil) // both were read before
	if !byTool.Matches(tool, x.req.Stage.Tool(), x.agent) {
		return false, fmt.Sprintf("match.tools %q does not mean %q", e.MatchTools, tool)
	}
	if !e.Match.Matches(tool, x.req.Stage.Tool(), x.agent) {
		return false, fmt.Sprintf("match.agents %q does not mean %q", e.MatchAgents, x.agent)
	}
	why := "nothing narrows it"
	if len(e.MatchTools)+len(e.MatchAgents) > 0 {
		why = "its match means the call"
	}
	if e.If == nil {
		return true, why
	}
	c, ok := e.If.(*condition.Condition)
	if !ok {
		return e.If.Holds(x.req), "by its condition"
	}
	return explainIf(c, x.req)
}

// explainIf says how a condition was judged.
func explainIf(c *condition.Condition, req *protocol.Request) (bool, string) {
	e := c.Explain(req)
	var b strings.Builder
	fmt.Fprintf(&b, "if %s is %t", c, e.Holds)
	if e.Err != nil {
		fmt.Fprintf(&b, ", because it could not be judged (%v)", e.Err)
	}
	if e.Why != "" {
		b.WriteString(": " + e.Why)
	}
	for i, f := range e.Fields {
		b.WriteString([]string{"; with ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%s = %s", f.Name, clipped(string(f.Value)))
	}
	if e.Shell != nil {
		fmt.Fprintf(&b, "; the line runs %s", shellRuns(e))
	}
	return e.Holds, b.String()
}

func shellRuns(e condition.Explanation) string {
	var names []string
	for _, c := range e.Shell.Commands {
		names = append(names, c.Name)
	}
	text := strings.Join(names, ", ")
	if text == "" {
		text = "nothing that is known"
	}
	if e.Shell.Unresolved {
		text += ", and something that can't be told"
	}
	return text
}

func clipped(text string) string {
	if r := []rune(text); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return text
}

// script explains a command hook. trusted: it runs when it is meant.
func (x *explainer) script(r *hook.Registration, trusted bool) {
	for _, stage := range x.stages() {
		p := placed{source: 1, layer: int(r.Layer), Explained: Explained{
			Name: r.Name, Source: string(r.Source), Layer: r.Layer.String(), Priority: r.Priority,
			FailPolicy: string(r.FailPolicy), Mode: cmp.Or(string(r.Mode), string(hook.Enforce)), Role: "interceptor",
		}}
		req := x.req
		if stage == protocol.StageApproveTool {
			p.Role, p.role = "approver", 1
			if req.Stage.Name != stage {
				as := *req
				as.Stage = protocol.NewStageTable().Stage(stage)
				req = &as
			}
		}
		switch {
		case !r.Handles(stage):
			if stage == x.req.Stage.Name {
				p.Why = fmt.Sprintf("its event is none of %s", stage)
				x.list = append(x.list, p)
			}
			continue
		case !r.If.Holds(req):
			p.Why = cmp.Or(x.because(r.Name, req, false), "its matcher or condition does not mean the call")
		default:
			p.Asked, p.Why = true, "its matcher and condition mean the call"
			if why := x.because(r.Name, req, true); why != "" {
				p.Why += ": " + why
			}
			if !trusted {
				p.Why += "; it runs only when its file is trusted"
			}
		}
		x.list = append(x.list, p)
	}
}

// project are the rules of the project in which the call happens; where its
// file can't be believed, one line says so.
func (x *explainer) project(cfg *config.Config, run *commands.Runner, getenv func(string) string) []*hook.Registration {
	var list []*hook.Registration
	for _, rel := range cfg.Layers.Project {
		cwd := x.req.MetaString("cwd")
		path, content, err := trust.Open(cwd, rel)
		if cwd == "" || err != nil {
			continue
		}
		say := func(why string) {
			x.list = append(x.list, placed{role: 2, Explained: Explained{Name: path, Source: string(hook.Command), Layer: hook.LayerProject.String(), Why: why}})
		}
		f, err := commands.Parse(path, content)
		if err != nil {
			say("it can't be read: " + err.Error())
			continue
		}
		store := &trust.Store{Path: TrustList(getenv)}
		state, why, err := store.State(path, content, f.Names())
		switch {
		case err != nil:
			say(err.Error())
		case state == trust.Never:
			say("not trusted, so nothing in it runs: look at it, then: hookd trust " + cwd)
		case state == trust.Changed:
			say("changed since it was trusted, so what it judges is denied: " + why)
		}
		x.written(f, hook.LayerProject)
		list = append(list, f.Hooks(hook.LayerProject, 0, run)...)
	}
	return list
}

func joined(stages []protocol.Stage) string {
	var words []string
	for _, s := range stages {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}
