#!/usr/bin/env bash
# Runs the suites of both stores and both indexes, and all other tests against real
# servers, on DynamoDB Locals and an OpenSearch of its own. If java, mvn or curl is missing, it
# says so and exits with 77. Arguments go to go test.
#
#   scripts/conform.sh
#   scripts/conform.sh -run TestContract -v
#   WEIR_TAKEOVER_ROUNDS=50 scripts/conform.sh -run Takeover -v
#   scripts/conform.sh -run Recorded -short=false -v
set -euo pipefail
cd "$(dirname "$0")/.."
port=${WEIR_CONFORM_PORT:-8470}
search_port=${WEIR_CONFORM_SEARCH_PORT:-9270}

stop() {
	[ -z "${out:-}" ] || rm -rf "$out"
	for i in 0 1 2; do scripts/dynamodb-local.sh stop $((port + 100 * i)) || true; done
	scripts/opensearch.sh stop "$search_port" || true
}
trap stop EXIT
# DynamoDB Local does one request after the other, and is what the tests wait for: there are three, at
# ports that no other script has.
for i in 0 1 2; do places[i]=$(scripts/dynamodb-local.sh start $((port + 100 * i))); done
WEIR_TEST_OPENSEARCH=$(scripts/opensearch.sh start "$search_port")
export WEIR_TEST_OPENSEARCH
# All tests of the drivers' packages run; elsewhere, tests that need a service say so in
# their names, by which their packages are found. They mostly wait, for streams, for indexing and for processes that they start,
# so they run in parallel; the output is shown at the end, one group after the other. OpenSearch
# gets 12 random histories of each kind; make test runs 100 on the embedded index. Builds that
# applications write beside have 200 rows, unless WEIR_TEST_MANY says how many. Loops have their short
# form, since the same code runs on the embedded drivers; one recording is replayed, and two built
# beside what goes on in them. -short=false gives the long form, with all recordings.
export WEIR_TEST_MANY="${WEIR_TEST_MANY:-200}"
out=$(mktemp -d)
groups=()
# group LOCAL ARGUMENTS…: run go test beside the other groups, on one of the DynamoDB Locals.
group() {
	local at=$1
	shift
	WEIR_TEST_DYNAMODB=$at "${GO:-go}" test -count=1 -timeout 40m "$@" >"$out/${#groups[@]}" 2>&1 &
	groups+=($!)
}
mapfile -t packages < <(grep -rlE '^func Test[A-Za-z]*On(DynamoDB|AWS|Services)\(' --include='*_test.go' cmd internal | xargs -n1 dirname |
	sort -u | grep -v '^internal/store/dynamodb\|^internal/projectorcli$\|^internal/build$' | sed 's|^|./|')
services=(-short -parallel 6 -run '^TestContract$|On(DynamoDB|AWS|Services)$')
group "${places[0]}" ./internal/store/dynamodb/... "$@"
group "${places[1]}" -short ./internal/search/opensearch "$@" -args -rapid.checks=12
group "${places[1]}" "${services[@]}" ./internal/store/embedded ./internal/search/embedded "${packages[@]}" "$@"
# The tests of the program mostly wait, one after the other, so they are three groups. Each slow one
# is named in the first or second; the third has the rest.
slow=('FunctionsBesideABuild|LifecycleTable|Lambda' 'BuildKilled|RollingDeploy|Template|Stages')
if [ $# -eq 0 ]; then
	group "${places[0]}" -short -run "^Test(${slow[0]})On" ./internal/projectorcli
	group "${places[2]}" -short -run "^Test(${slow[1]})On" ./internal/projectorcli
	group "${places[2]}" "${services[@]}" -skip "^Test(${slow[0]}|${slow[1]})On" ./internal/projectorcli
else
	group "${places[2]}" "${services[@]}" ./internal/projectorcli "$@"
fi
group "${places[1]}" "${services[@]}" ./internal/build "$@"
code=0
for i in "${!groups[@]}"; do
	wait "${groups[i]}" || code=$?
	cat "$out/$i"
done
exit "$code"
