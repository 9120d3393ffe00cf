//go:build !linux

package daemon_test

import "testing"

// onOneCore does nothing where a process can't choose.
func onOneCore(*testing.B) {}
