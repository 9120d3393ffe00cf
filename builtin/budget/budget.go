package budget

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/sessions"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Budget is an interceptor that counts what agents use and stops them, or asks,
// when a limit is reached. Make it with [New] and close it.
type Budget struct {
	config *config
	ledger *Ledger
	log    *zap.Logger
	path   string // "" = no file

	mu       sync.Mutex
	unpriced map[string]bool // models that were logged

	stop  chan struct{}
	saver sync.WaitGroup
}

// saveEvery is how often the ledger is written, when it has changed.
const saveEvery = time.Second

// New makes a Budget that counts in ledger. folder is where a relative path of
// the file starts. The caller closes the Budget. The error is a
// *[builtin.ConfigError].
func New(config jsontext.Value, folder string, ledger *Ledger, log *zap.Logger) (*Budget, error) {
	c, err := readConfig(config)
	if err != nil {
		return nil, err
	}
	if c.Session.none() && c.Day.none() {
		log.Warn("the config of the hook has no limit: it stops nothing")
	}
	b := &Budget{config: c, ledger: ledger, log: log, unpriced: map[string]bool{}, stop: make(chan struct{})}
	if c.File == "" {
		return b, nil
	}
	if b.path = c.File; !filepath.IsAbs(b.path) {
		b.path = filepath.Join(folder, b.path)
	}
	if err := ledger.load(folder, b.path); err != nil {
		return nil, problem("/file", "%w", err)
	}
	if err := ledger.save(b.path); err != nil {
		return nil, problem("/file", "%w; its folder must exist and be writable", err)
	}
	b.saver.Go(b.keepSaved)
	return b, nil
}

// keepSaved writes the ledger now and then.
func (b *Budget) keepSaved() {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-tick.C:
			err := b.ledger.save(b.path)
			if err != nil && !failing {
				b.log.Error("the budget goes on counting, but a restart would lose what was used", zap.Error(err))
			} else if err == nil && failing {
				b.log.Info("what was used is saved again")
			}
			failing = err != nil
		case <-b.stop:
			return
		}
	}
}

// Close writes the ledger for the last time.
func (b *Budget) Close() error {
	close(b.stop)
	b.saver.Wait()
	if b.path == "" {
		return nil
	}
	return b.ledger.save(b.path)
}

// Stages are where a Budget is asked.
func (*Budget) Stages() []protocol.Stage {
	return []protocol.Stage{protocol.StageUserMessage, protocol.StageBeforeLLM, protocol.StageAfterLLM, protocol.StageBeforeTool}
}

// Events are what a Budget is told.
func Events() []string { return []string{string(protocol.EventLLMResponse)} }

// Quick marks that a Budget waits for nothing: its file is written by another
// goroutine.
func (*Budget) Quick() {}

// Observe counts what an agent tells of a model's answer.
func (b *Budget) Observe(_ context.Context, ev *hook.Event) error {
	if ev.Kind != protocol.EventLLMResponse || ev.Source != "agent" {
		return nil // hookd makes the event of the stage, where it was counted
	}
	u, ok := sessions.ReadUsage(ev.Payload)
	if !ok {
		return nil
	}
	b.write(&entry{key: sessions.Key(ev.Meta), model: first(modelOf(ev.Payload), protocol.MetaString(ev.Meta, "model")), usage: &u, event: true})
	return nil
}

// Intercept counts, and stops a call for which nothing is left.
func (b *Budget) Intercept(_ context.Context, req *protocol.Request) (protocol.Decision, error) {
	key := sessions.Key(req.Meta)
	more, model := Used{}, req.MetaString("model")
	switch req.Stage.Name {
	case protocol.StageBeforeTool:
		more.Calls = 1
	case protocol.StageBeforeLLM:
		more.ModelCalls = 1
		if v := req.Subject.Get("model"); v != nil {
			model = protocol.Unquote(v)
		}
	case protocol.StageAfterLLM:
		if !req.DryRun {
			response := req.Subject.Get("response")
			e := &entry{key: key, model: first(modelOf(response), model)}
			if u, ok := sessions.ReadUsage(response); ok {
				e.usage = &u
			}
			b.write(e)
		}
		return protocol.Decision{}, nil
	case protocol.StageUserMessage:
		if !req.DryRun {
			b.write(&entry{key: key, idle: true, model: model})
		}
		return protocol.Decision{}, nil
	default:
		return protocol.Decision{}, nil
	}
	return b.judge(req, key, model, more), nil
}

