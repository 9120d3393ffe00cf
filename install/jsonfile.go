package install

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/hookd/hookd/protocol"
)

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

// jsonFile is an [editor] of files in which an object holds, by event, an array
// of handlers or of matcher groups with handlers. It keeps comments.
type jsonFile struct {
	// at are the names that lead to that object; none = it is the root.
	at []string
	// root are members that the root of the file must have.
	root protocol.Object
	// own: the object is hookd's alone and goes when its last entry goes.
	own bool
}

// ownedMembers are those of a handler that installing again may change or drop.
// All others are the user's.
var ownedMembers = map[string]bool{
	"type": true, "name": true, "command": true, "args": true, "bash": true, "exec": true,
	"timeout": true, "timeoutSec": true, "timeout_ms": true,
	"failClosed": true, "onFailure": true, "on_failure": true, "show_output": true,
}

func (f jsonFile) merge(path string, text []byte, want []entry) ([]byte, error) {
	d, err := parseDocument(path, text)
	if err != nil {
		return nil, err
	}
	if _, err := f.events(d); err != nil {
		return nil, err
	}
	for _, m := range f.root {
		if err := addMissing(d, m); err != nil {
			return nil, err
		}
	}
	if err := f.dropOthers(d, want); err != nil {
		return nil, err
	}
	for _, e := range want {
		if err := f.put(d, e); err != nil {
			return nil, err
		}
	}
	return d.bytes(), nil
}

func addMissing(d *document, m protocol.Member) error {
	there, err := d.member(&d.root, m.Name)
	if there != nil || err != nil {
		return err
	}
	return d.add(&d.root, m.Name, m.Value)
}

// events returns the object that holds the events, or nil.
func (f jsonFile) events(d *document) (*hujson.Value, error) {
	v, err := d.lookup(f.at...)
	if v == nil || err != nil {
		return nil, err
	}
	if _, ok := v.Value.(*hujson.Object); !ok {
		return nil, d.fail(v.StartOffset, "an object with events is expected here")
	}
	return v, nil
}

// dropOthers removes entries of ours that are not wanted: of other events, and
// what stands twice.
func (f jsonFile) dropOthers(d *document, want []entry) error {
	for {
		slots, err := f.slots(d)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, e := range want {
			seen[e.event] = false
		}
		gone := false
		for _, s := range slots {
			if !s.ours || len(want) > 0 && s.call.Agent != want[0].call.Agent {
				continue
			}
			if already, wanted := seen[s.event]; wanted && !already {
				seen[s.event] = true
				continue
			}
			if err := f.cut(d, s); err != nil {
				return err
			}
			gone = true
			break
		}
		if !gone {
			return nil
		}
	}
}

// put adds an entry, or brings the one that is there up to date.
func (f jsonFile) put(d *document, e entry) error {
	slots, err := f.slots(d)
	if err != nil {
		return err
	}
	for _, s := range slots {
		if s.ours && s.event == e.event && s.call.Agent == e.call.Agent {
			return f.update(d, s, e)
		}
	}
	item := e.value.AppendJSON(nil)
	if e.group != nil {
		list := append([]byte{'['}, item...)
		item = append(e.group[:len(e.group):len(e.group)], protocol.Member{Name: "hooks", Value: append(list, ']')}).AppendJSON(nil)
	}
	// Everything that is missing on the way is added in one go.
	missing := append(append([]string{}, f.at...), e.event)
	v := &d.root
	for len(missing) > 0 {
		m, err := d.member(v, missing[0])
		if err != nil {
			return err
		}
		if m == nil {
			break
		}
		v, missing = &m.Value, missing[1:]
	}
	if len(missing) == 0 {
		if _, ok := v.Value.(*hujson.Array); !ok {
			return d.fail(v.StartOffset, "an array with hooks is expected here")
		}
		return d.add(v, "", item)
	}
	value := append(append([]byte{'['}, item...), ']')
	for i := len(missing) - 1; i > 0; i-- {
		value = protocol.Object{{Name: missing[i], Value: value}}.AppendJSON(nil)
	}
	return d.add(v, missing[0], value)
}

