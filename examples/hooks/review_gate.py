#!/usr/bin/env python3
"""review_gate stops tool calls that are hard to undo. At approve_tool it says yes to what no rule names, else no: what it
asks about needs a person (where one approves, mount it at before_tool only). "config" adds rules; "approve": false approves
nothing. A seat belt, not a wall: patterns over shell text miss variables, script files, other languages and much more.

  "review-gate": {
    "command": ["python3", "examples/hooks/review_gate.py"],
    "intercept": ["before_tool", "approve_tool"],
    "fail_policy": "deny",
    "config": {"deny": ["terraform destroy"], "ask": [" kubectl "], "protected_paths": ["/etc", "*.pem"], "approve": true}
  }"""
import json, os, re, sys

HOME = rf"(~|\$HOME|\$\{{HOME\}}|{re.escape(os.path.expanduser('~'))})"
TOP = rf" ({HOME}|/(bin|boot|etc|home|lib|opt|root|sbin|srv|usr|var)?)[/.*]* "
RECURSIVE, SHELL, GET = r" (-\w*[rR]|--r)", "(ba|da|z)?sh ", "(curl|wget|base64) "
GIT_PUSH = r"[ /]git (-\S+ ([^-\s]\S* )?){0,9}push "
WRITING = r"[ /](tee|cp|mv|rm|ln|dd|install|truncate|touch|chmod|chown|sed -\w*i\S*) "
RULES = [  # (action, patterns that must all be found in one of parts(command), reason); the first that fits decides
    ("deny_tool", ["[ /]rm ", RECURSIVE, TOP], "deletes a system or home folder; name what you mean inside it"),
    ("deny_tool", ["[ /]chmod ", RECURSIVE, r" (0?777|\w*[+=]rwx) ", TOP], "opens a system folder to everybody"),
    ("deny_tool", [r"[ /](mkfs\S*|wipefs) (\S+ ){0,9}/dev/|(of=|> )/dev/(sd|[hvx]+d|nvme|mmc|disk)"], "wipes a disk"),
    ("deny_tool", ["[ /]" + GET, rf"\| (sudo (-\S+ )*)?(\S*/)?{SHELL}|[ /]({SHELL}|eval )(\S+ ){{0,3}}[<$`] (\( )?{GET}"],
     "runs what nobody has read; save it and read it first"),
    ("deny_tool", [r" (\S{1,64}) \( \) \{ \1 \| \1 "], "is a fork bomb"),
    ("deny_tool", [GIT_PUSH, r" (-\w*[fd] |--(force|delete|mirror)|[+:]\S)", "[ :+/](main|master) "], "rewrites main"),
    ("ask", [GIT_PUSH + r"|[ /](npm|pnpm|yarn|cargo) (-\S+ )*publish "], "publishes commits or a package"),
    ("ask", [r"(^|[|({`]|then|do|else|-l?c) (\S*/)?(sudo|doas) "], "runs as another user"),
]

def configure(deny=(), ask=(), protected_paths=(), approve=True):
    """Adds rules, denies in front. An unknown key or a bad pattern raises, which refuses the greeting."""
    assert str not in map(type, (deny, ask, protected_paths)), "deny, ask and protected_paths are lists"
    for path in protected_paths:  # "~/.ssh" is that place and all below it, ".env" that name anywhere
        place = re.escape(path.rstrip("/")).replace(r"\*", "[^ /=]*").replace(r"\~", HOME) + "[ /]"
        for needs in [r"> (\S*/)?" + place], [WRITING, "[ =/]" + place]:
            RULES.insert(0, ("deny_tool", needs, f"writes to {path}, which is protected"))
    RULES[:0] = [("deny_tool", [re.compile(pattern)], f"matches {pattern!r}") for pattern in deny]
    RULES.extend(("ask", [re.compile(pattern)], f"matches {pattern!r}") for pattern in ask)
    vote.may_approve = approve is True
    return {"ok": True}

def parts(command):
    """Cuts at ; & and new lines, one blank around every word. Quotes go first: r''m, and what `sh -c "…"` would run."""
    cut = re.split(r"[;\n]|&(?=[&\s]|$)", re.sub(r"\\\n|[\"'\\]", "", command).replace("${IFS}", " "))
    return [" ".join(["", *re.sub(r"([|&()<>`])", r" \1 ", part).split(), ""]) for part in cut]

def judge(params):
    tool, cwd, lines = params["tool"], (params.get("meta") or {}).get("cwd") or "", []
    for key, value in (params.get("arguments") or {}).items():
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        if re.search("(?i)(command|cmd|script)(_?line)?s?$", key) and tool != "apply_patch":
            lines += parts(text)
        elif re.search("(?i)write|edit|patch|append|create|delete|remove|move|rename|replace|save", tool):
            named = re.search("(?i)(path|file|name|destination|target)s?$", key)
            for path in [text] if named else re.findall(r"(?m)^\*{3} .*: (.+)$", text):
                lines.append(f" tee {path} {os.path.realpath(os.path.join(cwd, path))} ")
    for action, needs, reason in RULES:
        if any(all(re.search(need, line) for need in needs) for line in lines):
            return {"action": action, "reason": reason}
    return {"action": "continue"}

def vote(params):
    reason = judge(params).get("reason", "" if vote.may_approve else "this gate is set to approve nothing")
    return {"approved": not reason, "reason": reason or "no rule names this call", "by": "review-gate"}

configure(protected_paths=["~/.ssh", "~/.gnupg", "~/.aws", ".env", ".env.local"])
CALLS = {"hook.hello": lambda p: configure(**p.get("config") or {}), "hook.before_tool": judge, "hook.approve_tool": vote}
for line in filter(bytes.strip, sys.stdin.buffer):
    number, code = None, -32700
    try:
        request = json.loads(line)
        if (number := request.get("id")) is None:
            continue  # a notification is never answered
        code = -32603 if request["method"] in CALLS else -32601
        reply = {"result": CALLS[request["method"]](request.get("params") or {})}
    except Exception as err:
        reply = {"error": {"code": code, "message": {-32700: "no request", -32601: "unknown method"}.get(code, repr(err))}}
    print(json.dumps({"jsonrpc": "2.0", "id": number, **reply}), flush=True)
