#!/usr/bin/env bash
# Replays the recorded streams of the models into a new ./demo-data, shows what was
# derived, and runs queries. It needs bin/weir: run it with `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
data=demo-data
models=(gallery wardrobe movienight watchlists viewing)

bold='' plain=''
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

# show COMMAND…: print the command as a user would type it, then its output.
show() {
	printf '\n%s$ bin/%s --data %s%s\n' "$bold" "$*" "$data" "$plain"
	"bin/$1" "${@:2}" --data "$data" 2>&1
}

if [ -e "$data" ]; then
	# Not under the feet of a projector that is still running on it.
	bin/weir dead list "${models[0]}" --data "$data" >/dev/null
	rm -rf "$data"
fi

say "Recorded streams become counters, copies, feeds and search."
for model in "${models[@]}"; do
	show weir replay "$model" "testdata/streams/$model"
done

say "Every derived value, recounted from the rows that the applications wrote:"
for model in "${models[@]}"; do
	show weir verify "$model"
done

say "Ask for what was derived:"
show weir query gallery albums limit=3 --only title,createdAt,mediaCount
show weir query wardrobe user-activities userId=user2 limit=3 --only Timestamp,ActivityType,ItemName
show weir query movienight suggestions round_id=r-hot limit=3 --only title,up_votes,down_votes
show weir query watchlists notifications userId=u-fan limit=3 --only at,watchlistId,contentType,contentId
show weir query viewing summary profileId=profile-1 state=IN_PROGRESS
show weir query gallery search-albums q=market limit=3 --only title,tags,mediaCount

say "Next:"
printf '  bin/weir query gallery          # every query of the model, with its parameters\n'
printf '  curl -s "http://127.0.0.1:8480/v1/gallery/search-albums?q=market&limit=2"   # while the following runs\n'
printf '  bin/weir run %s --data %s   # the console: open http://127.0.0.1:8480/\n' "${models[*]}" "$data"
