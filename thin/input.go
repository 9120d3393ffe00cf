package thin

import "syscall"

// readPayload reads the first JSON value from fd. It does not wait for the end
// of the input, which some agents never send.
func readPayload(fd, limit int, deadline int64) ([]byte, Failure) {
	buf := make([]byte, 0, 4<<10)
	var s scanner
	for {
		if len(buf) == cap(buf) {
			bigger := make([]byte, len(buf), 2*cap(buf))
			copy(bigger, buf)
			buf = bigger
		}
		wait := min(deadline-nowMS(), idleMS)
		if wait <= 0 || !readable(fd, wait) {
			return buf, "the agent's payload did not come to its end in time"
		}
		n, err := syscall.Read(fd, buf[len(buf):cap(buf)])
		switch {
		case err == syscall.EINTR || err == syscall.EAGAIN:
			continue
		case err != nil:
			return buf, Failure("read the agent's payload: " + err.Error())
		case n == 0 && len(trimBOM(buf)) == 0:
			return buf, "the agent sent no payload"
		case n == 0 && s.number():
			return trimBOM(buf), ""
		case n == 0:
			return buf, "the agent's payload ends in the middle"
		}
		from := len(buf)
		buf = buf[:from+n]
		if end := s.scan(buf, from); end >= 0 {
			if end > limit {
				break
			}
			drain(fd)
			return trimBOM(buf[:end]), ""
		}
		if len(buf) > limit {
			break
		}
	}
	// Read on, so that the agent is not stuck with a full pipe, and keep nothing.
	for nowMS() < deadline && readable(fd, min(deadline-nowMS(), 200)) {
		if n, err := syscall.Read(fd, buf[:cap(buf)]); n <= 0 && err != syscall.EINTR {
			break
		}
	}
	return nil, "the agent's payload is larger than the limit"
}

// drain takes what is there already behind the value, such as a newline.
func drain(fd int) {
	var rest [512]byte
	for readable(fd, 0) {
		if n, _ := syscall.Read(fd, rest[:]); n <= 0 {
			return
		}
	}
}

func trimBOM(b []byte) []byte {
	if len(b) >= 3 && b[0] == 0xEF && b[1] == 0xBB && b[2] == 0xBF {
		return b[3:]
	}
	return b
}

// scanner finds the end of the first JSON value without judging it: the daemon
// does that. The zero value is ready.
type scanner struct {
	depth    int
	begun    bool // a value has begun
	inString bool
	escaped  bool
	scalar   bool // it is a number or a word, which ends at what can't belong to it
}

// number reports whether the input so far is a value that only its end can end.
func (s *scanner) number() bool { return s.begun && s.scalar && s.depth == 0 }

// scan looks at b from an index on and returns where the value ends, or -1.
func (s *scanner) scan(b []byte, from int) int {
	for i := from; i < len(b); i++ {
		c := b[i]
		if s.inString {
			switch {
			case s.escaped:
				s.escaped = false
			case c == '\\':
				s.escaped = true
			case c == '"':
				s.inString = false
				if s.depth == 0 {
					return i + 1
				}
			}
			continue
		}
		switch c {
		case '"':
			if s.scalar && s.depth == 0 {
				return i
			}
			s.begun, s.inString = true, true
		case '{', '[':
			if s.scalar && s.depth == 0 {
				return i
			}
			s.begun = true
			s.depth++
		case '}', ']':
			s.depth--
			if s.depth <= 0 {
				return i + 1
			}
		case ' ', '\t', '\r', '\n':
			if s.scalar && s.depth == 0 {
				return i
			}
		case 0xEF, 0xBB, 0xBF:
			// A byte order mark; elsewhere it is no JSON, and the daemon says so.
		default:
			if s.depth == 0 {
				s.begun, s.scalar = true, true
			}
		}
	}
	return -1
}
