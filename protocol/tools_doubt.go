package protocol

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxReadings is how many readings of one call are told apart.
const maxReadings = 16

// said are the arguments of a call that say one thing: one, or several when the
// call spells it in more than one way. Which of those its agent takes is not
// known: some take the first that they know, some the last, and some take no
// heed of case.
type said struct {
	known   []string // the spellings
	members []string // the names that the call has, in its order
	values  []jsontext.Value
	texts   []string // distinct, and not empty; beside values
	whole   bool     // texts that can't be joined
}

// takes reports whether an argument is one of them.
func (s *said) takes(name string) bool {
	for _, k := range s.known {
		if sameName(k, name) {
			return true
		}
	}
	return false
}

// sameName is strings.EqualFold for a name of the table, which is ASCII: most
// names differ in length or first letter.
func sameName(known, name string) bool {
	if len(known) == len(name) {
		return known == name || known[0]|0x20 == name[0]|0x20 && strings.EqualFold(known, name)
	}
	// A letter such as U+017F takes more bytes than the one that it equals.
	return len(name) > len(known) && hasWide(name) && strings.EqualFold(known, name)
}

func hasWide(name string) bool {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return true
		}
	}
	return false
}

// exact reports whether a name is spelled as agents do.
func (s *said) exact(name string) bool { return slices.Contains(s.known, name) }

// joined returns all values in one, a line each.
func (s *said) joined() jsontext.Value { return Quote(strings.Join(s.texts, "\n")) }

// spellingsOf returns which names of arguments say one thing, for a tool.
func spellingsOf(name string, row *toolRow) (list [][]string) {
	list = make([][]string, 0, 8)
	inner := row
	if row == nil {
		inner = mcpTool(name)
	}
	if inner != nil && inner.kind == ToolShell {
		switch inner.name {
		case "write_stdin":
			list = append(list, factTable.typed)
		case "execute_code":
			list = append(list, factTable.code, factTable.language)
		default:
			list = append(list, factTable.shell)
		}
	}
	kind := ToolOther
	if row != nil {
		kind = row.kind
	} else if _, _, ok := splitMCP(name); ok {
		kind = ToolMCP
	}
	switch kind {
	case ToolFileRead, ToolFileWrite, ToolFileEdit:
		switch {
		case row.name == "apply_patch":
			list = append(list, factTable.patch)
		case row.name == "str_replace_editor" || name == "fs_write":
			list = append(list, factTable.editor)
		}
		return append(list, factTable.path, factTable.content, factTable.newText)
	case ToolWeb:
		return append(list, factTable.address)
	case ToolMCP:
		if row != nil {
			return append(list, factTable.server, factTable.tool, factTable.inner)
		}
	case ToolOther:
	default:
		return list
	}
	// Of a tool that is not known, fewer names mean the same.
	return append(list, factTable.line, []string{"script"}, factTable.file, []string{"filename"}, []string{"file"}, factTable.address)
}

// sayings returns what the arguments of a call say more than once, or in a
// spelling that differs in case; nil for almost all calls.
func sayings(name string, args Object) (list []said) {
	return sayingsOf(name, toolNamed(name), args)
}

// sayingsOf is sayings where the tool's row is known.
func sayingsOf(name string, row *toolRow, args Object) (list []said) {
	groups := spellingsOf(name, row)
	if !slices.ContainsFunc(groups, func(known []string) bool { return saysMore(known, args) }) {
		return nil
	}
	var taken []bool
	for _, known := range groups {
		s := said{known: known}
		odd := false
		for i, m := range args {
			if taken != nil && taken[i] || !s.takes(m.Name) {
				continue
			}
			if taken == nil {
				taken = make([]bool, len(args))
			}
			taken[i] = true
			s.members = append(s.members, m.Name)
			odd = odd || !s.exact(m.Name)
		}
		if len(s.members) < 2 && !odd {
			continue
		}
		// In the order in which facts are looked for.
		for _, k := range known {
			for _, member := range s.members {
				if strings.EqualFold(k, member) && (k == member || !s.exact(member)) {
					s.add(args.Get(member))
				}
			}
		}
		s.whole = known[0] == factTable.inner[0]
		list = append(list, s)
	}
	return list
}

// saysMore reports whether arguments hold two of some names, or one in another
// case.
func saysMore(known []string, args Object) bool {
	n := 0
	for i := range args {
		hit := false
		for _, k := range known {
			if sameName(k, args[i].Name) {
				if hit = true; k == args[i].Name {
					n++
					hit = false
					break
				}
			}
		}
		if hit || n > 1 {
			return true
		}
	}
	return false
}

// add notes a value that is new.
func (s *said) add(v jsontext.Value) {
	text := ""
	switch v.Kind() {
	case '"':
		text = Unquote(v)
	case '[':
		if argv, err := stringsValue("", v, false); err == nil && s.takes("command") {
			text = argvText(argv)
			break
		}
		text = string(v)
	case '{':
		text = string(v)
	}
	if text != "" && !slices.Contains(s.texts, text) {
		s.texts, s.values = append(s.texts, text), append(s.values, v)
	}
}

