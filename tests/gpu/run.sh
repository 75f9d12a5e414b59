#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [PART...]: limits against the real driver (or the fake one, when LD_LIBRARY_PATH finds it first).
# Parts: facts paths race cost share tenants torch. Prints one table per part; exits 1 if a bar is missed.
#   BUILD=DIR      build folder (default build)
#   SECONDS_EACH=N length of a share measurement (default 10)
#   OUT=DIR        copies of the full output
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

BUILD=${BUILD:-build}
OUT=${OUT:-$BUILD/gpu-results}
SECONDS_EACH=${SECONDS_EACH:-10}
lib=$(realpath "$BUILD")/libvgpu.so
bin=$BUILD/gpu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What the node's device plugin mounts into every container.
mkdir -p "$work/tenants"
export VGPU_TENANT_FOLDER=$work/tenants
mkdir -p "$OUT" "$bin"
missed=0

compile() {
	local driver
	for program in probe paths race cost share; do
		${CC:-cc} -std=gnu17 -D_GNU_SOURCE -O2 -Isrc -Iinclude -o "$bin/$program" \
			"tests/gpu/$program.c" -ldl -lm || exit 1
	done
	# shellcheck disable=SC2086 # a list of folders
	driver=$(find ${LD_LIBRARY_PATH//:/ } /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu \
		-name libcuda.so.1 2>/dev/null | head -1)
	${CC:-cc} -std=gnu17 -D_GNU_SOURCE -O2 -DLINKED -Isrc -Iinclude -o "$bin/paths-linked" \
		tests/gpu/paths.c "$driver" -ldl || exit 1
}

# limited MEMORY SHARE COMMAND...: a container of its own, with a region of its own.
limited() {
	local memory=$1 share=$2
	shift 2
	env LD_PRELOAD="$lib" CUDA_DEVICE_MEMORY_LIMIT="$memory" CUDA_DEVICE_SM_LIMIT="$share" \
		CUDA_DEVICE_MEMORY_SHARED_CACHE="$(mktemp -u "$work/XXXXXX.cache")" \
		GPU_CORE_UTILIZATION_POLICY=force "$@"
}

miss() {
	echo "MISSED: $*"
	missed=1
}

part_facts() {
	"$bin/probe" > "$OUT/facts.txt" 2>&1
	tail -5 "$OUT/facts.txt"
}

part_paths() {
	echo "== paths past a limit of 2000 MiB (chunks of 64 MiB)"
	for way in paths paths-linked; do
		for path in alloc pitch managed async async_ptsz pool vmm array array3d mipmap graph heap; do
			limited 2000m 0 timeout 60 "$bin/$way" "$path" 2000 2>&1 | sed "s/^/$way /" ||
				miss "$way $path"
		done
	done | tee "$OUT/paths.txt"
	grep -q FAILED "$OUT/paths.txt" && miss "paths"
}

part_race() {
	echo "== 8 processes at once"
	limited 12000m 0 timeout 100 "$bin/race" 8 2>&1 | tee "$OUT/race.txt" || miss "race"
}

part_cost() {
	echo "== cost of calls: bare, preloaded, ratio"
	for i in 1 2 3 4 5 6 7; do
		timeout 60 "$bin/cost" > "$work/bare.$i" || miss "cost, bare"
		limited 0 0 timeout 60 "$bin/cost" > "$work/ours.$i" || miss "cost"
		limited 100g 0 timeout 60 "$bin/cost" > "$work/limit.$i" || miss "cost with a limit"
	done
	# The ratio of neighbouring runs, and of those the median: the clock of the host wanders.
	for call in alloc_free async launch meminfo; do
		for i in 1 2 3 4 5 6 7; do
			awk -v c="$call" '$1 == c { v[FNR == NR ? "b" : FILENAME ~ /ours/ ? "o" : "l"] = $2 }
				END { print v["b"], v["o"], v["l"], v["o"] / v["b"], v["l"] / v["b"] }' \
				"$work/bare.$i" "$work/ours.$i" "$work/limit.$i"
		done > "$work/ratios"
		awk -v c="$call" '
			function median(a, n,   i, j, t) {
				for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++)
					if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
				return a[int((n + 1) / 2)]
			}
			{ b[NR] = $1; o[NR] = $2; l[NR] = $3; ro[NR] = $4; rl[NR] = $5 }
			END {
				bar["alloc_free"] = 1.10; bar["async"] = 1.15; bar["launch"] = 1.02; bar["meminfo"] = 9
				r = median(ro, NR)
				printf "%-12s bare %8.1f  no limit %8.1f (%.3f)  limit %8.1f (%.3f)  bar %.2f %s\n", c,
					median(b, NR), median(o, NR), r, median(l, NR), median(rl, NR), bar[c],
					(r <= bar[c] ? "ok" : "MISSED")
			}' "$work/ratios"
	done | tee "$OUT/cost.txt"
	grep -q MISSED "$OUT/cost.txt" && miss "cost"
}

