package record

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// A decision that became a no after it was recorded is found under what is
// shown of it, and not under what it was.
func TestFilterByWhatIsShown(t *testing.T) {
	path := recordPath(t)
	s := openStore(t, Options{Path: path}, faults{})
	for _, a := range []protocol.Action{protocol.ActionAllow, protocol.ActionAllow, protocol.ActionDeny, protocol.ActionAsk} {
		require.NoError(t, s.Record(t.Context(), call(t, protocol.StageBeforeTool, `{"tool":"bash","arguments":{}}`, protocol.Result{Action: a})))
	}
	require.NoError(t, s.Record(t.Context(), call(t, protocol.StageAfterTool, `{"tool":"bash","arguments":{},"result":{"content":""}}`, protocol.Result{})))
	require.NoError(t, s.Record(t.Context(), call(t, protocol.StageApproveTool, `{"tool":"bash","arguments":{}}`,
		protocol.Result{Approval: &protocol.ApprovalResult{Approved: true}})))
	closeStore(t, s)
	sabotage(t, path, `INSERT INTO amendments (seq, time, hash, decision, what, reason)
		SELECT seq + 100, 1, x'00', seq, 'denied', 'late' FROM decisions WHERE seq <> 2;
		INSERT INTO amendments (seq, time, hash, decision, what) VALUES (200, 1, x'00', 2, 'undelivered')`)
	r := openReader(t, path)
	found := map[protocol.Action][]uint64{}
	for _, d := range decisions(t, r, Filter{}) {
		found[d.Action] = append(found[d.Action], d.ID)
	}
	require.Equal(t, map[protocol.Action][]uint64{protocol.ActionAllow: {2}, protocol.ActionDeny: {1, 3, 4, 6}, protocol.ActionAbortTurn: {5}}, found)
	for _, a := range []protocol.Action{
		protocol.ActionContinue, protocol.ActionAsk, protocol.ActionAllow, protocol.ActionDeny, protocol.ActionAbortTurn, protocol.WireDenyTool,
	} {
		var ids []uint64
		for _, d := range decisions(t, r, Filter{Action: a}) {
			ids = append(ids, d.ID)
		}
		want := found[a]
		if a == protocol.WireDenyTool {
			want = found[protocol.ActionDeny]
		}
		require.Equal(t, want, ids, a)
	}
	require.Len(t, decisions(t, r, Filter{Action: protocol.ActionDeny, Limit: 2}), 2)
}

// Calls about which a person was asked are counted once, however that came
// about.
func TestSessionsCountWhatWasAsked(t *testing.T) {
	yes := &protocol.ApprovalResult{Approved: true, By: "ann"}
	type asked struct {
		stage   protocol.Stage
		command string
		res     protocol.Result
	}
	for name, c := range map[string]struct {
		calls []asked
		want  int
	}{
		"nobody": {[]asked{{protocol.StageBeforeTool, "a", protocol.Result{Action: protocol.ActionAllow}}}, 0},
		"within the call": {[]asked{
			{protocol.StageBeforeTool, "a", protocol.Result{Action: protocol.ActionAllow, Approval: yes}},
			{protocol.StageBeforeTool, "b", protocol.Result{Action: protocol.ActionDeny, Approval: &protocol.ApprovalResult{}}},
		}, 2},
		"in a call of its own": {[]asked{
			{protocol.StageBeforeTool, "a", protocol.Result{Action: protocol.ActionAsk}},
			{protocol.StageApproveTool, "a", protocol.Result{Approval: yes}},
		}, 1},
		"by the agent": {[]asked{{protocol.StageApproveTool, "a", protocol.Result{Approval: yes}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := recordPath(t)
			s := openStore(t, Options{Path: path}, faults{})
			for _, a := range c.calls {
				require.NoError(t, s.Record(t.Context(), call(t, a.stage, `{"tool":"bash","arguments":{"command":"`+a.command+`"},"meta":{"session_id":"s"}}`, a.res)))
			}
			closeStore(t, s)
			list, err := openReader(t, path).Sessions(t.Context(), 0)
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.EqualValues(t, c.want, list[0].Asked)
		})
	}
}
