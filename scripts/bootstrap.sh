#!/usr/bin/env bash
# Installs what a fresh Debian 12 machine lacks, through apt as root or with sudo. Silent and quick when
# nothing is missing; says what it installs otherwise. On other systems it names what is missing.
#
# usage: scripts/bootstrap.sh build|test|e2e     each profile contains the ones before it
#        scripts/bootstrap.sh --list PROFILE     the Debian packages of a profile
set -euo pipefail

# Each row: profile, Debian package, and how to see that it is there: a command, a pkg-config module, or a
# file that the C compiler finds. So a machine that has them from elsewhere is fine too.
needs() {
	cat <<-'ROWS'
		build gcc                    command cc
		build libc6-dev              header  stdio.h
		build make                   command make
		build pkg-config             command pkg-config
		build libmicrohttpd-dev      module  libmicrohttpd
		build libgnutls28-dev        module  gnutls
		build libjansson-dev         module  jansson
		build libcurl4-openssl-dev   module  libcurl
		build libyaml-dev            module  yaml-0.1
		build curl                   command curl
		build jq                     command jq
		test  libcmocka-dev          module  cmocka
		test  clang                  command clang
		test  libclang-rt-14-dev     clang-file libclang_rt.fuzzer-x86_64.a libclang_rt.fuzzer-aarch64.a
		test  llvm                   command llvm-symbolizer
		test  clang-format           command clang-format
		test  shellcheck             command shellcheck
		test  codespell              command codespell
		test  python3                command python3
		test  openssl                command openssl
		e2e   ca-certificates        path    /etc/ssl/certs/ca-certificates.crt
		e2e   git                    command git
	ROWS
}

is_there() {
	local how=$1 found
	shift
	case $how in
	command) command -v "$1" >/dev/null ;;
	module) command -v pkg-config >/dev/null && pkg-config --exists "$1" ;;
	header) command -v cc >/dev/null && echo "#include <$1>" | cc -E -x c -o /dev/null - 2>/dev/null ;;
	path) [ -e "$1" ] ;;
	clang-file) # one of these in the compiler's own folders
		command -v clang >/dev/null || return 1
		for file; do
			found=$(clang -print-file-name="lib/linux/$file")
			if [ "$found" != "lib/linux/$file" ] && [ -e "$found" ]; then return 0; fi
			found=$(clang -print-resource-dir)/lib/linux/$file
			if [ -e "$found" ]; then return 0; fi
		done
		return 1
		;;
	esac
}

# The packages of a profile; with "missing", only those that are not there.
packages() {
	local profile=$1 only=$2 row package how rest
	while read -r row package how rest; do
		case "$profile:$row" in
		build:build | test:build | test:test | e2e:*) ;;
		*) continue ;;
		esac
		# shellcheck disable=SC2086 # names without blanks
		if [ "$only" = missing ] && is_there $how $rest; then continue; fi
		echo "$package"
	done < <(needs)
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

usage() {
	sed -n 's/^# \{0,1\}\(usage:.*\|  *scripts.*\)/\1/p' "$0" >&2
	exit 2
}

[ "${1:-}" != --list ] || {
	case "${2:-}" in build | test | e2e) ;; *) usage ;; esac
	packages "$2" all
	exit 0
}
case "${1:-}" in build | test | e2e) ;; *) usage ;; esac

mapfile -t missing < <(packages "$1" missing)
[ "${#missing[@]}" -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
	cat >&2 <<-END
		bootstrap: this is not a Debian system, so nothing was installed. Missing, by the names of Debian 12:
		    ${missing[*]}
		Install what corresponds to these, then run the same command again.
	END
	exit 1
fi

if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
	cat >&2 <<-END
		bootstrap: neither root nor sudo, so nothing was installed. As root, run:
		    apt-get install -y --no-install-recommends ${missing[*]}
	END
	exit 1
fi

echo "bootstrap: installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}
# A machine with fresh package lists needs no update.
if ! install >"$log" 2>&1; then
	if ! { as_root apt-get update && install; } >"$log" 2>&1; then
		cat "$log" >&2
		echo "bootstrap: apt could not install ${missing[*]}; the reason is above" >&2
		exit 1
	fi
fi

mapfile -t missing < <(packages "$1" missing)
if [ "${#missing[@]}" -gt 0 ]; then
	echo "bootstrap: still missing after the installation: ${missing[*]}" >&2
	exit 1
fi
