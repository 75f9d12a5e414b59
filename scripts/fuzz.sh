#!/usr/bin/env bash
# Runs fuzz targets: first every input that once broke one (tests/fuzz/regressions/WHAT/), then SECONDS of new
# ones from the corpus (tests/fuzz/corpus/WHAT/), which only grows in the build folder. An input that breaks a
# target is kept as a regression; commit it with the fix.
#
# usage: scripts/fuzz.sh SECONDS PROGRAM...      programs are called fuzz_WHAT
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -lt 2 ]; then
	echo "usage: scripts/fuzz.sh SECONDS PROGRAM..." >&2
	exit 2
fi
seconds=$1
shift

# Inputs are kept small, so that many of them are tried; the limits of base/limits.h have tests of their own.
# Lines of corpus/WHAT.options: "max_len N" says otherwise, "seeds FOLDER" names files to begin with as well.
max_len=16384
# s for one input; MiB. Both are far above what any input may need.
limits=(-timeout=25 -rss_limit_mb=2560 -malloc_limit_mb=2048)

export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export UBSAN_OPTIONS=print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

option() {
	local file=tests/fuzz/corpus/$1.options
	[ ! -e "$file" ] || awk -v name="$2" '$1 == name { print $2 }' "$file"
}

# Runs and shows the output only when it fails.
quietly() {
	if ! "$@" >"$work/output" 2>&1; then
		# Without the lines of progress.
		grep -av '^#[0-9]*[[:blank:]]' "$work/output" | tail -n 100
		return 1
	fi
}

failed=0
passed=0
for program; do
	what=${program##*/fuzz_}
	corpus=tests/fuzz/corpus/$what
	regressions=tests/fuzz/regressions/$what
	grown=${program%/*}/corpus/$what
	length=$(option "$what" max_len)
	mapfile -t seeds < <(option "$what" seeds)
	mkdir -p "$corpus" "$grown" "$work/new"
	ok=1
	replayed=0
	if [ -d "$regressions" ]; then
		mapfile -t inputs < <(find "$regressions" -type f | sort)
		replayed=${#inputs[@]}
		[ "$replayed" -eq 0 ] || quietly "$program" "${limits[@]}" "${inputs[@]}" || ok=0
	fi
	if [ "$ok" = 1 ]; then
		quietly "$program" "${limits[@]}" -max_len="${length:-$max_len}" -max_total_time="$seconds" \
			-artifact_prefix="$work/new/" -print_final_stats=1 "$grown" "$corpus" "${seeds[@]}" || ok=0
	fi
	for input in "$work"/new/*; do
		[ -e "$input" ] || continue
		# Under another name than libFuzzer's, which git ignores.
		kept=$regressions/found-${input##*/}
		mkdir -p "$regressions"
		mv "$input" "$kept"
		echo "fuzz: kept as $kept"
	done
	if [ "$ok" = 1 ]; then
		passed=$((passed + 1))
		printf '  ok     fuzz %-16s %4d regressions, %9s inputs in %s s\n' "$what" "$replayed" \
			"$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/output")" "$seconds"
	else
		failed=$((failed + 1))
		printf '  FAILED fuzz %s\n' "$what"
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
