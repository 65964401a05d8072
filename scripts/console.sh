#!/usr/bin/env bash
# Walks the console in Chromium: each page at three widths, light and dark, with axe-core, by
# keyboard alone, and over rows that contain markup. See scripts/console/check.mjs.
#
#   scripts/console.sh              # the check
#   scripts/console.sh --pictures   # writes the pictures of docs/guide/console.md again, too
#
# npm installs playwright-core and axe-core into ${WEIR_SERVICES:-~/.cache/weir-services}. The
# browser is the system's: $CHROMIUM, or chromium in the PATH. If something is missing, the script
# says what, and exits with 77.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/service.sh
playwright=1.56.1
axe=4.11.0

need node
need npm
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$chromium" ] || { say "chromium is needed for this; set CHROMIUM if it has another name"; exit 77; }
tool=$services/console-$playwright-$axe
if [ ! -e "$tool/.complete" ]; then
	rm -rf "$tool"
	mkdir -p "$tool"
	say "fetching playwright-core $playwright and axe-core $axe into $tool"
	if ! npm install --prefix "$tool" --no-audit --no-fund --ignore-scripts "playwright-core@$playwright" "axe-core@$axe" >"$services/console.log" 2>&1; then
		tail -n 5 "$services/console.log" >&2
		say "playwright-core and axe-core cannot be had here: they need npm and its registry"
		exit 77
	fi
	touch "$tool/.complete"
fi

workspace
"${GO:-go}" build -o "$work/projector" ./cmd/projector
# A record without the sort key becomes a dead letter, with markup in it.
cat >"$work/bad.jsonl" <<'RECORD'
{"eventID":"1","eventName":"INSERT","eventSource":"aws:dynamodb","dynamodb":{"Keys":{"PK":{"S":"<script>alert(6)</script>"}},"NewImage":{"PK":{"S":"<script>alert(6)</script>"},"title":{"S":"\"><img src=x onerror=alert(7)>"}},"SequenceNumber":"100000000000000000001"}}
RECORD
# A second process has no row yet, so that every page is looked at empty, too.
serve projector run wardrobe --data "$work/empty"
empty=$address first=$pid
serve projector dev gallery --sample testdata/streams/gallery --sample "$work/bad.jsonl" --data "$work/data" --rate 0
pid="$pid $first"
CHROMIUM=$chromium TOOLS=$tool EMPTY=$empty node scripts/console/check.mjs "$address" "$@"
