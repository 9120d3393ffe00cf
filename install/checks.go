package install

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/protocol"
)

// system is a file that belongs to the machine and not to a user.
func (p *Place) system(path string) string { return filepath.Join("/", p.Root, path) }

// setting reads a value from a JSON file by its names; "" = it is not there, or
// the file can't be read, which others tell.
func setting(path string, names ...string) (text string, line int) {
	file, err := readDisk(path)
	if err != nil || file.text == nil {
		return "", 0
	}
	d, err := parseDocument(path, file.text)
	if err != nil {
		return "", 0
	}
	v, err := d.lookup(names...)
	if err != nil || v == nil {
		return "", 0
	}
	line, _ = position(d.text, v.StartOffset)
	return string(raw(v)), line
}

// off reports a setting that switches hooks off.
func (c *checkup) off(bad, path string, names ...string) {
	if text, line := setting(path, names...); text == bad {
		c.at(Problem, path, line, fmt.Sprintf("%s is %s, so no hook of yours runs", strings.Join(names, "."), bad), "remove that setting")
	}
}

func checkClaude(c *checkup) {
	p := c.place
	files := []string{claudeHome(p) + "/settings.json"}
	if p.Project != "" {
		files = append(files, p.in(".claude", "settings.json"), p.in(".claude", "settings.local.json"))
	}
	managed := []string{p.system("/etc/claude-code/managed-settings.json"), p.system("/Library/Application Support/ClaudeCode/managed-settings.json")}
	for _, path := range append(files, managed...) {
		c.off("true", path, "disableAllHooks")
	}
	for _, path := range managed {
		c.off("true", path, "allowManagedHooksOnly")
	}
}

func checkCodex(c *checkup) {
	p := c.place
	config := map[string]any{}
	path := filepath.Join(codexHome(p), "config.toml")
	file, err := readDisk(path)
	if err == nil && file.text != nil {
		config, err = readTOML(path, file.text)
	}
	if err != nil {
		line, text := 0, err.Error()
		if bad, ok := errors.AsType[*FileError](err); ok {
			line, text = bad.Line, bad.Text
		}
		c.at(Problem, path, line, text, "correct it: what Codex trusts stands there")
		return
	}
	for _, name := range []string{"hooks", "codex_hooks"} {
		if on, ok := tomlPath(config, "features", name).(bool); ok && !on {
			c.at(Problem, path, 0, "features."+name+" is false, so Codex runs no hooks", "remove that line")
		}
	}
	requirements := p.system("/etc/codex/requirements.toml")
	if file, err := readDisk(requirements); err == nil && file.text != nil {
		if all, err := readTOML(requirements, file.text); err == nil {
			if only, _ := tomlPath(all, "allow_managed_hooks_only").(bool); only {
				c.at(Problem, requirements, 0, "allow_managed_hooks_only is true, so Codex runs no hooks of yours", "ask whoever manages this machine")
			}
			if on, ok := tomlPath(all, "features", "hooks").(bool); ok && !on {
				c.at(Problem, requirements, 0, "features.hooks is false, so Codex runs no hooks", "ask whoever manages this machine")
			}
		}
	}
	if hooks, ok := tomlPath(config, "hooks").(map[string]any); ok {
		for name := range hooks {
			if name != "state" {
				c.at(Warning, path, 0, "hooks stand here and in hooks.json; Codex takes both and warns of it", "keep one of the two forms")
				break
			}
		}
	}
	for i := range c.found {
		c.codexFile(&c.found[i], config)
	}
}

// codexFile looks at one hooks.json.
func (c *checkup) codexFile(f *foundFile, config map[string]any) {
	if d, err := parseDocument(f.path, f.text); err == nil {
		if root, err := objectOf(d, &d.root); err == nil {
			for _, m := range root {
				if m.Name != "hooks" && m.Name != "description" {
					c.at(Problem, f.path, 1, fmt.Sprintf("Codex refuses a file with %q at its root", m.Name), "remove it; only hooks and description may stand there")
				}
			}
		}
		if !d.root.IsStandard() {
			c.at(Problem, f.path, 0, "Codex refuses a file with comments or trailing commas", "remove them")
		}
	}
	if f.scope == Project {
		if level, _ := tomlPath(config, "projects", c.place.Project, "trust_level").(string); level != "trusted" {
			c.at(Problem, f.path, 0, "the project is not trusted, so Codex does not read its hooks", "start codex in "+c.place.Project+" and trust it")
		}
	}
	states := map[codexTrust][]string{}
	for _, s := range f.slots {
		if !s.ours {
			continue
		}
		state := codexState(config, f.path, s)
		if state == codexUntrusted && f.real != f.path {
			state = codexState(config, f.real, s)
		}
		states[state] = append(states[state], s.event)
	}
	approve := "start codex, type /hooks and trust them"
	if list := states[codexUntrusted]; len(list) > 0 {
		c.at(Problem, f.path, 0, "not trusted yet, so Codex passes them over without a word: "+strings.Join(list, ", "), approve)
	}
	if list := states[codexModified]; len(list) > 0 {
		c.at(Problem, f.path, 0, "changed since they were trusted, so Codex passes them over without a word: "+strings.Join(list, ", "), approve)
	}
	if list := states[codexDisabled]; len(list) > 0 {
		c.at(Problem, f.path, 0, "switched off in Codex: "+strings.Join(list, ", "), "start codex, type /hooks and switch them on")
	}
	if list := states[codexTrusted]; len(list) > 0 && len(states) == 1 {
		c.add(OK, fmt.Sprintf("Codex trusts all %d hooks", len(list)), "")
	}
}

