package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// Profile makes the calls of T1 and T2 again and again and writes what the
// daemon does meanwhile into a folder, which it makes: for the in-process path
// and for that of a child, a profile of its CPU time and one of its allocations.
// It returns their paths. Of the options, Only, Against and Tries mean nothing
// here; Calls is a tenth of how many calls are made on each path.
func Profile(ctx context.Context, o Options, folder string) (paths []string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	folder, err = filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	r, err := newRun(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, path := range []struct {
		name, work string
		hooks      object
	}{
		{"inprocess", "one in-process Go hook, 200 B", inHouse()},
		{"child", "one Go child that continues, 200 B", object{"processes": object{"gate": r.hook("continue", nil)}}},
	} {
		r.progress(path.name, path.work)
		prefix := filepath.Join(folder, path.name)
		if err := r.profile(path.hooks, prefix); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return paths, fmt.Errorf("profile %s: %w", path.work, err)
		}
		paths = append(paths, prefix+cpuProfile, prefix+allocsProfile)
	}
	return paths, nil
}

// profile writes the profiles of a daemon with these hooks, which are asked all
// the time.
func (r *run) profile(hooks object, prefix string) error {
	h, err := r.start(hooks)
	if err != nil {
		return err
	}
	defer h.stop()
	c, err := h.dial()
	if err != nil {
		return err
	}
	defer c.w.Close()
	calls := newSeries(c.asking(toolLine("bash"), continues))
	if err := calls.some(r.ctx, r.share(10, 10)); err != nil { // warm up
		return err
	}
	if err := h.tell(beginProfile, prefix); err != nil {
		return err
	}
	if err := calls.some(r.ctx, 10*r.Calls); err != nil {
		return err
	}
	return h.tell(endProfile, prefix)
}

const (
	cpuProfile    = "-cpu.prof"
	allocsProfile = "-allocs.prof"
	// bytesPerSample is how often an allocation is looked at: more often than by
	// default, as a profile is short.
	bytesPerSample = 16 << 10
)

// profiler writes the profiles of this process.
type profiler struct{ cpu *os.File }

func (p *profiler) begin(prefix string) (err error) {
	runtime.MemProfileRate = bytesPerSample
	if p.cpu, err = os.Create(prefix + cpuProfile); err != nil {
		return err
	}
	return pprof.StartCPUProfile(p.cpu)
}

func (p *profiler) end(prefix string) error {
	pprof.StopCPUProfile()
	if err := p.cpu.Close(); err != nil {
		return err
	}
	file, err := os.Create(prefix + allocsProfile)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}
