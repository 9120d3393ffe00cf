package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/daemon"
	"github.com/hookd/hookd/protocol"
	"github.com/hookd/hookd/rpc"
)

// people is a config in which a hook asks about every call and a person is
// asked. Agent and person are one process here.
func people(human string) string {
	return fmt.Sprintf(`{"approval": {"not_same_process_tree": false}, "hooks": {
		"builtins": {"cancel": {"priority": 10}, "human": {"priority": 20, "when": "asked", "intercept": ["approve_tool"]%s}},
		"processes": {"gate": %s}}}`, human, asking())
}

const pushCall = `{"tool":"bash","arguments":{"command":"git push"},"approve":true,"meta":{"session_id":"s-1","cwd":"/repo"}}`

// tickets waits until so many calls wait.
func (d *runningDaemon) tickets(t testing.TB, n int) (list []daemon.ApprovalTicket) {
	t.Helper()
	require.Eventually(t, func() bool {
		list = nil
		require.NoError(t, d.control(t, daemon.MethodApprovalsList, nil, &list))
		return len(list) == n
	}, 10*time.Second, 5*time.Millisecond)
	return list
}

func (d *runningDaemon) approve(t testing.TB, p daemon.ApprovalAnswerParams) (daemon.ApprovalAnswered, error) {
	t.Helper()
	var done daemon.ApprovalAnswered
	err := d.control(t, daemon.MethodApprovalsApprove, p, &done)
	return done, err
}

// asks sends a call and does not wait for its answer.
func (a *agent) asks(method, params string) {
	a.t.Helper()
	a.id++
	a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, a.id, method, params))
}

func TestPersonApproves(t *testing.T) {
	d := startDaemon(t, people(""))
	events := d.events(t, "approval_*")
	a := d.dial(t)
	require.Contains(t, a.ask("hook.hello", `{"name":"bot"}`), `"ok":true`)
	a.asks("hook.before_tool", pushCall)
	open := d.tickets(t, 1)[0]
	require.Equal(t, "bash", open.Tool)
	require.JSONEq(t, `{"command":"git push"}`, string(open.Arguments))
	require.Equal(t, []any{"bot", "s-1", "/repo", os.Getpid(), os.Getuid()}, []any{open.Agent, open.Session, open.CWD, open.PID, open.UID})
	require.Equal(t, time.Minute, open.Expires.Sub(open.Opened).Round(time.Second))

	done, err := d.approve(t, daemon.ApprovalAnswerParams{ID: open.ID, Reason: "go on", Digest: open.Digest})
	require.NoError(t, err)
	require.True(t, done.Approved)
	require.Contains(t, done.By, fmt.Sprintf("uid %d", os.Getuid()))
	answer := string(a.read().Result)
	require.Contains(t, answer, `"action":"continue"`)
	require.Contains(t, answer, `"approval":{"approved":true,"reason":"go on","by":"`+done.By+`"`)

	requested, resolved := events(), events()
	require.Equal(t, "approval_requested", requested.Kind)
	require.Equal(t, open.ID, requested.Payload["ticket"])
	require.Equal(t, "bash", requested.Payload["tool"])
	require.Equal(t, map[string]any{"command": "git push"}, requested.Payload["arguments"])
	require.Equal(t, "s-1", requested.Meta["session_id"])
	require.Equal(t, "approval_resolved", resolved.Kind)
	require.Equal(t, map[string]any{"ticket": open.ID, "approved": true, "by": done.By, "reason": "go on"}, resolved.Payload)

	_, err = d.approve(t, daemon.ApprovalAnswerParams{ID: open.ID})
	require.ErrorContains(t, err, "too late: "+done.By+" said yes: go on")
	_, err = d.approve(t, daemon.ApprovalAnswerParams{ID: "nobody"})
	require.ErrorContains(t, err, `there is no open approval "nobody"`)
}

