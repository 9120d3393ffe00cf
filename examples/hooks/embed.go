// Package hooks holds the example hooks, for a program that brings them along.
package hooks

import "embed"

// Files are the examples that need an interpreter and nothing else:
// review_gate.py, redact.mjs and notify.sh.
//
//go:embed review_gate.py redact.mjs notify.sh
var Files embed.FS
