package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
)

// loop is a watcher whose file is a variable, for tests in a bubble, where time
// is not real.
type loop struct {
	*Watcher
	text    atomic.Value
	looks   atomic.Int64
	signals []time.Duration // when, since the start
	texts   []string        // what stood there then
}

func startLoop(t *testing.T, text string) *loop {
	l := &loop{Watcher: newWatcher()}
	l.text.Store(text)
	l.look = func() string { l.looks.Add(1); return l.text.Load().(string) }
	ctx, cancel := context.WithCancel(t.Context())
	l.cancel = cancel
	l.Applied(text)
	began := time.Now()
	l.running.Go(func() { l.run(ctx, l.look()) })
	l.running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-l.Changes():
				l.signals = append(l.signals, time.Since(began))
				l.texts = append(l.texts, l.text.Load().(string))
			}
		}
	})
	time.Sleep(time.Second)
	return l
}

func (l *loop) set(text string) {
	l.text.Store(text)
	wake(l.events)
}

// stop ends the loop and returns what was signalled.
func (l *loop) stop(t *testing.T) []string {
	synctest.Wait()
	require.NoError(t, l.Close())
	return l.texts
}

func TestSignalWhenSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLoop(t, "a")
		l.set("b")
		time.Sleep(time.Second)
		require.Equal(t, []string{"b"}, l.stop(t))
		require.Equal(t, time.Second+settleTime, l.signals[0])
	})
}

func TestNoSignalForTheSameContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLoop(t, "a")
		l.set("a") // touched
		time.Sleep(time.Second)
		l.set("b")
		time.Sleep(100 * time.Millisecond)
		l.set("a") // changed and changed back
		time.Sleep(time.Minute)
		require.Empty(t, l.stop(t))
	})
}

func TestNoSignalForWhatIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLoop(t, "a")
		l.set("b")
		l.Applied("b") // somebody asked for a reload meanwhile
		time.Sleep(time.Minute)
		l.set("a")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"a"}, l.stop(t))
	})
}

// A change between loading and watching is found without any event.
func TestFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher()
		w.look = func() string { return "new" }
		w.Applied("old")
		ctx, cancel := context.WithCancel(t.Context())
		w.cancel = cancel
		w.running.Go(func() { w.run(ctx, w.look()) })
		time.Sleep(time.Second)
		require.Len(t, w.changes, 1)
		require.NoError(t, w.Close())
	})
}

func TestRemovedAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLoop(t, "a")
		l.set("missing")
		time.Sleep(5 * time.Minute)
		l.set("a") // the same as is in use: the error must be cleared
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"missing", "a"}, l.stop(t))
	})
}

// A file that is written in pieces counts when it is whole.
func TestWrittenInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLoop(t, "old")
		for _, text := range []string{"", "one", "one two", "one two three"} {
			l.set(text)
			time.Sleep(200 * time.Millisecond)
		}
		time.Sleep(time.Second)
		require.Equal(t, []string{"one two three"}, l.stop(t))
	})
}

func TestEditedAllTheTime(t *testing.T) {
	for name, text := range map[string]func(i int) string{
		"new each time": func(i int) string { return fmt.Sprint(i) },
		"to and fro":    func(i int) string { return fmt.Sprint(i / 7 % 2) },
		"now and then":  func(i int) string { return fmt.Sprint(i / 26) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := startLoop(t, "a")
				for i := range 1000 {
					l.set(text(i))
					time.Sleep(10 * time.Millisecond)
				}
				l.set("final")
				time.Sleep(time.Second)
				texts := l.stop(t)
				require.Equal(t, "final", texts[len(texts)-1])
				for i, at := range l.signals[:max(0, len(l.signals)-4)] {
					require.GreaterOrEqual(t, l.signals[i+4]-at, time.Second, "more than four in a second")
				}
			})
		})
	}
}

// A busy neighbour in the folder does not keep a change from being seen.
func TestBusyFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := startLoop(t, "a")
		l.set("b")
		for range 100 {
			wake(l.events)
			time.Sleep(10 * time.Millisecond)
		}
		require.Equal(t, []string{"b"}, l.stop(t))
	})
}

func TestPolling(t *testing.T) {
	for polls, within := range map[bool]time.Duration{false: pollTime, true: pollOnlyTime} {
		synctest.Test(t, func(t *testing.T) {
			l := startLoop(t, "a")
			l.polling.Store(polls)
			wake(l.events)
			time.Sleep(time.Second)
			looks := l.looks.Load()
			l.text.Store("b") // no event tells
			time.Sleep(within + time.Second)
			require.Equal(t, []string{"b"}, l.stop(t))
			require.LessOrEqual(t, l.looks.Load()-looks, int64(4))
		})
	}
}

