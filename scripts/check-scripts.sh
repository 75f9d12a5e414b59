#!/usr/bin/env bash
# Every shell script through shellcheck; documents, sources and scripts through codespell. Run by
# `make check-scripts`. Words that codespell takes for mistakes and that are none: scripts/spelling.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

roots=()
for root in scripts tests deploy config docs src include .ci; do
	[ ! -e "$root" ] || roots+=("$root")
done

# A script is what says so in its first line, whatever it is called.
mapfile -t scripts < <(find "${roots[@]}" -type f -size -256k -exec \
	awk 'FNR == 1 && /^#!.*(bash|\/sh)/ { print FILENAME } { nextfile }' {} + | sort)
[ "${#scripts[@]}" -gt 0 ]
failed=0
# SC2317: functions that are called by a name in a variable look unreachable; SC1091: /etc/os-release.
shellcheck --exclude=SC2317,SC1091 "${scripts[@]}" || failed=1

codespell --ignore-words scripts/spelling.txt --skip 'go.sum,*.json,*.jsonl,*/corpus/*,*/regressions/*' \
	README.md Makefile "${roots[@]}" || failed=1

[ "$failed" = 0 ] && echo "check-scripts: ${#scripts[@]} scripts"
exit "$failed"
