/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of src/region only. */
#ifndef VGPU_REGION_INTERNAL_H
#define VGPU_REGION_INTERNAL_H

#include "region/region.h"

#define LOAD(p)     __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define ADD(p, v)   __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)
#define SUB(p, v)   __atomic_sub_fetch((p), (v), __ATOMIC_SEQ_CST)
#define CAS(p, old, v)                                                                             \
	__atomic_compare_exchange_n((p), (old), (v), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

void region_fail(struct region_fault *fault, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* lock.c */
int region_mutex_init(struct vgpu_region_ext *ext);
void region_sems_init(struct vgpu_region *base);
/* The semaphore that older readers share; see lock.c. */
void region_sem_enter(struct region *r);
void region_sem_leave(struct region *r);
int region_record_lock(const struct region *r, long long offset, bool wait);
void region_record_unlock(const struct region *r, long long offset);
/* True if another process holds it. */
bool region_record_held(const struct region *r, long long offset);

/* slot.c */
uint64_t region_start_time(int32_t pid);
uint64_t region_pid_namespace(void);
/* Under region_lock() or while nobody else can be attached. */
int region_reclaim_locked(struct region *r);
bool region_some_alive(const struct region *r);

#endif
