package commands

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/child"
	"github.com/hookd/hookd/hook"
	"github.com/hookd/hookd/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRunner(t *testing.T, inFlight int) *Runner {
	t.Helper()
	s := child.NewSpawner()
	t.Cleanup(func() { s.Close() })
	return NewRunner(RunnerOptions{Spawner: s, InFlight: inFlight})
}

// parsed reads a hooks.json that lies in a folder of its own.
func parsed(t *testing.T, text string) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hooks.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	f, err := Parse(path, []byte(text))
	require.NoError(t, err)
	return f
}

func asked(t *testing.T, stage protocol.Stage, params string) *protocol.Request {
	t.Helper()
	obj, err := protocol.ParseObject(jsontext.Value(params))
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(stage), obj)
	require.Nil(t, bad)
	return req
}

// only returns the hook of a file that has one.
func only(t *testing.T, f *File, r *Runner) *hook.Registration {
	t.Helper()
	list := f.Hooks(hook.LayerUser, 0, r)
	require.Len(t, list, 1)
	require.NoError(t, list[0].Check())
	return list[0]
}

func oneCommand(t *testing.T, event, command string) *File {
	return parsed(t, `{"hooks":{"`+event+`":[{"hooks":[{"type":"command","command":`+string(protocol.Quote(command))+`}]}]}}`)
}

func ownCommand(t *testing.T, event, command, more string) *File {
	return parsed(t, `{"version":1,"hooks":{"`+event+`":[{"name":"it"`+more+`,"hooks":[{"type":"command","command":`+string(protocol.Quote(command))+`,"timeout":20}]}]}}`)
}

const bash = `{"tool":"Bash","arguments":{"command":"ls"},"call_id":"t1","meta":{"session_id":"s","cwd":"/"}}`

const enough = 20 * time.Second