func checkCursor(c *checkup) {
	for _, f := range c.found {
		c.unknownEvents(f, "it refuses the whole file")
		if text, _ := setting(f.path, "version"); text != "1" {
			c.at(Problem, f.path, 0, "version is not 1, so Cursor refuses the file", c.reinstall(f.scope))
		}
	}
}

// unknownEvents reports events that the agent does not know.
func (c *checkup) unknownEvents(f foundFile, effect string) {
	var told []string
	for _, s := range f.slots {
		known := slices.ContainsFunc(c.spec.events, func(e event) bool { return e.name == s.event })
		if !known && !slices.Contains(told, s.event) {
			told = append(told, s.event)
			c.at(Warning, f.path, s.line, fmt.Sprintf("%q is no event that hookd knows of; when %s does not know it either, %s", s.event, c.spec.title, effect), "correct or remove it")
		}
	}
}

func checkCopilot(c *checkup) {
	for _, f := range c.found {
		c.off("true", f.path, "disableAllHooks")
	}
	for _, name := range []string{"settings.json", "config.json"} {
		c.off("true", filepath.Join(copilotHome(c.place), name), "disableAllHooks")
	}
}

func checkGemini(c *checkup) {
	for _, f := range c.found {
		c.geminiTrust(f)
		c.off("false", f.path, "hooksConfig", "enabled")
		c.off("false", f.path, "hooks", "enabled")
		c.off("false", f.path, "tools", "enableHooks")
		for _, where := range []string{"hooksConfig", "hooks"} {
			if text, line := setting(f.path, where, "disabled"); strings.Contains(text, `"hookd"`) {
				c.at(Problem, f.path, line, where+".disabled names hookd", "take it out of the list, or type /hooks enable hookd")
			}
		}
	}
}

// geminiTrust looks whether Gemini trusts the project, where it asks for that at
// all.
func (c *checkup) geminiTrust(f foundFile) {
	user := filepath.Join(geminiHome(c.place), "settings.json")
	if on, _ := setting(user, "security", "folderTrust", "enabled"); on != "true" || f.scope != Project {
		return
	}
	text, _ := setting(filepath.Join(geminiHome(c.place), "trustedFolders.json"))
	rules, _ := protocol.ParseObject(jsontext.Value(text)) // none, where there is no such file
	for _, rule := range rules {
		trusted := rule.Name
		switch string(rule.Value) {
		case `"TRUST_FOLDER"`:
		case `"TRUST_PARENT"`:
			trusted = filepath.Dir(trusted)
		default:
			continue
		}
		if rel, err := filepath.Rel(trusted, c.place.Project); err == nil && filepath.IsLocal(rel) {
			return
		}
	}
	c.at(Problem, f.path, 0, "the project is not trusted, so Gemini blocks its hooks", "start gemini in "+c.place.Project+" and trust the folder")
}

func checkQwen(c *checkup) {
	for _, f := range c.found {
		c.off("true", f.path, "disableAllHooks")
		c.off("false", f.path, "hooksConfig", "enabled")
	}
}

func checkDroid(c *checkup) {
	for _, scope := range c.spec.scopes {
		if scope == Project && c.place.Project == "" {
			continue
		}
		settings := filepath.Join(droidFolder(c.place, scope), "settings.json")
		c.off("true", settings, "hooksDisabled")
		c.off("true", settings, "allowManagedHooksOnly")
	}
	for _, f := range c.found {
		if filepath.Base(f.path) == "hooks.json" {
			c.unknownEvents(f, "it drops the whole file")
			if hasHooks(filepath.Join(filepath.Dir(f.path), "settings.json")) {
				c.at(Warning, f.path, 0, "there are hooks in settings.json too, which Droid does not run at events that stand here", "keep all of them in hooks.json")
			}
		}
	}
}

func checkAntigravity(c *checkup) {
	for _, f := range c.found {
		if text, line := setting(f.path, "hookd", "enabled"); text == "false" {
			c.at(Problem, f.path, line, "the hook named hookd is switched off", `set "enabled" to true, or remove it`)
		}
	}
}

func checkKiro(c *checkup) {
	for _, f := range c.found {
		if bytes.HasPrefix(f.text, []byte(byteOrderMark)) {
			c.at(Problem, f.path, 1, "the file starts with a byte order mark, which Kiro refuses", "save it as UTF-8 without one")
		}
	}
}
