package hookd_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/hookd/hookd/"

// rooms says which of our packages each folder may import, as ARCHITECTURE.md
// draws it. A folder that is not listed may import nothing of ours.
var rooms = map[string][]string{
	"protocol":      {},
	"hook":          {"protocol"},
	"hook/serve":    {"protocol", "hook", "rpc", "internal/lazycontext"},
	"hook/hooktest": {"protocol", "hook", "hook/serve"},
	"rpc":           {"protocol"},
	"manager":       {"hook", "protocol", "internal/lazycontext"},
	"child":         {},
	"dialect":       {"protocol"},
	"client":        {"protocol", "rpc"},

	// What is judged, and by whom.
	"condition":       {"protocol", "condition/shell"},
	"condition/shell": {},
	"config":          {"protocol", "hook", "condition"},
	"trust":           {},
	"commands":        {"protocol", "hook", "child", "condition", "trust"},
	"mount":           {"hook", "protocol", "rpc", "dialect", "child", "config"},
	"approval":        {"hook", "protocol", "builtin"},
	"record":          {"hook", "protocol", "manager"},

	// Coding agents, in their own words. thin imports nothing: it is what they
	// start for every event.
	"agent":             {"protocol", "agent/native", "agent/antigravity", "agent/claude", "agent/cline", "agent/copilot", "agent/crush", "agent/cursor", "agent/gemini", "agent/goose", "agent/grok", "agent/hermes", "agent/kiro", "agent/opencode", "agent/openhands", "agent/windsurf"},
	"agent/native":      {"protocol"},
	"agent/agenttest":   {"protocol", "agent/native"},
	"agent/antigravity": {"protocol", "agent/native"},
	"agent/claude":      {"protocol", "agent/native"},
	"agent/cline":       {"protocol", "agent/native"},
	"agent/copilot":     {"protocol", "agent/native", "agent/claude"},
	"agent/crush":       {"protocol", "agent/native"},
	"agent/cursor":      {"protocol", "agent/native"},
	"agent/gemini":      {"protocol", "agent/native"},
	"agent/goose":       {"protocol", "agent/native"},
	"agent/grok":        {"protocol", "agent/native"},
	"agent/hermes":      {"protocol", "agent/native"},
	"agent/kiro":        {"protocol", "agent/native"},
	"agent/opencode":    {"protocol", "agent/native"},
	"agent/openhands":   {"protocol", "agent/native"},
	"agent/windsurf":    {"protocol", "agent/native"},
	"thin":              {},
	"install":           {"protocol", "agent", "agent/native"},
	"mcp":               {"protocol", "client"},

	// Hooks that ship, each in a room of its own.
	"builtin":              {"hook", "protocol"},
	"builtin/cancel":       {"builtin", "hook", "protocol"},
	"builtin/text":         {"builtin", "protocol"},
	"builtin/text/corpus":  {"builtin/text"},
	"builtin/secrets":      {"builtin", "builtin/text", "hook", "protocol"},
	"builtin/pii":          {"builtin", "builtin/secrets", "builtin/text", "hook", "protocol"},
	"builtin/inputguard":   {"builtin", "builtin/text", "hook", "protocol"},
	"builtin/sessions":     {"protocol"},
	"builtin/conversation": {"protocol", "builtin/text"},
	"builtin/policy":       {"hook", "protocol", "builtin", "condition"},
	"builtin/loop":         {"hook", "protocol", "builtin", "builtin/sessions"},
	"builtin/budget":       {"hook", "protocol", "builtin", "builtin/text", "builtin/sessions"},
	"builtin/instructions": {"hook", "protocol", "builtin", "builtin/text", "builtin/conversation", "builtin/sessions", "condition"},
	"builtin/skills":       {"hook", "protocol", "builtin", "builtin/sessions"},
	"builtin/messages":     {"hook", "protocol", "builtin", "builtin/text", "builtin/conversation"},
	"builtin/summarize":    {"hook", "protocol", "builtin", "builtin/text", "builtin/conversation", "builtin/sessions"},
	"builtin/metrics":      {"hook", "protocol", "manager", "builtin", "builtin/cancel", "builtin/sessions"},
	"builtin/telemetry":    {"hook", "protocol", "builtin", "builtin/text", "manager"},

	"daemon": {
		"protocol", "hook", "rpc", "dialect", "manager", "child", "config", "condition", "trust", "commands", "mount", "builtin", "client", "agent", "approval", "record",
		"builtin/cancel", "builtin/text", "builtin/secrets", "builtin/pii", "builtin/inputguard", "builtin/policy", "builtin/loop", "builtin/budget",
		"builtin/instructions", "builtin/skills", "builtin/messages", "builtin/summarize", "builtin/metrics", "builtin/telemetry",
	},
	"console": {"protocol", "client", "approval"},
	"cmd/hookd/cli": {
		"protocol", "hook", "rpc", "dialect", "manager", "child", "config", "condition", "trust", "commands", "mount", "builtin", "client", "agent", "approval", "record", "console", "builtin/cancel",
		"install", "mcp", "thin", "daemon", "bench", "conform", "cmd/hookd/demo",
	},
	"cmd/hookd":            {"cmd/hookd/cli"},
	"cmd/hookd-hook":       {"thin"},
	"cmd/hookd/demo":       {"protocol", "hook", "child", "mount", "client", "daemon", "examples/hooks"},
	"conform":              {"protocol", "rpc", "child"},
	"bench":                {"protocol", "hook", "hook/serve", "child", "mount", "daemon", "thin"},
	"bench/profile":        {"bench", "child"},
	"packaging/man":        {"cmd/hookd/cli"},
	"docs/img":             {},
	"internal/lazycontext": {},
	// Programs and checks for tests.
	"internal/fault":      {"protocol"},
	"internal/faultagent": {"protocol", "internal/fault"},
	"internal/faulthook":  {"protocol", "internal/fault"},
	"internal/gobuild":    {"child"},
	"internal/invariant":  {"protocol", "daemon"},
	"internal/soak":       {"internal/fault", "record", "protocol", "client", "daemon", "rpc", "child", "hook", "internal/faulthook", "internal/invariant", "internal/gobuild"},
	// Examples show what people outside may use.
	"examples/agent":       {"protocol", "client"},
	"examples/hooks":       {}, // the scripts, embedded for the demo
	"examples/custom":      {"protocol", "hook", "mount", "cmd/hookd/cli"},
	"examples/hooks/guard": {"protocol", "hook", "hook/serve"},
}

