#!/usr/bin/env python3
"""agent asks hookd before and after every tool call of a script, which stands in for a model: the least that an agent has
to do. The whole loop, with all stages, is in loop.go. No dependencies. Usage: agent.py SCRIPT [FOLDER]"""
import json, os, socket, subprocess, sys, tempfile

PATIENCE = int(os.environ.get("AGENT_PATIENCE_MS", 60_000))  # for a decision, and as long again for people who approve
TOOLS = {  # as shell commands, with the names of their arguments
    "read_file": ['cat -- "$1"', "path"],
    "write_file": ['printf %s "$2" >"$1" && printf written', "path", "content"],
    "bash": ['eval "$1"', "command"],
}
compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

def socket_path():
    """Where hookd is. The daemon and all its clients look in this order."""
    runtime = [f for f in (os.environ.get("XDG_RUNTIME_DIR"), f"/run/user/{os.getuid()}") if f and os.path.isdir(f)]
    state = os.environ.get("XDG_STATE_HOME") or os.environ.get("HOME", "") + "/.local/state"
    return os.environ.get("HOOKD_SOCKET") or [*runtime, state][0] + "/hookd/hookd.sock"

class Hookd:
    """A connection. What fails raises, and once an answer stayed out, so do all calls after it: nothing is asked twice."""

    def __init__(self, path):
        if os.stat(path).st_uid not in (os.geteuid(), 0):  # who listens sees all that we do, and could allow all of it
            raise PermissionError(f"{path} belongs to another user")
        self.last, connection = 0, socket.socket(socket.AF_UNIX)
        connection.settimeout(2 * PATIENCE / 1000 + 1)  # a little longer than hookd is told
        connection.connect(path)
        self.lines = connection.makefile("rwb")
        self.call("hello", {"name": "agent.py", "version": 1, "deadline_ms": PATIENCE, "approval_deadline_ms": PATIENCE})

    def send(self, method, params, **number):
        message = {"jsonrpc": "2.0", **number, "method": "hook." + method, "params": params}
        self.lines.write(compact(message).encode() + b"\n")
        self.lines.flush()

    def call(self, method, params):
        self.last += 1
        self.send(method, params, id=self.last)
        line = self.lines.readline()
        if not line.endswith(b"\n"):
            raise EOFError("it has gone")
        reply = json.loads(line)
        if reply["id"] != self.last or "result" not in reply:
            raise ValueError(reply.get("error", "this answers something else"))
        return reply["result"]

    def ask(self, stage, params, member, own):
        """Returns own, or what hooks made of it, or None for a no; then what the model gets instead, and the verb."""
        try:
            said = self.call(stage, params)
            yes = said["action"] in ("continue", "modify", "allow")
            yes = yes and ("approve" not in params or said["approval"]["approved"] is True)
            for note in [name for name in ("add_context", "warnings", "degraded") if name in said]:
                print(note, said[note])  # the first is for the model, the others are for the user
            why = {"content": said.get("reason", "denied by hookd"), "is_error": True}
            instead = said["result"] if said["action"] == "respond" else why
            return said.get(member, own) if yes else None, instead, said["action"]
        except Exception as trouble:  # whatever it is, it is no readable yes
            return None, {"content": f"hookd gave no verdict: {trouble!r}", "is_error": True}, ""

def use_tool(hookd, about, call, folder):
    """Runs a tool call if it may. Returns the result for the model, and hookd's last verb."""
    may, instead, verb = hookd.ask("before_tool", {**about, **call, "approve": True}, "call", call)
    if may is None:
        print("not run", call["tool"])
        return instead, verb
    print("ran", may["tool"], compact(may["arguments"]))  # not call: hooks may have changed it
    result = run(may["tool"], may["arguments"], folder)
    shown, instead, verb = hookd.ask("after_tool", {**about, **may, "result": result}, "result", result)
    return instead if shown is None else shown, verb

def run(tool, arguments, folder):
    try:
        command = ["sh", "-c", TOOLS[tool][0], tool, *(arguments[name] for name in TOOLS[tool][1:])]
        out, null = subprocess.PIPE, subprocess.DEVNULL
        done = subprocess.run(command, cwd=folder, stdin=null, stdout=out, stderr=subprocess.STDOUT, timeout=10)
        status = f"[exit status {done.returncode}]" if done.returncode else ""
        return {"content": done.stdout.decode(errors="replace") + status, "is_error": status != ""}
    except Exception as trouble:  # it takes too long, or there is no such tool
        return {"content": repr(trouble), "is_error": True}

def main(script, folder):
    hookd = Hookd(socket_path())
    hookd.send("event", {"kind": "session_start", "payload": {"source": "startup"}})  # hookd can't see it in the calls
    for turn in script["turns"]:
        for wanted in (call for answer in turn["answers"] for call in answer.get("tool_calls", [])):
            print("call", wanted["name"], compact(wanted["arguments"]))
            about = {"call_id": wanted["id"], "meta": {"cwd": folder}}
            result, verb = use_tool(hookd, about, {"tool": wanted["name"], "arguments": wanted["arguments"]}, folder)
            print("result", compact(result))
            if verb == "hard_abort":
                return
            if verb == "abort_turn":
                break

if __name__ == "__main__":
    with open(sys.argv[1]) as script, tempfile.TemporaryDirectory() as folder:
        main(json.load(script), os.path.realpath(sys.argv[2] if len(sys.argv) > 2 else folder))
