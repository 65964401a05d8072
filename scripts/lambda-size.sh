#!/usr/bin/env bash
# Builds the programs as Lambda loads them, without the embedded drivers. It prints their
# sizes, as zips too, and the time from the function's start until it asks for the first
# event (the median of 9), beside a DynamoDB Local on this machine. Without java, mvn or
# curl there is no cold start. It fails if a zip is larger than docs/performance.md says.
set -euo pipefail
cd "$(dirname "$0")/.."
port=${WEIR_LAMBDA_PORT:-8469}
"${GO:-go}" test -tags lambda ./internal/drivers
endpoint=$(scripts/dynamodb-local.sh start "$port") || { code=$?; [ $code = 77 ] || exit $code; }
trap 'scripts/dynamodb-local.sh stop "$port" || true' EXIT
"${GO:-go}" run ./scripts/lambdasize -endpoint "${endpoint:-}"
