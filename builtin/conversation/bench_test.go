package conversation

import (
	"context"
	"strings"
	"testing"
)

func BenchmarkCount(b *testing.B) {
	text := strings.Repeat("The quick brown fox, 42 years old, jumps over {\"lazy\": \"dogs\"} again.\n", 1000)
	c := NewCounter()
	c.load()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := c.text(context.Background(), text); err != nil {
			b.Fatal(err)
		}
	}
}