// A signal that nobody took yet says all there is to say.
func TestSignalsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher()
		var text atomic.Value
		text.Store("a")
		w.look = func() string { return text.Load().(string) }
		ctx, cancel := context.WithCancel(t.Context())
		w.cancel = cancel
		w.running.Go(func() { w.run(ctx, "a") })
		for i := range 10 {
			time.Sleep(time.Second)
			text.Store(fmt.Sprint(i))
			wake(w.events)
		}
		time.Sleep(time.Second)
		<-w.Changes()
		require.Empty(t, w.changes)
		require.NoError(t, w.Close())
	})
}

// What follows works on real files.

// watching starts a watch on a file that is in use.
func watching(t *testing.T, path string) *Watcher {
	t.Helper()
	w, err := Watch(t.Context(), path, func(err error) { t.Error(err) })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	c, err := Load(path, nil)
	require.NoError(t, err)
	w.Applied(c.SHA256)
	require.False(t, w.Polling())
	return w
}

// signalled waits for a signal, for less than the poll would take, and checks
// what there is to load then.
func signalled(t *testing.T, w *Watcher, path, want string) {
	t.Helper()
	select {
	case <-w.Changes():
	case <-time.After(20 * time.Second):
		t.Fatal("no signal")
	}
	c, err := Load(path, nil)
	if want == "" {
		require.Error(t, err)
		return
	}
	require.NoError(t, err)
	require.Equal(t, hash([]byte(want)), c.SHA256)
	w.Applied(c.SHA256)
}

func level(i int) string {
	return fmt.Sprintf(`{"log": {"level": "info"}, "limits": {"max_depth": %d}}`, 100+i)
}

