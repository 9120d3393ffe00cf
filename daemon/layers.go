package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/commands"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/trust"
)

// layersEvery is how often the files of command hooks are looked at.
const layersEvery = time.Second

// TrustList is where hookd remembers which hook files of projects are trusted;
// "" where no folder for its state is known.
func TrustList(getenv func(string) string) string {
	if dir := client.StateFolder(getenv); dir != "" {
		return filepath.Join(dir, "trusted.json")
	}
	return ""
}

// layered are the command hooks of a set: those of files, and the one that
// stands for all projects.
type layered struct {
	files []commands.Loaded
	hooks []*hook.Registration
	// projects is nil when no file of a project counts.
	projects *commands.Projects
	paths    []string
}

// same reports whether the files are as they were.
func (l *layered) same(o *layered) bool {
	return slices.EqualFunc(l.files, o.files, func(a, b commands.Loaded) bool {
		return a.Path == b.Path && a.SHA256 == b.SHA256 && a.Layer == b.Layer
	}) && slices.Equal(l.paths, o.paths)
}

func layerFiles(l config.Layers) []commands.Layered {
	return []commands.Layered{
		{Layer: hook.LayerOrganisation, Paths: l.Organisation},
		{Layer: hook.LayerConfig, Paths: l.Config},
		{Layer: hook.LayerUser, Paths: l.User},
	}
}

// loadLayers reads the files of command hooks. was is what runs: a project
// hook over the same paths stays.
func (d *daemon) loadLayers(cfg *config.Config, was *layered) (layered, error) {
	files, err := commands.Load(layerFiles(cfg.Layers)...)
	if err != nil {
		return layered{}, fmt.Errorf("command hooks: %w", err)
	}
	l := layered{files: files, paths: cfg.Layers.Project}
	if l.same(was) {
		return *was, nil
	}
	l.hooks = commands.Registrations(files, d.scripts)
	if slices.Equal(l.paths, was.paths) {
		l.projects = was.projects
	} else if len(l.paths) > 0 {
		l.projects = commands.NewProjects(commands.ProjectOptions{
			Paths: l.paths, Trust: &trust.Store{Path: TrustList(d.Getenv)}, Run: d.scripts, Log: d.log.Named("project"),
		})
	}
	for _, f := range files {
		for _, w := range f.Warnings {
			d.log.Warn("command hooks: " + w)
		}
	}
	return l, nil
}

// registrations are all of them.
func (l *layered) registrations() []*hook.Registration {
	if l.projects == nil {
		return l.hooks
	}
	if p := l.projects.Hook(); p != nil {
		return append(slices.Clone(l.hooks), p)
	}
	return l.hooks
}

// watchLayers asks for a reload when a file of command hooks comes, goes or
// changes. It looks instead of being told: the files are few, and most are not
// there.
func (d *daemon) watchLayers(ctx context.Context) {
	tick := time.NewTicker(layersEvery)
	defer tick.Stop()
	stamp := func() string {
		var b strings.Builder
		for _, l := range layerFiles(d.current().config.Layers) {
			for _, path := range l.Paths {
				info, err := os.Stat(path)
				if err != nil {
					b.WriteString("-;")
					continue
				}
				inode := uint64(0)
				if st, ok := info.Sys().(*syscall.Stat_t); ok {
					inode = st.Ino
				}
				fmt.Fprintf(&b, "%s,%d,%d,%v,%d;", path, info.ModTime().UnixNano(), info.Size(), info.Mode(), inode)
			}
		}
		return b.String()
	}
	seen := stamp()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := stamp()
			if now == seen {
				continue
			}
			// What went wrong is in the log and in status; one that is busy is asked
			// again a second later.
			_, err := d.ask(ctx, func(ctx context.Context) (*ReloadResult, error) {
				return d.reloadAndTell(ctx, "a file of command hooks changed")
			})
			if err == nil || !isBusy(err) {
				seen = now
			}
		}
	}
}

func isBusy(err error) bool {
	e, ok := err.(*protocol.Error)
	return ok && e.Code == protocol.CodeOverloaded
}

// scriptProgress tells observers what a command hook says that it does.
func (d *daemon) scriptProgress(name, callID, text string) {
	d.manager.Publish(nil, protocol.NewHookdEvent(protocol.EventHookProgress, nil, protocol.Object{
		{Name: "hook", Value: protocol.Quote(name)},
		{Name: "call_id", Value: protocol.Quote(callID)},
		{Name: "text", Value: protocol.Quote(text)},
	}.AppendJSON(nil)))
	d.log.Debug("command hook", zap.String("hook", name), zap.String("status", text))
}
