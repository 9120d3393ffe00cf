// agent asks hookd before and after every tool call of a script, which stands in for a model: the least that an agent has to
// do. The whole loop, with all stages, is in loop.go. No dependencies, Node 22.18 or newer. Usage: node agent.ts SCRIPT [FOLDER]
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";

type Call = { tool: string; arguments: Record<string, unknown> };
type Result = { content: unknown; is_error: boolean };
type Verdict<T> = { may: T | null; instead: Result; verb: string }; // may is what to go on with, or null for a no
type Script = { turns: { answers: { tool_calls?: { id: string; name: string; arguments: Call["arguments"] }[] }[] }[] };

const env = process.env;
const patience = Number(env.AGENT_PATIENCE_MS ?? 60_000); // for a decision, and as long again for people who approve
const tools: Record<string, string[]> = { // as shell commands, with the names of their arguments
  read_file: ['cat -- "$1"', "path"],
  write_file: ['printf %s "$2" >"$1" && printf written', "path", "content"],
  bash: ['eval "$1"', "command"],
};

// Where hookd is. The daemon and all its clients look in this order.
const isFolder: (path?: string) => boolean = (path) => !!path && !!statSync(path, { throwIfNoEntry: false })?.isDirectory();
const runtime = [env.XDG_RUNTIME_DIR, `/run/user/${process.getuid?.()}`].find(isFolder);
const path = env.HOOKD_SOCKET || `${runtime || env.XDG_STATE_HOME || `${env.HOME}/.local/state`}/hookd/hookd.sock`;
// Who listens there sees all that we do, and could allow all of it.
if (![0, process.geteuid?.()].includes(statSync(path).uid)) throw new Error(`${path} belongs to another user`);
const socket = createConnection(path).setEncoding("utf8");
socket.on("error", () => {}); // whoever reads is told
socket.on("timeout", () => socket.destroy(new Error("no answer in time")));
const chunks = socket[Symbol.asyncIterator]();
let [last, rest] = [0, ""]; // the last call's number, and what has come of a line
const send: (message: object) => void = (message) => void socket.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");

// What fails throws, and once an answer stayed out, so do all calls after it: nothing is asked twice.
const call: (method: string, params: object) => Promise<any> = async (method, params) => {
  send({ id: ++last, method, params });
  socket.setTimeout(2 * patience + 1000); // a little longer than hookd is told
  while (!rest.includes("\n")) {
    const next = await chunks.next();
    if (next.done) throw new Error("it has gone");
    rest += next.value;
  }
  socket.setTimeout(0);
  const line = rest.slice(0, rest.indexOf("\n"));
  rest = rest.slice(line.length + 1);
  const reply = JSON.parse(line);
  if (reply.id !== last || !("result" in reply)) throw new Error(reply.error?.message ?? "this answers something else");
  return reply.result;
};

// Returns own, or what hooks made of it, or null for a no; then what the model gets instead, and the verb.
const ask: <T>(stage: string, params: object, part: string, own: T) => Promise<Verdict<T>> = async (stage, params, part, own) => {
  try {
    const said = await call(`hook.${stage}`, params);
    const yes = ["continue", "modify", "allow"].includes(said.action) && !("approve" in params && said.approval.approved !== true);
    for (const note of ["add_context", "warnings", "degraded"]) if (note in said) console.log(note, said[note]); // for the user
    const why = { content: said.reason ?? "denied by hookd", is_error: true };
    return { may: yes ? said[part] ?? own : null, instead: said.action === "respond" ? said.result : why, verb: said.action };
  } catch (trouble) { // whatever it is, it is no readable yes
    return { may: null, instead: { content: `hookd gave no verdict: ${trouble}`, is_error: true }, verb: "" };
  }
};

const run: (call: Call) => Result = ({ tool, arguments: given }) => {
  try {
    const [command, ...names] = tools[tool];
    if (names.some((name) => typeof given[name] !== "string")) throw new Error(`${tool} needs ${names}`);
    const argv = ["-c", command, tool, ...names.map((name) => `${given[name]}`)];
    const done = spawnSync("sh", argv, { cwd: folder, encoding: "utf8", timeout: 10_000, maxBuffer: 1 << 16 });
    const status = done.status === 0 ? "" : `[exit status ${done.status ?? done.signal}]`;
    return { content: done.stdout + done.stderr + status, is_error: done.status !== 0 };
  } catch (trouble) { // such as a tool that there is not
    return { content: `${trouble}`, is_error: true };
  }
};

const script: Script = JSON.parse(readFileSync(process.argv[2], "utf8"));
const folder = realpathSync(process.argv[3] ?? mkdtempSync(`${tmpdir()}/agent-`));
await call("hook.hello", { name: "agent.ts", version: 1, deadline_ms: patience, approval_deadline_ms: patience });
send({ method: "hook.event", params: { kind: "session_start", payload: { source: "startup" } } }); // no call implies it
turns: for (const { answers } of script.turns) {
  for (const { id, name, arguments: given } of answers.flatMap((answer) => answer.tool_calls ?? [])) {
    console.log("call", name, JSON.stringify(given));
    const about = { call_id: id, meta: { cwd: folder } };
    const wanted = { tool: name, arguments: given };
    let { may, instead: result, verb } = await ask("before_tool", { ...about, ...wanted, approve: true }, "call", wanted);
    console.log(...(may ? ["ran", may.tool, JSON.stringify(may.arguments)] : ["not run", name])); // not what was wanted
    if (may) {
      const own = run(may);
      const after = await ask("after_tool", { ...about, ...may, result: own }, "result", own);
      [result, verb] = [after.may ?? after.instead, after.verb];
    }
    console.log("result", JSON.stringify(result));
    if (verb === "hard_abort") break turns;
    if (verb === "abort_turn") break;
  }
}
socket.destroy();
if (!process.argv[3]) rmSync(folder, { recursive: true });
