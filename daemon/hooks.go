package daemon

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
)

// closeWithin is how long a hook that was taken away may go on with calls that
// nobody waits for, before its stop ladder is cut short.
const closeWithin = 10 * time.Second

// mountedHook is a running hook under the entry that holds now.
type mountedHook struct {
	entry   *config.Entry
	key     string
	mounted *mount.Mounted
}

// track remembers a mounted hook until it is closed, so that a shutdown finds
// also those that a reload has begun to take away.
func (d *daemon) track(m *mount.Mounted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mounted[m] = struct{}{}
}

// tracked are all hooks that are not closed.
func (d *daemon) tracked() []*mount.Mounted {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.mounted))
}

// retire closes hooks that are gone once the calls of their generation have
// ended. It does not wait.
func (d *daemon) retire(old *manager.Generation, gone []*mountedHook) {
	if len(gone) == 0 {
		return
	}
	d.drains.Go(func() {
		<-old.Drained() // shutdown swaps and drains every generation
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		// Events that are queued for a hook still go to it.
		if err := old.Wait(ctx); err != nil {
			d.log.Warn("events of a replaced hook were cut short", zap.Error(err))
		}
		d.closeAll(ctx, gone)
	})
}

// closeAll closes hooks side by side.
func (d *daemon) closeAll(ctx context.Context, list []*mountedHook) {
	var wg sync.WaitGroup
	for _, h := range list {
		wg.Go(func() { d.close(ctx, h.mounted) })
	}
	wg.Wait()
}

// closeHooks closes every hook there is.
func (d *daemon) closeHooks(ctx context.Context) {
	var wg sync.WaitGroup
	for _, m := range d.tracked() {
		wg.Go(func() { d.close(ctx, m) })
	}
	wg.Wait()
}

func (d *daemon) close(ctx context.Context, m *mount.Mounted) {
	if err := m.Close(ctx); err != nil {
		d.log.Warn("close hook", zap.Error(err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mounted, m)
}

// hookState is told by every supervisor when its hook changes state.
func (d *daemon) hookState(name string, s mount.Status) {
	d.manager.Publish(nil, protocol.NewHookdEvent(protocol.EventHookState, nil, protocol.Object{
		{Name: "hook", Value: protocol.Quote(name)},
		{Name: "state", Value: protocol.Quote(s.State)},
		{Name: "pid", Value: fmt.Appendf(nil, "%d", s.PID)},
		{Name: "restarts", Value: fmt.Appendf(nil, "%d", s.Restarts)},
		{Name: "last_error", Value: protocol.Quote(s.LastError)},
	}.AppendJSON(nil)))
	d.somethingNew()
	if s.State == mount.Ready {
		select {
		case d.refresh <- struct{}{}:
		default: // a look is due already
		}
	}
}

// hookProgress tells observers what a hook says of a call it works on.
func (d *daemon) hookProgress(p mount.Progress) {
	d.manager.Publish(nil, protocol.NewHookdEvent(protocol.EventHookProgress, nil, protocol.Object{
		{Name: "hook", Value: protocol.Quote(p.Hook)},
		{Name: "call_id", Value: protocol.Quote(p.CallID)},
		{Name: "text", Value: protocol.Quote(p.Text)},
	}.AppendJSON(nil)))
}

// hookPIDs are the processes of all hooks by pid, those included that are
// being greeted or taken away.
func (d *daemon) hookPIDs() map[int]string {
	pids := map[int]string{}
	for _, m := range d.tracked() {
		if s := m.Status(); s.PID > 0 && s.PID != os.Getpid() {
			pids[s.PID] = s.Name
		}
	}
	return pids
}
