package protocol

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A JSON Schema says what a value may be. What is wrong with the text itself, a
// name twice or nesting too deeply, only a strict reader sees. Where both can
// see it, schema and decoder agree.

// RequestSchema returns the JSON Schema (draft 2020-12) of what agents and
// hookd ask: "$defs" holds the params of every stage under the stage's name.
func RequestSchema() []byte {
	return schemaDocument("request", "Params of the stages",
		"The params of the method hook.STAGE stand under #/$defs/STAGE. Params that are not named there are kept and passed on.",
		node{"meta": metaSchema()}, paramsSchema)
}

// AnswerSchema returns the JSON Schema of what hooks answer: a decision for
// every stage under its name, and the approval for approve_tool.
func AnswerSchema() []byte {
	return schemaDocument("answer", "Answers of a hook",
		"The result of the method hook.STAGE, as a hook gives it, stands under #/$defs/STAGE. Members that are not named there make an answer unreadable, which denies.",
		node{"message": messageSchema()}, decisionSchema)
}

// ResultSchema returns the JSON Schema of what hookd answers an agent, for
// every stage under its name.
func ResultSchema() []byte {
	failed := slices.DeleteFunc(Outcomes(), func(o Outcome) bool { return !o.Failed() })
	return schemaDocument("result", "Answers of hookd",
		"The result of the method hook.STAGE, as hookd gives it, stands under #/$defs/STAGE. Later versions may add members.",
		node{
			"message":  messageSchema(),
			"approval": objectOf("What became of the approval.", approvalMembers(), "approved"),
			"degraded": objectOf("A hook that failed and was passed over.", node{
				"hook":    of("string", "Its name."),
				"outcome": node{"description": "What became of its turn.", "enum": failed},
				"detail":  of("string", "What happened."),
			}, "hook", "outcome"),
			"step": objectOf("One hook's turn.", node{
				"hook":        of("string", "Its name."),
				"outcome":     node{"description": "What became of it.", "enum": Outcomes()},
				"action":      of("string", "The verb that it said."),
				"duration_us": of("integer", "How long it took, in microseconds."),
				"changed":     of("array", "The members of the subject that it changed.", node{"items": node{"type": "string"}}),
				"recheck":     of("boolean", "It was asked once more, on the final subject."),
				"detail":      of("string", "More about a failure."),
			}, "hook", "outcome", "duration_us"),
		}, resultSchema)
}

// node is a part of a JSON Schema.
type node map[string]any

// schemaDocument adds one definition per stage to defs.
func schemaDocument(name, title, about string, defs node, stage func(*StageInfo) node) []byte {
	for _, s := range Stages() {
		defs[string(s.Name)] = stage(&s)
	}
	doc := node{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     schemaURL(name),
		"title":   title, "description": about, "$defs": defs,
	}
	v, _ := Marshal(doc) // maps, lists and texts: neither call can fail
	_ = v.Indent(jsontext.WithIndent("  "))
	return append(v, '\n')
}

func paramsSchema(s *StageInfo) node {
	members := commonSchemas()
	for _, name := range slices.Concat(s.Subject, s.Fixed) {
		members[name] = paramSchema(s, name)
		if !slices.Contains(s.Required, name) {
			nullable(members[name])
		}
	}
	about := "Asked at " + string(s.Name) + "."
	if s.Result != "" {
		about += fmt.Sprintf(" A hook changes it with %q.", s.Result)
	}
	return objectOf(about, members, s.Required...)
}

// commonSchemas describes the params beside the subject.
func commonSchemas() node {
	members := node{
		"context":     of("object", "A free object of the agent's. Hooks can't change it."),
		"call_id":     of("string", "Joins the stages of one tool or model call."),
		"state":       of("object", "What earlier hooks of this call have left."),
		"deadline_ms": of("integer", "How long the answer is waited for, in milliseconds.", node{"minimum": 1}),
		"dry_run":     of("boolean", "Judge without side effects."),
		"approve":     of("boolean", "At before_tool: run the approvers that are due in the same round trip. Read by hookd, not passed on."),
		"asked":       of("boolean", "At approve_tool: whether a hook asked for this approval. Read by hookd, not passed on."),
		"trail":       of("boolean", "Put every hook's turn into the answer. Read by hookd, not passed on."),
	}
	nullable(slices.Collect(maps.Values(members))...)
	members["meta"] = ref("meta")
	return members
}

