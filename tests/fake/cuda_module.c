/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images and what is in them. Of PTX text the fake reads the names, the parameters of the kernels and
 * the sizes of the variables; of a compiled image nothing.
 */
#include "cuda_module.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/num.h"

#define IMAGE_BYTES_MAX  (64u << 20)
#define MAGIC_ELF        0x464c457fu
#define MAGIC_FATBIN     0xba55ed50u
#define MAGIC_FATBIN_BOX 0x466243b1u

/* ---- PTX ---- */

/* A copy without comments. */
static char *ptx_copy(const char *text)
{
	char *copy = vg_strdup(text), *to = copy;

	for (const char *from = text; *from;) {
		if (from[0] == '/' && from[1] == '/') {
			while (*from && *from != '\n')
				from++;
		} else if (from[0] == '/' && from[1] == '*') {
			const char *end = strstr(from + 2, "*/");

			from = end ? end + 2 : from + strlen(from);
			*to++ = ' ';
		} else {
			*to++ = *from++;
		}
	}
	*to = 0;
	return copy;
}

/* CUDA_SUCCESS and the text, or NULL for a compiled image. */
static CUresult image_kind(const void *image, char **ret_ptx)
{
	const unsigned char *bytes = image;
	uint32_t magic;

	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	if (isspace(bytes[0]) || bytes[0] == '.' || bytes[0] == '/') {
		if (!strstr(image, ".version"))
			return CUDA_ERROR_INVALID_PTX;
		*ret_ptx = ptx_copy(image);
		return CUDA_SUCCESS;
	}
	for (int i = 0; i < 4; i++) {
		if (!bytes[i])
			return CUDA_ERROR_INVALID_IMAGE;
	}
	memcpy(&magic, image, sizeof(magic));
	if (magic != MAGIC_ELF && magic != MAGIC_FATBIN && magic != MAGIC_FATBIN_BOX)
		return CUDA_ERROR_INVALID_IMAGE;
	*ret_ptx = NULL;
	return CUDA_SUCCESS;
}

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Cuts the next word (a name, a number or a directive such as ".u64") or sign off the text. */
static struct vg_span token(const char **at)
{
	const char *start;

	while (isspace((unsigned char)**at))
		(*at)++;
	start = *at;
	if (*start == '.' || word_char(*start)) {
		(*at)++;
		while (word_char(**at))
			(*at)++;
	} else if (*start) {
		(*at)++;
	}
	return (struct vg_span){ start, (size_t)(*at - start) };
}

/* ".u64" to 8; 0 for what is no type. */
static uint32_t type_bytes(struct vg_span word)
{
	struct vg_span digits = { word.data + 2, word.size - 2 };
	uint64_t bits;

	if (word.size < 3 || word.data[0] != '.' || !strchr("busf", word.data[1]) ||
	    vg_parse_u64(digits, 8, 128, &bits, NULL) < 0)
		return 0;
	return (uint32_t)bits / 8;
}

static uint64_t number_of(struct vg_span word)
{
	uint64_t value;

	return vg_parse_u64(word, 0, UINT64_MAX, &value, NULL) < 0 ? 0 : value;
}

/* Reads "( .param .u64 a, .param .align 8 .b8 b[24] )" behind a kernel's name. */
static void parse_params(struct CUfunc_st *function, const char *at)
{
	struct vg_span word = token(&at);
	uint32_t offset = 0;

	function->params_known = true;
	if (!vg_span_eq(word, "("))
		return;
	while (word.size && !vg_span_eq(word, ")") && function->params < FAKE_PARAMS_MAX) {
		uint64_t align = 0, bytes = 0;

		for (word = token(&at);
		     word.size && !vg_span_eq(word, ",") && !vg_span_eq(word, ")");
		     word = token(&at)) {
			if (vg_span_eq(word, ".align"))
				align = number_of(token(&at));
			else if (type_bytes(word))
				bytes = type_bytes(word);
			else if (vg_span_eq(word, "["))
				bytes *= number_of(token(&at));
		}
		if (!bytes)
			continue;
		if (!align)
			align = bytes;
		offset = (uint32_t)((offset + align - 1) / align * align);
		function->param_offset[function->params] = offset;
		function->param_bytes[function->params] = (uint32_t)bytes;
		function->params++;
		offset += (uint32_t)bytes;
	}
	function->params_bytes = offset;
}

