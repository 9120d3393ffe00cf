#!/bin/sh
# notify writes a line for every event worth a look to $HOOKD_NOTIFY_LOG (without it: to stderr), and runs
# $HOOKD_NOTIFY_CMD, if set, with that line as one more argument. POSIX sh and sed, no jq.
#
#   "notify": {
#     "command": ["sh", "examples/hooks/notify.sh"],
#     "observe": ["turn_end", "tool_exec_skipped", "agent_error", "hook_failed", "approval_requested", "decision"],
#     "env": {
#       "HOOKD_NOTIFY_LOG": "/var/log/hookd/notify.log",
#       "HOOKD_NOTIFY_CMD": "notify-send hookd"
#     }
#   }
#
# How to read JSON here: inside a string every quote is \", so a bare "name":" is always a member. Values keep their
# escapes, so no event can start a line of its own. hookd writes kind before payload, so the first kind is the right one.
# Objects inside objects are not told apart: this gives a hint to look, the record of decisions is hookd's own log.
# sed does the cutting: ${line%%…} takes minutes for a megabyte in some shells.
set -fu

# edit TEXT ARGUMENT... runs sed over TEXT, byte by byte.
edit() {
	text=$1
	shift
	printf '%s\n' "$text" | LC_ALL=C sed "$@"
}

# field NAME TEXT prints the first string member NAME in TEXT.
field() {
	edit "$2" -n '/"'"$1"'" *: *"/ {
		s//\
/
		s/.*\n//
		s/^\([^"\\]*\(\\.[^"\\]*\)*\)".*/\1/p
	}'
}

# event LINE reports one event.
event() {
	payload=$(edit "$1" 's/"payload"/\
/; s/.*\n//')
	kind=$(field kind "$1")
	case $kind in
	turn_end) names='status' ;;
	tool_exec_skipped) names='tool reason' ;;
	agent_error) names='message' ;;
	hook_failed) names='hook stage outcome detail' ;;
	approval_requested) names='tool' ;;
	decision)
		case $(field action "$payload") in deny* | *abort*) names='action stage tool decided_by reason' ;; *) return ;; esac
		;;
	*) return ;;
	esac
	report="$(date -u +%Y-%m-%dT%H:%M:%SZ) $kind"
	for name in $names; do
		value=$(field "$name" "$payload")
		report="$report${value:+ $name=\"$value\"}"
	done
	[ -n "${HOOKD_NOTIFY_LOG:-}" ] && printf '%s\n' "$report" >>"$HOOKD_NOTIFY_LOG" || printf '%s\n' "$report" >&2
	# Unquoted on purpose: a command and its first arguments. stdin and stdout belong to hookd.
	# shellcheck disable=SC2086
	[ -z "${HOOKD_NOTIFY_CMD:-}" ] || $HOOKD_NOTIFY_CMD "$report" </dev/null >&2
}

# reply ENVELOPE MEMBER answers a request; a message without an id gets no answer.
reply() {
	id=$(edit "$1" -n -e 's/.*"id" *: *\([0-9][0-9]*\).*/\1/p' -e 's/.*"id" *: *\("[^"\\]*"\).*/\1/p')
	[ -z "$id" ] || printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$2"
}

while IFS= read -r line || [ -n "$line" ]; do
	envelope=$(edit "$line" 's/"params".*}\([^}]*}\)/\1/') # the message without its params
	case $envelope in
	'{'*'"hook.event"'*) event "$line" ;;
	'{'*'"hook.hello"'*) reply "$envelope" '"result":{"ok":true}' ;;
	'{'*) reply "$envelope" '"error":{"code":-32601,"message":"unknown method: notify only observes"}' ;;
	esac
done
