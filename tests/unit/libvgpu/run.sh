#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh LIBVGPU FAKE_FOLDER TESTS_FOLDER: libvgpu.so preloaded into programs over the fake driver.
set -uo pipefail

lib=$(realpath "$1") fake=$(realpath "$2") tests=$(realpath "$3")
work=$(mktemp -d /tmp/vgpu-guest-XXXXXX)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0
region=$work/region.cache

# Sanitized builds need their runtime first in line.
preload=$lib
asan=$(ldd "$lib" | awk '/libasan/ { print $3 }')
[ -n "$asan" ] && preload="$asan $lib"
export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0

# guest [NAME=VALUE...] PROGRAM...: a container of its own unless REGION=keep.
guest() {
	[ "${REGION:-new}" = keep ] || rm -f "$region" "$region.vgpu"
	env LD_LIBRARY_PATH="$fake" VGPU_FAKE_STATE="$work/cards" LD_PRELOAD="$preload" \
		CUDA_DEVICE_MEMORY_SHARED_CACHE="$region" VGPU_TENANT_FOLDER="$work" timeout 60 env "$@"
}

ok() {
	passed=$((passed + 1))
}

bad() {
	echo "FAILED: $*"
	failed=$((failed + 1))
}

# expect WHAT PATTERN OUTPUT
expect() {
	if grep -qE -- "$2" <<< "$3"; then
		ok
	else
		bad "$1: no '$2' in: $3"
	fi
}

# ---- the test programs -------------------------------------------------------------------------------

umask 027
for t in test_lookup test_guest; do
	out=$(guest CUDA_DEVICE_MEMORY_LIMIT=2000m "$tests/$t" 2>&1)
	# shellcheck disable=SC2181
	if [ $? = 0 ]; then ok; else bad "$t"; grep -vE '  OK |RUN  ' <<< "$out"; fi
done
for path in alloc pitch managed async async_ptsz pool vmm array array3d mipmap graph heap; do
	for way in paths paths-linked; do
		out=$(guest CUDA_DEVICE_MEMORY_LIMIT=2000m "$tests/$way" $path 2000 2>&1) || bad "$way $out"
		expect "$way $path" ': ok$' "$out"
	done
done
out=$(guest CUDA_DEVICE_MEMORY_LIMIT=9000m "$tests/race" 8 2>&1) || bad "race: $out"
expect "race" 'had ([0-9]+) chunks of 64 MiB, \1 fitted' "$out"

# ---- nothing happens where nothing is asked for ------------------------------------------------------------

out=$(guest CUDA_DEVICE_MEMORY_LIMIT=2000m ls / 2>&1)
expect "ls works" '^tmp$' "$out"
if [ -e "$region" ]; then bad "ls made a region"; else ok; fi
out=$(guest CUDA_DEVICE_MEMORY_LIMIT=junk "$tests/ask" 100 2>&1)
expect "silent unless asked" '^total' "$out"
[ "$(wc -l <<< "$out")" = 1 ] || bad "output without LIBCUDA_LOG_LEVEL: $out"

# ---- limits, good and bad ------------------------------------------------------------------------------------

ask() {
	guest LIBCUDA_LOG_LEVEL=2 "$@" 2>&1
}

expect "no limit" '^total 14.... free .* alloc 0 ' "$(ask "$tests/ask" 100)"
expect "common limit" '^total 3000 free 2482 alloc 0 ' "$(ask CUDA_DEVICE_MEMORY_LIMIT=3000m "$tests/ask" 2482)"
expect "one byte less" 'alloc 2 ' "$(ask CUDA_DEVICE_MEMORY_LIMIT=3000m "$tests/ask" 2483)"
expect "own limit wins" '^total 4096 ' "$(ask CUDA_DEVICE_MEMORY_LIMIT=3000m CUDA_DEVICE_MEMORY_LIMIT_0=4G "$tests/ask" 1)"
expect "0 is no limit" '^total 14....' "$(ask CUDA_DEVICE_MEMORY_LIMIT_0=0 "$tests/ask" 1)"
for junk in abc -5 1.5g 10Gi 0x400 '10 GB' 99999999999999999999; do
	out=$(ask CUDA_DEVICE_MEMORY_LIMIT_0="$junk" "$tests/ask" 1)
	expect "'$junk' refuses" 'alloc 2 ' "$out"
	expect "'$junk' is named" "CUDA_DEVICE_MEMORY_LIMIT_0='$junk' is no size" "$out"
done
out=$(ask CUDA_DEVICE_MEMORY_LIMIT=900g "$tests/ask" 100)
expect "over the card" 'is more than the card' "$out"
expect "over the card: the card" '^total 14.... .* alloc 0' "$out"
out=$(ask CUDA_DEVICE_SM_LIMIT=fast "$tests/ask" 1)
expect "share" "CUDA_DEVICE_SM_LIMIT='fast' is no percentage" "$out"
expect "policy" 'is not default, force or disable' "$(ask GPU_CORE_UTILIZATION_POLICY=maybe "$tests/ask" 1)"
expect "priority" 'is no number' "$(ask CUDA_TASK_PRIORITY=high "$tests/ask" 1)"
expect "unknown devices" 'alloc 0 ' "$(ask CUDA_DEVICE_MEMORY_LIMIT_15=1m CUDA_DEVICE_MEMORY_LIMIT_99=1m "$tests/ask" 1)"

# ---- which device is which --------------------------------------------------------------------------------------