/* The place behind ".entry name" in the text, or NULL. */
static const char *find_entry(const char *ptx, const char *name)
{
	for (const char *at = strstr(ptx, ".entry"); at; at = strstr(at, ".entry")) {
		at += strlen(".entry");
		if (vg_span_eq(token(&at), name))
			return at;
	}
	return NULL;
}

static void globals_read(struct fake_global **list, const char *ptx)
{
	for (const char *at = strstr(ptx, ".global"); at; at = strstr(at, ".global")) {
		struct vg_span word, name = { NULL, 0 };
		uint64_t bytes = 0;

		at += strlen(".global");
		/* "ld.global.u32 …" is an instruction. */
		if (*at != ' ' && *at != '\t' && *at != '\n')
			continue;
		for (word = token(&at);
		     word.size && !vg_span_eq(word, ";") && !vg_span_eq(word, "=");
		     word = token(&at)) {
			if (vg_span_eq(word, ".align"))
				token(&at);
			else if (type_bytes(word))
				bytes = type_bytes(word);
			else if (vg_span_eq(word, "["))
				bytes *= number_of(token(&at));
			else if (!name.data && word_char(word.data[0]))
				name = word;
		}
		if (name.data && bytes) {
			struct fake_global *global = vg_new(sizeof(*global));

			global->name = vg_strndup(name.data, name.size);
			global->bytes = bytes;
			global->next = *list;
			*list = global;
		}
	}
}

/* ---- functions ---- */

static struct CUfunc_st *function_new(const char *name, const char *params)
{
	struct CUfunc_st *function = fake_object_new(sizeof(*function), FAKE_FUNCTION, NULL);

