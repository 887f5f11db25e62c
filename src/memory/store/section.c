/* SPDX-License-Identifier: MIT */
/*
 * Backing stores whose pages vidmm does not own. Existing memory belongs to a process or a miniport
 * (ALF-11 to ALF-13; existing.c says when it is released).
 *
 * Sections are memory objects that outlive every allocation based on them. A section is either
 * client memory, named by a descriptor that the client may close (ALF-38), or the memory that the
 * adapters of a cross-adapter resource share (ALF-39). Each allocation has an MDL of its pages
 * of the section.
 */
#include "memory/store/store.h"

#include <string.h>

#define EXISTING_ARENA UINT32_MAX

/* Creates a section for the memory. Returns `status` if that is a failure. */
static vmm_status wrap(vmm_status status, struct vmm_os_memory *memory, struct vmm_section **result)
{
	struct vmm_section *section;

	if (!vmm_ok(status))
		return status;
	section = vmm_calloc(1, sizeof(*section));
	if (!section) {
		vmm_os_memory_destroy(memory);
		return VMM_NO_MEMORY;
	}
	section->memory = *memory;
	atomic_store(&section->references, 1);
	*result = section;
	return VMM_OK;
}

vmm_status vmm_section_open(struct vmm_os *os, int descriptor, uint64_t size_bytes, bool sealed,
			    struct vmm_section **section)
{
	struct vmm_os_memory memory;

	return wrap(sealed ? vmm_os_memory_open_sealed(os, descriptor, size_bytes, &memory)
			   : vmm_os_memory_open(os, descriptor, size_bytes, &memory),
		    &memory, section);
}

vmm_status vmm_section_create(struct vmm_os *os, uint64_t size_bytes, struct vmm_section **section)
{
	struct vmm_os_memory memory;
	vmm_status status = vmm_os_memory_create(os, "cross-adapter resource", size_bytes, &memory);

	if (vmm_ok(status))
		/* The resource owns the whole object. */
		vmm_os_memory_set_shareable(&memory);
	return wrap(status, &memory, section);
}

struct vmm_section *vmm_section_get(struct vmm_section *section)
{
	atomic_fetch_add(&section->references, 1);
	return section;
}

void vmm_section_put(struct vmm_section *section)
{
	if (!section || atomic_fetch_sub(&section->references, 1) != 1)
		return;
	vmm_os_memory_destroy(&section->memory);
	vmm_free(section);
}

bool vmm_backing_is_existing(const struct vmm_backing *backing)
{
	return backing->arena == EXISTING_ARENA;
}

vmm_status vmm_existing_lock(struct vmm_memory *memory, const void *pointer, uint64_t size_bytes,
			     struct vmm_backing *backing)
{
	char *address = (char *)(uintptr_t)pointer;
	struct _MDL *mdl;
	vmm_status status =
		vmm_nt_pages_lock(memory->adapter->world->nt, address, size_bytes, &mdl);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!vmm_ok(status))
		return status;
	*backing = (struct vmm_backing){
		.size_bytes = size_bytes, .arena = EXISTING_ARENA, .address = address, .mdl = mdl};
	return VMM_OK;
}

void vmm_existing_unlock(struct vmm_memory *memory, struct vmm_backing *backing)
{
	vmm_nt_pages_unlock(memory->adapter->world->nt, backing->mdl);
	vmm_section_put(backing->section);
	memset(backing, 0, sizeof(*backing));
}

vmm_status vmm_section_lock(struct vmm_memory *memory, struct vmm_section *section,
			    uint64_t size_bytes, struct vmm_backing *backing)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(section->offset <= section->memory.size_bytes &&
		   size_bytes <= section->memory.size_bytes - section->offset);
	vmm_status status = vmm_existing_lock(memory, section->memory.base + section->offset,
					      size_bytes, backing);

	if (!vmm_ok(status))
		return status;
	backing->section = vmm_section_get(section);
	return VMM_OK;
}
