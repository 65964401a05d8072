#!/usr/bin/env bash
# Measures weir beside its peers and prints a table; arguments go to the program:
#   scripts/bench.sh -short
#   scripts/bench.sh ingest
#   scripts/bench.sh -only decode,replay -cpuprofile cpu.pprof
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED="${CGO_ENABLED:-0}" # as the program is built
exec "${GO:-go}" run ./scripts/bench "$@"
