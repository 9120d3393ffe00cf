package console

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the screens anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// call is a ticket of a bot.
func call(id, tool, arguments string) Ticket {
	return Ticket{
		ID: id, Digest: "d-" + id, Tool: tool, Arguments: jsontext.Value(arguments), Agent: "bot", PID: 4711, UID: 1000,
		Session: "s-1", CWD: "/repo", Message: "publishes commits", AskedBy: "review-gate", Opened: noon, Expires: noon.Add(time.Minute),
	}
}

// page shows tickets, a moment after they came.
func page(t testing.TB, width, height int, tickets ...Ticket) *Page {
	t.Helper()
	p := NewPage(func(path string) ([]byte, error) {
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
	})
	p.Resize(width, height)
	p.Tick(noon)
	open(p, tickets...)
	p.Tick(noon.Add(time.Second))
	p.Render()
	return p
}

func open(p *Page, tickets ...Ticket) {
	var ids []string
	for _, t := range tickets {
		ids = append(ids, t.ID)
	}
	p.Update(ids, tickets)
}

// press presses keys one after the other, with a look at the page before each.
func press(p *Page, names ...string) (w Wish) {
	for _, name := range names {
		p.Render()
		k := Key{Name: name}
		if len([]rune(name)) == 1 {
			k.Text = name
		}
		w = p.Key(k)
	}
	return w
}

// screen is the page as text. It must fit.
func screen(t testing.TB, p *Page) string {
	t.Helper()
	lines := p.Render()
	require.LessOrEqual(t, len(lines), p.height)
	var b strings.Builder
	for _, l := range lines {
		require.LessOrEqual(t, l.width(), p.width, "%q", l)
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	return b.String()
}

func golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".screen")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
