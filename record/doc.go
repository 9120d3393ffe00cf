// Package record keeps what hookd decided, durably: every decision and, around
// it, approvals, rules, sessions, hook failures, changes of the config, and
// what is missing. It is one SQLite file that others may read while hookd
// writes it.
//
// A [Store] writes. It is a manager.Recorder; everything goes through one
// goroutine, which commits what has come together in one transaction. In mode
// batch a decision does not wait for its record, in mode strict it does.
// Whatever goes wrong with the file, the decisions follow [OnFailure], and what
// could not be written is counted in a gap record as soon as writing is
// possible again.
//
// A [Reader] reads, also while a store writes, in this process or another.
//
// # The chain
//
// All records, of whatever table, share one sequence of numbers without holes,
// and each holds a hash of itself and of the one before it:
//
//	hash = SHA-256(previous hash, table, column, column, …)
//
// with the 32 bytes of the previous hash (zeros before the first record), then
// the table's name, then for each column but hash that is not NULL, in the
// order of the table: its name, a letter for its type and the value. Names,
// texts (t) and blobs (b) are preceded by their length as an unsigned varint;
// an integer (i) is 8 bytes, big end first. [Verify] reads it all and names the
// first place that does not fit.
//
// Where the beginning of the chain is no longer in the file, because its time
// was up or because the file had to be begun anew, a row in anchors holds the
// hash with which the kept part begins. Who can write the file can write
// another chain; to notice that, keep the last hash somewhere else.
package record
