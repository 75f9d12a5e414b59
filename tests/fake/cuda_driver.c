/* SPDX-License-Identifier: Apache-2.0 */
/* Start, end, fork, objects, versions and error names of the fake libcuda.so.1. */
#include "cuda_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct fake_driver fake = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* ---- objects ---- */

static struct fake_object *buckets[FAKE_BUCKETS];

static struct fake_object **bucket_of(const void *handle)
{
	return &buckets[((uintptr_t)handle >> 4) % FAKE_BUCKETS];
}

struct fake_object *fake_bucket(uint32_t index)
{
	return buckets[index];
}

void *fake_object_new(size_t size, enum fake_kind kind, struct CUctx_st *context)
{
	struct fake_object *object = vg_new(size);
	struct fake_object **bucket = bucket_of(object);

	object->kind = kind;
	object->context = context;
	object->hash_next = *bucket;
	*bucket = object;
	if (context) {
		object->next = context->objects;
		if (object->next)
			object->next->previous = object;
		context->objects = object;
	}
	return object;
}

void fake_object_free(void *handle)
{
	struct fake_object *object = handle;
	struct fake_object **at = bucket_of(object);

	while (*at != object)
		at = &(*at)->hash_next;
	*at = object->hash_next;
	if (object->context) {
		if (object->previous)
			object->previous->next = object->next;
		else
			object->context->objects = object->next;
		if (object->next)
			object->next->previous = object->previous;
	}
	free(object);
}

bool fake_is(const void *handle, enum fake_kind kind)
{
	if (!handle)
		return false;
	for (const struct fake_object *at = *bucket_of(handle); at; at = at->hash_next) {
		if (at == handle)
			return at->kind == kind;
	}
	return false;
}

/* ---- entry ---- */

CUresult fake_enter(const char *symbol, unsigned int need)
{
	int code;

	fake_trace_setup();
	pthread_mutex_lock(&fake.lock);
	if (fake_trace_fails(symbol, &code))
		return code;
	if (fake.phase == FAKE_GONE)
		return CUDA_ERROR_DEINITIALIZED;
	if ((need & FAKE_INIT) && fake.phase != FAKE_READY)
		return CUDA_ERROR_NOT_INITIALIZED;
	if ((need & FAKE_CURRENT) == FAKE_CURRENT) {
		CUresult rc = fake_current_check();

		if (rc != CUDA_SUCCESS)
			return rc;
	}
	if ((need & FAKE_UNSAFE) && fake.captures)
		return fake_capture_forbids();
	return CUDA_SUCCESS;
}

void fake_leave(void)
{
	pthread_mutex_unlock(&fake.lock);
}

/* ---- fork and exit ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&fake.lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&fake.lock);
}

/* As with the real driver, a child can start CUDA only if its parent had not. */
static void after_fork_child(void)
{
	fake_pump_after_fork();
	fake_trace_after_fork();
	if (fake.phase == FAKE_READY) {
		fake.phase = FAKE_FORKED;
		fake_state_after_fork(fake.state);
		fake.state = NULL;
	}
	/* The one thread of the child is the one that locked. */
	pthread_mutex_unlock(&fake.lock);
}

static void __attribute__((constructor)) loaded(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&fake.changed, &attr);
	pthread_condattr_destroy(&attr);
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* The process ends: its memory is free before its last instruction, as when the kernel closes a
 * real device. Other threads may still be calling: they are told that it is over. */
static void __attribute__((destructor)) unloaded(void)
{
	bool was_ready;

	pthread_mutex_lock(&fake.lock);
	was_ready = fake.phase == FAKE_READY;
	fake.phase = FAKE_GONE;
	if (was_ready)
		fake_state_leave(fake.state);
	pthread_mutex_unlock(&fake.lock);
	fake_pump_stop();
}

/* ---- start ---- */

static bool know_machine(void)
{
	struct vg_err err = { 0 };

	if (fake.machine_known)
		return true;
	if (fake_machine_load(&fake.machine, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return false;
	}
	fake.machine_known = true;
	return true;
}

int fake_cuda_version(void)
{
	return know_machine() ? fake.machine.cuda_version : 0;
}

FAKE_CUDA(cuInit, FAKE_ANY, (unsigned int flags), (flags))
{
	struct vg_err err = { 0 };

	if (fake.phase == FAKE_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (fake.phase == FAKE_READY)
		return CUDA_SUCCESS;
	if (!know_machine())
		return CUDA_ERROR_SYSTEM_NOT_READY;
	fake.devices = 0;
	fake_devices_choose();
	if (!fake.devices)
		return CUDA_ERROR_NO_DEVICE;
	if (fake_state_attach(&fake.machine, &fake.state, &err) < 0 ||
	    fake_state_join(fake.state, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	fake.phase = FAKE_READY;
	fake_contexts_setup();
	fake_pools_setup();
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDriverGetVersion, FAKE_ANY, (int *version), (version))
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	if (!know_machine())
		return CUDA_ERROR_SYSTEM_NOT_READY;
	*version = fake.machine.cuda_version;
	return CUDA_SUCCESS;
}

/* ---- errors ---- */

struct error_text {
	CUresult code;
	const char *name, *text;
};

static const struct error_text errors[] = {
#define FAKE_ERROR(name, code, text) { code, #name, text },
#include "cuda_errors.def"
#undef FAKE_ERROR
};

static const struct error_text *error_of(CUresult code)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].code == code)
			return &errors[i];
	}
	return NULL;
}

FAKE_API CUresult cuGetErrorName(CUresult code, const char **name);
FAKE_API CUresult cuGetErrorName(CUresult code, const char **name)
{
	const struct error_text *error = error_of(code);

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = error ? error->name : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FAKE_API CUresult cuGetErrorString(CUresult code, const char **text);
FAKE_API CUresult cuGetErrorString(CUresult code, const char **text)
{
	const struct error_text *error = error_of(code);

	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = error ? error->text : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
