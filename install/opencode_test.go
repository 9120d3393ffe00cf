package install_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookd/hookd/install"
)

// driver plays OpenCode: it loads the plug-in and prints what comes of its hooks.
const driver = `
const plugin = (await import(process.argv[2])).default
const say = (name, value) => console.log(name + ": " + JSON.stringify(value))
const attempt = async (name, f) => { try { say(name, await f()) } catch (e) { say(name + " threw", e.message) } }
const tool = (command) => ({ tool: "bash", sessionID: "s", callID: "c", args: { command } })

const hooks = await plugin.server({ directory: "/project" })
say("hooks", Object.keys(hooks))
for (const command of ["ls", "deny", "deny-json", "change", "garbage", "list", "ask", "die"]) {
  await attempt("before " + command, async () => { const out = { args: { command, old: 1 } }; await hooks["tool.execute.before"](tool(command), out); return out.args })
}
for (const command of ["ls", "output", "context", "deny"]) {
  await attempt("after " + command, async () => { const out = { title: "t", output: "text", metadata: {} }; await hooks["tool.execute.after"](tool(command), out); return out.output })
}
for (const text of ["hello", "context", "deny"]) {
  await attempt("chat " + text, async () => { const out = { parts: [{ type: "text", text }] }; await hooks["chat.message"]({ sessionID: "s", model: { providerID: "p", modelID: "m" } }, out); return out.parts })
}
await hooks.event({ event: { type: "message.updated", properties: {} } })
await hooks.event({ event: { type: "session.created", properties: { info: { id: "s" } } } })

const two = {}
await plugin.setup({ location: { directory: "/project" }, tool: { hook: async (name, f) => { two[name] = f } } })
for (const command of ["ls", "deny", "change"]) {
  await attempt("two " + command, async () => { const e = { tool: "shell", sessionID: "s", id: "c", input: { command } }; await two["execute.before"](e); return e.input })
}
await attempt("two after", async () => two["execute.after"]({ tool: "shell", sessionID: "s", id: "c", input: {}, status: "error", error: "x" }))
`

// fake plays hookd-hook: it keeps what it reads and answers as the payload says.
const fake = `#!/bin/sh
payload=$(cat)
printf '%s %s\n' "$*" "$payload" >> "$0.log"
case $payload in
*'"deny"'*) echo "not this" >&2; exit 2;;
*'"deny-json"'*) echo '{"decision":"deny","reason":"not that"}';;
*'"change"'*) echo '{"args":{"command":"changed"}}';;
*'"garbage"'*) echo 'hello';;
*'"list"'*) echo '[]';;
*'"ask"'*) echo '{"decision":"ask"}';;
*'"die"'*) kill -9 $$;;
*'"output"}'*) echo '{"output":"instead"}';;
*'"context"'*) echo '{"context":"beside"}';;
esac
`

// The plug-in for OpenCode lets through what hookd lets through, and nothing
// else.
func TestOpenCodePlugin(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	m := newMachine(t)
	o := options("opencode")
	program := m.write("bin with blank/hookd-hook", fake)
	require.NoError(t, os.Chmod(program, 0o755))
	o.Program = install.Program{Argv: []string{program}}
	m.install(o)
	m.write("package.json", `{"type":"module"}`)
	script := m.write("driver.mjs", driver)
	play := func() string {
		out, err := exec.CommandContext(t.Context(), node, script, m.path(".config/opencode/plugins/hookd.js")).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	require.Equal(t, `hooks: ["tool.execute.before","tool.execute.after","chat.message","event"]
before ls: {"command":"ls","old":1}
before deny threw: "not this"
before deny-json threw: "not that"
before change: {"command":"changed"}
before garbage threw: "hookd: the answer can't be read, so this is not allowed"
before list threw: "hookd: the answer can't be read, so this is not allowed"
before ask threw: "hookd: the decision \"ask\" is not known, so this is not allowed"
before die threw: "hookd: `+program+` ended with SIGKILL, so this is not allowed"
after ls: "text"
after output: "instead"
after context: "text\n\nbeside"
after deny threw: "not this"
chat hello: [{"type":"text","text":"hello"}]
chat context: [{"type":"text","text":"context\n\nbeside"}]
chat deny threw: "not this"
two ls: {"command":"ls"}
two deny threw: "not this"
two change: {"command":"changed"}
two after: undefined
`, play())
	log := m.read("bin with blank/hookd-hook.log")
	require.Contains(t, log, `--agent opencode --event tool.execute.before --timeout 59s {"hook_event_name":"tool.execute.before","session_id":"s","call_id":"c","cwd":"/project","tool_name":"bash","tool_input":{"command":"ls","old":1}}`)
	require.Contains(t, log, `--event event --timeout 9s {"hook_event_name":"session.created","session_id":"s","cwd":"/project","properties":{"info":{"id":"s"}}}`)
	require.Contains(t, log, `"tool_response":{"title":"t","output":"text","metadata":{}}}`)
	require.Contains(t, log, `"model":"p/m","prompt":"hello"}`)
	require.NotContains(t, log, "message.updated")

	// A program that is gone, and one that hangs, are a no.
	require.NoError(t, os.Remove(program))
	require.Contains(t, play(), "before ls threw: \"hookd: "+program+": spawn ")
	o.Timeout = time.Second
	o.Events = []string{"tool.execute.before"}
	m.install(o)
	m.write("bin with blank/hookd-hook", "#!/bin/sh\nexec sleep 60\n")
	require.NoError(t, os.Chmod(program, 0o755))
	m.write("driver.mjs", strings.Split(driver, "for (const command")[0]+`await attempt("before", () => hooks["tool.execute.before"](tool("ls"), { args: {} }))`)
	require.Equal(t, "hooks: [\"tool.execute.before\"]\nbefore threw: \"hookd: "+program+" ended with SIGKILL, so this is not allowed\"\n", play())
}
