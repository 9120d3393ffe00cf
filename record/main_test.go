package record

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test binary runs itself as a child that is killed; see kill_test.go.
func TestMain(m *testing.M) {
	if dir := os.Getenv("RECORD_TEST_VICTIM"); dir != "" {
		victim(dir, Mode(os.Getenv("RECORD_TEST_MODE")))
		return
	}
	goleak.VerifyTestMain(m)
}
