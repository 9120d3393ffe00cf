package main

import (
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/hookd/hookd/internal/fault"
)

// obey does with one call what it is told.
func (h *hook) obey(o fault.Orders, call fault.Facts, yes string) {
	for range o.Stderr / 1000 {
		say(strings.Repeat("!", 999))
	}
	_, _ = io.WriteString(os.Stderr, o.Say)
	for range o.Forks {
		start(&os.ProcAttr{Files: []*os.File{nil, nil, nil}})
	}
	if o.Leave != "" {
		p := start(&os.ProcAttr{
			Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: o.Leave == "escape"},
		})
		say("left", p.Pid)
	}
	waitFor(o.After)
	time.Sleep(time.Duration(o.LateMS) * time.Millisecond)
	burn(time.Duration(o.BurnMS) * time.Millisecond)
	kept := fill(o.Alloc)
	if !o.Silent {
		if o.Write == "" {
			o.Write = yes
		}
		h.write(o, call)
	}
	if o.Signal != 0 {
		die(syscall.Signal(o.Signal))
	}
	if o.Exit != nil {
		os.Exit(*o.Exit)
	}
	runtime.KeepAlive(kept)
}

// start starts a program that sleeps.
func start(attr *os.ProcAttr) *os.Process {
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, attr)
	if err != nil {
		say("can't start a process:", err)
		os.Exit(66)
	}
	return p
}

// burn uses all cores.
func burn(d time.Duration) {
	end := time.Now().Add(d)
	for range runtime.NumCPU() - 1 {
		go spin(end)
	}
	spin(end)
}

func spin(end time.Time) {
	for time.Now().Before(end) {
	}
}

// fill returns so many bytes of memory that are in use.
func fill(n int) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += 4 << 10 {
		b[i] = 1
	}
	return b
}

// die sends a signal to this process. The runtime handles the one for a bad
// address itself, so another program takes this one's place and receives it.
func die(s syscall.Signal) {
	if s == syscall.SIGSEGV {
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
		_ = syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -SEGV $$"}, os.Environ())
	}
	_ = syscall.Kill(os.Getpid(), s)
	if s == syscall.SIGKILL {
		select {} // it comes
	}
}