func TestWatchFiles(t *testing.T) {
	replace := func(t *testing.T, path, text string) {
		require.NoError(t, os.Rename(write(t, path+".tmp", text), path))
	}
	relink := func(t *testing.T, target, link string) {
		require.NoError(t, os.Symlink(target, link+".tmp"))
		require.NoError(t, os.Rename(link+".tmp", link))
	}
	mkdir := func(t *testing.T, path string) string {
		require.NoError(t, os.MkdirAll(path, 0o755))
		return path
	}
	for name, test := range map[string]func(t *testing.T, dir, path string){
		"written in place": func(t *testing.T, dir, path string) {
			w := watching(t, path)
			for i := range 2 {
				write(t, path, level(i))
				signalled(t, w, path, level(i))
			}
		},
		"renamed over": func(t *testing.T, dir, path string) {
			w := watching(t, path)
			for i := range 2 {
				replace(t, path, level(i))
				signalled(t, w, path, level(i))
			}
		},
		"saved by vim": func(t *testing.T, dir, path string) {
			w := watching(t, path)
			for i := range 2 {
				require.NoError(t, os.Rename(path, path+"~"))
				write(t, path, level(i))
				require.NoError(t, os.Chmod(path, 0o644))
				require.NoError(t, os.Remove(path+"~"))
				signalled(t, w, path, level(i))
			}
		},
		"config map": func(t *testing.T, dir, path string) {
			require.NoError(t, os.Remove(path))
			write(t, mkdir(t, filepath.Join(dir, "..v0"))+"/config.json", `{}`)
			relink(t, "..v0", filepath.Join(dir, "..data"))
			relink(t, "..data/config.json", path)
			w := watching(t, path)
			for i := range 2 {
				next := fmt.Sprintf("..v%d", i+1)
				write(t, mkdir(t, filepath.Join(dir, next))+"/config.json", level(i))
				relink(t, next, filepath.Join(dir, "..data"))
				require.NoError(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..v%d", i))))
				signalled(t, w, path, level(i))
			}
		},
		"link to a file elsewhere": func(t *testing.T, dir, path string) {
			one, two := safeDir(t)+"/one.json", safeDir(t)+"/two.json"
			relink(t, write(t, one, `{}`), path)
			w := watching(t, path)
			write(t, one, level(0))
			signalled(t, w, path, level(0))
			relink(t, write(t, two, level(1)), path)
			signalled(t, w, path, level(1))
			replace(t, two, level(2))
			signalled(t, w, path, level(2))
			require.NoError(t, os.Remove(path))
			write(t, path, level(3))
			signalled(t, w, path, level(3))
		},
		"link on the way": func(t *testing.T, dir, _ string) {
			write(t, mkdir(t, dir+"/v1/etc")+"/config.json", `{}`)
			write(t, mkdir(t, dir+"/v2/etc")+"/config.json", level(0))
			relink(t, "v1", dir+"/current")
			path := dir + "/current/etc/config.json"
			w := watching(t, path)
			relink(t, "v2", dir+"/current")
			signalled(t, w, path, level(0))
			write(t, path, level(1))
			signalled(t, w, path, level(1))
		},
		"removed and back": func(t *testing.T, dir, path string) {
			w := watching(t, path)
			for i := range 2 {
				require.NoError(t, os.Remove(path))
				signalled(t, w, path, "")
				write(t, path, level(i))
				signalled(t, w, path, level(i))
			}
		},
		"folder removed and back": func(t *testing.T, dir, _ string) {
			path := write(t, mkdir(t, dir+"/a/b")+"/config.json", `{}`)
			w := watching(t, path)
			for i := range 2 {
				require.NoError(t, os.RemoveAll(dir+"/a"))
				signalled(t, w, path, "")
				write(t, mkdir(t, dir+"/a/b")+"/config.json", level(10*i))
				signalled(t, w, path, level(10*i))
				write(t, path, level(10*i+1))
				signalled(t, w, path, level(10*i+1))
			}
		},
		"folder exchanged": func(t *testing.T, dir, _ string) {
			path := write(t, mkdir(t, dir+"/live")+"/config.json", `{}`)
			write(t, mkdir(t, dir+"/next")+"/config.json", level(0))
			w := watching(t, path)
			require.NoError(t, os.Rename(dir+"/live", dir+"/last"))
			require.NoError(t, os.Rename(dir+"/next", dir+"/live"))
			signalled(t, w, path, level(0))
			write(t, path, level(1))
			signalled(t, w, path, level(1))
		},
		"permissions only": func(t *testing.T, dir, path string) {
			w := watching(t, path)
			for _, mode := range []os.FileMode{0o644, 0o600, 0o400, 0o600} {
				require.NoError(t, os.Chmod(path, mode))
			}
			select {
			case <-w.Changes():
				t.Fatal("a signal")
			case <-time.After(4 * settleTime):
			}
			write(t, path, level(0))
			signalled(t, w, path, level(0))
		},
		"content that can't be used": func(t *testing.T, dir, path string) {
			w := watching(t, path)
			write(t, path, `{"log": `)
			signalled(t, w, path, "")
			write(t, path, `{}`) // what is in use
			signalled(t, w, path, `{}`)
		},
		"a hundred edits a second": func(t *testing.T, dir, path string) {
			w := watching(t, path)
			signals, began := 0, time.Now()
			for i := range 100 {
				replace(t, path, level(i))
				select {
				case <-w.Changes():
					signals++
				case <-time.After(10 * time.Millisecond):
				}
			}
			replace(t, path, level(200))
			for c := new(Config); c.SHA256 != hash([]byte(level(200))); signals++ {
				select {
				case <-w.Changes():
				case <-time.After(20 * time.Second):
					t.Fatal("no signal")
				}
				c, _ = Load(path, nil)
			}
			require.LessOrEqual(t, signals, int(time.Since(began)/settleTime)+1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(safeDir(t))
			require.NoError(t, err)
			test(t, dir, write(t, filepath.Join(dir, "config.json"), `{}`))
		})
	}
}

// Each piece leaves a file that can be loaded, but only the last is meant. A
// piece may count only when the next one is late, on a machine that is too busy
// to write it after 200 ms.
func TestWatchPieces(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(safeDir(t), "config.json"), `{}`)
	w := watching(t, path)
	pieces := []string{"", `{"log": {}}`, ` // more`, "\n// and more"} // first it is cut to nothing
	last := len(pieces) - 1
	states := map[string]int{} // what is found there → index of the last piece
	text := ""
	for i, piece := range pieces {
		text += piece
		states[hash([]byte(text))] = i
	}
	before, after := make([]time.Time, len(pieces)), make([]time.Time, len(pieces))
	done := make(chan error, 1)
	go func() {
		before[0] = time.Now()
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		for i, piece := range pieces[1:] {
			if i > 0 {
				time.Sleep(200 * time.Millisecond) // the fault that is tested
			}
			before[i+1] = time.Now()
			_, e := f.WriteString(piece)
			after[i+1] = time.Now()
			err = errors.Join(err, e)
		}
		done <- errors.Join(err, f.Close())
	}()
	var counted []int
	for len(counted) == 0 || counted[len(counted)-1] < last {
		select {
		case <-w.Changes():
		case <-time.After(20 * time.Second):
			t.Fatal("no signal")
		}
		w.mu.Lock()
		counted = append(counted, states[w.known])
		w.mu.Unlock()
	}
	require.NoError(t, <-done)
	for _, i := range counted[:len(counted)-1] {
		require.GreaterOrEqual(t, after[i+1].Sub(before[i]), settleTime, "piece %d", i)
	}
	c, err := Load(path, nil)
	require.NoError(t, err)
	require.Equal(t, hash([]byte(text)), c.SHA256)
}

