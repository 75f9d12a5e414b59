#!/usr/bin/env bash
# Each header compiles alone: it includes what it uses. Run by `make check-headers`.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
count=0
while IFS= read -r header; do
	count=$((count + 1))
	# shellcheck disable=SC2086 # CPPFLAGS is a list of words
	if ! printf '#include "%s"\n' "${header#*/}" | "${CC:-cc}" $CPPFLAGS -std=gnu17 -Wall -Wextra -Werror \
		-fsyntax-only -x c - ; then
		echo "check-headers: $header does not compile alone" >&2
		failed=1
	fi
done < <(find src include -name '*.h' | sort)
[ "$failed" = 0 ] && echo "check-headers: $count headers compile alone"
exit "$failed"
