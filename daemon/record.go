package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/hookd/hookd/approval"
	"github.com/hookd/hookd/builtin/pii"
	"github.com/hookd/hookd/client"
	"github.com/hookd/hookd/config"
	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/record"
	"github.com/hookd/hookd/rpc"
)

const (
	// recordWait is how long a start waits for another hookd, which is about to
	// end, to give the record free: as long as that one's shutdown may take.
	recordWait = 11 * time.Second
	// recordAgain is how often it looks.
	recordAgain = 100 * time.Millisecond
	// recordNumbers is how many hookds may serve one agent each beside another
	// that has the sockets, every one with a record of its own.
	recordNumbers = 64
	// maxTallies is how many sessions are counted at once.
	maxTallies = 4096
	// denialsEvery is how often a user who is turned away is recorded.
	denialsEvery = time.Second
)

// book is the durable record with what hookd tells it beside the decisions. It
// outlives reloads. Its methods may be used while nothing is kept.
type book struct {
	store *record.Store // nil: nothing is kept
	mask  func(jsontext.Value) jsontext.Value
	log   *zap.Logger

	mu      sync.Mutex
	tallies map[string]*tally
	denied  map[int]*denials // by user
}

func newBook() *book {
	return &book{log: zap.NewNop(), tallies: map[string]*tally{}, denied: map[int]*denials{}}
}

// recordName is the file in the state folder.
const recordName = "record.db"

// RecordPath returns where a hookd with this config, which listens to agents at
// socket, keeps its record; "" when no folder is known.
func RecordPath(cfg *config.Config, socket string, getenv func(string) string) string {
	dir := client.StateFolder(getenv)
	switch {
	case cfg.Record.Path != "":
		return cfg.Record.Path
	case dir == "" && socket == "":
		return ""
	case dir == "":
		dir = filepath.Dir(socket)
	}
	return filepath.Join(dir, recordName)
}

// openBook opens the record at path, unless the config says that nothing is
// kept.
func (d *daemon) openBook(cfg *config.Config, path string) error {
	b := d.book
	b.log = d.log.Named("record")
	if cfg.Record.Mode == string(record.ModeOff) {
		return nil
	}
	if path == "" {
		return errors.New("no folder for the record is known: set record.path in the config, or $HOME")
	}
	mask, err := pii.Masker(nil, nil, "", nil)
	if err != nil {
		return fmt.Errorf("mask of the record: %w", err)
	}
	b.mask = func(v jsontext.Value) jsontext.Value { return mask(v) }
	b.store, err = record.Open(record.Options{
		Path: path, Mode: record.Mode(cfg.Record.Mode), OnFailure: record.OnFailure(cfg.Record.OnFailure),
		KeepDays: cfg.Record.KeepDays, MaxBytes: cfg.Record.MaxBytes, BeforeAfter: cfg.Record.BeforeAfter, Mask: b.mask, Log: b.log,
	})
	return err
}

// isTaken reports whether another hookd writes the record. Package record has
// no name for that error.
func isTaken(err error) bool { return err != nil && strings.Contains(err.Error(), "another hookd") }

// awaitBook opens a record that another hookd writes, once that one has ended.
// Who calls it has the sockets, so the other one is most likely on its way out.
func (d *daemon) awaitBook(ctx context.Context, cfg *config.Config, taken error) error {
	path := RecordPath(cfg, d.sockets.Agents, d.Getenv)
	d.log.Info("another hookd still writes the record; waiting for its end", zap.String("record", path), zap.Duration("at_most", recordWait))
	end := time.NewTimer(recordWait)
	defer end.Stop()
	again := time.NewTicker(recordAgain)
	defer again.Stop()
	for isTaken(taken) {
		select {
		case <-again.C:
			taken = d.openBook(cfg, path)
		case <-end.C:
			return taken
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return taken
}

// openOwnBook opens a record for a hookd that serves its agent beside another
// one: record-2.db, or the next that nobody writes.
func (d *daemon) openOwnBook(cfg *config.Config) error {
	path := RecordPath(cfg, client.SocketPath("", d.Getenv), d.Getenv)
	ext := filepath.Ext(path)
	var err error
	for n := 2; n <= recordNumbers; n++ {
		if err = d.openBook(cfg, fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ext), n, ext)); !isTaken(err) {
			return err
		}
	}
	return err
}

