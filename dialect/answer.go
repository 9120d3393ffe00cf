package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Decision reads a hook's answer to a request, as strictly as
// [protocol.DecodeDecision]: an answer in another dialect is first rewritten
// into hookd's words, values byte for byte. The error of an answer that only
// another dialect can read names that dialect.
func (d Dialect) Decision(req *protocol.Request, answer []byte) (protocol.Decision, error) {
	decision, err := d.decide(req, answer)
	if err == nil || !shared(req.Stage) {
		return decision, err
	}
	return decision, d.hint(err, func(other Dialect) []string {
		own, err := other.own(req, answer)
		if err == nil {
			_, err = protocol.DecodeDecision(req.Stage, own.AppendJSON(nil))
		}
		if err != nil {
			return nil
		}
		return words(req.Stage, own)
	})
}

func (d Dialect) decide(req *protocol.Request, answer []byte) (protocol.Decision, error) {
	if d.foreign(req.Stage) {
		own, err := d.own(req, answer)
		if err != nil {
			return protocol.Decision{}, err
		}
		answer = own.AppendJSON(nil)
	}
	decision, err := protocol.DecodeDecision(req.Stage, answer)
	if err == nil && !d.foreign(req.Stage) {
		err = misplaced(req, decision.Subject)
	}
	if err != nil {
		return protocol.Decision{}, err
	}
	return decision, nil
}

// misplaced finds a change that stands where PicoClaw's hooks put it after a
// model or a tool: one level deeper, or under the name for_llm. Merged as it
// is, it would add a member that nobody reads, and leave what was to be changed
// as it was.
func misplaced(req *protocol.Request, change jsontext.Value) error {
	name := req.Stage.Result
	if change == nil || !req.Stage.Wrapped() || !shared(req.Stage) {
		return nil
	}
	given := object(change)
	inner, said := given.Get(name), given.Get("for_llm")
	if inner == nil && said == nil {
		return nil
	}
	have := inside(req.Subject, name)
	if inner != nil && inner.Kind() == '{' && have.Get(name) == nil {
		return fmt.Errorf(`%s.%[1]s is one level too deep: put "dialect": %q into its entry, or what changes into %[1]s itself`, name, Picoclaw)
	}
	if said != nil && have.Get("for_llm") == nil && have.Get("content") != nil {
		return fmt.Errorf("%s.for_llm: hookd has it as %[1]s.content", name)
	}
	return nil
}

// own rewrites an answer into hookd's words, without judging the values.
func (d Dialect) own(req *protocol.Request, answer []byte) (protocol.Object, error) {
	if answer = bytes.Trim(answer, " \t\r\n"); len(answer) == 0 || string(answer) == "null" {
		return nil, nil
	}
	given, err := protocol.DecodeObject(answer, 0)
	if err != nil {
		return nil, err
	}
	if d == Hookd || d == "" {
		return given, nil
	}
	r := rewrite{req: req, shown: d.shown(req), known: d.answerMembers(req.Stage)}
	for _, m := range given {
		if err := r.member(m); err != nil {
			return nil, err
		}
	}
	return r.done()
}

// answerMembers lists what an answer at this stage may hold.
func (d Dialect) answerMembers(stage *protocol.StageInfo) []string {
	names, tool := []string{"action", "reason", stage.Result}, stage.Name == protocol.StageBeforeTool
	if tool {
		names = append(names, "result")
	}
	if d == PicoclawSite {
		names = append(names, "decision")
		if tool {
			names = append(names, "allow", "args", "hook_result")
		}
	}
	return names
}

// rewrite is one answer on its way into hookd's words.
type rewrite struct {
	req      *protocol.Request
	shown    *protocol.Request // as the hook has seen it
	known    []string          // members that an answer may have
	out      protocol.Object
	responds bool // unless an action is given
	warnings []string
}

