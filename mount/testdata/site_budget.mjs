// A budget in the words of the examples on PicoClaw's website: two calls, then no more.
import { createInterface } from "node:readline";

let left = 2;

function decide({ name, args }) {
  if (name !== "search") return { allow: true };
  if (left-- > 0) return { args: { ...args, limit: 10 } };
  return { allow: false, reason: "the budget is used up" };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const result = method === "hook.hello" ? { name: "budget", protocol_version: 1 } : decide(params ?? {});
  console.log(JSON.stringify({ jsonrpc: "2.0", id: id ?? null, result }));
}
