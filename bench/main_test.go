package bench_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/hookd/hookd/bench"
	"github.com/hookd/hookd/child"
)

// asPart among the arguments turns the test binary into a process of a bench.
const asPart = "__bench"

func TestMain(m *testing.M) {
	child.Main()
	if i := slices.Index(os.Args, asPart); i > 0 {
		if err := bench.Play(context.Background(), os.Args[i+1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
