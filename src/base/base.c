/* SPDX-License-Identifier: MIT */
/*
 * Allocates zeroed memory, copies arrays of a caller once, and ends the process when an assert
 * fails. A test can make an allocation of its thread fail (failure.h). (LOCK-32)
 */
#include "base/base.h"
#include "base/failure.h"
#include "base/owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_BYTES 1024u

void vmm_assert_failed(const char *expression, const char *file, int line)
{
	fprintf(stderr, "vidmm: %s:%d: assertion failed: %s\n", file, line, expression);
	fflush(stderr);
	abort();
}

void *vmm_calloc(size_t count, size_t size)
{
	size_t total;
	void *pointer;

	if (vmm_fails(VMM_FAIL_ALLOCATION))
		return NULL;
	/* No object can be larger; sanitizers end the process instead of failing such a request. */
	if (__builtin_mul_overflow(count, size, &total) || total > PTRDIFF_MAX)
		return NULL;
	/*
	 * The C library's calloc does not use its caches of freed blocks. Large blocks may be zero
	 * pages already.
	 */
	if (total > SMALL_BYTES)
		return calloc(1, total);
	pointer = malloc(total ? total : 1);
	/* Otherwise gcc makes a calloc of malloc and memset where this function is inlined. */
	__asm__("" : "+r"(pointer));
	if (pointer)
		memset(pointer, 0, total);
	return pointer;
}

void *vmm_calloc_lines(size_t size)
{
	if (vmm_fails(VMM_FAIL_ALLOCATION))
		return NULL;
	size = (size_t)vmm_align_up(size, VMM_CACHE_LINE);
	void *pointer = aligned_alloc(VMM_CACHE_LINE, size);
	if (pointer)
		memset(pointer, 0, size);
	return pointer;
}

vmm_status vmm_copy_in(const void *array, uint32_t count, uint32_t limit, size_t element,
		       void **copy)
{
	*copy = NULL;
	if (!count)
		return VMM_OK;
	if (!array || count > limit)
		return VMM_INVALID_PARAMETER;
	/* The copy overwrites all of it, so it is not zeroed. */
	*copy = vmm_fails(VMM_FAIL_ALLOCATION) ? NULL : malloc(count * element);
	if (!*copy)
		return VMM_NO_MEMORY;
	memcpy(*copy, array, count * element);
	return VMM_OK;
}

void vmm_free(void *ptr)
{
	free(ptr);
}

_Thread_local char vmm_owner_mark __attribute__((tls_model("initial-exec")));
