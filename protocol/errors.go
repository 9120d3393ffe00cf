package protocol

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Error codes of JSON-RPC, of LSP (cancelled) and of hookd itself. A deny is
// a result, never an error; an agent reads every error as "not allowed".
const (
	CodeParse           = -32700 // the line is not JSON that can be trusted
	CodeInvalidRequest  = -32600 // not a JSON-RPC request: batch, bad id, id already in flight
	CodeMethodNotFound  = -32601
	CodeInvalidParams   = -32602 // data.path names the field
	CodeInternal        = -32603
	CodeCancelled       = -32800
	CodeMessageTooLarge = -32001
	CodeOverloaded      = -32002
	CodeShuttingDown    = -32003
	CodeUnauthorized    = -32004
	CodeVersionMismatch = -32005
)

// Error is a JSON-RPC error object. It is what a peer may be told: it carries
// no file paths, no environment and no stack.
type Error struct {
	// Code is one of the Code constants.
	Code int
	// Message says in one line what is wrong and, where it helps, what to do.
	Message string
	// Data is an optional JSON value for programs; nil is left out.
	Data jsontext.Value
}

// Error returns the message with its code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Is reports whether target is an [Error] with the same code, so that
// errors.Is(err, &Error{Code: CodeCancelled}) works on both sides of a wire.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Errorf makes an [Error] with a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// InvalidParams makes a [CodeInvalidParams] error whose data.path names the
// field, such as "arguments" or "meta.iteration".
func InvalidParams(path, format string, args ...any) *Error {
	e := Errorf(CodeInvalidParams, format, args...)
	if path != "" {
		e.Message = path + ": " + e.Message
		e.Data = append(AppendString([]byte(`{"path":`), path), '}')
	}
	return e
}
