package docs_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// region is text that is made: between <!-- generated: NAME WORDS --> and <!-- end -->.
var region = regexp.MustCompile(`(?s)<!-- generated: (.+?) -->\n.*?<!-- end -->`)

// TestGenerated fails when the code says something else than the docs, and when
// they leave out a key of the config.
func TestGenerated(t *testing.T) {
	all := pages(t)
	keys := newConfigKeys(t)
	makers := map[string]func(words []string) string{
		"stages": stageTable, "outcomes": outcomeTable, "failures": failureTable, "keys": keys.table,
	}
	for path, page := range all {
		fresh := region.ReplaceAllStringFunc(page, func(old string) string {
			order := region.FindStringSubmatch(old)[1]
			words := strings.Fields(order)
			maker := makers[words[0]]
			require.NotNil(t, maker, "%s: nothing makes %q", path, words[0])
			return "<!-- generated: " + order + " -->\n\n" + maker(words[1:]) + "\n<!-- end -->"
		})
		if *update && fresh != page {
			require.NoError(t, os.WriteFile(path, []byte(fresh), 0o644))
		} else if fresh != page {
			t.Errorf("%s is not fresh: go test ./docs -update", path)
		}
	}
	require.Empty(t, keys.missing(), "docs/config.md leaves these keys out")
}

// TestEventsAreExplained wants each kind of event in the protocol's tables.
func TestEventsAreExplained(t *testing.T) {
	page := pages(t)["docs/protocol.md"]
	for _, kind := range slices.Concat(protocol.AgentEvents(), protocol.HookdEvents()) {
		require.Regexp(t, "(?m)^\\|.*`"+string(kind)+"`.*\\|", page)
	}
}

func table(head ...string) *strings.Builder {
	var b strings.Builder
	row(&b, head...)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	return &b
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// code joins words as code; – when there is none.
func code[T ~string](words []T) string {
	if len(words) == 0 {
		return "–"
	}
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, "`"+string(w)+"`")
	}
	return strings.Join(quoted, ", ")
}

func stageTable([]string) string {
	b := table("stage", "subject", "given, and fixed", "result member", "verbs beyond continue, abort_turn, hard_abort", "limit")
	for _, s := range protocol.Stages() {
		subject := make([]string, len(s.Subject))
		for i, name := range s.Subject {
			if subject[i] = "`" + name + "`"; slices.Contains(s.Required, name) {
				subject[i] = "*" + subject[i] + "*"
			}
		}
		var verbs []string
		for _, v := range s.Verbs {
			verbs = append(verbs, string(v))
			if v == protocol.ActionRespond {
				verbs[len(verbs)-1] += " (`" + s.Respond + "`)"
			}
		}
		if s.Name == protocol.StageApproveTool {
			verbs = []string{"answers `approved`"}
		}
		var result []string
		if s.Result != "" {
			result = []string{s.Result}
		}
		row(b, "`"+string(s.Name)+"`", strings.Join(subject, ", "), code(s.Fixed), code(result), cell(verbs), fmt.Sprintf("%g s", s.Timeout.Seconds()))
	}
	return b.String()
}

func cell(words []string) string {
	if len(words) == 0 {
		return "–"
	}
	return strings.Join(words, ", ")
}

func outcomeTable([]string) string {
	var answered, silent, denies, rest []protocol.Outcome
	for _, o := range protocol.Outcomes() {
		switch {
		case o.NoAnswer():
			silent = append(silent, o)
		case o.AlwaysDenies():
			denies = append(denies, o)
		case o == protocol.OutcomeContinue || protocol.Action(o).Rank() > 0:
			answered = append(answered, o)
		default:
			rest = append(rest, o)
		}
	}
	b := table("the hook", "outcomes", "then")
	row(b, "answered", code(answered), "its verb counts")
	row(b, "gave no answer", code(silent), "its entry's `fail_policy`: go on and name it in `degraded`, or deny. `required` denies")
	row(b, "gave one that can't be read or trusted, or could not be asked in time", code(denies), "deny, whatever the policy")
	row(b, "had no say", code(rest), "nothing; `not_run` is there only when the call was stopped before its turn")
	return b.String()
}

