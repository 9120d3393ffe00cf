// Package manager decides. It takes a request of an agent through the hooks of
// one generation and makes one answer of their decisions; it tells observers
// what happened. It is policy and nothing else: no sockets, no processes, no
// files.
//
// The way of a call: [HookManager.Plan] finds the generation and whether the
// call can be answered without waiting; [Plan.Run] runs the chain (chain.go),
// asks guards once more on the final subject (recheck), asks approvers
// (approve.go), shows the answer to the [Recorder] and then to observers
// (event.go).
//
// No lock is held while a hook is called.
package manager
