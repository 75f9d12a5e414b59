/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Force-included when code is compiled into libvgpu.so: binds to the oldest version
 * of every libc symbol, so that the library loads in containers with glibc 2.17. Checked by
 * `make check-exports`.
 */
#ifndef VGPU_LIBVGPU_GLIBC_FLOOR_H
#define VGPU_LIBVGPU_GLIBC_FLOOR_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* It takes versions for numbers. */
/* clang-format off */
#if defined(__x86_64__)
#define VG_FLOOR(symbol)	 VG_FLOOR_AT(symbol, GLIBC_2.2.5)
#define VG_FLOOR_LATE(symbol, v) VG_FLOOR_AT(symbol, v)
#elif defined(__aarch64__)
#define VG_FLOOR(symbol)	 VG_FLOOR_AT(symbol, GLIBC_2.17)
#define VG_FLOOR_LATE(symbol, v) VG_FLOOR_AT(symbol, GLIBC_2.17)
#else
#error "no floor known for this processor"
#endif
#define VG_FLOOR_AT(symbol, v) __asm__(".symver " #symbol "," #symbol "@" #v);

/* Moved from libdl and libpthread into libc by 2.34, under a new version. */
VG_FLOOR(dlopen)
VG_FLOOR(dlerror)
VG_FLOOR(pthread_mutexattr_init)
VG_FLOOR(pthread_mutexattr_destroy)
VG_FLOOR(pthread_mutexattr_setpshared)
VG_FLOOR_LATE(pthread_mutexattr_setrobust, GLIBC_2.12)
VG_FLOOR_LATE(pthread_mutex_consistent, GLIBC_2.12)
VG_FLOOR(sem_init)
VG_FLOOR(sem_post)
VG_FLOOR(sem_trywait)
VG_FLOOR(sem_getvalue)
/* clang-format on */

/* Ordinary functions since 2.33, inline before: the system calls have not changed. */
static inline int vg_floor_fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

static inline int vg_floor_stat(const char *path, struct stat *st)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

#define fstat(fd, st)  vg_floor_fstat((fd), (st))
#define stat(path, st) vg_floor_stat((path), (st))

#endif
