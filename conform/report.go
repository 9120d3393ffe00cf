// Package conform tests programs against hookd's protocol: [Hook] starts a hook,
// written in any language, and plays hookd; [Agent] starts an agent and plays a
// hookd that misbehaves. Both report check by check, like a test runner.
package conform

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Status is what became of a check.
type Status string

// What can become of a check.
const (
	Pass Status = "PASS"
	Fail Status = "FAIL"
	Warn Status = "WARN" // hookd gets along with it, but somebody may be surprised
	Skip Status = "SKIP" // there was nothing to check, and the detail says why
)

// Result is one check.
type Result struct {
	Status Status `json:"status"`
	// Check is its name, the same in every run.
	Check string `json:"check"`
	// Detail is what was seen.
	Detail string `json:"detail,omitzero"`
	// Do is what the author can do about it; empty unless it failed or warns.
	Do string `json:"do,omitzero"`
}

func pass(format string, args ...any) Result {
	return Result{Status: Pass, Detail: fmt.Sprintf(format, args...)}
}

func skip(format string, args ...any) Result {
	return Result{Status: Skip, Detail: fmt.Sprintf(format, args...)}
}

func fail(do, format string, args ...any) Result {
	return Result{Status: Fail, Detail: fmt.Sprintf(format, args...), Do: do}
}

func warn(do, format string, args ...any) Result {
	return Result{Status: Warn, Detail: fmt.Sprintf(format, args...), Do: do}
}

// report collects results and shows each as soon as it is known.
type report struct {
	results []Result
	show    func(Result)
}

// newReport shows results until ctx ends: what fails after that, fails of it.
func newReport(ctx context.Context, show func(Result)) report {
	return report{show: func(result Result) {
		if show != nil && ctx.Err() == nil {
			show(result)
		}
	}}
}

func (r *report) add(check string, result Result) Status {
	result.Check = check
	r.results = append(r.results, result)
	r.show(result)
	return result.Status
}

// clip shortens what a program said.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// took is a time as people read it.
func took(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
