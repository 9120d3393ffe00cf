package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// pieces is a reader that returns so many bytes at a time.
type pieces struct {
	data []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.n)], p.data)
	p.data = p.data[n:]
	return n, nil
}

func newLines(r io.Reader, limit int, b *Budget) *lineReader {
	return &lineReader{r: r, max: limit, budget: b, timeout: time.Hour, slow: func() {}}
}

// readLines returns what a reader makes of a stream, one word per line.
func readLines(t testing.TB, l *lineReader) (words []string) {
	for {
		line, err := l.next()
		var long *lineError
		switch {
		case errors.As(err, &long):
			words = append(words, "too long: "+string(long.start))
		case err != nil:
			l.stop()
			return append(words, err.Error())
		default:
			words = append(words, string(line))
		}
	}
}

// wantLines is what readLines must return.
func wantLines(data []byte, limit int) (words []string) {
	blanks := 0
	lines := bytes.Split(data, []byte("\n"))
	for i, raw := range lines {
		start := string(raw[:min(len(raw), peekBytes)])
		line := bytes.TrimSuffix(raw, []byte("\r"))
		switch {
		case len(line) > limit:
			words = append(words, "too long: "+start)
		case len(bytes.Trim(line, " \t\r")) > 0:
			words = append(words, string(line))
			blanks = 0
		case i < len(lines)-1 || len(raw) > 0:
			if blanks++; blanks > maxBlankLines {
				return append(words, ErrFlood.Error())
			}
		}
	}
	return append(words, io.EOF.Error())
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("one\ntwo\r\n\n  \nthree"), uint16(1), uint8(1), uint16(100))
	f.Add([]byte("abcdefghij\nabcdefghijk\nabcdefghij\r\nabcdefghijk\r\n\r"), uint16(1), uint8(3), uint16(10))
	f.Add([]byte("0123456789"), uint16(8000), uint8(200), uint16(65000))
	f.Add([]byte("0123456789abcdef\n"), uint16(5000), uint8(255), uint16(17))
	f.Add([]byte(" \n"), uint16(200), uint8(7), uint16(5))
	f.Add([]byte("\n\r"), uint16(101), uint8(7), uint16(1))
	f.Fuzz(func(t *testing.T, data []byte, times uint16, piece uint8, limit uint16) {
		data = bytes.Repeat(data, max(1, min(int(times), 300_000/max(1, len(data)))))
		size := max(1, int(limit))
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			if len(line) > floodFactor*size {
				return // ends somewhere
			}
		}
		want := wantLines(data, size)
		for _, n := range []int{max(1, int(piece)), 1 << int(piece%18), len(data) + 1} {
			if len(data)/n > 20000 {
				continue
			}
			b := NewBudget(1 << 30)
			got := readLines(t, newLines(&pieces{data, n}, size, b))
			for i := range got { // how much is known of a long line depends on the pieces
				if i < len(want) && strings.HasPrefix(got[i], "too long: ") && strings.HasPrefix(want[i], got[i]) {
					got[i] = want[i]
				}
			}
			require.Equal(t, want, got, n)
			require.Zero(t, b.Used())
		}
	})
}

func TestLongLinesInPieces(t *testing.T) {
	var data []byte
	var want []string
	for _, n := range []int{1, pageSize - 1, pageSize, pageSize + 1, 10, chunkSize - 1, chunkSize, chunkSize + 1, 5, 3*chunkSize + 7, 1, 2, 300_000, 4} {
		line := strings.Repeat(string(rune('a'+n%26)), n)
		want = append(want, line)
		data = append(append(data, line...), '\n')
	}
	for _, n := range []int{1, 100, 4095, 4096, 4097, 65535, 65536, 65537, 1 << 20} {
		b := NewBudget(1 << 30)
		require.Equal(t, append(want, "EOF"), readLines(t, newLines(&pieces{data, n}, 1<<20, b)), n)
		require.Zero(t, b.Used())
	}
}

func TestLinesAreNeverReused(t *testing.T) {
	data := strings.Repeat("first\nsecond\n", 1000) + strings.Repeat("x", 100_000) + "\n" + strings.Repeat("y", 100_000) + "\n"
	l := newLines(strings.NewReader(data), 1<<20, nil)
	var lines [][]byte
	for {
		line, err := l.next()
		if err != nil {
			break
		}
		lines = append(lines, line)
	}
	require.Equal(t, data, string(bytes.Join(lines, []byte("\n")))+"\n")
	require.Equal(t, 100_000, cap(lines[2000])&^8191|100_000, "no more memory than needed")
}

func TestEndlessLineNeedsLittleMemory(t *testing.T) {
	const limit = 1 << 20
	b := NewBudget(limit + 2*chunkSize)
	l := newLines(iotest.OneByteReader(&endless{}), 100, b)
	_, err := l.next()
	require.IsType(t, &lineError{}, err)
	_, err = l.next()
	require.Equal(t, ErrFlood, err)

	l = newLines(&endless{}, limit, b)
	_, err = l.next()
	require.IsType(t, &lineError{}, err)
	require.False(t, err.(*lineError).full)
	require.LessOrEqual(t, b.Used(), int64(chunkSize))
	_, err = l.next()
	require.Equal(t, ErrFlood, err)
	l.stop()
	require.Zero(t, b.Used())
}

// endless is a line without an end.
type endless struct{}

func (*endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestLineOverTheBudget(t *testing.T) {
	b := NewBudget(2 * chunkSize)
	data := `{"id":7,"x":"` + strings.Repeat("x", 3*chunkSize) + "\"}\nnext\n"
	l := newLines(strings.NewReader(data), 1<<20, b)
	_, err := l.next()
	var long *lineError
	require.ErrorAs(t, err, &long)
	require.True(t, long.full)
	require.Equal(t, NumberID(7), peek(long.start).id)
	line, err := l.next()
	require.NoError(t, err)
	require.Equal(t, "next", string(line))
	_, err = l.next()
	require.Equal(t, io.EOF, err)
	require.Zero(t, b.Used())
}

func TestBufferIsGivenBack(t *testing.T) {
	r, feed := io.Pipe()
	b := NewBudget(1 << 30)
	l := newLines(r, 1<<20, b)
	go func() {
		fmt.Fprintf(feed, "%s\nsmall\n", strings.Repeat("x", 500_000))
		feed.Close()
	}()
	for range 2 {
		_, err := l.next()
		require.NoError(t, err)
	}
	_, err := l.next()
	require.Equal(t, io.EOF, err)
	require.Zero(t, b.Used())
}
