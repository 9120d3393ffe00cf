package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/protocol"
)

// outputFaults are those of what a hook writes, as far as it may be restarted
// for them. What is wrong in a single answer comes in TestAnswersThatCantBeRead.
func outputFaults() []fault {
	roomy := func(more map[string]any) map[string]any {
		more["max_in_flight"] = 4
		return more
	}
	return []fault{
		{name: "answers-twice", entry: roomy(map[string]any{}), play: func(t *testing.T, p *patient) {
			pid := p.status(t).PID
			slow, quick := p.caller(t), p.caller(t)
			slow.begin(orders{After: p.file})
			until(t, "a call is under way", func() bool { return p.status(t).InFlight == 1 })
			twice := says(`{"warnings":["first"]}`)
			twice.Write += "\n" + says(`{"action":"deny"}`).Write
			require.Equal(t, []string{p.name + ": first"}, quick.ask(twice).continues(p.name).Warnings)
			p.noisy(t, "duplicate_reply", 1)
			p.named(t, "it answered a call twice")
			require.Equal(t, pid, p.status(t).PID, "it may finish what it is at")
			p.mark(t)
			slow.answer().continues(p.name)
			slow.done()
			quick.done()
			p.recovered(t, 1)
		}},
		{name: "answers-what-was-not-asked", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			id := strings.TrimPrefix(c.ask(says(`{"warnings":["$ID"]}`)).continues(p.name).Warnings[0], p.name+": ")
			c.ask(orders{Exit: new(1), Silent: true}).denies(p.name, protocol.OutcomeCrash)
			p.recovered(t, 1)
			// One that counts from 1 would have that id open again by now.
			for i, strange := range []string{id, "99999999", `"$ID"`, "null"} {
				o := says(`{}`)
				o.Write = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"deny"}}`, strange) + "\n" + o.Write
				c.ask(o).continues(p.name)
				p.noisy(t, "unknown_id", int64(i+1))
			}
			c.done()
			p.recovered(t, 1)
		}},
		{name: "answers-with-a-wrong-id", entry: roomy(map[string]any{"timeout_ms": 700}), play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			for _, strange := range []string{`"$ID"`, "null", "0"} {
				c.ask(orders{Write: fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, strange)}).denies(p.name, protocol.OutcomeTimeout)
			}
			c.done()
			p.noisy(t, "unknown_id", 3)
			p.named(t, "a hook must answer with the id of the request as it was sent")
			p.recovered(t, 1)
		}},
		{name: "prints", entry: roomy(map[string]any{"timeout_ms": 3000, "fail_policy": "continue"}), play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			o := says(`{"warnings":["read all the same"]}`)
			o.Write = "debug: \x1b[31mred\n" + o.Write
			require.Len(t, c.ask(o).continues(p.name).Warnings, 1)
			c.ask(orders{Write: "Traceback (most recent call last):"}).denies(p.name, protocol.OutcomeGarbage, "print only answers on stdout")
			p.noisy(t, "garbage", 2)
			c.ask(orders{Write: "{\n  \"jsonrpc\": \"2.0\", \"id\": $ID, \"result\": {}\n}"}).denies(p.name, protocol.OutcomeGarbage, "wrote 3 lines")
			require.Contains(t, p.d.log.String(), `"debug: \\x1b[31mred\"`, "shown once, escaped")
			c.ask(orders{Write: "noise", Times: 20}).denies(p.name, protocol.OutcomeGarbage)
			c.done()
			p.named(t, "it wrote 20 unreadable lines within 1m0s")
			p.recovered(t, 1)
		}},
		{name: "stalls-in-a-line", entry: roomy(map[string]any{"timeout_ms": 500}), play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			half := says(`{"act`)
			half.Write, half.Open = strings.TrimSuffix(half.Write, "}"), true
			c.ask(half).denies(p.name, protocol.OutcomeTimeout)
			c.done()
			p.named(t, "it did not finish a line in time") // 10 s
			p.recovered(t, 1)
		}},
		{name: "writes-too-much", entry: map[string]any{"fail_policy": "continue"}, play: func(t *testing.T, p *patient) {
			pid := p.status(t).PID
			c := p.caller(t)
			big := says(`{"warnings":["$PAD"]}`)
			for _, big.Pad = range []int{wardLimit, 4 * wardLimit} {
				begin := time.Now()
				c.ask(big).denies(p.name, protocol.OutcomeOversize, "longer than 262144 bytes (limits.max_message_bytes)")
				require.Less(t, time.Since(begin), patience, "at once")
				c.ask(orders{}).continues(p.name)
			}
			require.Equal(t, pid, p.status(t).PID, "it lives on")
			for range 3 {
				c.ask(big).denies(p.name, protocol.OutcomeOversize)
			}
			c.done()
			p.named(t, "it wrote 3 lines in a row that are too long")
			p.recovered(t, 1)
		}},
		{name: "floods-stderr", play: func(t *testing.T, p *patient) {
			const flood = 8 << 20
			c := p.caller(t)
			c.ask(orders{Stderr: flood}).continues(p.name)
			until(t, "all is read", func() bool { return len(p.status(t).Stderr) == 20 })
			require.Less(t, strings.Count(p.d.log.String(), "!"), flood/4, "most of it is not in the log")
			until(t, "the log says how much is missing", func() bool {
				for line := range strings.Lines(p.d.log.String()) {
					if strings.Contains(line, "stderr were dropped") && strings.Contains(line, p.name) {
						return true
					}
				}
				return false
			})
			c.done()
			p.recovered(t, 0)
		}},
	}
}

