package conform

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookd/hookd/child"
)

// Environment variables with which an agent under test is started.
const (
	// SocketEnv holds the path of the socket of the hookd that is played.
	SocketEnv = "HOOKD_SOCKET"
	// MarkerEnv holds a path. The agent asks to run one tool call that makes
	// this file, with the path in the call's arguments, and then ends. Whether
	// it has acted is seen by the file.
	MarkerEnv = "HOOKD_CONFORM_MARKER"
)

// AgentOptions say which agent is tested, and how.
type AgentOptions struct {
	// Argv is the agent's program with its arguments. It gets the environment
	// of this process, [SocketEnv] and [MarkerEnv].
	Argv []string
	// Socket is where to listen, for agents that can't be told by [SocketEnv];
	// empty means a new folder.
	Socket string
	// Timeout is how long the agent may run for each check; default 10 s.
	Timeout time.Duration
	// Show, if set, is told each result as soon as it is known.
	Show func(Result)
}

// The names of the file that the tool is to make, and of the one that it makes
// when hookd changes the call. One is as long as the other and holds nothing
// that JSON would escape.
const (
	asked   = "conform-asked"
	changed = "conform-other"
)

// want is what an agent has to do in a case.
type want int

const (
	stay  want = iota // run nothing
	act               // run the call
	other             // run the call that hookd made of it
)

// agentCase is one way in which hookd behaves.
type agentCase struct {
	name string
	want want
	fake fake
	do   string
}

// Agent tests an agent and returns what it found. The error is that of ctx, or
// tells why no socket could be made: what is wrong with the agent is a result.
func Agent(ctx context.Context, o AgentOptions) ([]Result, error) {
	return tryAgent(ctx, o, agentCases())
}

func tryAgent(ctx context.Context, o AgentOptions, cases []agentCase) ([]Result, error) {
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	folder, err := os.MkdirTemp("", "hookd-conform")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the agent: %w", err)
	}
	defer os.RemoveAll(folder)
	if o.Socket == "" {
		o.Socket = filepath.Join(folder, "hookd.sock")
	}
	k := &agentKit{o: o, report: newReport(ctx, o.Show), spawner: child.NewSpawner(), folder: folder}
	defer k.spawner.Close()
	for i, c := range cases {
		if ctx.Err() != nil {
			break
		}
		r, err := k.try(ctx, c, i)
		if err != nil {
			return k.results, err
		}
		if k.add(c.name, r) == Fail && c.want == act {
			k.add("the rest", skip("an agent that does not act upon a yes proves nothing by not acting upon a no"))
			break
		}
	}
	return k.results, context.Cause(ctx)
}

// agentKit is one test of one agent.
type agentKit struct {
	report
	o       AgentOptions
	spawner *child.Spawner
	folder  string
}

// outcome is what an agent did in a case.
type outcome struct {
	ran, ranOther bool
	ended         bool // by itself
	overdue       bool // it still waited when its deadline was over
	stderr        []string
	took          time.Duration
}

// try starts the agent once.
func (k *agentKit) try(ctx context.Context, c agentCase, n int) (Result, error) {
	marker := filepath.Join(k.folder, fmt.Sprint(n), asked)
	if err := os.Mkdir(filepath.Dir(marker), 0o700); err != nil {
		return Result{}, fmt.Errorf("make a folder for the agent: %w", err)
	}
	played, err := play(k.o.Socket, c.fake)
	if err != nil {
		return Result{}, err
	}
	did, err := k.start(ctx, marker, played)
	seen := played.stop()
	if err != nil {
		return fail("name a program that can be started", "%v", err), nil
	}
	return judgeAgent(c, seen, did, k.o.Timeout), nil
}

// start runs the agent to its end, or until its time is over.
func (k *agentKit) start(ctx context.Context, marker string, played *played) (outcome, error) {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" && !strings.HasPrefix(name, "HOOKD_") {
			env[name] = value
		}
	}
	env[SocketEnv], env[MarkerEnv] = k.o.Socket, marker
	began := time.Now()
	process, err := k.spawner.Start(ctx, child.Spec{Name: "conform", Argv: k.o.Argv, Env: env})
	if err != nil {
		return outcome{}, err
	}
	_ = process.Stdin().Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, process.Stdout())
	}()
	var did outcome
	timer := time.NewTimer(k.o.Timeout)
	defer timer.Stop()
	select {
	case <-process.Done():
		did.ended = true
	case <-played.overdue:
		did.overdue = true
	case <-timer.C:
	case <-ctx.Done():
	}
	did.took = took(time.Since(began))
	process.Kill()
	<-process.Done()
	_ = process.Stdout().Close()
	<-read
	did.stderr = process.StderrTail()
	did.ran = exists(marker)
	did.ranOther = exists(filepath.Join(filepath.Dir(marker), changed))
	return did, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// judgeAgent compares what an agent did with what it has to do.
