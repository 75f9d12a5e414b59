/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the environment variables through which the node agent, a pod's author and libvgpu.so
 * speak to each other. HAMi's names are kept where the meaning is HAMi's.
 */
#ifndef VGPU_ENVIRONMENT_H
#define VGPU_ENVIRONMENT_H

/* Memory limit of every device, or of device N with the suffix _N: bytes, or with K, M, G, T. */
#define VGPU_ENV_MEMORY_LIMIT       "CUDA_DEVICE_MEMORY_LIMIT"
/* Share of GPU time in percent, 1..100, for every device, or of device N with the suffix _N. */
#define VGPU_ENV_SM_LIMIT           "CUDA_DEVICE_SM_LIMIT"
/* Path of the shared region. */
#define VGPU_ENV_REGION             "CUDA_DEVICE_MEMORY_SHARED_CACHE"
/* default, force or disable: whether the share of GPU time is enforced. */
#define VGPU_ENV_UTILIZATION_POLICY "GPU_CORE_UTILIZATION_POLICY"
/* Priority of the container's work: 0 before 1. */
#define VGPU_ENV_PRIORITY           "CUDA_TASK_PRIORITY"
/* true: allocations that don't fit the card, but fit the limit, come from managed memory. */
#define VGPU_ENV_OVERSUBSCRIBE      "CUDA_OVERSUBSCRIBE"
/* true: pinned host memory counts against the limit too. */
#define VGPU_ENV_CHARGE_HOST        "VGPU_CHARGE_HOST_MEMORY"
/* 0 or unset: silent, 1: errors, 2: warnings, 3: what happens, 4: everything; to stderr. */
#define VGPU_ENV_LOG_LEVEL          "LIBCUDA_LOG_LEVEL"
/* Read by the CUDA driver; which devices, in which order. */
#define VGPU_ENV_VISIBLE_DEVICES    "CUDA_VISIBLE_DEVICES"

/* Folder of the node in which containers tell each other when they use a card. */
#define VGPU_ENV_TENANT_FOLDER "VGPU_TENANT_FOLDER"

#define VGPU_TENANT_DEFAULT_FOLDER "/tmp/vgpulock"
#define VGPU_REGION_DEFAULT_PATH   "/tmp/cudevshr.cache"

#endif
