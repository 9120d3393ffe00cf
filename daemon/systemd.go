package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	systemd "github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/mount"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// Names under which a service manager hands its sockets over, FileDescriptorName=
// in a systemd socket unit.
const (
	agentsName  = "agents"
	controlName = "control"
)

// patience is how long agents that wait in an inherited socket are left there
// while the first hooks start: less than they wait for a greeting.
const patience = 3 * time.Second

// inherited are sockets that the service manager opened before it started
// hookd, by name. It keeps them open when hookd ends, so connections wait in
// them for the next hookd. Hookd closes its own end and never removes one.
type inherited map[string]*net.UnixListener

// inherit takes what the service manager hands over, which is nothing in most
// cases. What can't be used is an error: an agent may be waiting there.
func (d *daemon) inherit() (_ inherited, err error) {
	if d.Getenv("LISTEN_FDS") == "" {
		return nil, nil
	}
	have := inherited{}
	for _, file := range activation.Files(true) {
		l, open := net.FileListener(file)
		file.Close() // l has one of its own
		socket, ok := l.(*net.UnixListener)
		switch name := file.Name(); {
		case open != nil || !ok || socket.Addr().Network() != "unix":
			err = errors.Join(err, fmt.Errorf("the service manager's socket %q is not a listening Unix stream socket", name))
		case name != agentsName && name != controlName:
			err = errors.Join(err, fmt.Errorf("the service manager's socket %q has no meaning here: name it with FileDescriptorName=%s or %s", name, agentsName, controlName))
		case have[name] != nil:
			err = errors.Join(err, fmt.Errorf("the service manager's socket %q comes twice: a socket unit may name one path only", name))
		default:
			have[name] = socket
			continue
		}
		if l != nil {
			l.Close()
		}
	}
	if err != nil {
		have.close()
		return nil, err
	}
	return have, nil
}

// named returns where a socket is said to be: by the service manager, else by
// the command line, else by the config, else nowhere.
func (d *daemon) named(name, flag string, l config.Listener) string {
	said := cmp.Or(flag, l.Path)
	if d.handed[name] == nil {
		return said
	}
	path := d.handed[name].Addr().String()
	if said != "" && said != path {
		d.log.Warn("the service manager's socket is used, not the one that is named", zap.String("socket", path), zap.String("named", said))
	}
	return path
}

// listen returns the named socket, or makes one that is hookd's own.
func (i inherited) listen(name, path string, l config.Listener) (net.Listener, error) {
	if i[name] != nil {
		return i[name], nil
	}
	return rpc.Listen(rpc.ListenConfig{Path: path, Mode: l.Mode, Group: l.Group})
}

// awaitHooks returns when the first hooks are ready or have failed. It is for
// agents that are there already, in an inherited socket or on stdio: they are
// better kept a moment than told that a hook is still starting. Others see no
// hookd until it serves.
func (d *daemon) awaitHooks(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// Who is not ready is said in status, and to those who ask for it.
	_ = allReady(ctx, slices.Collect(maps.Values(d.current().hooks)))
}

func (i inherited) close() {
	for _, l := range i {
		l.Close()
	}
}

// tell sends lines to the service manager that wants to know, if there is one.
func (d *daemon) tell(lines ...string) {
	if d.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	if _, err := systemd.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		d.log.Warn("the service manager was not told", zap.Strings("what", lines), zap.Error(err))
	}
}

// keepInformed tells the service manager how hookd fares until ctx ends.
func (d *daemon) keepInformed(ctx context.Context) {
	if d.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	var watchdog sync.WaitGroup
	defer watchdog.Wait()
	interval, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		d.log.Warn("the watchdog is not fed", zap.Error(err))
	} else if interval > 0 {
		watchdog.Go(func() {
			feed(ctx, interval, d.canary, func() { d.tell(systemd.SdNotifyWatchdog) })
		})
	}
	for said := ""; ; {
		s := d.status()
		line := "STATUS=" + s.headline()
		switch {
		case s.Ready && !d.announced.Load():
			d.tell(systemd.SdNotifyReady, line)
			d.announced.Store(true)
		case line != said:
			d.tell(line)
		}
		said = line
		select {
		case <-d.news:
		case <-ctx.Done():
			return
		}
	}
}

// headline says in one line how hookd fares.
func (s *Status) headline() string {
	var waits, faults []string
	for _, h := range s.Hooks {
		switch h.State {
		case string(mount.Ready), stateDisabled, stateOnDemand:
		default:
			faults = append(faults, h.Name+" "+h.State)
			if h.Required && h.State != string(mount.Degraded) {
				waits = append(waits, h.Name)
			}
		}
	}
	line := fmt.Sprintf("generation %d, %d hooks", s.Generation, len(s.Hooks))
	if !s.Ready {
		line = "waiting for required hooks: " + strings.Join(waits, ", ") + "; " + line
	}
	if len(faults) > 0 {
		line += " (" + strings.Join(faults, ", ") + ")"
	}
	if s.Config.Error != "" {
		first, _, _ := strings.Cut(s.Config.Error, "\n")
		line += "; the config file was refused: " + first
	}
	return line
}

// somethingNew asks for a look at what the service manager should know.
func (d *daemon) somethingNew() {
	select {
	case d.news <- struct{}{}:
	default: // a look is due already
	}
}

// reloading tells the service manager that a reload begins; the function that
// it returns tells it that it has ended, whatever came of it. Before hookd was
// ready there is nothing to take back.
func (d *daemon) reloading() (done func()) {
	if !d.announced.Load() {
		return func() {}
	}
	var now unix.Timespec
	// It fails only for a clock that does not exist.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	d.tell(systemd.SdNotifyReloading, fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000))
	return func() { d.tell(systemd.SdNotifyReady) }
}

// canary fails when hookd does not answer itself on both sockets. A refusal of
// agents is an answer: there may be as many as it takes.
func (d *daemon) canary(ctx context.Context) error {
	err := greet(ctx, d.sockets.Agents)
	if _, refused := errors.AsType[*protocol.Error](err); err == nil || refused {
		_, err = askStatus(ctx, d.sockets.Control)
	}
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		d.log.Error("hookd does not answer itself; the service manager will start it anew when that lasts", zap.Error(err))
	}
	return err
}

// feed keeps the watchdog quiet while the canary comes back. It is sent three
// times per interval, so that one which comes back in time never feeds too late.
func feed(ctx context.Context, interval time.Duration, canary func(context.Context) error, watchdog func()) {
	pause := max(interval/3, time.Millisecond)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		test, cancel := context.WithTimeoutCause(ctx, pause, fmt.Errorf("not within %s", pause))
		if err := canary(test); err == nil && ctx.Err() == nil {
			watchdog()
		}
		cancel()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
