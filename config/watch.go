package config

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// settleTime is how long the content must stay the same before it counts.
	// It also bounds signals to four a second.
	settleTime = 250 * time.Millisecond
	// pollTime is how often the content is read anyway, and pollOnlyTime the
	// same where the system does not tell of changes.
	pollTime     = 30 * time.Second
	pollOnlyTime = 2 * time.Second
)

// Watcher says when a config file may be worth loading again.
type Watcher struct {
	changes chan struct{}
	events  chan struct{}
	// look arms the watches and returns what [Load] would find: a hash, or why
	// the file can't be read.
	look    func() string
	polling atomic.Bool
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	known string
}

// Watch follows the file at path through every link that leads to it, whether
// it is written in place, replaced, removed, or comes back. It never fails for
// the want of notifications: it then reads the file every two seconds, and says
// so through [Watcher.Polling]. report is called, from other goroutines, with
// what goes wrong on the way; nil drops it. The watch ends with ctx or Close.
func Watch(ctx context.Context, path string, report func(error)) (*Watcher, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("watch the config: %w", err)
	}
	if report == nil {
		report = func(error) {}
	}
	f, err := newFolders()
	if err != nil {
		report(fmt.Errorf("watch the config: %w; reading it every %s instead", err, pollOnlyTime))
	}
	return start(ctx, abs, f, report), nil
}

// start watches with f, which it closes in the end, or polls when f is nil.
func start(ctx context.Context, path string, f *folders, report func(error)) *Watcher {
	w := newWatcher()
	w.look = func() string {
		err := f.follow(path)
		if polls := err != nil; w.polling.Swap(polls) != polls && polls && f != nil {
			report(fmt.Errorf("watch the config: %w; reading it every %s until that is better", err, pollOnlyTime))
		}
		return content(path)
	}
	if f != nil {
		w.running.Go(func() { f.pump(w.events, report) })
	}
	// When this returns the watch is on, and nothing is missed.
	seen := w.look()
	ctx, w.cancel = context.WithCancel(ctx)
	w.running.Go(func() {
		w.run(ctx, seen)
		if f != nil {
			f.Close() // ends pump
		}
	})
	return w
}

func newWatcher() *Watcher {
	return &Watcher{changes: make(chan struct{}, 1), events: make(chan struct{}, 1)}
}

// content names what stands in the file, so that two looks can be compared.
func content(path string) string {
	data, err := readFile(path)
	if err != nil {
		return err.Error()
	}
	return hash(data)
}

// Changes delivers a value when the file is another one than was last signalled
// or applied, and has stopped changing for 250 ms. A removed or unreadable file
// counts as another one. Signals do not pile up: one means "load again", however
// many changes there were. The channel is never closed.
func (w *Watcher) Changes() <-chan struct{} { return w.changes }

// Applied tells which content is in use, by [Config.SHA256], so that it is not
// signalled again.
func (w *Watcher) Applied(sha256 string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = sha256
}

// Polling reports whether the file is only read from time to time, because the
// system does not tell of its changes.
func (w *Watcher) Polling() bool { return w.polling.Load() }

// Close ends the watch and returns when its goroutines have.
func (w *Watcher) Close() error {
	w.cancel()
	w.running.Wait()
	return nil
}

// run looks twice, settleTime apart, whenever something happened, and signals
// when both looks saw the same. What happens to other files in the folder thus
// can't hold a signal up, and a file that is being written never counts.
// The first look, which saw seen, was taken by the caller: it finds what changed
// between loading and watching.
func (w *Watcher) run(ctx context.Context, seen string) {
	settling := true
	settle := time.NewTimer(settleTime)
	poll := time.NewTimer(w.pollTime())
	defer settle.Stop()
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-settle.C:
			now := w.look()
			if settling = now != seen; settling {
				seen = now
				settle.Reset(settleTime)
			} else {
				w.signal(now)
			}
			continue
		case <-w.events:
		case <-poll.C:
		}
		if !settling {
			seen, settling = w.look(), true
			settle.Reset(settleTime)
		}
		poll.Reset(w.pollTime())
	}
}

func (w *Watcher) pollTime() time.Duration {
	if w.Polling() {
		return pollOnlyTime
	}
	return pollTime
}

func (w *Watcher) signal(content string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if content == w.known {
		return
	}
	w.known = content
	wake(w.changes)
}

// wake fills a one-slot channel; a full one says all there is to say.
func wake(slot chan<- struct{}) {
	select {
	case slot <- struct{}{}:
	default:
	}
}
