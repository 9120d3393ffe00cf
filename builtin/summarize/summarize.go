package summarize

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/builtin/conversation"
	"github.com/hookd/hookd/builtin/sessions"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// Run runs a program with its arguments, gives it stdin, and returns what it
// printed. It is an error when the program fails or ctx ends.
type Run func(ctx context.Context, argv []string, stdin []byte) ([]byte, error)

// Metrics are told what happens. A nil one is not.
type Metrics struct {
	Triggered    func()                // hook_summarization_triggered_total
	TokensBefore func(tokens int)      // hook_summarization_tokens_before
	TokensAfter  func(tokens int)      // hook_summarization_tokens_after
	Fallback     func()                // hook_summarization_fallback_total
	Duration     func(d time.Duration) // hook_summarization_duration_ms
}

// Table holds the last summary of each session.
type Table = sessions.Table[sessions.Agents[memory]]

// NewTable returns an empty table for at most this many sessions; 0 means
// [sessions.Most].
func NewTable(most int) *Table { return sessions.New[sessions.Agents[memory]](most) }

// memory is the summary that a session has, and of what.
type memory struct {
	turn     string // in which it was made; "" = not said
	messages int    // how many it stands for
	digest   [sha256.Size]byte
	with     []conversation.Message
}

// Summarizer is an interceptor of requests to models. Make it with [New] and
// close it.
type Summarizer struct {
	config  *config
	folder  string
	table   *Table
	run     Run
	client  *http.Client
	metrics Metrics
	log     *zap.Logger
	counter *conversation.Counter
	asked   sync.WaitGroup // those who make summaries
}

// New makes a Summarizer. folder is where a relative path of a key's file
// starts. run is used for a command, client for an endpoint. The caller closes
// it. The error is a *[builtin.ConfigError].
func New(config jsontext.Value, folder string, table *Table, run Run, client *http.Client, metrics Metrics, log *zap.Logger) (*Summarizer, error) {
	c, err := readConfig(config)
	if err != nil {
		return nil, err
	}
	if _, err := c.Endpoint.key(folder); err != nil {
		return nil, err
	}
	return &Summarizer{
		config: c, folder: folder, table: table, run: run, client: client, metrics: metrics, log: log, counter: conversation.NewCounter(),
	}, nil
}

// Close waits for programs and endpoints that were too late; their contexts have
// ended.
func (s *Summarizer) Close() error {
	s.asked.Wait()
	return nil
}

// Stages are where a Summarizer is asked.
func (*Summarizer) Stages() []protocol.Stage { return []protocol.Stage{protocol.StageBeforeLLM} }

// Events are what a Summarizer is told.
func Events() []string { return []string{string(protocol.EventSessionEnd)} }

// Observe forgets sessions that are over.
func (s *Summarizer) Observe(_ context.Context, ev *hook.Event) error {
	if ev.Kind == protocol.EventSessionEnd {
		s.table.Drop(sessions.Key(ev.Meta))
	}
	return nil
}

// stateKey is the key of state that says that the conversation was summarized
// in this loop.
const stateKey = "summarized"

// Intercept puts a summary in the place of the middle of a conversation that is
// too long.
func (s *Summarizer) Intercept(ctx context.Context, req *protocol.Request) (protocol.Decision, error) {
	if req.Stage.Name != protocol.StageBeforeLLM {
		return protocol.Decision{}, nil
	}
	list := conversation.Read(req.Subject.Get("messages"))
	long, err := s.counter.Exceeds(ctx, list, s.config.Threshold)
	if err != nil || !long {
		return protocol.Decision{}, err
	}
	turn := req.MetaString("turn_id")
	done := string(req.State.Get(stateKey)) == "true"
	own, rest := list, len(list)
	if again, behind, lastTurn := s.again(req.Meta, list); again != nil {
		// The agent has kept its own messages: the summary of their beginning holds.
		list, rest, done = again, behind, done || turn != "" && turn == lastTurn
		if long, err = s.counter.Exceeds(ctx, list, s.config.Threshold); err != nil {
			return protocol.Decision{}, err
		}
		if !long || done {
			return decision(req, list, "the summary that was made before took the place of its messages"), nil
		}
	} else if done || turn != "" && turn == lastTurn {
		return protocol.Decision{}, nil // once per loop
	}
	p := s.split(list)
	switch {
	case p.nothing() || len(p.tail) > rest:
		text := fmt.Sprintf("the conversation has more than %d tokens, but nothing between its system messages and the last %d messages could be summarized", s.config.Threshold, s.config.KeepLast)
		s.log.Warn(text, zap.String("session", req.MetaString("session_id")))
		return protocol.Decision{Warnings: []string{text}}, nil
	case req.DryRun:
		return protocol.Decision{Warnings: []string{fmt.Sprintf("%d messages would be summarized", len(p.middle))}}, nil
	}
	d, with, err := s.shorten(ctx, req, list, p)
	if with != nil {
		s.remember(req.Meta, turn, own[head(own):len(own)-len(p.tail)], with)
	}
	return d, err
}