func TestPersonDenies(t *testing.T) {
	d := startDaemon(t, people(""))
	a := d.dial(t)
	a.asks("hook.before_tool", pushCall)
	require.NoError(t, d.control(t, daemon.MethodApprovalsDeny, daemon.ApprovalAnswerParams{ID: d.tickets(t, 1)[0].ID, Reason: "not today"}, nil))
	require.Contains(t, string(a.read().Result), `"action":"deny_tool","reason":"denied by human: not today"`)
	// The same for an agent that asks separately.
	a.asks("hook.approve_tool", `{"tool":"bash","arguments":{"command":"git push"}}`)
	require.NoError(t, d.control(t, daemon.MethodApprovalsDeny, daemon.ApprovalAnswerParams{ID: d.tickets(t, 1)[0].ID}, nil))
	require.Contains(t, string(a.read().Result), `"approved":false,"reason":"denied by human"`)
}

func TestNobodyAnswersInTime(t *testing.T) {
	d := startDaemon(t, people(`, "timeout_ms": 300`))
	a := d.dial(t)
	a.asks("hook.before_tool", pushCall)
	id := d.tickets(t, 1)[0].ID
	require.Contains(t, string(a.read().Result), `"action":"deny_tool","reason":"approval timed out (0.3 s)"`)
	_, err := d.approve(t, daemon.ApprovalAnswerParams{ID: id})
	require.ErrorContains(t, err, "too late: approval timed out (0.3 s)")
	// The agent waits less than the config allows.
	a.asks("hook.before_tool", strings.Replace(pushCall, `"approve"`, `"deadline_ms":450,"approve"`, 1))
	require.Contains(t, string(a.read().Result), `"reason":"approval timed out (0.25 s)"`)
}

func TestAgentGoesAwayDuringApproval(t *testing.T) {
	d := startDaemon(t, people(""))
	a := d.dial(t)
	a.asks("hook.before_tool", pushCall)
	id := d.tickets(t, 1)[0].ID
	// Another connection can't cancel it.
	stranger := d.dial(t)
	stranger.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`)
	require.Contains(t, stranger.ask("hook.hello", `{"name":"stranger"}`), `"ok":true`)
	require.Equal(t, id, d.tickets(t, 1)[0].ID)

	a.conn.Close()
	d.tickets(t, 0)
	_, err := d.approve(t, daemon.ApprovalAnswerParams{ID: id})
	require.ErrorContains(t, err, "too late: the agent went away")

	// So does an agent that cancels its own call.
	b := d.dial(t)
	b.asks("hook.before_tool", pushCall)
	id = d.tickets(t, 1)[0].ID
	b.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`)
	require.Equal(t, protocol.CodeCancelled, b.read().Error.Code)
	_, err = d.approve(t, daemon.ApprovalAnswerParams{ID: id})
	require.ErrorContains(t, err, "too late: the agent went away")
}

func TestShutdownDeniesOpenTickets(t *testing.T) {
	d := startDaemon(t, people(""))
	events := d.events(t, "approval_resolved")
	a := d.dial(t)
	for i := range 3 {
		a.asks("hook.before_tool", fmt.Sprintf(`{"tool":"t%d","arguments":{},"approve":true}`, i))
	}
	d.tickets(t, 3)
	start := time.Now()
	require.NoError(t, d.stop())
	require.Less(t, time.Since(start), 10*time.Second)
	for range 3 {
		require.Contains(t, string(a.read().Result), `"action":"deny_tool","reason":"shutting down"`)
		require.Equal(t, "shutting down", events().Payload["reason"])
	}
}

