package conform

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes the test binary a hook or an agent of some kind.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case "hook":
			testHook(os.Args[2])
			return
		case "agent":
			testAgent(os.Args[2])
			return
		}
	}
	_ = flag.Set("test.parallel", "8")           // most of them wait for programs that do not answer
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // else -race adds a second to each exit
	goleak.VerifyTestMain(m)
}
