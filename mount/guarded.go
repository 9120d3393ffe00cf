package mount

import (
	"context"
	"fmt"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Guard makes a registration of the canary's hook listen to the canary. It
// fails when the hook is not asked where its canary is.
func (c *Canary) Guard(r *hook.Registration) error {
	if stage := c.config.Request.Stage.Name; !r.Handles(stage) {
		return fmt.Errorf("hook %q is not asked at %s, where its canary is: it has left that stage out, or can't judge there", r.Name, stage)
	}
	if r.Roles.Interceptor != nil {
		r.Roles.Interceptor = &guardedInterceptor{c, r.Roles.Interceptor}
	}
	if r.Roles.Approver != nil {
		r.Roles.Approver = &guardedApprover{c, r.Roles.Approver}
	}
	return nil
}

// guardedInterceptor is an interceptor with a canary.
type guardedInterceptor struct {
	canary *Canary
	inner  hook.Interceptor
}

// Intercept implements [hook.Interceptor].
func (g *guardedInterceptor) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	g.canary.enter()
	defer g.canary.leave()
	d, err := g.inner.Intercept(ctx, req)
	if err != nil {
		return d, err
	}
	doubt := g.canary.doubt(ctx, holdsBack(req.Stage, d.Decided()))
	switch {
	case doubt == nil:
		return d, nil
	case !holdsBack(req.Stage, d.Decided()):
		return protocol.Decision{}, doubt
	}
	// What it would change, or hand on, is not believed.
	d.Subject, d.Patch, d.Respond, d.Inject, d.AddContext, d.State, d.JumpTo = nil, nil, nil, nil, nil, nil, ""
	return d, nil
}

// holdsBack reports whether a verb holds a call back at this stage.
func holdsBack(stage *protocol.StageInfo, verb protocol.Action) bool {
	return stage.Allows(verb) && (verb.Stops() || verb == protocol.ActionAsk)
}

// guardedApprover is an approver with a canary.
type guardedApprover struct {
	canary *Canary
	inner  hook.Approver
}

// Approve implements [hook.Approver].
func (g *guardedApprover) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	g.canary.enter()
	defer g.canary.leave()
	a, err := g.inner.Approve(ctx, req)
	if err != nil || !a.Approved {
		return a, err
	}
	if doubt := g.canary.doubt(ctx, false); doubt != nil {
		return protocol.Approval{}, doubt
	}
	return a, nil
}

// doubt returns why the hook is not to be believed, or nil. While its present
// life has not been asked yet it waits for that, unless the caller can do
// without.
func (c *Canary) doubt(ctx context.Context, hurry bool) error {
	for {
		life, changed := c.hook.life()
		c.mu.Lock()
		v, settled := c.verdict, c.settled
		c.mu.Unlock()
		if hurry || life == nil || v.life == life {
			if err := v.err(c.config); err != nil {
				return &hook.Failure{Outcome: protocol.OutcomeCanaryFailed, Detail: err.Error(), Err: err}
			}
			return nil
		}
		select {
		case <-settled:
		case <-changed:
		case <-c.done:
			hurry = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *Canary) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside++
}

// leave ends what enter began, and tells when it was the last one.
func (c *Canary) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inside--; c.inside == 0 {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}
