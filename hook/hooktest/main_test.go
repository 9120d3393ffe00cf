package hooktest

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/hookd/hookd/hook/serve"
)

// asHook makes the test binary a process with the reference hook.
const asHook = "HOOKTEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(asHook) != "" {
		serve.Main(Hook())
	}
	goleak.VerifyTestMain(m)
}
