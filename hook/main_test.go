package hook

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hookd/hookd/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request reads the params of a stage as they come over the wire.
func request(t testing.TB, stage protocol.Stage, params string) *protocol.Request {
	t.Helper()
	obj, err := protocol.DecodeObject([]byte(params), 0)
	require.NoError(t, err)
	req, bad := protocol.DecodeRequest(protocol.NewStageTable().Stage(stage), obj)
	require.Nil(t, bad)
	return req
}
