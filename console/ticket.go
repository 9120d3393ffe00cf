package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Ticket is a call that waits for an answer. Nothing in it can be trusted but
// ID, Digest, PID, UID and the times, which are hookd's.
type Ticket struct {
	ID, Digest string
	Tool       string
	Arguments  jsontext.Value
	// Message says why somebody is asked, AskedBy which hook said so.
	Message, AskedBy string
	Agent            string
	// PID and UID are the agent's, -1 when they are not known.
	PID, UID                              int
	Session, Task, User, Node, CWD, Model string
	Opened, Expires                       time.Time
}

// Who says who asks: "bot (pid 12, uid 1000)".
func (t *Ticket) Who() string {
	name := Escape(t.Agent)
	if name == "" {
		name = "an agent without a name"
	}
	var known []string
	if t.PID > 0 {
		known = append(known, fmt.Sprintf("pid %d", t.PID))
	}
	if t.UID >= 0 {
		known = append(known, fmt.Sprintf("uid %d", t.UID))
	}
	if known == nil {
		return name
	}
	return name + " (" + strings.Join(known, ", ") + ")"
}

// OneLine describes a call on one line: id, tool and arguments, of which at
// most so many bytes are shown, and it is said how many are not.
func (t *Ticket) OneLine(limit int) string {
	return Escape(t.ID) + "  " + Call(t.Tool, t.Arguments, limit)
}

// Call writes a tool call on one line: tool and arguments, of which at most
// limit bytes are shown, and it is said how many are not.
func Call(tool string, arguments jsontext.Value, limit int) string {
	text := inline(arguments).String()
	if len(text) > limit {
		end := limit
		for end > 0 && text[end]&0xC0 == 0x80 {
			end--
		}
		text = fmt.Sprintf("%s … (%d bytes more)", text[:end], len(text)-end)
	}
	return Escape(tool) + " " + text
}

// Left says how much time there is, as people say it.
func Left(d time.Duration) string {
	switch {
	case d <= 0:
		return "its time is over"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s left", int((d+time.Second-1)/time.Second))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min left", int(d/time.Minute))
	}
	return fmt.Sprintf("%d h %d min left", int(d/time.Hour), int(d%time.Hour/time.Minute))
}
