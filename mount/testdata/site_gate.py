#!/usr/bin/env python3
"""A gate in the words of the examples on PicoClaw's website. It answers everything, events too."""
import json, os, sys


def hello(params):
    return {"name": "site-gate", "protocol_version": params.get("protocol_version", 0)}


def event(params):
    with open(os.environ["PICOCLAW_HOOK_LOG_FILE"], "a") as log:
        print(params.get("type"), json.dumps(params.get("data")), file=log)
    return {}


def before_tool(params):
    name, args = params.get("name", "?"), params.get("args", {})
    if name == "fetch":
        return {"args": {**args, "safe": True}}
    if name == "weather":
        return {"decision": {"action": "respond"}, "hook_result": {"for_llm": "sunny", "is_error": False}}
    if name == "rm":
        return {"decision": {"action": "deny_tool", "reason": "no rm"}}
    return {"decision": {"action": "continue"}}


def approve_tool(params):
    return {"allow": params.get("name") == "ls"}


answers = {"hook.hello": hello, "hook.event": event, "hook.before_tool": before_tool, "hook.approve_tool": approve_tool}
for line in sys.stdin:
    message = json.loads(line)
    answer = answers.get(message.get("method"))
    if answer:
        print(json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": answer(message.get("params", {}))}), flush=True)