// closeBook writes what waits and gives the file free.
func (d *daemon) closeBook(within time.Duration) {
	if d.book.store == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), within, manager.ErrShuttingDown)
	defer cancel()
	if err := d.book.store.Close(ctx); err != nil {
		d.log.Error("the record is not complete", zap.Error(err))
	}
}

// recorder is what the manager shows its answers to.
func (d *daemon) recorder() manager.Recorder {
	return &recorders{d.book, d.Recorder, d.takers.list()}
}

// recorders are the durable record and another recorder; either may be missing.
// An error of either makes the answer a no. The takers come after them.
type recorders struct {
	book   *book
	other  manager.Recorder // nil: none
	takers []taker
}

// Waits tells the manager that a decision may wait for a disk.
func (r *recorders) Waits() bool {
	w, ok := r.other.(interface{ Waits() bool })
	return r.book.store != nil && r.book.store.Waits() || ok && w.Waits()
}

// Record implements [manager.Recorder].
func (r *recorders) Record(ctx context.Context, rec *manager.Record) error {
	err := r.keep(ctx, rec)
	if err != nil && rec.Err == nil {
		rec = refused(rec, err)
	}
	for _, t := range r.takers {
		t.Take(rec)
	}
	return err
}

// keep shows a record to those whose error makes it a no.
func (r *recorders) keep(ctx context.Context, rec *manager.Record) (err error) {
	if r.other != nil {
		if err = r.other.Record(ctx, rec); err != nil && rec.Err == nil {
			rec = refused(rec, err) // what the agent will get
		}
	}
	if r.book.store == nil {
		return err
	}
	r.book.count(rec)
	if kept := r.book.store.Record(ctx, rec); kept != nil {
		err = errors.Join(err, kept)
	}
	return err
}

// refused is a record as the agent gets it, who gets a no because of err.
func refused(rec *manager.Record, err error) *manager.Record {
	out, res := *rec, *rec.Result
	reason := "the decision could not be recorded: " + err.Error()
	if res.Approval != nil {
		no := *res.Approval
		no.Approved, no.Reason = false, reason
		res.Approval = &no
	}
	if stage := rec.Request.Stage; stage.Name != protocol.StageApproveTool && !res.Action.Stops() {
		res.Action, res.Reason, res.DecidedBy = stage.OnFailure, reason, ""
		if res.Action == protocol.ActionContinue {
			res.Action = protocol.ActionAbortTurn
		}
		res.Subject, res.Respond, res.Inject = nil, nil, nil
	}
	out.Result = &res
	return &out
}

// tell hands something to the store. Where that can't take it, it counts what
// is missing and says so itself.
func (b *book) tell(record func(s *record.Store) error) {
	if b.store == nil {
		return
	}
	_ = record(b.store) // see above
}

// undelivered records that an agent did not get the answer to a request, which
// was the manager's call of this number.
func (b *book) undelivered(c *manager.Caller, req *protocol.Request, call uint64, reason error) {
	b.tell(func(s *record.Store) error {
		return s.Undelivered(&record.Undelivered{
			Call: call, Session: cmp.Or(req.MetaString("session_id"), c.SessionID), Stage: req.Stage.Name, CallID: req.CallID, PID: c.PID, Reason: reason.Error(),
		})
	})
}

// rulerKey is where a context holds who has asked for a change.
type rulerKey struct{}

// withRuler returns a context that says who asks for what is done with it.
func withRuler(ctx context.Context, c rpc.Creds) context.Context {
	return context.WithValue(ctx, rulerKey{}, ruler(c))
}

// causedBy is who has asked, or else.
func causedBy(ctx context.Context, or string) string {
	if r, ok := ctx.Value(rulerKey{}).(approval.Ruler); ok {
		return r.String()
	}
	return or
}

// reloaded records a reload that has changed something or was refused.
func (b *book) reloaded(ctx context.Context, why string, was, is *config.Config, res *ReloadResult, err error) {
	c := &record.ConfigChange{Path: is.Path, SHA256: is.SHA256, OldSHA256: was.SHA256, By: causedBy(ctx, why), What: "reload"}
	if err != nil {
		c.Error = err.Error()
	} else {
		c.Generation, c.Warnings = res.Generation, res.Warnings
		c.What = changedHooks(res)
	}
	b.tell(func(s *record.Store) error { return s.ConfigChange(c) })
}

