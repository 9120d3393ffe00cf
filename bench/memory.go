package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const idleConnections = 500

// memory is T7, but for the soak. Where there is no /proc nothing is measured.
func memory(r *run) ([]Row, error) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		return nil, nil
	}
	h, err := r.start(object{
		"builtins":  object{"bench-slow": object{"intercept": []string{"before_llm"}}},
		"processes": object{"gate": r.hook("continue", object{"intercept": []string{"before_tool"}})},
	})
	if err != nil {
		return nil, err
	}
	defer h.stop()
	work, stop, err := asker(h)
	if err != nil {
		return nil, err
	}
	defer stop()
	// So much that the heap has the size at which it is collected.
	if err := work.some(r.ctx, 20_000); err != nil {
		return nil, err
	}
	perConnection, err := h.perConnection()
	if err != nil {
		return nil, err
	}
	idle, err := h.idle(r)
	if err != nil {
		return nil, err
	}
	m, err := newCrowd(agents, h.agents, callLine("hook.before_llm", modelParams(1<<20)), continues)
	if err != nil {
		return nil, err
	}
	defer m.close()
	if _, err := m.all(r.ctx, 1); err != nil {
		return nil, err
	}
	peak, err := h.kibibytes("VmHWM")
	if err != nil {
		return nil, err
	}
	recording, err := r.idleRecording()
	if err != nil {
		return nil, err
	}
	return []Row{
		{Work: "memory of the idle daemon, 2 hooks", Ratio: round(idle/1024, 1), Unit: "MiB", Target: 24},
		{Work: "the same, after 2,000 recorded decisions", Ratio: round(recording/1024, 1), Unit: "MiB", AtLeast: true},
		{Work: fmt.Sprintf("memory per idle connection, of %d", idleConnections), Ratio: round(perConnection, 1), Unit: "KiB", Target: 12},
		{Work: "most memory, 64 calls of 1 MB in flight", Ratio: round(peak/1024, 0), Unit: "MiB", Target: 256},
	}, nil
}

// idleRecording is the memory of a daemon that has recorded decisions.
func (r *run) idleRecording() (float64, error) {
	h, err := r.startWith("batch", inHouse())
	if err != nil {
		return 0, err
	}
	defer h.stop()
	work, stop, err := asker(h)
	if err != nil {
		return 0, err
	}
	defer stop()
	if err := work.some(r.ctx, 2000); err != nil {
		return 0, err
	}
	return h.idle(r)
}

// idleAfter is when a daemon that nobody asks has given back what it does not need.
const idleAfter = 5 * time.Second

// idle is the memory of a daemon that has had nothing to do for a while.
func (h *house) idle(r *run) (float64, error) {
	select {
	case <-time.After(idleAfter):
		return h.kibibytes("VmRSS")
	case <-r.ctx.Done():
		return 0, context.Cause(r.ctx)
	}
}

// perConnection is what connections cost that asked once and are idle now.
func (h *house) perConnection() (float64, error) {
	line := toolLine("bash")
	before, err := h.kibibytes("VmRSS")
	if err != nil {
		return 0, err
	}
	for range idleConnections {
		c, err := h.dial()
		if err != nil {
			return 0, err
		}
		defer c.w.Close()
		if err := c.asking(line, continues)(); err != nil {
			return 0, err
		}
	}
	now, err := h.kibibytes("VmRSS")
	return max(now-before, 0) / idleConnections, err
}

// kibibytes reads a line of the daemon's /proc/PID/status.
func (h *house) kibibytes(name string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.process.PID()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
		}
	}
	return 0, fmt.Errorf("/proc has no %s", name)
}
