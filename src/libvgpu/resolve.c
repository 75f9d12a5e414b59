/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way to a function: our exports for linked programs, dlsym() and dlvsym() for the others, and
 * cuGetProcAddress() (driver.c). The rule is the same everywhere: the real lookup goes first, with
 * the caller's own arguments and in the caller's own scope, and only an answer that is exactly the
 * driver's known function is exchanged for ours.
 *
 * dlsym() depends on who calls it (RTLD_NEXT, RTLD_DEFAULT). So the exported entry is a few
 * instructions that save the arguments, ask vg_route(), and either return its answer or jump to libc's
 * function with the caller's return address still in place: libc sees the caller, not us.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "libvgpu/guest.h"

struct route {
	void *answer;
	void *jump; /* not NULL: go there instead */
};

struct route vg_route_dlsym(void *handle, const char *symbol, void *caller)
	__attribute__((visibility("hidden")));
struct route vg_route_dlvsym(void *handle, const char *symbol, const char *version, void *caller)
	__attribute__((visibility("hidden")));
VG_EXPORT void *dlsym(void *restrict handle, const char *restrict symbol);
VG_EXPORT void *dlvsym(void *restrict handle, const char *restrict symbol,
		       const char *restrict version);

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov 24(%rsp), %rdx\n"
	"	call vg_route_dlsym\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	test %rdx, %rdx\n"
	"	jz 1f\n"
	"	jmp *%rdx\n"
	"1:	ret\n"
	"	.cfi_endproc\n"
	".size dlsym, .-dlsym\n"
	".globl dlvsym\n"
	".type dlvsym, @function\n"
	"dlvsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rdx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov 24(%rsp), %rcx\n"
	"	call vg_route_dlvsym\n"
	"	mov %rdx, %rcx\n"
	"	pop %rdx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	test %rcx, %rcx\n"
	"	jz 1f\n"
	"	jmp *%rcx\n"
	"1:	ret\n"
	"	.cfi_endproc\n"
	".size dlvsym, .-dlvsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	stp x0, x1, [sp, #16]\n"
	"	mov x2, x30\n"
	"	bl vg_route_dlsym\n"
	"	mov x16, x1\n"
	"	cbz x16, 1f\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	br x16\n"
	"1:	ldp x29, x30, [sp], #32\n"
	"	ret\n"
	".size dlsym, .-dlsym\n"
	".globl dlvsym\n"
	".type dlvsym, %function\n"
	"dlvsym:\n"
	"	stp x29, x30, [sp, #-48]!\n"
	"	stp x0, x1, [sp, #16]\n"
	"	str x2, [sp, #32]\n"
	"	mov x3, x30\n"
	"	bl vg_route_dlvsym\n"
	"	mov x16, x1\n"
	"	cbz x16, 1f\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldr x2, [sp, #32]\n"
	"	ldp x29, x30, [sp], #48\n"
	"	br x16\n"
	"1:	ldp x29, x30, [sp], #48\n"
	"	ret\n"
	".size dlvsym, .-dlvsym\n");
#else
#error "no lookup entry for this processor"
#endif

/* ---- libc's own lookup functions ------------------------------------------------------------- */

typedef void *(*dlsym_function)(void *, const char *);
typedef void *(*dlvsym_function)(void *, const char *, const char *);

static dlsym_function real_dlsym;
static dlvsym_function real_dlvsym;

struct walk {
	const char *file; /* beginning of the object's file name */
	const char *symbol;
	void *found;
};

/*
 * Our own, because this code runs when the first lookup of the process is made: a sanitizer, or another
 * interposer, may just be looking up strcmp().
 */
static bool same(const char *a, const char *b)
{
	for (; *a == *b; a++, b++)
		if (!*a)
			return true;
	return false;
}

