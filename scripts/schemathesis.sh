#!/usr/bin/env bash
# Lets schemathesis send `ingest serve` requests that its own OpenAPI description allows,
# and many that it does not, for every built-in model. No answer may be a 5xx or differ from
# the description. Arguments go to schemathesis.
#
#   scripts/schemathesis.sh
#   scripts/schemathesis.sh --include-path-regex Album --max-examples 500
#
# pip installs schemathesis into ${WEIR_SERVICES:-~/.cache/weir-services}. If there is no
# python with pip, or the download fails, the script says so and exits with 77.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/service.sh
version=4.32.5
seconds=${WEIR_SCHEMATHESIS_SECONDS:-25}

need python3
tool=$services/schemathesis-$version
if [ ! -e "$tool/.complete" ]; then
	rm -rf "$tool"
	say "fetching schemathesis $version into $tool"
	if ! python3 -m venv "$tool" >"$services/schemathesis.log" 2>&1 || ! "$tool/bin/pip" install -q "schemathesis==$version" >>"$services/schemathesis.log" 2>&1; then
		tail -n 5 "$services/schemathesis.log" >&2
		say "schemathesis $version cannot be had here: it needs python3 with venv and pip, and PyPI"
		exit 77
	fi
	touch "$tool/.complete"
fi

workspace
"${GO:-go}" build -o "$work/ingest" ./cmd/ingest
serve ingest serve models/*.yaml --data "$work/data" --rate 0

code=0
(cd "$work" && "$tool/bin/schemathesis" --no-color run "$address/openapi.json" --max-time "$seconds" --seed 1 --generation-database none \
	--suppress-health-check all --warnings off --phases coverage,fuzzing --request-timeout 10 \
	--checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,negative_data_rejection,unsupported_method,allow_header_conformance \
	"$@") || code=$?
if grep -E 'level=(WARN|ERROR)' "$work/log" >&2; then
	say "the server had something to complain about"
	code=1
fi
kill -0 "$pid" || { say "the server ended"; code=1; }
exit "$code"
