"""A hook for hookd: it reads a line of JSON, and writes a line of JSON."""
import json
import sys


def before_tool(call):
    """Judges a tool call that is about to run. An empty answer objects to nothing."""
    if "rm -rf" in str(call["arguments"].get("command")):
        return {"action": "deny", "reason": "rm -rf is not for agents"}
    return {}


for line in sys.stdin.buffer:
    request = json.loads(line)
    if "id" not in request:
        continue  # an event: nobody waits for an answer
    result = {}  # to the greeting this means yes
    if request["method"] == "hook.before_tool":
        result = before_tool(request["params"])
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
