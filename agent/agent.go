package agent

import (
	"fmt"
	"strings"

	"github.com/hookd/hookd/agent/antigravity"
	"github.com/hookd/hookd/agent/claude"
	"github.com/hookd/hookd/agent/cline"
	"github.com/hookd/hookd/agent/copilot"
	"github.com/hookd/hookd/agent/crush"
	"github.com/hookd/hookd/agent/cursor"
	"github.com/hookd/hookd/agent/gemini"
	"github.com/hookd/hookd/agent/goose"
	"github.com/hookd/hookd/agent/grok"
	"github.com/hookd/hookd/agent/hermes"
	"github.com/hookd/hookd/agent/kiro"
	"github.com/hookd/hookd/agent/native"
	"github.com/hookd/hookd/agent/opencode"
	"github.com/hookd/hookd/agent/openhands"
	"github.com/hookd/hookd/agent/windsurf"
	"github.com/hookd/hookd/protocol"
)

// The words of package native, under which callers know them.
type (
	Dialect       = native.Dialect
	Row           = native.Row
	Call          = native.Call
	Answer        = native.Answer
	Policy        = native.Policy
	Fallback      = native.Fallback
	Gap           = native.Gap
	OnUnavailable = native.OnUnavailable
	PayloadError  = native.PayloadError
	Format        = native.Format
)

// The choices of [OnUnavailable], and those of [Fallback] that a [Policy] takes.
const (
	UnavailableDefault  = native.UnavailableDefault
	UnavailableContinue = native.UnavailableContinue
	UnavailableDeny     = native.UnavailableDeny
	UnavailableAsk      = native.UnavailableAsk

	FallbackDeny   = native.FallbackDeny
	FallbackSilent = native.FallbackSilent
)

// Auto is the name that stands for detecting the agent.
const Auto = "auto"

// ParseOnUnavailable reads a choice; "allow" is another word for continue.
func ParseOnUnavailable(word string) (OnUnavailable, error) { return native.ParseOnUnavailable(word) }

// ParseFallback reads a choice for [Policy]: deny or silent.
func ParseFallback(word string) (Fallback, error) { return native.ParseFallback(word) }

// Gaps returns the declared policy: what is done where an agent has no native
// form for a part of an answer.
func Gaps() []Gap { return native.Gaps() }

// Names returns the names of the dialects, in the order in which they are shown.
func Names() []string {
	return []string{
		"claude", "codex", "cursor", "copilot", "vscode", "windsurf", "gemini", "antigravity", "kiro", "droid", "qwen", "kimi",
		"goose", "crush", "cline", "grok", "opencode", "openhands", "hermes",
	}
}

// Canonical returns the name of the dialect that a name stands for: other names
// by which people call an agent, and those of its older self. A name that stands
// for none is returned as it is.
func Canonical(name string) string {
	switch name {
	case "claude-code", "claudecode":
		return "claude"
	case "codex-cli":
		return "codex"
	case "cursor-agent":
		return "cursor"
	case "copilot-cli":
		return "copilot"
	case "copilot-vscode", "vs-code":
		return "vscode"
	case "cascade", "devin":
		return "windsurf"
	case "gemini-cli":
		return "gemini"
	case "agy":
		return "antigravity"
	case "kiro-cli", "q", "amazon-q", "amazonq":
		return "kiro"
	case "factory":
		return "droid"
	case "qwen-code":
		return "qwen"
	case "kimi-cli":
		return "kimi"
	case "grok-build":
		return "grok"
	case "hermes-agent":
		return "hermes"
	}
	return name
}

// Aliases returns the other names that [Canonical] knows.
func Aliases() []string {
	return []string{
		"claude-code", "claudecode", "codex-cli", "cursor-agent", "copilot-cli", "copilot-vscode", "vs-code", "cascade", "devin", "gemini-cli", "agy",
		"kiro-cli", "q", "amazon-q", "amazonq", "factory", "qwen-code", "kimi-cli", "grok-build", "hermes-agent",
	}
}

// Find returns the dialect of an agent, also by another of its names, or nil
// when there is none.
func Find(name string) Dialect {
	switch Canonical(name) {
	case "claude":
		return claude.Claude()
	case "codex":
		return claude.Codex()
	case "copilot":
		return copilot.New()
	case "vscode":
		return claude.VSCode()
	case "qwen":
		return claude.Qwen()
	case "droid":
		return claude.Droid()
	case "kimi":
		return claude.Kimi()
	case "cursor":
		return cursor.New()
	case "windsurf":
		return windsurf.New()
	case "gemini":
		return gemini.New()
	case "antigravity":
		return antigravity.New()
	case "kiro":
		return kiro.New()
	case "goose":
		return goose.New()
	case "crush":
		return crush.New()
	case "cline":
		return cline.New()
	case "grok":
		return grok.New()
	case "opencode":
		return opencode.New()
	case "openhands":
		return openhands.New()
	case "hermes":
		return hermes.New()
	}
	return nil
}

// All returns the dialects in the order of [Names].
func All() []Dialect {
	var list []Dialect
	for _, name := range Names() {
		list = append(list, Find(name))
	}
	return list
}

// Pick returns the dialect for a payload. With the name [Auto] it detects the
// agent. With another name it returns that one, unless the payload shows beyond
// doubt that another agent runs the hook: several agents read the files of
// others, and an answer in the wrong format would be no answer. The warning,
// if any, says so.
func Pick(name string, payload []byte, getenv func(string) string) (d Dialect, warning string, err error) {
	found, sure := Detect(payload, getenv)
	if name == Auto {
		if d = Find(found); d == nil {
			return nil, "", fmt.Errorf("can't tell which agent this is: name it with --agent (%s)", strings.Join(Names(), ", "))
		}
		return d, "", nil
	}
	if d = Find(name); d == nil {
		return nil, "", fmt.Errorf("unknown agent %q%s: one of %s, or auto", name, protocol.DidYouMean(name, Names()), strings.Join(Names(), ", "))
	}
	if other := Find(found); sure && other != nil && found != d.Name() && !related(d.Name(), found) {
		return other, "this hook was registered for " + d.Name() + ", and " + found + " runs it: answered as " + found + " reads it", nil
	}
	return d, "", nil
}

// SameEvent reports whether two names of events differ in upper and lower case,
// underscores and dashes only.
func SameEvent(a, b string) bool { return native.SameEvent(a, b) }

// related reports whether one of two dialects speaks for the other.
func related(a, b string) bool {
	return (a == "copilot" || a == "vscode") && (b == "copilot" || b == "vscode")
}
