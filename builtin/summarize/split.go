package summarize

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/hookd/hookd/builtin/conversation"
)

// parts are a conversation, cut where calls and their results stay together.
type parts struct {
	head    []conversation.Message // system messages with which it begins
	systems []conversation.Message // those further in, which stay too
	middle  []conversation.Message // what the summary takes the place of
	tail    []conversation.Message // the last messages
}

// head returns with how many system messages a conversation begins.
func head(list []conversation.Message) (n int) {
	for n < len(list) && list[n].System() {
		n++
	}
	return n
}

func (s *Summarizer) split(list []conversation.Message) parts {
	from := head(list)
	to := max(conversation.Tail(list, s.config.KeepLast), from)
	p := parts{head: list[:from], tail: list[to:]}
	for _, m := range list[from:to] {
		if m.System() && !strings.HasPrefix(m.Content(), intro) && !isNotice(&m) {
			p.systems = append(p.systems, m)
		} else {
			p.middle = append(p.middle, m)
		}
	}
	return p
}

// nothing reports whether there is nothing to be summarized: an earlier summary
// alone does not become shorter.
func (p *parts) nothing() bool {
	return !slices.ContainsFunc(p.middle, func(m conversation.Message) bool {
		return !strings.HasPrefix(m.Content(), intro) && !isNotice(&m)
	})
}

const noticeEnd = " earlier messages were left out here, because the conversation was too long and no summary could be made.]"

func isNotice(m *conversation.Message) bool {
	s := m.Content()
	return strings.HasPrefix(s, "[") && strings.HasSuffix(s, noticeEnd)
}

// without returns what stands in the place of the middle when there is no
// summary: earlier summaries and, when the tail has nothing of the user's, what
// the user said last, unless it has more than most bytes.
func (p *parts) without(most int) []conversation.Message {
	var kept []conversation.Message
	last := -1
	for i := range p.middle {
		switch m := &p.middle[i]; {
		case strings.HasPrefix(m.Content(), intro):
			kept = append(kept, *m)
		case m.User() && !isNotice(m):
			last = i
		}
	}
	kept = append(kept, conversation.New("user", fmt.Sprintf("[%d%s", len(p.middle), noticeEnd)))
	asks := slices.ContainsFunc(p.tail, func(m conversation.Message) bool { return m.User() })
	if last >= 0 && !asks && len(p.middle[last].Raw) <= most {
		kept = append(kept, p.middle[last])
	}
	return kept
}

func join(lists ...[]conversation.Message) []conversation.Message { return slices.Concat(lists...) }

func digest(list []conversation.Message) (d [sha256.Size]byte) {
	h := sha256.New()
	for i := range list {
		h.Write(list[i].Raw)
		h.Write([]byte{0})
	}
	h.Sum(d[:0])
	return d
}
