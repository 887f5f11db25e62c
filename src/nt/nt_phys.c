/* SPDX-License-Identifier: MIT */
/*
 * The platform's physical address space: which part of which memory object each range refers to. A
 * sorted array, because there are few ranges (BARs, chunks of backing stores) and many lookups.
 * Memory objects are mapped permanently, so a driver's mapping is just a pointer, with a record for
 * the leak report. Guarded by the memory lock.
 */
#include "nt/nt_internal.h"

#include <string.h>

#define RESERVE_ALIGNMENT ((uint64_t)2 << 20)

struct mapping {
	struct vmm_list link;
	char *pointer;
	uint64_t size_bytes;
};

void nt_phys_init(struct vmm_nt *nt)
{
	vmm_list_init(&nt->mappings);
	vmm_list_init(&nt->frames);
	vmm_list_init(&nt->registers);
	vmm_list_init(&nt->ports);
	nt->physical_next = nt->config.physical_first;
}

/* Removes the ranges of pool blocks, and reports MDLs that are still locked. */
static void drop_driver_ranges(struct vmm_nt *nt)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < nt->range_count; i++) {
		struct nt_phys_range range = nt->ranges[i];

		if (!range.owner)
			nt->ranges[kept++] = range;
		else if (range.owner != range.exact)
			nt_violation(nt, "NT-06", "MmProbeAndLockPages",
				     "an MDL of %llu bytes was never unlocked",
				     (unsigned long long)range.exact_bytes);
	}
	nt->range_count = kept;
}

void nt_phys_finish(struct vmm_nt *nt)
{
	while (!vmm_list_empty(&nt->mappings)) {
		struct mapping *mapping = vmm_container_of(nt->mappings.next, struct mapping, link);

		nt_violation(nt, "NT-06", "MmMapIoSpace",
			     "a mapping of %llu bytes was never unmapped",
			     (unsigned long long)mapping->size_bytes);
		vmm_list_remove(&mapping->link);
		vmm_free(mapping);
	}
	nt_frames_finish(nt);
	drop_driver_ranges(nt);
	/* Other ranges and these MDLs belong to the library, so a leak here is its own bug. */
	vmm_assert(nt->range_count == 0 && atomic_load(&nt->mdl_count) == 0);
	vmm_assert(vmm_list_empty(&nt->ports));
	vmm_free(nt->ranges);
}

/* A driver may have memory behind physical_next; the reserved range does not overlap it. */
uint64_t vmm_nt_phys_reserve(struct vmm_nt *nt, uint64_t size_bytes)
{
	struct nt_frames_limits limits = {.highest = NT_PHYSICAL_END - 1};
	uint64_t physical, total;

	if (size_bytes >= NT_PHYSICAL_END)
		return 0;
	total = vmm_align_up(size_bytes, RESERVE_ALIGNMENT) + RESERVE_ALIGNMENT;
	nt_memory_lock(nt);
	limits.lowest = nt->physical_next;
	physical = nt_phys_find_free_locked(nt, &limits, total, RESERVE_ALIGNMENT);
	if (physical)
		nt->physical_next = physical + total;
	nt_memory_unlock(nt);
	return physical;
}

