// Package demo shows hookd at work: a daemon with the example hooks, an agent
// that asks it, and what happens when a hook dies or the config changes. All of
// it is real but the model, and lives in a folder of its own.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/daemon"
)

// patience is how long the demo waits for anything, and look the time between
// two looks whether it is there.
const (
	patience = 10 * time.Second
	look     = 20 * time.Millisecond
)

// Options say how to show it.
type Options struct {
	// Out gets the story as it happens.
	Out io.Writer
	// Paint colours text, by an SGR number such as "31", or returns it as it is.
	Paint func(colour, text string) string
	// Status asks a daemon how it fares.
	Status func(ctx context.Context, controlSocket string) (*daemon.Status, error)
	// Program is what a person types to run hookd; Version is its own.
	Program, Version string
	// Keep leaves the folder in the end.
	Keep bool
}

// demo is one showing.
type demo struct {
	Options
	ctx     context.Context
	cancel  context.CancelCauseFunc
	folder  string
	plan    plan
	sockets daemon.Sockets
	agent   *client.Client
	tools   *child.Spawner
}

// Run tells the story and takes everything down again, also when ctx ends. The
// error says what went another way than it should; the folder then stays, for a
// look.
func Run(ctx context.Context, o Options) error {
	if _, err := child.Resolve("sh", ""); err != nil {
		return fmt.Errorf("the demo needs a shell: %w", err)
	}
	d := &demo{Options: o}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	defer d.cancel(nil)
	var err error
	if d.folder, err = os.MkdirTemp("", "hookd-demo-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	if err = d.show(); err != nil && d.ctx.Err() == nil {
		return fmt.Errorf("%w; the log and all files are in %s", err, d.folder)
	}
	if !o.Keep {
		err = errors.Join(err, os.RemoveAll(d.folder))
	}
	switch {
	case d.ctx.Err() != nil:
		return context.Cause(d.ctx)
	case err == nil:
		d.farewell()
	}
	return err
}

// show is everything between the folder's beginning and end.
func (d *demo) show() error {
	d.print("An agent at work, hookd between it and what it does, and hooks that watch. All of it is real")
	d.print("but the model: the daemon, its sockets, the hooks, the tools. It lives in %s", d.folder)
	if err := d.furnish(); err != nil {
		return err
	}
	d.tools = child.NewSpawner()
	defer d.tools.Close()
	return d.withHookd(d.play)
}

// withHookd runs a daemon in this process, and an agent that is connected to
// it, for as long as play takes.
func (d *demo) withHookd(play func() error) error {
	log, err := os.Create(d.path("hookd.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, stop := context.WithCancelCause(d.ctx)
	defer stop(nil)
	up, ended := make(chan struct{}), make(chan error, 1)
	go func() { // ended is read in any case
		ended <- daemon.Run(ctx, daemon.Options{
			ConfigPath: d.path("config.json"), Socket: d.path("hookd.sock"), ControlSocket: d.path("hookd.control.sock"),
			Builtins: standIns(), Version: d.Version, Stderr: log,
			Serving: func(s daemon.Sockets) { d.sockets = s; close(up) },
		})
	}()
	select {
	case <-up:
	case err := <-ended:
		return fmt.Errorf("start hookd: %w", err)
	}
	if d.agent, err = client.Dial(ctx, client.Options{Name: "demo-agent", SessionID: "demo", Socket: d.sockets.Agents, Deadline: patience}); err == nil {
		err = play()
		d.agent.Close()
	}
	stop(errors.New("the demo is over"))
	return errors.Join(err, <-ended)
}

// wait looks again and again until there is what is waited for.
func (d *demo) wait(what string, there func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(d.ctx, patience, fmt.Errorf("waited %s for %s", patience, what))
	defer cancel()
	for {
		if ok, err := there(); ok || err != nil {
			return err
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// status waits until hookd's status is as wanted.
func (d *demo) status(what string, wanted func(*daemon.Status) bool) (s *daemon.Status, err error) {
	err = d.wait(what, func() (bool, error) {
		s, err = d.Status(d.ctx, d.sockets.Control)
		return err == nil && wanted(s), err
	})
	return s, err
}

func (d *demo) path(name string) string { return filepath.Join(d.folder, name) }
