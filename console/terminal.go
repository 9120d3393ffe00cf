package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// How often the page looks anew.
const (
	pollEvery = 300 * time.Millisecond
	keyWait   = 100 * time.Millisecond // what is left of a key must come in this time
	asking    = 5 * time.Second        // one question to the source
)

// Source is where tickets come from and where answers go.
type Source interface {
	// Tickets returns the ids of all open tickets, and those tickets in full
	// that are not among known.
	Tickets(ctx context.Context, known []string) (ids []string, fresh []Ticket, err error)
	// Answer passes an answer on and returns, for people, what it has done.
	Answer(ctx context.Context, a *Answer) (said string, err error)
}

// Options say where the page is shown.
type Options struct {
	// In and Out are the terminal.
	In, Out *os.File
	Source  Source
	// Colour says whether colours are used.
	Colour bool
	// ReadFile reads files for comparison; nil = [ReadFile].
	ReadFile func(path string) ([]byte, error)
}

// The terminal's modes while the page is shown: a screen of its own, no cursor,
// pasted text marked as such. What was there before comes back.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?2004h"
	leave = "\x1b[?2004l\x1b[?25h\x1b[?1049l"
)

// Run shows the page until the person quits, ctx ends or the terminal is gone,
// and leaves the terminal as it was.
func Run(ctx context.Context, o Options) (err error) {
	in := int(o.In.Fd())
	state, err := term.MakeRaw(in)
	if err != nil {
		return fmt.Errorf("use the terminal: %w", err)
	}
	defer func() { err = errors.Join(err, term.Restore(in, state)) }()
	if _, err := io.WriteString(o.Out, enter); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	defer func() { _, _ = io.WriteString(o.Out, leave) }()

	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	ctx, end := context.WithCancel(ctx)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer end()
	keys := make(chan []Key)
	reader.Go(func() { readKeys(ctx, in, keys) })

	s := &shown{Options: o, page: NewPage(o.ReadFile)}
	s.resize()
	s.look(ctx)
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		if err := s.draw(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
			s.resize()
		case <-poll.C:
			s.look(ctx)
		case list, open := <-keys:
			if !open || s.press(ctx, list) {
				return nil
			}
		}
	}
}

// shown is a page on a terminal.
type shown struct {
	Options
	page *Page
	last string // what was drawn
}

func (s *shown) resize() {
	if w, h, err := term.GetSize(int(s.Out.Fd())); err == nil && w > 0 && h > 0 {
		s.page.Resize(w, h)
		s.last = ""
	}
}

// look asks for the tickets.
func (s *shown) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	ids, fresh, err := s.Source.Tickets(ctx, s.page.Known())
	s.page.Tick(time.Now())
	s.page.Trouble(err)
	if err == nil {
		s.page.Update(ids, fresh)
	}
}

// press hands keys to the page, and reports whether it is over.
func (s *shown) press(ctx context.Context, list []Key) (quit bool) {
	for _, k := range list {
		s.page.Tick(time.Now())
		wish := s.page.Key(k)
		if wish.Quit {
			return true
		}
		if wish.Answer != nil {
			asked, cancel := context.WithTimeout(ctx, asking)
			said, err := s.Source.Answer(asked, wish.Answer)
			cancel()
			s.page.Tick(time.Now())
			s.page.Answered(wish.Answer.ID, said, err)
			s.look(ctx)
		}
	}
	return false
}

// draw writes the page when it looks different.
func (s *shown) draw() error {
	s.page.Tick(time.Now())
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, l := range s.page.Render() {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(l.ansi(s.Colour) + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	if b.String() == s.last {
		return nil
	}
	s.last = b.String()
	if _, err := io.WriteString(s.Out, s.last); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

// readKeys reads the terminal until ctx ends or the terminal does, and closes
// keys.
func readKeys(ctx context.Context, fd int, keys chan<- []Key) {
	defer close(keys)
	var decoder Keys
	buf := make([]byte, 1024)
	for ctx.Err() == nil {
		var list []Key
		switch ready, err := readable(fd, keyWait); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return
		case !ready:
			list = decoder.Flush()
		default:
			n, err := unix.Read(fd, buf)
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
				continue
			}
			if err != nil || n <= 0 {
				return
			}
			list = decoder.Feed(buf[:n])
		}
		if len(list) == 0 {
			continue
		}
		select {
		case keys <- list:
		case <-ctx.Done():
			return
		}
	}
}

// readable waits until something can be read, or the end of the terminal.
func readable(fd int, wait time.Duration) (bool, error) {
	var set unix.FdSet
	set.Set(fd)
	timeout := unix.NsecToTimeval(wait.Nanoseconds())
	n, err := unix.Select(fd+1, &set, nil, nil, &timeout)
	return n > 0, err
}
