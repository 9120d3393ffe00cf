package instructions

import (
	"context"
	"os"
	"path/filepath"
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

func make1(t testing.TB, config, folder string) *Instructions {
	in, err := New(jsontext.Value(config), folder, NewTable(0), zap.NewNop())
	require.NoError(t, err)
	return in
}

func ask(t testing.TB, in *Instructions, stage protocol.Stage, session, params string) protocol.Decision {
	t.Helper()
	obj, err := protocol.DecodeObject([]byte(params), 0)
	require.NoError(t, err)
	info := protocol.NewStageTable().Stage(stage)
	meta := protocol.Object{{Name: "session_id", Value: protocol.Quote(session)}, {Name: "agent", Value: protocol.Quote("picoclaw")}}
	req, bad := protocol.DecodeRequest(info, obj.With("meta", meta.AppendJSON(nil)))
	require.Nil(t, bad)
	d, err := in.Intercept(context.Background(), req)
	require.NoError(t, err)
	require.NoError(t, d.Check(info))
	return d
}

// context1 returns what is given at inject_instructions.
func context1(t testing.TB, in *Instructions, session string) []string {
	return ask(t, in, protocol.StageInjectInstructions, session, `{"request":{}}`).AddContext
}

// messages returns those of a request after it was asked about.
func messages(t testing.TB, in *Instructions, session, list string) string {
	t.Helper()
	d := ask(t, in, protocol.StageBeforeLLM, session, `{"messages":`+list+`}`)
	if d.Subject == nil {
		require.Equal(t, protocol.Decision{}, d)
		return list
	}
	require.Equal(t, protocol.ActionModify, d.Action)
	o, err := protocol.ParseObject(d.Subject)
	require.NoError(t, err)
	return string(o.Get("messages"))
}

func TestContext(t *testing.T) {
	in := make1(t, `{"instructions":[{"text":"a"},{"text":"b","if":"agent == 'codex'"},{"text":"c","if":"agent == 'picoclaw'","once":true},{"text":"d","at":["before_llm"]}]}`, "")
	require.Equal(t, []string{"a", "c"}, context1(t, in, "1"))
	require.Equal(t, []string{"a"}, context1(t, in, "1"))
	require.Equal(t, []string{"a", "c"}, context1(t, in, "2"))
}

func TestMessages(t *testing.T) {
	in := make1(t, `{"instructions":[{"text":"a","at":["before_llm"]},{"text":"b \"q\"","at":["inject_instructions","before_llm"]}]}`, "")
	const system, user = `{"role":"system","content":"s"}`, `{"role":"user","content":"u","n":1.0}`
	got := messages(t, in, "1", `[`+system+`,`+user+`]`)
	require.Equal(t, `[`+system+`,{"role":"system","content":"a"},{"role":"system","content":"b \"q\""},`+user+`]`, got)
	require.Equal(t, got, messages(t, in, "1", got), "an agent that keeps them has them once")
	require.Equal(t, `[{"role":"system","content":"a"},{"role":"system","content":"b \"q\""}]`, messages(t, in, "1", `[]`))
	// An agent that asks at inject_instructions gets there what is for both.
	require.Equal(t, []string{`b "q"`}, context1(t, in, "2"))
	require.Equal(t, `[{"role":"system","content":"a"},`+user+`]`, messages(t, in, "2", `[`+user+`]`))
}

func TestOnce(t *testing.T) {
	in := make1(t, `{"instructions":[{"text":"a","once":true}]}`, "")
	for range 2 {
		require.Equal(t, []string{"a"}, ask(t, in, protocol.StageInjectInstructions, "s", `{"request":{},"dry_run":true}`).AddContext)
	}
	require.Equal(t, []string{"a"}, context1(t, in, "s"))
	require.Empty(t, ask(t, in, protocol.StageInjectInstructions, "s", `{"request":{},"dry_run":true}`).AddContext)
	for _, kind := range []protocol.EventKind{protocol.EventAfterCompact, protocol.EventSessionEnd} {
		require.Empty(t, context1(t, in, "s"))
		ev := &protocol.Event{Kind: kind, Meta: protocol.Object{{Name: "session_id", Value: protocol.Quote("s")}, {Name: "agent", Value: protocol.Quote("picoclaw")}}}
		require.NoError(t, in.Observe(context.Background(), &hook.Event{Event: ev}))
		require.Equal(t, []string{"a"}, context1(t, in, "s"), kind)
	}
	// A reload goes on where the config before it was.
	again, err := New(jsontext.Value(`{"instructions":[{"text":"new","once":true},{"text":"a","once":true}]}`), "", in.table, zap.NewNop())
	require.NoError(t, err)
	require.Equal(t, []string{"new"}, context1(t, again, "s"))
}

func TestFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "house.md")
	synctest.Test(t, func(t *testing.T) {
		write := func(s string) {
			require.NoError(t, os.WriteFile(path, []byte(s), 0o600))
			require.NoError(t, os.Chtimes(path, time.Now(), time.Now()))
		}
		write("one\n")
		core, logs := observer.New(zap.WarnLevel)
		in, err := New(jsontext.Value(`{"instructions":[{"file":"house.md"}]}`), folder, NewTable(0), zap.New(core))
		require.NoError(t, err)
		require.Equal(t, []string{"one"}, context1(t, in, "s"))
		time.Sleep(lookEvery)
		write("two\n")
		require.Equal(t, []string{"two"}, context1(t, in, "s"))
		require.NoError(t, os.Remove(path))
		for range 3 {
			time.Sleep(lookEvery)
			require.Equal(t, []string{"two"}, context1(t, in, "s"), "the last text stays")
		}
		require.Equal(t, 1, logs.Len())
		time.Sleep(lookEvery)
		write("")
		require.Empty(t, context1(t, in, "s"))
	})
	for _, name := range []string{"none.md", "."} {
		_, err := New(jsontext.Value(`{"instructions":[{"text":"x"},{"file":"`+name+`"}]}`), folder, NewTable(0), zap.NewNop())
		require.ErrorContains(t, err, "/instructions/1/file: ", name)
	}
}

func TestConcurrently(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "f"), []byte("f"), 0o600))
	in := make1(t, `{"instructions":[{"file":"f"},{"text":"a","once":true}]}`, folder)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				context1(t, in, "s")
				messages(t, in, "s", `[]`)
			}
		})
	}
	wg.Wait()
	require.Equal(t, []string{"f"}, context1(t, in, "s"))
}

func TestRoles(t *testing.T) {
	in := make1(t, "", "")
	roles, err := hook.RolesOf(in)
	require.NoError(t, err)
	require.False(t, roles.Quick, "it looks at files")
	require.Equal(t, in.Stages(), roles.Stages)
	require.NotNil(t, roles.Observer)
}
