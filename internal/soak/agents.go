package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookd/hookd/internal/fault"
	"github.com/hookd/hookd/internal/invariant"
	"github.com/hookd/hookd/protocol"
)

// agent is one that does everything right: it asks, waits, checks the answer,
// and pauses.
type agent struct {
	soak *soak
	conn net.Conn
	r    *bufio.Reader
	id   int
	rand *rand.Rand
}

func (s *soak) dial(number int) (*agent, error) {
	conn, err := net.Dial("unix", s.house.agents)
	if err != nil {
		return nil, err
	}
	return &agent{soak: s, conn: conn, r: bufio.NewReaderSize(conn, 64<<10), rand: rand.New(rand.NewPCG(s.seed, uint64(number)))}, nil
}

// pause is about how long an agent does something else between two calls.
const pause = 100 * time.Millisecond

// work asks until ctx ends, and rests while the soak says so.
func (a *agent) work(ctx context.Context) error {
	for ctx.Err() == nil {
		if a.soak.resting.Load() {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		p := &a.soak.patients[a.rand.IntN(len(a.soak.patients))]
		var err error
		switch a.rand.IntN(20) {
		case 0: // something to tell
			_, err = fmt.Fprintf(a.conn, `{"jsonrpc":"2.0","method":"hook.event","params":{"kind":"x_calm","payload":{"password":%q}}}`+"\n", secret)
		case 1:
			err = a.ask(protocol.StageBeforeTool, p, a.rand.IntN(limit/16), fault.Orders{})
		case 2:
			err = a.ask(protocol.StageApproveTool, a.soak.approver(), 0, fault.Orders{})
		default:
			err = a.ask(protocol.StageBeforeTool, p, 200, fault.Orders{})
		}
		if err != nil {
			return fmt.Errorf("an agent that does nothing wrong: %w", err)
		}
		time.Sleep(pause/2 + time.Duration(a.rand.Int64N(int64(pause))))
	}
	return nil
}

// ask makes one call, with so many bytes of argument, and judges the answer.
func (a *agent) ask(stage protocol.Stage, p *patient, size int, o fault.Orders) error {
	context, err := json.Marshal(o)
	if err != nil {
		return err
	}
	a.id++
	id := strconv.Itoa(a.id)
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"hook.%s","params":{"tool":%q,"arguments":{"password":%q,"pad":%q},"trail":true,"context":%s}}`+"\n",
		id, stage, p.name, secret, strings.Repeat("x", size), context)
	health := a.soak.health(p.name)
	begin := time.Now()
	limit := chainTimeout * time.Millisecond
	if stage == protocol.StageApproveTool {
		limit = approvalTimeout * time.Millisecond
	}
	a.soak.ledger.Asked(a, id, begin.Add(limit))
	if _, err := a.conn.Write([]byte(line)); err != nil {
		return err
	}
	watch := time.AfterFunc(limit+overdue, func() { a.soak.overdue(stage, p) })
	answer, err := a.r.ReadBytes('\n')
	watch.Stop()
	if err != nil {
		return err
	}
	took := time.Since(begin)
	var reply struct {
		ID     jsontext.Value  `json:"id"`
		Result jsontext.Value  `json:"result"`
		Error  *protocol.Error `json:"error"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return fmt.Errorf("%w: %s", err, answer)
	}
	if err := a.soak.ledger.Answered(a, string(reply.ID)); err != nil {
		return err
	}
	if bytes.Contains(answer, []byte(secret)) {
		a.soak.violated(fmt.Errorf("I7: a secret stands in an answer: %s", answer))
	}
	switch {
	case reply.Error != nil:
		a.soak.count(func(c *counts) { c.errors[reply.Error.Code]++ })
	case stage == protocol.StageApproveTool:
		a.approval(p, reply.Result, a.mayBeOff(p, health))
	default:
		a.judge(p, reply.Result, a.mayBeOff(p, health), health.well && health == a.soak.health(p.name), took)
	}
	return nil
}

// overdue is by how much an answer is late when where it hangs is of interest.
const overdue = 2 * time.Second

// mayBeOff reports whether a hook was perhaps disabled since it had this health.
func (a *agent) mayBeOff(p *patient, was health) bool {
	is := a.soak.health(p.name)
	return was.off || is.off || was.turns != is.turns
}

// judge holds an answer against the invariants, and counts it. healthy: nothing
// went wrong with the hooks that were asked.
func (a *agent) judge(p *patient, result []byte, mayBeOff, healthy bool, took time.Duration) {
	v, err := invariant.Answer(result, p.matched())
	if err != nil && mayBeOff {
		v, err = invariant.Answer(result, p.matched()[1:])
	}
	if err != nil {
		a.soak.violated(err)
		return
	}
	a.soak.count(func(c *counts) {
		c.actions[v.Action]++
		if v.Stops() {
			c.denies[v.Outcome(v.DecidedBy)]++
		}
		if len(v.Degraded) > 0 {
			c.degraded++
		}
	})
	if !healthy {
		return
	}
	a.soak.healthy(took)
	if v.Action != "continue" || len(v.Degraded) > 0 {
		a.soak.violated(fmt.Errorf("I6: a call whose hooks are well has suffered: %s", result))
	}
}

// approval judges the answer to an approval.
func (a *agent) approval(p *patient, result []byte, mayBeOff bool) {
	v, err := invariant.Answer(result, p.matched()[:1])
	if err != nil && mayBeOff {
		v, err = invariant.Answer(result, nil)
	}
	if err == nil && v.Approved == nil {
		err = errors.New("an approval that says neither yes nor no")
	}
	if err != nil {
		a.soak.violated(err)
		return
	}
	a.soak.count(func(c *counts) {
		c.actions["approved "+strconv.FormatBool(*v.Approved)]++
		if !*v.Approved {
			c.denies[v.Outcome(p.name)]++
		}
	})
}
