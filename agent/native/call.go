package native

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// Call is what a payload means to hookd: a question at a stage, an event for
// observers, or both.
type Call struct {
	// Agent is what meta.agent says.
	Agent string
	// Event is the event as the agent names it, and Row its row. The Row of an
	// event that the table does not hold is zero.
	Event string
	Row   Row

	// Stage is what hookd is asked, with Params; "" = nothing.
	Stage  protocol.Stage
	Params protocol.Object
	// Kind is the event that observers are sent, with EventParams; "" = none, or
	// one that hookd derives from the stage.
	Kind        protocol.EventKind
	EventParams protocol.Object

	// Warnings say what was repaired or is odd in the payload.
	Warnings []string

	// Payload holds the members of the native payload and Raw all of it.
	Payload protocol.Object
	Raw     jsontext.Value
	// Form is the dialect's own mark, where an agent has several forms.
	Form string

	dialect string
	meta    protocol.Object
	callID  string
	facts   *toolFacts
	subject protocol.Object
	event   protocol.Object

	// ToolName and Arguments are the call at the tool stages.
	ToolName  string
	Arguments protocol.Object
	wrapped   bool // the native arguments were no object
	// NativeResult is the tool's result as the agent gave it (after_tool).
	NativeResult jsontext.Value
	content      jsontext.Value
}

type toolFacts struct {
	protocol.ToolFacts
	paths []string
}

// freeKindPrefix starts the kinds of events that hookd has no word for.
const freeKindPrefix = "x_"

// maxKindBytes is how long the kind of an event may be.
const maxKindBytes = 128

// wrappedArgument is the name of the one argument that a tool is given when its
// agent gives it something that is not an object.
const wrappedArgument = "value"

// Read translates a payload.
func (f *Format) Read(event string, payload []byte) (*Call, error) {
	fail := func(event, reason string) error {
		return &PayloadError{Agent: f.Agent, Event: event, Reason: reason}
	}
	raw, members, warnings, err := ReadPayload(payload)
	if err != nil {
		return nil, fail(event, err.Error())
	}
	c := &Call{Agent: f.Agent, dialect: f.Agent, Payload: members, Raw: raw, Warnings: warnings}
	if f.As != "" {
		c.Agent = f.As
	}
	registered, _ := f.row(event)
	if err := f.nameEvent(c, event); err != nil {
		return nil, fail(event, err.Error())
	}
	row, known := f.row(c.Event)
	if !known && registered.Gate() {
		return nil, fail(event, "it names another event, "+noise([]byte(c.Event)))
	}
	if known {
		c.Row, c.Stage, c.Kind = row, row.Stage, row.Kind
	} else {
		c.Kind = freeKind(f.Agent, c.Event)
	}
	if err := f.Decode(c); err != nil {
		return nil, fail(c.Event, err.Error())
	}
	c.seal()
	return c, nil
}

// nameEvent finds out which event it is. What the payload says counts more than
// what the hook was registered for.
func (f *Format) nameEvent(c *Call, event string) error {
	c.Event = event
	for _, key := range f.EventKeys {
		if name := c.Text(key); name != "" {
			c.Event = name
			return nil
		}
	}
	if f.EventOf != nil {
		c.Event = f.EventOf(event, c.Payload)
	}
	if c.Event == "" {
		return errors.New("neither it nor the command line names the event")
	}
	return nil
}

// row finds an event, also in another spelling than the table's.
func (f *Format) row(event string) (Row, bool) {
	for i := range f.Table {
		if f.Table[i].Event == event {
			return f.Table[i], true
		}
	}
	for i := range f.Table {
		if event != "" && SameEvent(f.Table[i].Event, event) {
			return f.Table[i], true
		}
	}
	if other := f.Also[event]; other != "" && other != event {
		return f.row(other)
	}
	return Row{}, false
}

