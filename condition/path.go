package condition

import (
	"net/url"
	"path"
	"strings"

	"github.com/hookd/hookd/protocol"
)

// pathPattern is the pattern of a rule about files. In it * stands for any
// characters but a slash, and ** for any folders; what is in a folder that
// matches matches, too.
type pathPattern struct {
	parts []string
	root  root
}

// root says from where a pattern is meant.
type root int

const (
	anywhere root = iota // a name without a slash: in any folder
	project              // the session's folder
	home                 // the user's, which is not known here: any user's
	system               // the whole system
)

// newPathPattern reads a pattern: //etc/** is of the system, ~/.ssh/** of the
// home folder, /src/**, ./src/** and src/** of the session's folder, and *.env
// is in any folder. The only error is path.ErrBadPattern.
func newPathPattern(text string) (*pathPattern, error) {
	p := &pathPattern{root: project}
	rest, isSystem := strings.CutPrefix(text, "//")
	switch {
	case isSystem:
		p.root = system
	case text == "~" || strings.HasPrefix(text, "~/"):
		p.root, rest = home, strings.TrimPrefix(text[1:], "/")
	case text == "/" || text == "." || text == "./":
	case !strings.Contains(strings.TrimSuffix(text, "/"), "/") || strings.HasPrefix(text, "**/"):
		p.root = anywhere
	}
	rest = strings.Trim(clean("/"+rest), "/")
	p.parts = strings.Split(rest, "/")
	if rest == "" {
		p.parts = []string{"**"}
	}
	if p.root == anywhere {
		p.parts = append([]string{"**"}, p.parts...)
	}
	for _, part := range p.parts {
		if _, err := path.Match(part, ""); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// matches reports whether a file is meant. A relative one is in cwd. Where that
// is not known, it may be in any folder.
func (p *pathPattern) matches(file, cwd string) bool {
	file, cwd = clean(file), strings.ToLower(cwd)
	inHome := strings.HasPrefix(file, "~") || strings.HasPrefix(file, "$home/")
	if cwd != "" && !strings.HasPrefix(file, "/") && !inHome {
		file = path.Join(cwd, file)
	}
	switch p.root {
	case anywhere:
		return p.match(file)
	case system:
		return strings.HasPrefix(file, "/") && p.match(file)
	case home:
		rest, ok := belowHome(file)
		return ok && p.match(rest)
	}
	switch {
	case cwd == "" && strings.HasPrefix(file, "/"), strings.HasPrefix(file, "../"):
		return p.inAny(file)
	case cwd == "":
		return p.match(file)
	case inHome: // where the session's folder may be, too
		return p.inAny(file)
	}
	rest, ok := strings.CutPrefix(file, strings.TrimSuffix(path.Clean(cwd), "/")+"/")
	return ok && p.match(rest)
}

// inAny is match for a pattern that may begin in any folder of the file.
func (p *pathPattern) inAny(file string) bool {
	q := pathPattern{parts: append([]string{"**"}, p.parts...)}
	return q.match(file)
}

// belowHome returns what of a path is in a home folder.
func belowHome(file string) (string, bool) {
	parts := strings.Split(strings.TrimPrefix(file, "/"), "/")
	skip := 0
	switch {
	case parts[0] == "~" || parts[0] == "$home" || parts[0] == "root" && strings.HasPrefix(file, "/"):
		skip = 1
	case len(parts) > 1 && (parts[0] == "home" || parts[0] == "users" || parts[0] == "var" && parts[1] == "root"):
		skip = 2
	case len(parts) > 2 && parts[0] == "c:" && parts[1] == "users":
		skip = 3
	case strings.HasPrefix(parts[0], "~"): // ~user
		skip = 1
	default:
		return "", false
	}
	return strings.Join(parts[skip:], "/"), true
}

// match compares a path, or a folder above it, with the pattern.
func (p *pathPattern) match(file string) bool {
	var parts []string
	if file = strings.Trim(file, "/"); file != "" && file != "." {
		parts = strings.Split(file, "/")
	}
	// at[i] says that the parts of the path so far match the first i of the
	// pattern.
	at := make([]bool, len(p.parts)+1)
	at[0] = true
	p.skip(at)
	for _, part := range parts {
		next := make([]bool, len(at))
		for i, pattern := range p.parts {
			if !at[i] {
				continue
			}
			if pattern == "**" {
				next[i] = true
			} else if ok, _ := path.Match(pattern, part); ok {
				next[i+1] = true
			}
		}
		at = next
		p.skip(at)
		if at[len(p.parts)] { // the rest is in a folder that matches
			return true
		}
	}
	return at[len(p.parts)]
}

// skip lets ** stand for no folder.
func (p *pathPattern) skip(at []bool) {
	for i, pattern := range p.parts {
		if pattern == "**" && at[i] {
			at[i+1] = true
		}
	}
}

// meansHost reports whether an address is of a host. "*.example.com" means the
// hosts below example.com.
func meansHost(domain, address string) (bool, string) {
	if address == "" {
		return true, "it is not known which address it means"
	}
	text := strings.TrimSpace(address)
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.Contains(text, `\`) {
		return true, "the address can't be read: " + address
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if protocol.Glob(domain, host) {
		return true, host + " is meant"
	}
	return false, host + " is not " + domain
}
