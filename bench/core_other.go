//go:build !linux

package bench

// useOneCore does nothing here: the system offers no such choice.
func useOneCore() (back func() error, err error) { return func() error { return nil }, nil }
