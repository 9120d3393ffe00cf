//go:build race

package daemon_test

// raced: the race detector is on, and all takes ten times as long.
const raced = true
