//go:build !linux

package bench

// UseOneCore does nothing here: the system offers no such choice.
func UseOneCore() (back func() error, err error) { return func() error { return nil }, nil }
