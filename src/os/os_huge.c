/* SPDX-License-Identifier: MIT */
/*
 * Huge pages for memory objects and for private pages. Most kernels back shared memory with pages
 * of 4 KiB (the setting shmem_enabled is "never"). The first access to each page then costs a page
 * fault of one to two microseconds, more than all other work on those bytes. Callers therefore
 * announce which bytes they will use (vmm_os_memory_expect). When a quarter of a chunk of 2 MiB has
 * been announced, the chunk is made one huge page (MADV_COLLAPSE, Linux 6.1), which costs little
 * more than zeroing it. Other chunks keep small pages, so that small uses stay small.
 */
#include "os/os_internal.h"
#include "os/os_mapping.h"
#include "os/os_system.h"

#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define UNIT_BYTES ((uint64_t)16 << 10)
/* Units asked for from which on a huge page pays off: a quarter of the chunk. */
#define ASKED_HUGE 32u
#define ASKED_DONE 255u /* a collapse was tried */

static bool is_due(uint8_t *asked, uint64_t bytes)
{
	uint64_t units = *asked + (bytes + UNIT_BYTES - 1) / UNIT_BYTES;

	if (*asked == ASKED_DONE)
		return false;
	*asked = units >= ASKED_HUGE ? ASKED_DONE : (uint8_t)units;
	return *asked == ASKED_DONE;
}

/* A refused hint is no error: small pages are correct, too. */
static void collapse(const struct vmm_os_memory *memory, uint64_t first, uint64_t last)
{
	char *from = memory->base + first * VMM_OS_HUGE_PAGE;

	if (first == last)
		return;
	/*
	 * The kernel refuses to collapse a chunk without any page. Reading makes one present
	 * without disturbing another thread that may be writing there.
	 */
	for (uint64_t chunk = first; chunk < last; chunk++)
		(void)madvise(memory->base + chunk * VMM_OS_HUGE_PAGE, VMM_PAGE_SIZE,
			      MADV_POPULATE_READ);
	(void)madvise(from, (last - first) * VMM_OS_HUGE_PAGE, MADV_COLLAPSE);
}

void vmm_os_memory_expect(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length)
{
	uint8_t *asked = memory->record->asked;
	uint64_t end = vmm_min_u64(offset + length, memory->record->chunks * VMM_OS_HUGE_PAGE);
	uint64_t first_due = offset / VMM_OS_HUGE_PAGE, chunk = first_due;

	for (; chunk * VMM_OS_HUGE_PAGE < end; chunk++) {
		uint64_t from = vmm_max_u64(offset, chunk * VMM_OS_HUGE_PAGE);
		uint64_t to = vmm_min_u64(end, (chunk + 1) * VMM_OS_HUGE_PAGE);

		if (is_due(&asked[chunk], to - from))
			continue;
		collapse(memory, first_due, chunk);
		first_due = chunk + 1;
	}
	collapse(memory, first_due, chunk);
}

void vmm_os_memory_forget(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length)
{
	uint64_t first = vmm_align_up(offset, VMM_OS_HUGE_PAGE) / VMM_OS_HUGE_PAGE;
	uint64_t end = vmm_min_u64((offset + length) / VMM_OS_HUGE_PAGE, memory->record->chunks);

	for (; first < end; first++)
		memory->record->asked[first] = 0;
}

char *vmm_os_pages_create(void)
{
	char *pages = vmm_os_reserve_addresses(VMM_OS_HUGE_PAGE);

	if (!pages)
		return NULL;
	if (!vmm_os_grant(pages, VMM_OS_HUGE_PAGE)) {
		vmm_os_pages_destroy(pages);
		return NULL;
	}
	return pages;
}

void vmm_os_pages_join(char *pages)
{
	(void)madvise(pages, VMM_OS_HUGE_PAGE, MADV_HUGEPAGE);
	(void)madvise(pages, VMM_OS_HUGE_PAGE, MADV_COLLAPSE);
}

void vmm_os_pages_destroy(char *pages)
{
	vmm_os_munmap(pages, VMM_OS_HUGE_PAGE);
}
