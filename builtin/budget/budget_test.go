package budget

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

func budget(t testing.TB, config string, ledger *Ledger) *Budget {
	b, err := New(jsontext.Value(config), "", ledger, zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// ask asks at a stage; params are all but meta.
func ask(t testing.TB, b *Budget, stage protocol.Stage, session, params string) protocol.Decision {
	t.Helper()
	req := request(t, stage, session, params)
	d, err := b.Intercept(context.Background(), req)
	require.NoError(t, err)
	require.NoError(t, d.Check(req.Stage))
	return d
}

func request(t testing.TB, stage protocol.Stage, session, params string) *protocol.Request {
	t.Helper()
	obj, err := protocol.DecodeObject([]byte(params), 0)
	require.NoError(t, err)
	info := protocol.NewStageTable().Stage(stage)
	meta := protocol.Object{{Name: "session_id", Value: protocol.Quote(session)}}
	req, bad := protocol.DecodeRequest(info, obj.With("meta", meta.AppendJSON(nil)))
	require.Nil(t, bad)
	return req
}

const (
	aCall     = `{"tool":"x","arguments":{}}`
	aRequest  = `{"model":"big-1","messages":[]}`
	aResponse = `{"response":{"content":"","usage":{"input_tokens":1000,"output_tokens":100}}}`
)

func tool(t testing.TB, b *Budget, session string) protocol.Decision {
	return ask(t, b, protocol.StageBeforeTool, session, aCall)
}

func TestCalls(t *testing.T) {
	b := budget(t, `{"session":{"calls":2,"model_calls":1}}`, NewLedger(0))
	for _, session := range []string{"a", "b"} {
		require.Equal(t, protocol.Decision{}, tool(t, b, session))
		require.Equal(t, protocol.Decision{}, ask(t, b, protocol.StageBeforeLLM, session, aRequest))
		require.Equal(t, protocol.Decision{}, tool(t, b, session))
		for range 2 {
			require.Equal(t, hook.Deny("the budget of the session is used up: 2 of 2 tool calls"), tool(t, b, session))
			require.Equal(t, hook.Deny("the budget of the session is used up: 1 of 1 model calls"), ask(t, b, protocol.StageBeforeLLM, session, aRequest))
		}
	}
}

func TestAsk(t *testing.T) {
	b := budget(t, `{"session":{"tokens":1000},"action":"ask"}`, NewLedger(0))
	ask(t, b, protocol.StageAfterLLM, "s", aResponse)
	const over = "the budget of the session is used up: 1100 of 1000 tokens"
	require.Equal(t, protocol.Decision{Action: protocol.ActionAsk, Reason: over, Permission: "budget"}, tool(t, b, "s"))
	require.Equal(t, protocol.Decision{Warnings: []string{over}}, ask(t, b, protocol.StageBeforeLLM, "s", aRequest))
}

func TestCost(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	b, err := New(jsontext.Value(`{"day":{"cost":0.009},"currency":"EUR","prices":[{"model":"big-*","input":3,"output":15},{"model":"huge","output":1}]}`), "", NewLedger(0), zap.New(core))
	require.NoError(t, err)
	defer b.Close()
	require.Equal(t, protocol.Decision{}, ask(t, b, protocol.StageBeforeLLM, "a", aRequest))
	ask(t, b, protocol.StageAfterLLM, "a", aResponse) // 0.0045
	require.Equal(t, protocol.Decision{}, tool(t, b, "a"))

	ask(t, b, protocol.StageAfterLLM, "b", `{"response":{"model":"small","usage":{"total_tokens":5}}}`)
	ask(t, b, protocol.StageAfterLLM, "b", `{"response":{"model":"small","usage":{"total_tokens":5}}}`)
	require.Equal(t, []string{"the model small has no price: what it uses does not count as cost"}, tool(t, b, "b").Warnings)
	require.Equal(t, 1, logs.Len(), "once per model")

	ask(t, b, protocol.StageAfterLLM, "c", `{"response":{"model":"big-2","usage":{"total_tokens":300}}}`) // 0.0045 at the dearer price
	require.Equal(t, hook.Deny("the budget of the day is used up: 0.0090 of 0.009 EUR"), tool(t, b, "a"))
}

// TestEvents wants usage that is told both ways to count once.
func TestEvents(t *testing.T) {
	b := budget(t, `{"session":{"tokens":2100}}`, NewLedger(0))
	event := func(source string) {
		ev := &protocol.Event{
			Kind: protocol.EventLLMResponse, Source: source, Meta: protocol.Object{{Name: "session_id", Value: protocol.Quote("s")}},
			Payload: jsontext.Value(`{"usage":{"input_tokens":1000,"output_tokens":50}}`),
		}
		require.NoError(t, b.Observe(context.Background(), &hook.Event{Event: ev}))
	}
	event("agent")
	ask(t, b, protocol.StageAfterLLM, "s", aResponse)
	event("hookd") // made of the stage
	require.Equal(t, protocol.Decision{}, tool(t, b, "s"))
	event("agent")
	require.Equal(t, hook.Deny("the budget of the session is used up: 2100 of 2100 tokens"), tool(t, b, "s"))
	_, day, _ := b.ledger.look("", time.Now())
	require.Equal(t, int64(2100), day.Tokens)
}

func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget(t, `{"session":{"minutes":40},"day":{"calls":5}}`, NewLedger(0))
		require.Equal(t, protocol.Decision{}, tool(t, b, "s"))
		time.Sleep(4 * time.Minute)
		require.Equal(t, protocol.Decision{}, tool(t, b, "s"))
		time.Sleep(3 * time.Hour) // the user is away
		ask(t, b, protocol.StageUserMessage, "s", `{"message":{"role":"user","content":""}}`)
		require.Equal(t, protocol.Decision{}, tool(t, b, "s"))
		time.Sleep(5 * time.Hour) // nobody knows why: 30 minutes
		require.Equal(t, protocol.Decision{}, tool(t, b, "s"))
		time.Sleep(6*time.Minute + 6*time.Second)
		require.Equal(t, hook.Deny("the budget of the session is used up: 40.1 of 40 minutes"), tool(t, b, "s"))
		require.Equal(t, protocol.Decision{}, tool(t, b, "other"))
		require.Equal(t, hook.Deny("the budget of the day is used up: 5 of 5 tool calls"), tool(t, b, "other"))
		time.Sleep(24 * time.Hour)
		require.Equal(t, protocol.Decision{}, tool(t, b, "third"), "a new day")
	})
}

