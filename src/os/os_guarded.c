/* SPDX-License-Identifier: MIT */
/*
 * Guarded memory, on both back ends: pages before a page that cannot be accessed. Anonymous memory,
 * so a block costs two mappings and no descriptor.
 */
#include "os/os.h"
#include "os/os_system.h"

char *vmm_os_guarded_create(uint64_t size_bytes)
{
	char *memory = vmm_os_mmap(NULL, size_bytes + VMM_PAGE_SIZE, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);

	if (memory == MAP_FAILED)
		return NULL;
	if (vmm_os_grant(memory, size_bytes))
		return memory;
	vmm_os_munmap(memory, size_bytes + VMM_PAGE_SIZE);
	return NULL;
}

bool vmm_os_guarded_seal(char *memory, uint64_t size_bytes)
{
	(void)madvise(memory, size_bytes, MADV_DONTNEED); /* only returns the pages earlier */
	return mprotect(memory, size_bytes, PROT_NONE) == 0;
}

void vmm_os_guarded_destroy(char *memory, uint64_t size_bytes)
{
	vmm_os_munmap(memory, size_bytes + VMM_PAGE_SIZE);
}
