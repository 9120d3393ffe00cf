// redact takes secrets out of what the model reads: every string of the messages at before_llm, and of the result at
// after_tool (its content may be a text or blocks). It finds what it has a pattern for and nothing else. Node 18 or newer.
//
//   "redact": {
//     "command": ["node", "examples/hooks/redact.mjs"],
//     "intercept": ["before_llm", "after_tool"],
//     "fail_policy": "deny",
//     "config": { "email": true, "patterns": { "customer number": "\\bC-\\d{8}\\b" } }
//   }
import { randomUUID } from "node:crypto";

const secrets = { // name: pattern; what its first group holds stays. None may turn slow on a text of some megabytes.
  "private key": /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  "AWS key id": /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g,
  "AWS secret key": /(secret_?(?:access_?)?key\W{1,8})[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])/gi,
  "GitHub token": /\b(?:gh[opsur]_[A-Za-z0-9]{36,}|github_pat_\w{22,})/g,
  "bearer token": /(\bbearer\s{1,4})(?=[\w.~+/-]*\d)[\w.~+/-]{16,}=*/gi,
};

function clean(value) {
  if (Array.isArray(value)) return value.map(clean);
  if (typeof value === "object" && value) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, clean(v)]));
  if (typeof value !== "string" || value.startsWith(mark)) return value;
  return Object.entries(secrets).reduce((text, [name, pattern]) => text.replace(pattern, (_, kept) =>
    `${typeof kept === "string" ? kept : ""}[redacted ${name}]`), value);
}

// Answers with the members that changed and no others: hookd merges them over what it has.
function decide(field, subject) {
  const changed = Object.entries(clean(subject)).filter(([k, v]) => JSON.stringify(v) !== JSON.stringify(subject[k]));
  return changed.length ? { action: "modify", [field]: Object.fromEntries(changed) } : { action: "continue" };
}

const methods = {
  __proto__: null,
  "hook.before_llm": ({ messages = [] }) => decide("request", { messages }),
  "hook.after_tool": ({ result = {} }) => decide("result", result),
  "hook.hello": ({ config }) => {
    const { email = false, patterns = {}, ...unknown } = config ?? {};
    if (Object.keys(unknown).length) throw new Error(`config has email and patterns, not ${Object.keys(unknown)}`);
    for (const [name, source] of Object.entries(patterns)) secrets[name] = new RegExp(source, "g");
    if (email) secrets["e-mail address"] = /(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g;
    return { ok: true };
  },
};

// JSON.parse rounds integers over 2^53, and messages go back whole. So numbers travel through as marked strings.
const mark = randomUUID();
const print = (value) => JSON.stringify(value).replace(new RegExp(`"${mark}([^"]+)"`, "g"), "$1");
function parse(line) {
  let quoted = false;
  return JSON.parse(line.replace(/\\.|"|-?\d[\d.eE+-]*/g, (token) => {
    if (token === '"') quoted = !quoted;
    return quoted || !/[-\d]/.test(token[0]) ? token : `"${mark}${token}"`;
  }));
}

function answer(line) {
  let id, reply, code = -32700;
  try {
    const request = parse(line);
    id = request.id ?? undefined;
    code = request.method in methods ? -32603 : -32601;
    reply = { result: methods[request.method](request.params ?? {}) };
  } catch (problem) {
    const known = { [-32700]: "not a JSON-RPC request", [-32601]: "unknown method" }; // JSON.parse would quote the input
    reply = { error: { code, message: known[code] ?? `redact: ${problem.message}` } };
  }
  if (id !== undefined || code === -32700) console.log(print({ jsonrpc: "2.0", id: id ?? null, ...reply }));
}

let parts = []; // of a line still to be ended. (readline would also end it at U+2028, which JSON allows in a string)
for await (let chunk of process.stdin) {
  for (let end; (end = chunk.indexOf(10)) >= 0; chunk = chunk.subarray(end + 1)) {
    const line = Buffer.concat([...parts.splice(0), chunk.subarray(0, end)]).toString();
    if (line.trim()) answer(line);
  }
  parts.push(chunk);
}
