package install

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// print lays a value out; its first line is not indented. unit "" puts it on
// one line.
func (d *document) print(v jsontext.Value, indent, unit string) string {
	var b strings.Builder
	d.write(&b, v, indent, unit)
	return b.String()
}

func (d *document) write(b *strings.Builder, v jsontext.Value, indent, unit string) {
	switch v.Kind() {
	case '{':
		obj, err := protocol.ParseObject(v)
		if err != nil || len(obj) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteByte('{')
		for i, m := range obj {
			d.between(b, i, indent+unit, unit != "")
			b.Write(protocol.Quote(m.Name))
			b.WriteByte(':')
			if unit != "" || d.tidy {
				b.WriteByte(' ')
			}
			d.write(b, m.Value, indent+unit, unit)
		}
		d.closing(b, '}', indent, unit != "")
	case '[':
		list, err := protocol.Items(v)
		if err != nil || len(list) == 0 {
			b.WriteString("[]")
			return
		}
		lines := unit != "" && !scalars(list)
		b.WriteByte('[')
		for i, item := range list {
			if !lines && unit != "" && i > 0 {
				b.WriteString(", ")
			} else if lines || unit == "" {
				d.between(b, i, indent+unit, lines)
			}
			d.write(b, item, indent+unit, unit)
		}
		d.closing(b, ']', indent, lines)
	default:
		b.Write(v)
	}
}

func (d *document) between(b *strings.Builder, i int, indent string, lines bool) {
	if i > 0 {
		b.WriteByte(',')
	}
	if lines {
		b.WriteString(d.eol + indent)
	} else if i > 0 && d.tidy {
		b.WriteByte(' ')
	}
}

func (d *document) closing(b *strings.Builder, bracket byte, indent string, lines bool) {
	if lines {
		b.WriteString(d.eol + indent)
	}
	b.WriteByte(bracket)
}

func scalars(list []jsontext.Value) bool {
	for _, v := range list {
		if k := v.Kind(); k == '{' || k == '[' {
			return false
		}
	}
	return true
}
