package native

import (
	"github.com/hookd/hookd/protocol"
)

// ExitBlock is the exit code by which agents that read one are told no.
const ExitBlock = 2

// JSON makes an answer of one object.
func JSON(o protocol.Object) Answer { return Answer{Stdout: o.AppendJSON(nil)} }

// Blocked makes an answer of an exit code and a text for the model.
func Blocked(reason string) Answer { return Answer{Stderr: []byte(reason), ExitCode: ExitBlock} }

// Say adds a text to an object.
func Say(o protocol.Object, name, text string) protocol.Object {
	return append(o, protocol.Member{Name: name, Value: protocol.Quote(text)})
}

// SayIf adds a text to an object unless it is empty.
func SayIf(o protocol.Object, name, text string) protocol.Object {
	if text == "" {
		return o
	}
	return Say(o, name, text)
}

// RenderExit is a Render for agents that read the exit code, and a text from
// stderr, and nothing else.
func RenderExit(_ *Call, p *Plan) Answer {
	switch {
	case p.Verdict >= Deny:
		return Blocked(p.Reason)
	case p.Message != "":
		return Blocked(p.Message)
	}
	return Answer{}
}