// only says which single folder may import a package that is nobody else's.
var only = map[string]string{
	"os/exec":                          "child",
	"github.com/sourcegraph/jsonrpc2":  "rpc",
	"github.com/fsnotify/fsnotify":     "config",
	"github.com/gofrs/flock":           "rpc",
	"github.com/evanphx/json-patch/v5": "manager",
	"github.com/spf13/cobra":           "cmd/hookd/cli",
	"github.com/spf13/cobra/doc":       "packaging/man",

	"modernc.org/sqlite":                                        "record",
	"github.com/landlock-lsm/go-landlock/landlock":              "child",
	"github.com/landlock-lsm/go-landlock/landlock/syscall":      "child",
	"github.com/expr-lang/expr":                                 "condition",
	"github.com/tiktoken-go/tokenizer/codec":                    "builtin/conversation",
	"github.com/prometheus/client_golang/prometheus":            "builtin/metrics",
	"github.com/prometheus/client_golang/prometheus/collectors": "builtin/metrics",
	"github.com/prometheus/client_golang/prometheus/promhttp":   "builtin/metrics",
	"github.com/prometheus/common/expfmt":                       "builtin/metrics",
	"go.opentelemetry.io/otel/attribute":                        "builtin/telemetry",
	"go.opentelemetry.io/otel/codes":                            "builtin/telemetry",
	"go.opentelemetry.io/otel/propagation":                      "builtin/telemetry",
	"go.opentelemetry.io/otel/trace":                            "builtin/telemetry",
	"go.opentelemetry.io/otel/sdk/resource":                     "builtin/telemetry",
	"go.opentelemetry.io/otel/sdk/trace":                        "builtin/telemetry",
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace":         "builtin/telemetry",
	"go.opentelemetry.io/proto/otlp/trace/v1":                   "builtin/telemetry",
	"google.golang.org/protobuf/proto":                          "builtin/telemetry",
	"github.com/coreos/go-systemd/v22/daemon":                   "daemon",
	"github.com/coreos/go-systemd/v22/activation":               "daemon",
}

// pure folders must stay free of the outside world.
var pure = map[string][]string{
	"protocol": {"net", "os", "os/exec", "io/fs"},
	"dialect":  {"net", "os", "os/exec", "io/fs"},
	"hook":     {"net", "os", "os/exec", "io/fs"},
	"manager":  {"net", "os", "os/exec", "io/fs", "syscall"},
}

// TestHouse holds the walls between the rooms: who may import whom.
func TestHouse(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") && path != ".") {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); e.IsDir() && path != "." && err == nil {
			return filepath.SkipDir // a module of its own
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		seen[dir] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			checkImport(t, path, dir, name)
		}
		return nil
	})
	require.NoError(t, err)
	for dir := range rooms {
		require.True(t, seen[dir], "the room %s is in the table and not in the tree", dir)
	}
}

func checkImport(t *testing.T, path, dir, name string) {
	if ours, ok := strings.CutPrefix(name, module); ok {
		allowed, known := rooms[dir]
		if !known {
			t.Errorf("%s: %s is no room of the house: add it to the table and to ARCHITECTURE.md", path, dir)
		} else if !slices.Contains(allowed, ours) {
			t.Errorf("%s: %s may not import %s", path, dir, ours)
		}
	}
	if room, ok := only[name]; ok && dir != room && !strings.HasPrefix(dir, "examples/") {
		t.Errorf("%s: only %s imports %s", path, room, name)
	}
	if slices.Contains(pure[dir], name) {
		t.Errorf("%s: %s stays free of %s", path, dir, name)
	}
}
