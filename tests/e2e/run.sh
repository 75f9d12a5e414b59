#!/usr/bin/env bash
# The end-to-end tests: real etcd, kube-apiserver and kube-scheduler, and our daemon between them.
# "make e2e" calls this. All on loopback ports and in temporary folders; no process outlives it.
#
# usage: run.sh [--only WORD] [VERSION...]     default: the current and the oldest supported version
#
# environment: VGPU_SCHEDULER   the daemon to test, default build/vgpu-scheduler
#              DEVICE_CONFIG    its device configuration, default config/device-config.yaml
#              KEEP=1           keep the temporary folders, with all logs
#              KUBE_VGPU_CACHE  where the Kubernetes programs are built and kept

set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
daemon=${VGPU_SCHEDULER:-$root/build/vgpu-scheduler}
config=${DEVICE_CONFIG:-$root/config/device-config.yaml}

options=()
if [[ ${1-} == --only ]]; then
	options+=(--only "${2:?--only needs a word}")
	shift 2
fi
versions=("$@")
if [[ ${#versions[@]} -eq 0 ]]; then
	mapfile -t versions < <("$here/build-kubernetes.sh" --list)
fi

for file in "$daemon" "$config"; do
	[[ -f $file ]] || { echo "run.sh: $file is missing: run make first" >&2; exit 1; }
done

arguments=()
for version in "${versions[@]}"; do
	folder=$("$here/build-kubernetes.sh" "$version")
	arguments+=("$version=$folder")
done

exec env PYTHONDONTWRITEBYTECODE=1 python3 "$here/e2e.py" --daemon "$daemon" --config "$config" \
	"${options[@]}" "${arguments[@]}"