// When the system has no watches left, the file is read from time to time, and
// watching resumes when it has.
func TestWatchWithoutNotifications(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(safeDir(t), "config.json"), `{}`)
	f, err := newFolders()
	require.NoError(t, err)
	var full atomic.Bool
	full.Store(true)
	f.add = func(dir string) error {
		if full.Load() {
			return syscall.ENOSPC
		}
		return f.Add(dir)
	}
	reports := make(chan error, 10)
	w := start(t.Context(), path, f, func(err error) { reports <- err })
	defer w.Close()
	require.True(t, w.Polling())
	require.ErrorIs(t, <-reports, syscall.ENOSPC)
	w.Applied(hash([]byte(`{}`)))
	write(t, path, level(0))
	signalled(t, w, path, level(0))
	require.True(t, w.Polling())
	require.Empty(t, reports, "it is said once")

	full.Store(false)
	write(t, path, level(1))
	signalled(t, w, path, level(1))
	require.False(t, w.Polling())

	none := start(t.Context(), path, nil, func(err error) { t.Error(err) })
	defer none.Close()
	require.True(t, none.Polling())
	none.Applied(hash([]byte(level(1))))
	write(t, path, level(2))
	signalled(t, none, path, level(2))
}

// Lost events mean "look"; other errors are reported. Neither stops the watch.
func TestPumpDrainsErrors(t *testing.T) {
	f := &folders{Watcher: &fsnotify.Watcher{Events: make(chan fsnotify.Event), Errors: make(chan error)}}
	happened, reports := make(chan struct{}, 1), make(chan error, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.pump(happened, func(err error) { reports <- err })
	}()
	f.Errors <- fsnotify.ErrEventOverflow
	<-happened
	f.Errors <- syscall.EIO
	<-happened
	require.ErrorIs(t, <-reports, syscall.EIO)
	f.Events <- fsnotify.Event{Name: "x", Op: fsnotify.Chmod}
	f.Events <- fsnotify.Event{Name: "x", Op: fsnotify.Chmod}
	require.Empty(t, happened)
	f.Events <- fsnotify.Event{Name: "x", Op: fsnotify.Create | fsnotify.Chmod}
	<-happened
	close(f.Events)
	<-done
	require.Empty(t, reports)
}

// The watch ends with its context too, and Close may come later.
func TestWatchEndsWithContext(t *testing.T) {
	path := write(t, filepath.Join(safeDir(t), "config.json"), `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	w, err := Watch(ctx, path, nil)
	require.NoError(t, err)
	cancel()
	w.running.Wait()
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
}

func TestWayTo(t *testing.T) {
	dir, err := filepath.EvalSymlinks(safeDir(t))
	require.NoError(t, err)
	link := func(target, name string) { require.NoError(t, os.Symlink(target, filepath.Join(dir, name))) }
	require.NoError(t, os.MkdirAll(dir+"/a/b/c", 0o755))
	write(t, dir+"/a/b/c/f", "")
	link("a/b", "ab")
	link(dir+"/ab/../x/../b/c/f", "far")
	link("c/nothing", "a/b/dangling")
	link("loop", "loop")
	for path, want := range map[string][]string{
		"/a/b/c/f":        {"/a/b/c"},
		"/a/./b//c/f":     {"/a/b/c"},
		"/a/b/missing":    {"/a/b"},
		"/a/no/such/file": {"/a"},
		"/a/b/c/f/g":      {"/a/b/c/f"},
		"/ab/c/f":         {"", "/a/b/c"},
		"/far":            {"", "/a"}, // a has no x: there the way breaks off
		"/ab/dangling":    {"", "/a/b", "/a/b/c"},
		"/loop":           {""},
	} {
		for i := range want {
			want[i] = dir + want[i]
		}
		require.Equal(t, want, wayTo(dir+path), path)
	}
}
