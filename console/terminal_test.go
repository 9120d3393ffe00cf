package console

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// desk is a source in memory.
type desk struct {
	mu      sync.Mutex
	open    []Ticket
	answers []Answer
	err     error
}

func (d *desk) put(list ...Ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = list
}

func (d *desk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *desk) said() []Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.answers)
}

func (d *desk) Tickets(_ context.Context, known []string) (ids []string, fresh []Ticket, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.open {
		ids = append(ids, t.ID)
		if !slices.Contains(known, t.ID) {
			fresh = append(fresh, t)
		}
	}
	return ids, fresh, d.err
}

func (d *desk) Answer(_ context.Context, a *Answer) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.open, func(t Ticket) bool { return t.ID == a.ID })
	if i < 0 {
		return "", errors.New("too late: the agent went away")
	}
	d.open = slices.Delete(d.open, i, i+1)
	d.answers = append(d.answers, *a)
	return "done with " + a.ID, nil
}

// tty is a terminal with a page on it.
type tty struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	done   chan error

	mu   sync.Mutex
	sent []byte // by the page
}

func startTTY(t *testing.T, ctx context.Context, source Source) *tty {
	t.Helper()
	master, slave, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 90}))
	y := &tty{t: t, master: master, slave: slave, done: make(chan error, 1)}
	var reader sync.WaitGroup
	reader.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			y.mu.Lock()
			y.sent = append(y.sent, buf[:n]...)
			y.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	go func() { y.done <- Run(ctx, Options{In: slave, Out: slave, Source: source, Colour: true}) }()
	t.Cleanup(func() {
		slave.Close()
		master.Close()
		reader.Wait()
	})
	return y
}

func (y *tty) all() []byte {
	y.mu.Lock()
	defer y.mu.Unlock()
	return bytes.Clone(y.sent)
}

// screen is what was drawn last.
func (y *tty) screen() string {
	frames := strings.Split(string(y.all()), "\x1b[H")
	last := frames[len(frames)-1]
	for _, code := range []string{"\x1b[K", "\x1b[J", "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\r"} {
		last = strings.ReplaceAll(last, code, "")
	}
	return last
}

func (y *tty) until(text string) {
	y.t.Helper()
	require.Eventually(y.t, func() bool { return strings.Contains(y.screen(), text) }, 10*time.Second, 5*time.Millisecond, "%s is not on the page", text)
}

func (y *tty) press(keys string) {
	y.t.Helper()
	_, err := y.master.WriteString(keys)
	require.NoError(y.t, err)
}

func (y *tty) end() error {
	y.t.Helper()
	select {
	case err := <-y.done:
		return err
	case <-time.After(10 * time.Second):
		y.t.Fatal("the page is still there")
		return nil
	}
}

func now(c Ticket) Ticket {
	c.Opened, c.Expires = time.Now(), time.Now().Add(time.Hour)
	return c
}

func TestTerminal(t *testing.T) {
	d := &desk{}
	y := startTTY(t, t.Context(), d)
	y.until("Nothing waits for an answer")
	d.put(now(call("bavi-nope-42", "bash", `{"command":"git push\u001b[2J"}`)), now(call("doro-jupa-06", "bash", `{"command":"rm -rf /"}`)))
	y.until("│ git push\x1b[7;33m‹U+001B›[2J")
	y.until("1 of 2 calls that wait")

	// The answer counts once the call has been on the page for a moment.
	require.Eventually(t, func() bool { y.press("y"); return len(d.said()) == 1 }, 10*time.Second, 50*time.Millisecond)
	require.Equal(t, Answer{ID: "bavi-nope-42", Digest: "d-bavi-nope-42", Approve: true}, d.said()[0])
	y.until("rm -rf /")
	require.Len(t, d.said(), 1, "further presses were for the first call")

	require.NoError(t, pty.Setsize(y.master, &pty.Winsize{Rows: 30, Cols: 60}))
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGWINCH))
	y.until(strings.Repeat("─", 60) + "\n")

	y.press("\x1b[200~yyy\x1b[201~")
	y.until("pasted text is taken only as a reason")
	y.press("r")
	y.until("reason: ")
	y.press("no, ä\r")
	y.until("the reason goes with your answer")
	require.Eventually(t, func() bool { y.press("n"); return len(d.said()) == 2 }, 10*time.Second, 50*time.Millisecond)
	y.until("Nothing waits for an answer")
	require.Equal(t, Answer{ID: "doro-jupa-06", Digest: "d-doro-jupa-06", Reason: "no, ä"}, d.said()[1])

	d.fail(errors.New("no hookd answers"))
	y.until("no hookd answers")
	d.fail(nil)
	y.press("q")
	require.NoError(t, y.end())
	require.True(t, bytes.HasPrefix(y.all(), []byte(enter)))
	require.Eventually(t, func() bool { return bytes.HasSuffix(y.all(), []byte(leave)) }, 10*time.Second, time.Millisecond)
}

// Whatever ends the page, the terminal is as it was.
func TestTerminalIsLeftAsItWas(t *testing.T) {
	for name, stop := range map[string]func(y *tty, cancel context.CancelFunc){
		"ctrl-c":  func(y *tty, _ context.CancelFunc) { y.press("\x03") },
		"context": func(_ *tty, cancel context.CancelFunc) { cancel() },
		"SIGTERM": func(*tty, context.CancelFunc) { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			y := startTTY(t, ctx, &desk{})
			y.until("? help") // it is raw now
			stop(y, cancel)
			require.NoError(t, y.end())
			require.Eventually(t, func() bool { return bytes.HasSuffix(y.all(), []byte(leave)) }, 10*time.Second, time.Millisecond)
			y.press("echoed\n") // by a terminal that is not raw
			require.Eventually(t, func() bool { return bytes.HasSuffix(y.all(), []byte("echoed\r\n")) }, 10*time.Second, time.Millisecond)
		})
	}
}

func TestNoTerminal(t *testing.T) {
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	require.ErrorContains(t, Run(t.Context(), Options{In: f, Out: f, Source: &desk{}}), "use the terminal: ")
}