func metaSchema() node {
	members := node{"iteration": of("integer", "The number of the round in this turn.")}
	for name, about := range map[string]string{
		"agent_id": "The agent's own id.", "session_id": "The conversation.", "turn_id": "One user message and all that follows from it.",
		"parent_turn_id": "The turn that started this one, for a sub-agent.", "task_id": "The task that the turn works on.",
		"user_id": "The person who is served.", "node_id": "The machine or graph node.", "agent": "The agent's name; hookd sets it from the greeting.",
		"model": "The model in use.", "cwd": "The working directory.", "trace_id": "Joins this with traces elsewhere.",
	} {
		members[name] = of("string", about)
	}
	nullable(slices.Collect(maps.Values(members))...)
	members["native"] = node{"description": "The agent's own form of the step."}
	meta := objectOf("Where the step belongs. Hooks can't change it.", members)
	nullable(meta)
	return meta
}

// paramSchema describes a subject or fixed param by the kind that the decoder
// wants.
func paramSchema(s *StageInfo, name string) node {
	about := map[string]string{
		"message":     "The user's message: {role, content}.",
		"prompt":      "The system prompt: {content}.",
		"output":      "What the user is about to see: {content}.",
		"response":    "The model's answer: {content, tool_calls, usage, …}.",
		"result":      "What the tool gave back: {content, is_error, …}.",
		"tool":        "The tool's name.",
		"arguments":   "The tool's arguments.",
		"read_only":   "The tool changes nothing, as far as the agent knows.",
		"duration_ms": "How long the tool ran, in milliseconds.",
		"model":       "The model's name.",
		"messages":    "The messages to the model.",
		"tools":       "The tools that the model may call.",
		"options":     "Options of the model, such as max_tokens.",
		"request": map[Stage]string{
			StageBeforeAgent:        "The agent's run: {input, …}.",
			StageInjectInstructions: "The round that is about to begin.",
			StageBeforeCompact:      "The compaction that is due: {trigger, tokens, …}.",
			StageStop:               "The end of the turn: {reason, last_message, …}.",
		}[s.Name],
	}[name]
	switch kind := paramKind(name); {
	case name == "tool":
		return of("string", about, node{"minLength": 1})
	case kind == '"':
		return of("string", about)
	case kind == '[':
		return of("array", about)
	case kind == 't':
		return of("boolean", about)
	case kind == '0':
		return of("number", about)
	case s.Wrapped() && name == s.Result:
		return wrappedSchema(about)
	}
	return of("object", about)
}

// wrappedSchema describes a subject that is one object.
func wrappedSchema(about string) node {
	content := contentSchema()
	nullable(content)
	return objectOf(about, node{"content": content})
}

func contentSchema() node {
	return node{"description": "Text, or an array of blocks {type, text, …}.", "type": []string{"string", "array"}}
}

func messageSchema() node {
	return objectOf("A message.", node{"role": of("string", "Whose message it is."), "content": contentSchema()}, "role", "content")
}

// decisionSchema describes what a hook answers.
func decisionSchema(s *StageInfo) node {
	if s.Name == StageApproveTool {
		members := approvalMembers()
		delete(members, "digest")
		nullable(members["reason"], members["by"])
		return closed(objectOf("An approver's answer.", members, "approved"))
	}
	members := sharedMembers(s)
	members["patch"] = of("null", "Nothing can be changed at this stage.")
	var rules []node
	if s.Result != "" {
		members[s.Result] = changeSchema(s)
		members["patch"] = of("array", fmt.Sprintf("A JSON Patch (RFC 6902) on the subject, instead of %q.", s.Result))
		rules = append(rules, node{"not": node{
			"description": "One of the two, not both.", "type": "object", "required": []string{s.Result, "patch"},
			"properties": node{s.Result: node{"type": "object"}, "patch": node{"type": "array"}},
		}})
	}
	nullable(slices.Collect(maps.Values(members))...)
	if s.Respond != "" {
		rules = append(rules, needs(ActionRespond, s.Respond, node{"type": "object"}))
	}
	if s.Allows(ActionInject) {
		rules = append(rules, needs(ActionInject, "inject", node{"type": []string{"object", "array"}, "minItems": 1}))
	}
	members["action"] = node{
		"description": "Has an effect here: " + strings.Join(verbs(s), ", ") + ". The others are ignored with a warning. deny_tool and block are other words for deny; none is continue.",
		"enum":        actionWords(),
	}
	decision := closed(objectOf("A hook's decision at "+string(s.Name)+". Null and {} let the step pass.", members))
	if rules != nil {
		decision["allOf"] = rules
	}
	nullable(decision)
	return decision
}

