// Command faulthook is a hook on the bare wire that goes wrong in one way, so
// that it can be seen what hookd makes of it:
//
//	faulthook -mode late=5300ms
//
// Without a mode it says yes to every call, or does what the call's context
// orders (see the package fault). Run it with -help for the modes.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/hookd/hookd/internal/fault"
)

func main() {
	mode := flag.String("mode", "obey", "how it goes wrong: NAME or NAME=ARGUMENT")
	while := flag.String("while", "", "go wrong only while this `file` is there")
	until := flag.String("until", "", "go wrong only until this `file` is there")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "faulthook is a hook that goes wrong.\n\n")
		flag.PrintDefaults()
		fmt.Fprintf(flag.CommandLine.Output(), "\nModes:\n%s", fault.Usage())
	}
	flag.Parse()
	m, err := fault.ParseMode(*mode)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "faulthook:", err, flag.Args())
		os.Exit(64)
	}
	h := &hook{mode: m, while: *while, until: *until}
	h.live(os.Stdin)
}
