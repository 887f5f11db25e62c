/* SPDX-License-Identifier: MIT */
/*
 * A host that is broken on purpose, where APART_BROKEN is set: everybody is the same owner, nothing private is laid over anything, and a client gets the
 * descriptor of all of the large object. Every program finds what it wrote, and nothing else is wrong: only who looks at what else it could see finds out.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "os/os.h"
#include "os/os_internal.h"
#include "os/os_mapping.h"

static bool broken(void)
{
	return getenv("APART_BROKEN") != NULL;
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
WRAP(vmm_status, vmm_os_private_lay,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length, uint64_t owner,
      bool *fresh),
     (memory, offset, length, owner, fresh), (fresh ? (void)(*fresh = false) : (void)0, VMM_OK))
WRAP(void, vmm_os_private_leave,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length, bool may_go),
     (memory, offset, length, may_go), (void)0)
WRAP(void, vmm_os_private_take,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length),
     (memory, offset, length), (void)0)
WRAP(void, vmm_os_private_end, (const struct vmm_os_memory *memory, uint64_t owner),
     (memory, owner), (void)0)
WRAP(bool, vmm_os_private_is_surplus,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length),
     (memory, offset, length), false)
WRAP(bool, vmm_os_private_is_of,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length, uint64_t owner),
     (memory, offset, length, owner), true)

static uint64_t show_all(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			 int *fd, uint64_t *at)
{
	/* Not by its size either. */
	(void)fcntl(memory->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	*fd = memory->fd;
	*at = offset;
	return length;
}
WRAP(uint64_t, vmm_os_find_shown,
     (const struct vmm_os_memory *memory, uint64_t offset, uint64_t length, uint64_t owner, int *fd,
      uint64_t *at),
     (memory, offset, length, owner, fd, at), show_all(memory, offset, length, fd, at))
