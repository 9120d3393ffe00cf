package commands

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// ended is how a script ended and what it wrote.
type ended struct {
	exit           int
	signal         string // the signal that killed it; "" = none
	stdout, stderr []byte
}

// verdict is what a script said.
type verdict struct {
	decision protocol.Decision
	// approved and refused are for approve_tool: neither means no opinion.
	approved, refused bool
}

func (v *verdict) effect() bool {
	d := &v.decision
	return v.refused || v.approved || d.Action != "" || d.Subject != nil || len(d.AddContext) > 0 || len(d.Inject) > 0
}

const (
	// spillChars is how much context a script may give; what is longer is cut,
	// and says so.
	spillChars = 10_000
	// reasonChars is how long a reason may be.
	reasonChars = 10_000
)

// errOutput is a script's output that can't be read.
func errOutput(format string, args ...any) error {
	return &hook.Failure{Outcome: protocol.OutcomeHookError, Detail: fmt.Sprintf(format, args...)}
}

// read turns an end into a verdict, by the rules of the file's form:
//
//   - 2 blocks, where there is something to block, whatever is on stdout; a
//     reason in its JSON counts before stderr.
//   - 0 with an object on stdout: the object decides. With other text: that is
//     context at three events, and nothing elsewhere.
//   - any other status: in Claude Code's form an object on stdout decides all
//     the same; without one, and in hookd's form always, the script has failed.
//   - a signal is a failure.
//   - in hookd's form other text with an object or a list in it is named in a
//     warning: it may have been meant as a verdict.
//   - JSON that can't be read is a failure in Claude Code's form, as it is there.
//     In hookd's form it denies, like every answer that can't be read.
func read(o *occasion, r eventRow, form Form, e ended) (verdict, error) {
	if e.signal != "" {
		return verdict{}, errOutput("killed by %s", e.signal)
	}
	out := plain(e.stdout)
	isJSON := strings.HasPrefix(out, "{")
	var v verdict
	var bad error
	if isJSON {
		v, bad = o.object(r, form, []byte(out))
	}
	switch {
	case e.exit == 2:
		return block(r, form, v, bad == nil && isJSON, e)
	case e.exit != 0 && (form == FormHookd || !isJSON):
		return verdict{}, errOutput("exit status %d%s", e.exit, colon(firstLine(e.stderr)))
	case bad != nil && form == FormHookd:
		// A typo in a verdict must not become an allow.
		f := &hook.Failure{Outcome: protocol.OutcomeBadAnswer, Detail: bad.Error()}
		if known, ok := errors.AsType[*hook.Failure](bad); ok {
			f.Detail = known.Detail
		}
		return verdict{}, f
	case bad != nil:
		return verdict{}, bad
	case isJSON:
		return v, nil
	}
	if form == FormHookd && (strings.HasPrefix(out, "[") || strings.Contains(out, "{\"") || objectLine(out)) {
		v.decision.Warnings = []string{"it printed JSON that is no verdict: a verdict is one object, with nothing before it"}
	}
	if r.plain && out != "" {
		v.decision.AddContext = []string{clip(out, spillChars)}
	}
	return v, nil
}

// objectLine reports whether a line of a text begins an object.
func objectLine(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "{") {
			return true
		}
	}
	return false
}

// plain is what a script printed, without the white space and the byte order
// mark around it.
func plain(stdout []byte) string {
	return strings.TrimFunc(string(stdout), func(r rune) bool { return r == '\uFEFF' || unicode.IsSpace(r) })
}

