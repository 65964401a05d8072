#!/usr/bin/env bash
# Compares weir with the handlers that people write, on a separate DynamoDB Local, and
# prints a table. Arguments go to the program. If java, mvn or curl is missing, it says so
# and exits with 77.
#   scripts/bench-aws.sh -records 2000
set -euo pipefail
cd "$(dirname "$0")/.."
port=${WEIR_BENCH_PORT:-8471}
trap 'scripts/dynamodb-local.sh stop "$port" || true' EXIT
AWS_ENDPOINT_URL_DYNAMODB=$(scripts/dynamodb-local.sh start "$port")
export AWS_ENDPOINT_URL_DYNAMODB AWS_REGION=eu-west-1 AWS_ACCESS_KEY_ID=bench AWS_SECRET_ACCESS_KEY=x
export CGO_ENABLED="${CGO_ENABLED:-0}" # as the program is built
"${GO:-go}" run ./scripts/bench-aws "$@"
