#!/usr/bin/env bash
# Installs weir as users do: go install MODULE/cmd/weir@VERSION, with a module path of its own that make module sets in a
# copy, from a module proxy that is a directory. Other modules come from Go's cache, or from the usual proxy.
set -euo pipefail
cd "$(dirname "$0")/.."
module=weir.example.org/weir version=v0.1.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source"
git ls-files -z --cached --others --exclude-standard | xargs -0 -I{} sh -c '[ ! -e "$1" ] || printf "%s\0" "$1"' _ {} | tar --create --null --files-from=- | tar --extract --directory "$work/source"
(
	cd "$work/source"
	git init -q && git add -A
	make --no-print-directory module MODULE="$module"
	git add -A && git -c user.name=weir -c user.email=weir@example.org commit -qm copy
	proxy=$work/proxy/$module/@v
	mkdir -p "$proxy"
	cp go.mod "$proxy/$version.mod"
	echo "$version" >"$proxy/list"
	printf '{"Version": "%s", "Time": "2026-01-01T00:00:00Z"}\n' "$version" >"$proxy/$version.info"
	# Directories with a go.mod of their own are other modules.
	git archive --format=zip --prefix="$module@$version/" --output="$proxy/$version.zip" HEAD -- . ':!.ci' ':!scripts/peers'
)
go=${GO:-go}
cache=$("$go" env GOMODCACHE)
env -C "$work" GOBIN="$work/bin" GOMODCACHE="$work/modules" GOFLAGS="-modcacherw -trimpath -buildvcs=false" GOSUMDB=off GONOSUMDB='*' \
	GOPROXY="file://$work/proxy,file://$cache/cache/download,$("$go" env GOPROXY)" "$go" install "$module/cmd/weir@$version"
"$work/bin/weir" --version | grep -q '^weir 0.1.0$'
"$work/bin/weir" lint gallery
echo "=> go install $module/cmd/weir@$version"
