/* SPDX-License-Identifier: MIT */
/*
 * A host that is broken on purpose if REMOTE_BROKEN is set: all clients count as the same owner, no
 * private memory replaces shared pages, and a client gets a descriptor of the whole large object.
 * Every client still finds what it wrote, and nothing else is wrong. Only a client that searches
 * the rest of the memory it can see detects the fault.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "os/os.h"
#include "os/os_internal.h"
#include "os/os_mapping.h"

static bool broken(void)
{
	return getenv("REMOTE_BROKEN") != NULL;
}

#define WRAP(type, name, parameters, arguments, instead) \
	type __real_##name parameters;                   \
	type __wrap_##name parameters;                   \
	type __wrap_##name parameters                    \
	{                                                \
		if (broken())                            \
			return instead;                  \
		return __real_##name arguments;          \
	}

WRAP(uint64_t, vmm_os_viewer_owner, (struct vmm_os_viewer * viewer), (viewer), 1)
WRAP(vmm_status, vmm_os_client_object_cover,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length, uint64_t owner,
      bool *fresh),
     (memory, offset, length, owner, fresh), (fresh ? (void)(*fresh = false) : (void)0, VMM_OK))
WRAP(void, vmm_os_client_object_release,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length, bool may_go),
     (memory, offset, length, may_go), (void)0)
WRAP(vmm_status, vmm_os_client_object_uncover,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length),
     (memory, offset, length), VMM_OK)
WRAP(void, vmm_os_client_object_end_owner, (const struct vmm_os_memory *memory, uint64_t owner),
     (memory, owner), (void)0)
WRAP(bool, vmm_os_client_object_is_surplus,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length),
     (memory, offset, length), false)
WRAP(bool, vmm_os_client_object_is_owned_by,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length, uint64_t owner),
     (memory, offset, length, owner), true)

static uint64_t show_all(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			 int *fd, uint64_t *at)
{
	/* Not by its size either. */
	(void)fcntl(memory->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	*fd = memory->fd;
	*at = memory->at + offset;
	return length;
}
WRAP(uint64_t, vmm_os_find_visible,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length, uint64_t owner, int *fd,
      uint64_t *at),
     (memory, offset, length, owner, fd, at), show_all(memory, offset, length, fd, at))
