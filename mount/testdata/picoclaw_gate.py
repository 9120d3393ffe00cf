#!/usr/bin/env python3
"""A gate as PicoClaw's protocol has it: names in Pascal case, actions, and what changes wrapped into all the params."""
import json, os, signal, sys

LOG = os.environ.get("PICOCLAW_HOOK_LOG_FILE")


def hello(params):
    return {"ok": True, "name": "gate", "version": params["version"], "modes": params["modes"]}


def before_tool(params):
    meta, tool, arguments = params.get("meta") or {}, params["tool"], params["arguments"]
    if tool == "rm":
        where = "/".join([meta.get("SessionKey", "?"), params.get("chat_id", "?"), meta.get("TracePath", "?")])
        return {"action": "deny_tool", "reason": "no rm in " + where}
    if tool == "fetch":  # gives everything back
        return {"action": "modify", "call": {**params, "arguments": {**arguments, "safe": True}}}
    if tool == "weather":  # runs the tool itself
        return {"action": "respond", "call": {"tool": tool, "hook_result": {"for_llm": "sunny", "is_error": False}}}
    return {"action": "continue"}


def after_tool(params):
    said = params["result"].get("for_llm", "nothing").replace("sk-1", "***")
    result = {**params["result"], "for_llm": f"{said} after {params.get('duration', 0) // 1000000} ms"}
    return {"action": "modify", "result": {**params, "result": result}}


def approve_tool(params):
    return {"approved": params["tool"] != "rm", "reason": ""}


def note(params):
    with open(LOG, "a") as log:
        print(params["kind"], params["scope"]["session_key"], json.dumps(params["payload"]), file=log)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
answers = {"hook.hello": hello, "hook.before_tool": before_tool, "hook.after_tool": after_tool, "hook.approve_tool": approve_tool}
for line in sys.stdin:
    if not line.strip():
        continue
    request = json.loads(line)
    method, number = request["method"], request.get("id")
    if not number:
        if method == "hook.runtime_event":
            note(request["params"])
        continue
    reply = {"jsonrpc": "2.0", "id": int(number)}
    if method in answers:
        reply["result"] = answers[method](request["params"])
    else:
        reply["error"] = {"code": -32601, "message": "method not found"}
    print(json.dumps(reply), flush=True)
