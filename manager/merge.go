package manager

import (
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// mergeLists concatenates two arrays.
func mergeLists(a, b jsontext.Value) jsontext.Value {
	if a == nil || a.Kind() != '[' || b.Kind() != '[' {
		return b
	}
	x, errX := protocol.Items(a)
	y, errY := protocol.Items(b)
	if errX != nil || errY != nil {
		return b
	}
	out := []byte{'['}
	for i, v := range append(x, y...) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// mergeMaps lays one object over another, deeply.
func mergeMaps(a, b jsontext.Value) jsontext.Value {
	if a == nil || a.Kind() != '{' || b.Kind() != '{' {
		return b
	}
	x, errX := protocol.ParseObject(a)
	y, errY := protocol.ParseObject(b)
	if errX != nil || errY != nil {
		return b
	}
	return x.Merged(y, func(_ string, old, value jsontext.Value) jsontext.Value { return mergeMaps(old, value) }).AppendJSON(nil)
}

// patchOps is how many operations one patch may hold: each may cost as much as
// the whole subject.
const patchOps = 1000

// clip shortens what may quote a hook's answer, which may be payload.
func clip(text string) string {
	const most = 120
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// patchCopies is how many bytes the "copy" operations of one patch may add.
const patchCopies = 16 << 20

// applyPatch applies a JSON Patch to the subject, by the same rules as a
// merged change: fixed types, known members, and nothing that the stage needs
// may go. Members whose meaning does not change keep their bytes.
func applyPatch(stage *protocol.StageInfo, subject protocol.Object, patch jsontext.Value) (protocol.Object, []string, error) {
	doc, err := patched(stage.SubjectValue(subject), patch)
	if err != nil {
		return nil, nil, fmt.Errorf("patch: %s", clip(err.Error()))
	}
	after, err := protocol.DecodeObject(doc, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("patch: the result: %w", err)
	}
	if err := stage.CheckSubject("patch", after); err != nil {
		return nil, nil, err
	}
	before := subject
	if stage.Wrapped() {
		if before, err = protocol.ParseObject(subject.Get(stage.Result)); err != nil {
			return nil, nil, err
		}
	} else {
		for _, name := range stage.Required {
			if after.Get(name) == nil {
				return nil, nil, fmt.Errorf("patch: %q can't be removed", name)
			}
		}
	}
	var changed []string
	find := before.Finder(len(after))
	for i, m := range after {
		if at, ok := find(m.Name); ok && protocol.SameValue(before[at].Value, m.Value) {
			after[i].Value = before[at].Value
		} else {
			changed = append(changed, m.Name)
		}
	}
	find = after.Finder(len(before))
	for _, m := range before {
		if _, ok := find(m.Name); !ok {
			changed = append(changed, m.Name)
		}
	}
	switch {
	case len(changed) == 0:
		return subject, nil, nil
	case stage.Wrapped():
		return subject.With(stage.Result, after.AppendJSON(nil)), changed, nil
	}
	return after, changed, nil
}

// patched is doc after the patch. Some patches make the library panic, such as
// a test for null in an array: they are part of a hook's answer, and as such
// unreadable.
func patched(doc, patch []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, errors.New("it can't be applied")
		}
	}()
	ops, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	if len(ops) > patchOps {
		return nil, fmt.Errorf("%d operations are too many, at most %d", len(ops), patchOps)
	}
	opts := jsonpatch.NewApplyOptions()
	opts.EscapeHTML, opts.SupportNegativeIndices, opts.AccumulatedCopySizeLimit = false, false, patchCopies
	return ops.ApplyWithOptions(doc, opts)
}
