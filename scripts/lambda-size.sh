#!/usr/bin/env bash
# Builds the programs as Lambda loads them, without the embedded drivers, and runs scripts/lambdasize: their sizes, as zips too; and
# beside a DynamoDB Local on this machine, the function's start until its first record is applied, and its memory.
# Without java, mvn or curl there are only sizes. It fails if a zip or the memory is larger than docs/performance.md
# says. Arguments go to the program:
#   scripts/lambda-size.sh -events 1000
#   scripts/lambda-size.sh -records 2900 -events 3
set -euo pipefail
cd "$(dirname "$0")/.."
port=${WEIR_LAMBDA_PORT:-8469}
"${GO:-go}" test -tags lambda ./internal/system -run '^TestWithoutEmbedded$'
endpoint=$(scripts/dynamodb-local.sh start "$port") || { code=$?; [ $code = 77 ] || exit $code; }
trap 'scripts/dynamodb-local.sh stop "$port" || true' EXIT
"${GO:-go}" run ./scripts/lambdasize -endpoint "${endpoint:-}" "$@"
