#!/usr/bin/env bash
# Runs the suites of both stores and both indexes, and all other tests against real
# servers, on a separate DynamoDB Local and OpenSearch. If java, mvn or curl is missing, it
# says so and exits with 77. Arguments go to go test.
#
#   scripts/conform.sh
#   scripts/conform.sh -run TestContract -v
#   WEIR_TAKEOVER_ROUNDS=50 scripts/conform.sh -run Takeover -v
#   WEIR_CORRUPTIONS=1000 scripts/conform.sh -run Corrupted -v
set -euo pipefail
cd "$(dirname "$0")/.."
port=${WEIR_CONFORM_PORT:-8470}
search_port=${WEIR_CONFORM_SEARCH_PORT:-9270}

stop() {
	[ -z "${drivers:-}" ] || rm -rf "$drivers"
	scripts/dynamodb-local.sh stop "$port" || true
	scripts/opensearch.sh stop "$search_port" || true
}
trap stop EXIT
WEIR_TEST_DYNAMODB=$(scripts/dynamodb-local.sh start "$port")
WEIR_TEST_OPENSEARCH=$(scripts/opensearch.sh start "$search_port")
export WEIR_TEST_DYNAMODB WEIR_TEST_OPENSEARCH
# All tests of the drivers' packages run; elsewhere, tests that need a service say so in
# their names, by which their packages are found. They mostly wait, for streams, for indexing and for processes that they start,
# so they run in parallel; the output of the drivers' tests is shown at the end. OpenSearch
# gets 30 random histories of each kind; make test runs 100 on the embedded index.
drivers=$(mktemp -d)
mapfile -t packages < <(grep -rlE '^func Test[A-Za-z]*On(DynamoDB|AWS|Services)\(' --include='*_test.go' cmd internal | xargs -n1 dirname |
	sort -u | grep -v '^internal/store/dynamodb' | sed 's|^|./|')
"${GO:-go}" test -count=1 -timeout 40m ./internal/store/dynamodb/... "$@" >"$drivers/1" 2>&1 &
rows=$!
"${GO:-go}" test -count=1 -timeout 40m ./internal/search/opensearch "$@" -args -rapid.checks=30 >"$drivers/2" 2>&1 &
documents=$!
code=0
"${GO:-go}" test -count=1 -timeout 40m -parallel 6 -run '^TestContract$|On(DynamoDB|AWS|Services)$' \
	./internal/store/embedded ./internal/search/embedded "${packages[@]}" "$@" || code=$?
wait "$rows" || code=$?
wait "$documents" || code=$?
cat "$drivers"/*
exit "$code"
