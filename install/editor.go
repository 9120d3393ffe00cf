package install

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// entry is what hookd adds to an agent's file for one event.
type entry struct {
	event string
	call  Call
	// value is the handler, in the agent's own form.
	value protocol.Object
	// group is what stands around the handler: nil = nothing, else the members of
	// a matcher group without its hooks.
	group protocol.Object
}

// editor knows how one kind of file holds entries. Paths are for errors, which
// are *[FileError] where a place can be named.
type editor interface {
	// merge returns the file with exactly these entries of ours, and all else as
	// it was. text is nil when there is no file.
	merge(path string, text []byte, want []entry) ([]byte, error)
	// strip takes our entries of this agent out and returns them.
	strip(path, agent string, text []byte) (rest []byte, ours []entry, err error)
	// blank reports whether nothing but what merge makes of no file is left.
	blank(path string, rest []byte) bool
	// scan lists all hooks, ours and others.
	scan(path string, text []byte) ([]slot, error)
}

// slot is one hook in an agent's file.
type slot struct {
	event string
	// group and index say where it stands: index in group, or group alone.
	group, index int
	value        protocol.Object
	matcher      string
	// around is the group without its hooks; nil = there is no group.
	around protocol.Object
	line   int
	// call is what it runs when ours is set.
	call Call
	ours bool
	// text is what it runs, as people read it.
	text string
}

func (s slot) entry() entry { return entry{s.event, s.call, s.value, s.around} }

// callOf reads the command of a handler, in any form that an agent has.
func callOf(handler protocol.Object) (c Call, ours bool, text string) {
	for _, name := range []string{"exec", "command", "bash"} {
		v := handler.Get(name)
		if v.Kind() != '"' {
			continue
		}
		text = protocol.Unquote(v)
		if args := handler.Get("args"); args.Kind() == '[' {
			argv := []string{text}
			items, err := protocol.Items(args)
			if err != nil {
				return Call{}, false, text
			}
			for _, item := range items {
				if item.Kind() != '"' {
					return Call{}, false, text
				}
				argv = append(argv, protocol.Unquote(item))
			}
			c, ours = readCall(argv)
			return c, ours, text
		}
		c, ours = readLine(text)
		return c, ours, text
	}
	if v := handler.Get("url"); v.Kind() == '"' {
		text = protocol.Unquote(v)
	}
	return Call{}, false, text
}

// object makes an object of names and values in turn; a nil value leaves its
// name out.
func object(pairs ...any) protocol.Object {
	var o protocol.Object
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		switch v := pairs[i+1].(type) {
		case nil:
		case string:
			o = append(o, protocol.Member{Name: name, Value: protocol.Quote(v)})
		case int64:
			o = append(o, protocol.Member{Name: name, Value: jsontext.Value(appendInt(nil, v))})
		case bool:
			text := "false"
			if v {
				text = "true"
			}
			o = append(o, protocol.Member{Name: name, Value: jsontext.Value(text)})
		case []string:
			b := []byte{'['}
			for i, s := range v {
				if i > 0 {
					b = append(b, ',')
				}
				b = protocol.AppendString(b, s)
			}
			o = append(o, protocol.Member{Name: name, Value: append(b, ']')})
		case protocol.Object:
			o = append(o, protocol.Member{Name: name, Value: v.AppendJSON(nil)})
		}
	}
	return o
}
