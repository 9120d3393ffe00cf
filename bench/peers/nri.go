package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	nrilog "github.com/containerd/nri/pkg/log"
	"github.com/containerd/nri/pkg/stub"
)

// runtimePlugin is half of T13: what one more plugin costs a container runtime
// that speaks with it over ttrpc, beside what one more hook costs hookd.
func runtimePlugin(b *bench) (rows []row, err error) {
	nrilog.Set(silent{})
	err = b.onOneCore(func() (err error) { rows, err = b.besideRuntime(); return err })
	return rows, err
}

func (b *bench) besideRuntime() ([]row, error) {
	var theirs []*series
	for _, n := range []int{1, 2} {
		r, err := b.startRuntime(n)
		if r != nil {
			defer r.stop()
		}
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, &series{do: r.create})
	}
	us, err := b.oneMore(theirs...)
	if err != nil {
		return nil, err
	}
	return []row{times("T13", "one more hook process, against one more plugin of containerd/nri (ttrpc)", us, theirs[1].p(0.5)-theirs[0].p(0.5), 0.5)}, nil
}

// runtime is what asks plugins, as containerd does, and its plugins.
type runtime struct {
	ctx context.Context
	*adaptation.Adaptation
	request *adaptation.CreateContainerRequest
	stdins  []*os.File
	plugins []*os.Process
}

// startRuntime starts so many plugins as processes and waits until they take
// part.
func (b *bench) startRuntime(n int) (*runtime, error) {
	dir := filepath.Join(b.folder, fmt.Sprintf("nri%d", n))
	for _, folder := range []string{"plugins", "config"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	socket := filepath.Join(dir, "s")
	a, err := adaptation.New("peers", "1",
		func(ctx context.Context, sync adaptation.SyncCB) error { _, err := sync(ctx, nil, nil); return err },
		func(context.Context, []*adaptation.ContainerUpdate) ([]*adaptation.ContainerUpdate, error) {
			return nil, nil
		},
		adaptation.WithPluginPath(filepath.Join(dir, "plugins")), adaptation.WithPluginConfigPath(filepath.Join(dir, "config")),
		adaptation.WithSocketPath(socket))
	if err != nil {
		return nil, err
	}
	if err := a.Start(); err != nil {
		return nil, err
	}
	r := &runtime{ctx: b.ctx, Adaptation: a, request: &adaptation.CreateContainerRequest{
		Pod:       &api.PodSandbox{Id: "pod"},
		Container: &api.Container{Id: "container", PodSandboxId: "pod", Args: []string{"bash", "-c", command()}},
	}}
	for i := range n {
		p, stdin, err := b.spawn(b.self, nil, asPart, "nri", socket, fmt.Sprintf("%02d", i))
		if err != nil {
			return r, err
		}
		r.plugins, r.stdins = append(r.plugins, p), append(r.stdins, stdin)
	}
	return r, b.until("the plugins take part", func() bool { return r.asked() == n })
}

// asked is how many plugins are asked about a container: in that of this name
// each leaves its mark.
func (r *runtime) asked() int {
	answer, err := r.CreateContainer(r.ctx, &adaptation.CreateContainerRequest{
		Pod: &api.PodSandbox{Id: "pod"}, Container: &api.Container{Id: "container", PodSandboxId: "pod", Name: rollCall},
	})
	if err != nil {
		return 0
	}
	return len(answer.GetAdjust().GetAnnotations())
}

const rollCall = "roll-call"

func (r *runtime) create() error {
	_, err := r.CreateContainer(r.ctx, r.request)
	return err
}

func (r *runtime) stop() {
	for i, p := range r.plugins {
		r.stdins[i].Close()
		_ = p.Kill()
		_, _ = p.Wait()
	}
	r.Stop()
}

// plugin is one that changes nothing, but tells who it is when it is asked.
type plugin struct{ index string }

// CreateContainer implements the plugin's part of NRI.
func (p plugin) CreateContainer(_ context.Context, _ *api.PodSandbox, c *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	if c.GetName() != rollCall {
		return nil, nil, nil
	}
	here := &api.ContainerAdjustment{}
	here.AddAnnotation("here-"+p.index, "yes")
	return here, nil, nil
}

func beRuntimePlugin(socket, index string) error {
	nrilog.Set(silent{})
	s, err := stub.New(plugin{index}, stub.WithPluginName("peer"), stub.WithPluginIdx(index), stub.WithSocketPath(socket))
	if err != nil {
		return err
	}
	return s.Run(context.Background())
}

// silent logs nothing.
type silent struct{}

func (silent) Debugf(context.Context, string, ...any) {}
func (silent) Infof(context.Context, string, ...any)  {}
func (silent) Warnf(context.Context, string, ...any)  {}
func (silent) Errorf(context.Context, string, ...any) {}
