package condition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// request reads the params of a stage.
func request(t testing.TB, stage protocol.Stage, params string) *protocol.Request {
	t.Helper()
	members, err := protocol.DecodeObject([]byte(params), 0)
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(stage), members)
	require.Nil(t, bad)
	return req
}

// shellCall is a call of Bash.
func shellCall(t testing.TB, command string) *protocol.Request {
	t.Helper()
	return toolCall(t, "Bash", `{"command":`+string(protocol.Quote(command))+`}`)
}

// toolCall is a call of a tool in the folder /repo.
func toolCall(t testing.TB, tool, arguments string) *protocol.Request {
	t.Helper()
	return request(t, protocol.StageBeforeTool,
		`{"tool":`+string(protocol.Quote(tool))+`,"arguments":`+arguments+`,"meta":{"cwd":"/repo","agent":"claude","session_id":"s1","model":"m1"}}`)
}

func compile(t testing.TB, text string) *Condition {
	t.Helper()
	c, err := Compile(text)
	require.NoError(t, err, text)
	c.now = func() time.Time { return time.Time{} } // a slow machine changes nothing
	return c
}