func (r *rewrite) member(m protocol.Member) error {
	switch {
	case m.Name == "message":
		return errors.New(`unknown member "message" (did you mean "reason"?)`)
	case !slices.Contains(r.known, m.Name):
		return fmt.Errorf("unknown member %q%s", clip(m.Name), protocol.DidYouMean(m.Name, r.known))
	case isNull(m.Value):
		return nil // as if it were not there
	}
	switch m.Name {
	case "action":
		return r.action(m.Value)
	case "reason":
		return r.put(m.Name, m.Value)
	case r.req.Stage.Result:
		return r.change(m)
	case "result", "hook_result":
		r.responds = m.Name == "hook_result"
		return r.respond(m.Name, m.Value)
	case "allow":
		return r.allow(m.Value)
	case "args":
		return r.put("call", protocol.Object{{Name: "arguments", Value: m.Value}}.AppendJSON(nil))
	}
	inner, err := members(m.Name, m.Value)
	for _, i := range inner {
		if i.Name == "decision" {
			err = errors.New("decision.decision: unknown member")
		}
		if err == nil {
			err = r.member(i)
		}
	}
	return err
}

func (r *rewrite) allow(v jsontext.Value) error {
	switch v.Kind() {
	case 't':
		return r.put("action", protocol.Quote("continue"))
	case 'f':
		return r.put("action", protocol.Quote(protocol.WireDenyTool))
	}
	return errors.New("allow: expected a boolean")
}

// respond takes over a result that is to be used instead of running the tool.
func (r *rewrite) respond(path string, v jsontext.Value) error {
	result, err := members(path, v)
	if err != nil {
		return err
	}
	return r.put("result", toOurs(result).AppendJSON(nil))
}

// put adds a member to the outcome; a second one of the same name is one too
// many.
func (r *rewrite) put(name string, v jsontext.Value) error {
	if r.out.Get(name) != nil {
		return fmt.Errorf("%s is given twice, in two ways", name)
	}
	r.out = append(r.out, protocol.Member{Name: name, Value: v})
	return nil
}

// action takes over PicoClaw's verbs, which are hookd's, and no others. An empty
// one is none.
func (r *rewrite) action(v jsontext.Value) error {
	if v.Kind() != '"' {
		return errors.New("action: expected a string")
	}
	verbs := []string{"continue", "modify", "respond", protocol.WireDenyTool, "abort_turn", "hard_abort"}
	verb := protocol.Unquote(v)
	if verb == "" {
		return nil
	}
	if !slices.Contains(verbs, verb) {
		return fmt.Errorf("action: unknown verb %q%s", clip(verb), protocol.DidYouMean(verb, verbs))
	}
	return r.put("action", protocol.Quote(verb))
}

// change takes from the params that a hook gives back, all or some of them,
// what may change.
func (r *rewrite) change(m protocol.Member) error {
	stage := r.req.Stage
	given, err := members(m.Name, m.Value)
	if err != nil {
		return err
	}
	var change protocol.Object
	for _, g := range given {
		switch {
		case g.Name == "hook_result" && stage.Name == protocol.StageBeforeTool:
			if isNull(g.Value) {
				continue
			}
			if err := r.respond("call.hook_result", g.Value); err != nil {
				return err
			}
		case !slices.Contains(stage.Subject, g.Name):
			if err := r.echo(m.Name, g); err != nil {
				return err
			}
		case isNull(g.Value):
		case !stage.Wrapped():
			change = append(change, g)
		default:
			inner, err := members(m.Name+"."+g.Name, g.Value)
			if err == nil && stage.Name == protocol.StageAfterTool {
				inner, err = changedResult(r.req, inner)
			}
			if err != nil {
				return err
			}
			change = inner
		}
	}
	if change == nil {
		return nil
	}
	return r.put(m.Name, change.AppendJSON(nil))
}