func judgeAgent(c agentCase, seen seen, did outcome, timeout time.Duration) Result {
	did.ran = did.ran || seen.after && c.want == stay // it reports a result of what it must not have run
	words := ""
	if len(did.stderr) > 0 {
		words = "; the last it wrote to stderr: " + clip(strings.TrimSpace(did.stderr[len(did.stderr)-1]))
	}
	switch {
	case seen.garbage != "":
		return fail("send one JSON-RPC request a line", "it sent a line that can't be read: %s%s", seen.garbage, words)
	case c.want == act && !did.ran:
		why := "it never asked at before_tool"
		if seen.before {
			why = "it asked at before_tool and was allowed"
		}
		return fail("see docs/conform.md: the agent is to ask for one tool call that makes the file $"+MarkerEnv+", and to run it", "the file was not made: %s%s", why, words)
	case c.want == act && !seen.before:
		return fail("ask at before_tool before every tool call", "it ran the tool without asking")
	case c.want == act && !seen.named:
		return warn("write the path into the arguments, so that a change of it can be seen", "the arguments do not hold the path $"+MarkerEnv)
	case c.want == other && !seen.named:
		return skip("the arguments do not hold the path $" + MarkerEnv + ", so they can't be changed")
	case c.want == other && did.ran:
		return fail(c.do, "it ran the call that it asked about, and not what hookd answered")
	case c.want == other && !did.ranOther:
		return fail(c.do, "it did not run the changed call%s", words)
	case c.fake.approval && !seen.approval:
		return warn("ask for approvals: \"approve\": true at before_tool, or approve_tool", "it never asks for an approval, so nobody's no can stop it")
	case c.want == stay && (did.ran || did.ranOther):
		return fail(c.do, "IT RAN THE TOOL")
	case !did.ended && did.overdue:
		return fail("give up when the time is over that you told hookd", "it did not run the tool, and still waited %s after it was over (%s)", spare, seen.deadline)
	case !did.ended:
		return warn("end when the tool call is over; to see an agent's deadline, make it shorter or --timeout longer", "it did what it has to, and had not ended after %s", timeout)
	case c.want == act:
		return pass("it ran the tool after asking, in %s", did.took)
	case c.want == other:
		return pass("it ran what hookd made of the call")
	}
	return pass("it ran nothing, in %s", did.took)
}

// agentCases are all cases, the one that must work first.
func agentCases() []agentCase {
	result := func(json string) string { return `{"jsonrpc":"2.0","id":ID,"result":` + json + `}` + "\n" }
	const onlyYes = "treat everything that is no readable yes as a no"
	const eof = "treat the end of the connection as a no"
	return []agentCase{
		{name: "continue", want: act},
		{name: "modify", want: other, fake: fake{change: true}, do: `run "call" of the answer, not what you sent`},
		{name: "nobody listens", fake: fake{absent: true}, do: "without hookd, run nothing"},
		{name: "end of file before the greeting", fake: fake{greeting: hangUp}, do: eof},
		{name: "error to the greeting", fake: fake{greeting: `{"jsonrpc":"2.0","id":ID,"error":{"code":-32005,"message":"another version"}}` + "\n"}, do: "without a welcome, run nothing"},
		{name: "silence to the greeting", fake: fake{greeting: silence}, do: "give up after a time, and run nothing"},
		{name: "end of file", fake: fake{before: hangUp}, do: eof},
		{name: "half an answer", fake: fake{before: strings.TrimSuffix(result(`{"action":"continue"APPROVAL}`), "}}\n") + hangUp}, do: eof + "; an answer ends with \\n"},
		{name: "error", fake: fake{before: `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"internal error"}}` + "\n"}, do: "treat every error as a no"},
		{name: "silence", fake: fake{before: silence}, do: "give up when your deadline is over, and run nothing"},
		{name: "garbage", fake: fake{before: "{\"action\":\"continue\"}\ncontinue\n" + silence}, do: onlyYes},
		{name: "another id", fake: fake{before: `{"jsonrpc":"2.0","id":987654321,"result":{"action":"continue"APPROVAL}}` + "\n" + silence}, do: "compare the id of the answer with that of the request"},
		{name: "no object", fake: fake{before: result(`"continue"`)}, do: onlyYes},
		{name: "unknown verb", fake: fake{before: result(`{"action":"permit"APPROVAL}`)}, do: "list the verbs that mean go on; the others don't"},
		{name: "verb in another case", fake: fake{before: result(`{"action":"Continue"APPROVAL}`)}, do: "compare verbs exactly"},
		{name: "member in another case", fake: fake{before: result(`{"Action":"continue"APPROVAL}`)}, do: "read names exactly"},
		{name: "deny", fake: fake{before: result(`{"action":"deny_tool","reason":"no"REFUSAL}`)}, do: "give the reason to the model, and run nothing"},
		{name: "deny of 20 MiB", fake: fake{before: result(`{"action":"deny_tool","reason":"PADDING"REFUSAL}`)}, do: "read the whole line, and what can't be read is a no"},
		{name: "respond", fake: fake{before: result(`{"action":"respond","result":{"content":"done already"}APPROVAL}`)}, do: `give "result" to the model, and run nothing`},
		{name: "abort_turn", fake: fake{before: result(`{"action":"abort_turn","reason":"stop"}`)}, do: "end the turn, and run nothing"},
		{name: "hard_abort", fake: fake{before: result(`{"action":"hard_abort","reason":"stop"}`)}, do: "end the run, and run nothing"},
		{name: "ask, then no", fake: fake{before: result(`{"action":"ask"}`), approve: result(`{"approved":false,"reason":"no"}`)}, do: "after ask, run nothing without a yes from approve_tool or your user"},
		{name: "approval: no", fake: fake{approval: true, before: result(`{"action":"continue"REFUSAL}`), approve: result(`{"approved":false,"reason":"no"}`)}, do: `run nothing unless "approved" is true`},
		{name: "approval: no boolean", fake: fake{approval: true, before: result(`{"action":"continue","approval":{"approved":"true"}}`), approve: result(`{"approved":"true"}`)}, do: `run nothing unless "approved" is true, the boolean`},
		{name: "approval: end of file", fake: fake{approval: true, before: result(`{"action":"continue"}`), approve: hangUp}, do: eof},
	}
}
