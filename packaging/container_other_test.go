//go:build !linux

package packaging_test

// enterContainer is for systems that have containers.
func enterContainer(string) { panic("only Linux has namespaces") }
