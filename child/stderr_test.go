package child

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain text, größer, 日本":  "plain text, größer, 日本",
		`back\slash "quoted"`:     `back\slash "quoted"`,
		"\x1b[31mred\x1b[0m":      `\x1b[31mred\x1b[0m`,
		"a\r{\"level\":\"info\"}": `a\r{"level":"info"}`,
		"tab\tbell\a\x00\x7f":     `tab\tbell\a\x00\x7f`,
		"bad \xff\xc3":            `bad \xff\xc3`,
		"next\u0085line\u2028":    `next\u0085line\u2028`,
		"bidi \u202eevil":         `bidi \u202eevil`,
		"\ufffd is itself":        "\ufffd is itself",
	} {
		require.Equal(t, want, string(printable([]byte(in))))
	}
}

// handed collects what Spec.Stderr gets.
type handed struct {
	mu    sync.Mutex
	lines []string
	drops []int64
}

func (h *handed) take(line []byte, dropped int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if line == nil {
		h.drops = append(h.drops, dropped)
		return
	}
	h.lines = append(h.lines, string(line))
}

func (h *handed) got() (lines []string, drops []int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines), slices.Clone(h.drops)
}

// lost is the sum of all reports.
func (h *handed) lost() (total int64) {
	_, drops := h.got()
	for _, n := range drops {
		total += n
	}
	return total
}

// talk drains what say writes, on a clock that stands still while anyone works.
func talk(t *testing.T, say func(w io.Writer, h *handed, l *stderrLog)) {
	synctest.Test(t, func(t *testing.T) {
		r, w := net.Pipe()
		h := &handed{}
		l := &stderrLog{hand: h.take}
		ended := make(chan struct{})
		go func() { l.drain(r); close(ended) }()
		say(w, h, l)
		w.Close()
		<-ended
	})
}

func TestStderrRate(t *testing.T) {
	t.Parallel()
	talk(t, func(w io.Writer, h *handed, l *stderrLog) {
		line := strings.Repeat("x", 1<<10) + "\n"
		fmt.Fprint(w, strings.Repeat(line, 100))
		synctest.Wait()
		lines, _ := h.got()
		require.Len(t, lines, 64)
		require.Len(t, l.last(), tailLines)

		fmt.Fprint(w, "last words\n") // too many for this second, but kept
		synctest.Wait()
		lines, _ = h.got()
		require.Len(t, lines, 64)
		require.Equal(t, "last words", l.last()[tailLines-1])

		time.Sleep(time.Second)
		fmt.Fprint(w, "next second\n")
		synctest.Wait()
		lines, drops := h.got()
		require.Equal(t, "next second", lines[64])
		require.Empty(t, drops)

		time.Sleep(9 * time.Second)
		synctest.Wait()
		_, drops = h.got()
		require.Equal(t, []int64{36<<10 + 10}, drops, "one report, although the child is silent")
		time.Sleep(time.Hour)
		_, drops = h.got()
		require.Len(t, drops, 1)
	})
}

func TestStderrReportsAtMostOncePerTenSeconds(t *testing.T) {
	t.Parallel()
	var all *handed
	talk(t, func(w io.Writer, h *handed, _ *stderrLog) {
		all = h
		for range 35 * 10 {
			fmt.Fprint(w, strings.Repeat("x", 8<<10)) // never a line end
			time.Sleep(100 * time.Millisecond)
		}
		_, drops := h.got()
		require.Len(t, drops, 3)
	})
	lines, drops := all.got()
	require.Len(t, drops, 4, "what is left is reported at the end")
	require.Len(t, lines, 1)
	require.EqualValues(t, 350*8<<10-maxStderrLine, all.lost())
}

func TestStderrLines(t *testing.T) {
	t.Parallel()
	var all *handed
	talk(t, func(w io.Writer, h *handed, l *stderrLog) {
		all = h
		fmt.Fprint(w, "one\r\n\n\r\nt", "wo\n")
		synctest.Wait()
		lines, _ := h.got()
		require.Equal(t, []string{"one", "two"}, lines)
		fmt.Fprint(w, strings.Repeat("y", maxStderrLine), "cut\nthree\npanic: no line end")
		synctest.Wait()
		require.Len(t, l.last(), 4)
	})
	lines, drops := all.got()
	require.Equal(t, []string{"one", "two", strings.Repeat("y", maxStderrLine), "three", "panic: no line end"}, lines)
	require.Equal(t, []int64{3}, drops)
}

func TestStderrTailKeepsTheLast(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 19, 20, 21, 45} {
		var text strings.Builder
		want := []string{}
		for i := range n {
			fmt.Fprintf(&text, "line %d\x1b\n", i)
			if i >= n-tailLines {
				want = append(want, fmt.Sprintf(`line %d\x1b`, i))
			}
		}
		l := &stderrLog{}
		l.drain(source{strings.NewReader(text.String())})
		require.Equal(t, want, l.last())
	}
}

// A gigabyte without a line end neither blocks the child nor fills memory.
func TestStderrFlood(t *testing.T) {
	const size = 1_000_000_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h := &handed{}
	spec := shell(`head -c "$1" /dev/zero >&2; echo done`, strconv.Itoa(size))
	spec.Stderr = h.take
	p := start(t, spawner(t, quick), spec)
	require.Equal(t, "done", firstLine(t, p))
	within(t, 10*time.Second, p.Done())
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
	lines, _ := h.got()
	require.Equal(t, []string{strings.Repeat(`\x00`, maxStderrLine)}, lines)
	require.EqualValues(t, size-maxStderrLine, h.lost())
}

// A real child: what it said last is complete when Done is closed.
func TestStderrIsCompleteAtDone(t *testing.T) {
	t.Parallel()
	s := spawner(t, quick)
	for range 20 {
		h := &handed{}
		spec := shell(`i=0; while [ $i -lt 100 ]; do echo line $i >&2; i=$((i+1)); done; printf 'fatal: \033[31mbad' >&2; exit 1`)
		spec.Stderr = h.take
		p := start(t, s, spec)
		within(t, 10*time.Second, p.Done())
		lines, _ := h.got()
		require.Len(t, lines, 101)
		require.Equal(t, `fatal: \x1b[31mbad`, p.StderrTail()[tailLines-1])
		require.Equal(t, lines[101-tailLines:], p.StderrTail())
	}
}

// source is a stderrSource without a clock.
type source struct{ io.Reader }

func (source) SetReadDeadline(time.Time) error { return nil }

func FuzzStderr(f *testing.F) {
	for _, text := range []string{"", "\n", "a\r\n\rb", "\x1b[2J\xff\n", "no end", strings.Repeat("z", maxStderrLine+1) + "\n", strings.Repeat("q\n", 50), "\u2028\u202e\U000e0001"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h := &handed{}
		l := &stderrLog{hand: h.take}
		l.drain(source{iotest.HalfReader(bytes.NewReader(text))})
		require.LessOrEqual(t, len(l.last()), tailLines)
		for _, line := range append(h.lines, l.last()...) {
			require.True(t, utf8.ValidString(line))
			require.Equal(t, -1, strings.IndexFunc(line, func(r rune) bool { return !strconv.IsPrint(r) }), "%q", line)
			require.LessOrEqual(t, len(line), maxStderrLine*4)
		}
		whole := &stderrLog{}
		whole.drain(source{bytes.NewReader(text)})
		require.Equal(t, whole.last(), l.last(), "lines don't depend on how the bytes arrive")
	})
}
