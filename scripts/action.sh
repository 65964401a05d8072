#!/usr/bin/env bash
# What action.yml does once weir is on the PATH: lints $MODELS, runs the cases that stand beside them, and compares those that
# $BASE has too with these. What a changed model will do goes into the summary of the workflow. It fails if a model has a mistake
# or a case fails; a difference is no failure.
set -uo pipefail
matcher='{"problemMatcher": [
  {"owner": "weir-error", "severity": "error", "pattern": [{"regexp": "^(.+?):(\\d+):(?:(\\d+):)? (?!warning:)(.+)$", "file": 1, "line": 2, "column": 3, "message": 4}]},
  {"owner": "weir-warning", "severity": "warning", "pattern": [{"regexp": "^(.+?):(\\d+):(?:(\\d+):)? warning: (.+)$", "file": 1, "line": 2, "column": 3, "message": 4}]}
]}'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "$matcher" >"$work/matcher.json"
read -r -a models <<<"$MODELS"
failed=0

echo "::add-matcher::$work/matcher.json"
weir lint "${models[@]}" || failed=1
echo "::remove-matcher owner=weir-error::"
echo "::remove-matcher owner=weir-warning::"

tested=()
for m in "${models[@]}"; do
	[ ! -e "${m%.yaml}.test.md" ] || tested+=("$m")
done
if [ "${#tested[@]}" -gt 0 ]; then
	weir test ${JUNIT:+--junit "$JUNIT"} "${tested[@]}" || failed=1
fi

if [ -n "${BASE:-}" ]; then
	git cat-file -e "$BASE^{commit}" 2>/dev/null || git fetch --quiet --depth 1 origin "$BASE" || exit 1
	for m in "${models[@]}"; do
		git show "$BASE:./$m" >"$work/before.yaml" 2>/dev/null || continue # it is new
		cmp -s "$work/before.yaml" "$m" && continue
		echo "::group::$m will do something else"
		{
			printf '### %s\n\n```text\n' "$m"
			weir diff "$work/before.yaml" "$m" 2>&1
			printf '```\n\n'
		} | tee -a "${GITHUB_STEP_SUMMARY:-/dev/null}"
		echo "::endgroup::"
	done
fi
exit "$failed"
