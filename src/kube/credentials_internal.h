/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Token, CA and client certificate as they are now: files are looked at before each request and read
 * again when they changed (kubelet replaces a service account's token about every hour).
 */
#ifndef VGPU_KUBE_CREDENTIALS_INTERNAL_H
#define VGPU_KUBE_CREDENTIALS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "kube/kube.h"

enum vg_credential_kind {
	VG_CREDENTIAL_TOKEN,
	VG_CREDENTIAL_CA,
	VG_CREDENTIAL_CERT,
	VG_CREDENTIAL_KEY,
	VG_CREDENTIAL_COUNT,
};

struct vg_credential {
	const char *path; /* NULL: the text came with the configuration */
	char *text;       /* NULL: there is none. PEM, or the token without white space around it */
	size_t size;
	/* What the file looked like when it was read. */
	ino_t inode;
	off_t file_size;
	int64_t changed_ns;
	bool failing; /* the last look failed, and was logged */
};

struct vg_credentials {
	struct vg_credential item[VG_CREDENTIAL_COUNT];
};

/* `config` must outlive the credentials. Errors name the file. */
int vg_credentials_init(struct vg_credentials *credentials, const struct vg_kube_config *config,
			struct vg_err *err);
void vg_credentials_release(struct vg_credentials *credentials);
/*
 * Reads what changed. A file that cannot be read keeps what was there before and is logged once.
 * Returns whether anything is different now.
 */
bool vg_credentials_refresh(struct vg_credentials *credentials);
/* After the server refused them: the next refresh reads every file, however it looks. */
void vg_credentials_expire(struct vg_credentials *credentials);

#endif
