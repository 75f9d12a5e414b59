/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that grows has its maximum here. The edges enforce them and answer with an error that
 * names the limit; behind the edges they are facts that code may rely on.
 */
#ifndef VGPU_BASE_LIMITS_H
#define VGPU_BASE_LIMITS_H

/* ---- HTTP ---- */
/* A node list of 20,000 names of 253 bytes is 5 MiB; whole Node objects are about 8 KiB each. */
#define VG_LIMIT_FILTER_BODY_BYTES  (64u << 20)
#define VG_LIMIT_BIND_BODY_BYTES    (64u << 10)
/* The API server itself refuses objects over 3 MiB (etcd: 1.5 MiB). */
#define VG_LIMIT_WEBHOOK_BODY_BYTES (8u << 20)
#define VG_LIMIT_EXPLAIN_BODY_BYTES (8u << 20)
/* The metrics of 5,000 nodes with 8 cards each are about 60 MiB. */
#define VG_LIMIT_REPLY_BYTES        (256u << 20)
/* People's questions: names in ?node=, nodes with every check in one answer. */
#define VG_LIMIT_QUERY_NAMES        256u
#define VG_LIMIT_EXPLAIN_NODES      1000u
#define VG_LIMIT_HTTP_CONNECTIONS   512u
#define VG_LIMIT_HTTP_IDLE_S        75u
#define VG_LIMIT_HTTP_HEADER_BYTES  (32u << 10)
/* From the request line to the last byte of the body. */
#define VG_LIMIT_HTTP_RECEIVE_S     60u
/* Bodies of one listener that are in memory at a time. */
#define VG_LIMIT_HTTP_BODIES_BYTES  (256u << 20)
/* A refused body is read to its end, so that the client gets to see the answer; up to so much. */
#define VG_LIMIT_HTTP_DISCARD_BYTES (64u << 20)
/* Certificates and keys. */
#define VG_LIMIT_PEM_BYTES          (1u << 20)

/* ---- JSON and YAML ---- */
/* Kubernetes objects are about 15 deep. */
#define VG_LIMIT_JSON_DEPTH       128u
#define VG_LIMIT_YAML_BYTES       (64u << 20)
#define VG_LIMIT_YAML_DEPTH       64u
#define VG_LIMIT_YAML_NODES       (8u << 20)
/* A ConfigMap cannot be larger than this. */
#define VG_LIMIT_CONFIG_BYTES     (1u << 20)
/* A saved cluster: 5,000 nodes and 20,000 pods, as kubectl prints them, take 100 to 200 MiB. */
#define VG_LIMIT_SNAPSHOT_BYTES   (512u << 20)
#define VG_LIMIT_SNAPSHOT_PODS    200000u
#define VG_LIMIT_SNAPSHOT_QUOTAS  20000u
/* Pods that came with requests; about 16 KiB each. */
#define VG_LIMIT_SNAPSHOT_LEARNED 10000u

/* ---- cluster ---- */
#define VG_LIMIT_NODES              20000u
#define VG_LIMIT_CARDS_PER_NODE     64u
#define VG_LIMIT_CONTAINERS_PER_POD 64u
#define VG_LIMIT_CARDS_PER_REQUEST  64u
/* use-/nouse- lists of a pod: each member is compared with each card of the cluster. */
#define VG_LIMIT_WORDS_PER_LIST     256u
#define VG_LIMIT_NAME_BYTES         253u /* RFC 1123 subdomain, Kubernetes object names */
#define VG_LIMIT_UUID_BYTES         96u
#define VG_LIMIT_MODEL_BYTES        96u
#define VG_LIMIT_MODELS             1024u /* different card models in one cluster */
/* All annotations of an object together are at most 256 KiB (apimachinery validation). */
#define VG_LIMIT_ANNOTATION_BYTES   (256u << 10)
#define VG_LIMIT_REASON_BYTES       512u
/* What is said about a ResourceQuota that does not say what its writer may think. */
#define VG_LIMIT_QUOTA_TEXT_BYTES   4096u

/* ---- API server client ---- */
#define VG_LIMIT_LIST_PAGE        500u
#define VG_LIMIT_LIST_PAGE_BYTES  (256u << 20)
#define VG_LIMIT_WATCH_LINE_BYTES (16u << 20)
#define VG_LIMIT_NUDGE_QUEUE      1024u
#define VG_LIMIT_NUDGES_IN_FLIGHT 16u
#define VG_LIMIT_BIND_QUEUE       4096u
#define VG_LIMIT_API_REPLY_BYTES  (4u << 20)
/* What stands around the items of a list page: kind, metadata. */
#define VG_LIMIT_LIST_HEAD_BYTES  (1u << 20)
#define VG_LIMIT_BIND_PARALLEL    64u
/* Deleted objects whose version is remembered, so that an event out of order does not revive them. */
#define VG_LIMIT_TOMBSTONES       4096u
#define VG_LIMIT_KUBECONFIG_BYTES (1u << 20)
/* A token, a certificate chain, a bundle of CAs. */
#define VG_LIMIT_CREDENTIAL_BYTES (1u << 20)

#endif
