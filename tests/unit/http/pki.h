/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates made for one test run, and a TLS client. */
#ifndef VGPU_TESTS_HTTP_PKI_H
#define VGPU_TESTS_HTTP_PKI_H

#include "unit/http/wire.h"

#include <time.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

struct pki_pair {
	gnutls_x509_crt_t cert;
	gnutls_x509_privkey_t key;
	char cert_pem[8192];
	char key_pem[8192];
};

/* `issuer` NULL: a CA that signs itself. `purpose` is a GNUTLS_KP_… text, NULL for a CA. */
static inline struct pki_pair *pki_make(const char *name, struct pki_pair *issuer,
					const char *purpose, uint8_t serial, time_t expires)
{
	struct pki_pair *pair = calloc(1, sizeof(*pair));
	uint8_t id = serial;
	size_t size;

	assert_non_null(pair);
	assert_int_equal(gnutls_x509_privkey_init(&pair->key), 0);
	assert_int_equal(
		gnutls_x509_privkey_generate(pair->key, GNUTLS_PK_ECDSA,
					     GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
		0);
	assert_int_equal(gnutls_x509_crt_init(&pair->cert), 0);
	gnutls_x509_crt_set_version(pair->cert, 3);
	gnutls_x509_crt_set_serial(pair->cert, &id, 1);
	gnutls_x509_crt_set_dn_by_oid(pair->cert, GNUTLS_OID_X520_COMMON_NAME, 0, name,
				      (unsigned)strlen(name));
	gnutls_x509_crt_set_key(pair->cert, pair->key);
	gnutls_x509_crt_set_activation_time(pair->cert, time(NULL) - 3600);
	gnutls_x509_crt_set_expiration_time(pair->cert, expires ? expires : time(NULL) + 86400);
	gnutls_x509_crt_set_basic_constraints(pair->cert, issuer ? 0 : 1, -1);
	if (issuer) {
		gnutls_x509_crt_set_key_usage(pair->cert, GNUTLS_KEY_DIGITAL_SIGNATURE);
		gnutls_x509_crt_set_subject_alt_name(pair->cert, GNUTLS_SAN_DNSNAME, "localhost", 9,
						     GNUTLS_FSAN_SET);
		gnutls_x509_crt_set_key_purpose_oid(pair->cert, purpose, 0);
	} else {
		gnutls_x509_crt_set_key_usage(pair->cert, GNUTLS_KEY_KEY_CERT_SIGN);
	}
	assert_int_equal(gnutls_x509_crt_sign2(pair->cert, issuer ? issuer->cert : pair->cert,
					       issuer ? issuer->key : pair->key, GNUTLS_DIG_SHA256,
					       0),
			 0);
	size = sizeof(pair->cert_pem);
	assert_int_equal(
		gnutls_x509_crt_export(pair->cert, GNUTLS_X509_FMT_PEM, pair->cert_pem, &size), 0);
	size = sizeof(pair->key_pem);
	assert_int_equal(
		gnutls_x509_privkey_export(pair->key, GNUTLS_X509_FMT_PEM, pair->key_pem, &size),
		0);
	return pair;
}

static inline void pki_free(struct pki_pair *pair)
{
	gnutls_x509_crt_deinit(pair->cert);
	gnutls_x509_privkey_deinit(pair->key);
	free(pair);
}

struct pki_client {
	int fd;
	gnutls_session_t session;
	gnutls_certificate_credentials_t credentials;
	uint8_t serial; /* of the certificate that the server showed */
};

static inline struct pki_client *pki_connect(uint16_t port, const struct pki_pair *own)
{
	struct pki_client *client = calloc(1, sizeof(*client));
	const gnutls_datum_t *chain;
	gnutls_x509_crt_t leaf;
	unsigned count = 0;
	size_t size = 1;
	int r;

	assert_non_null(client);
	client->fd = wire_connect(port);
	/* Shows the certificate to anybody, also where the server's list of CAs does not have it. */
	gnutls_init(&client->session,
		    GNUTLS_CLIENT | GNUTLS_NO_SIGNAL | (own ? GNUTLS_FORCE_CLIENT_CERT : 0));
	gnutls_certificate_allocate_credentials(&client->credentials);
	if (own) {
		gnutls_x509_crt_t cert = own->cert;

		assert_int_equal(
			gnutls_certificate_set_x509_key(client->credentials, &cert, 1, own->key),
			0);
	}
	gnutls_set_default_priority(client->session);
	gnutls_credentials_set(client->session, GNUTLS_CRD_CERTIFICATE, client->credentials);
	gnutls_transport_set_int(client->session, client->fd);
	do {
		r = gnutls_handshake(client->session);
	} while (r == GNUTLS_E_AGAIN || r == GNUTLS_E_INTERRUPTED);
	if (r != 0)
		fail_msg("handshake: %s", gnutls_strerror(r));
	chain = gnutls_certificate_get_peers(client->session, &count);
	assert_true(chain && count > 0);
	gnutls_x509_crt_init(&leaf);
	assert_int_equal(gnutls_x509_crt_import(leaf, &chain[0], GNUTLS_X509_FMT_DER), 0);
	assert_int_equal(gnutls_x509_crt_get_serial(leaf, &client->serial, &size), 0);
	gnutls_x509_crt_deinit(leaf);
	return client;
}

static inline ssize_t pki_get(void *ctx, void *data, size_t size)
{
	struct pki_client *client = ctx;
	ssize_t got;

	do {
		got = gnutls_record_recv(client->session, data, size);
	} while (got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED);
	return got;
}

static inline void pki_send(struct pki_client *client, const char *text)
{
	assert_int_equal(gnutls_record_send(client->session, text, strlen(text)), strlen(text));
}

static inline void pki_read(struct pki_client *client, struct wire_reply *reply)
{
	wire_read_by(pki_get, client, false, reply);
}

static inline void pki_close(struct pki_client *client)
{
	gnutls_deinit(client->session);
	gnutls_certificate_free_credentials(client->credentials);
	close(client->fd);
	free(client);
}

#endif
