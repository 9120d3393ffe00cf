package install

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// codexTrust is what Codex thinks of one hook.
type codexTrust string

const (
	codexTrusted   codexTrust = "trusted"
	codexModified  codexTrust = "modified"  // trusted once, and changed since
	codexUntrusted codexTrust = "untrusted" // never looked at
	codexDisabled  codexTrust = "disabled"
)

// codexLabel is what Codex calls an event in its keys: PreToolUse is
// pre_tool_use.
func codexLabel(event string) string {
	var b strings.Builder
	for i, r := range event {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// codexHash is the hash by which Codex knows a hook: that of its definition with
// defaults filled in, as JSON with sorted names. matcher is nil where there is
// none.
func codexHash(event string, handler protocol.Object, matcher jsontext.Value) (string, bool) {
	command := handler.Get("command")
	if command.Kind() != '"' {
		return "", false
	}
	limit := int64(600)
	if t := handler.Get("timeout"); t.Kind() == '0' {
		if _, err := fmt.Sscan(string(t), &limit); err != nil {
			return "", false
		}
		limit = max(limit, 1)
	}
	if event == "SessionEnd" || event == "Interrupt" {
		if handler.Get("timeout") == nil {
			limit = 1
		}
		limit = min(limit, 3)
	}
	if event == "UserPromptSubmit" || event == "Stop" {
		matcher = nil // it is not looked at there
	}
	var hook protocol.Object
	set := func(name string, value jsontext.Value) {
		if value != nil && value.Kind() != 'n' {
			hook = append(hook, protocol.Member{Name: name, Value: value})
		}
	}
	if v := handler.Get("additionalContextLimit"); string(v) != "2500" {
		switch event {
		case "PreToolUse", "PostToolUse", "SessionStart", "UserPromptSubmit", "SubagentStart":
			set("additionalContextLimit", v)
		}
	}
	async := handler.Get("async")
	if async == nil {
		async = jsontext.Value("false")
	}
	set("async", async)
	set("command", protocol.Quote(protocol.Unquote(command)))
	set("statusMessage", handler.Get("statusMessage"))
	set("timeout", jsontext.Value(appendInt(nil, limit)))
	set("type", jsontext.Value(`"command"`))

	identity := protocol.Object{
		{Name: "event_name", Value: protocol.Quote(codexLabel(event))},
		{Name: "hooks", Value: jsontext.Value("[" + string(hook.AppendJSON(nil)) + "]")},
	}
	if matcher != nil && matcher.Kind() != 'n' {
		identity = append(identity, protocol.Member{Name: "matcher", Value: matcher})
	}
	sum := sha256.Sum256(identity.AppendJSON(nil))
	return "sha256:" + hex.EncodeToString(sum[:]), true
}

// codexState reads what Codex thinks of a hook in a hooks.json out of the
// user's config.toml.
func codexState(config map[string]any, path string, s slot) codexTrust {
	key := fmt.Sprintf("%s:%s:%d:%d", path, codexLabel(s.event), s.group, s.index)
	state := tomlPath(config, "hooks", "state", key)
	if enabled, ok := tomlPath(config, "hooks", "state", key, "enabled").(bool); ok && !enabled {
		return codexDisabled
	}
	trusted, ok := tomlPath(config, "hooks", "state", key, "trusted_hash").(string)
	if state == nil || !ok || trusted == "" {
		return codexUntrusted
	}
	if hash, ok := codexHash(s.event, s.value, s.around.Get("matcher")); !ok || hash != trusted {
		return codexModified
	}
	return codexTrusted
}