// block is exit status 2.
func block(r eventRow, form Form, v verdict, readable bool, e ended) (verdict, error) {
	reason := strings.TrimSpace(string(e.stderr))
	if readable && v.decision.Reason != "" {
		reason = v.decision.Reason
	}
	if reason == "" {
		reason = "blocked by a hook"
	}
	reason = clip(reason, reasonChars)
	b := verdict{decision: protocol.Decision{Warnings: v.decision.Warnings, AddContext: v.decision.AddContext}}
	switch r.stage {
	case protocol.StageBeforeTool, protocol.StageUserMessage, protocol.StageBeforeCompact:
		b.decision.Action, b.decision.Reason = protocol.ActionDeny, reason
	case protocol.StageStop:
		b.decision.Action, b.decision.Inject = protocol.ActionInject, []jsontext.Value{message("user", reason)}
		b.decision.Reason = reason
	case protocol.StageAfterTool:
		b.decision.AddContext = append(b.decision.AddContext, reason) // the tool has run: the model is told
	case protocol.StageApproveTool:
		if form == FormHookd {
			b.refused, b.decision.Reason = true, reason
			return b, nil
		}
		return v, nil // this is the one place where Claude Code ignores it
	case protocol.StageInjectInstructions:
		if r.blocks {
			b.decision.Action, b.decision.Reason = protocol.ActionAbortTurn, reason
			return b, nil
		}
		b.decision.Warnings = append(b.decision.Warnings, reason) // nothing to block: the user is told
	default:
		b.decision.Warnings = append(b.decision.Warnings, reason)
	}
	return b, nil
}

// object reads the JSON that a script printed. What is not known, or of a wrong
// type, makes all of it unreadable.
func (o *occasion) object(r eventRow, form Form, text []byte) (verdict, error) {
	root, err := protocol.DecodeObject(text, 0)
	if err != nil {
		return verdict{}, errOutput("its output can't be read: %v", err)
	}
	w := reader{o: o, row: r, form: form}
	w.flags.going = true
	for _, m := range root {
		if err := w.root(m); err != nil {
			return verdict{}, errOutput("its output can't be read: %s: %v", m.Name, err)
		}
	}
	return w.verdict()
}

// reader gathers what an object says.
type reader struct {
	o    *occasion
	row  eventRow
	form Form

	decision, reason string // decision and reason at the root
	permission, why  string // permissionDecision with its reason
	behavior         string // at PermissionRequest
	stopReason       string
	input            jsontext.Value
	output           jsontext.Value
	context          []string
	warnings         []string
	inject           []jsontext.Value
	flags            struct{ going bool } // "continue"
}

var errText = errors.New("expected a string")

func (w *reader) text(v jsontext.Value, into *string) error {
	switch v.Kind() {
	case 'n':
	case '"':
		*into = protocol.Unquote(v)
	default:
		return errText
	}
	return nil
}

func (w *reader) addText(v jsontext.Value, list *[]string) error {
	var text string
	if err := w.text(v, &text); err != nil || text == "" {
		return err
	}
	*list = append(*list, clip(text, spillChars))
	return nil
}

func (w *reader) root(m protocol.Member) error {
	switch m.Name {
	case "continue":
		if k := m.Value.Kind(); k != 't' && k != 'f' {
			return errors.New("expected true or false")
		}
		w.flags.going = m.Value.Kind() == 't'
	case "stopReason":
		return w.text(m.Value, &w.stopReason)
	case "systemMessage":
		return w.addText(m.Value, &w.warnings)
	case "suppressOutput", "terminalSequence", "suppressOriginalPrompt", "sessionTitle":
	case "decision":
		if m.Value.Kind() == '{' && w.row.name == "PermissionRequest" {
			return w.permissionDecision(m.Value)
		}
		return w.text(m.Value, &w.decision)
	case "reason":
		return w.text(m.Value, &w.reason)
	case "hookSpecificOutput":
		return w.specific(m.Value)
	case "permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext", "addContext", "injectMessage", "updatedToolOutput":
		if w.form == FormHookd || m.Name == "additionalContext" || m.Name == "addContext" || m.Name == "injectMessage" {
			return w.member(m)
		}
		return fmt.Errorf("belongs into hookSpecificOutput")
	default:
		if w.form == FormClaude { // there it means nothing
			w.warnings = append(w.warnings, "its output has a member that nobody knows: "+clip(m.Name, 100))
			return nil
		}
		return fmt.Errorf("unknown member%s", protocol.DidYouMean(m.Name, []string{
			"continue", "stopReason", "systemMessage", "suppressOutput", "decision", "reason", "hookSpecificOutput", "permissionDecision",
			"permissionDecisionReason", "updatedInput", "additionalContext", "addContext", "injectMessage",
		}))
	}
	return nil
}

