package daemon

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/manager"
	"github.com/hookd/hookd/protocol"
)

// noting remembers what it was shown.
type noting []*manager.Record

func (n *noting) Take(rec *manager.Record) { *n = append(*n, rec) }

type keeping struct{ err error }

func (k keeping) Record(context.Context, *manager.Record) error { return k.err }

// TestTakersSeeTheAnswer wants takers to be shown what the agent gets, after
// those who can make a no of it.
func TestTakersSeeTheAnswer(t *testing.T) {
	full, late := errors.New("the disk is full"), errors.New("nobody waits")
	for name, c := range map[string]struct {
		keeps    manager.Recorder
		stage    protocol.Stage
		answer   protocol.Result
		err      error
		action   protocol.Action
		approved bool
		same     bool // it is shown as it came
	}{
		"kept by nobody":        {stage: protocol.StageBeforeTool, same: true},
		"kept":                  {keeps: keeping{}, stage: protocol.StageBeforeTool, answer: protocol.Result{Action: protocol.ActionModify}, action: protocol.ActionModify, same: true},
		"not kept":              {keeps: keeping{full}, stage: protocol.StageBeforeTool, action: protocol.ActionDeny},
		"not kept, a no before": {keeps: keeping{full}, stage: protocol.StageBeforeTool, answer: protocol.Result{Action: protocol.ActionHardAbort}, action: protocol.ActionHardAbort},
		"approval":              {keeps: keeping{}, stage: protocol.StageApproveTool, answer: protocol.Result{Approval: &protocol.ApprovalResult{Approved: true}}, approved: true, same: true},
		"approval, not kept":    {keeps: keeping{full}, stage: protocol.StageApproveTool, answer: protocol.Result{Approval: &protocol.ApprovalResult{Approved: true}}},
		"no decision, not kept": {keeps: keeping{full}, stage: protocol.StageBeforeTool, err: late, same: true},
	} {
		t.Run(name, func(t *testing.T) {
			var one, two noting
			r := &recorders{newBook(), c.keeps, []taker{&one, &two}}
			require.False(t, r.Waits())
			answer := c.answer
			rec := &manager.Record{
				Caller: &manager.Caller{}, Request: &protocol.Request{Stage: protocol.NewStageTable().Stage(c.stage)}, Result: &answer, Err: c.err,
			}
			err := r.Record(t.Context(), rec)
			if k, ok := c.keeps.(keeping); ok {
				require.ErrorIs(t, err, k.err)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.answer, *rec.Result, "the manager's own stays as it is")
			require.Len(t, one, 1)
			require.Equal(t, one, two)
			got := one[0]
			require.Equal(t, c.same, got == rec)
			require.Equal(t, c.action, got.Result.Action)
			if c.answer.Approval != nil {
				require.Equal(t, c.approved, got.Result.Approval.Approved)
			}
			require.Equal(t, c.err, got.Err)
		})
	}
}
