/* SPDX-License-Identifier: MIT */
/*
 * System pages with physical addresses: contiguous memory, pages of MDLs, and the frames of pool
 * blocks. A block is one range of the platform, found by physical and by kernel address. Addresses
 * are given out first fit and again after a free: below physical_first, and when none is free
 * there, behind those of vmm_nt_phys_reserve. Guarded by the memory lock.
 */
#include "nt/nt_internal.h"

#include <string.h>

#define LOWEST ((uint64_t)1 << 20) /* the first megabyte belongs to firmware */

struct vmm_nt_frames {
	struct vmm_list link;
	/*
	 * an object, because a memory segment may be there: the core maps it for clients (SEG-08)
	 */
	struct vmm_os_memory memory;
	char *pointer;
	uint64_t size_bytes; /* as requested */
	uint64_t physical;
	enum nt_frames_kind kind;
	/* of vmm_nt_frames_pin; freed: the driver freed the block, the last unpin removes it */
	uint32_t pins VMM_GUARDED_BY(nt_memory_class);
	bool freed VMM_GUARDED_BY(nt_memory_class);
};

static const char *const kind_name[] = {
	[NT_FRAMES_CONTIGUOUS] = "MmAllocateContiguousMemory",
	[NT_FRAMES_NON_CACHED] = "MmAllocateNonCachedMemory",
	[NT_FRAMES_OF_MDL] = "MmAllocatePagesForMdl",
};

/* ---- physical addresses ---- */

/*
 * Above physical_first, addresses up to physical_next are reserved, whether they have a range or
 * not. Those behind it are used where the driver wants them, and physical_next stays.
 */
static uint64_t place_locked(struct vmm_nt *nt, const struct nt_frames_limits *limits,
			     uint64_t size_bytes) VMM_REQUIRES(nt_memory_class)
{
	struct nt_frames_limits low = *limits, high = *limits;
	uint64_t at;

	vmm_assert_held(&nt->memory);
	low.lowest = limits->lowest > LOWEST ? limits->lowest : LOWEST;
	low.highest = vmm_min_u64(limits->highest, nt->config.physical_first - 1);
	at = nt_phys_find_free_locked(nt, &low, size_bytes, PAGE_SIZE);
	if (at)
		return at;
	if (high.lowest < nt->physical_next)
		high.lowest = nt->physical_next;
	high.highest = vmm_min_u64(limits->highest, NT_PHYSICAL_END - 1);
	return nt_phys_find_free_locked(nt, &high, size_bytes, PAGE_SIZE);
}

vmm_status nt_frames_add_range(struct vmm_nt *nt, const struct nt_frames_limits *limits,
			       struct nt_phys_range *range)
{
	vmm_status status = VMM_NO_MEMORY;

	nt_memory_lock(nt);
	range->physical = place_locked(nt, limits, range->size_bytes);
	if (range->physical)
		status = nt_phys_add_range_locked(nt, *range);
	nt_memory_unlock(nt);
	return status;
}

/* ---- blocks ---- */

static void free_frames(struct vmm_nt_frames *frames)
{
	vmm_os_memory_destroy(&frames->memory);
	vmm_free(frames);
}

void *nt_frames_allocate(struct vmm_nt *nt, enum nt_frames_kind kind, uint64_t size_bytes,
			 const struct nt_frames_limits *limits, uint64_t *physical)
{
	struct nt_phys_range range = {.memory = NULL};
	struct vmm_nt_frames *frames;
	uint64_t total;

	if (!size_bytes || vmm_add_overflows(size_bytes, PAGE_SIZE, &total) ||
	    (limits->boundary && size_bytes > limits->boundary))
		return NULL;
	frames = vmm_calloc(1, sizeof(*frames));
	if (!frames)
		return NULL;
	total = vmm_align_up(size_bytes, PAGE_SIZE);
	if (!vmm_ok(vmm_os_memory_create(nt->os, kind_name[kind], total, &frames->memory))) {
		vmm_free(frames);
		return NULL;
	}
	frames->pointer = frames->memory.base;
	range.memory = &frames->memory;
	frames->size_bytes = size_bytes;
	frames->kind = kind;
	range.exact = range.pointer = frames->pointer;
	range.size_bytes = range.exact_bytes = total;
	if (!vmm_ok(nt_frames_add_range(nt, limits, &range))) {
		free_frames(frames);
		return NULL;
	}
	frames->physical = *physical = range.physical;
	nt_memory_lock(nt);
	vmm_list_push_back(&nt->frames, &frames->link);
	nt_memory_unlock(nt);
	return frames->pointer;
}

