// hookd for OpenCode: asks hookd before a tool runs and tells it what happens.
//
// OpenCode has no hooks that are programs, so this plug-in runs hookd-hook for
// each event. It writes one JSON object to it:
//
//   {"hook_event_name", "session_id", "cwd", …}
//     tool.execute.before   + "call_id", "tool_name", "tool_input"
//     tool.execute.after    + the same, and "tool_response": {"title", "output", "metadata"} or {"error"}
//     chat.message          + "prompt", "model"
//     session.created, …    + "properties"
//
// and reads what comes back: an exit status other than 0 with the reason on
// stderr is a no, and so is everything that can't be read. Else stdout is empty
// or one object:
//
//   {"decision": "deny", "reason"}   the tool does not run, the prompt is not sent
//   {"args": {…}}                    what the tool is called with instead
//   {"output": "…"}                  what the model reads as the tool's result instead
//   {"context": "…"}                 what the model reads beside the result or the prompt
import { spawn } from "node:child_process"

// What is run for each event; written by hookd install.
const settings = {}

const sessionEvents = ["session.created", "session.idle", "session.compacted", "session.error", "session.deleted"]
const maxOutput = 16 << 20

// ask runs hookd-hook and returns the answer. It throws when the answer is no,
// and when there is none: hookd-hook itself knows what to say without a daemon.
async function ask(event, payload) {
  const argv = settings[event]
  if (!argv) return {}
  const { code, signal, stdout, stderr } = await run(argv, JSON.stringify(payload))
  if (code !== 0) throw new Error(stderr.trim() || `hookd: ${argv[0]} ended with ${signal ?? code}, so this is not allowed`)
  if (!stdout.trim()) return {}
  let answer
  try {
    answer = JSON.parse(stdout)
  } catch {
    answer = null
  }
  if (answer === null || typeof answer !== "object" || Array.isArray(answer)) throw new Error("hookd: the answer can't be read, so this is not allowed")
  if (answer.decision === "deny") throw new Error(answer.reason || "hookd: this is not allowed")
  if (answer.decision !== undefined && answer.decision !== "allow") throw new Error(`hookd: the decision ${JSON.stringify(answer.decision)} is not known, so this is not allowed`)
  return answer
}

// limit is how long hookd-hook may take: its own deadline and a little more.
function limit(argv) {
  const [, n, unit] = /^(\d+)(ms|s|m)$/.exec(argv[argv.indexOf("--timeout") + 1] ?? "") ?? [, "25", "s"]
  return Number(n) * { ms: 1, s: 1000, m: 60000 }[unit] + 2000
}

function run(argv, input) {
  return new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`hookd: ${argv[0]}: ${why}, so this is not allowed`))
    let child
    try {
      child = spawn(argv[0], argv.slice(1), { stdio: ["pipe", "pipe", "pipe"] })
    } catch (error) {
      return fail(error.message)
    }
    const out = { stdout: [], stderr: [] }
    let size = 0
    for (const name of ["stdout", "stderr"]) {
      child[name].on("data", (part) => {
        size += part.length
        if (size > maxOutput) child.kill("SIGKILL")
        else out[name].push(part)
      })
    }
    const timer = setTimeout(() => child.kill("SIGKILL"), limit(argv))
    const text = (name) => Buffer.concat(out[name]).toString("utf8")
    child.on("error", (error) => {
      clearTimeout(timer)
      fail(error.message)
    })
    child.on("close", (code, signal) => {
      clearTimeout(timer)
      resolve({ code, signal, stdout: text("stdout"), stderr: text("stderr") })
    })
    child.stdin.on("error", () => {}) // it ended without reading all: its exit status counts
    child.stdin.end(input)
  })
}

// tell is for events at which nothing can be decided: it never stands in the way.
function tell(event, payload) {
  ask(event, payload).catch((error) => console.error(error.message))
}

function replace(target, source) {
  for (const key of Object.keys(target)) delete target[key]
  Object.assign(target, source)
}

function promptOf(parts) {
  return (parts ?? []).filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
}

// server is the plug-in of OpenCode 1.
async function server({ directory }) {
  const cwd = directory ?? process.cwd()
  const hooks = {}
  if (settings["tool.execute.before"]) {
    hooks["tool.execute.before"] = async (input, output) => {
      const answer = await ask("tool.execute.before", {
        hook_event_name: "tool.execute.before", session_id: input.sessionID, call_id: input.callID, cwd, tool_name: input.tool, tool_input: output.args ?? {},
      })
      if (answer.args) replace(output.args, answer.args)
    }
  }
  if (settings["tool.execute.after"]) {
    hooks["tool.execute.after"] = async (input, output) => {
      const answer = await ask("tool.execute.after", {
        hook_event_name: "tool.execute.after", session_id: input.sessionID, call_id: input.callID, cwd, tool_name: input.tool, tool_input: input.args ?? {},
        tool_response: { title: output.title, output: output.output, metadata: output.metadata },
      })
      if (typeof answer.output === "string") output.output = answer.output
      if (answer.context) output.output = `${output.output}\n\n${answer.context}`
    }
  }
  if (settings["chat.message"]) {
    hooks["chat.message"] = async (input, output) => {
      const model = input.model ? `${input.model.providerID}/${input.model.modelID}` : undefined
      const answer = await ask("chat.message", { hook_event_name: "chat.message", session_id: input.sessionID, cwd, model, prompt: promptOf(output.parts) })
      const text = (output.parts ?? []).find((part) => part.type === "text")
      if (answer.context && text) text.text = `${text.text}\n\n${answer.context}`
    }
  }
  if (settings.event) {
    hooks.event = async ({ event }) => {
      if (!sessionEvents.includes(event.type)) return
      const p = event.properties ?? {}
      tell("event", { hook_event_name: event.type, session_id: p.sessionID ?? p.info?.id, cwd, properties: p })
    }
  }
  return hooks
}

// setup is the plug-in of OpenCode 2.
async function setup(ctx) {
  const cwd = ctx.location?.directory ?? process.cwd()
  const of = (e) => ({ session_id: e.sessionID, call_id: e.id, cwd, tool_name: e.tool, tool_input: e.input ?? {} })
  if (settings["tool.execute.before"]) {
    await ctx.tool.hook("execute.before", async (e) => {
      const answer = await ask("tool.execute.before", { hook_event_name: "tool.execute.before", ...of(e) })
      if (answer.args) e.input = answer.args
    })
  }
  if (settings["tool.execute.after"]) {
    await ctx.tool.hook("execute.after", async (e) => {
      // What a tool has done can't be stopped any more.
      tell("tool.execute.after", { hook_event_name: "tool.execute.after", ...of(e), tool_response: e.status === "error" ? { error: e.error } : e.result })
    })
  }
}

export default { id: "hookd", server, setup }
