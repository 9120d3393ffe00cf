#!/bin/sh
# A hook for hookd: it reads a line of JSON, and writes a line of JSON. A shell can't take JSON apart, so this one looks
# for words in it; for more than that take another language.

answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }

while IFS= read -r line; do
	id=${line#*'"id":'}
	id=${id%%,*}
	case $line in
	*'"hook.before_tool"'*'rm -rf'*) answer '{"action":"deny","reason":"rm -rf is not for agents"}' ;;
	'{"jsonrpc":"2.0","id":'*) answer '{}' ;; # nothing to object to; to the greeting it means yes
	esac # all else is an event, and nobody waits for an answer
done
