/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/credentials_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

static const char *const what[VG_CREDENTIAL_COUNT] = {
	[VG_CREDENTIAL_TOKEN] = "token",
	[VG_CREDENTIAL_CA] = "certificate authority",
	[VG_CREDENTIAL_CERT] = "client certificate",
	[VG_CREDENTIAL_KEY] = "client key",
};

static void replace_text(struct vg_credential *credential, char *text, size_t size)
{
	if (credential->text) {
		explicit_bzero(credential->text, credential->size);
		free(credential->text);
	}
	credential->text = text;
	credential->size = size;
}

/* A token becomes a header line, so it must be one word; PEM is for the TLS library to judge. */
static int accept_text(enum vg_credential_kind kind, const char *name, struct vg_span text,
		       struct vg_err *err)
{
	if (text.size == 0)
		return vg_fail(err, EINVAL, "%s: is empty: no %s there", name, what[kind]);
	if (kind != VG_CREDENTIAL_TOKEN)
		return 0;
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return vg_fail(err, EINVAL, "%s: holds more than one word: not a token",
				       name);
	return 0;
}

static bool looks_unchanged(const struct vg_credential *credential, const struct stat *now)
{
	return credential->text && credential->inode == now->st_ino &&
	       credential->file_size == now->st_size &&
	       credential->changed_ns == now->st_mtim.tv_sec * VG_NS_PER_S + now->st_mtim.tv_nsec;
}

/* 1: read anew and different; 0: as before. */
static int read_one(struct vg_credential *credential, enum vg_credential_kind kind,
		    struct vg_err *err)
{
	struct vg_span span;
	struct stat now;
	char *text;
	size_t size;
	int r;

	if (stat(credential->path, &now) < 0)
		return vg_fail(err, errno, "%s: the %s cannot be read: %s", credential->path,
			       what[kind], strerror(errno));
	if (looks_unchanged(credential, &now))
		return 0;
	r = vg_read_file(credential->path, VG_LIMIT_CREDENTIAL_BYTES, &text, &size, err);
	if (r < 0)
		return r;
	span = (struct vg_span){ text, size };
	if (kind == VG_CREDENTIAL_TOKEN)
		span = vg_trim(span);
	r = accept_text(kind, credential->path, span, err);
	if (r == 0) {
		credential->inode = now.st_ino;
		credential->file_size = now.st_size;
		credential->changed_ns = now.st_mtim.tv_sec * VG_NS_PER_S + now.st_mtim.tv_nsec;
		if (!credential->text || credential->size != span.size ||
		    memcmp(credential->text, span.data, span.size) != 0) {
			replace_text(credential, vg_strndup(span.data, span.size), span.size);
			r = 1;
		}
	}
	explicit_bzero(text, size);
	free(text);
	return r;
}

int vg_credentials_init(struct vg_credentials *credentials, const struct vg_kube_config *config,
			struct vg_err *err)
{
	const struct {
		const char *path;
		const char *text;
	} from[VG_CREDENTIAL_COUNT] = {
		[VG_CREDENTIAL_TOKEN] = { config->token_file, config->token },
		[VG_CREDENTIAL_CA] = { config->ca_file, config->ca_data },
		[VG_CREDENTIAL_CERT] = { config->cert_file, config->cert_data },
		[VG_CREDENTIAL_KEY] = { config->key_file, config->key_data },
	};

	*credentials = (struct vg_credentials){ 0 };
	for (int i = 0; i < VG_CREDENTIAL_COUNT; i++) {
		struct vg_credential *credential = &credentials->item[i];
		int r = 0;

		if (from[i].path) {
			credential->path = from[i].path;
			r = read_one(credential, (enum vg_credential_kind)i, err);
		} else if (from[i].text) {
			struct vg_span span = vg_trim(VG_SPAN(from[i].text));

			r = accept_text((enum vg_credential_kind)i, config->source, span, err);
			replace_text(credential, vg_strndup(span.data, span.size), span.size);
		}
		if (r < 0) {
			vg_credentials_release(credentials);
			return r;
		}
	}
	return 0;
}

void vg_credentials_release(struct vg_credentials *credentials)
{
	if (!credentials)
		return;
	for (int i = 0; i < VG_CREDENTIAL_COUNT; i++)
		replace_text(&credentials->item[i], NULL, 0);
}

bool vg_credentials_refresh(struct vg_credentials *credentials)
{
	bool changed = false;

	for (int i = 0; i < VG_CREDENTIAL_COUNT; i++) {
		struct vg_credential *credential = &credentials->item[i];
		struct vg_err err = { 0 };
		int r;

		if (!credential->path)
			continue;
		r = read_one(credential, (enum vg_credential_kind)i, &err);
		if (r < 0 && !credential->failing)
			vg_warn("kube", "a credential cannot be read again, the old one stays",
				VG_S("error", err.msg));
		if (r > 0)
			vg_info("kube", "a credential was read again", VG_S("what", what[i]),
				VG_S("path", credential->path));
		credential->failing = r < 0;
		changed = changed || r > 0;
	}
	return changed;
}

void vg_credentials_expire(struct vg_credentials *credentials)
{
	for (int i = 0; i < VG_CREDENTIAL_COUNT; i++)
		credentials->item[i].changed_ns = -1;
}
