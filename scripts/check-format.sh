#!/usr/bin/env bash
# Compares C files with what clang-format makes of them; --fix writes it back. Lists of rows (.def) keep their
# own columns. Run by `make check-format` and `make format`.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -d '' -t files < <(find src include tests -type f -name '*.[ch]' -print0 | sort -z)

if [ "${1:-}" = --fix ]; then
	clang-format -i "${files[@]}"
	exit 0
fi
# One line per file; what is wrong with it, `git diff` says after `make format`.
# shellcheck disable=SC2016 # $1 is for the inner shell
if ! printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P 2 sh -c \
	'clang-format --dry-run -Werror "$1" 2>/dev/null || { echo "check-format: $1"; exit 1; }' format >&2; then
	echo "check-format: run \`make format\`" >&2
	exit 1
fi
echo "check-format: ${#files[@]} files"
