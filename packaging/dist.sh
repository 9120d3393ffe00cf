#!/usr/bin/env bash
# dist.sh [DIR [OS/ARCH…]]: the files of a release, in DIR (dist): for each
# system an archive and a bill of materials, and SHA256SUMS. The same commit and
# the same Go give the same bytes. Needs git, GNU tar and, for the bills,
# the Go module proxy or a filled cache; SBOM=0 leaves them out.
set -euo pipefail
out=$(realpath -m "${1:-dist}")
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(linux/amd64 linux/arm64 darwin/arm64)
cd "$(dirname "$0")/.."

SBOM_TOOL=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
epoch=$(git log -1 --format=%ct)
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
rm -f "$out"/hookd-* "$out"/SHA256SUMS

[ "${SBOM:-1}" = 0 ] || GOBIN=$work GOFLAGS=-trimpath go install "$SBOM_TOOL"
go run ./packaging/man "$work/share" "$(date -u -d "@$epoch" +%F)"
for target in "${targets[@]}"; do
  export GOOS=${target%/*} GOARCH=${target#*/}
  packaging/build.sh "$work/hookd"
  # The version is in the binary: the tag of the commit, or a pseudo-version.
  version=$(go version -m "$work/hookd" | awk '$1 == "mod" { print $3 }')
  [[ $version == v* ]] || { echo "dist.sh: no version in the binary: build it in a git clone" >&2; exit 1; }
  name=hookd-$version-$GOOS-$GOARCH
  dir=$work/$name
  mkdir -p "$dir/examples"
  mv "$work/hookd" "$work/hookd-hook" "$dir/"
  cp README.md LICENSE config.example.json config.schema.json "$dir/"
  cp -r "$work/share" schema "$dir/"
  mkdir -p "$dir/docs" && cp docs/*.md "$dir/docs/"
  mkdir -p "$dir/examples/hooks" && cp examples/hooks/*.py examples/hooks/*.mjs examples/hooks/*.sh "$dir/examples/hooks/"
  mkdir -p "$dir/packaging" && cp -r packaging/systemd packaging/launchd packaging/grafana "$dir/packaging/"
  tar --create --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --format=ustar -C "$work" "$name" |
    gzip -9n >"$out/$name.tar.gz"
  if [ "${SBOM:-1}" != 0 ]; then
    # The tool stamps the time of its run.
    CGO_ENABLED=0 "$work/cyclonedx-gomod" app -json -noserial -licenses -std -main cmd/hookd . |
      sed "s/\"timestamp\": \"[^\"]*\"/\"timestamp\": \"$(date -u -d "@$epoch" +%FT%TZ)\"/" >"$out/$name.cdx.json"
  fi
  echo "$name"
done
cd "$out"
sha256sum -- hookd-* >SHA256SUMS
