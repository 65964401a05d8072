#!/usr/bin/env bash
# Generates clients in TypeScript and Python from the OpenAPI description of `projector dev`, and
# writes and queries with them. Then it runs examples/typescript beside a DynamoDB Local and
# `projector run`; without java, mvn or curl it leaves that out, and says so.
#
# npm and pip install the generators into ${WEIR_SERVICES:-~/.cache/weir-services}. If node with
# npm or python3 with venv is missing, or a download fails, the script says so and exits with 77.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/service.sh
port=${WEIR_CLIENTS_PORT:-8471}
generator=0.29.1

need node npm python3
fetch() { # NAME COMMAND…: fill the folder $services/NAME, once
	local to=$services/$1
	shift
	if [ ! -e "$to/.complete" ]; then
		rm -rf "$to"
		mkdir -p "$to"
		say "fetching into $to"
		if ! (cd "$to" && "$@") >"$services/clients.log" 2>&1; then
			tail -n 5 "$services/clients.log" >&2
			say "what generates clients cannot be had here: it needs npm, python3 with venv and pip, and their registries"
			exit 77
		fi
		touch "$to/.complete"
	fi
}
modules=clients-$(cksum <examples/typescript/package.json | tr -d ' ')
package=$PWD/examples/typescript/package.json
npmInstall() { cp "$package" . && npm install --no-audit --no-fund --ignore-scripts; }
pipInstall() { python3 -m venv . && bin/pip install -q "openapi-python-client==$generator"; }
fetch "$modules" npmInstall
fetch "openapi-python-client-$generator" pipInstall
python=$services/openapi-python-client-$generator/bin

workspace
"${GO:-go}" build -o "$work/projector" ./cmd/projector
# typescript DIR SOURCE…: compile sources beside the client of the server, with the example's settings.
typescript() {
	local to=$1
	shift
	mkdir "$to"
	cp "$package" examples/typescript/tsconfig.json "$@" "$to"
	ln -s "$services/$modules/node_modules" "$to/node_modules"
	(cd "$to" && mv client.ts main.ts 2>/dev/null || true)
	(cd "$to" && npm run -s client >/dev/null && npm run -s build && npm run -s start)
}

serve projector dev gallery --data "$work/data" --rate 0
export WEIR=$address
typescript "$work/ts" scripts/clients/client.ts
mkdir "$work/py"
(
	cd "$work/py"
	printf 'package_name_override: weir\npost_hooks: []\n' >config.yaml
	"$python/openapi-python-client" generate --url "$WEIR/openapi.json" --config config.yaml --meta none --output-path weir >log 2>&1 || { cat log; exit 1; }
	if grep -q 'Endpoint will not be generated\|removal of' log; then
		cat log
		exit 1
	fi
)
PYTHONPATH=$work/py "$python/python" scripts/clients/client.py
kill "$pid"
wait "$pid" || true
pid=

endpoint=$(scripts/dynamodb-local.sh start "$port") || {
	[ $? = 77 ] || exit 1
	echo "=> examples/typescript is left out: there is no DynamoDB Local"
	exit 0
}
trap 'leave; scripts/dynamodb-local.sh stop "$port" || true' EXIT
export AWS_ENDPOINT_URL_DYNAMODB=$endpoint AWS_ENDPOINT_URL_DYNAMODB_STREAMS=$endpoint AWS_REGION=eu-west-1
export AWS_ACCESS_KEY_ID=clients$$ AWS_SECRET_ACCESS_KEY=local
"$work/projector" deploy tables examples/typescript/model.yaml --aws >/dev/null
serve projector run examples/typescript/model.yaml --aws --data "$work/run"
export WEIR=$address
typescript "$work/app" examples/typescript/main.ts >"$work/said"
sed -n 's/^    \(.* reviews\{0,1\}, .* stars\|ida reviewed .*\)$/\1/p' examples/typescript/README.md | diff - "$work/said"
echo "typescript: the example prints what its README.md says"
