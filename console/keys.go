package console

import (
	"bytes"
	"unicode/utf8"
)

// Key is a key that was pressed, or a text that was pasted.
type Key struct {
	// Name is the character, or such as "enter", "esc", "up", "pgdn", "ctrl-c",
	// "paste".
	Name string
	// Text is what it adds to a text; "" = nothing.
	Text string
}

// maxSequence is how long the bytes of one key can be; what is longer is no key.
const maxSequence = 32

var pasteEnd = []byte("\x1b[201~")

// maxPaste is how much of a pasted text is kept.
const maxPaste = 4096

// Keys makes keys of the bytes that a terminal sends. The zero value works.
type Keys struct {
	rest    []byte
	pasting bool
	pasted  []byte
}

// Feed returns the keys in what has been read. The begin of a key that is not
// complete is kept.
func (k *Keys) Feed(b []byte) (keys []Key) {
	k.rest = append(k.rest, b...)
	for len(k.rest) > 0 {
		if k.pasting {
			if !k.paste(&keys) {
				return keys
			}
			continue
		}
		n, key := k.one(k.rest)
		if n == 0 {
			return keys
		}
		k.rest = k.rest[n:]
		if key.Name == "paste" {
			k.pasting = true
		} else if key.Name != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// Flush returns what was waiting for more bytes that did not come: the escape
// key.
func (k *Keys) Flush() []Key {
	if k.pasting || len(k.rest) == 0 {
		return nil
	}
	alone := len(k.rest) == 1 && k.rest[0] == 0x1b
	k.rest = nil
	if alone {
		return []Key{{Name: "esc"}}
	}
	return nil
}

// paste takes pasted text until its end; false = that has not come.
func (k *Keys) paste(keys *[]Key) bool {
	text, rest, ended := bytes.Cut(k.rest, pasteEnd)
	if !ended {
		keep := 0 // the end may have come in part
		for n := 1; n < len(pasteEnd) && n <= len(k.rest); n++ {
			if bytes.HasPrefix(pasteEnd, k.rest[len(k.rest)-n:]) {
				keep = n
			}
		}
		text, rest = k.rest[:len(k.rest)-keep], k.rest[len(k.rest)-keep:]
	}
	k.pasted = append(k.pasted, text[:min(len(text), maxPaste-len(k.pasted))]...)
	k.rest = bytes.Clone(rest)
	if ended {
		*keys = append(*keys, Key{Name: "paste", Text: string(bytes.ToValidUTF8(k.pasted, nil))})
		k.pasting, k.pasted = false, nil
	}
	return ended
}

// one reads a key; 0 = more bytes are needed. A key without a name has none
// here.
func (k *Keys) one(b []byte) (n int, key Key) {
	switch c := b[0]; {
	case c == 0x1b:
		return escape(b)
	case c == '\r' || c == '\n':
		return 1, Key{Name: "enter"}
	case c == '\t':
		return 1, Key{Name: "tab"}
	case c == 0x7f || c == 0x08:
		return 1, Key{Name: "backspace"}
	case c < ' ':
		return 1, Key{Name: "ctrl-" + string(rune(c|0x60))}
	}
	if !utf8.FullRune(b) {
		return 0, Key{}
	}
	r, size := utf8.DecodeRune(b)
	if r == utf8.RuneError && size == 1 {
		return 1, Key{}
	}
	return size, Key{Name: string(r), Text: string(r)}
}

var sequences = map[string]string{
	"[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end", "[Z": "shift-tab",
	"OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
	"[1~": "home", "[4~": "end", "[5~": "pgup", "[6~": "pgdn", "[7~": "home", "[8~": "end", "[200~": "paste",
}

// escape reads a sequence. All of it is taken also when it means nothing here,
// so that its letters are not taken for keys.
func escape(b []byte) (n int, key Key) {
	if len(b) == 1 {
		return 0, Key{}
	}
	switch b[1] {
	case 0x1b:
		return 1, Key{Name: "esc"}
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1, Key{Name: sequences[string(b[1:i+1])]}
			}
			if i >= maxSequence {
				return i + 1, Key{}
			}
		}
		return 0, Key{}
	case 'O':
		if len(b) == 2 {
			return 0, Key{}
		}
		return 3, Key{Name: sequences[string(b[1:3])]}
	}
	// A key with Alt.
	if !utf8.FullRune(b[1:]) {
		return 0, Key{}
	}
	_, size := utf8.DecodeRune(b[1:])
	return 1 + size, Key{}
}