/* The file name in path begins with prefix. */
static bool file_begins(const char *path, const char *prefix)
{
	const char *file = path;

	for (; *path; path++)
		if (*path == '/')
			file = path + 1;
	for (; *prefix; prefix++, file++)
		if (*file != *prefix)
			return false;
	return true;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* One object's definition of a function, through its GNU hash table. */
static void *defined_in(const struct dl_phdr_info *info, const char *symbol)
{
	const ElfW(Dyn) *dyn = NULL;
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;
	const uint32_t *table = NULL, *buckets, *chains;
	uint32_t hash = gnu_hash(symbol), at;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	if (!dyn)
		return NULL;
	for (; dyn->d_tag != DT_NULL; dyn++) {
		uintptr_t p = (uintptr_t)dyn->d_un.d_ptr;

		/* The loader has relocated these already, except in some builds of it. */
		if (p < info->dlpi_addr)
			p += info->dlpi_addr;
		if (dyn->d_tag == DT_SYMTAB)
			symbols = (const void *)p;
		else if (dyn->d_tag == DT_STRTAB)
			strings = (const void *)p;
		else if (dyn->d_tag == DT_GNU_HASH)
			table = (const void *)p;
	}
	if (!symbols || !strings || !table || table[0] == 0)
		return NULL;
	buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	chains = buckets + table[0];
	at = buckets[hash % table[0]];
	if (at < table[1])
		return NULL;
	for (;; at++) {
		uint32_t h = chains[at - table[1]];

		if ((h | 1) == (hash | 1) && symbols[at].st_shndx != SHN_UNDEF &&
		    symbols[at].st_value != 0 && (symbols[at].st_info & 0xf) == STT_FUNC &&
		    same(strings + symbols[at].st_name, symbol))
			return (void *)(info->dlpi_addr + symbols[at].st_value);
		if (h & 1)
			return NULL;
	}
}

static int walk_one(struct dl_phdr_info *info, size_t size, void *data)
{
	struct walk *walk = data;

	(void)size;
	if (!info->dlpi_name || !file_begins(info->dlpi_name, walk->file))
		return 0;
	walk->found = defined_in(info, walk->symbol);
	return walk->found != NULL;
}

/* They live in libdl before glibc 2.34 and in libc since. */
static void *find_in_libc(const char *symbol)
{
	static const char *const files[] = { "libdl.so.", "libdl-", "libc.so.", "libc-" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct walk walk = { files[i], symbol, NULL };

		dl_iterate_phdr(walk_one, &walk);
		if (walk.found)
			return walk.found;
	}
	return NULL;
}

static dlsym_function get_real_dlsym(void)
{
	dlsym_function f = __atomic_load_n(&real_dlsym, __ATOMIC_ACQUIRE);

	if (UNLIKELY(!f)) {
		f = (dlsym_function)find_in_libc("dlsym");
		__atomic_store_n(&real_dlsym, f, __ATOMIC_RELEASE);
	}
	return f;
}

static dlvsym_function get_real_dlvsym(void)
{
	dlvsym_function f = __atomic_load_n(&real_dlvsym, __ATOMIC_ACQUIRE);

	if (UNLIKELY(!f)) {
		f = (dlvsym_function)find_in_libc("dlvsym");
		__atomic_store_n(&real_dlvsym, f, __ATOMIC_RELEASE);
	}
	return f;
}

void *vg_real_dlsym(void *handle, const char *symbol)
{
	dlsym_function f = get_real_dlsym();

	return f ? f(handle, symbol) : NULL;
}

/* ---- routing ---------------------------------------------------------------------------------- */

/* Everything that is not ours is sorted out here, by every dlsym() of every program. */
static bool may_be_ours(const char *symbol)
{
	switch (symbol[0]) {
	case 'c':
		return symbol[1] == 'u' && symbol[2] >= 'A' && symbol[2] <= 'Z';
	case 'n':
		return symbol[1] == 'v' && symbol[2] == 'm' && symbol[3] == 'l';
	case 'd':
		return symbol[1] == 'l';
	default:
		return false;
	}
}

struct order {
	const void *caller;
	const void *us;
	bool caller_first, decided;
};

static bool holds(const struct dl_phdr_info *info, const void *address)
{
	uintptr_t at = (uintptr_t)address;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && at >= from &&
		    at - from < info->dlpi_phdr[i].p_memsz)
			return true;
	}
	return false;
}

static int order_one(struct dl_phdr_info *info, size_t size, void *data)
{
	struct order *order = data;

	(void)size;
	if (holds(info, order->caller)) {
		order->caller_first = true;
		order->decided = true;
	} else if (holds(info, order->us)) {
		order->decided = true;
	}
	return order->decided;
}

