package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/internal/invariant"
	"github.com/hookd/hookd/protocol"
)

// askStacks on a line to the daemon lets it log all of its stacks first.
const askStacks = "stacks"

// beDaemon serves until stdin ends, as "hookd serve" does. To a line from there
// it answers one with what it uses.
func beDaemon(config string, helper *child.Helper) error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { cancel(tellUsage(os.Stdin, os.Stdout)) }() // until the process ends
	return daemon.Run(ctx, daemon.Options{ConfigPath: config, Version: "soak", Reload: hangups, Helper: helper, Alone: true})
}

// tellUsage returns when there are no more questions.
func tellUsage(questions io.Reader, answers io.Writer) error {
	for lines := bufio.NewScanner(questions); lines.Scan(); {
		if lines.Text() == askStacks {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		}
		u, err := invariant.Own()
		if err != nil {
			return err
		}
		line, err := protocol.Marshal(u)
		if err == nil {
			_, err = answers.Write(append(line, '\n'))
		}
		if err != nil {
			return err
		}
	}
	return errors.New("the soak is over")
}
