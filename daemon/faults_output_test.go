package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	faults "github.com/hookd/hookd/internal/fault"
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
			twice.Then = says(`{"action":"deny"}`).Write
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
			for i, strange := range []string{id, "99999999", `"$ID"`, "null", `"x"`} {
				c.ask(orders{Write: fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"deny"}}`, strange), Then: faults.Yes}).continues(p.name)
				p.noisy(t, "unknown_id", int64(i+1))
			}
			c.done()
			p.recovered(t, 1)
		}},
		{name: "answers-with-a-wrong-id", waits: true, entry: roomy(map[string]any{"timeout_ms": 700}), play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			for _, strange := range []string{`"id":"$ID",`, `"id":null,`, `"id":0,`} {
				c.ask(orders{Write: `{"jsonrpc":"2.0",` + strange + `"result":{}}`}).denies(p.name, protocol.OutcomeTimeout)
			}
			c.done()
			p.noisy(t, "unknown_id", 3)
			p.named(t, "a hook must answer with the id of the request as it was sent")
			p.recovered(t, 1)
		}},
		{name: "prints", waits: true, entry: roomy(map[string]any{"timeout_ms": 3000, "fail_policy": "continue"}), play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			o := orders{Write: "debug: \x1b[31mred", Then: says(`{"warnings":["read all the same"]}`).Write}
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
		{name: "stalls-in-a-line", waits: true, entry: roomy(map[string]any{"timeout_ms": 500}), play: func(t *testing.T, p *patient) {
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
		{name: "answers-without-an-id", waits: true, entry: roomy(map[string]any{"timeout_ms": 700}), play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			for range 3 {
				v := c.ask(orders{Write: `{"jsonrpc":"2.0","result":{}}`})
				require.Contains(t, []protocol.Outcome{protocol.OutcomeTimeout, protocol.OutcomeGarbage}, v.outcome(p.name))
			}
			c.done()
			p.named(t, "3 calls in a row got no answer in time")
			p.recovered(t, 1)
		}},
		{name: "floods-hookd-with-notifications", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			flood := orders{Write: `{"jsonrpc":"2.0","method":"hook.progress","params":{}}`, Times: 1_000_000, Then: faults.Yes}
			require.Contains(t, []protocol.Outcome{protocol.OutcomeCrash, protocol.OutcomeContinue}, c.ask(flood).outcome(p.name))
			c.done()
			p.named(t, "it sent more than 1000 notifications in a second")
			p.recovered(t, 1)
		}},
		{name: "asks-hookd", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			c.ask(orders{Write: `{"jsonrpc":"2.0","id":1,"method":"hookd.status"}`, Then: faults.Yes}).continues(p.name)
			p.noisy(t, "request_from_peer", 1)
			p.says(t, `hookd says {"code":-32601,`)
			many := orders{Write: `{"jsonrpc":"2.0","id":1,"method":"please"}`, Times: 99, Then: faults.Yes}
			require.Contains(t, []protocol.Outcome{protocol.OutcomeCrash, protocol.OutcomeContinue}, c.ask(many).outcome(p.name))
			c.done()
			p.named(t, "it sent 100 requests within 1m0s, and hookd serves none")
			p.recovered(t, 1)
		}},
		{name: "paints-stderr", play: func(t *testing.T, p *patient) {
			c := p.caller(t)
			mode, err := faults.ParseMode("ansi")
			require.NoError(t, err)
			c.ask(mode.Calls).continues(p.name)
			p.says(t, `\x1b[31mred`)
			p.says(t, "forged")
			for line := range strings.Lines(p.d.log.String()) {
				var logged struct{ Msg, Hook, Line string }
				require.NoError(t, json.Unmarshal([]byte(line), &logged), line)
				require.NotEqual(t, "forged", logged.Msg)
				if strings.Contains(logged.Line, "forged") {
					require.Equal(t, p.name, logged.Hook)
				}
				require.NotContains(t, line, "\x1b")
			}
			c.done()
			p.recovered(t, 0)
		}},
		{name: "floods-stderr", waits: true, play: func(t *testing.T, p *patient) {
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
		deny:  hookEntry(t, "", map[string]any{"match": map[string]any{"tools": []string{deny}}}),
		allow: hookEntry(t, "", map[string]any{"match": map[string]any{"tools": []string{allow}}, "fail_policy": "continue"}),
	}))
	before := measured(t)
	type answer struct {
		write   string
		outcome protocol.Outcome
		depth   int // of $DEEP
	}
	answers := []answer{
		{write: `{"action":"deny","action":"continue"}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"action":"deny","acti\u006fn":"continue"}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"state":{"a":1,"a":2}}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"Action":"continue"}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"ACTION":"continue"}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"actıon":"continue"}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"reaſon":"x"}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"action":null}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"action":""}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"action":"Allow"}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"action":"allow "}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"action":true}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"action":1}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"action":"proceed"}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"action":"allow","reason":5}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"action":"allow","warnings":"x"}`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"action":"modify","call":{"arguments":[]}}`, outcome: protocol.OutcomeBadAnswer},
		{write: `"continue"`, outcome: protocol.OutcomeBadAnswer},
		{write: `{"state":{"x":$DEEP}}`, outcome: protocol.OutcomeGarbage, depth: 10_001},
		{write: `{"state":{"x":$DEEP}}`, outcome: protocol.OutcomeGarbage, depth: 100_000},
		{write: `{},"error":{"code":1,"message":"x"}`, outcome: protocol.OutcomeGarbage},
		{write: `{}} {"jsonrpc":"2.0","id":$ID,"result":{}`, outcome: protocol.OutcomeGarbage},
		{write: `{"state":{"x":$DEEP}}`, outcome: protocol.OutcomeGarbage, depth: 5_000_000},
		{write: `{"reason":"$FF"}`, outcome: protocol.OutcomeGarbage},
		{write: `{"reason":"\ud800"}`, outcome: protocol.OutcomeGarbage},
		{write: `{"reason":"$NUL"}`, outcome: protocol.OutcomeGarbage},
	}
	c, lenient := d.caller(t, deny, deny), d.caller(t, allow, allow)
	for _, a := range answers {
		o := says(a.write)
		o.Depth = a.depth
		c.ask(o).denies(deny, a.outcome)
		lenient.ask(o).denies(allow, a.outcome)
	}
	failed := orders{Write: `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no model"}}`}
	c.ask(failed).denies(deny, protocol.OutcomeHookError, "no model")
	lenient.ask(failed).passes(allow, protocol.OutcomeHookError, "no model")
	for _, good := range []string{`{}`, `null`, `{"reason":"x"}`} {
		c.ask(says(good)).continues(deny)
	}
	c.ask(orders{Write: faults.Yes + "$CR"}).continues(deny)
	require.EqualValues(t, 1, d.hook(t, deny).Noise["crlf"])
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

// A number that a hook gives reaches the agent and the hooks after it with the
// same digits, however many.
func TestDigitsOfNumbers(t *testing.T) {
	mode, err := faults.ParseMode("bignumber")
	require.NoError(t, err)
	d := startDaemon(t, processes(t, map[string]any{
		"first": hookEntry(t, "bignumber", nil),
		"last":  hookEntry(t, "", map[string]any{"priority": 10}),
	}))
	a := d.dial(t)
	const digits = `"arguments":{"n":9007199254740993,"x":1e400}`
	require.Contains(t, mode.Calls.Write, digits)
	require.Contains(t, a.ask("hook.before_tool", lsCall), digits)
	// What the last one is asked about is what the first one said.
	answer := a.ask("hook.before_tool", fmt.Sprintf(`{"tool":"bash","arguments":{},"context":%s}`, `{"write":"$RESULT{\"warnings\":[\"$ARGS\"]}}"}`))
	require.Contains(t, answer, `9007199254740993`)
	require.Contains(t, answer, `"last: {\"n\":9007199254740993,\"x\":1e400}"`)
}
