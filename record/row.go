package record

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// The functions below make values of a row: masked, bounded, NULL when absent.

// text is for words that people or programs wrote.
func (w *writer) text(s string) driver.Value { return w.beginning(s, maxText) }

// beginning is for the first limit bytes of such words. They are masked before they
// are cut, so that nothing that lies across the cut is kept in half.
func (w *writer) beginning(s string, limit int) driver.Value {
	if s == "" {
		return nil
	}
	window := textWindow(limit)
	short := len(s) > window
	s, _ = maskText(s[:min(len(s), window)])
	if w.opts.Mask != nil {
		if v := w.mask(protocol.Quote(s)); v.Kind() == '"' {
			s = protocol.Unquote(v)
		} else {
			s = masked
		}
	}
	if !short {
		return clip(s, limit)
	}
	if s = dropEdge(s); len(s) > limit {
		return clip(s, limit)
	}
	return s + "…"
}

// textWindow is how much of a text is looked at of which limit bytes are kept.
func textWindow(limit int) int { return max(previewWindow, 2*limit) }

// id is for names and ids, by which rows are found: they are never masked.
func id(s string) driver.Value { return textOrNull(clip(s, maxID)) }

// mask applies the mask of the options. What is no JSON any more afterwards is
// not written.
func (w *writer) mask(v jsontext.Value) jsontext.Value {
	if w.opts.Mask == nil {
		return v
	}
	out := w.opts.Mask(v)
	if !same(out, v) && !out.IsValid() {
		return protocol.Quote(masked)
	}
	return out
}

// same reports whether two values are the same memory.
func same(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// json is for values beside the params.
func (w *writer) json(v jsontext.Value) driver.Value {
	if len(v) == 0 {
		return nil
	}
	v = MaskSecrets(v)
	if len(v) > 2*maxJSON {
		v = dropEdges(w.mask(cutTexts(v, 2*maxJSON)))
	} else {
		v = w.mask(v)
	}
	if len(v) > maxJSON {
		v = cutTexts(v, maxJSON)
	}
	if len(v) > 2*maxJSON {
		v = protocol.Quote("[" + strconv.Itoa(len(v)) + " bytes are not recorded]")
	}
	return string(v)
}

// maskParams returns the params as they are kept, whether something in them was
// masked, and their length when something was left out.
func (w *writer) maskParams(v jsontext.Value) (kept driver.Value, hidden bool, cut driver.Value) {
	out := MaskSecrets(v)
	hidden = !same(out, v)
	// The mask sees more than is kept: what the first cut goes through is gone
	// before the second.
	out, short := shrink(out, 2*w.opts.MaxParams)
	if w.opts.Mask != nil {
		before := out
		out = w.mask(out)
		hidden = hidden || !same(before, out) && !protocol.SameValue(before, out)
	}
	if short {
		out = dropEdges(out)
	}
	out, again := shrink(out, w.opts.MaxParams)
	if short || again {
		cut = int64(len(v))
	}
	return string(out), hidden, cut
}

func (w *writer) strings(list []string) driver.Value {
	if len(list) == 0 {
		return nil
	}
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = protocol.AppendString(b, s)
	}
	return w.json(append(b, ']'))
}

func (w *writer) object(o protocol.Object) driver.Value {
	if o == nil {
		return nil
	}
	return w.json(o.AppendJSON(nil))
}

// jsonArray is for an array that stands behind so many other bytes.
func (w *writer) jsonArray(b []byte, behind int) driver.Value {
	if len(b) <= behind {
		return nil
	}
	return w.json(b[behind:])
}

func (w *writer) trail(d *decision) driver.Value {
	if len(d.trail) == 0 {
		return nil
	}
	b := protocol.AppendTrail(nil, d.stage, d.trail)
	if len(b) <= maxJSON && !slices.ContainsFunc(d.trail, func(s protocol.Step) bool { return s.Detail != "" || len(s.Changed) > 0 }) {
		return string(b) // names of the config, words of the protocol and numbers: nothing to mask
	}
	return w.json(b)
}

// peer makes a process's and a user's id values; a process id of 0 says that
// neither is known.
func peer(pid, uid int) (driver.Value, driver.Value) {
	if pid == 0 {
		return nil, nil
	}
	return idOrNull(pid), idOrNull(uid)
}

func flag(set bool) driver.Value {
	if set {
		return int64(1)
	}
	return int64(0)
}

// wholeNumber reads a JSON number as far as it is one of milliseconds.
func wholeNumber(v jsontext.Value) driver.Value {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f < 0 || f > 1<<53 {
		return nil
	}
	return int64(f)
}

// digest identifies what was judged: a tool call as [protocol.Request.Digest]
// does, any other subject by the SHA-256 of its JSON.
func digest(req *protocol.Request) string {
	if d := req.Digest(); d != "" {
		return d
	}
	sum := sha256.Sum256(req.Subject.AppendJSON(nil))
	return hex.EncodeToString(sum[:])
}