// SameEvent reports whether two names of events differ in upper and lower case,
// underscores and dashes only: some agents write PreToolUse in their settings
// and pre_tool_use in their payloads.
func SameEvent(a, b string) bool {
	for {
		a, b = strings.TrimLeft(a, "_-"), strings.TrimLeft(b, "_-")
		if a == "" || b == "" {
			return a == b
		}
		if lower(a[0]) != lower(b[0]) {
			return false
		}
		a, b = a[1:], b[1:]
	}
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// blind makes the call of a payload that can't be read.
func (f *Format) blind(event string, payload []byte) *Call {
	c := &Call{Agent: f.Agent, dialect: f.Agent, Event: event}
	if f.As != "" {
		c.Agent = f.As
	}
	// Whoever has registered for an event knows which one it is. Only where nobody
	// has said it the payload is looked at, which is not to be trusted.
	if _, known := f.row(event); !known {
		if peeked := peekEvent(payload, f.EventKeys); peeked != "" {
			if _, known := f.row(peeked); known || event == "" {
				c.Event = peeked
			}
		}
	}
	if row, known := f.row(c.Event); known {
		c.Row, c.Stage = row, row.Stage
	}
	return c
}

func freeKind(agent, event string) protocol.EventKind {
	kind := freeKindPrefix + agent + "." + event
	if len(kind) > maxKindBytes {
		kind = kind[:maxKindBytes]
		for !utf8.ValidString(kind) {
			kind = kind[:len(kind)-1]
		}
	}
	return protocol.EventKind(kind)
}

// Text returns a text member of the payload, or "".
func (c *Call) Text(name string) string { return protocol.MetaString(c.Payload, name) }

// Sub returns the members of a member of the payload that is an object, or nil.
func (c *Call) Sub(name string) protocol.Object {
	v := c.Payload.Get(name)
	if v.Kind() != '{' {
		return nil
	}
	members, _ := protocol.ParseObject(v)
	return members
}

// FirstText returns the first item of a member of the payload that is an array
// of texts, or "".
func (c *Call) FirstText(name string) string {
	v := c.Payload.Get(name)
	if v.Kind() != '[' {
		return ""
	}
	items, _ := protocol.Items(v)
	if len(items) == 0 || items[0].Kind() != '"' {
		return ""
	}
	return protocol.Unquote(items[0])
}

// First returns the first of the members that the payload has, or nil.
func (c *Call) First(names ...string) jsontext.Value {
	for _, name := range names {
		if v := c.Payload.Get(name); v != nil && v.Kind() != 'n' {
			return v
		}
	}
	return nil
}

// SetMeta sets a member of meta from the first of the payload's members that is
// a text and not empty.
func (c *Call) SetMeta(name string, members ...string) {
	for _, m := range members {
		if text := c.Text(m); text != "" {
			c.SetMetaText(name, text)
			return
		}
	}
}

// SetMetaText sets a member of meta; an empty text sets nothing.
func (c *Call) SetMetaText(name, text string) {
	if text != "" {
		c.meta = c.meta.With(name, protocol.Quote(text))
	}
}

// SetCallID joins the stages of one tool call, from the first member of the
// payload that is a text.
func (c *Call) SetCallID(members ...string) {
	for _, m := range members {
		if text := c.Text(m); text != "" {
			c.SetCallIDText(text)
			return
		}
	}
}

// SetCallIDText joins the stages of one tool call by a text that is in no
// member of the payload.
func (c *Call) SetCallIDText(id string) { c.callID = id }

// DefaultSession sets meta.session_id where the payload has none, for agents
// that tell it to their hooks in the environment only.
func (c *Call) DefaultSession(id string) {
	if id == "" || c.meta.Get("session_id") != nil {
		return
	}
	c.SetMetaText("session_id", id)
	c.seal()
}

// SetTool makes the call one of a tool. args is an object, or JSON of one in a
// string; anything else becomes the argument "value". Text that starts like an
// object and can't be read strictly as one is an error: the agent might read
// something else in it than a hook.
func (c *Call) SetTool(name string, args jsontext.Value) error {
	if name == "" {
		return errors.New("it names no tool")
	}
	c.ToolName = name
	switch kind := args.Kind(); {
	case args == nil || kind == 'n':
		c.Arguments = protocol.Object{}
	case kind == '{':
		c.Arguments, _ = protocol.ParseObject(args)
	case kind == '"' && strings.HasPrefix(strings.TrimLeft(protocol.Unquote(args), " \t\r\n\ufeff"), "{"):
		_, inner, warnings, err := ReadPayload([]byte(protocol.Unquote(args)))
		if err != nil {
			return errors.New("the arguments, JSON in a string: " + err.Error())
		}
		c.Arguments, c.Warnings = inner, append(c.Warnings, warnings...)
	default:
		c.Arguments, c.wrapped = protocol.Object{{Name: wrappedArgument, Value: args}}, true
	}
	c.SetFacts(protocol.ReadToolFacts(name, c.Arguments), protocol.ToolPaths(name, c.Arguments))
	return nil
}

// Facts returns what is known of the tool call; the zero value where there is
// none.
func (c *Call) Facts() protocol.ToolFacts {
	if c.facts == nil {
		return protocol.ToolFacts{}
	}
	return c.facts.ToolFacts
}

// SetFacts replaces what is known of the tool call, where a payload says more
// than name and arguments do, such as the MCP server's name.
func (c *Call) SetFacts(f protocol.ToolFacts, paths []string) { c.facts = &toolFacts{f, paths} }

// NativeArguments returns changed arguments as the agent takes them.
func (c *Call) NativeArguments(args protocol.Object) jsontext.Value {
	if c.wrapped {
		if v := args.Get(wrappedArgument); v != nil && len(args) == 1 {
			return v
		}
	}
	return args.AppendJSON(nil)
}

// SetResult sets what a tool gave (after_tool). result is in whatever shape the
// agent has; see [ReadResult].
func (c *Call) SetResult(result jsontext.Value, failed bool) {
	content, isError := ReadResult(result)
	c.NativeResult, c.content = result, content
	c.subject = protocol.Object{{Name: "result", Value: protocol.Object{
		{Name: "content", Value: content},
		{Name: "is_error", Value: boolean(isError || failed)},
	}.AppendJSON(nil)}}
}

// SetSubject sets one param of the stage's subject.
func (c *Call) SetSubject(name string, value jsontext.Value) { c.subject = c.subject.With(name, value) }

// SetMessage sets the subject of user_message.
func (c *Call) SetMessage(content jsontext.Value) error {
	switch content.Kind() {
	case '"', '[':
	default:
		return errors.New("the prompt is no text")
	}
	c.SetSubject("message", protocol.Object{{Name: "role", Value: protocol.Quote("user")}, {Name: "content", Value: content}}.AppendJSON(nil))
	return nil
}

// SetRequest sets the subject of the stages that have a request.
func (c *Call) SetRequest(members protocol.Object) {
	c.SetSubject("request", members.AppendJSON(nil))
}

// Free makes the event one of the agent's own, as those are that the table does
// not hold, where a payload turns out to be about something else than the row
// says.
func (c *Call) Free() { c.Kind = freeKind(c.dialect, c.Event) }

// SetEvent sets the payload of the event for observers.
func (c *Call) SetEvent(members protocol.Object) { c.event = members }

// Pick returns the named members of the payload that are there. "a=b" takes
// member b under the name a.
func (c *Call) Pick(names ...string) protocol.Object { return Pick(c.Payload, names...) }

// Pick returns the named members of an object that are there. "a=b" takes
// member b under the name a.
func Pick(o protocol.Object, names ...string) protocol.Object {
	var out protocol.Object
	for _, n := range names {
		to, from, renamed := strings.Cut(n, "=")
		if !renamed {
			from = to
		}
		if v := o.Get(from); v != nil && v.Kind() != 'n' && out.Get(to) == nil {
			out = append(out, protocol.Member{Name: to, Value: v})
		}
	}
	return out
}

// seal makes the params.
func (c *Call) seal() {
	meta := append(protocol.Object{{Name: "agent", Value: protocol.Quote(c.Agent)}}, c.meta...)
	meta = append(meta, protocol.Member{Name: "native", Value: protocol.Object{
		{Name: "agent", Value: protocol.Quote(c.dialect)},
		{Name: "event", Value: protocol.Quote(c.Event)},
		{Name: "payload", Value: c.Raw},
	}.AppendJSON(nil)})
	metaJSON := jsontext.Value(meta.AppendJSON(nil))
	if c.Stage != "" {
		c.Params = c.stageParams(metaJSON)
	}
	if c.Kind == "" {
		return
	}
	if c.event == nil && c.Kind.Free() {
		c.event = c.Payload
	}
	c.EventParams = protocol.Object{{Name: "kind", Value: protocol.Quote(c.Kind)}, {Name: "meta", Value: metaJSON}}
	if c.event != nil {
		c.EventParams = append(c.EventParams, protocol.Member{Name: "payload", Value: c.event.AppendJSON(nil)})
	}
}

func (c *Call) stageParams(meta jsontext.Value) protocol.Object {
	params := protocol.Object{{Name: "meta", Value: meta}}
	if c.facts != nil {
		params = append(params, protocol.Member{Name: "context", Value: protocol.Object{{Name: "tool", Value: c.facts.json()}}.AppendJSON(nil)})
	}
	if c.callID != "" {
		params = append(params, protocol.Member{Name: "call_id", Value: protocol.Quote(c.callID)})
	}
	if c.ToolName != "" {
		params = append(params,
			protocol.Member{Name: "tool", Value: protocol.Quote(c.ToolName)},
			protocol.Member{Name: "arguments", Value: c.Arguments.AppendJSON(nil)})
	}
	params = append(params, c.subject...)
	if c.Stage == protocol.StageAfterTool {
		if v := c.First("duration_ms"); v.Kind() == '0' && c.subject.Get("duration_ms") == nil {
			params = append(params, protocol.Member{Name: "duration_ms", Value: v})
		}
	}
	if c.Stage == protocol.StageApproveTool {
		// The agent is about to ask its user, so approval is what is wanted.
		params = append(params, protocol.Member{Name: "asked", Value: boolean(true)})
	}
	return params
}

// json writes the facts as context.tool; what does not apply is left out.
func (f *toolFacts) json() jsontext.Value {
	o := protocol.Object{{Name: "kind", Value: protocol.Quote(f.Kind)}}
	for _, m := range [...]struct{ name, text string }{{"command", f.Command}, {"path", f.Path}, {"url", f.URL}, {"server", f.Server}} {
		if m.text != "" {
			o = append(o, protocol.Member{Name: m.name, Value: protocol.Quote(m.text)})
		}
	}
	if len(f.paths) > 1 {
		b := []byte{'['}
		for i, p := range f.paths {
			if i > 0 {
				b = append(b, ',')
			}
			b = protocol.AppendString(b, p)
		}
		o = append(o, protocol.Member{Name: "paths", Value: append(b, ']')})
	}
	return o.AppendJSON(nil)
}

func boolean(b bool) jsontext.Value {
	if b {
		return jsontext.Value("true")
	}
	return jsontext.Value("false")
}

// Dialect names the dialect that read the call.
func (c *Call) Dialect() string { return c.dialect }
