/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of src/kube share: cmocka with what it wants included first, and row counts. */
#ifndef VGPU_TESTS_UNIT_KUBE_KUBE_TEST_H
#define VGPU_TESTS_UNIT_KUBE_KUBE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

#define CAPTURED "tests/data/captured-1.20.2/"

#endif
