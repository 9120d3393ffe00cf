package native

import (
	"fmt"

	"github.com/hookd/hookd/protocol"
)

// Fallback says what is done about a part of hookd's answer for which an agent
// has no native form. The zero value is the default of the table ([Gaps]).
type Fallback string

// The fallbacks.
const (
	// FallbackDeny refuses what is asked about.
	FallbackDeny Fallback = "deny"
	// FallbackContext tells the model in words, where it can be told.
	FallbackContext Fallback = "context"
	// FallbackWithhold puts the reason in the place of a text, where the agent
	// takes a changed one, else it is as FallbackContext.
	FallbackWithhold Fallback = "withhold"
	// FallbackAbortTurn ends the turn only.
	FallbackAbortTurn Fallback = "abort_turn"
	// FallbackSilent leaves that part out. The agent goes on by its own rules.
	FallbackSilent Fallback = "silent"
)

// Policy says how answers are translated where there is a choice. The zero
// value is the declared default. Whatever is chosen, the answer's warnings say
// what was done.
type Policy struct {
	// Ask is for an ask where the agent has no prompt that a hook could call up:
	// [FallbackDeny] by default, or [FallbackSilent], which leaves it to the
	// agent's own permissions.
	Ask Fallback
	// Modify is for a changed tool call that the agent can't take:
	// [FallbackDeny] by default, or [FallbackSilent], which runs the call
	// unchanged.
	Modify Fallback
	// KeepPrompt leaves the agent's own prompt in place for a call whose arguments
	// hooks have changed, where the agent allows that. Without it a changed call
	// is also allowed.
	KeepPrompt bool
}

// ParseFallback reads a choice for [Policy.Ask] and [Policy.Modify]: deny or
// silent, or "" for the default.
func ParseFallback(word string) (Fallback, error) {
	switch f := Fallback(word); f {
	case "", FallbackDeny, FallbackSilent:
		return f, nil
	}
	return "", fmt.Errorf("unknown choice %q%s: deny or silent", word, protocol.DidYouMean(word, []string{"deny", "silent"}))
}

// Gap is one line of the declared policy.
type Gap struct {
	Stage protocol.Stage // "" = everywhere else
	// Part is the part of hookd's answer without a native form.
	Part string
	// Default is what is done unless a [Policy] says otherwise.
	Default Fallback
	// Note says in words what that means.
	Note string
}

// The parts of an answer that some agent has no form for.
const (
	partAsk     = "ask"
	partAllow   = "allow"
	partModify  = "modify"
	partRemove  = "modify by taking an argument out"
	partRename  = "another tool"
	partRespond = "respond"
	partDeny    = "deny"
	partAbort   = "abort_turn"
	partQuit    = "hard_abort"
	partContext = "add_context"
	partInject  = "inject"
	partNotify  = "warnings"
	partJump    = "jump_to"
)

var gaps = [...]Gap{
	{protocol.StageBeforeTool, partAsk, FallbackDeny, "the call is denied and the reason says that it needs approval"},
	{protocol.StageBeforeTool, partAllow, FallbackSilent, "the call goes on, and the agent may still ask its user"},
	{protocol.StageBeforeTool, partModify, FallbackDeny, "the call is denied rather than run unchanged"},
	{protocol.StageBeforeTool, partRemove, FallbackDeny, "the call is denied rather than run with the argument"},
	{protocol.StageBeforeTool, partRename, FallbackDeny, "no agent lets a hook call another tool"},
	{protocol.StageBeforeTool, partRespond, FallbackDeny, "the call is denied and the reason holds the answer"},
	{protocol.StageApproveTool, partDeny, FallbackSilent, "the agent's own prompt decides"},
	{protocol.StageBeforeAgent, partModify, FallbackDeny, "the agent is not started rather than with the unchanged request"},
	{protocol.StageBeforeLLM, partModify, FallbackDeny, "the model is not called rather than with the unchanged request"},
	{protocol.StageUserMessage, partModify, FallbackContext, "the model is told how to read the message; it sees the original too"},
	{protocol.StageAfterTool, partModify, FallbackContext, "the model is told what to read instead; it sees the original too"},
	{protocol.StageAfterTool, partAbort, FallbackWithhold, "the reason takes the place of the result where it can, else the model is told"},
	{protocol.StageOutput, partDeny, FallbackWithhold, "the reason takes the place of the text"},
	{protocol.StageOutput, partAbort, FallbackWithhold, "the reason takes the place of the text"},
	{protocol.StageStop, partAbort, FallbackSilent, "the agent is stopping anyway"},
	{"", partQuit, FallbackAbortTurn, "the turn ends, the agent does not"},
	{"", partRespond, FallbackDeny, "it is denied, and the reason holds the answer"},
	{"", partAbort, FallbackDeny, "what can be denied is denied, and the turn goes on"},
	{"", partDeny, FallbackSilent, "what is asked about happens all the same"},
	{"", partContext, FallbackSilent, "the model is not told, except beside a denial, in its reason"},
	{"", partInject, FallbackSilent, "the agent stops"},
	{"", partNotify, FallbackSilent, "the user is not told; it is logged"},
	{"", partJump, FallbackSilent, "the agent has no such steps"},
}

// Gaps returns the declared policy: what is done where an agent has no native
// form for a part of an answer.
func Gaps() []Gap { return append([]Gap(nil), gaps[:]...) }

// gap finds what to do about a part at a stage.
func (p Policy) gap(stage protocol.Stage, part string) Fallback {
	switch {
	case part == partAsk && p.Ask != "":
		return p.Ask
	case (part == partModify || part == partRemove) && stage == protocol.StageBeforeTool && p.Modify != "":
		return p.Modify
	}
	best := FallbackSilent
	for i := range gaps {
		if gaps[i].Part != part {
			continue
		}
		if gaps[i].Stage == stage {
			return gaps[i].Default
		}
		if gaps[i].Stage == "" {
			best = gaps[i].Default
		}
	}
	return best
}
