package shell

import (
	"slices"
	"strings"
)

// writes notes a file that is written.
func (r *reader) writes(f field) {
	switch f.text {
	case "", "-", "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return
	}
	if !f.proc && len(r.line.Writes) < maxCommands && !slices.Contains(r.line.Writes, f.text) {
		r.line.Writes = append(r.line.Writes, f.text)
	}
}

// writer is a program that writes files which it is told by name.
type writer struct {
	opts  options
	all   bool   // all operands are written
	last  bool   // the last of several operands is
	value string // options whose value is
}

// writerOf returns the writer of a name in lower case, or nil.
func writerOf(name string) *writer {
	switch name {
	case "sponge":
		return &writer{opts: "a", all: true}
	case "uniq", "guniq":
		return &writer{last: true, opts: "cdDiuzf:s:w: --skip-fields= --skip-chars= --check-chars="}
	case "gpg", "gpg2", "age", "iconv", "minisign":
		return &writer{value: "o output", opts: "o:r:u:i:f:t: --output= --recipient= --passphrase= --identity="}
	case "tee", "gtee":
		return &writer{opts: "aip --append --ignore-interrupts", all: true}
	case "truncate", "gtruncate":
		return &writer{opts: "cor:s: --size= --reference=", all: true}
	case "touch", "gtouch":
		return &writer{opts: "acd:mr:t: --date= --reference=", all: true}
	case "cp", "gcp", "mv", "gmv", "install", "ginstall", "ln", "gln":
		return &writer{last: true, value: "t target-directory", opts: "abcdfHiLlnPpRrsTuvxZg:m:o:S:t: --target-directory= --suffix= --mode= --owner= --group="}
	case "rsync":
		return &writer{last: true, opts: "acdghklnoprstuvxzAEHLPRSXe: --rsh= --exclude= --include= --exclude-from= --files-from="}
	case "scp":
		return &writer{last: true, opts: "346ABCpqrTvc:F:i:J:l:o:P:S:"}
	case "curl":
		return &writer{value: "o output D dump-header c cookie-jar", opts: "o:D:c:H:X:d:u:A:b:e:F:T:m:w:x:y: --output= --dump-header= --cookie-jar= --header= --request= --data= --user="}
	case "wget":
		return &writer{value: "O output-document o output-file", opts: "O:o:P:U:t:T: --output-document= --output-file="}
	case "sort", "gsort":
		return &writer{value: "o output", opts: "o:k:t:S:T: --output= --key="}
	case "patch":
		return &writer{value: "o output", opts: "o:p:i:d: --output= --input="}
	}
	return nil
}

// writesOf notes the files that a program writes.
func (r *reader) writesOf(name string, args []field) {
	if name == "dd" || name == "gdd" {
		for _, f := range args {
			if strings.HasPrefix(f.text, "of=") {
				r.writes(f.cutTo(3))
			}
		}
		return
	}
	if w := writerOf(name); w != nil {
		r.writesBy(w, args)
	}
}

func (r *reader) writesBy(w *writer, args []field) {
	got, operands := w.opts.permuted(args)
	target := false
	for _, opt := range got {
		if hasWord(w.value, opt.name) {
			target = true
			r.writes(opt.value)
		}
	}
	switch {
	case w.all:
		for _, f := range operands {
			r.writes(f)
		}
	case w.last && !target && len(operands) > 1:
		r.writes(operands[len(operands)-1])
	}
}
