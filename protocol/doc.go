// Package protocol holds the words that an agent, hookd and a hook say to one
// another: stages, decisions, approvals, outcomes, events, the greeting and
// the errors. It reads and writes bytes that somebody else moved; there is no
// I/O here.
//
// Three rules shape everything in it:
//
//   - A stage is a row in a table ([Stages]), not a code path.
//   - What can't be read exactly is not read at all. A typo in a verdict must
//     not become an allow, so decoding refuses duplicate names, unknown members
//     of a decision, other cases of a known name and wrong types.
//   - Zero values mean "no": a zero [Approval] is a refusal, and an [Outcome]
//     that nobody set is not a legal one.
package protocol

// Version is the protocol version spoken here. A greeting that names another
// one is refused with [CodeVersionMismatch].
const Version = 1
