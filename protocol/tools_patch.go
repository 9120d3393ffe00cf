package protocol

import "strings"

// patchOp is what a patch does to one file.
type patchOp struct {
	verb  patchVerb
	path  string
	moved string // the new path of a file that is also moved
	// oldText and newText are what an update takes away and puts there, with the
	// lines around it; newText alone is the content of an added file.
	oldText, newText string
	hunks            int
}

type patchVerb int

const (
	patchAdd patchVerb = iota + 1
	patchUpdate
	patchDelete
)

// parsePatch reads the text of apply_patch leniently: every file that it names
// is found, also in a text that the agent itself would refuse.
func parsePatch(text string) []patchOp {
	var ops []patchOp
	var op *patchOp
	var before, after strings.Builder
	end := func() {
		if op != nil {
			op.oldText, op.newText = before.String(), after.String()
		}
		before.Reset()
		after.Reset()
	}
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if verb, path := patchHeader(bare); verb != 0 {
			end()
			ops = append(ops, patchOp{verb: verb, path: path})
			op = &ops[len(ops)-1]
			continue
		}
		if op == nil {
			continue
		}
		if path, ok := strings.CutPrefix(bare, "*** Move to:"); ok {
			op.moved = strings.TrimSpace(path)
			continue
		}
		if strings.HasPrefix(bare, "*** ") {
			continue // the end of the patch or of the file
		}
		op.line(strings.TrimRight(line, "\r\n"), &before, &after)
	}
	end()
	return ops
}

func (op *patchOp) line(line string, before, after *strings.Builder) {
	if strings.HasPrefix(line, "@@") {
		op.hunks++
		return
	}
	if op.hunks == 0 {
		op.hunks = 1
	}
	mark, rest := byte(' '), ""
	if line != "" {
		mark, rest = line[0], line[1:]
	}
	if mark != '+' {
		before.WriteString(rest)
		before.WriteByte('\n')
	}
	if mark != '-' {
		after.WriteString(rest)
		after.WriteByte('\n')
	}
}

// patchHeader reads a line that says to which file the next lines belong.
func patchHeader(line string) (patchVerb, string) {
	for verb, head := range [...]string{patchAdd: "*** Add File:", patchUpdate: "*** Update File:", patchDelete: "*** Delete File:"} {
		if path, ok := strings.CutPrefix(line, head); ok && head != "" {
			return patchVerb(verb), strings.TrimSpace(path)
		}
	}
	return 0, ""
}

// patchText writes a patch of one operation.
func (op *patchOp) patchText() string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	switch op.verb {
	case patchAdd:
		b.WriteString("*** Add File: " + op.path + "\n")
		writeMarked(&b, '+', op.newText)
	case patchUpdate:
		b.WriteString("*** Update File: " + op.path + "\n")
		if op.moved != "" {
			b.WriteString("*** Move to: " + op.moved + "\n")
		}
		b.WriteString("@@\n")
		writeMarked(&b, '-', op.oldText)
		writeMarked(&b, '+', op.newText)
	case patchDelete:
		b.WriteString("*** Delete File: " + op.path + "\n")
	}
	b.WriteString("*** End Patch")
	return b.String()
}

func writeMarked(b *strings.Builder, mark byte, text string) {
	for line := range strings.Lines(text) {
		b.WriteByte(mark)
		b.WriteString(strings.TrimRight(line, "\r\n"))
		b.WriteByte('\n')
	}
}

// claudeCall gives what is done to one file as a call of its own. rest are the
// members of the call beside the patch.
func (op *patchOp) claudeCall(rest Object) ToolCall {
	file := Member{"file_path", Quote(op.path)}
	if op.verb == patchAdd {
		return ToolCall{"Write", append(Object{file, {"content", Quote(op.newText)}}, rest...)}
	}
	out := Object{file, {"old_string", Quote(strings.TrimSuffix(op.oldText, "\n"))}, {"new_string", Quote(strings.TrimSuffix(op.newText, "\n"))}}
	if op.moved != "" {
		out = append(out, Member{"move_path", Quote(op.moved)})
	}
	return ToolCall{"Edit", append(out, rest...)}
}

// patchOwn reports whether a member of a translated patch is made of its text.
func patchOwn(name string) bool {
	switch name {
	case "file_path", "content", "old_string", "new_string", "move_path":
		return true
	}
	return false
}

// patchMember returns the patch's text and the argument that holds it.
func patchMember(args Object) (name, text string) {
	for _, name := range factTable.patch {
		if v := args.Get(name); v.Kind() == '"' {
			return name, Unquote(v)
		}
	}
	return "", ""
}

// nativePatch writes a changed Write or Edit as a patch again.
func nativePatch(native, before, claude Object) Object {
	member, text := patchMember(native)
	ops := parsePatch(text)
	if member == "" || len(ops) != 1 || before.Get(member) != nil {
		return claude // the patch itself was shown, so it is what was changed
	}
	op := ops[0]
	op.path = claude.textOf("file_path")
	if op.verb == patchAdd {
		op.newText = claude.textOf("content")
	} else {
		op.oldText, op.newText = claude.textOf("old_string"), claude.textOf("new_string")
	}
	out := native.With(member, Quote(op.patchText()))
	for _, m := range claude {
		if !patchOwn(m.Name) {
			out = out.With(m.Name, m.Value)
		}
	}
	return out
}