func TestDryRunAndTwice(t *testing.T) {
	b := budget(t, `{"session":{"calls":2}}`, NewLedger(0))
	for range 5 {
		require.Equal(t, protocol.Decision{}, ask(t, b, protocol.StageBeforeTool, "s", `{"tool":"x","arguments":{},"dry_run":true}`))
		ask(t, b, protocol.StageAfterLLM, "s", `{"response":{},"dry_run":true}`)
		ask(t, b, protocol.StageUserMessage, "s", `{"message":{"content":""},"dry_run":true}`)
	}
	require.Zero(t, b.ledger.accounts.Len())
	for _, id := range []string{"1", "2", "2", "1"} {
		require.Equal(t, protocol.Decision{}, ask(t, b, protocol.StageBeforeTool, "s", `{"tool":"x","arguments":{},"call_id":"`+id+`"}`), "asked twice")
	}
	require.Equal(t, protocol.ActionDeny, tool(t, b, "s").Action)
	require.Equal(t, protocol.ActionDeny, ask(t, b, protocol.StageBeforeTool, "s", `{"tool":"x","arguments":{},"dry_run":true}`).Action)
}

// TestOneIDForAll wants an agent that gives all its calls one id to be counted.
func TestOneIDForAll(t *testing.T) {
	cont, deny := protocol.Action(""), protocol.ActionDeny
	params := func(command string) string {
		return `{"tool":"bash","arguments":{"command":"` + command + `"},"call_id":"call_0"}`
	}
	for name, c := range map[string]struct {
		commands string // a letter each
		want     []protocol.Action
	}{
		"other commands":  {"abcd", []protocol.Action{cont, cont, deny, deny}},
		"the same":        {"aaaaaa", []protocol.Action{cont, cont, cont, cont, deny, deny}},
		"taking turns":    {"ababab", []protocol.Action{cont, cont, cont, cont, deny, deny}},
		"asked once more": {"aabc", []protocol.Action{cont, cont, cont, deny}},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget(t, `{"session":{"calls":2}}`, NewLedger(0))
			for i, command := range c.commands {
				require.Equal(t, c.want[i], ask(t, b, protocol.StageBeforeTool, "s", params(string(command))).Action, i)
			}
		})
	}
	t.Run("models", func(t *testing.T) {
		b := budget(t, `{"session":{"model_calls":2,"calls":1}}`, NewLedger(0))
		require.Equal(t, cont, ask(t, b, protocol.StageBeforeTool, "s", params("a")).Action)
		for i, want := range []protocol.Action{cont, cont, deny} {
			request := fmt.Sprintf(`{"model":"big-1","messages":[{"role":"user","content":"%d"}],"call_id":"call_0"}`, i)
			require.Equal(t, want, ask(t, b, protocol.StageBeforeLLM, "s", request).Action, i)
		}
	})
	t.Run("later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := budget(t, `{"session":{"calls":2}}`, NewLedger(0))
			for i, want := range []protocol.Action{cont, cont, deny} {
				require.Equal(t, want, ask(t, b, protocol.StageBeforeTool, "s", params("a")).Action, i)
				time.Sleep(sameCall)
			}
		})
	})
}

