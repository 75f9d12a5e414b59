#!/usr/bin/env bash
# Runs cmocka programs, two at a time (TEST_JOBS), from the top of the tree. One line per program; the whole
# output of those that fail; at the end "N passed, N failed", which counts tests, not programs. A program
# that crashes, runs longer than TEST_TIMEOUT seconds, or runs no test has failed. Skipped tests are named, and
# count as neither.
#
# usage: scripts/run-tests.sh PROGRAM...
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${TEST_JOBS:-2}
limit=${TEST_TIMEOUT:-300}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# Sum of the numbers behind a cmocka headline: "[  PASSED  ] 12 test(s)". cmocka writes it to standard error
# and the list before it to standard output, so it may stand anywhere in a line.
count() {
	grep -ao "\[  $1 *\] [0-9]* test(s)" "$2" | grep -o '[0-9]*' | awk '{ sum += $1 } END { print sum + 0 }'
}

run_one() {
	local program=$1 result=$2 name start code=0 passed failed skipped word why=
	name=${program#*/tests/}
	start=$(date +%s%N)
	timeout --kill-after=10 "$limit" "$program" >"$result.output" 2>&1 || code=$?
	passed=$(count PASSED "$result.output")
	failed=$(count FAILED "$result.output")
	skipped=$(count SKIPPED "$result.output")
	if [ "$code" -ne 0 ] && [ "$failed" -eq 0 ]; then
		failed=1
		case $code in
		124 | 137) why="ran longer than $limit s" ;;
		*) why="ended with status $code" ;;
		esac
	elif [ "$passed" -eq 0 ] && [ "$failed" -eq 0 ] && [ "$skipped" -eq 0 ]; then
		failed=1
		why="ran no test"
	fi
	word=ok
	[ "$failed" -eq 0 ] || word=FAILED
	echo "$passed $failed" >"$result.count"
	printf '  %-7s%-46s %4d tests %6d ms\n' "$word" "$name" $((passed + failed)) \
		$((($(date +%s%N) - start) / 1000000))
	[ "$skipped" -eq 0 ] || sed -n 's/^\[  SKIPPED \] \([^ ]*\)$/    skipped: \1/p' "$result.output" | sort -u
	if [ "$failed" -ne 0 ]; then
		[ -z "$why" ] || echo "    $name $why"
		sed 's/^/    /' "$result.output"
	fi
}

index=0
for program; do
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
		wait -n || true
	done
	index=$((index + 1))
	# Printed in one piece, so that two programs do not mix their lines.
	{ run_one "$program" "$results/$index" >"$results/$index.report" 2>&1 || true
	  cat "$results/$index.report"; } &
done
wait

passed=0
failed=0
for result in "$results"/*.count; do
	[ -e "$result" ] || continue
	read -r p f <"$result"
	passed=$((passed + p))
	failed=$((failed + f))
done
# A result that is not there is a program that could not even be started.
ran=$(find "$results" -name '*.count' | wc -l)
failed=$((failed + $# - ran))
if [ "$passed" -eq 0 ] && [ "$failed" -eq 0 ]; then
	echo "run-tests: there is nothing to run" >&2
	echo "0 passed, 1 failed"
	exit 1
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
