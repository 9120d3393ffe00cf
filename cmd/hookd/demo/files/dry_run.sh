#!/bin/sh
# dry_run makes a dry run of every deploy: it changes the command, and the agent runs what hookd returns.
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }

while IFS= read -r line; do
	id=${line#*'"id":'}
	id=${id%%,*}
	case $line in
	*'"command":"sh deploy.sh --dry-run'*) reply '{}' ;;
	*'"command":"sh deploy.sh '*)
		rest=${line#*'"command":"sh deploy.sh '}
		command="sh deploy.sh --dry-run ${rest%%'"'*}"
		reply '{"action":"modify","reason":"deploys are dry runs here","call":{"arguments":{"command":"'"$command"'"}}}'
		;;
	*'"id":'*) reply '{}' ;; # nothing to object to; this is also a yes to the greeting
	esac
done