/* Finds the block and takes it out of the list, unless it is pinned: then *kept. */
static struct vmm_nt_frames *take_locked(struct vmm_nt *nt, enum nt_frames_kind kind,
					 const void *pointer, bool *kept)
	VMM_REQUIRES(nt_memory_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&nt->memory);
	vmm_list_for_each (pos, &nt->frames) {
		struct vmm_nt_frames *f = vmm_container_of(pos, struct vmm_nt_frames, link);

		if (f->pointer != pointer || f->kind != kind || f->freed)
			continue;
		*kept = f->freed = f->pins != 0;
		if (!*kept)
			vmm_list_remove(&f->link);
		return f;
	}
	return NULL;
}

bool nt_frames_free(struct vmm_nt *nt, const char *service, enum nt_frames_kind kind,
		    const void *pointer, uint64_t *size_bytes)
{
	struct vmm_nt_frames *found;
	uint64_t physical = 0;
	bool kept = false;

	nt_memory_lock(nt);
	found = take_locked(nt, kind, pointer, &kept);
	if (found) {
		*size_bytes = found->size_bytes;
		physical = found->physical;
	}
	nt_memory_unlock(nt);
	if (!found)
		return false;
	if (kept) {
		nt_violation(nt, "NT-12", service,
			     "%llu bytes at physical address 0x%llx are freed while a memory "
			     "segment is in them: they stay until the adapter stops",
			     (unsigned long long)*size_bytes, (unsigned long long)physical);
		return true;
	}
	vmm_nt_phys_remove(nt, physical);
	free_frames(found);
	return true;
}

struct vmm_nt_frames *vmm_nt_frames_pin(struct vmm_nt *nt, uint64_t physical)
{
	struct vmm_nt_frames *found = NULL;
	struct vmm_list *pos;

	nt_memory_lock(nt);
	vmm_list_for_each (pos, &nt->frames) {
		struct vmm_nt_frames *f = vmm_container_of(pos, struct vmm_nt_frames, link);

		if (physical - f->physical < f->size_bytes && !f->freed) {
			f->pins++;
			found = f;
			break;
		}
	}
	nt_memory_unlock(nt);
	return found;
}

void vmm_nt_frames_unpin(struct vmm_nt *nt, struct vmm_nt_frames *frames)
{
	bool last;

	nt_memory_lock(nt);
	vmm_assert(frames->pins);
	last = --frames->pins == 0 && frames->freed;
	if (last)
		vmm_list_remove(&frames->link);
	nt_memory_unlock(nt);
	if (!last)
		return;
	vmm_nt_phys_remove(nt, frames->physical);
	free_frames(frames);
}

void nt_frames_finish(struct vmm_nt *nt)
{
	while (!vmm_list_empty(&nt->frames)) {
		struct vmm_nt_frames *frames =
			vmm_container_of(nt->frames.next, struct vmm_nt_frames, link);

		nt_violation(nt, "NT-06", kind_name[frames->kind],
			     "%llu bytes at physical address 0x%llx were never freed",
			     (unsigned long long)frames->size_bytes,
			     (unsigned long long)frames->physical);
		vmm_list_remove(&frames->link);
		vmm_nt_phys_remove(nt, frames->physical);
		free_frames(frames);
	}
}

/* ---- services ---- */

static PVOID contiguous(const char *service, SIZE_T size_bytes, const struct nt_frames_limits *l)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t physical;

	nt_limit(nt, service, DISPATCH_LEVEL);
	if (!size_bytes || l->lowest > l->highest || (l->boundary & (l->boundary - 1))) {
		nt_violation(nt, "NT-12", service,
			     "%zu bytes between 0x%llx and 0x%llx, boundary 0x%llx (a power of 2)",
			     size_bytes, (unsigned long long)l->lowest,
			     (unsigned long long)l->highest, (unsigned long long)l->boundary);
		return NULL;
	}
	return nt_frames_allocate(nt, NT_FRAMES_CONTIGUOUS, size_bytes, l, &physical);
}

static struct nt_frames_limits limits_of(PHYSICAL_ADDRESS lowest, PHYSICAL_ADDRESS highest,
					 PHYSICAL_ADDRESS boundary)
{
	return (struct nt_frames_limits){.lowest = (uint64_t)lowest.QuadPart,
					 .highest = (uint64_t)highest.QuadPart,
					 .boundary = (uint64_t)boundary.QuadPart};
}

