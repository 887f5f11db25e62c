/* SPDX-License-Identifier: MIT */
/*
 * Huge pages behind memory objects, and of ours. Where the system gives shared memory none by itself (shmem_enabled is "never" on
 * most), the first touch of each 4 KiB costs a fault of one to two microseconds: more than all else that happens to
 * the bytes. A chunk of which enough has been asked for is therefore made one huge page at once (MADV_COLLAPSE, Linux
 * 6.1), which costs little more than zeroing it. One that is asked for in part keeps small pages, so that a little
 * memory stays little.
 */
#include "os/os_internal.h"
#include "os/os_mapping.h"

#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define UNIT_BYTES ((uint64_t)16 << 10)
#define ASKED_HUGE 32u /* units asked for, from which on a huge page pays: a quarter of the chunk */
#define ASKED_DONE 255u /* tried */

static bool is_due(uint8_t *asked, uint64_t bytes)
{
	uint64_t units = *asked + (bytes + UNIT_BYTES - 1) / UNIT_BYTES;

	if (*asked == ASKED_DONE)
		return false;
	*asked = units >= ASKED_HUGE ? ASKED_DONE : (uint8_t)units;
	return *asked == ASKED_DONE;
}

/* A refusal is no error: small pages do as well. */
static void collapse(const struct vmm_os_memory *memory, uint64_t first, uint64_t last)
{
	char *from = memory->base + first * VMM_OS_HUGE_PAGE;

	if (first == last)
		return;
	/* One without any page is not taken. The kernel reads it, because another thread may be writing there. */
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
	if (mprotect(pages, VMM_OS_HUGE_PAGE, PROT_READ | PROT_WRITE)) {
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
	(void)munmap(pages, VMM_OS_HUGE_PAGE);
}
