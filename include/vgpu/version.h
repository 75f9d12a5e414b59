/* SPDX-License-Identifier: Apache-2.0 */
/* The version of every program in this tree. */
#ifndef VGPU_VERSION_H
#define VGPU_VERSION_H

#define VGPU_VERSION "0.1.0"

#endif
