#!/bin/sh
# build.sh FILE: hookd as it is released, for $GOOS and $GOARCH: static, without
# paths of this machine, with the version of the git tag or commit inside; and
# hookd-hook, which coding agents start, beside it.
set -eu
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
go build -trimpath -buildvcs=auto -ldflags='-s -w' -o "$out" ./cmd/hookd
# hookd reads its version out of itself; hookd-hook links nothing that could.
version=$(go version -m "$out" | awk '$1 == "mod" { print $3 }')
exec go build -trimpath -buildvcs=auto -ldflags="-s -w -X github.com/hookd/hookd/thin.version=$version" -o "$(dirname "$out")/hookd-hook" ./cmd/hookd-hook
