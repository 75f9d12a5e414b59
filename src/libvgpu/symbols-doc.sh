#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints docs/libvgpu-symbols.md from the two lists of symbols.
set -euo pipefail
cd "$(dirname "$0")"

cat << 'END'
# The symbols of libvgpu.so

Made by `make docs-symbols` from `src/libvgpu/cuda_symbols.def` and `src/libvgpu/nvml_symbols.def`; the exports of the
library are made from the same rows. Besides them it exports `dlsym` and `dlvsym`. Functions that are not here go to the driver directly.

| class | what the library does |
|---|---|
| enforce | may refuse (memory) or delay (launches) |
| account | keeps the books, never refuses |
| virtualise | answers with the container's view |
| gate | where the library starts |

## libcuda.so.1

| symbol | asked for as | stream | class |
|---|---|---|---|
END
awk -F'[(,] *' '/^VG_CUDA\(/ {
	for (i = 1; i <= NF; i++) gsub(/^[ \t]+|[ \t]+$/, "", $i)
	if ($6 != "CALL")
		printf "| `%s` | `%s` @ %s | %s | %s |\n", $2, $3, $4, tolower($5), tolower($6)
}' cuda_symbols.def
printf '\n## libnvidia-ml.so.1\n\n| symbol | class |\n|---|---|\n'
awk -F'[(,] *' '/^VG_NVML\(/ {
	for (i = 1; i <= NF; i++) gsub(/^[ \t]+|[ \t]+$/, "", $i)
	if ($3 != "CALL")
		printf "| `%s` | %s |\n", $2, tolower($3)
}' nvml_symbols.def
