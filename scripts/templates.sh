#!/usr/bin/env bash
# Checks templates that projector deploy template prints with cfn-lint. Arguments are models;
# without any it checks internal/deploy/testdata and one built-in model.
#
#   scripts/templates.sh
#   scripts/templates.sh gallery wardrobe movienight viewing watchlists
#
# pip installs cfn-lint into ${WEIR_SERVICES:-~/.cache/weir-services}. If there is no python
# with pip, or the download fails, the script says so and exits with 77, when the rest is good.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/service.sh
version=1.58.0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
models=("$@")
if [ ${#models[@]} = 0 ]; then
	cp internal/deploy/testdata/cloudformation.yaml "$work/"
	models=(movienight)
fi
"${GO:-go}" build -o "$work/projector" ./cmd/projector
for m in "${models[@]}"; do
	"$work/projector" deploy template "$m" >"$work/$(basename "$m" .yaml).cloudformation.yaml"
done

need python3
tool=$services/cfn-lint-$version
if [ ! -e "$tool/.complete" ]; then
	rm -rf "$tool"
	say "fetching cfn-lint $version into $tool"
	if ! python3 -m venv "$tool" >"$services/cfn-lint.log" 2>&1 || ! "$tool/bin/pip" install -q "cfn-lint==$version" >>"$services/cfn-lint.log" 2>&1; then
		tail -n 5 "$services/cfn-lint.log" >&2
		say "cfn-lint $version cannot be had here: it needs python3 with venv and pip, and PyPI"
		exit 77
	fi
	touch "$tool/.complete"
fi
"$tool/bin/cfn-lint" --regions eu-west-1 -- "$work"/*.yaml
