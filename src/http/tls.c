/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates: read, checked before they are used, and the check of a client's. */
#include <errno.h>
#include <string.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/limits.h"
#include "http/http_internal.h"

static gnutls_datum_t datum(const char *text)
{
	/* GnuTLS takes input as `unsigned char *` and does not write to it. */
	union {
		const char *in;
		unsigned char *out;
	} cast = { .in = text };

	return (gnutls_datum_t){ .data = cast.out, .size = text ? (unsigned)strlen(text) : 0 };
}

static int read_pem(const char *path, char **ret_text, struct vg_err *err)
{
	vg_autofree char *text = NULL;
	size_t size;
	int r = vg_read_file(path, VG_LIMIT_PEM_BYTES, &text, &size, err);

	if (r < 0)
		return r;
	if (size == 0 || strlen(text) != size)
		return vg_fail(err, EINVAL, "%s: holds no PEM text", path);
	*ret_text = vg_steal(text);
	return 0;
}

/* The leaf of a chain: the first certificate of the file. */
static int expiry_of(const char *path, const char *cert, int64_t *ret_unix_s, struct vg_err *err)
{
	gnutls_datum_t pem = datum(cert);
	gnutls_x509_crt_t *chain = NULL;
	unsigned count = 0;
	int r = gnutls_x509_crt_list_import2(&chain, &count, &pem, GNUTLS_X509_FMT_PEM, 0);

	if (r < 0 || count == 0)
		return vg_fail(err, EINVAL, "%s: holds no certificate: %s", path,
			       gnutls_strerror(r));
	*ret_unix_s = (int64_t)gnutls_x509_crt_get_expiration_time(chain[0]);
	for (unsigned i = 0; i < count; i++)
		gnutls_x509_crt_deinit(chain[i]);
	gnutls_free(chain);
	return 0;
}

static int check_pair(const char *cert_path, const char *key_path, const char *cert,
		      const char *key, struct vg_err *err)
{
	gnutls_certificate_credentials_t credentials;
	gnutls_datum_t cert_pem = datum(cert);
	gnutls_datum_t key_pem = datum(key);
	int r = gnutls_certificate_allocate_credentials(&credentials);

	if (r < 0)
		return vg_fail(err, ENOMEM, "TLS: %s", gnutls_strerror(r));
	r = gnutls_certificate_set_x509_key_mem(credentials, &cert_pem, &key_pem,
						GNUTLS_X509_FMT_PEM);
	gnutls_certificate_free_credentials(credentials);
	if (r == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
		return vg_fail(err, EINVAL,
			       "%s is not the key of %s; were both files replaced together?",
			       key_path, cert_path);
	if (r < 0)
		return vg_fail(err, EINVAL, "%s with %s: %s", cert_path, key_path,
			       gnutls_strerror(r));
	return 0;
}

static int check_client_ca(const char *path, const char *client_ca, struct vg_err *err)
{
	gnutls_certificate_credentials_t credentials;
	gnutls_datum_t pem = datum(client_ca);
	int r = gnutls_certificate_allocate_credentials(&credentials);

	if (r < 0)
		return vg_fail(err, ENOMEM, "TLS: %s", gnutls_strerror(r));
	r = gnutls_certificate_set_x509_trust_mem(credentials, &pem, GNUTLS_X509_FMT_PEM);
	gnutls_certificate_free_credentials(credentials);
	if (r < 0)
		return vg_fail(err, EINVAL, "%s: %s", path, gnutls_strerror(r));
	if (r == 0)
		return vg_fail(err, EINVAL, "%s: holds no certificate", path);
	return 0;
}

int vg_tls_load(const char *cert_path, const char *key_path, const char *client_ca_path,
		struct vg_tls_files *ret_files, struct vg_err *err)
{
	vg_cleanup(vg_tls_files_release) struct vg_tls_files files = { 0 };
	int r;

	r = read_pem(cert_path, &files.cert, err);
	if (r < 0)
		return r;
	r = read_pem(key_path, &files.key, err);
	if (r < 0)
		return r;
	r = expiry_of(cert_path, files.cert, &files.expires_unix_s, err);
	if (r < 0)
		return r;
	r = check_pair(cert_path, key_path, files.cert, files.key, err);
	if (r < 0)
		return r;
	if (client_ca_path) {
		r = read_pem(client_ca_path, &files.client_ca, err);
		if (r < 0)
			return r;
		r = check_client_ca(client_ca_path, files.client_ca, err);
		if (r < 0)
			return r;
	}
	*ret_files = files;
	files = (struct vg_tls_files){ 0 };
	return 0;
}

void vg_tls_files_release(struct vg_tls_files *files)
{
	if (!files)
		return;
	free(files->cert);
	if (files->key)
		explicit_bzero(files->key, strlen(files->key));
	free(files->key);
	free(files->client_ca);
	*files = (struct vg_tls_files){ 0 };
}

int vg_tls_verify_client(void *session, struct vg_err *err)
{
	/* A server's certificate of the same CA must not open this door. */
	char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
	gnutls_typed_vdata_st want = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
				       .data = (unsigned char *)purpose };
	gnutls_datum_t words = { 0 };
	unsigned status = 0;
	int r = gnutls_certificate_verify_peers(session, &want, 1, &status);

	if (r == GNUTLS_E_NO_CERTIFICATE_FOUND)
		return vg_fail(err, EACCES,
			       "this listener wants a client certificate and got none");
	if (r < 0)
		return vg_fail(err, EACCES, "the client certificate cannot be checked: %s",
			       gnutls_strerror(r));
	if (status == 0)
		return 0;
	r = gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &words, 0);
	if (r < 0)
		return vg_fail(err, EACCES, "the client certificate is not accepted");
	vg_fail(err, EACCES, "the client certificate is not accepted: %.*s", (int)words.size,
		(const char *)words.data);
	gnutls_free(words.data);
	return -EACCES;
}
