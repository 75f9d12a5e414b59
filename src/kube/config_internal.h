/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VGPU_KUBE_CONFIG_INTERNAL_H
#define VGPU_KUBE_CONFIG_INTERNAL_H

#include "base/err.h"
#include "kube/kube.h"

/* What vg_kube_config_load() does, from text. Relative paths become relative to the folder of `path`. */
int vg_kube_config_parse(const char *path, const char *text, size_t size,
			 struct vg_kube_config *ret_config, struct vg_err *err);
/* The service account mounted at `folder`, the API server at host and port. */
int vg_kube_config_mounted(const char *folder, const char *host, const char *port,
			   struct vg_kube_config *ret_config, struct vg_err *err);
void vg_kube_config_copy(const struct vg_kube_config *from, struct vg_kube_config *ret_config);

/* Standard base64, white space ignored. NULL when the text is none. NUL-terminated, from malloc(). */
char *vg_base64_decode(const char *text, size_t *ret_size);

#endif