	function->name = vg_strdup(name);
	function->attribute[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
	function->attribute[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32;
	function->attribute[CU_FUNC_ATTRIBUTE_PTX_VERSION] = 90;
	function->attribute[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 90;
	function->attribute[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
	function->block[0] = function->block[1] = function->block[2] = 1;
	if (params)
		parse_params(function, params);
	return function;
}

void fake_function_release(struct CUfunc_st *function)
{
	free(function->name);
}

static void functions_free(struct CUfunc_st *list)
{
	while (list) {
		struct CUfunc_st *next = list->next;

		fake_object_destroy(&list->object);
		list = next;
	}
}

static CUresult function_get(struct CUfunc_st **list, const char *ptx, const char *name,
			     struct CUfunc_st **ret_function)
{
	const char *params = NULL;

	for (struct CUfunc_st *function = *list; function; function = function->next) {
		if (strcmp(function->name, name) == 0) {
			*ret_function = function;
			return CUDA_SUCCESS;
		}
	}
	if (ptx) {
		params = find_entry(ptx, name);
		if (!params)
			return CUDA_ERROR_NOT_FOUND;
	}
	*ret_function = function_new(name, params);
	(*ret_function)->next = *list;
	*list = *ret_function;
	return CUDA_SUCCESS;
}

/* ---- modules ---- */

void fake_module_release(struct CUmod_st *module)
{
	if (module->library)
		module->library->module[module->object.context->device] = NULL;
	functions_free(module->functions);
	while (module->globals) {
		struct fake_global *next = module->globals->next;

		/* A context that ends has freed its memory already. */
		if (module->globals->alloc && module->object.context->alive)
			fake_alloc_release(module->globals->alloc);
		free(module->globals->name);
		free(module->globals);
		module->globals = next;
	}
	free(module->ptx);
}

static CUresult module_new(struct CUctx_st *context, char *ptx, struct CUmod_st **ret_module)
{
	struct CUmod_st *module = fake_object_new(sizeof(*module), FAKE_MODULE, context);

	module->ptx = ptx;
	if (ptx)
		globals_read(&module->globals, ptx);
	for (struct fake_global *global = module->globals; global; global = global->next) {
		CUresult rc =
			fake_device_alloc(context, global->bytes, FAKE_MEM_GLOBAL, &global->alloc);

		if (rc != CUDA_SUCCESS) {
			fake_object_destroy(&module->object);
			return rc;
		}
	}
	*ret_module = module;
	return CUDA_SUCCESS;
}

static CUresult module_load(CUmodule *ret_module, const void *image)
{
	char *ptx;
	CUresult rc;

	if (!ret_module)
		return CUDA_ERROR_INVALID_VALUE;
	rc = image_kind(image, &ptx);
	return rc == CUDA_SUCCESS ? module_new(fake_current(), ptx, ret_module) : rc;
}

/* The file's content with a NUL behind it. */
static CUresult read_image(const char *path, char **ret_image)
{
	vg_autofclose FILE *file = path ? fopen(path, "re") : NULL;
	vg_autofree char *image = NULL;
	long size;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	if (!file || fseek(file, 0, SEEK_END) < 0 || (size = ftell(file)) < 0 ||
	    size > (long)IMAGE_BYTES_MAX)
		return CUDA_ERROR_FILE_NOT_FOUND;
	rewind(file);
	image = vg_new((size_t)size + 4);
	if (fread(image, 1, (size_t)size, file) != (size_t)size)
		return CUDA_ERROR_FILE_NOT_FOUND;
	*ret_image = vg_steal(image);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuModuleLoadData, FAKE_CURRENT, (CUmodule * module, const void *image), (module, image))
{
	return module_load(module, image);
}

FAKE_CUDA(cuModuleLoadDataEx, FAKE_CURRENT,
	  (CUmodule * module, const void *image, unsigned int count, CUjit_option *options,
	   void **values),
	  (module, image, count, options, values))
{
	if (count && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	return module_load(module, image);
}

FAKE_CUDA(cuModuleLoadFatBinary, FAKE_CURRENT, (CUmodule * module, const void *image),
	  (module, image))
{
	return module_load(module, image);
}

FAKE_CUDA(cuModuleLoad, FAKE_CURRENT, (CUmodule * module, const char *path), (module, path))
{
	vg_autofree char *image = NULL;
	CUresult rc = read_image(path, &image);

	return rc == CUDA_SUCCESS ? module_load(module, image) : rc;
}

FAKE_CUDA(cuModuleUnload, FAKE_CURRENT, (CUmodule module), (module))
{
	if (!fake_is(module, FAKE_MODULE) || module->library)
		return CUDA_ERROR_INVALID_HANDLE;
	fake_device_wait(module->object.context->device);
	if (!fake_is(module, FAKE_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	fake_object_destroy(&module->object);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuModuleGetFunction, FAKE_CURRENT,
	  (CUfunction * function, CUmodule module, const char *name), (function, module, name))
{
	CUresult rc;

	if (!function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(module, FAKE_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	rc = function_get(&module->functions, module->ptx, name, function);
	if (rc == CUDA_SUCCESS)
		(*function)->module = module;
	return rc;
}

static unsigned int entry_count(const char *ptx)
{
	unsigned int count = 0;

	for (const char *at = ptx ? strstr(ptx, ".entry") : NULL; at; at = strstr(at + 1, ".entry"))
		count++;
	return count;
}

FAKE_CUDA(cuModuleGetFunctionCount, FAKE_INIT, (unsigned int *count, CUmodule module),
	  (count, module))
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(module, FAKE_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	*count = entry_count(module->ptx);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuModuleEnumerateFunctions, FAKE_INIT,
	  (CUfunction * functions, unsigned int count, CUmodule module), (functions, count, module))
{
	const char *at;

	if (!functions || !count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(module, FAKE_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	at = module->ptx ? strstr(module->ptx, ".entry") : NULL;
	for (unsigned int i = 0; at && i < count; i++, at = strstr(at, ".entry")) {
		vg_autofree char *name = NULL;
		struct vg_span word;

		at += strlen(".entry");
		word = token(&at);
		name = vg_strndup(word.data, word.size);
		function_get(&module->functions, module->ptx, name, &functions[i]);
		functions[i]->module = module;
	}
	return CUDA_SUCCESS;
}

static CUresult global_get(const struct CUmod_st *module, CUdeviceptr *pointer, size_t *bytes,
			   const char *name)
{
	for (const struct fake_global *global = module->globals; global; global = global->next) {
		if (strcmp(global->name, name) != 0)
			continue;
		if (pointer)
			*pointer = global->alloc->base;
		if (bytes)
			*bytes = global->bytes;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

FAKE_CUDA(cuModuleGetGlobal_v2, FAKE_CURRENT,
	  (CUdeviceptr * pointer, size_t *bytes, CUmodule module, const char *name),
	  (pointer, bytes, module, name))
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(module, FAKE_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	return global_get(module, pointer, bytes, name);
}

FAKE_CUDA(cuModuleGetTexRef, FAKE_CURRENT,
	  (CUtexref * reference, CUmodule module, const char *name), (reference, module, name))
{
	return reference && name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

FAKE_CUDA(cuModuleGetSurfRef, FAKE_CURRENT,
	  (CUsurfref * reference, CUmodule module, const char *name), (reference, module, name))
{
	return reference && name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

FAKE_CUDA(cuModuleGetLoadingMode, FAKE_INIT, (CUmoduleLoadingMode * mode), (mode))
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = 2; /* lazy */
	return CUDA_SUCCESS;
}

/* ---- libraries: loaded once, with a module in each context that asks ---- */

static CUresult library_load(CUlibrary *ret_library, const void *image)
{
	struct CUlib_st *library;
	char *ptx;
	CUresult rc;

	if (!ret_library)
		return CUDA_ERROR_INVALID_VALUE;
	rc = image_kind(image, &ptx);
	if (rc != CUDA_SUCCESS)
		return rc;
	library = fake_object_new(sizeof(*library), FAKE_LIBRARY, NULL);
	library->ptx = ptx;
	*ret_library = library;
	return CUDA_SUCCESS;
}

static CUresult library_module(struct CUlib_st *library, struct CUmod_st **ret_module)
{
	struct CUctx_st *context = fake_current();
	struct CUmod_st **module;

	if (!context)
		return fake_current_check();
	module = &library->module[context->device];
	if (!*module) {
		CUresult rc =
			module_new(context, library->ptx ? vg_strdup(library->ptx) : NULL, module);

		if (rc != CUDA_SUCCESS) {
			*module = NULL;
			return rc;
		}
		(*module)->library = library;
	}
	*ret_module = *module;
	return CUDA_SUCCESS;
}

void fake_library_release(struct CUlib_st *library)
{
	for (uint32_t i = 0; i < FAKE_CARDS_MAX; i++) {
		if (library->module[i])
			fake_object_destroy(&library->module[i]->object);
	}
	functions_free(library->kernels);
	free(library->ptx);
}

FAKE_CUDA(cuLibraryLoadData, FAKE_INIT,
	  (CUlibrary * library, const void *image, CUjit_option *options, void **values,
	   unsigned int count, CUlibraryOption *library_options, void **library_values,
	   unsigned int library_count),
	  (library, image, options, values, count, library_options, library_values, library_count))
{
	if ((count && (!options || !values)) ||
	    (library_count && (!library_options || !library_values)))
		return CUDA_ERROR_INVALID_VALUE;
	return library_load(library, image);
}

FAKE_CUDA(cuLibraryLoadFromFile, FAKE_INIT,
	  (CUlibrary * library, const char *path, CUjit_option *options, void **values,
	   unsigned int count, CUlibraryOption *library_options, void **library_values,
	   unsigned int library_count),
	  (library, path, options, values, count, library_options, library_values, library_count))
{
	vg_autofree char *image = NULL;
	CUresult rc;

	if ((count && (!options || !values)) ||
	    (library_count && (!library_options || !library_values)))
		return CUDA_ERROR_INVALID_VALUE;
	rc = read_image(path, &image);
	return rc == CUDA_SUCCESS ? library_load(library, image) : rc;
}

FAKE_CUDA(cuLibraryUnload, FAKE_INIT, (CUlibrary library), (library))
{
	if (!fake_is(library, FAKE_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	for (uint32_t i = 0; i < fake.devices; i++)
		fake_device_wait(i);
	if (!fake_is(library, FAKE_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	fake_object_destroy(&library->object);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuLibraryGetKernel, FAKE_INIT, (CUkernel * kernel, CUlibrary library, const char *name),
	  (kernel, library, name))
{
	struct CUfunc_st *function;
	CUresult rc;

	if (!kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(library, FAKE_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	rc = function_get(&library->kernels, library->ptx, name, &function);
	if (rc == CUDA_SUCCESS) {
		function->library = library;
		*kernel = (CUkernel)function;
	}
	return rc;
}

FAKE_CUDA(cuLibraryGetKernelCount, FAKE_INIT, (unsigned int *count, CUlibrary library),
	  (count, library))
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(library, FAKE_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	*count = entry_count(library->ptx);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuLibraryGetModule, FAKE_INIT, (CUmodule * module, CUlibrary library), (module, library))
{
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(library, FAKE_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	return library_module(library, module);
}

FAKE_CUDA(cuLibraryGetGlobal, FAKE_CURRENT,
	  (CUdeviceptr * pointer, size_t *bytes, CUlibrary library, const char *name),
	  (pointer, bytes, library, name))
{
	struct CUmod_st *module;
	CUresult rc;

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(library, FAKE_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	rc = library_module(library, &module);
	return rc == CUDA_SUCCESS ? global_get(module, pointer, bytes, name) : rc;
}

FAKE_CUDA(cuLibraryGetManaged, FAKE_INIT,
	  (CUdeviceptr * pointer, size_t *bytes, CUlibrary library, const char *name),
	  (pointer, bytes, library, name))
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	return fake_is(library, FAKE_LIBRARY) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

FAKE_CUDA(cuKernelGetFunction, FAKE_CURRENT, (CUfunction * ret_function, CUkernel kernel),
	  (ret_function, kernel))
{
	struct CUfunc_st *function = (struct CUfunc_st *)kernel;
	struct CUmod_st *module;
	CUresult rc;

	if (!ret_function)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(kernel, FAKE_FUNCTION) || !function->library)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = library_module(function->library, &module);
	if (rc == CUDA_SUCCESS)
		rc = function_get(&module->functions, module->ptx, function->name, ret_function);
	if (rc == CUDA_SUCCESS)
		(*ret_function)->module = module;
	return rc;
}

FAKE_CUDA(cuKernelGetName, FAKE_INIT, (const char **name, CUkernel kernel), (name, kernel))
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(kernel, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	*name = ((struct CUfunc_st *)kernel)->name;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuKernelGetLibrary, FAKE_INIT, (CUlibrary * library, CUkernel kernel), (library, kernel))
{
	if (!library)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(kernel, FAKE_FUNCTION) || !((struct CUfunc_st *)kernel)->library)
		return CUDA_ERROR_INVALID_HANDLE;
	*library = ((struct CUfunc_st *)kernel)->library;
	return CUDA_SUCCESS;
}

/* ---- what is known of a function ---- */

static CUresult attribute_get(int *value, CUfunction_attribute attribute, const void *handle)
{
	if (!value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(handle, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	*value = ((const struct CUfunc_st *)handle)->attribute[attribute];
	return CUDA_SUCCESS;
}

static CUresult attribute_set(void *handle, CUfunction_attribute attribute, int value)
{
	/* The first seven describe the code; the others can be asked for. */
	if (attribute <= CU_FUNC_ATTRIBUTE_BINARY_VERSION || attribute >= CU_FUNC_ATTRIBUTE_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(handle, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	((struct CUfunc_st *)handle)->attribute[attribute] = value;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuFuncGetAttribute, FAKE_CURRENT,
	  (int *value, CUfunction_attribute attribute, CUfunction function),
	  (value, attribute, function))
{
	return attribute_get(value, attribute, function);
}

FAKE_CUDA(cuFuncSetAttribute, FAKE_CURRENT,
	  (CUfunction function, CUfunction_attribute attribute, int value),
	  (function, attribute, value))
{
	return attribute_set(function, attribute, value);
}

FAKE_CUDA(cuKernelGetAttribute, FAKE_INIT,
	  (int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice ordinal),
	  (value, attribute, kernel, ordinal))
{
	return fake_device(ordinal) ? attribute_get(value, attribute, kernel)
				    : CUDA_ERROR_INVALID_DEVICE;
}

FAKE_CUDA(cuKernelSetAttribute, FAKE_INIT,
	  (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice ordinal),
	  (attribute, value, kernel, ordinal))
{
	return fake_device(ordinal) ? attribute_set(kernel, attribute, value)
				    : CUDA_ERROR_INVALID_DEVICE;
}

FAKE_CUDA(cuFuncSetCacheConfig, FAKE_CURRENT, (CUfunction function, CUfunc_cache config),
	  (function, config))
{
	if (config < 0 || config > 3)
		return CUDA_ERROR_INVALID_VALUE;
	return fake_is(function, FAKE_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

FAKE_CUDA(cuKernelSetCacheConfig, FAKE_INIT,
	  (CUkernel kernel, CUfunc_cache config, CUdevice ordinal), (kernel, config, ordinal))
{
	if (config < 0 || config > 3 || !fake_device(ordinal))
		return CUDA_ERROR_INVALID_VALUE;
	return fake_is(kernel, FAKE_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

FAKE_CUDA(cuFuncSetSharedMemConfig, FAKE_CURRENT, (CUfunction function, CUsharedconfig config),
	  (function, config))
{
	if (config < 0 || config > 2)
		return CUDA_ERROR_INVALID_VALUE;
	return fake_is(function, FAKE_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

FAKE_CUDA(cuFuncGetModule, FAKE_INIT, (CUmodule * module, CUfunction function), (module, function))
{
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(function, FAKE_FUNCTION) || !function->module)
		return CUDA_ERROR_INVALID_HANDLE;
	*module = function->module;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuFuncGetName, FAKE_INIT, (const char **name, CUfunction function), (name, function))
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(function, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	*name = function->name;
	return CUDA_SUCCESS;
}

static CUresult param_info(const void *handle, size_t index, size_t *offset, size_t *bytes)
{
	const struct CUfunc_st *function = handle;

	if (!offset)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(handle, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	if (index >= function->params)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = function->param_offset[index];
	if (bytes)
		*bytes = function->param_bytes[index];
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuFuncGetParamInfo, FAKE_INIT,
	  (CUfunction function, size_t index, size_t *offset, size_t *bytes),
	  (function, index, offset, bytes))
{
	return param_info(function, index, offset, bytes);
}

FAKE_CUDA(cuKernelGetParamInfo, FAKE_INIT,
	  (CUkernel kernel, size_t index, size_t *offset, size_t *bytes),
	  (kernel, index, offset, bytes))
{
	return param_info(kernel, index, offset, bytes);
}

FAKE_CUDA(cuFuncIsLoaded, FAKE_INIT, (int *state, CUfunction function), (state, function))
{
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(function, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	*state = 1;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuFuncLoad, FAKE_INIT, (CUfunction function), (function))
{
	return fake_is(function, FAKE_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- the linker: PTX texts, one behind the other ---- */

struct CUlinkState_st {
	struct fake_object object;
	char *text;
	size_t length;
};

FAKE_CUDA(cuLinkCreate_v2, FAKE_CURRENT,
	  (unsigned int count, CUjit_option *options, void **values, CUlinkState *ret_link),
	  (count, options, values, ret_link))
{
	if (!ret_link || (count && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_link = fake_object_new(sizeof(**ret_link), FAKE_LINK, fake_current());
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuLinkAddData_v2, FAKE_CURRENT,
	  (CUlinkState link, int type, void *data, size_t bytes, const char *name,
	   unsigned int count, CUjit_option *options, void **values),
	  (link, type, data, bytes, name, count, options, values))
{
	if (!data || !bytes || bytes > IMAGE_BYTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(link, FAKE_LINK))
		return CUDA_ERROR_INVALID_HANDLE;
	bytes = strnlen(data, bytes);
	link->text = vg_grow(link->text, link->length + bytes + 2, 1);
	memcpy(link->text + link->length, data, bytes);
	link->length += bytes;
	link->text[link->length++] = '\n';
	link->text[link->length] = 0;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuLinkComplete, FAKE_CURRENT, (CUlinkState link, void **image, size_t *bytes),
	  (link, image, bytes))
{
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(link, FAKE_LINK) || !link->text)
		return CUDA_ERROR_INVALID_HANDLE;
	*image = link->text;
	if (bytes)
		*bytes = link->length + 1;
	return CUDA_SUCCESS;
}

void fake_link_release(struct CUlinkState_st *link)
{
	free(link->text);
}

FAKE_CUDA(cuLinkDestroy, FAKE_INIT, (CUlinkState link), (link))
{
	if (!fake_is(link, FAKE_LINK))
		return CUDA_ERROR_INVALID_HANDLE;
	fake_object_destroy(&link->object);
	return CUDA_SUCCESS;
}