// with puts a value in the place of all spellings. With rename one that no agent
// spells so gets a name that is looked for.
func (s *said) with(args Object, value jsontext.Value, rename bool) Object {
	args = slices.Clone(args)
	named := !rename || slices.ContainsFunc(s.members, s.exact)
	for i, m := range args {
		if !slices.Contains(s.members, m.Name) {
			continue
		}
		args[i].Value = value
		if !named {
			at := slices.IndexFunc(s.known, func(k string) bool { return strings.EqualFold(k, m.Name) })
			args[i].Name, named = s.known[at], true
		}
	}
	return args
}

// plainly returns the arguments as facts are read from them: what is said in
// several ways holds all that is said, a line each. doubt says that the ways
// differ. With rename names are spelled as they are looked for.
func plainly(name string, args Object, rename bool) (out Object, doubt bool) {
	out = args
	row := toolNamed(name)
	for _, s := range sayingsOf(name, row, args) { // none, as a rule
		switch {
		case len(s.texts) == 0:
		case len(s.texts) == 1:
			out = s.with(out, s.values[0], rename)
		default:
			doubt = true
			if !s.whole {
				out = s.with(out, s.joined(), rename)
			}
		}
	}
	if row != nil && row.kind == ToolMCP {
		inner := innerArguments(out)
		plain, more := plainly(innerName(out), inner, rename)
		if doubt = doubt || more; more || rename && len(sayings(innerName(out), inner)) > 0 {
			out = withInner(out, plain)
		}
	}
	return out, doubt
}

// innerName returns the name of the tool that a call of an MCP server's tool
// calls.
func innerName(args Object) string {
	return mcpClaude + "_" + "__" + textFact(args, factTable.tool)
}

// withInner puts other arguments for the tool of an MCP server in.
func withInner(args, inner Object) Object {
	at := slices.IndexFunc(args, func(m Member) bool {
		return slices.Contains(factTable.inner, m.Name) && (m.Value.Kind() == '{' || m.Value.Kind() == '"')
	})
	if at < 0 {
		return inner
	}
	return args.With(args[at].Name, inner.AppendJSON(nil))
}

// ToolReadings returns the ways in which a call can be read whose arguments
// spell one thing twice, such as a command in "command" and another in
// "CommandLine": each reading holds one value in all places of it. It is nil
// where there is one reading. all is false when there are more than are
// returned.
func ToolReadings(name string, args Object) (readings []Object, all bool) {
	readings = []Object{args}
	each := func(n int, with func(o Object, i int) Object) bool {
		if n*len(readings) > maxReadings {
			return false
		}
		var more []Object
		for _, o := range readings {
			for i := range n {
				more = append(more, with(o, i))
			}
		}
		readings = more
		return true
	}
	for _, s := range sayings(name, args) {
		if len(s.texts) > 0 && !each(len(s.texts), func(o Object, i int) Object { return s.with(o, s.values[i], true) }) {
			return readings, false
		}
	}
	if row := toolNamed(name); row != nil && row.kind == ToolMCP {
		var list []Object
		for _, o := range readings {
			inner, whole := ToolReadings(innerName(o), innerArguments(o))
			if len(inner)+len(list) > maxReadings || !whole {
				return readings, false
			}
			if inner == nil {
				list = append(list, o)
			}
			for _, in := range inner {
				list = append(list, withInner(o, in))
			}
		}
		readings = list
	}
	if len(readings) == 1 {
		return nil, true
	}
	return readings, true
}

// restored takes what was shown in several places, and did not change, back to
// what the call had there; what changed is put into all of them.
func restored(name string, native, before, claude Object) Object {
	for _, s := range sayings(name, native) {
		var value jsontext.Value
		changed := false
		for _, m := range before {
			if now := claude.Get(m.Name); s.takes(m.Name) && !SameValue(now, m.Value) {
				value, changed = now, true
			}
		}
		out := Object{}
		put := false
		for _, m := range claude {
			switch {
			case !s.takes(m.Name):
				out = append(out, m)
			case !put:
				put = true
				for _, member := range s.members {
					v := native.Get(member)
					if changed {
						v = value
					}
					if v != nil {
						out = append(out, Member{member, v})
					}
				}
			}
		}
		claude = out
	}
	return claude
}

// everywhere sets a changed value, or with nil takes it out, at all spellings
// that the call has for it.
func everywhere(name string, native, out Object, to string, value jsontext.Value) Object {
	for _, s := range sayings(name, native) {
		if !s.takes(to) {
			continue
		}
		for _, member := range s.members {
			if value == nil {
				out = without(out, member)
			} else {
				out = out.With(member, value)
			}
		}
		return out
	}
	if value == nil {
		return without(out, to)
	}
	return put(out, to, value)
}
