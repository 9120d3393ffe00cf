// Gen writes the rules of gitleaks in the form in which hookd embeds them. It is
// a module of its own, so that what gitleaks needs does not become part of
// hookd. Run it with "go generate ./builtin/secrets".
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"slices"

	"github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
)

// source is what is read of gitleaks' own config.
type source struct {
	Allowlist allow
	Rules     []struct {
		ID          string
		Regex       string
		Path        string
		Entropy     float64
		SecretGroup int
		Keywords    []string
		Allowlists  []allow
	}
}

type allow struct {
	Condition   string
	RegexTarget string
	Paths       []string
	Regexes     []string
	StopWords   []string
}

// file is what is written; package secrets reads it.
type file struct {
	Source  string     `json:"source"`
	License string     `json:"license"`
	Allow   fileAllow  `json:"allow"`
	Rules   []fileRule `json:"rules"`
}

type fileRule struct {
	ID       string      `json:"id"`
	Regex    string      `json:"regex"`
	Group    int         `json:"group,omitempty"`
	Entropy  float64     `json:"entropy,omitempty"`
	Keywords []string    `json:"keywords,omitempty"`
	Allow    []fileAllow `json:"allow,omitempty"`
}

type fileAllow struct {
	All       bool     `json:"all,omitempty"`
	Target    string   `json:"target,omitempty"`
	Regexes   []string `json:"regexes,omitempty"`
	StopWords []string `json:"stop_words,omitempty"`
}

// needsPath are rules that mean nothing without the path of a file, which a text
// does not have. Other rules with a path say enough by themselves.
var needsPath = []string{"pkcs12-file", "hashicorp-tf-password"}

func main() {
	const to = "../rules/gitleaks.json"
	text, err := rules()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o644); err != nil {
		log.Fatal(err)
	}
}

// rules returns the file.
func rules() ([]byte, error) {
	var from source
	if err := toml.Unmarshal([]byte(config.DefaultConfig), &from); err != nil {
		return nil, fmt.Errorf("read the rules of gitleaks: %w", err)
	}
	out := file{Source: version(), License: "MIT, see LICENSE.gitleaks", Allow: convert(from.Allowlist)}
	for _, r := range from.Rules {
		if slices.Contains(needsPath, r.ID) {
			continue
		}
		rule := fileRule{ID: r.ID, Regex: r.Regex, Group: r.SecretGroup, Entropy: r.Entropy, Keywords: r.Keywords}
		for _, a := range r.Allowlists {
			if len(a.Paths) > 0 && (a.Condition == "AND" || len(a.Regexes)+len(a.StopWords) == 0) {
				continue // can never hold without a path
			}
			rule.Allow = append(rule.Allow, convert(a))
		}
		out.Rules = append(out.Rules, rule)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(out)
	return b.Bytes(), err
}

func convert(a allow) fileAllow {
	return fileAllow{All: a.Condition == "AND", Target: a.RegexTarget, Regexes: a.Regexes, StopWords: a.StopWords}
}

// version names the module that the rules come from.
func version() string {
	const module = "github.com/zricethezav/gitleaks/v8"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return module + " " + dep.Version
			}
		}
	}
	return module
}