// A single answer that is wrong closes the gate under every policy, unless it
// is an error, which is no answer. The hook lives on.
func TestAnswersThatCantBeRead(t *testing.T) {
	const deny, allow = "strict", "lenient"
	d := startDaemon(t, processes(t, map[string]any{
		deny:  puppetEntry(t, "", map[string]any{"match": map[string]any{"tools": []string{deny}}}),
		allow: puppetEntry(t, "", map[string]any{"match": map[string]any{"tools": []string{allow}}, "fail_policy": "continue"}),
	}))
	before := measured(t)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	answers := []struct {
		write   string
		outcome protocol.Outcome
	}{
		{`{"action":"deny","action":"continue"}`, protocol.OutcomeBadAnswer},
		{`{"action":"deny","acti\u006fn":"continue"}`, protocol.OutcomeBadAnswer},
		{`{"state":{"a":1,"a":2}}`, protocol.OutcomeBadAnswer},
		{`{"Action":"continue"}`, protocol.OutcomeBadAnswer},
		{`{"ACTION":"continue"}`, protocol.OutcomeBadAnswer},
		{`{"actıon":"continue"}`, protocol.OutcomeBadAnswer},
		{`{"reaſon":"x"}`, protocol.OutcomeBadAnswer},
		{`{"action":null}`, protocol.OutcomeBadAnswer},
		{`{"action":""}`, protocol.OutcomeBadAnswer},
		{`{"action":"Allow"}`, protocol.OutcomeBadAnswer},
		{`{"action":"allow "}`, protocol.OutcomeBadAnswer},
		{`{"action":true}`, protocol.OutcomeBadAnswer},
		{`{"action":1}`, protocol.OutcomeBadAnswer},
		{`{"action":"proceed"}`, protocol.OutcomeBadAnswer},
		{`{"action":"allow","reason":5}`, protocol.OutcomeBadAnswer},
		{`{"action":"allow","warnings":"x"}`, protocol.OutcomeBadAnswer},
		{`{"action":"modify","call":{"arguments":[]}}`, protocol.OutcomeBadAnswer},
		{`"continue"`, protocol.OutcomeBadAnswer},
		{`{"state":{"x":` + deep(10_001) + `}}`, protocol.OutcomeGarbage},
		{`{"state":{"x":` + deep(100_000) + `}}`, protocol.OutcomeGarbage},
		{`{},"error":{"code":1,"message":"x"}`, protocol.OutcomeGarbage},
		{`{}} {"jsonrpc":"2.0","id":$ID,"result":{}`, protocol.OutcomeGarbage},
		{`{"reason":"$FF"}`, protocol.OutcomeGarbage},
	}
	c, lenient := d.caller(t, deny, deny), d.caller(t, allow, allow)
	for _, a := range answers {
		c.ask(says(a.write)).denies(deny, a.outcome)
		lenient.ask(says(a.write)).denies(allow, a.outcome)
	}
	failed := orders{Write: `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no model"}}`}
	c.ask(failed).denies(deny, protocol.OutcomeHookError, "no model")
	lenient.ask(failed).passes(allow, protocol.OutcomeHookError, "no model")
	for _, good := range []string{`{}`, `null`, `{"reason":"x"}`} {
		c.ask(says(good)).continues(deny)
	}
	for _, hook := range []string{deny, allow} {
		s := d.hook(t, hook)
		require.Equal(t, "ready", s.State)
		require.Zero(t, s.Restarts)
		require.EqualValues(t, len(answers)+1, s.Failures)
		require.Contains(t, s.LastError, "no model")
	}
	c.done()
	lenient.done()
	rested(t, before)
}