func TestRules(t *testing.T) {
	d := startDaemon(t, people(""))
	a := d.dial(t)
	a.asks("hook.before_tool", pushCall)
	done, err := d.approve(t, daemon.ApprovalAnswerParams{ID: d.tickets(t, 1)[0].ID, Scope: "always"})
	require.NoError(t, err)
	require.Equal(t, 1, done.Rule.Rule)
	a.read()
	require.Contains(t, a.ask("hook.before_tool", pushCall), `"by":"rule 1 (made by `+done.By+` at `)
	var rules []daemon.ApprovalRule
	require.NoError(t, d.control(t, daemon.MethodApprovalsRules, nil, &rules))
	require.Len(t, rules, 1)
	require.Equal(t, 1, rules[0].Used)
	require.JSONEq(t, `{"command":"git push"}`, string(rules[0].Arguments))
	require.NoError(t, d.control(t, daemon.MethodApprovalsRevoke, daemon.ApprovalRevokeParams{Rule: 1}, nil))
	require.ErrorContains(t, d.control(t, daemon.MethodApprovalsRevoke, daemon.ApprovalRevokeParams{Rule: 1}, nil), "there is no rule 1")

	// A rule for the session ends with it.
	a.asks("hook.before_tool", pushCall)
	_, err = d.approve(t, daemon.ApprovalAnswerParams{ID: d.tickets(t, 1)[0].ID, Scope: "session"})
	require.NoError(t, err)
	a.read()
	require.Contains(t, a.ask("hook.before_tool", pushCall), `"by":"rule 2 `)
	a.send(`{"jsonrpc":"2.0","method":"hook.event","params":{"kind":"session_end","meta":{"session_id":"s-1"}}}`)
	require.Eventually(t, func() bool {
		rules = nil
		return d.control(t, daemon.MethodApprovalsRules, nil, &rules) == nil && len(rules) == 0
	}, 10*time.Second, 5*time.Millisecond)
	a.asks("hook.before_tool", pushCall)
	d.tickets(t, 1)
}

// A reload that changes the approver leaves what is open with it.
func TestTicketsOutliveAReload(t *testing.T) {
	d := startDaemon(t, people(""))
	a := d.dial(t)
	a.asks("hook.before_tool", pushCall)
	id := d.tickets(t, 1)[0].ID
	require.NoError(t, os.WriteFile(d.config, []byte(people(`, "config": {"notify": ["true"]}`)), 0o600))
	var res daemon.ReloadResult
	require.NoError(t, d.control(t, daemon.MethodReload, nil, &res))
	_, err := d.approve(t, daemon.ApprovalAnswerParams{ID: id})
	require.NoError(t, err)
	require.Contains(t, string(a.read().Result), `"approved":true`)
}

func TestListLeavesOutWhatIsKnownOrTooMuch(t *testing.T) {
	d := startDaemon(t, people(""))
	a := d.dial(t)
	large := strings.Repeat("x", 5<<20)
	for range 2 {
		a.asks("hook.approve_tool", fmt.Sprintf(`{"tool":"write","arguments":{"content":%q}}`, large))
	}
	a.asks("hook.approve_tool", `{"tool":"bash","arguments":{"command":"git push"}}`)
	require.Eventually(t, func() bool { return d.hook(t, "human").InFlight == 3 }, 20*time.Second, 20*time.Millisecond)
	list := d.tickets(t, 3)
	full, short, other := -1, -1, -1
	for i, o := range list {
		switch {
		case o.Tool == "bash":
			other = i
		case len(o.Arguments) == o.ArgumentsBytes:
			full = i
		case string(o.Arguments) == "null":
			short = i
		}
	}
	require.ElementsMatch(t, []int{0, 1, 2}, []int{full, short, other})
	require.Equal(t, 5<<20, list[short].ArgumentsBytes-len(`{"content":""}`))
	require.JSONEq(t, `{"command":"git push"}`, string(list[other].Arguments))
	var again []daemon.ApprovalTicket
	require.NoError(t, d.control(t, daemon.MethodApprovalsList, daemon.ApprovalsListParams{Known: []string{list[full].ID, list[other].ID}}, &again))
	require.Len(t, again, 3)
	for i, o := range again {
		if i == short {
			require.Len(t, o.Arguments, o.ArgumentsBytes)
		} else {
			require.Equal(t, "null", string(o.Arguments))
			require.Empty(t, o.Tool)
		}
	}
}