func failureTable([]string) string {
	b := table("becomes", "at")
	for _, action := range []protocol.Action{protocol.ActionDeny, protocol.ActionAbortTurn, protocol.ActionContinue} {
		var at []protocol.Stage
		for _, s := range protocol.Stages() {
			if s.OnFailure == action {
				at = append(at, s.Name)
			}
		}
		what := "`" + string(action) + "`"
		if action == protocol.ActionContinue {
			what = "nothing: the step goes on, and the hook is named in `degraded`"
		}
		row(b, what, code(at))
	}
	return b.String()
}

// schema is what the tables need of config.schema.json.
type schema struct {
	Description string             `json:"description"`
	Type        any                `json:"type"`
	Default     any                `json:"default"`
	Enum        []string           `json:"enum"`
	Minimum     *float64           `json:"minimum"`
	Maximum     *float64           `json:"maximum"`
	Properties  map[string]*schema `json:"properties"`
	Items       *schema            `json:"items"`
	Required    []string           `json:"required"`
	Defs        map[string]*schema `json:"$defs"`
}

// configKeys writes tables of the config's keys, and remembers which.
type configKeys struct {
	t     *testing.T
	all   map[string]*schema // by their path, such as hooks.defaults or process.match
	shown map[string]bool
}

func newConfigKeys(t *testing.T) *configKeys {
	text, err := os.ReadFile("config.schema.json")
	require.NoError(t, err)
	var root schema
	require.NoError(t, json.Unmarshal(text, &root))
	k := &configKeys{t: t, all: map[string]*schema{}, shown: map[string]bool{}}
	k.add("file", &root)
	for kind, entry := range root.Defs {
		k.add(kind, entry)
	}
	return k
}

func (k *configKeys) add(path string, s *schema) {
	k.all[path] = s
	for name, inner := range s.Properties {
		k.add(path+"."+name, inner)
	}
}

// table writes the keys of an object in the order of names, or all of them.
// Objects with the same keys may share a table: file.socket,file.control.
func (k *configKeys) table(words []string) string {
	places, names := strings.Split(words[0], ","), words[1:]
	object := k.all[places[0]]
	require.NotNil(k.t, object, "there is no %s in the config", places[0])
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(object.Properties))
	}
	b := table("key", "value", "default", "meaning")
	for _, name := range names {
		s := object.Properties[name]
		require.NotNil(k.t, s, "there is no %s in %s", name, places[0])
		for _, place := range places {
			require.Equal(k.t, s, k.all[place+"."+name], "%s.%s", place, name)
			k.shown[place+"."+name] = true
		}
		row(b, "`"+name+"`", s.value(), s.fallback(slices.Contains(object.Required, name)), strings.ReplaceAll(s.Description, "|", "\\|"))
	}
	return b.String()
}

// missing are the keys that no table has shown.
func (k *configKeys) missing() (names []string) {
	for path := range k.all {
		if strings.Contains(path, ".") && !k.shown[path] {
			names = append(names, path)
		}
	}
	slices.Sort(names)
	return names
}

// value says in few words what may stand there.
func (s *schema) value() string {
	switch kind := fmt.Sprint(s.Type); {
	case s.Enum != nil:
		return code(s.Enum)
	case s.Minimum != nil:
		text := fmt.Sprintf("%.0f to %.0f", *s.Minimum, *s.Maximum)
		if strings.Contains(kind, "null") {
			text += ", or `null`"
		}
		return text
	case kind == "array" && s.Items.Minimum != nil:
		return "list of numbers"
	case kind == "array":
		return "list of strings"
	case kind == "boolean":
		return "`true`, `false`"
	case s.Type == nil:
		return "any"
	default:
		return kind
	}
}

func (s *schema) fallback(required bool) string {
	switch {
	case required:
		return "required"
	case s.Default == nil:
		return "–"
	}
	text, err := json.Marshal(s.Default)
	if err != nil {
		return err.Error()
	}
	return "`" + string(text) + "`"
}
