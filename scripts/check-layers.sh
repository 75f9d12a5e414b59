#!/usr/bin/env bash
# Compares every #include under src/ with scripts/layers.txt: folders of ours, private headers, and headers of
# libraries. Run by `make check-layers`. Before that it proves on a made-up tree that it finds what it should.
set -euo pipefail
cd "$(dirname "$0")/.."

# Headers of the C library and of the kernel: every folder may use them. Anything else in angle brackets is
# a library, and must be in the row of the folder.
system_headers='arpa/* asm/* assert.h byteswap.h ctype.h dirent.h dlfcn.h elf.h endian.h errno.h execinfo.h
	fcntl.h float.h fnmatch.h getopt.h glob.h grp.h immintrin.h inttypes.h langinfo.h libgen.h limits.h
	link.h linux/* locale.h malloc.h math.h net/* netdb.h netinet/* poll.h pthread.h pwd.h regex.h sched.h
	semaphore.h setjmp.h signal.h spawn.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h
	stdio.h stdlib.h string.h strings.h sys/* syslog.h termios.h threads.h time.h ucontext.h unistd.h
	utime.h wchar.h'

# check TABLE SOURCES: prints one line per violation, then the number of includes looked at.
check() {
	local table=$1 sources=$2
	# The folder is the first part below SOURCES. awk's fields are for awk, not for the shell.
	# shellcheck disable=SC2016
	find "$sources" -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.inc' \) -print0 | sort -z |
		xargs -0 awk -v table="$table" -v sources="$sources/" -v system_list="$system_headers" '
	function complain(text) {
		print FILENAME ":" FNR ": " text
		bad++
	}
	function words(text, set,    list, n, i) {
		n = split(text, list, /[ \t\n]+/)
		for (i = 1; i <= n; i++)
			if (list[i] != "")
				set[list[i]] = 1
	}
	BEGIN {
		words(system_list, is_system)
		while ((getline row < table) > 0) {
			line++
			if (row ~ /^[ \t]*(#|$)/)
				continue
			if (row !~ /^[a-z0-9_]+:[^;]*;/) {
				print table ":" line ": is not \"folder: folders ; headers\""
				bad++
				continue
			}
			folder = row; sub(/:.*/, "", folder)
			uses = row; sub(/^[^:]*:/, "", uses); sub(/;.*/, "", uses)
			headers = row; sub(/^[^;]*;/, "", headers)
			split("", set); words(uses, set)
			for (used in set) {
				# Arrows point down: what is used stands above, so there are no circles.
				if (!(used in known)) {
					print table ":" line ": " folder " uses " used ", which no row above describes"
					bad++
				}
				allowed[folder, used] = 1
			}
			split("", set); words(headers, set)
			for (header in set)
				library[folder, header] = 1
			known[folder] = 1
		}
		if (!line) {
			print table ": cannot be read"
			bad++
		}
	}
	FNR == 1 {
		folder = substr(FILENAME, length(sources) + 1)
		sub(/\/.*/, "", folder)
		if (!(folder in known))
			complain("folder " folder " has no row in " table)
	}
	/^[ \t]*#[ \t]*include/ {
		seen++
		name = $0
		sub(/^[ \t]*#[ \t]*include[ \t]*/, "", name)
		if (name ~ /^"[^"]+"/) {
			sub(/^"/, "", name); sub(/".*/, "", name)
			if (name !~ /\// || name ~ /^\.\.?\//) {
				complain("\"" name "\": write the path from src/ or include/")
				next
			}
			target = name; sub(/\/.*/, "", target)
			if (target == "vgpu")
				next
			if (target != folder && !((folder, target) in allowed))
				complain(folder " must not include " name)
			else if (target != folder && name ~ /_internal\.h$/)
				complain(name " is private to " target)
		} else if (name ~ /^<[^>]+>/) {
			sub(/^</, "", name); sub(/>.*/, "", name)
			group = name; sub(/\/.*/, "/*", group)
			if (name in is_system || (group != name && group in is_system))
				next
			if (!((folder, name) in library))
				complain(folder " must not include <" name ">; libraries are in " table)
		} else
			complain("an include of a macro cannot be checked")
	}
	END {
		print seen + 0
		exit bad > 0
	}'
}

# Each wrong line of a made-up tree must be found, and nothing else.
self_test() {
	local tree got want
	tree=$(mktemp -d)
	# shellcheck disable=SC2064 # now, not later
	trap "rm -rf '$tree'" RETURN
	mkdir -p "$tree/src/low" "$tree/src/high/deep" "$tree/src/stray"
	printf '%s\n' '# comment' 'low: ;' 'high: low ; lib.h' >"$tree/layers.txt"
	printf '%s\n' '#include <stdio.h>' '#include <sys/stat.h>' '#include "low/a.h"' '#include "vgpu/x.h"' \
		'#include "high/b.h"' '# include <lib.h>' '#include "a.h"' '#include NAME' '#include "../high/b.h"' \
		>"$tree/src/low/a.c"
	printf '%s\n' '#include "low/a.h"' '#include <lib.h>' '#include "high/b_internal.h"' \
		'#include "low/a_internal.h"' '  #include <curl/curl.h>' >"$tree/src/high/deep/b.c"
	printf '%s\n' 'int x;' >"$tree/src/stray/c.c"
	got=$(cd "$tree" && check layers.txt src) && {
		echo "check-layers: self-test: wrong includes were not found" >&2
		return 1
	}
	want='src/high/deep/b.c:4: low/a_internal.h is private to low
src/high/deep/b.c:5: high must not include <curl/curl.h>; libraries are in layers.txt
src/low/a.c:5: low must not include high/b.h
src/low/a.c:6: low must not include <lib.h>; libraries are in layers.txt
src/low/a.c:7: "a.h": write the path from src/ or include/
src/low/a.c:8: an include of a macro cannot be checked
src/low/a.c:9: "../high/b.h": write the path from src/ or include/
src/stray/c.c:1: folder stray has no row in layers.txt
14'
	if [ "$got" != "$want" ]; then
		echo "check-layers: self-test: expected, then got:" >&2
		diff <(echo "$want") <(echo "$got") >&2 || true
		return 1
	fi
	printf '%s\n' 'high: low ;' 'low: ;' >"$tree/layers.txt"
	rm -r "$tree/src/stray"
	printf 'int x;\n' >"$tree/src/low/a.c"
	printf 'int x;\n' >"$tree/src/high/deep/b.c"
	got=$(cd "$tree" && check layers.txt src) && {
		echo "check-layers: self-test: an upward arrow was not found" >&2
		return 1
	}
	[ "$got" = 'layers.txt:1: high uses low, which no row above describes
0' ] || {
		echo "check-layers: self-test: $got" >&2
		return 1
	}
}

self_test
if report=$(check scripts/layers.txt src); then
	echo "check-layers: $(tail -n 1 <<<"$report") includes point down"
else
	head -n -1 <<<"$report" >&2
	echo "check-layers: the table is scripts/layers.txt" >&2
	exit 1
fi
