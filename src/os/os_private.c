/* SPDX-License-Identifier: MIT */
/*
 * Private objects: memfds that lie over ranges of a memory object's permanent mapping, because a descriptor can neither be cut
 * to a range nor taken back. A table by pages says which lies where; it is made with the first one of an object.
 *
 * Each costs a descriptor and, where it is mapped, up to two more mappings.
 */
#include "os/os_internal.h"
#include "os/os_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

struct vmm_os_private {
	struct vmm_os_memory memory; /* over which it lies */
	uint64_t offset, length;
	int fd;
};

static bool make_table(struct vmm_os_memory_record *record)
{
	if (!record->over)
		record->over =
			vmm_calloc(record->size_bytes / VMM_PAGE_SIZE, sizeof(*record->over));
	return record->over;
}

static bool is_free(const struct vmm_os_memory_record *record, uint64_t offset, uint64_t length)
{
	for (uint64_t page = offset; page < offset + length; page += VMM_PAGE_SIZE)
		if (record->over[page / VMM_PAGE_SIZE])
			return false;
	return true;
}

static void set_range(const struct vmm_os_private *o, struct vmm_os_private *to)
{
	struct vmm_os_private **over = o->memory.record->over + o->offset / VMM_PAGE_SIZE;

	for (uint64_t page = 0; page < o->length / VMM_PAGE_SIZE; page++)
		over[page] = to;
}

static vmm_status lay(struct vmm_os_private *o)
{
	vmm_status status = vmm_os_open_object("vidmm private", o->length, &o->fd);

	if (!vmm_ok(status))
		return status;
	if (vmm_os_seal_size(o->fd) &&
	    vmm_os_map_over(o->memory.base + o->offset, o->length, o->fd, 0, 0))
		return VMM_OK;
	close(o->fd);
	return VMM_NO_MEMORY;
}

vmm_status vmm_os_private_lay(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			      struct vmm_os_private **object)
{
	struct vmm_os_private *o;
	vmm_status status;

	vmm_assert(length && (offset | length) % VMM_PAGE_SIZE == 0);
	vmm_assert(offset <= memory->size_bytes && length <= memory->size_bytes - offset);
	if (!make_table(memory->record))
		return VMM_NO_MEMORY;
	if (!is_free(memory->record, offset, length))
		return VMM_INVALID_PARAMETER;
	o = vmm_calloc(1, sizeof(*o));
	if (!o)
		return VMM_NO_MEMORY;
	*o = (struct vmm_os_private){.memory = *memory, .offset = offset, .length = length};
	status = lay(o);
	if (!vmm_ok(status)) {
		vmm_free(o);
		return status;
	}
	set_range(o, o);
	memory->record->private_count++;
	*object = o;
	return VMM_OK;
}

void vmm_os_private_take(struct vmm_os_private *o)
{
	char *at;

	if (!o)
		return;
	/*
	 * It replaces a mapping by what surrounds it, which needs no further one; out of memory for the kernel's own records
	 * there is nothing that could be done instead.
	 */
	at = vmm_os_map_over(o->memory.base + o->offset, o->length, o->memory.fd, o->offset, 0);
	vmm_assert(at);
	/* As the whole object is, or the kernel would keep it apart from its neighbours. */
	if (o->memory.size_bytes >= VMM_OS_HUGE_PAGE)
		(void)madvise(at, o->length, MADV_HUGEPAGE);
	set_range(o, NULL);
	o->memory.record->private_count--;
	close(o->fd);
	vmm_free(o);
}

bool vmm_os_private_shows(const struct vmm_os_private *o, const struct vmm_os_memory *memory,
			  uint64_t offset, uint64_t length)
{
	return o && o->memory.base == memory->base && offset >= o->offset &&
	       offset - o->offset <= o->length && length <= o->length - (offset - o->offset);
}

void vmm_os_find_shown(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
		       int *fd, uint64_t *at)
{
	const struct vmm_os_memory_record *record = memory->record;

	if (record->whole) {
		*fd = memory->fd;
		*at = offset;
		return;
	}
	vmm_assert(record->over);
	const struct vmm_os_private *o = record->over[offset / VMM_PAGE_SIZE];

	/* Anything else is somebody else's, too. */
	vmm_assert(vmm_os_private_shows(o, memory, offset, length));
	*fd = o->fd;
	*at = offset - o->offset;
}
