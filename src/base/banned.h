/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that do not compile in this tree, because each of them has hidden a bug in somebody's
 * daemon: no bounds, no error report, or hidden state. Included before everything else by the
 * Makefile. The system headers come first, since they may name the functions themselves.
 */
#ifndef VGPU_BASE_BANNED_H
#define VGPU_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VG_BANNED(function) sorry_##function##_is_banned_see_base_banned_h

/* Numbers without an error: use base/num.h. */
#undef atoi
#define atoi(text) VG_BANNED(atoi)
#undef atol
#define atol(text) VG_BANNED(atol)
#undef atoll
#define atoll(text) VG_BANNED(atoll)
#undef atof
#define atof(text) VG_BANNED(atof)

/* No bounds, or bounds without a terminator: use snprintf(), vg_copy() or base/buf.h. */
#undef sprintf
#define sprintf(...) VG_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) VG_BANNED(vsprintf)
#undef strcpy
#define strcpy(to, from) VG_BANNED(strcpy)
#undef strcat
#define strcat(to, from) VG_BANNED(strcat)
#undef strncpy
#define strncpy(to, from, size) VG_BANNED(strncpy)
#undef strncat
#define strncat(to, from, size) VG_BANNED(strncat)
#undef stpcpy
#define stpcpy(to, from) VG_BANNED(stpcpy)
#undef gets
#define gets(to) VG_BANNED(gets)

/* Writes into its input and loses empty pieces: use vg_cut(). */
#undef strtok
#define strtok(text, set) VG_BANNED(strtok)
#undef strtok_r
#define strtok_r(text, set, state) VG_BANNED(strtok_r)

/* Hidden static results: use the _r forms. */
#undef asctime
#define asctime(tm) VG_BANNED(asctime)
#undef ctime
#define ctime(t) VG_BANNED(ctime)
#undef localtime
#define localtime(t) VG_BANNED(localtime)
#undef gmtime
#define gmtime(t) VG_BANNED(gmtime)

/* A race between the name and the file: use mkstemp() or O_TMPFILE. */
#undef tmpnam
#define tmpnam(to) VG_BANNED(tmpnam)
#undef mktemp
#define mktemp(template) VG_BANNED(mktemp)

#endif
