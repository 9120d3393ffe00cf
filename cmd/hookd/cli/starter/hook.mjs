// A hook for hookd: it reads a line of JSON, and writes a line of JSON. Node 18 or newer.

// Judges a tool call that is about to run. An empty answer objects to nothing.
function beforeTool(call) {
  if (String(call.arguments.command).includes("rm -rf")) {
    return { action: "deny", reason: "rm -rf is not for agents" };
  }
  return {};
}

function answer({ id, method, params }) {
  if (id === undefined) return; // an event: nobody waits for an answer
  const result = method === "hook.before_tool" ? beforeTool(params) : {}; // to the greeting {} means yes
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
}

let rest = ""; // of a line that has not ended yet
for await (const chunk of process.stdin.setEncoding("utf8")) {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const line of lines) answer(JSON.parse(line));
}
