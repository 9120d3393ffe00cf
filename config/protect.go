package config

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Sandbox is what a process may reach beyond what every program needs to
// start. The zero value is nothing.
type Sandbox struct {
	// Read and Write are absolute paths of files and folders; a folder stands
	// for all that is in it. What may be written may be read.
	Read, Write []string
	// Network lets the process open connections and listen.
	Network bool
}

// Pin is the content that a file must have, or its process is not started.
type Pin struct {
	// Path is absolute, or a bare name to be found through PATH.
	Path string
	// SHA256 is in hex, lower case.
	SHA256 string
	// Pointer is the JSON pointer of the pin in the file.
	Pointer string
}

// File returns where the pinned file is now, "" when a bare name is nowhere in
// PATH.
func (p Pin) File() string {
	if strings.Contains(p.Path, "/") {
		return p.Path
	}
	return lookPath(p.Path)
}

// Canary is a call whose right answer is known. Asking it shows whether a hook
// judges as it should.
type Canary struct {
	// Request is the call, with dry_run set. It must not be changed.
	Request *protocol.Request
	// Expect is the verb of the right answer.
	Expect protocol.Action
	// Pointer is the JSON pointer of the canary in the file.
	Pointer string
}

// Same reports whether two canaries ask and expect the same; nil is none.
func (c *Canary) Same(other *Canary) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.Expect == other.Expect && c.Request.Stage.Name == other.Request.Stage.Name &&
		string(c.Request.AppendParams(nil, 0)) == string(other.Request.AppendParams(nil, 0))
}

// pins are the digests of files: one text, or an object of them by file. The
// builder judges its form.
type pins jsontext.Value

type digest string

func (d digest) valid() bool {
	return len(d) == 64 && strings.Trim(string(d), "0123456789abcdefABCDEF") == ""
}

const badDigest = "expected a SHA-256 as 64 hex digits; sha256sum FILE prints it"

// protect reads what limits a process and holds it to its word.
func (b *builder) protect(e *Entry, f *process) {
	if f.Sandbox != nil {
		e.Sandbox = &Sandbox{Network: f.Sandbox.Network}
		e.Sandbox.Read = b.paths(e.Pointer+"/sandbox/read", f.Sandbox.Read)
		e.Sandbox.Write = b.paths(e.Pointer+"/sandbox/write", f.Sandbox.Write)
	}
	if f.SHA256 != nil {
		e.Pins = b.pins(e, f)
	}
}

func (b *builder) paths(pointer string, list []filePath) []string {
	var found []string
	for i, p := range list {
		if p == "" {
			b.judge(pointer+"/"+strconv.Itoa(i), "the path is empty")
			continue
		}
		found = append(found, b.path(p))
	}
	return found
}

// pins reads the key sha256. Its text is for the program. In an object a word
// of the command means the file of that word, and any other name a path from
// this file's folder.
func (b *builder) pins(e *Entry, f *process) []Pin {
	v, pointer := jsontext.Value(f.SHA256), e.Pointer+"/sha256"
	if v.Kind() == '"' {
		d := digest(protocol.Unquote(v))
		if !d.valid() {
			b.judge(pointer, "%s", badDigest)
			return nil
		}
		return []Pin{{e.Command[0], strings.ToLower(string(d)), pointer}}
	}
	files, err := protocol.ParseObject(v)
	switch {
	case err != nil:
		b.judge(pointer, "expected a string, or an object of strings by file, got %s", kindName(hujson.Kind(v.Kind())))
		return nil
	case len(files) == 0:
		b.judge(pointer, "no file is named, so nothing is pinned: name one, or leave sha256 out")
	}
	found := map[string]Pin{}
	for _, m := range files {
		at := pointer + "/" + escape(m.Name)
		d := digest("")
		if m.Value.Kind() == '"' {
			d = digest(protocol.Unquote(m.Value))
		}
		path, problem := b.pinned(e, f, m.Name)
		switch _, twice := found[path]; {
		case problem != nil:
			b.judge(at, "%s", problem)
		case !d.valid():
			b.judge(at, "%s", badDigest)
		case twice:
			b.judge(at, "this file stands here twice, under two names")
		default:
			found[path] = Pin{path, strings.ToLower(string(d)), at}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Pin) int { return cmp.Compare(a.Path, b.Path) })
}

// pinned returns the path of a file as the object sha256 names it.
func (b *builder) pinned(e *Entry, f *process, name string) (string, error) {
	p := filePath(name)
	if err := p.check(); err != nil {
		return "", err
	}
	switch i := slices.Index(e.Command, name); {
	case i == 0, name == string(f.Command[0]):
		return e.Command[0], nil
	case i > 0 && !filepath.IsAbs(name):
		return filepath.Join(e.Dir, name), nil
	}
	return filepath.Clean(b.path(p)), nil
}

// canary reads the call that an entry is tried with.
func (b *builder) canary(e *Entry, f *canary) *Canary {
	if f == nil {
		return nil
	}
	c := &Canary{Expect: f.Expect, Pointer: e.Pointer + "/canary"}
	name := protocol.Stage(f.Stage)
	stage := b.stages.Stage(name)
	switch {
	case stage == nil: // it was reported
		return nil
	case name == protocol.StageApproveTool:
		b.judge(c.Pointer+"/stage", "approvers are not tried: an approval is meant, or it is none. Name a stage of an interceptor")
		return nil
	case (e.Source == hook.Process || e.Intercept != nil) && !slices.Contains(e.Intercept, name):
		b.judge(c.Pointer+"/stage", "the hook is not asked at %s: add it to intercept, or name a stage that stands there", name)
	case !stage.Allows(c.Expect):
		b.judge(c.Pointer+"/expect", "%s is not possible at %s", c.Expect, name)
	}
	params, err := protocol.ParseObject(f.Params)
	if err != nil {
		b.judge(c.Pointer+"/params", "expected an object, the params of %s", stage.Method())
		return nil
	}
	request, bad := protocol.DecodeRequest(stage, params)
	if bad != nil {
		place, text := placeOf(bad)
		b.judge(c.Pointer+"/params"+place, "%s", text)
		return nil
	}
	request.DryRun, request.Approve, request.Asked, request.Trail, request.DeadlineMS = true, false, nil, false, 0
	c.Request = request
	return c
}

// placeOf returns the pointer to the param that an error is about, and what it
// says of it.
func placeOf(err *protocol.Error) (pointer, text string) {
	data, _ := protocol.ParseObject(err.Data) // no data, no place
	path := data.Get("path")
	if path == nil {
		return "", err.Message
	}
	for name := range strings.SplitSeq(protocol.Unquote(path), ".") {
		pointer += "/" + escape(name)
	}
	return pointer, strings.TrimPrefix(err.Message, protocol.Unquote(path)+": ")
}
