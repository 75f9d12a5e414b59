#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [PROGRAM...]: builds the programs here and runs them over whatever driver the machine has (the fake
# one, when LD_LIBRARY_PATH finds it first). Programs: facts take many busy child watch.
#   BIN=DIR  where the programs go (default build/gpu/programs)
#   OUT=DIR  where their output goes (default $BIN)
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
BIN=${BIN:-build/gpu/programs}
OUT=${OUT:-$BIN}
mkdir -p "$BIN" "$OUT"
failed=0

IFS=: read -ra folders <<< "${LD_LIBRARY_PATH:-}"
driver=$(find "${folders[@]}" /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu \
	-name libcuda.so.1 2>/dev/null | head -1)
[ -n "$driver" ] || { echo "no libcuda.so.1 here"; exit 77; }

compile() {
	local flags="-std=gnu17 -D_GNU_SOURCE -O2 -Isrc"
	# shellcheck disable=SC2086
	${CC:-cc} $flags -o "$BIN/$1" "tests/gpu/programs/$1.c" -ldl -lpthread || exit 1
	# shellcheck disable=SC2086
	${CC:-cc} $flags -DPROGRAM_LINKED -o "$BIN/$1-linked" "tests/gpu/programs/$1.c" "$driver" \
		-ldl -lpthread || exit 1
}

try() {
	timeout "${LIMIT:-30}" "$@" || { echo "FAILED ($?): $*"; failed=1; }
}

run_facts() {
	LIMIT=120 try "$BIN/facts"
}

run_take() {
	for path in alloc pitch managed async thread pool vmm array array3d mipmap graph; do
		try "$BIN/take" "$path" chunk_mib=256 max_mib=1024
		try env PROGRAM_WAY=procaddress "$BIN/take" "$path" chunk_mib=256 max_mib=1024
		try "$BIN/take-linked" "$path" chunk_mib=256 max_mib=1024
	done
}

run_many() {
	try "$BIN/many" processes=4 max_mib=256
	try "$BIN/many-linked" processes=2 max_mib=256
}

run_busy() {
	for form in kernel ex cooperative thread graph capture; do
		echo "$form"
		try "$BIN/busy" form="$form" seconds=1
	done
}

run_child() {
	for mode in before after exec storm; do
		LIMIT=60 try "$BIN/child" mode="$mode" processes=2
	done
}

run_watch() {
	"$BIN/busy" seconds=3 us=1000 > /dev/null &
	sleep 0.7
	try "$BIN/watch" times=2 cuda=1
	wait
}

for program in "${@:-facts take many busy child watch}"; do
	for one in $program; do
		compile "$one"
		[ "$one" = watch ] && compile busy
		echo "== $one"
		"run_$one" 2>&1 | tee "$OUT/$one.txt" | grep -v ': -\?[0-9]* end\|^lookup\|: -\?[0-9]*$'
		grep -q FAILED "$OUT/$one.txt" && failed=1
	done
done
exit "$failed"
