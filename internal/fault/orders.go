// Package fault names the ways in which a hook can go wrong, as orders that the
// program internal/faulthook carries out: for every call, when it is started
// with a mode, or for one call that holds orders in its context.
package fault

// Orders are what a faulty hook does with one call, in the order of the fields.
// The zero value is a hook that says yes. In a call they stand in the member
// "context".
type Orders struct {
	// Deaf names a file: the hook says "deaf" on stderr and reads nothing more
	// until that file is there.
	Deaf string `json:"deaf,omitzero"`
	// Stderr is how many bytes it writes there, in lines of 1000 bytes. Say is
	// written there as it is, after them.
	Stderr int    `json:"stderr,omitzero"`
	Say    string `json:"say,omitzero"`
	// Forks is how many processes it starts, which sleep in its group. Their pipes
	// lead nowhere.
	Forks int `json:"forks,omitzero"`
	// Leave starts one process that outlives the hook and keeps its pipes: "hold"
	// in the hook's group, "escape" in a session of its own. Its id goes to stderr
	// as "left PID".
	Leave string `json:"leave,omitzero"`
	// After names a file: the hook goes on when that is there. LateMS and BurnMS
	// are milliseconds that it waits, and during which it uses all cores.
	After  string `json:"after,omitzero"`
	LateMS int    `json:"late_ms,omitzero"`
	BurnMS int    `json:"burn_ms,omitzero"`
	// Alloc is how many bytes of memory it uses and keeps.
	Alloc int `json:"alloc,omitzero"`
	// Silent: it writes no answer.
	Silent bool `json:"silent,omitzero"`
	// Write is what it writes instead of a yes, Times over (0 is once), with a
	// line end behind it unless Open. What stands for what in it says [Expand].
	Write string `json:"write,omitzero"`
	Times int    `json:"times,omitzero"`
	Open  bool   `json:"open,omitzero"`
	// Pad and Depth are the sizes of $PAD and $DEEP.
	Pad   int `json:"pad,omitzero"`
	Depth int `json:"depth,omitzero"`
	// Then is written once, after all else, with a line end.
	Then string `json:"then,omitzero"`
	// Signal is sent to itself. SIGSEGV is received by another program in its
	// place, since the Go runtime would turn it into an exit.
	Signal int `json:"signal,omitzero"`
	// Exit ends it with this code.
	Exit *int `json:"exit,omitzero"`
}

// Says are the orders to answer with this result.
func Says(result string) Orders { return Orders{Write: "$RESULT" + result + "}"} }

// Yes is the answer of a hook that has nothing against a call.
const Yes = "$RESULT{}}"

// Facts are what a hook knows when it writes.
type Facts struct {
	// ID is that of the call, as it stood in the request.
	ID string
	// Events is how many events came.
	Events int64
	// Arguments are those of the call, as they stood in the request.
	Arguments string
}
