package condition

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/hookd/hookd/protocol"
)

// The limits of a pattern behind "matches".
const (
	maxPattern  = 512      // bytes
	maxProgram  = 2000     // steps that it compiles to
	maxMatching = 32 << 20 // steps times bytes of the texts
)

var errMatching = errors.New("a pattern is too long for a text as long as this")

// pattern is a regular expression with what it costs.
type pattern struct {
	re    *regexp.Regexp
	steps int
}

// names collects the variables of an expression, before the inspector.
type names struct{ in *inspector }

// Visit looks at one node.
func (n *names) Visit(node *ast.Node) {
	if v, ok := (*node).(*ast.VariableDeclaratorNode); ok {
		n.in.variables = append(n.in.variables, v.Name)
	}
}

// inspector looks at each node of an expression once: it notes which fields are
// used, finds what is wrong, and puts limits in.
type inspector struct {
	text      string
	variables []string
	used      []string
	args      []string // the arguments that are named
	argsWhole int      // how often args stands in the text
	patterns  []pattern
	err       *Error // the first in the text
	errAt     int
}

// fields returns the fields that are used, in the order of [fieldNames].
func (in *inspector) fields() []string {
	return slices.DeleteFunc(fieldNames(), func(name string) bool { return !slices.Contains(in.used, name) })
}

func (in *inspector) fail(at int, err *Error) {
	if in.err == nil || at < in.errAt {
		in.err, in.errAt = err, at
	}
}

// Visit looks at one node, after those in it.
func (in *inspector) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		in.identifier(n)
	case *ast.MemberNode:
		if id, ok := n.Node.(*ast.IdentifierNode); ok && id.Value == "args" {
			if name, ok := n.Property.(*ast.StringNode); ok {
				in.args = append(in.args, name.Value)
			}
		}
	case *ast.PredicateNode:
		n.Node = &ast.SequenceNode{Nodes: []ast.Node{call("_tick"), n.Node}}
	case *ast.BinaryNode:
		in.binary(node, n)
	}
}

func (in *inspector) identifier(n *ast.IdentifierNode) {
	switch {
	case slices.Contains(in.variables, n.Value):
	case slices.Contains(fieldNames(), n.Value):
		if in.used = append(in.used, n.Value); n.Value == "args" {
			in.argsWhole++
		}
	default:
		in.fail(n.Location().From, unknownName(in.text, n.Location().From, n.Value))
	}
}

func (in *inspector) binary(node *ast.Node, n *ast.BinaryNode) {
	switch n.Operator {
	case "matches":
		if i, ok := in.pattern(n.Right); ok {
			ast.Patch(node, call("_match", &ast.IntegerNode{Value: i}, n.Left))
		}
	case "+":
		if !isNumber(n.Left) || !isNumber(n.Right) {
			ast.Patch(node, call("_join", n.Left, n.Right))
		}
	case "==", "!=", "in":
		in.compared(n.Left, n.Right)
		in.compared(n.Right, n.Left)
		in.tool(node, n)
	}
}

// call makes a call of one of our functions.
func call(name string, args ...ast.Node) *ast.CallNode {
	return &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: name},
		Arguments: append([]ast.Node{&ast.IdentifierNode{Value: "_run"}}, args...),
	}
}

func isNumber(n ast.Node) bool {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return true
	}
	return false
}

// pattern compiles the pattern of matches. It must stand in the text, so that
// what it costs is known.
func (in *inspector) pattern(n ast.Node) (int, bool) {
	at := n.Location().From
	text, ok := n.(*ast.StringNode)
	if !ok {
		in.fail(at, errorAt(in.text, at, "the pattern of matches must be a text in quotes"))
		return 0, false
	}
	if len(text.Value) > maxPattern {
		in.fail(at, errorAt(in.text, at, "the pattern is longer than %d bytes", maxPattern))
		return 0, false
	}
	parsed, err := syntax.Parse(text.Value, syntax.Perl)
	if err != nil {
		in.fail(at, errorAt(in.text, at, "the pattern can't be read: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: ")))
		return 0, false
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		in.fail(at, errorAt(in.text, at, "the pattern is too large: repeat less"))
		return 0, false
	}
	re, err := regexp.Compile(text.Value)
	if err != nil {
		in.fail(at, errorAt(in.text, at, "the pattern can't be read: %v", err))
		return 0, false
	}
	in.patterns = append(in.patterns, pattern{re, len(program.Inst)})
	return len(in.patterns) - 1, true
}

// tool lets a comparison with names of tools mean them under any agent's name.
func (in *inspector) tool(node *ast.Node, n *ast.BinaryNode) {
	field, with := n.Left, n.Right
	if _, ok := with.(*ast.IdentifierNode); ok && n.Operator != "in" {
		field, with = with, field
	}
	if id, ok := field.(*ast.IdentifierNode); !ok || id.Value != "tool" {
		return
	}
	words := []ast.Node{with}
	if list, ok := with.(*ast.ArrayNode); ok && n.Operator == "in" {
		words = list.Nodes
	}
	for _, w := range words {
		if _, ok := w.(*ast.StringNode); !ok {
			return
		}
	}
	var same ast.Node = call("_same", words...)
	if n.Operator == "!=" {
		same = &ast.UnaryNode{Operator: "!", Node: same}
	}
	ast.Patch(node, same)
}

// compared finds words that a field can never be: a condition with one would
// never hold, and nobody would see it.
func (in *inspector) compared(field, with ast.Node) {
	id, ok := field.(*ast.IdentifierNode)
	if !ok {
		return
	}
	var known []string
	switch id.Value {
	case "kind":
		for _, k := range protocol.ToolKinds() {
			known = append(known, string(k))
		}
	case "stage":
		known = protocol.StageNames()
	default:
		return
	}
	words := []ast.Node{with}
	if list, ok := with.(*ast.ArrayNode); ok {
		words = list.Nodes
	}
	for _, w := range words {
		text, ok := w.(*ast.StringNode)
		if !ok || text.Value == "" || slices.Contains(known, text.Value) {
			continue
		}
		hint := protocol.DidYouMean(text.Value, known)
		if hint == "" {
			hint = ", one of " + strings.Join(known, ", ")
		}
		at := w.Location().From
		in.fail(at, errorAt(in.text, at, "there is no %s %q%s", id.Value, text.Value, hint))
	}
}
