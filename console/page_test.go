package console

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

func quote(s string) string { return string(protocol.Quote(s)) }

func TestScreens(t *testing.T) {
	simple := call("bavi-nope-42", "bash", `{"command":"git push origin main","timeout":120000.50}`)
	hostile := call("doro-jupa-06", "bash\x1b[2J", `{"command":`+quote("ls\r\n── all shown\n\u202egpj.exe\x1b]0;title\x07\n"+strings.Repeat("x", 90)+"\n\tend\u200b")+`,"env\n":{"A":["\u0000",1e3,null,true,{}],"B":""},"empty":"","n":[]}`)
	hostile.Agent, hostile.Message, hostile.CWD = "bot\n\x1b[31m", "\u2066why\u2069", strings.Repeat("/long", 20)
	bare := Ticket{ID: "guvi-ninu-55", Tool: "ls", Arguments: jsontext.Value(`{}`), PID: -1, UID: -1, Opened: noon, Expires: noon.Add(26 * time.Hour)}
	edit := call("tiza-bore-11", "Edit", `{"file_path":"/repo/a.go","old_string":`+quote("func a() {\n\treturn 1\n}\n")+`,"new_string":`+quote("func a() {\n\treturn 2\n}\n")+`,"replace_all":true}`)
	edits := call("tiza-bore-12", "MultiEdit", `{"file_path":"/repo/a.go","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"d\n","replace_all":false}]}`)
	write := call("tiza-bore-13", "Write", `{"file_path":"notes/a.txt","content":"one\ntwo\nthree\n"}`)
	long := call("zuvo-lega-77", "bash", `{"command":`+quote(strings.Repeat("echo line\n", 40))+`}`)
	chinese := call("rene-bado-90", "bash", `{"command":"echo 你好，世界，这是一个很长的命令行参数，用来检查宽字符怎样换行。 done"}`)

	for _, c := range []struct {
		name          string
		width, height int
		tickets       []Ticket
		keys          []string
		do            func(p *Page)
	}{
		{"empty", 80, 12, nil, nil, nil},
		{"simple", 100, 20, []Ticket{simple}, nil, nil},
		{"hostile", 80, 40, []Ticket{hostile}, nil, nil},
		{"bare", 80, 16, []Ticket{bare}, nil, nil},
		{"edit", 80, 24, []Ticket{edit}, nil, nil},
		{"edit raw", 80, 24, []Ticket{edit}, []string{"v"}, nil},
		{"edits", 80, 26, []Ticket{edits}, nil, nil},
		{"write new", 80, 24, []Ticket{write}, nil, nil},
		{"long", 80, 16, []Ticket{long}, nil, nil},
		{"long paged", 80, 16, []Ticket{long}, []string{" "}, nil},
		{"long end", 80, 16, []Ticket{long}, []string{"end"}, nil},
		{"long unread", 80, 16, []Ticket{long}, []string{"y"}, nil},
		{"chinese", 50, 20, []Ticket{chinese}, nil, nil},
		{"queue", 80, 20, []Ticket{simple, edit, bare}, []string{"tab"}, nil},
		{"reason", 80, 20, []Ticket{simple}, []string{"r", "n", "o", " ", "y"}, nil},
		{"always", 80, 20, []Ticket{simple}, []string{"a"}, nil},
		{"help", 80, 24, []Ticket{simple}, []string{"?"}, nil},
		{"small", 39, 9, []Ticket{simple}, nil, nil},
		{"narrow", 40, 14, []Ticket{simple}, nil, nil},
		{"answered", 80, 14, []Ticket{simple}, nil, func(p *Page) { p.Answered("bavi-nope-42", "allowed", nil) }},
		{"ended elsewhere", 80, 20, []Ticket{simple, bare}, nil, func(p *Page) { p.Update([]string{bare.ID}, nil) }},
		{"nearly over", 80, 16, []Ticket{simple}, nil, func(p *Page) { p.Tick(noon.Add(59*time.Second + 1)) }},
		{"over", 80, 16, []Ticket{simple}, nil, func(p *Page) { p.Tick(noon.Add(time.Minute)) }},
		{"no daemon", 80, 16, []Ticket{simple}, nil, func(p *Page) { p.Trouble(errors.New("no hookd answers at /run/hookd.sock")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := page(t, c.width, c.height, c.tickets...)
			press(p, c.keys...)
			if c.do != nil {
				c.do(p)
			}
			golden(t, strings.ReplaceAll(c.name, " ", "_"), screen(t, p))
		})
	}
}

// What stands in styles, as a terminal gets it.
func TestColours(t *testing.T) {
	p := page(t, 60, 16, call("bavi-nope-42", "bash", `{"command":"rm \u202e x"}`))
	var plain, coloured strings.Builder
	for _, l := range p.Render() {
		plain.WriteString(l.ansi(false) + "\n")
		coloured.WriteString(l.ansi(true) + "\n")
	}
	require.NotContains(t, plain.String(), "\x1b")
	require.Contains(t, coloured.String(), "rm \x1b[7;33m‹U+202E›\x1b[0m x")
	require.Contains(t, coloured.String(), "\x1b[33m59 s left\x1b[0m")
}

func TestWriteIsComparedWithTheFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/a.txt", []byte("one\ntwo\n"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/binary", []byte("a\x00b"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/huge", make([]byte, maxDiffBytes+10), 0o600))
	show := func(path, cwd string) string {
		c := call("tiza-bore-13", "Write", `{"path":`+quote(path)+`,"content":"one\n2\n"}`)
		c.CWD = cwd
		p := NewPage(nil)
		p.Resize(200, 40)
		open(p, c)
		return screen(t, p)
	}
	require.Contains(t, show("a.txt", dir), "(the file as it is now, and as it would be):\n│ @@ -1,2 +1,2 @@\n│  one\n│ -two\n│ +2\n")
	require.Contains(t, show(dir+"/a.txt", ""), "│ -two\n")
	require.Contains(t, show("b.txt", dir), "(a new file):\n│ @@ -0,0 +1,2 @@\n│ +one\n│ +2\n")
	for path, why := range map[string]string{"binary": "it is no text", "huge": "too large", ".": "it is not a regular file"} {
		s := show(path, dir)
		require.Contains(t, s, "not compared with the file: "+why)
		require.Contains(t, s, "content: 3 lines, 6 bytes\n│ one\n│ 2\n│\n", "the content itself is shown")
	}
	s := show("a.txt", "") // which file is meant nobody knows
	require.NotContains(t, s, "change of")
	require.Contains(t, s, "│ one\n│ 2\n")
	s = show("a.txt\x00", dir)
	require.Contains(t, s, "not compared with the file: invalid argument")
}

func TestChangesThatAreNone(t *testing.T) {
	for _, args := range []string{
		`{"edits":[{"old_string":"a","new_string":"b","more":1}]}`,
		`{"edits":["x"]}`, `{"edits":[]}`, `{"edits":"x"}`,
		`{"old_string":"a"}`, `{"old_string":"a","new_string":1}`, `{"content":"x"}`, `{"path":"/x"}`,
		`{"old_string":` + quote(strings.Repeat("x", maxDiffBytes+1)) + `,"new_string":""}`,
	} {
		c := call("x", "Edit", args)
		require.Zero(t, len(changesOf(&c, os.ReadFile)), "%.60s", args)
	}
	c := call("x", "Edit", `{"old_string":"a","new_string":"a"}`)
	p := page(t, 80, 24, c)
	require.Contains(t, screen(t, p), "│ no difference\n")
}

func TestAnswers(t *testing.T) {
	simple := call("bavi-nope-42", "bash", `{"command":"ls"}`)
	for _, c := range []struct {
		keys []string
		want *Answer
	}{
		{[]string{"y"}, &Answer{Approve: true}},
		{[]string{"n"}, &Answer{}},
		{[]string{"s"}, &Answer{Approve: true, Scope: Session}},
		{[]string{"a"}, nil},
		{[]string{"a", "a"}, &Answer{Approve: true, Scope: Always}},
		{[]string{"a", "b", "a"}, nil},
		{[]string{"r", "n", "o", "t", " ", "y", "e", "t", "enter", "n"}, &Answer{Reason: "not yet"}},
		{[]string{"r", "x", "ä", "backspace", "enter", "y"}, &Answer{Approve: true, Reason: "x"}},
		{[]string{"r", "x", "ctrl-u", "y", "enter", "y"}, &Answer{Approve: true, Reason: "y"}},
		{[]string{"r", "x", "esc", "y"}, &Answer{Approve: true}},
		{[]string{"x"}, nil},
		{[]string{"?", "y"}, nil},
		{[]string{"?", "x", "y"}, &Answer{Approve: true}},
		{[]string{"paste"}, nil},
	} {
		t.Run(strings.Join(c.keys, " "), func(t *testing.T) {
			p := page(t, 80, 24, simple)
			got := press(p, c.keys...)
			if c.want != nil {
				c.want.ID, c.want.Digest = simple.ID, simple.Digest
			}
			require.Equal(t, Wish{Answer: c.want}, got)
		})
	}
	require.True(t, press(page(t, 80, 24, simple), "q").Quit)
	require.True(t, press(page(t, 80, 24, simple), "r", "ctrl-c").Quit)
	require.Nil(t, press(page(t, 80, 24), "y").Answer, "there is nothing to answer")
	require.Nil(t, press(page(t, 20, 5, simple), "y").Answer, "nobody could see what")
}

func TestPastedTextAnswersNothing(t *testing.T) {
	p := page(t, 80, 24, call("bavi-nope-42", "bash", `{}`))
	require.Zero(t, p.Key(Key{Name: "paste", Text: "y"}))
	press(p, "r")
	p.Key(Key{Name: "paste", Text: "too\n early\x1b"})
	w := press(p, "enter", "n")
	require.Equal(t, "too early", w.Answer.Reason)
	press(p, "r")
	p.Key(Key{Name: "paste", Text: strings.Repeat("x", 2*maxReason)})
	require.Len(t, p.reason, maxReason)
	require.Contains(t, screen(t, p), "x█")
}

// Nobody allows what he has not seen without being told so.
func TestUnseenLines(t *testing.T) {
	long := call("zuvo-lega-77", "bash", `{"command":`+quote(strings.Repeat("echo line\n", 40))+`}`)
	p := page(t, 80, 20, long)
	require.Nil(t, press(p, "y").Answer)
	require.Contains(t, screen(t, p), "unseen: y again allows all the same")
	require.Nil(t, press(p, "s").Answer, "another key asks again")
	require.NotNil(t, press(p, "s").Answer)
	require.NotNil(t, press(page(t, 80, 20, long), "n").Answer, "a no needs no reading")

	p = page(t, 80, 20, long)
	press(p, "end")
	p.Render()
	require.Nil(t, press(p, "y").Answer, "what was jumped over was not seen")
	press(p, "home", " ", " ", " ")
	p.Render()
	require.NotNil(t, press(p, "y").Answer)

	p = page(t, 80, 20, long)
	for range 3 { // typed ahead, with no look at the page
		p.Key(Key{Name: " "})
	}
	require.Nil(t, p.Key(Key{Name: "y"}).Answer)
	press(p, "home", " ", " ", " ")
	p.Render()
	p.Resize(50, 20)
	require.NotNil(t, press(page(t, 80, 60, long), "y").Answer)
}

// A key that was meant for one call never answers the next.
func TestAnotherCallComesToTheFront(t *testing.T) {
	a, b := call("bavi-nope-42", "bash", `{"command":"ls"}`), call("doro-jupa-06", "bash", `{"command":"rm -rf /"}`)
	b.Opened = b.Opened.Add(time.Second)
	p := page(t, 80, 24, a, b)
	require.Equal(t, a.ID, press(p, "y").Answer.ID)
	p.Answered(a.ID, "allowed", nil)
	require.Nil(t, press(p, "y").Answer)
	require.Contains(t, screen(t, p), "another call has come to the front")
	p.Tick(noon.Add(2 * time.Second))
	require.Equal(t, b.ID, press(p, "y").Answer.ID)

	p = page(t, 80, 24, a, b)
	press(p, "r", "x", "enter")
	p.Update([]string{b.ID}, nil) // a has timed out
	require.Nil(t, press(p, "y").Answer)
	p.Tick(noon.Add(2 * time.Second))
	require.Empty(t, press(p, "y").Answer.Reason, "the reason was for another call")
}

func TestQueue(t *testing.T) {
	var list []Ticket
	for i := range 3 {
		c := call(fmt.Sprintf("bavi-nope-%02d", i), "bash", `{}`)
		c.Opened = noon.Add(-time.Duration(i) * time.Second)
		list = append(list, c)
	}
	p := page(t, 80, 24, list...)
	require.Equal(t, list[2].ID, p.shown, "the oldest comes first")
	require.ElementsMatch(t, []string{list[0].ID, list[1].ID, list[2].ID}, p.Known())
	press(p, "tab")
	require.Equal(t, list[1].ID, p.shown)
	press(p, "left", "shift-tab")
	require.Equal(t, list[0].ID, p.shown)
	p.Answered(list[0].ID, "denied", nil)
	require.Equal(t, list[1].ID, p.shown)
	p.Answered(list[1].ID, "", errors.New("too late: the agent went away"))
	require.Equal(t, list[1].ID, p.shown, "whether it has ended the next look tells")
	require.Contains(t, screen(t, p), "too late: the agent went away")
	p.Update(nil, nil)
	require.Empty(t, p.shown)
	require.Contains(t, screen(t, p), "ended without you")
}

func TestHistoryIsShort(t *testing.T) {
	p := page(t, 80, 24)
	for i := range 2 * maxHistory {
		c := call(fmt.Sprintf("bavi-nope-%02d", i), "bash", `{}`)
		open(p, c)
		p.Answered(c.ID, "allowed", nil)
	}
	require.Len(t, p.history, maxHistory)
	require.Contains(t, screen(t, p), "bavi-nope-15")
}

func TestOneLine(t *testing.T) {
	c := call("bavi-nope-42", "bash", `{ "command" : "git \u0070ush\u001b\n" , "n":1.0, "l": [ 1, {"a":[]} ], "x" : "`+strings.Repeat("é", 40)+`"}`)
	require.Equal(t, `bavi-nope-42  bash {"command": "git push‹U+001B›\n", "n": 1.0, "l": [1, {"a": []}], "x": "éé … (78 bytes more)`, c.OneLine(79))
	c = call("bavi-nope-42", "bash\n", "{\"a\":\"\u202e\"}")
	require.Equal(t, "bavi-nope-42  bash‹U+000A› {\"a\": \"‹U+202E›\"}", c.OneLine(100))
}

func TestLeft(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1: "its time is over", 0: "its time is over", 1: "1 s left", 59*time.Second + 1: "60 s left", 119 * time.Second: "119 s left",
		120 * time.Second: "2 min left", 119 * time.Minute: "119 min left", 26*time.Hour + 5*time.Minute: "26 h 5 min left",
	} {
		require.Equal(t, want, Left(d), d)
	}
}