/* Whether the caller stands before us in the order of search, so that its "next" may be us. */
static bool stands_before_us(void *caller)
{
	struct order order = { .caller = caller, .us = (const void *)(uintptr_t)may_be_ours };

	dl_iterate_phdr(order_one, &order);
	return order.caller_first;
}

static bool library_there(enum vg_library library)
{
	return library == VG_LIBRARY_CUDA ? vg_cuda_available(false) : vg_nvml_available(false);
}

/* What a real lookup returned, exchanged if it is the driver's own function of this name. */
static void *exchange(struct vg_name *name, void *found)
{
	if (found && library_there(name->library) && found == *name->real)
		return name->wrapper;
	return found;
}

static struct route go_on(void *function)
{
	return (struct route){ NULL, function };
}

static struct route answer(void *value)
{
	return (struct route){ value, NULL };
}

/*
 * Lookups of one of our names through a pseudo handle. RTLD_DEFAULT finds our export by itself, which
 * is right only if the driver is there and has the function. RTLD_NEXT finds what stands behind the
 * caller: for one before us that is us or another interposer, for one behind us it would be the
 * driver, past us.
 */
static bool pseudo(void *handle, struct vg_name *name, void *caller, void *jump, struct route *ret)
{
	if (handle != RTLD_DEFAULT && handle != RTLD_NEXT)
		return false;
	if (!library_there(name->library) || !*name->real) {
		/* As without us: not found, with libc's own error text. */
		static const char missing[] = "";

		*ret = handle == RTLD_DEFAULT ? answer(vg_real_dlsym(handle, missing))
					      : go_on(jump);
		return true;
	}
	if (handle == RTLD_DEFAULT || stands_before_us(caller))
		*ret = go_on(jump);
	else
		*ret = answer(name->wrapper);
	return true;
}

struct route vg_route_dlsym(void *handle, const char *symbol, void *caller)
{
	dlsym_function real = get_real_dlsym();
	struct vg_name *name;
	struct route route;
	void *found;

	if (UNLIKELY(!real))
		return answer(NULL);
	if (LIKELY(!symbol || !may_be_ours(symbol)))
		return go_on((void *)real);
	if (symbol[0] == 'd') {
		bool self = same(symbol, "dlsym");

		if (!self && !same(symbol, "dlvsym"))
			return go_on((void *)real);
		if (handle == RTLD_DEFAULT || (handle == RTLD_NEXT && stands_before_us(caller)))
			return go_on((void *)real);
		found = real(handle == RTLD_NEXT ? RTLD_DEFAULT : handle, symbol);
		if (found == (void *)get_real_dlsym() || found == (void *)get_real_dlvsym())
			found = self ? (void *)dlsym : (void *)dlvsym;
		return answer(found);
	}
	name = vg_name_find(symbol);
	if (!name)
		return go_on((void *)real);
	if (pseudo(handle, name, caller, (void *)real, &route))
		return route;
	return answer(exchange(name, real(handle, symbol)));
}

struct route vg_route_dlvsym(void *handle, const char *symbol, const char *version, void *caller)
{
	dlvsym_function real = get_real_dlvsym();
	struct vg_name *name;
	void *found;

	if (UNLIKELY(!real))
		return answer(NULL);
	if (LIKELY(!symbol || !may_be_ours(symbol)))
		return go_on((void *)real);
	if (symbol[0] == 'd') {
		bool self = same(symbol, "dlsym");

		if (!self && !same(symbol, "dlvsym"))
			return go_on((void *)real);
		if (handle == RTLD_NEXT && stands_before_us(caller))
			return go_on((void *)real);
		/* libc's, asked for by version, would lead past us. */
		found = real(handle == RTLD_NEXT ? RTLD_DEFAULT : handle, symbol, version);
		return answer(found ? (self ? (void *)dlsym : (void *)dlvsym) : NULL);
	}
	name = vg_name_find(symbol);
	if (!name)
		return go_on((void *)real);
	if (handle == RTLD_NEXT && !stands_before_us(caller)) {
		if (library_there(name->library) && *name->real)
			return answer(name->wrapper);
		return go_on((void *)real);
	}
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
		return go_on((void *)real);
	return answer(exchange(name, real(handle, symbol, version)));
}
