#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-exports.sh LIBRARY MAP: the library exports exactly what MAP lists, needs no symbol of a glibc
# newer than 2.17, and does not depend on the driver's libraries.
set -euo pipefail

library=$1 map=$2 failed=0

exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' | sort -u)
listed=$(grep -oE '[A-Za-z_][A-Za-z0-9_]*;' "$map" | tr -d ';' | sort -u)
if ! diff <(echo "$listed") <(echo "$exported"); then
	echo "check-exports: the exports of $library are not the list (< missing, > too much)" >&2
	failed=1
fi

new=$(objdump -T "$library" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | awk -F'[_.]' '$2 > 2 || ($2 == 2 && $3 > 17)')
if [ -n "$new" ] && ! nm -D "$library" | grep -q __asan_; then
	echo "check-exports: $library needs $(echo "$new" | tr '\n' ' ')" >&2
	objdump -T "$library" | grep -F "$(echo "$new" | head -1)" >&2
	failed=1
fi

if objdump -p "$library" | grep -E 'NEEDED.*(libcuda|libnvidia)'; then
	echo "check-exports: $library depends on the driver" >&2
	failed=1
fi

[ "$failed" = 0 ] && echo "check-exports: $(echo "$exported" | wc -l) symbols, glibc <= 2.17"
exit "$failed"
