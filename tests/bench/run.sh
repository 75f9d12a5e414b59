#!/usr/bin/env bash
# What `make bench` prints: each figure next to its bar. Exit status 1 when a bar is missed.
# Machines are noisy: a missed bar is worth a second run before it is worth a change.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

build=${VGPU_BUILD:-build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

echo "machine: $(nproc) cores, $(uname -m), $(. /etc/os-release && echo "$PRETTY_NAME")"
for program in "$build"/bench/bench_*; do
	if [ ! -x "$program" ] || [ ! -f "$program" ]; then continue; fi
	case $program in
	*.d) continue ;;
	*/bench_http) set -- "$build/vgpu-scheduler" config/device-config.yaml "$folder" ;;
	*) set -- ;;
	esac
	echo
	"$program" "$@" || failed=1
done
exit "$failed"
