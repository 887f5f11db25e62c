/* SPDX-License-Identifier: MIT */
/*
 * Sections: memory objects that outlive every allocation over them (ALF-38). A program names one by a descriptor, which it
 * may close. Each allocation has its own locked pages of it.
 */
#include "memory/memory_private.h"

struct vmm_section {
	struct vmm_os_memory memory;
	_Atomic uint32_t references;
};

vmm_status vmm_section_open(struct vmm_os *os, int descriptor, uint64_t size_bytes,
			    struct vmm_section **result)
{
	struct vmm_section *section = vmm_calloc(1, sizeof(*section));
	vmm_status status;

	if (!section)
		return VMM_NO_MEMORY;
	status = vmm_os_memory_open(os, descriptor, size_bytes, &section->memory);
	if (!vmm_ok(status)) {
		vmm_free(section);
		return status;
	}
	atomic_store(&section->references, 1);
	*result = section;
	return VMM_OK;
}

void vmm_section_put(struct vmm_section *section)
{
	if (!section || atomic_fetch_sub(&section->references, 1) != 1)
		return;
	vmm_os_memory_destroy(&section->memory);
	vmm_free(section);
}

vmm_status vmm_section_lock(struct vmm_memory *memory, struct vmm_section *section,
			    uint64_t size_bytes, struct vmm_backing *backing)
{
	vmm_assert(size_bytes <= section->memory.size_bytes);
	vmm_status status = vmm_existing_lock(memory, section->memory.base, size_bytes, backing);

	if (!vmm_ok(status))
		return status;
	atomic_fetch_add(&section->references, 1);
	backing->section = section;
	return VMM_OK;
}
