#!/usr/bin/env bash
# Measures weir, search beside Bleve alone, and prints a table. Arguments go to the program:
#   scripts/bench.sh -short
#   scripts/bench.sh goals                 the goals of replays, beside SQLite and decoding, of up to 1,000,000 records
#   scripts/bench.sh 10000000              the same, up to so many, which takes 30 GB of disk
#   scripts/bench.sh lists
#   scripts/bench.sh -only replay,models -cpuprofile cpu.pprof
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED="${CGO_ENABLED:-0}" # as the program is built
exec "${GO:-go}" run ./scripts/bench "$@"
