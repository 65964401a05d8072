#!/usr/bin/env bash
# Replays the recorded streams of every model into ./demo-data and asks a few
# questions of what was derived.
set -euo pipefail
cd "$(dirname "$0")/.."
data=demo-data
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
ask() {
	say "\$ projector query $(printf '%q ' "$@")--data $data"
	bin/projector query "$@" --data "$data" | head -n 3 | cut -c1-300
}
for model in gallery wardrobe; do
	say "\$ projector replay $model testdata/streams/$model/stream.* --data $data"
	bin/projector replay "$model" testdata/streams/"$model"/stream.* --data "$data"
done
