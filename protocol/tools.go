package protocol

import (
	"slices"
	"strings"
)

// ToolKind says what a tool does, whatever an agent calls it. The zero value
// is not a kind; a tool that nobody knows is of [ToolOther].
type ToolKind string

// The kinds. Listing and searching files is reading them.
const (
	ToolShell     ToolKind = "shell"
	ToolFileRead  ToolKind = "file_read"
	ToolFileWrite ToolKind = "file_write"
	ToolFileEdit  ToolKind = "file_edit"
	ToolWeb       ToolKind = "web"
	ToolMCP       ToolKind = "mcp"
	ToolAgent     ToolKind = "agent"
	ToolOther     ToolKind = "other"
)

// ToolKinds returns the kinds.
func ToolKinds() []ToolKind {
	return []ToolKind{ToolShell, ToolFileRead, ToolFileWrite, ToolFileEdit, ToolWeb, ToolMCP, ToolAgent, ToolOther}
}

// toolRow is one tool under all its names. Everything that is known about
// tools stands in such rows ([toolTable]) and in [factTable].
type toolRow struct {
	// name is what Claude Code calls the tool. Where claude is false Claude Code
	// has no such tool, and this is just the commonest name.
	name   string
	claude bool
	kind   ToolKind
	// names are the other names of the tool. A name stands in names once only,
	// so it has one kind.
	names []string
	// also are tools of other rows that can do the same among other things: a
	// rule about this tool means them too.
	also []string
	// shapes are the ways in which agents name the arguments. The first is
	// Claude Code's; in the others each stands at the same place, "" where that
	// agent has no such argument. A dot leads into an object.
	shapes [][]string
}

// toolNamed returns the row that holds name as its own, or nil.
func toolNamed(name string) *toolRow {
	for i := range toolTable {
		if row := &toolTable[i]; row.name == name || slices.Contains(row.names, name) {
			return row
		}
	}
	return nil
}

// covers reports whether a rule about the row's tool means name.
func (r *toolRow) covers(name string) bool {
	return r.name == name || slices.Contains(r.names, name) || slices.Contains(r.also, name)
}

// ToolKindOf returns the kind of a tool by its name alone. Where the arguments
// are known, [ReadToolFacts] can say more: one editor tool may view and write.
func ToolKindOf(name string) ToolKind {
	if row := toolNamed(name); row != nil {
		return row.kind
	}
	if _, _, ok := splitMCP(name); ok {
		return ToolMCP
	}
	return ToolOther
}

// ToolAliases returns the other names under which agents know the same tool,
// Claude Code's first, or nil when there is none. A tool of an MCP server has
// them only when its name says where the server's name ends.
func ToolAliases(name string) []string {
	var list []string
	add := func(names ...string) {
		for _, n := range names {
			if n != name && !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
	}
	for i := range toolTable {
		if row := &toolTable[i]; row.covers(name) {
			add(row.name)
			add(row.names...)
			add(row.also...)
		}
	}
	if list != nil {
		return list
	}
	if strings.HasPrefix(name, mcpClaude) || strings.HasPrefix(name, mcpKiro) {
		if server, tool, ok := splitMCP(name); ok && tool != "" {
			add(mcpClaude+server+"__"+tool, mcpGemini+server+"_"+tool, mcpKiro+server+"/"+tool)
		}
	}
	return list
}

// SameTool reports whether two names are names of one tool: they are equal, or
// stand in one row of aliases, or name one tool of one MCP server. It is not
// transitive: apply_patch is an Edit and a Write, but an Edit is not a Write.
func SameTool(a, b string) bool {
	if a == b {
		return true
	}
	known := false
	for i := range toolTable {
		row := &toolTable[i]
		hasA, hasB := row.covers(a), row.covers(b)
		if hasA && hasB {
			return true
		}
		known = known || hasA || hasB
	}
	if known {
		return false
	}
	x, okX := joinMCP(a)
	y, okY := joinMCP(b)
	return okX && okY && x == y
}

// The ways in which agents write the name of an MCP server's tool.
const (
	mcpClaude = "mcp__" // mcp__server__tool
	mcpGemini = "mcp_"  // mcp_server_tool: where the server ends is a guess
	mcpCursor = "MCP:"  // MCP:tool: the server is not said
	mcpKiro   = "@"     // @server/tool
)

// splitMCP reads the name of an MCP server's tool.
func splitMCP(name string) (server, tool string, ok bool) {
	sep := ""
	switch {
	case strings.HasPrefix(name, mcpClaude):
		name, sep = name[len(mcpClaude):], "__"
	case strings.HasPrefix(name, mcpGemini):
		name, sep = name[len(mcpGemini):], "_"
	case strings.HasPrefix(name, mcpCursor):
		return "", name[len(mcpCursor):], true
	case strings.HasPrefix(name, mcpKiro):
		name, sep = name[len(mcpKiro):], "/"
	case strings.Contains(strings.Trim(name, "_"), "__"):
		sep = "__" // extension__tool, as goose names what its extensions offer
	default:
		return "", "", false
	}
	server, tool, _ = strings.Cut(name, sep)
	return server, tool, server != ""
}

// joinMCP returns the one form in which names of an MCP server's tool can be
// compared, whichever way they are written.
func joinMCP(name string) (string, bool) {
	if strings.HasPrefix(name, mcpGemini) && !strings.HasPrefix(name, mcpClaude) {
		return name, len(name) > len(mcpGemini)
	}
	if !strings.HasPrefix(name, mcpClaude) && !strings.HasPrefix(name, mcpKiro) {
		return "", false
	}
	server, tool, ok := splitMCP(name)
	return mcpGemini + server + "_" + tool, ok && tool != ""
}
