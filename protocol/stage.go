package protocol

import (
	"slices"
	"strings"
	"time"
)

// Stage is a step of an agent's loop at which hookd is asked. Its method on
// the wire is "hook." + stage.
type Stage string

// The twelve stages.
const (
	StageUserMessage        Stage = "user_message"
	StageBeforeAgent        Stage = "before_agent"
	StageSystemPrompt       Stage = "system_prompt"
	StageInjectInstructions Stage = "inject_instructions"
	StageBeforeLLM          Stage = "before_llm"
	StageAfterLLM           Stage = "after_llm"
	StageBeforeTool         Stage = "before_tool"
	StageApproveTool        Stage = "approve_tool"
	StageAfterTool          Stage = "after_tool"
	StageBeforeCompact      Stage = "before_compact"
	StageStop               Stage = "stop"
	StageOutput             Stage = "output"
)

// MethodPrefix stands before a stage's name in a method.
const MethodPrefix = "hook."

// StageInfo is one row of the table of stages. Everything that differs between
// stages stands here; the code that runs them is the same.
type StageInfo struct {
	Name Stage
	// Subject names the params that hooks judge and may change.
	Subject []string
	// Required names the subject params a request can't do without.
	Required []string
	// Fixed names params that belong to the subject but can't be changed.
	Fixed []string
	// Result is the member of a decision that changes the subject; "" = none.
	Result string
	// Respond is the member of a decision that replaces what would have run.
	Respond string
	// Verbs are the actions allowed beyond continue, abort_turn and hard_abort.
	Verbs []Action
	// Timeout is how long one hook may take when nothing else is set.
	Timeout time.Duration
	// OnFailure is what a failure that must not pass turns into: deny,
	// abort_turn where there is no deny, continue where there is neither.
	OnFailure Action
	// Event is the kind of event that a call of this stage implies.
	Event EventKind

	members []string // what a decision may hold; see decisionMembers
}

// Wrapped reports whether the subject is a single param which bears the same
// name as the result, such as "message". A result is then merged into that
// object, otherwise into the params themselves.
func (s *StageInfo) Wrapped() bool { return len(s.Subject) == 1 && s.Subject[0] == s.Result }

// Allows reports whether a is a legal verb at this stage.
func (s *StageInfo) Allows(a Action) bool {
	switch a {
	case ActionContinue, ActionAbortTurn, ActionHardAbort:
		return true
	}
	return slices.Contains(s.Verbs, a)
}

// Tool reports whether the subject is a tool call, so that a match on tool
// names means something.
func (s *StageInfo) Tool() bool {
	switch s.Name {
	case StageBeforeTool, StageApproveTool, StageAfterTool:
		return true
	}
	return false
}

// Method returns the stage's method on the wire.
func (s *StageInfo) Method() string { return MethodPrefix + string(s.Name) }

// Stages returns the table, in the order in which the stages of a run happen.
// The caller may keep and change it.
func Stages() []StageInfo {
	const interceptor, approval = 5 * time.Second, 60 * time.Second
	rows := []StageInfo{
		{
			Name: StageUserMessage, Subject: []string{"message"}, Required: []string{"message"}, Result: "message",
			Verbs: []Action{ActionModify, ActionDeny}, Timeout: interceptor, OnFailure: ActionDeny, Event: EventTurnStart,
		},
		{
			Name: StageBeforeAgent, Subject: []string{"request"}, Required: []string{"request"}, Result: "request", Respond: "response",
			Verbs: []Action{ActionModify, ActionRespond, ActionDeny}, Timeout: interceptor, OnFailure: ActionDeny, Event: EventAgentStart,
		},
		{
			Name: StageSystemPrompt, Subject: []string{"prompt"}, Required: []string{"prompt"}, Result: "prompt",
			Verbs: []Action{ActionModify}, Timeout: interceptor, OnFailure: ActionAbortTurn,
		},
		{
			Name: StageInjectInstructions, Subject: []string{"request"},
			Timeout: interceptor, OnFailure: ActionContinue,
		},
		{
			Name: StageBeforeLLM, Subject: []string{"model", "messages", "tools", "options"}, Required: []string{"messages"}, Result: "request", Respond: "response",
			Verbs: []Action{ActionModify, ActionRespond, ActionDeny}, Timeout: interceptor, OnFailure: ActionDeny, Event: EventLLMRequest,
		},
		{
			Name: StageAfterLLM, Subject: []string{"response"}, Required: []string{"response"}, Result: "response",
			Verbs: []Action{ActionModify}, Timeout: interceptor, OnFailure: ActionAbortTurn, Event: EventLLMResponse,
		},
		{
			Name: StageBeforeTool, Subject: []string{"tool", "arguments", "read_only"}, Required: []string{"tool", "arguments"}, Result: "call", Respond: "result",
			Verbs:   []Action{ActionModify, ActionRespond, ActionAsk, ActionAllow, ActionDeny},
			Timeout: interceptor, OnFailure: ActionDeny, Event: EventToolExecStart,
		},
		{
			Name: StageApproveTool, Subject: []string{"tool", "arguments"}, Required: []string{"tool", "arguments"},
			Timeout: approval, OnFailure: ActionDeny,
		},
		{
			Name: StageAfterTool, Subject: []string{"result"}, Required: []string{"result"}, Fixed: []string{"tool", "arguments", "duration_ms"}, Result: "result",
			Verbs: []Action{ActionModify}, Timeout: interceptor, OnFailure: ActionAbortTurn, Event: EventToolExecEnd,
		},
		{
			Name: StageBeforeCompact, Subject: []string{"request"},
			Verbs: []Action{ActionDeny}, Timeout: interceptor, OnFailure: ActionContinue, Event: EventBeforeCompact,
		},
		{
			Name: StageStop, Subject: []string{"request"},
			Verbs: []Action{ActionInject}, Timeout: interceptor, OnFailure: ActionContinue, Event: EventTurnEnd,
		},
		{
			Name: StageOutput, Subject: []string{"output"}, Required: []string{"output"}, Result: "output",
			Verbs: []Action{ActionModify, ActionDeny}, Timeout: interceptor, OnFailure: ActionDeny,
		},
	}
	for i := range rows {
		rows[i].members = decisionMembers(&rows[i])
	}
	return rows
}

// StageTable finds rows by name. The zero value knows no stage; make one with
// [NewStageTable] and share it.
type StageTable struct{ rows map[Stage]*StageInfo }

// NewStageTable returns a table of all [Stages].
func NewStageTable() *StageTable {
	rows := Stages()
	t := &StageTable{rows: make(map[Stage]*StageInfo, len(rows))}
	for i := range rows {
		t.rows[rows[i].Name] = &rows[i]
	}
	return t
}

// Stage returns the row of a stage, or nil.
func (t *StageTable) Stage(name Stage) *StageInfo { return t.rows[name] }

// Method returns the row of a method such as "hook.before_tool", or nil.
func (t *StageTable) Method(method string) *StageInfo {
	name, ok := strings.CutPrefix(method, MethodPrefix)
	if !ok {
		return nil
	}
	return t.Stage(Stage(name))
}

// StageNames returns the names of all stages, in order.
func StageNames() []string {
	var names []string
	for _, s := range Stages() {
		names = append(names, string(s.Name))
	}
	return names
}