// again puts the last summary of a session in its place, when the conversation
// begins with the messages that it was made of, and returns how many messages
// stand behind it. Without that out is nil. The turn is that of the summary.
func (s *Summarizer) again(meta protocol.Object, list []conversation.Message) (out []conversation.Message, rest int, turn string) {
	var m memory
	s.table.Look(sessions.Key(meta), func(a *sessions.Agents[memory]) {
		if last := (*a)[sessions.Agent(meta)]; last != nil {
			m = *last // replaced as a whole, never changed
		}
	})
	from := head(list)
	to := from + m.messages
	if m.messages == 0 || to > len(list) || digest(list[from:to]) != m.digest {
		return nil, 0, m.turn
	}
	rest = len(list) - to
	if conversation.Tail(list, rest) != to { // a call would lose its result
		return nil, 0, m.turn
	}
	return join(list[:from], m.with, list[to:]), rest, m.turn
}

// shorten makes the summary, or leaves messages out when there is none in time.
// It also returns what it has put in the place of the middle.
func (s *Summarizer) shorten(ctx context.Context, req *protocol.Request, list []conversation.Message, p parts) (d protocol.Decision, with []conversation.Message, err error) {
	began := time.Now()
	before, err := s.counter.Count(ctx, list)
	if err != nil {
		return d, nil, err
	}
	count(s.metrics.Triggered)
	session := zap.String("session", req.MetaString("session_id"))
	reason := fmt.Sprintf("a summary took the place of %d messages", len(p.middle))
	summary, late := s.inTime(ctx, req, transcript(p.middle))
	switch {
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return d, nil, context.Cause(ctx) // nobody waits any more
	case late != nil:
		reason = fmt.Sprintf("%d messages were left out, because no summary could be made", len(p.middle))
		s.log.Warn("no summary could be made: messages are left out instead", session, zap.Int("messages", len(p.middle)), zap.Error(late))
		count(s.metrics.Fallback)
		with = join(p.systems, p.without(s.config.Threshold))
	default:
		with = join(p.systems, []conversation.Message{conversation.New(s.config.Role, summary)})
	}
	out := join(p.head, with, p.tail)
	// Nearly all of it was counted before, so this is quick.
	after, err := s.counter.Count(context.WithoutCancel(ctx), out)
	if err != nil {
		return d, nil, err
	}
	tell(s.metrics.TokensBefore, before)
	tell(s.metrics.TokensAfter, after)
	tell(s.metrics.Duration, time.Since(began))
	s.log.Info("a conversation was shortened", session, zap.Int("tokens_before", before), zap.Int("tokens_after", after))
	if d = decision(req, out, reason); late != nil {
		d.Warnings = []string{reason}
	}
	return d, with, nil
}

// remember keeps what took the place of messages, for the next request of the
// session. A copy of it: a request's memory is not to be held.
func (s *Summarizer) remember(meta protocol.Object, turn string, covered, with []conversation.Message) {
	kept := conversation.Read(jsontext.Value(strings.Clone(string(conversation.Value(with)))))
	s.table.Do(sessions.Key(meta), func(a *sessions.Agents[memory]) {
		*a.Of(sessions.Agent(meta)) = memory{turn: strings.Clone(turn), messages: len(covered), digest: digest(covered), with: kept}
	})
}

// ownLimit is how long a summary may take where nobody says.
const ownLimit = 20 * time.Second

// inTime asks for a summary, and gives up early enough for another answer.
func (s *Summarizer) inTime(ctx context.Context, req *protocol.Request, conversation string) (string, error) {
	left := ownLimit
	if req.Timeout > 0 {
		left = req.Timeout
	}
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	limit := left - min(max(left/10, 200*time.Millisecond), time.Second, left/2)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit.Round(time.Millisecond)))
	defer cancel()
	type reply struct {
		text string
		err  error
	}
	done := make(chan reply, 1)
	s.asked.Go(func() {
		text, err := s.summary(ctx, conversation)
		done <- reply{text, err}
	})
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// decision answers with messages.
func decision(req *protocol.Request, list []conversation.Message, reason string) protocol.Decision {
	d := text.Change(req.Stage, req.Subject.Get("messages"), conversation.Value(list))
	d.Reason = reason
	d.State = protocol.Object{{Name: stateKey, Value: jsontext.Value(strconv.FormatBool(true))}}
	return d
}

func count(f func()) {
	if f != nil {
		f()
	}
}

func tell[T any](f func(T), v T) {
	if f != nil {
		f(v)
	}
}
