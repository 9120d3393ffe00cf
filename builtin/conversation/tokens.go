package conversation

import (
	"context"
	"hash/maphash"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/hookd/hookd/builtin/text"
	"github.com/hookd/hookd/protocol"
)

// Counter counts the tokens of messages, as the o200k vocabulary has them. Other
// models have others, so it is an estimate for them. It remembers what it has
// counted, because a conversation comes again with every request. It is safe for
// concurrent use. Make it with [NewCounter].
type Counter struct {
	load  func() *codec.Codec
	seed  maphash.Seed
	mu    sync.Mutex
	known map[uint64]int // tokens of a message, by the hash of its bytes
}

const (
	perMessage = 4       // tokens around each message
	perMedia   = 1000    // tokens of a picture, at most
	piece      = 8 << 10 // bytes that are counted at once
	most       = 50_000  // messages that are remembered
)

// NewCounter returns a Counter. The vocabulary, some ten megabytes of memory, is
// loaded when something is counted for the first time.
func NewCounter() *Counter {
	return &Counter{load: sync.OnceValue(codec.NewO200kBase), seed: maphash.MakeSeed(), known: map[uint64]int{}}
}

// Exceeds reports whether messages have more tokens than a limit. It is quick
// where their bytes are fewer. The error is that of ctx.
func (c *Counter) Exceeds(ctx context.Context, list []Message, limit int) (bool, error) {
	bytes := 0
	for i := range list {
		bytes += len(list[i].Raw) + perMessage
	}
	if bytes <= limit { // a token has one byte at least
		return false, nil
	}
	n, err := c.Count(ctx, list)
	return n > limit, err
}

// Count returns how many tokens messages have. The error is that of ctx.
func (c *Counter) Count(ctx context.Context, list []Message) (sum int, err error) {
	for i := range list {
		n, err := c.Message(ctx, &list[i])
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// Message returns how many tokens a message has. The error is that of ctx.
func (c *Counter) Message(ctx context.Context, m *Message) (int, error) {
	hash := maphash.Bytes(c.seed, m.Raw)
	c.mu.Lock()
	n, ok := c.known[hash]
	c.mu.Unlock()
	if ok {
		return n, nil
	}
	n, err := c.count(ctx, m.Raw)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= most {
		clear(c.known)
	}
	c.known[hash] = n
	return n, nil
}

func (c *Counter) count(ctx context.Context, raw jsontext.Value) (int, error) {
	sum := perMessage
	raw, _ = text.Rewrite(raw, nil, func(p *text.Part) (string, bool) {
		if p.Media {
			sum += min(perMedia, len(p.Text))
		}
		return "", p.Media
	})
	if raw.Kind() != '{' {
		n, err := c.text(ctx, string(raw))
		return sum + n, err
	}
	for _, m := range object(raw) {
		values := []jsontext.Value{m.Value}
		switch {
		case m.Name == "role":
			continue
		case m.Name == "content" && m.Value.Kind() == '[':
			values = items(m.Value)
		}
		for _, v := range values {
			n, err := c.text(ctx, said(v))
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}

// said returns what of a value a model reads: a text without its quotes, and
// other values as JSON.
func said(v jsontext.Value) string {
	if block := object(v); word(block, "type") == "text" {
		v = block.Get("text")
	}
	if v.Kind() == '"' {
		return protocol.Unquote(v)
	}
	return string(v)
}

// text counts the tokens of a text, piece by piece, so that it can be stopped and
// takes no more memory than a piece needs.
func (c *Counter) text(ctx context.Context, s string) (sum int, err error) {
	for s != "" {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		part := s[:cut(s)]
		s = s[len(part):]
		n, err := c.load().Count(part)
		if err != nil { // its patterns have no time limit, so it is never
			n = len(part)
		}
		sum += n
	}
	return sum, nil
}

// cut returns where the first piece of a text ends: before a blank when there is
// one, which tokens begin with.
func cut(s string) int {
	if len(s) <= piece {
		return len(s)
	}
	for i := piece; i > piece/2; i-- {
		if s[i] == ' ' && s[i-1] != ' ' {
			return i
		}
	}
	i := piece
	for i > piece-utf8.UTFMax && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}
