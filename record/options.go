package record

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"
)

// Mode says how closely decisions and their records are tied.
type Mode string

// The modes. The zero value means batch.
const (
	// ModeOff: nothing is kept.
	ModeOff Mode = "off"
	// ModeBatch: a decision does not wait. When the process is killed, at most
	// the last 100 ms are missing, and the next start says so.
	ModeBatch Mode = "batch"
	// ModeStrict: an answer is given when its record is on the disk, and not
	// before. It implies [Deny].
	ModeStrict Mode = "strict"
)

// OnFailure says what decisions become while they can't be recorded.
type OnFailure string

// The zero value means continue.
const (
	Continue OnFailure = "continue"
	Deny     OnFailure = "deny"
)

// Options configure a [Store].
type Options struct {
	// Path of the file; its folder is made when it is missing. Not needed in
	// mode off.
	Path      string
	Mode      Mode
	OnFailure OnFailure
	// KeepDays is how many days records are kept; 0 = for ever.
	KeepDays int
	// MaxBytes is how large the file may grow before the oldest records go;
	// 0 = no limit.
	MaxBytes int64
	// MaxParams is how many bytes of a call's params are kept. Of longer ones the
	// long texts are cut, and the call can't be replayed. 0 = 64 KiB.
	MaxParams int
	// Mask takes out of a JSON value what may not be written, after
	// [MaskSecrets], which is always applied. It must return JSON. It is called
	// by one goroutine. nil = nothing more.
	Mask func(jsontext.Value) jsontext.Value
	// BeforeAfter keeps the values of what hooks changed, beside the names.
	BeforeAfter bool
	// Log gets failures and recoveries; nil = none. Never payload.
	Log *zap.Logger
	// Now is the wall clock; nil = time.Now.
	Now func() time.Time
}

func (o *Options) complete() error {
	switch o.Mode {
	case "":
		o.Mode = ModeBatch
	case ModeOff, ModeBatch, ModeStrict:
	default:
		return fmt.Errorf("unknown mode %q, one of off, batch, strict", o.Mode)
	}
	switch o.OnFailure {
	case "":
		o.OnFailure = Continue
	case Continue, Deny:
	default:
		return fmt.Errorf("unknown on_failure %q, one of continue, deny", o.OnFailure)
	}
	if o.Mode == ModeStrict {
		o.OnFailure = Deny
	}
	if o.KeepDays < 0 || o.MaxBytes < 0 || o.MaxParams < 0 {
		return errors.New("keep_days and sizes must not be negative")
	}
	if o.MaxParams == 0 {
		o.MaxParams = 64 << 10
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Mode == ModeOff {
		return nil
	}
	if o.Path == "" {
		return errors.New("no path")
	}
	path, err := filepath.Abs(o.Path)
	o.Path = path
	return err
}

// Limits that are not for the config.
const (
	// batchDelay is how long the first record of a batch waits for more. With
	// the commit it must stay under 100 ms.
	batchDelay = 30 * time.Millisecond
	// batchEarly and earlyBytes are as much as is committed without waiting.
	batchEarly = 512
	earlyBytes = 2 << 20
	// maxRows and maxBytes bound one transaction.
	maxRows, maxBytes = 1024, 8 << 20
	// queueRows and queueBytes bound what waits for the disk. What comes beyond
	// is counted and left out.
	queueRows, queueBytes = 100_000, 32 << 20
	// queueWait is how long a record waits for room in a full queue whose writer
	// is well and only behind.
	queueWait = 100 * time.Millisecond
	// strictWait is how long an answer waits for its record.
	strictWait = time.Second
	// lagLimit is from when on a file that others have locked is a failure.
	lagLimit = time.Second
	// watchEvery is how often an idle writer looks whether its file is there.
	watchEvery = 500 * time.Millisecond
	// foldEvery is how often the summary of sessions is brought up to date.
	foldEvery = time.Second
	// retainEvery is how often retention looks for work.
	retainEvery = time.Minute
	// retainFor is how long it works at a time.
	retainFor = 50 * time.Millisecond
	// retainRows is how many records retention takes out at a time.
	retainRows = 1000
	// busyTimeout is how long SQLite waits for another process's lock at a time.
	busyTimeout = 200 * time.Millisecond
	// openWait is how long a start waits for a lock.
	openWait = 5 * time.Second
	// retryFirst and retryMax are the pauses between attempts to write.
	retryFirst, retryMax = 100 * time.Millisecond, time.Second
	// maxText and maxJSON bound texts such as reasons, and JSON beside params.
	maxText, maxJSON = 4 << 10, 64 << 10
	// maxID bounds names and ids.
	maxID = 512
	// checkBytes is up to which size a file is checked page by page after hookd
	// was not closed.
	checkBytes = 32 << 20
	// tailRows is how many of the last records are verified at a start.
	tailRows = 64
)
