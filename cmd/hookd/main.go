// Command hookd is the hook daemon. Everything it does stands in package cli,
// so that a main of your own can add hooks of your own; see examples/custom.
package main

import "github.com/hookd/hookd/cmd/hookd/cli"

func main() { cli.Main() }
