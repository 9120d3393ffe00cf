package condition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/file"

	"github.com/hookd/hookd/protocol"
)

// Error says what is wrong in a condition's text, and where: both Line and
// Column start at 1, and columns count characters.
type Error struct {
	Line, Column int
	Message      string
}

// Error returns the place and the message.
func (e *Error) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("column %d: %s", e.Column, e.Message)
}

// errorAt makes an error of a place, counted in characters from 0.
func errorAt(text string, at int, format string, args ...any) *Error {
	e := &Error{Line: 1, Column: 1, Message: fmt.Sprintf(format, args...)}
	for _, c := range text {
		if at--; at < 0 {
			break
		}
		if e.Column++; c == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	return e
}

// plainTypes puts our words for types in the place of Go's.
func plainTypes(message string) string {
	return strings.NewReplacer(
		"interface {}", "any", "map[string]any", "map", "map[string]interface {}", "map",
		"*condition.shellFacts", "shell", "condition.shellFacts", "shell", "condition.commandFacts", "command", "[]", "list of ",
	).Replace(message)
}

// noField reads the library's error about a field that a type does not have.
func noField(message string) (typ, field string, ok bool) {
	typ, field, ok = strings.Cut(strings.Replace(message, " has no method ", " has no field ", 1), " has no field ")
	typ, isType := strings.CutPrefix(typ, "type ")
	return typ, field, ok && isType
}

// expressionError turns an error of the library into ours.
func expressionError(text string, err error) *Error {
	var at *file.Error
	if !errors.As(err, &at) {
		message := plainTypes(err.Error())
		if got, ok := strings.CutPrefix(message, "expected bool, but got "); ok {
			message = fmt.Sprintf("the condition is no yes or no but of type %s: compare it with something", got)
			if got == "any" || got == "unknown" {
				message = "what an argument is can't be known before: compare it, as in args.force == true"
			}
		}
		return &Error{1, 1, message}
	}
	message := at.Message
	if message == "invalid char escape" {
		message = `a backslash in quotes is written twice: "\\s"; or put the text in backquotes`
	}
	if typ, field, ok := noField(message); ok {
		switch {
		case strings.Contains(typ, "commandFacts"):
			message = fmt.Sprintf("%s has no field %q%s", typ, field, protocol.DidYouMean(field, commandFields()))
		case strings.Contains(typ, "shellFacts"):
			message = fmt.Sprintf("%s has no field %q%s", typ, field, protocol.DidYouMean(field, shellFields()))
		default:
			message = fmt.Sprintf("a value of type %s has no field %q", typ, field)
		}
	}
	return errorAt(text, at.From, "%s", plainTypes(message))
}

// unknownName is the error about a name that is no field and no function.
func unknownName(text string, at int, name string) *Error {
	known := slices.Concat(fieldNames(), functionNames())
	hint := protocol.DidYouMean(name, known)
	if hint == "" {
		hint = "; there are " + strings.Join(fieldNames(), ", ")
	}
	return errorAt(text, at, "unknown name %q%s", name, hint)
}
