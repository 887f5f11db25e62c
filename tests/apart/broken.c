/* SPDX-License-Identifier: MIT */
/*
 * A host that is broken on purpose, where APART_BROKEN is set: the CPU is shown the place in the large objects, as it is within one process, and a client gets the descriptor
 * of all of it. Every program finds what it wrote, and nothing else is wrong: only who looks at what else it could see finds out.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"
#include "os/os_internal.h"

struct over {
	struct vmm_os_memory memory;
	uint64_t offset, length;
};

static bool broken(void)
{
	return getenv("APART_BROKEN") != NULL;
}

vmm_status __real_vmm_os_private_lay(const struct vmm_os_memory *memory, uint64_t offset,
				     uint64_t length, struct vmm_os_private **object);
vmm_status __wrap_vmm_os_private_lay(const struct vmm_os_memory *memory, uint64_t offset,
				     uint64_t length, struct vmm_os_private **object);
vmm_status __wrap_vmm_os_private_lay(const struct vmm_os_memory *memory, uint64_t offset,
				     uint64_t length, struct vmm_os_private **object)
{
	struct over *over;

	if (!broken())
		return __real_vmm_os_private_lay(memory, offset, length, object);
	over = malloc(sizeof(*over));
	if (!over)
		return VMM_NO_MEMORY;
	*over = (struct over){*memory, offset, length};
	memset(memory->base + offset, 0, length);
	*object = (struct vmm_os_private *)(void *)over;
	return VMM_OK;
}

void __real_vmm_os_private_take(struct vmm_os_private *object);
void __wrap_vmm_os_private_take(struct vmm_os_private *object);
void __wrap_vmm_os_private_take(struct vmm_os_private *object)
{
	if (broken())
		free(object);
	else
		__real_vmm_os_private_take(object);
}

bool __real_vmm_os_private_shows(const struct vmm_os_private *object,
				 const struct vmm_os_memory *memory, uint64_t offset,
				 uint64_t length);
bool __wrap_vmm_os_private_shows(const struct vmm_os_private *object,
				 const struct vmm_os_memory *memory, uint64_t offset,
				 uint64_t length);
bool __wrap_vmm_os_private_shows(const struct vmm_os_private *object,
				 const struct vmm_os_memory *memory, uint64_t offset,
				 uint64_t length)
{
	const struct over *over = (const void *)object;

	if (!broken())
		return __real_vmm_os_private_shows(object, memory, offset, length);
	return over && over->memory.base == memory->base && offset >= over->offset &&
	       offset - over->offset <= over->length &&
	       length <= over->length - (offset - over->offset);
}

void __real_vmm_os_find_shown(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			      int *fd, uint64_t *at);
void __wrap_vmm_os_find_shown(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			      int *fd, uint64_t *at);
void __wrap_vmm_os_find_shown(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			      int *fd, uint64_t *at)
{
	if (broken()) {
		/* Not by its size either. */
		(void)fcntl(memory->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
		*fd = memory->fd;
		*at = offset;
	} else {
		__real_vmm_os_find_shown(memory, offset, length, fd, at);
	}
}