// resultSchema describes what hookd answers.
func resultSchema(s *StageInfo) node {
	members, verdict := approvalMembers(), "approved"
	if s.Name == StageApproveTool {
		members["warnings"] = sharedMembers(s)["warnings"]
	} else {
		members, verdict = sharedMembers(s), "action"
		members["action"] = node{"description": "What the agent must do.", "enum": verbs(s)}
		if s.Result != "" {
			members[s.Result] = of("object", "The changed subject, whole; there when its meaning changed.")
		}
		if s.Name == StageBeforeTool {
			members["approval"] = ref("approval")
		}
	}
	members["generation"] = of("integer", "Which version of the config judged.", node{"minimum": 0})
	members["decided_by"] = of("string", "The hook whose verb this is.")
	members["degraded"] = of("array", "Every hook that failed and was passed over.", node{"items": ref("degraded")})
	members["trail"] = of("array", "Every hook's turn, when the params say trail.", node{"items": ref("step")})
	return objectOf("hookd's answer at "+string(s.Name)+".", members, verdict, "generation")
}

// sharedMembers describes what a hook's decision and hookd's have in common.
func sharedMembers(s *StageInfo) node {
	texts := node{"items": node{"type": "string"}}
	members := node{
		"reason":      of("string", "Why; for the model, the user and the record."),
		"permission":  of("string", "With ask: what is asked for."),
		"add_context": node{"description": "More context for the model.", "type": []string{"string", "array"}, "items": texts["items"]},
		"warnings":    of("array", "Shown and logged, without effect on the flow.", texts),
		"state":       of("object", "Values for later hooks of this call and for the agent."),
		"jump_to":     of("string", "The node or step to go to."),
	}
	if s.Respond != "" {
		members[s.Respond] = of("object", "With respond: used instead of running what was due.")
	}
	if s.Allows(ActionInject) {
		members["inject"] = node{
			"description": "The message that starts another round, or several.", "type": []string{"object", "array"},
			"if": node{"type": "object"}, "then": ref("message"), "items": ref("message"),
		}
	}
	return members
}

// changeSchema describes the member that changes the subject.
func changeSchema(s *StageInfo) node {
	const about = "What changes: laid over the subject, member by member."
	if s.Wrapped() {
		return wrappedSchema(about)
	}
	members := node{}
	for name := range commonSchemas() {
		if isCommonParam(name) {
			members[name] = node{"description": "May be given back and has no effect."}
		}
	}
	for _, name := range s.Subject {
		members[name] = paramSchema(s, name)
	}
	return closed(objectOf(about, members))
}

func approvalMembers() node {
	return node{
		"approved": of("boolean", "Yes or no. Nothing else is a yes."),
		"reason":   of("string", "Why; given to the model when it is a no."),
		"by":       of("string", "Who said so: a person, a rule."),
		"digest":   of("string", "Which call it was: SHA-256, in hex, over the tool's name, a zero byte and the compact arguments."),
	}
}

// verbs lists what is legal at a stage, in hookd's words.
func verbs(s *StageInfo) []string {
	var words []string
	for _, a := range slices.Concat([]Action{ActionContinue}, s.Verbs, []Action{ActionAbortTurn, ActionHardAbort}) {
		words = append(words, wireAction(s, a))
	}
	return words
}

// needs says that a verb can't do without a member.
func needs(verb Action, member string, value node) node {
	return node{
		"if":   node{"required": []string{"action"}, "properties": node{"action": node{"const": verb}}},
		"then": node{"required": []string{member}, "properties": node{member: value}},
	}
}

func ref(def string) node { return node{"$ref": "#/$defs/" + def} }

func of(kind, about string, more ...node) node {
	n := node{"type": kind, "description": about}
	for _, m := range more {
		maps.Copy(n, m)
	}
	return n
}

func objectOf(about string, members node, required ...string) node {
	n := of("object", about, node{"properties": members})
	if len(required) > 0 {
		n["required"] = required
	}
	return n
}

// closed forbids other members.
func closed(n node) node {
	n["additionalProperties"] = false
	return n
}

// nullable makes the values take null, too, which is as if they were not there.
func nullable(values ...any) {
	for _, v := range values {
		n := v.(node)
		switch t := n["type"].(type) {
		case string:
			if t != "null" {
				n["type"] = []string{t, "null"}
			}
		case []string:
			n["type"] = append(t, "null")
		}
	}
}
