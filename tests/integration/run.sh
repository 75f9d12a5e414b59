#!/usr/bin/env bash
# Runs the integration tests: real binaries against servers and drivers of ours that misbehave on
# purpose. `make check-integration` calls it.
#
#   tests/integration/run.sh [CASE…]      all of cases/, or those whose file name begins with CASE
#
# A case is an executable file in cases/, Python or shell. It says "ok NAME" or "not ok NAME" on a
# line of its own for each of its tests and ends with 0 when all of them passed; everything else that
# it prints is shown only when it fails. VGPU_BUILD names the folder with the programs.

set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly here
VGPU_BUILD=$(realpath -- "${VGPU_BUILD:-build}")
export VGPU_BUILD
# Cases import what they share from the folder above them.
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1

# A case that hangs is a case that failed.
readonly CASE_LIMIT_S=${VGPU_CASE_LIMIT_S:-600}

log=$(mktemp)
readonly log
trap 'rm -f -- "$log"' EXIT

passed=0
failed=0

run_case()
{
	local file=$1 name status=0 good bad

	name=$(basename -- "$file")
	timeout --kill-after=10 "$CASE_LIMIT_S" "$file" >"$log" 2>&1 </dev/null || status=$?
	good=$(grep -c '^ok ' "$log" || true)
	bad=$(grep -c '^not ok ' "$log" || true)
	if ((status != 0 && bad == 0)); then
		echo "not ok $name: ended with status $status" >>"$log"
		bad=1
	elif ((status == 0 && good + bad == 0)); then
		echo "not ok $name: ran no test" >>"$log"
		bad=1
	fi
	if ((bad)); then
		cat -- "$log"
	else
		grep '^ok ' "$log" | sed "s/^ok /ok ${name%.*}: /"
	fi
	passed=$((passed + good))
	failed=$((failed + bad))
}

for file in "$here"/cases/*; do
	[[ -f $file && -x $file ]] || continue
	if (($# > 0)); then
		wanted=
		for prefix in "$@"; do
			[[ $(basename -- "$file") == "$prefix"* ]] && wanted=yes
		done
		[[ $wanted ]] || continue
	fi
	run_case "$file"
done

echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
