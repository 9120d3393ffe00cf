// Command guard denies tool calls with a path outside of the working folder (meta.cwd) and the folders of "allow", and asks
// before .git and CI files are written; links are followed. It judges arguments named like path, file or folder, and neither
// shell commands nor patches, nor what changes after it has looked. Mount it at before_tool with "fail_policy": "deny" and,
// say, "config": {"allow": ["/tmp"]}.
package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/hook/serve"
	"github.com/hookd/hookd/protocol"
)

var (
	named    = regexp.MustCompile(`(?i)((path|file|filename|dir|directory|folder|cwd|dest|destination|ur[il])s?|/(source|src|target|root))(/\d+)*$`)
	foreign  = regexp.MustCompile(`(?i)^(~|file:)`) // what a tool may read in another way than we do
	precious = regexp.MustCompile(`(?im)/(\.git|\.github/(workflows|actions)|\.gitlab-ci\.yml|\.circleci|\.ci|Jenkinsfile)(/|$)`)
)

type guard struct {
	hook.NoTool
	Allow []string `json:"allow"`
}

func main() { serve.Main(&guard{}) }

func (g *guard) Configure(config jsontext.Value) error {
	return json.Unmarshal(config, g, json.RejectUnknownMembers(true))
}

func (g *guard) BeforeTool(_ context.Context, call *hook.ToolCall) (verdict protocol.Decision, _ error) {
	cwd, args := call.Request.MetaString("cwd"), jsontext.NewDecoder(bytes.NewBuffer(call.Arguments))
	for token, err := args.ReadToken(); err == nil; token, err = args.ReadToken() {
		path := token.String()
		if token.Kind() != '"' || !named.MatchString(string(args.StackPointer())) {
			continue
		}
		if !filepath.IsAbs(path) && !foreign.MatchString(path) {
			path = cwd + "/" + path
		}
		for _, reading := range []string{path, filepath.Clean(path)} { // they differ behind a link: link/..
			place, err := resolve(reading)
			within := func(dir string) bool {
				dir, err := resolve(dir)
				return err == nil && strings.HasPrefix(place+"/", strings.TrimSuffix(dir, "/")+"/")
			}
			switch {
			case !filepath.IsAbs(cwd):
				return hook.Ask("the agent does not say in which folder it works (meta.cwd), and %s uses %s", call.Tool, path), nil
			case err != nil || !within(cwd) && !slices.ContainsFunc(g.Allow, within):
				return hook.Deny("%s is not a plain path inside of the working folder %s", path, cwd), nil
			case precious.MatchString(reading+"\n"+place) && !call.ReadOnly:
				verdict = hook.Ask("%s writes %s, on which others rely", call.Tool, path)
			}
		}
	}
	return verdict, nil
}

// resolve follows the links in path as far as it exists. A link to nowhere is an error.
func resolve(path string) (string, error) {
	place, err := filepath.EvalSymlinks(path)
	if _, missing := os.Lstat(path); !os.IsNotExist(err) || missing == nil {
		return place, err
	}
	dir, name := filepath.Split(strings.TrimRight(path, "/"))
	place, err = resolve(dir)
	return filepath.Join(place, name), err
}