// echo deals with a param that can't be changed. A hook may give back what it
// was shown.
func (r *rewrite) echo(path string, g protocol.Member) error {
	stage := r.req.Stage
	switch g.Name {
	case "meta", "context", "call_id", "state", "deadline_ms", "dry_run":
		return nil
	case "graceful_terminal":
		if stage.Name == protocol.StageBeforeLLM {
			return nil
		}
	}
	shown := r.shown.Extra.Get(g.Name)
	if shown == nil {
		shown = r.shown.Fixed.Get(g.Name)
	}
	switch {
	case shown == nil && stage.Wrapped():
		return fmt.Errorf("%s: unknown member %q (what changes belongs into %[1]s.%[1]s)", path, clip(g.Name))
	case shown == nil:
		return fmt.Errorf("%s: unknown member %q%s", path, clip(g.Name), protocol.DidYouMean(g.Name, append([]string{"hook_result"}, stage.Subject...)))
	case protocol.SameValue(shown, g.Value):
	case g.Name == "name" || g.Name == "args":
		return fmt.Errorf("%s.%s was changed: change %[1]s.tool or %[1]s.arguments", path, g.Name)
	default:
		r.warnings = append(r.warnings, fmt.Sprintf("%s.%s was changed, which has no effect", path, clip(g.Name)))
	}
	return nil
}

// done returns what has become of the answer.
func (r *rewrite) done() (protocol.Object, error) {
	if r.req.Stage.Name == protocol.StageBeforeTool && r.out.Get("result") != nil {
		switch verb := r.out.Get("action"); {
		case verb == nil && r.responds:
			r.out = append(r.out, protocol.Member{Name: "action", Value: protocol.Quote("respond")})
		case verb == nil || string(verb) == `"continue"` || string(verb) == `"modify"`:
			return nil, errors.New(`a result goes with the action "respond"`)
		}
	}
	if len(r.warnings) > 0 {
		list, err := protocol.Marshal(r.warnings)
		if err != nil {
			return nil, err
		}
		r.out = append(r.out, protocol.Member{Name: "warnings", Value: list})
	}
	return r.out, nil
}

// Approval reads an approver's answer, as strictly as [protocol.DecodeApproval].
func (d Dialect) Approval(answer []byte) (protocol.Approval, error) {
	approval, err := d.approve(answer)
	if err != nil {
		return approval, d.hint(err, func(other Dialect) []string {
			if _, err := other.approve(answer); err != nil {
				return nil
			}
			return []string{"approved"}
		})
	}
	return approval, nil
}

func (d Dialect) approve(answer []byte) (protocol.Approval, error) {
	if d != Picoclaw && d != PicoclawSite || isNull(answer) {
		return protocol.DecodeApproval(answer)
	}
	given, err := protocol.DecodeObject(answer, 0)
	if err != nil {
		return protocol.Approval{}, err
	}
	if given.Get("by") != nil {
		return protocol.Approval{}, errors.New(`unknown member "by"`)
	}
	if d == PicoclawSite && given.Get("approved") == nil && given.Get("allow") != nil {
		answer = rename(given, "allow", "approved", given.Get("allow")).AppendJSON(nil)
	}
	return protocol.DecodeApproval(answer)
}

// hint says in which dialect an answer that could not be read makes sense, and
// with which of hookd's words it could be said. read returns those, or none
// when the answer can't be read in that dialect either.
func (d Dialect) hint(err error, read func(Dialect) []string) error {
	for _, other := range []Dialect{Hookd, Picoclaw, PicoclawSite} {
		if other == d || other == Hookd && d == "" {
			continue
		}
		own := read(other)
		switch {
		case len(own) == 0:
		case other == Hookd:
			return fmt.Errorf(`%w: its answer is in hookd's own words, so take "dialect": %q out of its entry`, err, d)
		default:
			return fmt.Errorf(`it answers in another dialect: put "dialect": %q into its entry, or let it answer in hookd's words, here %s`, other, strings.Join(own, ", "))
		}
	}
	return err
}

// maxWords is how many words a hint names.
const maxWords = 6

// words lists the members of an answer in hookd's words.
func words(stage *protocol.StageInfo, own protocol.Object) []string {
	var list []string
	for _, m := range own {
		if m.Name != stage.Result {
			list = append(list, m.Name)
			continue
		}
		for _, c := range object(m.Value) {
			list = append(list, m.Name+"."+clip(c.Name))
		}
	}
	if len(list) > maxWords {
		list = append(list[:maxWords], "…")
	}
	return list
}

// clip shortens what a hook wrote before it goes into a message.
func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "…"
	}
	return s
}
