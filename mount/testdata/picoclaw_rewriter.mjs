// A rewriter as PicoClaw's protocol has it. It offers the model one more tool, and hides keys in what models and tools say.
import { createInterface } from "node:readline";

const hide = (text) => text.replaceAll("sk-1", "***");

const answers = {
  "hook.hello": () => ({ action: "continue" }), // as some scripts answer everything
  "hook.before_llm": (params) => ({
    action: "modify",
    request: { ...params, tools: [...(params.tools ?? []), { type: "function", function: { name: "weather" } }] },
  }),
  "hook.after_llm": (params) => ({
    action: "modify",
    response: { ...params, response: { ...params.response, content: hide(params.response.content) } },
  }),
  "hook.after_tool": ({ result }) => ({ action: "modify", result: { result: { for_llm: hide(result.for_llm ?? "") } } }),
  "hook.approve_tool": () => ({ action: "continue" }), // which is no yes
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (!id) continue;
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method](params) }));
}
