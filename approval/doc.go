// Package approval lets people say yes or no to tool calls.
//
// A [Desk] holds what is open: one [Ticket] per call that somebody must judge.
// A ticket is bound to the digest of its call, used once, and resolved exactly
// once: by a person, by a rule that a person has made, by the end of its time,
// by the agent's going away, or by hookd's shutdown. Everything but a yes is a
// no. The desk outlives reloads of the config, and with a [Journal] that writes
// to disk its rules outlive hookd.
//
// [Human] is the approver that puts calls on the desk. The package has neither
// sockets nor processes: who may answer, and how a notification is sent, comes
// from outside.
package approval
