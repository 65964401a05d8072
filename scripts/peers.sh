#!/usr/bin/env bash
# Runs weir and other ways to derive the same counts on one recording, and prints what each cost: SQLite with triggers,
# and decoding alone as the limit.
# Arguments go to it:
#   scripts/peers.sh
#   RECORDS=1000000 scripts/peers.sh -rounds 1
# RECORDS is how many records the recording has (100000). With a C compiler SQLite is compiled from C, else it is the
# one that was translated to Go.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -x bin/weir ] || { echo "peers.sh: build the programs first: make build" >&2; exit 2; }
CGO_ENABLED=0 "$go" run ./scripts/bench -generate "$work/gallery.jsonl" -records "${RECORDS:-100000}"
cgo=0
command -v gcc >/dev/null && cgo=1
CGO_ENABLED=$cgo "$go" build -C scripts/peers -o "$work/peers" .
"$work/peers" -recording "$work/gallery.jsonl" "$@"