// The command gets the ticket, and little else.
func TestNotificationCommand(t *testing.T) {
	dir := shortDir(t)
	t.Setenv("HOOKD_TEST_SECRET", "x")
	script := filepath.Join(dir, "page.sh")
	require.NoError(t, os.WriteFile(script, []byte(`cat >"$1/ticket.new"; env >"$1/env"; mv "$1/ticket.new" "$1/ticket"`), 0o600))
	d := startDaemon(t, people(fmt.Sprintf(`, "config": {"notify": ["sh", %q, %q]}`, script, dir)))
	a := d.dial(t)
	a.asks("hook.before_tool", pushCall)
	open := d.tickets(t, 1)[0]
	var ticket map[string]any
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "ticket"))
		return err == nil && json.Unmarshal(text, &ticket) == nil
	}, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, open.ID, ticket["id"])
	require.Equal(t, map[string]any{"command": "git push"}, ticket["arguments"])
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	require.NoError(t, err)
	require.NotContains(t, string(env), "HOOKD_TEST_SECRET")
	require.Contains(t, string(env), "HOOKD_HOOK=human\n")
}

func TestNotificationCommandFails(t *testing.T) {
	d := startDaemon(t, people(`, "config": {"notify": ["sh", "-c", "echo no display >&2; exit 3"]}`))
	a := d.dial(t)
	a.asks("hook.before_tool", pushCall)
	require.Eventually(t, func() bool { return strings.Contains(d.log.String(), "it ended with exit status 3: no display") }, 10*time.Second, 5*time.Millisecond)
	d.tickets(t, 1)
	require.NotContains(t, d.log.String(), "git push")
}

func TestNotificationCommandThatIsNotThere(t *testing.T) {
	d := startDaemon(t, people(`, "config": {"notify": ["no-such-command"]}`))
	a := d.dial(t)
	a.asks("hook.before_tool", pushCall)
	require.Eventually(t, func() bool { return strings.Contains(d.log.String(), "a notification failed") }, 10*time.Second, 5*time.Millisecond)
	d.tickets(t, 1)
}

// Names of variables that make the test binary a process of its own.
const (
	askAt, answerAt, answerID = "HOOKD_TEST_ASK_AT", "HOOKD_TEST_ANSWER_AT", "HOOKD_TEST_ANSWER_ID"
)