part_share() {
	local workload units bare percent
	echo "== share of GPU time, $SECONDS_EACH s each"
	: > "$OUT/share.txt"
	for workload in ${WORKLOADS:-short long graph small}; do
		timeout 60 "$bin/share" "$workload" 5 > "$work/bare" || miss "share $workload, bare"
		units=$(awk '/^units/ { print $2 }' "$work/bare")
		bare=$(awk '/^mean/ { print $2 }' "$work/bare")
		echo "bare $workload units $units: $(grep -v units "$work/bare" | tr '\n' ' ')" >> "$OUT/share.raw"
		limited 0 0 timeout 60 "$bin/share" "$workload" 5 "$units" > "$work/free"
		awk -v w="$workload" -v b="$bare" '/^mean/ {
			printf "%-6s no limit: %.2f %% of bare %s\n", w, $2 / b * 100, ($2 / b >= 0.99 ? "ok" : "MISSED") }' \
			"$work/free" | tee -a "$OUT/share.txt"
		for percent in ${PERCENTS:-10 25 50 75}; do
			limited 0 "$percent" timeout 100 "$bin/share" "$workload" "$SECONDS_EACH" "$units" \
				> "$work/run" 2> "$work/log" || miss "share $workload $percent"
			echo "$workload $percent: $(tr '\n' ' ' < "$work/run")" >> "$OUT/share.raw"
			awk -v w="$workload" -v p="$percent" -v b="$bare" '/^mean/ {
				s = $2 / b * 100; d = $4 / b * 100; e = s > p ? s - p : p - s
				printf "%-6s %2d %%: %6.2f  error %.2f  seconds +-%.2f %s\n", w, p, s, e, d,
					e <= 3 && d <= (w == "long" ? 3 : 1) ? "ok" : "MISSED" }' \
				"$work/run" | tee -a "$OUT/share.txt"
		done
	done
	awk '/error/ { for (i = 1; i <= NF; i++) if ($i == "error") { n++; sum += $(i + 1) } }
		END { if (n) printf "mean error %.2f points %s\n", sum / n, sum / n <= 1 ? "ok" : "MISSED" }' \
		"$OUT/share.txt" | tee -a "$OUT/share.txt"
	grep -q MISSED "$OUT/share.txt" && miss "share"
}

part_tenants() {
	local workload units bare
	echo "== two containers at 30 and 60 %, $SECONDS_EACH s, then the first alone"
	for workload in ${TENANT_WORKLOADS:-short long}; do
		timeout 60 "$bin/share" "$workload" 4 > "$work/bare"
		units=$(awk '/^units/ { print $2 }' "$work/bare")
		bare=$(awk '/^mean/ { print $2 }' "$work/bare")
		limited 0 30 env LIBCUDA_LOG_LEVEL=4 timeout 100 "$bin/share" "$workload" $((SECONDS_EACH * 2)) \
			"$units" > "$work/a" 2> "$OUT/tenant-$workload.log" &
		limited 0 60 timeout 100 "$bin/share" "$workload" "$SECONDS_EACH" "$units" > "$work/b" &
		wait
		awk -v w="$workload" -v b="$bare" -v n="$SECONDS_EACH" '
			/^rate/ { for (i = 2; i <= NF; i++) {
					s = $i / b * 100
					if (FILENAME ~ /a$/ && i > 4 && i <= n) { both += s; nb++ }
					if (FILENAME ~ /a$/ && i > n + 3) { alone += s; na++ }
					if (FILENAME ~ /b$/ && i > 4) { other += s; no++ } } }
			END { x = both / nb; y = other / no; z = alone / na
				ok = x > 27 && x < 33 && y > 57 && y < 63 && z > 27 && z < 33
				printf "%-6s 30 %%: %.2f  60 %%: %.2f  30 %% alone: %.2f %s\n", w, x, y, z,
					ok ? "ok" : "MISSED" }' "$work/a" "$work/b" | tee -a "$OUT/tenants.txt"
		echo "$workload a $(tr '\n' ' ' < "$work/a")" >> "$OUT/share.raw"
		echo "$workload b $(tr '\n' ' ' < "$work/b")" >> "$OUT/share.raw"
	done
	grep -q MISSED "$OUT/tenants.txt" && miss "tenants"
}

part_torch() {
	echo "== PyTorch"
	if ! python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
		echo "no PyTorch with CUDA here: not measured"
		return
	fi
	timeout 120 python3 tests/gpu/torch_checks.py bench > "$work/bare" || miss "torch, bare"
	limited 0 0 timeout 120 python3 tests/gpu/torch_checks.py bench > "$work/ours" || miss "torch"
	limited 0 50 timeout 120 python3 tests/gpu/torch_checks.py bench > "$work/half" || miss "torch at 50 %"
	paste "$work/bare" "$work/ours" "$work/half" | awk '{
		printf "%-10s bare %9.2f/s  no limit %.2f %% %s  at 50 %%: %.2f %%\n", $1, $2, $4 / $2 * 100,
			($4 / $2 >= 0.99 ? "ok" : "MISSED"), $6 / $2 * 100 }' | tee "$OUT/torch.txt"
	limited 4000m 0 timeout 200 python3 tests/gpu/torch_checks.py checks 4000 2>&1 | tee -a "$OUT/torch.txt"
	[ "${PIPESTATUS[0]}" = 0 ] || miss "torch checks"
	grep -q MISSED "$OUT/torch.txt" && miss "torch"
	limited 4000m 0 nvidia-smi 2>&1 | grep -E 'MiB' | tee -a "$OUT/torch.txt"
}

compile
for part in "${@:-paths race cost share tenants torch}"; do
	for p in $part; do
		"part_$p"
	done
done
exit "$missed"
