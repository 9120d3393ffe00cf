package approval

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/protocol"
)

const (
	// noticeQueue is how many tickets wait for their notification at most.
	noticeQueue = 64
	// noticePause is the shortest time between two notifications.
	noticePause = time.Second
	// noticeTimeout is how long the command may take.
	noticeTimeout = 10 * time.Second
)

// Notice is a command that tells people of a ticket.
type Notice struct {
	// Name is the hook's whose command it is.
	Name string
	// Argv is the command, never a shell line, and Dir where a relative path of
	// it starts.
	Argv []string
	Dir  string
	// PassEnv are names of variables that it gets from hookd's own environment.
	PassEnv []string
	// Stdin is the ticket as JSON on one line.
	Stdin []byte
}

// notifier sends one notification after the other, in the order of the tickets.
type notifier struct {
	desk   *Desk
	log    *zap.Logger
	notice Notice
	run    func(ctx context.Context, n *Notice) error

	ctx    context.Context
	cancel context.CancelFunc
	queue  chan *Ticket
	wg     sync.WaitGroup
}

// newNotifier starts a goroutine; close ends it.
func newNotifier(desk *Desk, o *HumanOptions, c *humanConfig) *notifier {
	n := &notifier{
		desk: desk, log: o.Log, run: o.Notify, queue: make(chan *Ticket, noticeQueue),
		notice: Notice{Name: o.Name, Argv: c.Notify, Dir: o.Folder, PassEnv: c.PassEnv},
	}
	if n.log == nil {
		n.log = zap.NewNop()
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.wg.Go(n.work)
	return n
}

func (n *notifier) close() {
	n.cancel()
	n.wg.Wait()
}

// tell queues a notification and never waits.
func (n *notifier) tell(t *Ticket) {
	select {
	case n.queue <- t:
	default:
		n.desk.noticed(errDropped)
		n.log.Warn("a notification was left out: too many tickets at once", zap.String("ticket", t.ID))
	}
}

var errDropped = errors.New("dropped")

func (n *notifier) work() {
	for {
		select {
		case t := <-n.queue:
			if !n.desk.isOpen(t.ID) {
				continue // it was answered while others were told of theirs
			}
			n.send(t)
		case <-n.ctx.Done():
			return
		}
		select {
		case <-time.After(noticePause):
		case <-n.ctx.Done():
			return
		}
	}
}

func (n *notifier) send(t *Ticket) {
	ctx, cancel := context.WithTimeoutCause(n.ctx, noticeTimeout, errors.New("it took longer than "+noticeTimeout.String()))
	defer cancel()
	notice := n.notice
	notice.Stdin = append(t.json(), '\n')
	err := n.run(ctx, &notice)
	if n.ctx.Err() != nil {
		return // cut short by close
	}
	n.desk.noticed(err)
	if err != nil {
		n.log.Error("a notification failed; the approval stays open", zap.String("ticket", t.ID), zap.String("command", n.notice.Argv[0]), zap.Error(err))
	}
}

// json is the ticket as a command sees it.
func (t *Ticket) json() []byte {
	o := protocol.Object{{Name: "id", Value: protocol.Quote(t.ID)}}
	add := func(name, value string) {
		if value != "" {
			o = append(o, protocol.Member{Name: name, Value: protocol.Quote(value)})
		}
	}
	add("tool", t.Tool)
	o = append(o, protocol.Member{Name: "arguments", Value: protocol.Compact(t.Arguments)})
	for _, m := range [][2]string{
		{"message", t.Message}, {"asked_by", t.AskedBy}, {"agent", t.Agent}, {"session", t.Session}, {"task", t.Task},
		{"user", t.User}, {"node", t.Node}, {"cwd", t.CWD}, {"digest", t.Digest},
	} {
		add(m[0], m[1])
	}
	add("opened", t.Opened.UTC().Format(time.RFC3339))
	add("expires", t.Expires.UTC().Format(time.RFC3339))
	return jsontext.Value(o.AppendJSON(nil))
}

// isOpen reports whether somebody can still answer.
func (d *Desk) isOpen(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[id] != nil
}

// noticed counts how a notification went.
func (d *Desk) noticed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		d.stats.Notified++
	case errors.Is(err, errDropped):
		d.stats.NoticesDropped++
	default:
		d.stats.NoticesFailed++
	}
}
