//go:build !linux

package daemon

// forgetStart does nothing here.
func forgetStart() {}
