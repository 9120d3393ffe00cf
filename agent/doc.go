// Package agent translates between the native hook formats of coding agents and
// hookd's words. An agent starts a hook per event and writes a payload to it;
// here the payload becomes a question at one of hookd's stages or an event, and
// hookd's answer becomes what that agent reads: bytes for stdout and stderr,
// and an exit code. There is no I/O here, and nothing that takes time to link:
// a program that is started for every event uses it.
//
// # The way of a payload
//
//	d := agent.Find("claude")                        // or Pick, which also detects
//	call, err := d.Read("PreToolUse", payload)       // *PayloadError: d.Unavailable says what to answer
//	if call.Kind != "" { … notify hook.event with call.EventParams }
//	if call.Stage != "" { … ask hook.<stage> with call.Params, decode a protocol.Result }
//	answer := d.Write(call, result, policy)          // result is nil where nothing was asked
//	… write answer.Stdout and answer.Stderr, log answer.Warnings, exit with answer.ExitCode
//
// When hookd can't be reached, d.Unavailable makes the answer. It also works
// for a payload that can't be read.
//
// [Call.Params] are exactly the params of the stage: the subject, call_id,
// context.tool (kind, command, path, url, server, and paths where a call names
// several files), and meta with agent, session_id, turn_id, cwd, model, agent_id
// as far as they are known, and native {agent, event, payload}: the payload as
// it came. A caller that wants hookd's approvers to decide adds "approve": true.
//
// # What is repaired and what is refused
//
// A byte order mark is taken off. Bytes that are not UTF-8 and lone surrogates
// become U+FFFD, with a warning. White space between the parts goes. A name that
// stands twice in an object, anything before or after the object, and nesting
// beyond 120 levels are errors, because two readers would not read the same.
//
// # Answers without a native form
//
// [Gaps] is the declared policy for what an agent has no form for, [Policy] the
// choices in it. Whatever is done stands in the answer's warnings.
//
// # Adding a dialect
//
// A dialect is a [Format] of package native: a table and two functions.
//
//  1. Make a sub-package for the family, such as agent/cursor, with a function
//     that returns a *native.Format (see claude.Claude; copilot.New shows how one
//     dialect hands over to another).
//  2. Table: one [Row] per native event. Say a capability only where the agent
//     really has it: [native.Resolve] reads the flags, cuts hookd's answer down
//     to them, applies the policy and writes the warnings. Kind is for events
//     that hookd does not derive from the stage itself (session_start,
//     subagent_stop, notification …). Events that are not in the table become
//     x_<agent>.<event> without any code.
//  3. EventKeys: the members of a payload that name the event; EventOf where it
//     must be guessed, or where it stands on the command line only; Also for
//     other names of events.
//  4. Decode: set meta (SetMeta), the call id (SetCallID), the event's payload
//     (SetEvent) and the subject of the row's stage: SetTool for before_tool and
//     approve_tool, SetTool and SetResult for after_tool, SetMessage for
//     user_message, SetRequest for the stages with a request, SetSubject for all
//     else. An error means that the payload can't be read, so return one where a
//     gate would see less than what will be run. SetFacts, after SetTool, for
//     what the payload knows better than the tool's name (Gemini's
//     mcp_context.server_name).
//  5. Render: write a [native.Plan]. It holds only what the row can say. Write
//     the bytes of "no opinion" for a zero plan. With a zero Row and a plan that
//     denies, deny in the way that works at most events. For agents that lay
//     changed arguments over the old ones set Row.Merge and use Plan.ChangedInput.
//     [native.WriteResult] puts a changed text back into the shape of a tool's
//     result.
//  6. Add the name to Names, a line to Find and its other names to Canonical in
//     agent.go, its sign to detect.go, and the package to the table of rooms in
//     house_test.go. Then go test ./agent ./thin -update writes the table in the
//     docs and the answers of the thin client anew.
//  7. Tests: agent/agenttest holds the suite that every dialect must pass, and
//     testdata/<agent>.txtar of the family its payloads and its answers to the
//     byte (go test ./agent/NAME -update writes them anew: read the difference).
package agent