two="VGPU_FAKE_DEVICES=count=2 model=h200"
limits=(CUDA_DEVICE_MEMORY_LIMIT_0=2000m CUDA_DEVICE_MEMORY_LIMIT_1=5000m)
cards() {
	rm -f "$work/cards"
	ask "$two" "${limits[@]}" "$@"
}
expect "first" '^total 2000 .* index 0' "$(cards "$tests/ask" 1 0)"
expect "second" '^total 5000 .* index 1' "$(cards "$tests/ask" 1 1)"
expect "reordered" '^total 5000 .* index 1' "$(cards CUDA_VISIBLE_DEVICES=1,0 "$tests/ask" 1 0)"
expect "reordered, other" '^total 2000 .* index 0' "$(cards CUDA_VISIBLE_DEVICES=1,0 "$tests/ask" 1 1)"
expect "hidden" '^total 5000 .* index 1' "$(cards CUDA_VISIBLE_DEVICES=1 "$tests/ask" 1 0)"
uuid=$(LD_LIBRARY_PATH=$fake VGPU_FAKE_STATE=$work/u env "$two" python3 - << 'PY'
import ctypes
n = ctypes.CDLL("libnvidia-ml.so.1")
n.nvmlInit_v2()
h = ctypes.c_void_p()
n.nvmlDeviceGetHandleByIndex_v2(1, ctypes.byref(h))
b = ctypes.create_string_buffer(96)
n.nvmlDeviceGetUUID(h, b, 96)
print(b.value.decode())
PY
)
expect "by UUID" '^total 5000 .* index 1' "$(cards CUDA_VISIBLE_DEVICES="$uuid" "$tests/ask" 1 0)"
expect "MIG" '^total [0-9]+ free .* alloc 0' "$(rm -f "$work/cards"; ask "VGPU_FAKE_DEVICES=model=h100 mig=1g.10gb*2" \
	CUDA_DEVICE_MEMORY_LIMIT_0=3000m "$tests/ask" 1 0)"
rm -f "$work/cards"

# ---- a node that promises more than its cards hold --------------------------------------------------------------

small() {
	rm -f "$work/cards"
	ask VGPU_FAKE_DEVICES=mem_mib=4000 CUDA_DEVICE_MEMORY_LIMIT=8000m "$@"
}
expect "oversubscribed" '^total 8000 free 7482 alloc 0' "$(small CUDA_OVERSUBSCRIBE=true "$tests/ask" 6000)"
expect "oversubscribed: the limit holds" 'alloc 2 ' "$(small CUDA_OVERSUBSCRIBE=true "$tests/ask" 7483)"
expect "not oversubscribed" '^total 3... free .* alloc 2' "$(small "$tests/ask" 6000)"
rm -f "$work/cards"

# ---- region files that are not ours --------------------------------------------------------------------------------

region_case() { # WHAT LOG-PATTERN, with the file already made
	out=$(REGION=keep ask CUDA_DEVICE_MEMORY_LIMIT=2000m "$tests/ask" 1483)
	expect "$1: limit holds" '^total 2000 .* alloc 2' "$out"
	expect "$1: said" "$2" "$out"
	rm -rf "$region" "$region.vgpu"
}
echo precious > "$region"; region_case "foreign" 'starts with other data'
grep -q . "$region" 2>/dev/null && bad "left over"
ln -s "$work/target" "$region"; region_case "symlink" 'symbolic link'
[ -e "$work/target" ] && bad "the link was followed"
printf '\x4e\xf7\x2f\x01\x01\0\0\0\x01\0\0\0' > "$region"; truncate -s 2008953 "$region"; region_case "old version" 'layout 1.1'
mkdir "$region"; region_case "folder" 'shared region'
mkfifo "$region"; region_case "pipe" 'shared region'
# Truncated in its first page: nobody can be using it, so it is made anew.
printf '\x4e\xf7\x2f\x01\x01\0\0\0\x02\0\0\0' > "$region"
expect "truncated" '^total 2000 .* alloc 2' "$(REGION=keep ask CUDA_DEVICE_MEMORY_LIMIT=2000m "$tests/ask" 1483)"

# ---- share of time ---------------------------------------------------------------------------------------------------

share() { # PERCENT POLICY -> kernels per second
	rm -f "$work/cards"
	# 23762 rounds are 1 ms there.
	guest CUDA_DEVICE_SM_LIMIT="$1" GPU_CORE_UTILIZATION_POLICY="$2" "$tests/share" short 2 23762 2>&1 | awk '/^mean/ { print $2 }'
}
within() { # WHAT VALUE FROM TO
	if awk -v v="$2" -v a="$3" -v b="$4" 'BEGIN { exit !(v != "" && v + 0 >= a && v + 0 <= b) }'; then
		ok
	else
		bad "$1: $2 is not in $3..$4"
	fi
}
within "25 % of 1 ms kernels" "$(share 25 default)" 210 290
within "policy disable" "$(share 25 disable)" 880 1100
within "no share" "$(share 100 default)" 880 1100

# ---- many processes at once ---------------------------------------------------------------------------------------------

MANY=${VGPU_MANY:-100}
many() {
	local start end
	start=$(date +%s%N)
	for ((i = 0; i < MANY; i++)); do "$@" > /dev/null 2>> "$work/many.log" & done
	wait
	end=$(date +%s%N)
	echo $(((end - start) / 1000000))
}
: > "$work/many.log"
bare() {
	env LD_LIBRARY_PATH="$fake" VGPU_FAKE_STATE="$work/many" timeout 60 env "$tests/ask" 1
}
rm -f "$region"
without=$(many bare)
with=$(REGION=keep many guest VGPU_FAKE_STATE="$work/many" CUDA_DEVICE_MEMORY_LIMIT=100g "$tests/ask" 1)
echo "$MANY processes at once: $without ms bare, $with ms preloaded"
[ -s "$work/many.log" ] && bad "many processes: $(head -1 "$work/many.log")"

echo "libvgpu over the fake driver: $passed passed, $failed failed"
[ "$failed" = 0 ]
