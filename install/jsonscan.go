package install

import (
	"github.com/tailscale/hujson"

	"github.com/hookd/hookd/protocol"
)

func (f jsonFile) scan(path string, text []byte) ([]slot, error) {
	d, err := parseDocument(path, text)
	if err != nil {
		return nil, err
	}
	return f.slots(d)
}

// slots lists the hooks of a file. What does not look like a hook is passed
// over: some agents keep settings beside the events.
func (f jsonFile) slots(d *document) ([]slot, error) {
	events, err := f.events(d)
	if events == nil || err != nil {
		return nil, err
	}
	var found []slot
	seen := map[string]bool{}
	obj := events.Value.(*hujson.Object)
	for i := range obj.Members {
		m := &obj.Members[i]
		name := nameOf(m)
		if seen[name] {
			return nil, d.fail(m.Name.StartOffset, "%q stands here a second time; keep one of them", name)
		}
		seen[name] = true
		list, ok := m.Value.Value.(*hujson.Array)
		if !ok {
			continue
		}
		for g := range list.Elements {
			more, err := f.element(d, name, g, &list.Elements[g])
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
		}
	}
	return found, nil
}

// element reads one element of an event's array: a handler, or a group.
func (f jsonFile) element(d *document, event string, g int, v *hujson.Value) ([]slot, error) {
	if _, ok := v.Value.(*hujson.Object); !ok {
		return nil, nil
	}
	hooks, err := d.member(v, "hooks")
	if err != nil {
		return nil, err
	}
	if hooks == nil {
		s, err := readSlot(d, v)
		s.event, s.group = event, g
		return []slot{s}, err
	}
	list, ok := hooks.Value.Value.(*hujson.Array)
	if !ok {
		return nil, nil
	}
	group, err := objectOf(d, v)
	if err != nil {
		return nil, err
	}
	around := protocol.Object{}
	for _, m := range group {
		if m.Name != "hooks" {
			around = append(around, m)
		}
	}
	var found []slot
	for i := range list.Elements {
		if _, ok := list.Elements[i].Value.(*hujson.Object); !ok {
			continue
		}
		s, err := readSlot(d, &list.Elements[i])
		if err != nil {
			return nil, err
		}
		s.event, s.group, s.index, s.around = event, g, i, around
		if m := around.Get("matcher"); m.Kind() == '"' {
			s.matcher = protocol.Unquote(m)
		}
		found = append(found, s)
	}
	return found, nil
}

func readSlot(d *document, v *hujson.Value) (slot, error) {
	members, err := objectOf(d, v)
	if err != nil {
		return slot{}, err
	}
	s := slot{value: members}
	s.line, _ = position(d.text, v.StartOffset)
	s.call, s.ours, s.text = callOf(members)
	if m := members.Get("matcher"); m.Kind() == '"' {
		s.matcher = protocol.Unquote(m)
	}
	return s, nil
}

func objectOf(d *document, v *hujson.Value) (protocol.Object, error) {
	members, err := protocol.DecodeObject(raw(v), 0)
	if err != nil {
		return nil, d.fail(v.StartOffset, "%s", err)
	}
	return members, nil
}
