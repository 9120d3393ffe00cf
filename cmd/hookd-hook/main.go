// Command hookd-hook is the small program that coding agents start for every
// event. See package thin for why it links nothing.
package main

import (
	"syscall"

	"github.com/hookd/hookd/thin"
)

// Package os would do more at the end, and at the start.
func main() { syscall.Exit(thin.Main()) }