// TestRecheck wants a call that a later hook changes to count once, with an id
// and without.
func TestRecheck(t *testing.T) {
	for _, member := range []string{"x_id", "call_id"} {
		b := budget(t, `{"session":{"calls":2}}`, NewLedger(0))
		for i, want := range []protocol.Action{"", "", "deny"} {
			req := request(t, protocol.StageBeforeTool, "s", fmt.Sprintf(`{"tool":"x","arguments":{},"%s":"%d"}`, member, i))
			changed := *req
			changed.Subject = request(t, protocol.StageBeforeTool, "s", `{"tool":"x","arguments":{"y":1}}`).Subject
			for _, r := range []*protocol.Request{req, &changed} {
				d, err := b.Intercept(context.Background(), r)
				require.NoError(t, err)
				require.Equal(t, want, d.Action, i)
			}
		}
	}
}

// TestCallsAreBounded wants few calls to be remembered, whatever agents send.
func TestCallsAreBounded(t *testing.T) {
	b := budget(t, `{"session":{"calls":1000}}`, NewLedger(0))
	for i := range 100 {
		id := fmt.Sprint(i)
		if i%2 == 0 {
			id += strings.Repeat("x", maxCallID)
		}
		ask(t, b, protocol.StageBeforeTool, "s", `{"tool":"x","arguments":{},"call_id":"`+id+`"}`)
	}
	b.ledger.accounts.Each(func(_ string, a *account) {
		require.Len(t, a.calls, keepCalls)
		require.LessOrEqual(t, cap(a.calls), 2*keepCalls)
		for _, c := range a.calls {
			require.LessOrEqual(t, len(c.id), maxCallID)
		}
	})
}

func TestReload(t *testing.T) {
	ledger := NewLedger(0)
	require.Equal(t, protocol.Decision{}, tool(t, budget(t, `{"session":{"calls":5}}`, ledger), "s"))
	require.Equal(t, protocol.ActionDeny, tool(t, budget(t, `{"session":{"calls":1}}`, ledger), "s").Action)
}

func TestFile(t *testing.T) {
	folder := t.TempDir()
	open := func() *Budget {
		b, err := New(jsontext.Value(`{"session":{"calls":2,"tokens":5000},"file":"used.json"}`), folder, NewLedger(0), zap.NewNop())
		require.NoError(t, err)
		return b
	}
	for _, want := range []protocol.Action{"", "", "deny"} {
		b := open()
		require.Equal(t, want, tool(t, b, "s").Action)
		ask(t, b, protocol.StageAfterLLM, "s", aResponse)
		require.NoError(t, b.Close())
	}
	b := open()
	session, day, _ := b.ledger.look("\x00s", time.Now())
	require.Equal(t, [2]int64{2, 3300}, [2]int64{session.Calls, session.Tokens})
	require.Equal(t, [2]int64{2, 3300}, [2]int64{day.Calls, day.Tokens})
	require.NoError(t, b.Close())
	path := filepath.Join(folder, "used.json")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file stays")

	for _, bad := range []string{``, `{`, `{"version":2}`, `{"version":1,"x":1}`} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		_, err := New(jsontext.Value(`{"file":"used.json"}`), folder, NewLedger(0), zap.NewNop())
		require.ErrorContains(t, err, "/file: read what was used so far", bad)
	}
	_, err = New(jsontext.Value(`{"file":"none/used.json"}`), folder, NewLedger(0), zap.NewNop())
	require.ErrorContains(t, err, "/file: write what was used so far")
}

// TestFileIsKept wants the file to be written while the hook runs, and failures
// to be said.
func TestFileIsKept(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sub := filepath.Join(folder, "sub")
		require.NoError(t, os.Mkdir(sub, 0o700))
		core, logs := observer.New(zap.InfoLevel)
		b, err := New(jsontext.Value(`{"session":{"calls":9},"file":"sub/used.json"}`), folder, NewLedger(0), zap.New(core))
		require.NoError(t, err)
		require.NoError(t, os.RemoveAll(sub))
		tool(t, b, "s")
		time.Sleep(3 * saveEvery)
		synctest.Wait()
		require.Equal(t, 1, logs.Len(), "said once")
		require.NoError(t, os.Mkdir(sub, 0o700))
		time.Sleep(saveEvery)
		synctest.Wait()
		require.Equal(t, "what was used is saved again", logs.All()[1].Message)
		require.FileExists(t, filepath.Join(sub, "used.json"))
		require.NoError(t, b.Close())
	})
}

func TestConcurrently(t *testing.T) {
	b := budget(t, `{"session":{"calls":1000000}}`, NewLedger(0))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				tool(t, b, "s")
				ask(t, b, protocol.StageAfterLLM, "s", aResponse)
			}
		})
	}
	wg.Wait()
	session, day, _ := b.ledger.look("\x00s", time.Now())
	require.Equal(t, int64(200), session.Calls)
	require.Equal(t, int64(200*1100), session.Tokens)
	require.Equal(t, session.Tokens, day.Tokens)
}

func TestRoles(t *testing.T) {
	b := budget(t, "", NewLedger(0))
	roles, err := hook.RolesOf(b)
	require.NoError(t, err)
	require.True(t, roles.Quick)
	require.NotNil(t, roles.Observer)
	require.Equal(t, b.Stages(), roles.Stages)
}
