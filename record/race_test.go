//go:build race

package record

// raced: the race detector is on, and all takes ten times as long.
const raced = true
