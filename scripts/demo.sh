#!/usr/bin/env bash
# Decisions on a saved cluster, from end to end: starts the daemon on config/demo-cluster.yaml, sends each pod
# of config/demo-pods/ through /explain, /filter and /bind as kube-scheduler would, and shows what was decided
# and why the other nodes lost. Ends by itself; fails when the daemon's routes contradict each other.
#
# usage: scripts/demo.sh [DAEMON]      default: build/vgpu-scheduler
set -euo pipefail
cd "$(dirname "$0")/.."

daemon=${1:-build/vgpu-scheduler}
cluster=config/demo-cluster.yaml
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' dim=$'\e[2m' plain=$'\e[0m'
else
	bold='' green='' red='' dim='' plain=''
fi

work=$(mktemp -d)
pid=
finish() {
	if [ -n "$pid" ]; then
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap finish EXIT

die() {
	echo "demo: $*" >&2
	[ ! -s "$work/log" ] || sed 's/^/demo: daemon: /' "$work/log" >&2
	exit 1
}

# ---- the daemon ---------------------------------------------------------------------------------------

# On a port that the kernel chooses; the daemon says which one.
start_daemon() {
	local port=
	"$daemon" --config config/device-config.yaml --snapshot "$cluster" --extender-listen 127.0.0.1:0 \
		--metrics-listen off --log-format json 2>"$work/log" &
	pid=$!
	for _ in {1..100}; do
		port=$(jq -r 'select(.for == "extender") | .port' "$work/log" 2>/dev/null | head -n 1) || port=
		[ -z "$port" ] || break
		kill -0 "$pid" 2>/dev/null || die "$daemon ended at once"
		sleep 0.1
	done
	[ -n "$port" ] || die "$daemon does not listen after 10 s"
	url=http://127.0.0.1:$port
	curl -fsS --max-time 10 -o /dev/null "$url/readyz" || die "$daemon is not ready"
}

# ask ROUTE FILE: sends a JSON file and prints the answer.
ask() {
	curl -fsS --max-time 10 -H 'Content-Type: application/json' --data-binary "@$2" "$url$1" ||
		die "POST $1 failed"
}

# ---- tables -------------------------------------------------------------------------------------------

nodes_table() {
	printf '  %s%-12s %5s  %-24s %7s %13s %9s%s\n' "$bold" node cards model slots 'memory GiB' 'cores %' "$plain"
	curl -fsS --max-time 10 "$url/state" | jq -r '
		def used(f): "\(f.used)/\(f.total)";
		def gib: . * 10 / 1024 | round / 10;
		.nodes | sort_by(.name)[] | [.name, (.cards | length | tostring), (.cards[0].model // "-"),
			if .registered then used(.slots) else "-" end,
			if .registered then "\(.memMiB.used | gib)/\(.memMiB.total | gib)" else "-" end,
			if .registered then used(.cores) else "-" end,
			([.cards[] | select(.healthy | not) | "card \(.index) is unhealthy"] +
			 [.cards[] | select(.cordoned) | "card \(.index) is cordoned"] | join(", "))] | @tsv' |
		while IFS=$'\t' read -r name cards model slots memory cores note; do
			printf '  %-12s %5s  %-24s %7s %13s %9s%s\n' "$name" "$cards" "$model" "$slots" \
				"$memory" "$cores" "${note:+  $dim$note$plain}"
		done
}

# What the pod got: one line per card.
cards_table() {
	printf '    %s%-12s %4s  %-24s %10s %6s   %s%s\n' "$dim" container card model memory cores uuid "$plain"
	jq -r '
		(.nodes[] | select(.chosen).cards | INDEX(.uuid)) as $cards |
		.decision.devices[] | [.name, $cards[.uuid].index, $cards[.uuid].model, "\(.memMiB) MiB",
			"\(.cores) %", .uuid] | @tsv' "$1" |
		while IFS=$'\t' read -r container card model memory cores uuid; do
			printf '    %-12s %4s  %-24s %10s %6s   %s\n' "$container" "$card" "$model" "$memory" \
				"$cores" "$dim$uuid$plain"
		done
}

# Why the others were not taken.
losers_table() {
	jq -r '
		def score: .score.node * 100 | round / 100;
		.request.nodePolicy as $policy | .nodes[] | select(.chosen | not) |
		[.name, if .fits then "would do, score \(score): \($policy) prefers a " +
			if $policy == "spread" then "lower one" else "higher one" end else .reason end] | @tsv' "$1" |
		while IFS=$'\t' read -r name reason; do
			printf '      %-12s %s\n' "$name" "$reason"
		done
}

# ---- one pod ------------------------------------------------------------------------------------------

placed=0
refused=0

# A manifest has no UID: what the API server would have added is added here.
send_pod() {
	local file=$1 about name node
	jq --arg uid "$(cat /proc/sys/kernel/random/uuid)" '.metadata.uid = $uid' "$file" >"$work/pod"
	about=$(jq -r '.metadata.annotations["kubernetes.io/description"]' "$work/pod")
	name=$(jq -r '"\(.metadata.namespace)/\(.metadata.name)"' "$work/pod")
	printf '\n%s%s%s: %s\n' "$bold" "$name" "$plain" "$about"

	ask /explain "$work/pod" >"$work/explain"
	jq --slurpfile names "$work/names" '{ Pod: ., NodeNames: $names[0] }' "$work/pod" >"$work/args"
	ask /filter "$work/args" >"$work/filter"
	node=$(jq -r '.NodeNames // [] | join(" ")' "$work/filter")

	if [ -n "$node" ]; then
		[ "$(jq -r '.decision.node' "$work/explain")" = "$node" ] ||
			die "$name: /explain and /filter disagree: $(jq -c .decision "$work/explain"), $node"
		jq --arg node "$node" '{ PodName: .metadata.name, PodNamespace: .metadata.namespace,
			PodUID: .metadata.uid, Node: $node }' "$work/pod" >"$work/binding"
		ask /bind "$work/binding" >"$work/bind"
		[ "$(jq -r '.Error' "$work/bind")" = "" ] || die "$name: /bind: $(jq -r '.Error' "$work/bind")"
		placed=$((placed + 1))
		printf '  %splaced on %s%s, score %s; %s of %s nodes would do\n' "$green" "$node" "$plain" \
			"$(jq -r '.decision.score * 100 | round / 100' "$work/explain")" \
			"$(jq -r .fitting "$work/explain")" "$(jq -r .candidates "$work/explain")"
		cards_table "$work/explain"
		printf '    %snot taken%s\n' "$dim" "$plain"
	else
		[ "$(jq -r '.decision.placed' "$work/explain")" = false ] ||
			die "$name: /filter refused what /explain places: $(cat "$work/filter")"
		[ "$(jq -r '.Error' "$work/filter")" = "" ] || die "$name: $(jq -r '.Error' "$work/filter")"
		refused=$((refused + 1))
		printf '  %sfits nowhere%s: it stays pending, and kube-scheduler shows these reasons\n' "$red" "$plain"
	fi
	losers_table "$work/explain"
}

# ---- the demonstration --------------------------------------------------------------------------------

[ -x "$daemon" ] || die "$daemon is not there: run make"
start_daemon
curl -fsS --max-time 10 "$url/state" | jq '[.nodes[].name]' >"$work/names"

printf '%sThe cluster%s, from %s (what is used / what there is)\n\n' "$bold" "$plain" "$cluster"
nodes_table
for pod in config/demo-pods/*.json; do
	send_pod "$pod"
done
printf '\n%sThe cluster afterwards%s\n\n' "$bold" "$plain"
nodes_table
printf '\n%d pods: %d placed, %d refused\n' $((placed + refused)) "$placed" "$refused"
