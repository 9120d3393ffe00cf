package record

import "database/sql/driver"

// callsKept is for how many calls it is known where their decisions are. An
// answer that is not delivered is noticed within seconds.
const callsKept = 1 << 16

// calls knows where the decisions of the last calls are in the record, so that
// what turns out about them need not search it. The zero value knows none.
type calls struct {
	kept []writtenCall // by the call's number, modulo callsKept
}

type writtenCall struct{ call, seq uint64 }

// written notes the number of a call's decision.
func (c *calls) written(call, seq uint64) {
	if c.kept == nil {
		c.kept = make([]writtenCall, callsKept)
	}
	c.kept[call%callsKept] = writtenCall{call, seq}
}

// decision returns the number of a call's decision; NULL when it is not known.
func (c *calls) decision(call uint64) driver.Value {
	if c.kept == nil || call == 0 {
		return nil
	}
	if k := c.kept[call%callsKept]; k.call == call {
		return int64(k.seq)
	}
	return nil
}
