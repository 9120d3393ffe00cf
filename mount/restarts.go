package mount

import "time"

// restarts decides when a child that ended is started again. A run is good
// when it answered a call or lasted long; bad ones make the pauses longer, and
// many of them in a short time open the breaker.
type restarts struct {
	timing *timing
	bad    []time.Time // when the bad runs of the window ended
	pause  time.Duration
	open   bool
}

// reset forgets all bad runs.
func (s *restarts) reset() { *s = restarts{timing: s.timing} }

// ended takes note of a run that ended and returns how long to wait before the
// next one. jitter is from 0 to 1.
func (s *restarts) ended(now time.Time, good bool, jitter float64) time.Duration {
	if good {
		s.reset()
	} else {
		recent := s.bad[:0]
		for _, t := range s.bad {
			if now.Sub(t) < s.timing.badWindow {
				recent = append(recent, t)
			}
		}
		s.bad = append(recent, now)
		s.open = s.open || len(s.bad) >= s.timing.badRuns
	}
	if s.open {
		return s.timing.probe
	}
	s.pause = min(max(2*s.pause, s.timing.firstPause), s.timing.maxPause)
	return time.Duration(float64(s.pause) * (0.8 + 0.4*jitter))
}