uint32_t nt_phys_find_locked(const struct vmm_nt *nt, uint64_t physical)
{
	uint32_t low = 0, high = nt->range_count;

	vmm_assert_held(&nt->memory);
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		const struct nt_phys_range *range = &nt->ranges[middle];

		if (range->physical + (range->size_bytes - 1) < physical)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first address from `at` on whose block crosses no multiple of the boundary (0: none). */
static uint64_t within_boundary(uint64_t at, uint64_t size_bytes, uint64_t boundary)
{
	if (boundary && (at & (boundary - 1)) + size_bytes > boundary)
		at = vmm_align_up(at, boundary);
	return at;
}

uint64_t nt_phys_find_free_locked(const struct vmm_nt *nt, const struct nt_frames_limits *limits,
				  uint64_t size_bytes, uint64_t alignment)
{
	uint64_t at = vmm_align_up(limits->lowest, alignment);

	vmm_assert_held(&nt->memory);
	for (uint32_t i = nt_phys_find_locked(nt, at);; i++) {
		/* NULL: no range ends behind `at`. */
		const struct nt_phys_range *range = i < nt->range_count ? &nt->ranges[i] : NULL;

		at = within_boundary(at, size_bytes, limits->boundary);
		/* Below the lowest address: the alignment of a high one overflowed. */
		if (at < limits->lowest || at > limits->highest ||
		    size_bytes - 1 > limits->highest - at)
			return 0;
		if (!range || at + (size_bytes - 1) < range->physical)
			return at;
		if (range->physical + range->size_bytes > at)
			at = vmm_align_up(range->physical + range->size_bytes, alignment);
	}
}

static bool reserve_entry_locked(struct vmm_nt *nt) VMM_REQUIRES(nt_memory_class)
{
	uint32_t capacity = nt->range_capacity ? nt->range_capacity * 2 : 16;
	struct nt_phys_range *ranges;

	vmm_assert_held(&nt->memory);
	if (nt->range_count < nt->range_capacity)
		return true;
	ranges = vmm_calloc(capacity, sizeof(*ranges));
	if (!ranges)
		return false;
	if (nt->range_count)
		memcpy(ranges, nt->ranges, nt->range_count * sizeof(*ranges));
	vmm_free(nt->ranges);
	nt->ranges = ranges;
	nt->range_capacity = capacity;
	return true;
}

vmm_status nt_phys_add_range_locked(struct vmm_nt *nt, struct nt_phys_range range)
{
	uint32_t at;

	vmm_assert_held(&nt->memory);
	at = nt_phys_find_locked(nt, range.physical);
	if (at < nt->range_count && nt->ranges[at].physical - range.physical < range.size_bytes)
		return VMM_INVALID_PARAMETER;
	if (at < nt->range_count && nt->ranges[at].physical <= range.physical)
		return VMM_INVALID_PARAMETER;
	if (!reserve_entry_locked(nt))
		return VMM_NO_MEMORY;
	memmove(nt->ranges + at + 1, nt->ranges + at, (nt->range_count - at) * sizeof(*nt->ranges));
	nt->ranges[at] = range;
	nt->range_count++;
	return VMM_OK;
}

vmm_status nt_phys_add_range(struct vmm_nt *nt, struct nt_phys_range range)
{
	nt_memory_lock(nt);
	vmm_status status = nt_phys_add_range_locked(nt, range);
	nt_memory_unlock(nt);
	return status;
}

vmm_status vmm_nt_phys_add(struct vmm_nt *nt, uint64_t physical, const struct vmm_os_memory *memory,
			   uint64_t offset, uint64_t size_bytes)
{
	uint64_t last;

	if (!size_bytes || !physical || (physical | offset | size_bytes) % PAGE_SIZE ||
	    vmm_add_overflows(physical, size_bytes - 1, &last) || offset > memory->size_bytes ||
	    size_bytes > memory->size_bytes - offset)
		return VMM_INVALID_PARAMETER;
	return nt_phys_add_range(nt, (struct nt_phys_range){.physical = physical,
							    .size_bytes = size_bytes,
							    .pointer = memory->base + offset,
							    .exact = memory->base + offset,
							    .exact_bytes = size_bytes,
							    .memory = memory});
}

static void remove_at_locked(struct vmm_nt *nt, uint32_t at) VMM_REQUIRES(nt_memory_class)
{
	vmm_assert_held(&nt->memory);
	nt->range_count--;
	memmove(nt->ranges + at, nt->ranges + at + 1, (nt->range_count - at) * sizeof(*nt->ranges));
}

void vmm_nt_phys_remove(struct vmm_nt *nt, uint64_t physical)
{
	uint32_t at;

	nt_memory_lock(nt);
	at = nt_phys_find_locked(nt, physical);
	vmm_assert(at < nt->range_count && nt->ranges[at].physical == physical);
	remove_at_locked(nt, at);
	nt_memory_unlock(nt);
}

bool nt_phys_remove_owned(struct vmm_nt *nt, uint64_t physical, const void *owner)
{
	bool found;
	uint32_t at;

	nt_memory_lock(nt);
	at = nt_phys_find_locked(nt, physical);
	found = at < nt->range_count && nt->ranges[at].physical == physical &&
		nt->ranges[at].owner == owner;
	if (found)
		remove_at_locked(nt, at);
	nt_memory_unlock(nt);
	return found;
}

void nt_phys_remove_pool(struct vmm_nt *nt, const char *block)
{
	nt_memory_lock(nt);
	/* Two threads that asked at the same time may each have added a range. */
	for (uint32_t i = nt->range_count; i-- > 0;) {
		if (nt->ranges[i].owner == block && nt->ranges[i].exact == block)
			remove_at_locked(nt, i);
	}
	nt_memory_unlock(nt);
}

/* Returns the kernel address, and the memory object there; NULL: not wholly inside one range. */
static char *look_up(struct vmm_nt *nt, uint64_t physical, uint64_t size_bytes,
		     const struct vmm_os_memory **memory)
{
	char *pointer = NULL;
	uint32_t at;

	nt_memory_lock(nt);
	at = nt_phys_find_locked(nt, physical);
	if (at < nt->range_count && nt->ranges[at].physical <= physical) {
		const struct nt_phys_range *range = &nt->ranges[at];
		uint64_t offset = physical - range->physical;

		*memory = range->memory;
		if (size_bytes <= range->size_bytes - offset)
			pointer = range->pointer + offset;
	}
	nt_memory_unlock(nt);
	return pointer;
}

void *vmm_nt_phys_lookup(struct vmm_nt *nt, uint64_t physical, uint64_t size_bytes)
{
	const struct vmm_os_memory *memory;

	return look_up(nt, physical, size_bytes, &memory);
}

const struct vmm_os_memory *vmm_nt_phys_memory(struct vmm_nt *nt, uint64_t physical,
					       uint64_t size_bytes, uint64_t *offset)
{
	const struct vmm_os_memory *memory;
	const char *pointer = look_up(nt, physical, size_bytes, &memory);

	if (!pointer || !memory)
		return NULL;
	*offset = (uint64_t)(pointer - memory->base);
	return memory;
}

static bool find_physical(struct vmm_nt *nt, const void *pointer, uint64_t *physical)
{
	bool found = false;

	nt_memory_lock(nt);
	for (uint32_t i = 0; i < nt->range_count && !found; i++) {
		const struct nt_phys_range *range = &nt->ranges[i];

		found = (uintptr_t)pointer - (uintptr_t)range->exact < range->exact_bytes;
		if (found)
			*physical =
				range->physical + ((uintptr_t)pointer - (uintptr_t)range->pointer);
	}
	nt_memory_unlock(nt);
	return found;
}

bool vmm_nt_phys_of(struct vmm_nt *nt, const void *pointer, uint64_t *physical)
{
	/*
	 * A pool block gets its physical pages when they are asked for, and loses them when freed.
	 */
	return find_physical(nt, pointer, physical) ||
	       (vmm_ok(nt_pool_add_range(nt, pointer)) && find_physical(nt, pointer, physical));
}

/* ---- services ---- */

static PVOID map(struct vmm_nt *nt, const char *service, uint64_t physical, uint64_t size_bytes)
{
	char *pointer = vmm_nt_phys_lookup(nt, physical, size_bytes);
	struct mapping *mapping;

	nt_limit(nt, service, DISPATCH_LEVEL);
	if (!pointer || !size_bytes) {
		nt_violation(nt, "NT-08", service,
			     "0x%llx, %llu bytes, is not inside one range of the platform",
			     (unsigned long long)physical, (unsigned long long)size_bytes);
		return NULL;
	}
	mapping = vmm_calloc(1, sizeof(*mapping));
	if (!mapping)
		return NULL;
	mapping->pointer = pointer;
	mapping->size_bytes = size_bytes;
	nt_memory_lock(nt);
	vmm_list_push_back(&nt->mappings, &mapping->link);
	nt_memory_unlock(nt);
	return pointer;
}

PVOID MmMapIoSpace(PHYSICAL_ADDRESS PhysicalAddress, SIZE_T NumberOfBytes,
		   MEMORY_CACHING_TYPE CacheType)
{
	(void)CacheType; /* every mapping is coherent with the CPU caches */
	return map(vmm_nt_current(), "MmMapIoSpace", (uint64_t)PhysicalAddress.QuadPart,
		   NumberOfBytes);
}

PVOID MmMapIoSpaceEx(PHYSICAL_ADDRESS PhysicalAddress, SIZE_T NumberOfBytes, ULONG Protect)
{
	(void)Protect;
	return map(vmm_nt_current(), "MmMapIoSpaceEx", (uint64_t)PhysicalAddress.QuadPart,
		   NumberOfBytes);
}

VOID MmUnmapIoSpace(PVOID BaseAddress, SIZE_T NumberOfBytes)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct mapping *found = NULL;
	struct vmm_list *pos;

	nt_limit(nt, "MmUnmapIoSpace", DISPATCH_LEVEL);
	nt_memory_lock(nt);
	vmm_list_for_each (pos, &nt->mappings) {
		struct mapping *mapping = vmm_container_of(pos, struct mapping, link);

		if (mapping->pointer == BaseAddress && mapping->size_bytes == NumberOfBytes) {
			vmm_list_remove(pos);
			found = mapping;
			break;
		}
	}
	nt_memory_unlock(nt);
	if (!found)
		nt_violation(nt, "NT-08", "MmUnmapIoSpace", "no mapping of %zu bytes begins here",
			     NumberOfBytes);
	vmm_free(found);
}

PVOID MmGetVirtualForPhysical(PHYSICAL_ADDRESS PhysicalAddress)
{
	return vmm_nt_phys_lookup(vmm_nt_current(), (uint64_t)PhysicalAddress.QuadPart, 1);
}

PHYSICAL_ADDRESS MmGetPhysicalAddress(PVOID BaseAddress)
{
	PHYSICAL_ADDRESS address = {.QuadPart = 0};
	uint64_t physical;

	if (vmm_nt_phys_of(vmm_nt_current(), BaseAddress, &physical))
		address.QuadPart = (LONGLONG)physical;
	return address;
}