func (w *reader) specific(v jsontext.Value) error {
	if v.Kind() != '{' {
		return errors.New("expected an object")
	}
	for _, m := range members(v) {
		var err error
		switch m.Name {
		case "hookEventName":
			var name string
			if err = w.text(m.Value, &name); err == nil && name != w.row.name {
				err = fmt.Errorf("is %q at %s", name, w.row.name)
			}
		case "decision":
			if w.row.name != "PermissionRequest" {
				err = w.text(m.Value, &w.decision)
				break
			}
			err = w.permissionDecision(m.Value)
		case "reason":
			err = w.text(m.Value, &w.reason)
		default:
			err = w.member(m)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

func (w *reader) member(m protocol.Member) error {
	switch m.Name {
	case "permissionDecision":
		return w.text(m.Value, &w.permission)
	case "permissionDecisionReason":
		return w.text(m.Value, &w.why)
	case "updatedInput":
		if m.Value.Kind() == 'n' {
			return nil
		}
		if m.Value.Kind() != '{' {
			return errors.New("expected an object")
		}
		w.input = m.Value
	case "additionalContext", "addContext", "classifierContext":
		return w.addText(m.Value, &w.context)
	case "updatedToolOutput", "updatedMCPToolOutput":
		w.output = m.Value
	case "injectMessage":
		return w.injectMessage(m.Value)
	case "initialUserMessage", "sessionTitle", "watchPaths", "reloadSkills", "suppressOriginalPrompt", "displayContent", "retry":
		w.warnings = append(w.warnings, m.Name+" means nothing to hookd and was ignored")
	default:
		if w.form == FormClaude {
			w.warnings = append(w.warnings, "its output has a member that nobody knows: hookSpecificOutput."+clip(m.Name, 100))
			return nil
		}
		return fmt.Errorf("unknown member")
	}
	return nil
}

// permissionDecision is the object of PermissionRequest.
func (w *reader) permissionDecision(v jsontext.Value) error {
	if v.Kind() != '{' {
		return errors.New("expected an object")
	}
	for _, m := range members(v) {
		switch m.Name {
		case "behavior":
			if err := w.text(m.Value, &w.behavior); err != nil {
				return err
			}
			if w.behavior != "allow" && w.behavior != "deny" {
				return fmt.Errorf("behavior: unknown word %q", w.behavior)
			}
		case "message":
			if err := w.text(m.Value, &w.reason); err != nil {
				return err
			}
		case "updatedInput", "updatedPermissions":
			w.warnings = append(w.warnings, m.Name+" can't be taken over at approve_tool and was ignored")
		case "interrupt":
		default:
			return fmt.Errorf("unknown member %q", m.Name)
		}
	}
	return nil
}

// injectMessage starts another round at Stop; elsewhere a system role is
// context and any other a word to the user.
func (w *reader) injectMessage(v jsontext.Value) error {
	if v.Kind() == 'n' {
		return nil
	}
	m := members(v)
	role, content := protocol.MetaString(m, "role"), protocol.ContentText(m.Get("content"))
	switch {
	case v.Kind() != '{' || role == "" || content == "":
		return errors.New("expected an object with role and content")
	case w.row.stage == protocol.StageStop:
		w.inject = append(w.inject, message(role, content))
	case role == "system":
		w.context = append(w.context, clip(content, spillChars))
	default:
		w.warnings = append(w.warnings, clip(content, spillChars))
	}
	return nil
}

func message(role, content string) jsontext.Value {
	return protocol.Object{{Name: "role", Value: protocol.Quote(role)}, {Name: "content", Value: protocol.Quote(content)}}.AppendJSON(nil)
}

// verdict makes a decision of what was said.
func (w *reader) verdict() (v verdict, err error) {
	d := &v.decision
	d.AddContext, d.Warnings = w.context, w.warnings
	if !w.flags.going {
		d.Reason = clip(orElse(w.stopReason, "stopped by a hook"), reasonChars)
		if w.row.stage == protocol.StageApproveTool {
			v.refused = true
		} else { // also at stop, where it outranks another script's block
			d.Action = protocol.ActionAbortTurn
		}
		return v, nil
	}
	switch w.row.stage {
	case protocol.StageBeforeTool:
		err = w.call(d)
	case protocol.StageApproveTool:
		v.approved, v.refused = w.behavior == "allow", w.behavior == "deny"
		d.Reason = clip(w.reason, reasonChars)
	case protocol.StageAfterTool:
		if err = w.blockOnly(); err == nil && w.decision == "block" {
			d.AddContext = append(d.AddContext, clip(orElse(w.reason, "blocked by a hook"), spillChars))
		}
		w.result(d)
	case protocol.StageUserMessage, protocol.StageBeforeCompact:
		if err = w.blockOnly(); err == nil && w.decision == "block" {
			d.Action, d.Reason = protocol.ActionDeny, clip(orElse(w.reason, "blocked by a hook"), reasonChars)
		}
	case protocol.StageStop:
		if err = w.blockOnly(); err == nil && w.decision == "block" {
			w.inject = append(w.inject, message("user", clip(orElse(w.reason, "go on"), reasonChars)))
		}
		if len(w.inject) > 0 {
			d.Action, d.Inject, d.Reason = protocol.ActionInject, w.inject, clip(w.reason, reasonChars)
		}
	case protocol.StageInjectInstructions:
		if err = w.blockOnly(); err == nil && w.decision == "block" && w.row.blocks {
			d.Action, d.Reason = protocol.ActionAbortTurn, clip(orElse(w.reason, "blocked by a hook"), reasonChars)
		}
	}
	return v, err
}

func (w *reader) blockOnly() error {
	if w.decision != "" && w.decision != "block" && w.decision != "approve" {
		return errOutput("its output can't be read: decision: unknown word %q", w.decision)
	}
	return nil
}

// call is the verdict of PreToolUse.
func (w *reader) call(d *protocol.Decision) error {
	word, why := w.permission, w.why
	if word == "" {
		word, why = w.decision, w.reason
	}
	d.Reason = clip(orElse(why, w.reason), reasonChars)
	switch word {
	case "":
	case "allow", "approve":
		d.Action = protocol.ActionAllow
	case "deny", "block":
		d.Action = protocol.ActionDeny
		d.Reason = orElse(d.Reason, "denied by a hook")
	case "ask":
		d.Action = protocol.ActionAsk
	case "defer":
		d.Action = protocol.ActionAsk
		d.Warnings = append(d.Warnings, "defer is asked about instead")
	default:
		return errOutput("its output can't be read: permissionDecision: unknown word %q", word)
	}
	if w.input != nil && d.Action != protocol.ActionDeny {
		args := protocol.NativeArguments(w.o.tool, w.o.args, members(w.input))
		d.Subject = protocol.Object{{Name: "arguments", Value: args.AppendJSON(nil)}}.AppendJSON(nil)
		if d.Action == "" {
			d.Action = protocol.ActionModify
		}
	}
	return nil
}

// result takes over a changed result of a tool.
func (w *reader) result(d *protocol.Decision) {
	if w.output == nil || w.output.Kind() == 'n' {
		return
	}
	content := w.output
	if content.Kind() == '{' {
		if c := members(content).Get("content"); c != nil {
			content = c
		} else if c := members(content).Get("stdout"); c != nil {
			content = c
		}
	}
	if k := content.Kind(); k != '"' && k != '[' {
		content = protocol.Quote(string(content))
	}
	d.Action = protocol.ActionModify
	d.Subject = protocol.Object{{Name: "content", Value: content}}.AppendJSON(nil)
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// clip cuts a text that is too long, and says so.
func clip(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return fmt.Sprintf("%s… (%d more characters were cut)", string(runes[:limit]), len(runes)-limit)
}

func firstLine(stderr []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(stderr)), "\n")
	return clip(strings.ToValidUTF8(strings.TrimSpace(line), "\uFFFD"), 300)
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
