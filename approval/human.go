package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Human is the approver that asks people. It puts each call on a [Desk], sends
// a notification when its config names a command for that, and waits. Make it
// with [NewHuman] and close it.
//
// It observes session_end, with which the rules for a session end.
type Human struct {
	desk   *Desk
	notify *notifier // nil: nobody is notified
}

// HumanOptions are what a [Human] is made with.
type HumanOptions struct {
	// Name is the entry's.
	Name string
	// Config has the form that [ValidateHuman] wants.
	Config jsontext.Value
	// Folder is where a relative path of the command starts.
	Folder string
	// Notify runs a command once. Without it the config must not name one.
	Notify func(ctx context.Context, n *Notice) error
	// Log gets failures of the command; nil = none. Never payload.
	Log *zap.Logger
}

// humanConfig is the config of a [Human].
type humanConfig struct {
	// Notify is a command, argv, never a shell line, that is started for each
	// ticket and gets it as JSON on standard input; empty = none.
	Notify []string `json:"notify"`
	// PassEnv names variables that the command gets from hookd's own
	// environment, beside the few harmless ones.
	PassEnv []string `json:"pass_env"`
}

// ValidateHuman reports what is wrong in the config of a [Human]: an object
// with "notify" (a command as a list of words, started for each ticket) and
// "pass_env" (names of variables for it), both optional. The error is a
// *[builtin.ConfigError].
func ValidateHuman(config jsontext.Value) error {
	_, err := readHumanConfig(config)
	return err
}

func readHumanConfig(config jsontext.Value) (humanConfig, error) {
	var c humanConfig
	if err := builtin.ReadConfig(config, &c); err != nil {
		return c, err
	}
	switch {
	case len(c.Notify) > 0 && c.Notify[0] == "":
		return c, &builtin.ConfigError{Pointer: "/notify/0", Err: errors.New("the command is empty")}
	case len(c.Notify) == 0 && len(c.PassEnv) > 0:
		return c, &builtin.ConfigError{Pointer: "/pass_env", Err: errors.New("there is no notify whose command could get them")}
	}
	for i, name := range c.PassEnv {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return c, &builtin.ConfigError{Pointer: fmt.Sprintf("/pass_env/%d", i), Err: errors.New("this is no name of a variable")}
		}
	}
	return c, nil
}

// NewHuman returns an approver that asks people at this desk. The caller closes
// it. An error about the config is a *[builtin.ConfigError].
func NewHuman(desk *Desk, o HumanOptions) (*Human, error) {
	c, err := readHumanConfig(o.Config)
	if err != nil {
		return nil, err
	}
	h := &Human{desk: desk}
	if len(c.Notify) > 0 {
		if o.Notify == nil {
			return nil, &builtin.ConfigError{Pointer: "/notify", Err: errors.New("commands can't be started here")}
		}
		h.notify = newNotifier(desk, &o, &c)
	}
	return h, nil
}

// Approve asks a person and waits for the answer; see [Desk.Ask].
func (h *Human) Approve(ctx context.Context, req *protocol.Request) (protocol.Approval, error) {
	var opened func(*Ticket)
	if h.notify != nil {
		opened = h.notify.tell
	}
	return h.desk.Ask(ctx, req, opened)
}

// Observe ends the rules of a session that is over.
func (h *Human) Observe(_ context.Context, ev *hook.Event) error {
	if ev.Kind == protocol.EventSessionEnd {
		h.desk.EndSession(protocol.MetaString(ev.Meta, "session_id"))
	}
	return nil
}

// Remote implements [hook.Remote]: who is asked is elsewhere, and the desk
// keeps the timeout itself.
func (*Human) Remote() {}

// Close ends the notifications that are under way. Calls must have ended.
func (h *Human) Close() error {
	if h.notify != nil {
		h.notify.close()
	}
	return nil
}
