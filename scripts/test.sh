#!/usr/bin/env bash
# What `make test` means: everything that needs neither a GPU nor a Kubernetes cluster, from a strict build to a
# short run of the fuzz targets. Every stage runs, whatever happened before; the output of a stage is shown
# when it failed (always with VERBOSE=1). The last line counts tests: "N passed, N failed".
#
# usage: scripts/test.sh [STAGE...]      without names: all of them
#
# environment: FUZZ_SECONDS  per fuzz target (5)      JOBS  parallel compilations (number of cores)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

jobs=${JOBS:-$(nproc)}
export FUZZ_SECONDS=${FUZZ_SECONDS:-5}
logs=build/test-logs
mkdir -p "$logs"

build() {
	make --no-print-directory -k -j"$jobs" "$@"
}

# gcc's thread sanitizer wants its addresses where kernels with more than 28 random bits do not leave them.
unrandomized() {
	local bits=28
	[ ! -r /proc/sys/vm/mmap_rnd_bits ] || bits=$(cat /proc/sys/vm/mmap_rnd_bits)
	if [ "$bits" -gt 28 ] && setarch "$(uname -m)" -R true 2>/dev/null; then
		setarch "$(uname -m)" -R "$@"
	else
		"$@"
	fi
}

# ---- stages: each is a function; its comment is shown by the summary ------------------------------------

strict() { # strict gcc build, unit and contract tests, checks
	build DEV=1 BUILD=build/dev all unit-programs && make --no-print-directory DEV=1 BUILD=build/dev check
}

clang() { # strict clang build of everything
	build DEV=1 CC=clang BUILD=build/clang all unit-programs
}

demo() { # decisions on the saved cluster
	build DEV=1 BUILD=build/dev all &&
		scripts/demo.sh build/dev/vgpu-scheduler | tee /dev/stderr |
			grep -qx '6 pods: 5 placed, 1 refused'
}

integration() { # the real programs against fakes that misbehave
	build DEV=1 BUILD=build/dev check-integration
}

address() { # unit and integration tests: addresses, leaks, undefined behaviour
	export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:check_initialization_order=1
	export UBSAN_OPTIONS=print_stacktrace=1
	export LSAN_OPTIONS=suppressions=$PWD/scripts/leak.supp:print_suppressions=0
	build SAN=address,undefined all unit-programs &&
		make --no-print-directory SAN=address,undefined unit check-integration
}

thread() { # unit and integration tests: data races
	export TSAN_OPTIONS=suppressions=$PWD/scripts/thread.supp:halt_on_error=1:second_deadlock_stack=1
	build SAN=thread all unit-programs &&
		unrandomized make --no-print-directory SAN=thread unit check-integration
}

fuzz() { # every fuzz target: known inputs, then a few seconds of new ones
	build fuzz-build && make --no-print-directory fuzz
}

stages=(strict clang demo integration address thread fuzz)

# ---- the run ----------------------------------------------------------------------------------------------

# The sum of a column of all "N passed, N failed" lines of a log.
sum() {
	sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*/\1 \2/p' "$2" |
		awk -v column="$1" '{ sum += $column } END { print sum + 0 }'
}

about() {
	sed -n "s/^$1() { # //p" "$0"
}

[ $# -eq 0 ] || stages=("$@")
passed=0
failed=0
summary=()
for stage in "${stages[@]}"; do
	if [ "$(type -t "$stage")" != function ] || [ -z "$(about "$stage")" ]; then
		echo "test: no stage \"$stage\"" >&2
		exit 2
	fi
	echo "== $stage: $(about "$stage")"
	log=$logs/$stage.log
	begin=$SECONDS
	code=0
	if [ -n "${VERBOSE:-}" ]; then
		("$stage") 2>&1 | tee "$log" || code=$?
	else
		("$stage") >"$log" 2>&1 || code=$?
	fi
	took=$((SECONDS - begin))
	p=$(sum 1 "$log")
	f=$(sum 2 "$log")
	word=ok
	if [ "$code" -ne 0 ]; then
		[ -n "${VERBOSE:-}" ] || grep -v '^ok \|^  \(CC\|TESTCC\|LINK\|FUZZ\|ok\) ' "$log"
		word=FAILED
		# A build or a check that failed is one failure, though no test counts it.
		[ "$f" -gt 0 ] || f=1
	elif [ "$p" -eq 0 ]; then
		p=1
	fi
	passed=$((passed + p))
	failed=$((failed + f))
	summary+=("$(printf '  %-7s%-12s %5d passed %4d failed %5d s   %s' "$word" "$stage" "$p" "$f" \
		"$took" "$(about "$stage")")")
	echo "${summary[-1]}"
done

echo
printf '%s\n' "${summary[@]}"
echo "  all of it in $SECONDS s; logs in $logs/"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
