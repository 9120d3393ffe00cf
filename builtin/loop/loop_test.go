package loop

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

// call is a call of a tool as an agent makes it.
type call struct {
	session, agentID, id, tool, args string
	dry                              bool
}

func (c call) request(t testing.TB) *protocol.Request {
	if c.args == "" {
		c.args = "{}"
	}
	meta := protocol.Object{{Name: "session_id", Value: protocol.Quote(c.session)}, {Name: "agent_id", Value: protocol.Quote(c.agentID)}}
	params := protocol.Object{{Name: "tool", Value: protocol.Quote(c.tool)}, {Name: "arguments", Value: jsontext.Value(c.args)}, {Name: "meta", Value: meta.AppendJSON(nil)}}
	if c.id != "" {
		params = append(params, protocol.Member{Name: "call_id", Value: protocol.Quote(c.id)})
	}
	if c.dry {
		params = append(params, protocol.Member{Name: "dry_run", Value: jsontext.Value("true")})
	}
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(protocol.StageBeforeTool), params)
	require.Nil(t, bad)
	return req
}

// said returns what the guard made of a call: "-", warn or deny.
func said(t testing.TB, g *Guard, c call) string {
	return saidOf(t, g, c.request(t))
}

func saidOf(t testing.TB, g *Guard, req *protocol.Request) string {
	d, err := g.Intercept(context.Background(), req)
	require.NoError(t, err)
	require.NoError(t, d.Check(req.Stage))
	switch {
	case d.Action == protocol.ActionDeny:
		require.NotEmpty(t, d.Reason)
		return "deny"
	case len(d.Warnings) > 0:
		require.Len(t, d.AddContext, 1)
		return "warn"
	}
	require.Equal(t, protocol.Decision{}, d)
	return "-"
}

func guard(t testing.TB, config string) *Guard {
	g, err := New(jsontext.Value(config), NewTable(0))
	require.NoError(t, err)
	return g
}

func TestLoop(t *testing.T) {
	a, b, same := call{tool: "a"}, call{tool: "b"}, call{tool: "a", id: "call_0"}
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		config string
		calls  []call
		want   string
	}{
		"warns, then denies":       {``, []call{a, a, a, a, a, a, b, a}, "- - warn warn deny deny - -"},
		"another call in between":  {``, []call{a, a, b, a, a, b, a, a}, "- - - - - - - -"},
		"other arguments":          {``, []call{a, a, {tool: "a", args: `{"x":1}`}, a, a}, "- - - - -"},
		"white space, order":       {``, []call{{tool: "a", args: `{"x":1,"y":[2]}`}, {tool: "a", args: `{ "x": 1, "y": [2] }`}, {tool: "a", args: `{"y":[2],"x":1}`}}, "- - warn"},
		"digits count":             {``, []call{{tool: "a", args: `{"x":1}`}, {tool: "a", args: `{"x":1.0}`}, {tool: "a", args: `{"x":1}`}}, "- - -"},
		"configured":               {`{"warn":2,"deny":3}`, []call{a, a, a}, "- warn deny"},
		"no deny":                  {`{"deny":0}`, []call{a, a, a, a, a, a}, "- - warn warn warn warn"},
		"no warning":               {`{"warn":0,"deny":3}`, []call{a, a, a}, "- - deny"},
		"except":                   {`{"warn":2,"except":["wait*","/^po/"]}`, []call{{tool: "wait_for"}, {tool: "wait_for"}, a, {tool: "poll"}, a}, "- - - - warn"},
		"sessions":                 {`{"warn":2}`, []call{a, {session: "2", tool: "a"}, a, {session: "2", tool: "a"}}, "- - warn warn"},
		"agents of one session":    {`{"warn":2}`, []call{a, {agentID: "sub", tool: "b"}, a, {agentID: "sub", tool: "b"}}, "- - warn warn"},
		"a dry run does not count": {`{"warn":2}`, []call{{tool: "a", dry: true}, {tool: "a", dry: true}, a, {tool: "a", dry: true}, {tool: "b", dry: true}, a}, "- - - warn - warn"},
		"asked twice about one":    {`{"warn":2}`, []call{{tool: "a", id: "1"}, {tool: "a", id: "1"}, {tool: "a", id: "2"}, {tool: "a", id: "2"}}, "- - warn warn"},
		"one id for all calls":     {``, []call{same, same, same, same, same, same, same, same, same}, "- - - - warn warn warn warn deny"},
		"one id, other calls":      {`{"warn":2}`, []call{same, {tool: "b", id: "call_0"}, same, {tool: "b", id: "call_0"}}, "- - - -"},
		"a long id":                {`{"warn":2}`, []call{{tool: "a", id: long}, {tool: "a", id: long}}, "- warn"},
	} {
		t.Run(name, func(t *testing.T) {
			g := guard(t, c.config)
			var got []string
			for _, call := range c.calls {
				got = append(got, said(t, g, call))
			}
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

// TestRecheck wants a call that a later hook changes to count once, with an id
// and without.
func TestRecheck(t *testing.T) {
	for _, ids := range [][]string{{"", "", ""}, {"1", "2", "3"}} {
		g := guard(t, `{"warn":3}`)
		for i, want := range []string{"-", "-", "warn"} {
			req := call{tool: "a", id: ids[i]}.request(t)
			require.Equal(t, want, saidOf(t, g, req), ids)
			changed := *req
			changed.Subject = call{tool: "a", args: `{"x":1}`}.request(t).Subject
			require.Equal(t, want, saidOf(t, g, &changed), ids)
		}
	}
}

// TestSameIDLater wants an id that comes again after a while to be another call.
func TestSameIDLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, "")
		for i, want := range []string{"-", "-", "warn", "warn", "deny"} {
			require.Equal(t, want, said(t, g, call{tool: "a", id: "call_0"}), i)
			time.Sleep(sameCall)
		}
	})
}

// TestReload wants counting to go on with another config.
func TestReload(t *testing.T) {
	table := NewTable(0)
	for i, want := range []string{"-", "-", "warn", "warn", "deny"} {
		g, err := New(nil, table)
		require.NoError(t, err)
		require.Equal(t, want, said(t, g, call{tool: "a"}), i)
	}
}

func TestSessionEnd(t *testing.T) {
	g := guard(t, `{"warn":2}`)
	require.Equal(t, "-", said(t, g, call{session: "s", tool: "a"}))
	ev := &protocol.Event{Kind: protocol.EventSessionEnd, Meta: call{session: "s", tool: "x"}.request(t).Meta}
	require.NoError(t, g.Observe(context.Background(), &hook.Event{Event: ev}))
	require.Zero(t, g.table.Len())
	require.Equal(t, "-", said(t, g, call{session: "s", tool: "a"}))
}

func TestBoundedMemory(t *testing.T) {
	table := NewTable(100)
	g, err := New(nil, table)
	require.NoError(t, err)
	for i := range 1000 {
		said(t, g, call{session: fmt.Sprint(i), tool: "a"})
	}
	require.Equal(t, 100, table.Len())
}

func TestConcurrently(t *testing.T) {
	g := guard(t, `{"warn":401,"deny":0}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if said(t, g, call{tool: "a"}) != "-" {
					t.Error("counted too much")
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, "warn", said(t, g, call{tool: "a"}), "counted too little")
}

func TestRoles(t *testing.T) {
	roles, err := hook.RolesOf(guard(t, ""))
	require.NoError(t, err)
	require.True(t, roles.Quick)
	require.NotNil(t, roles.Observer)
	require.Equal(t, []protocol.Stage{protocol.StageBeforeTool}, roles.Stages)
}
