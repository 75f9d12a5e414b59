#!/usr/bin/env bash
# clang-tidy over our sources, with the checks of .clang-tidy. Run by `make tidy`.
#
# usage: scripts/tidy.sh [FILE...]      without names: every .c file under src/
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v clang-tidy >/dev/null; then
	echo "tidy: clang-tidy is missing; on Debian: apt-get install clang-tidy" >&2
	exit 1
fi
files=("$@")
[ "${#files[@]}" -gt 0 ] || mapfile -t files < <(find src -name '*.c' | sort)

# The flags of the Makefile that change what a file means.
flags=(-std=gnu17 -pthread -D_GNU_SOURCE -Isrc -Iinclude -include src/base/banned.h)
for library in libmicrohttpd gnutls jansson libcurl yaml-0.1; do
	read -ra more < <(pkg-config --cflags "$library" 2>/dev/null && echo)
	flags+=("${more[@]}")
done

export TIDY_FLAGS="${flags[*]}"
tidy_one() {
	# shellcheck disable=SC2086 # a list of words
	clang-tidy --quiet "$1" -- $TIDY_FLAGS 2>/dev/null
}
export -f tidy_one

# shellcheck disable=SC2016 # $1 is for the inner shell
if ! printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "${JOBS:-2}" bash -c 'tidy_one "$1"' tidy; then
	echo "tidy: the checks and their reasons are in .clang-tidy" >&2
	exit 1
fi
echo "tidy: ${#files[@]} files"