func (f jsonFile) update(d *document, s slot, e entry) error {
	var kept protocol.Object
	for _, m := range s.value {
		if !ownedMembers[m.Name] || e.value.Get(m.Name) != nil {
			kept = append(kept, m)
		}
	}
	value := kept
	for _, m := range e.value {
		value = value.With(m.Name, m.Value)
	}
	text := jsontext.Value(value.AppendJSON(nil))
	v, err := f.handler(d, s)
	if err != nil {
		return err
	}
	if protocol.SameValue(raw(v), text) {
		return nil
	}
	return d.replace(v, text)
}

// way are the containers that lead to a slot, from the outermost, with the
// index of the next in each.
func (f jsonFile) way(d *document, s slot) ([]*hujson.Value, []int, error) {
	var way []*hujson.Value
	var index []int
	v := &d.root
	step := func(i int, next *hujson.Value) { way, index, v = append(way, v), append(index, i), next }
	for _, name := range append(append([]string{}, f.at...), s.event) {
		obj := v.Value.(*hujson.Object)
		for i := range obj.Members {
			if nameOf(&obj.Members[i]) == name {
				step(i, &obj.Members[i].Value)
				break
			}
		}
	}
	list := v.Value.(*hujson.Array)
	step(s.group, &list.Elements[s.group])
	if s.around != nil {
		m, err := d.member(v, "hooks")
		if err != nil {
			return nil, nil, err
		}
		step(memberIndex(v, "hooks"), &m.Value)
		hooks := v.Value.(*hujson.Array)
		step(s.index, &hooks.Elements[s.index])
	}
	return append(way, v), index, nil
}

func memberIndex(v *hujson.Value, name string) int {
	obj := v.Value.(*hujson.Object)
	for i := range obj.Members {
		if nameOf(&obj.Members[i]) == name {
			return i
		}
	}
	return -1
}

func (f jsonFile) handler(d *document, s slot) (*hujson.Value, error) {
	way, _, err := f.way(d, s)
	if err != nil {
		return nil, err
	}
	return way[len(way)-1], nil
}

// cut removes a slot, and with it what would be left empty around it.
func (f jsonFile) cut(d *document, s slot) error {
	way, index, err := f.way(d, s)
	if err != nil {
		return err
	}
	depth := len(f.at) // of the object with the events
	i := len(index) - 1
	for i > 0 {
		list, _ := items(way[i])
		alone := len(list) == 1
		if s.around != nil && i == depth+2 {
			alone = true // a group is nothing without its hooks
		}
		if i == depth && f.own {
			alone = eventCount(way[i]) == 1
		}
		if !alone || i < depth {
			break
		}
		i--
	}
	return d.remove(way[i], index[i])
}

func eventCount(v *hujson.Value) int {
	n := 0
	obj := v.Value.(*hujson.Object)
	for i := range obj.Members {
		if _, ok := obj.Members[i].Value.Value.(*hujson.Array); ok {
			n++
		}
	}
	return n
}

func (f jsonFile) strip(path, agent string, text []byte) ([]byte, []entry, error) {
	d, err := parseDocument(path, text)
	if err != nil {
		return nil, nil, err
	}
	slots, err := f.slots(d)
	if err != nil {
		return nil, nil, err
	}
	var ours []entry
	for _, s := range slots {
		if s.ours && s.call.Agent == agent {
			ours = append(ours, s.entry())
		}
	}
	for range ours {
		if slots, err = f.slots(d); err != nil {
			return nil, nil, err
		}
		for _, s := range slots {
			if s.ours && s.call.Agent == agent {
				if err := f.cut(d, s); err != nil {
					return nil, nil, err
				}
				break
			}
		}
	}
	if len(ours) == 0 {
		return text, nil, nil
	}
	return d.bytes(), ours, nil
}

func (f jsonFile) blank(path string, rest []byte) bool {
	d, err := parseDocument(path, rest)
	if err != nil {
		return false
	}
	// A comment is somebody's.
	plain := d.root.Clone()
	plain.Standardize()
	if string(plain.Pack()) != string(d.root.Pack()) {
		return false
	}
	members, err := protocol.ParseObject(raw(&d.root))
	if err != nil {
		return false
	}
	for _, m := range members {
		if want := f.root.Get(m.Name); want == nil || !protocol.SameValue(want, m.Value) {
			return false
		}
	}
	return true
}