func changedHooks(res *ReloadResult) string {
	var words []string
	for _, w := range []struct {
		what  string
		names []string
	}{{"started", res.Started}, {"stopped", res.Stopped}} {
		if len(w.names) > 0 {
			words = append(words, w.what+" "+strings.Join(w.names, ", "))
		}
	}
	return cmp.Or(strings.Join(words, "; "), "the same hooks under other rules")
}

// begun records with what hookd has started.
func (b *book) begun(cfg *config.Config, generation uint64, version string) {
	c := &record.ConfigChange{Generation: generation, Path: cfg.Path, SHA256: cfg.SHA256, What: "hookd " + version + " started", By: "start"}
	if !cfg.Hooks.Enabled {
		c.Warnings = []string{"hooks.enabled is false: nothing is checked"}
	}
	b.tell(func(s *record.Store) error { return s.ConfigChange(c) })
}

// overridden records that somebody has outranked the config, or that this has
// ended.
func (b *book) overridden(ctx context.Context, cfg *config.Config, generation uint64, what string) {
	c := &record.ConfigChange{Generation: generation, Path: cfg.Path, SHA256: cfg.SHA256, OldSHA256: cfg.SHA256, What: what, By: causedBy(ctx, "hookd")}
	b.tell(func(s *record.Store) error { return s.ConfigChange(c) })
}

// denials are those of one user who is not let in.
type denials struct {
	last time.Time
	more int // since then
}

// turnedAway records a connection that was refused, at most once a second for
// each user: the rest is counted.
func (b *book) turnedAway(c rpc.Creds, why error) {
	if b.store == nil {
		return
	}
	now := time.Now()
	b.mu.Lock()
	d := b.denied[c.UID]
	if d == nil {
		if len(b.denied) >= maxTallies {
			clear(b.denied)
		}
		d = &denials{}
		b.denied[c.UID] = d
	}
	d.more++
	if now.Sub(d.last) < denialsEvery {
		b.mu.Unlock()
		return
	}
	count := d.more
	d.last, d.more = now, 0
	b.mu.Unlock()
	b.tell(func(s *record.Store) error {
		return s.Security(&record.SecurityEvent{
			What: "connection_denied", Severity: "warn", PID: c.PID, UID: c.UID, Message: why.Error(),
			Detail: protocol.Object{{Name: "count", Value: fmt.Appendf(nil, "%d", count)}}.AppendJSON(nil),
		})
	})
}

// RecordStatus is how the record fares.
type RecordStatus struct {
	// Mode is off, batch or strict.
	Mode string `json:"mode"`
	Path string `json:"path"`
	// State is off, ok, lagging or failing.
	State string `json:"state"`
	// Error says what is wrong now; empty = nothing.
	Error string `json:"error"`
	// Queued records are not on the disk yet; Missed could not be written since
	// hookd started.
	Queued int    `json:"queued"`
	Missed uint64 `json:"missed"`
	// Seq is the last record's number, Size the file's in bytes.
	Seq  uint64 `json:"seq"`
	Size int64  `json:"size"`
	// OnFailure is what decisions become while the file can't be written:
	// continue or deny. Refused counts those that became a no.
	OnFailure string `json:"on_failure"`
	Refused   uint64 `json:"refused"`
	// MovedAside is where a damaged file was moved; empty = there was none.
	MovedAside string    `json:"moved_aside,omitzero"`
	LastCommit time.Time `json:"last_commit,omitzero"`
	// ReplacedAt is when the file was found to be deleted or replaced, and was
	// begun anew; said for a minute, zero otherwise.
	ReplacedAt time.Time `json:"replaced_at,omitzero"`
}

// replacedFor is how long a status says that the record's file was replaced.
const replacedFor = time.Minute

func (b *book) status() RecordStatus {
	if b.store == nil {
		return RecordStatus{Mode: string(record.ModeOff), State: string(record.StateOff)}
	}
	s := b.store.Status()
	r := RecordStatus{
		Mode: string(s.Mode), Path: s.Path, State: string(s.State), Error: s.Error, Queued: s.Queued, Missed: s.MissedTotal,
		Seq: s.Seq, Size: s.Bytes, OnFailure: string(s.OnFailure), Refused: s.Refused, MovedAside: s.MovedAside,
	}
	if !s.LastCommit.IsZero() {
		r.LastCommit = s.LastCommit.UTC()
	}
	if !s.Replaced.IsZero() && time.Since(s.Replaced) < replacedFor {
		r.ReplacedAt = s.Replaced.UTC()
	}
	return r
}

func untilText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + t.UTC().Format(time.RFC3339)
}