// TestAsAgent is no test: it is an agent with a child that wants to answer.
func TestAsAgent(t *testing.T) {
	socket := os.Getenv(askAt)
	if socket == "" {
		t.Skip("run by another test")
	}
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"hook.before_tool","params":` + pushCall + "}\n"))
	require.NoError(t, err)
	control := os.Getenv(answerAt)
	peerConn, err := net.Dial("unix", control)
	require.NoError(t, err)
	peer := rpc.NewPeer(t.Context(), peerConn, rpc.Options{})
	defer peer.Close()
	var list []daemon.ApprovalTicket
	require.Eventually(t, func() bool {
		raw, err := peer.Call(t.Context(), daemon.MethodApprovalsList, nil)
		return err == nil && json.Unmarshal(raw, &list) == nil && len(list) == 1
	}, 10*time.Second, 5*time.Millisecond)
	_, err = peer.Call(t.Context(), daemon.MethodApprovalsApprove, fmt.Appendf(nil, `{"id":%q}`, list[0].ID))
	fmt.Printf("itself: %v\n", err)
	out, err := answerer(t, control, list[0].ID).CombinedOutput()
	require.NoError(t, err)
	fmt.Printf("its child: %s\n", out)
	buf := make([]byte, 4096)
	n, _ := conn.Read(buf)
	fmt.Printf("decision: %s\n", buf[:n])
}

// answerer is a process that answers a ticket.
func answerer(t *testing.T, control, id string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAsAnswerer$", "-test.v")
	cmd.Env = append(os.Environ(), askAt+"=", answerAt+"="+control, answerID+"="+id)
	return cmd
}

// TestAsAnswerer is no test: it is a process that answers.
func TestAsAnswerer(t *testing.T) {
	id := os.Getenv(answerID)
	if id == "" {
		t.Skip("run by another test")
	}
	conn, err := net.Dial("unix", os.Getenv(answerAt))
	require.NoError(t, err)
	peer := rpc.NewPeer(t.Context(), conn, rpc.Options{})
	defer peer.Close()
	_, err = peer.Call(t.Context(), daemon.MethodApprovalsApprove, fmt.Appendf(nil, `{"id":%q}`, id))
	fmt.Printf("answer: %v\n", err)
}

// An agent can't answer itself, neither through a process that it starts.
func TestAgentMustNotAnswerItself(t *testing.T) {
	d := startDaemon(t, strings.Replace(people(""), `"not_same_process_tree": false`, "", 1))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	agent := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestAsAgent$", "-test.v")
	agent.Env = append(os.Environ(), askAt+"="+d.sockets.Agents, answerAt+"="+d.sockets.Control)
	var out bytes.Buffer
	agent.Stdout, agent.Stderr = &out, &out
	require.NoError(t, agent.Start())
	open := d.tickets(t, 1)[0]
	require.Equal(t, agent.Process.Pid, open.PID)
	require.Eventually(t, func() bool { return strings.Count(d.log.String(), "an answer was refused") == 2 }, 20*time.Second, 10*time.Millisecond)

	// The agent's parent is not its child: this process.
	_, err := d.approve(t, daemon.ApprovalAnswerParams{ID: open.ID})
	require.NoError(t, err)
	require.NoError(t, agent.Wait(), out.String())
	require.Contains(t, out.String(), fmt.Sprintf("itself: refused: the agent that asks (process %d) must not answer itself; approval.not_same_process_tree", open.PID))
	require.Regexp(t, fmt.Sprintf(`its child: (?s:.*)refused: process \d+ was started by the agent that asks \(process %d\)`, open.PID), out.String())
	require.Regexp(t, `decision: .*"approved":true`, out.String())
}

// Another process beside the agent's may answer.
func TestAnotherProcessAnswers(t *testing.T) {
	d := startDaemon(t, strings.Replace(people(""), `"not_same_process_tree": false`, "", 1))
	a := d.dial(t)
	a.asks("hook.before_tool", pushCall)
	open := d.tickets(t, 1)[0]
	out, err := answerer(t, d.sockets.Control, open.ID).CombinedOutput() // a child of the agent, which is this process
	require.NoError(t, err)
	require.Contains(t, string(out), "was started by the agent that asks")
	require.Len(t, d.tickets(t, 1), 1)
}

// event is one that was sent to a follower.
type event struct {
	Kind          string
	Meta, Payload map[string]any
}

// events follows events of a kind, and returns what gives the next.
func (d *runningDaemon) events(t testing.TB, kind string) func() event {
	t.Helper()
	conn, err := net.Dial("unix", d.sockets.Control)
	require.NoError(t, err)
	list := make(chan json.RawMessage, 100)
	peer := rpc.NewPeer(context.Background(), conn, rpc.Options{Handler: follower(list)})
	t.Cleanup(func() { peer.Close() })
	_, err = peer.Call(t.Context(), daemon.MethodSubscribe, fmt.Appendf(nil, `{"events":[%q]}`, kind))
	require.NoError(t, err)
	return func() (e event) {
		t.Helper()
		select {
		case raw := <-list:
			require.NoError(t, json.Unmarshal(raw, &e))
		case <-time.After(10 * time.Second):
			t.Fatal("no event")
		}
		return e
	}
}

type follower chan<- json.RawMessage

func (f follower) Accept(r *rpc.Request) rpc.Work {
	f <- json.RawMessage(bytes.Clone(r.Params))
	return rpc.Work{}
}