PVOID MmAllocateContiguousMemory(SIZE_T NumberOfBytes, PHYSICAL_ADDRESS HighestAcceptableAddress)
{
	struct nt_frames_limits limits = {.highest = (uint64_t)HighestAcceptableAddress.QuadPart};

	return contiguous("MmAllocateContiguousMemory", NumberOfBytes, &limits);
}

PVOID MmAllocateContiguousMemorySpecifyCache(SIZE_T NumberOfBytes,
					     PHYSICAL_ADDRESS LowestAcceptableAddress,
					     PHYSICAL_ADDRESS HighestAcceptableAddress,
					     PHYSICAL_ADDRESS BoundaryAddressMultiple,
					     MEMORY_CACHING_TYPE CacheType)
{
	struct nt_frames_limits limits = limits_of(
		LowestAcceptableAddress, HighestAcceptableAddress, BoundaryAddressMultiple);

	(void)CacheType; /* every mapping is coherent with the CPU caches */
	return contiguous("MmAllocateContiguousMemorySpecifyCache", NumberOfBytes, &limits);
}

PVOID MmAllocateContiguousMemorySpecifyCacheNode(SIZE_T NumberOfBytes,
						 PHYSICAL_ADDRESS LowestAcceptableAddress,
						 PHYSICAL_ADDRESS HighestAcceptableAddress,
						 PHYSICAL_ADDRESS BoundaryAddressMultiple,
						 MEMORY_CACHING_TYPE CacheType,
						 NODE_REQUIREMENT PreferredNode)
{
	struct nt_frames_limits limits = limits_of(
		LowestAcceptableAddress, HighestAcceptableAddress, BoundaryAddressMultiple);

	(void)CacheType, (void)PreferredNode; /* there is one node */
	return contiguous("MmAllocateContiguousMemorySpecifyCacheNode", NumberOfBytes, &limits);
}

PVOID MmAllocateContiguousNodeMemory(SIZE_T NumberOfBytes, PHYSICAL_ADDRESS LowestAcceptableAddress,
				     PHYSICAL_ADDRESS HighestAcceptableAddress,
				     PHYSICAL_ADDRESS BoundaryAddressMultiple, ULONG Protect,
				     NODE_REQUIREMENT PreferredNode)
{
	struct nt_frames_limits limits = limits_of(
		LowestAcceptableAddress, HighestAcceptableAddress, BoundaryAddressMultiple);

	(void)Protect, (void)PreferredNode;
	return contiguous("MmAllocateContiguousNodeMemory", NumberOfBytes, &limits);
}

static void free_block(const char *service, enum nt_frames_kind kind, PVOID base,
		       const SIZE_T *expected, uint32_t limit)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t size_bytes;

	nt_limit(nt, service, limit);
	if (!nt_frames_free(nt, service, kind, base, &size_bytes))
		nt_violation(nt, "NT-12", service,
			     "no block of %s begins here, or it was freed before", kind_name[kind]);
	else if (expected && *expected != size_bytes)
		nt_violation(nt, "NT-12", service, "a block of %llu bytes is freed as %zu bytes",
			     (unsigned long long)size_bytes, *expected);
}

VOID MmFreeContiguousMemory(PVOID BaseAddress)
{
	free_block("MmFreeContiguousMemory", NT_FRAMES_CONTIGUOUS, BaseAddress, NULL,
		   DISPATCH_LEVEL);
}

VOID MmFreeContiguousMemorySpecifyCache(PVOID BaseAddress, SIZE_T NumberOfBytes,
					MEMORY_CACHING_TYPE CacheType)
{
	(void)CacheType;
	free_block("MmFreeContiguousMemorySpecifyCache", NT_FRAMES_CONTIGUOUS, BaseAddress,
		   &NumberOfBytes, DISPATCH_LEVEL);
}

PVOID MmAllocateNonCachedMemory(SIZE_T NumberOfBytes)
{
	const struct nt_frames_limits anywhere = {.highest = UINT64_MAX};
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t physical;

	nt_limit(nt, "MmAllocateNonCachedMemory", APC_LEVEL);
	return nt_frames_allocate(nt, NT_FRAMES_NON_CACHED, NumberOfBytes, &anywhere, &physical);
}

VOID MmFreeNonCachedMemory(PVOID BaseAddress, SIZE_T NumberOfBytes)
{
	free_block("MmFreeNonCachedMemory", NT_FRAMES_NON_CACHED, BaseAddress, &NumberOfBytes,
		   APC_LEVEL);
}
