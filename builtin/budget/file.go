package budget

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hookd/hookd/builtin"
	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/protocol"
)

// saved is the file in which a ledger is kept.
type saved struct {
	Version  int            `json:"version"`
	Day      string         `json:"day"`
	Today    Used           `json:"today"`
	Sessions []savedAccount `json:"sessions"`
}

type savedAccount struct {
	Key   string    `json:"key"`
	Last  time.Time `json:"last"`
	Model string    `json:"model"`
	Used  Used      `json:"used"`
	// What of Used's tokens and cost was told at stages and in events.
	StageTokens int64   `json:"stage_tokens"`
	StageCost   float64 `json:"stage_cost"`
	EventTokens int64   `json:"event_tokens"`
	EventCost   float64 `json:"event_cost"`
}

const (
	fileVersion = 1
	maxFile     = 64 << 20
	// keepSessions is how long a session that does nothing is kept in the file.
	keepSessions = 48 * time.Hour
)

// load reads a file into the ledger, once. A file that is not there is empty.
func (l *Ledger) load(folder, path string) error {
	l.files.Lock()
	defer l.files.Unlock()
	if slices.Contains(l.loaded, path) {
		return nil
	}
	data, err := text.ReadFile(folder, path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		l.loaded = append(l.loaded, path)
		return nil
	}
	var s saved
	if err == nil {
		if err = builtin.ReadConfig(data, &s); err == nil && s.Version != fileVersion {
			err = fmt.Errorf("it is of version %d, this hookd knows %d", s.Version, fileVersion)
		}
	}
	if err != nil {
		return fmt.Errorf("read what was used so far: %w; move %s away to begin anew", err, path)
	}
	l.take(&s)
	l.loaded = append(l.loaded, path)
	return nil
}

// take adds what a file says to what is known.
func (l *Ledger) take(s *saved) {
	for _, from := range slices.Backward(s.Sessions) { // the last used comes last
		l.accounts.Do(from.Key, func(a *account) {
			a.used.add(from.Used)
			a.atStage.tokens += from.StageTokens
			a.atStage.cost += from.StageCost
			a.inEvents.tokens += from.EventTokens
			a.inEvents.cost += from.EventCost
			if a.model == "" {
				a.model = from.Model
			}
			// Time while hookd was not there does not count, so last stays as it is.
		})
	}
	if s.Day == time.Now().Format(time.DateOnly) {
		l.addToday(time.Now(), s.Today)
	}
}

// save writes the ledger to a file, unless that holds it already.
func (l *Ledger) save(path string) error {
	l.files.Lock()
	defer l.files.Unlock()
	l.mu.Lock()
	changes := l.changes
	s := saved{Version: fileVersion, Day: l.day, Today: l.today, Sessions: []savedAccount{}}
	l.mu.Unlock()
	if last, ok := l.saved[path]; ok && last == changes {
		return nil
	}
	oldest := time.Now().Add(-keepSessions)
	l.accounts.Each(func(key string, a *account) {
		if a.last.Before(oldest) && !a.last.IsZero() {
			return
		}
		s.Sessions = append(s.Sessions, savedAccount{
			Key: key, Last: a.last, Model: a.model, Used: a.used,
			StageTokens: a.atStage.tokens, StageCost: a.atStage.cost, EventTokens: a.inEvents.tokens, EventCost: a.inEvents.cost,
		})
	})
	data, err := protocol.Marshal(&s)
	if err == nil {
		err = replace(path, data)
	}
	if err != nil {
		return fmt.Errorf("write what was used so far: %w", err)
	}
	l.saved[path] = changes
	return nil
}

// replace puts data in the place of a file, all of it or nothing.
func replace(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