// judge says whether a call may go on, and counts it then.
func (b *Budget) judge(req *protocol.Request, key, model string, more Used) protocol.Decision {
	now := time.Now()
	var session, day Used
	var unpriced string
	if req.DryRun {
		session, day, unpriced = b.ledger.look(key, now)
	} else {
		session, day, unpriced = b.write(&entry{key: key, model: model})
	}
	var d protocol.Decision
	if unpriced != "" && (b.config.Session.Cost != nil || b.config.Day.Cost != nil) {
		d.Warnings = append(d.Warnings, fmt.Sprintf("the model %s has no price: what it uses does not count as cost", unpriced))
	}
	c := b.ledger.callOf(req, now)
	if b.ledger.counted(key, &c, req.DryRun) {
		return d
	}
	over := first(b.config.reached("session", &b.config.Session, &session, &more), b.config.reached("day", &b.config.Day, &day, &more))
	asks := b.config.Action == actionAsk
	switch {
	case over == "":
	case !asks:
		d.Action, d.Reason = protocol.ActionDeny, over
		return d
	case req.Stage.Allows(protocol.ActionAsk):
		d.Action, d.Reason, d.Permission = protocol.ActionAsk, over, "budget"
	default:
		d.Warnings = append(d.Warnings, over)
	}
	if !req.DryRun {
		b.ledger.call(key, &c, more)
	}
	return d
}

// write writes a line into the ledger.
func (b *Budget) write(e *entry) (session, day Used, unpriced string) {
	e.now = time.Now()
	if len(b.config.Prices) > 0 {
		e.price = b.config.priceOf
	}
	session, day, unpriced = b.ledger.write(e)
	if unpriced != "" && e.usage != nil {
		b.noPrice(unpriced)
	}
	return session, day, unpriced
}

// noPrice logs a model without price, once.
func (b *Budget) noPrice(model string) {
	const most = 100
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.unpriced[model] && len(b.unpriced) < most {
		b.unpriced[model] = true
		b.log.Warn("a model has no price in the config: what it uses does not count as cost", zap.String("model", model))
	}
}

// reached says which limit leaves no room for a call, or "".
func (c *config) reached(scope string, l *limits, u, more *Used) string {
	const spent = "the budget of the %s is used up: %s of %s %s"
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	number := func(n float64, digits int) string { return strconv.FormatFloat(n, 'f', digits, 64) }
	switch minutes := float64(u.Millis) / 60_000; {
	case l.Calls != nil && more.Calls > 0 && u.Calls >= *l.Calls:
		return fmt.Sprintf(spent, scope, count(u.Calls), count(*l.Calls), "tool calls")
	case l.ModelCalls != nil && more.ModelCalls > 0 && u.ModelCalls >= *l.ModelCalls:
		return fmt.Sprintf(spent, scope, count(u.ModelCalls), count(*l.ModelCalls), "model calls")
	case l.Tokens != nil && u.Tokens >= *l.Tokens:
		return fmt.Sprintf(spent, scope, count(u.Tokens), count(*l.Tokens), "tokens")
	case l.Cost != nil && u.Cost >= *l.Cost:
		return strings.TrimSpace(fmt.Sprintf(spent, scope, number(u.Cost, 4), number(*l.Cost, -1), first(c.Currency, "of cost")))
	case l.Minutes != nil && minutes >= *l.Minutes:
		return fmt.Sprintf(spent, scope, number(minutes, 1), number(*l.Minutes, -1), "minutes")
	}
	return ""
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
