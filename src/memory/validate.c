/* SPDX-License-Identifier: MIT */
/*
 * What a miniport may answer in DxgkDdiCreateAllocation (ALF, SEG). A wrong answer fails the create call with the
 * rule in a finding; a right one that asks for what is not built yet gets STATUS_NOT_SUPPORTED and a reason.
 */
#include "memory/memory_private.h"

enum {
	CPU_VISIBLE = 0x1,
	PERMANENT_SYSMEM = 0x2,
	CACHED = 0x4,
	PROTECTED = 0x8,
	EXISTING_SYSMEM = 0x10,
	EXISTING_KERNEL_SYSMEM = 0x20,
	FROM_END_OF_SEGMENT = 0x40,
	SWIZZLED = 0x80,
	USE_ALTERNATE_VA = 0x400,
	SYNCHRONOUS_PAGING = VMM_ALLOCATION_SYNCHRONOUS_PAGING,
	LINK_MIRRORED = 0x1000,
	LINK_INSTANCED = 0x2000,
	HISTORY_BUFFER = 0x4000,
	RESERVED_1_X = (int)0xFFFF8000, /* ALF-02: bits 15 to 18 count as reserved below 2.0 */
	BUILT = CPU_VISIBLE | CACHED | FROM_END_OF_SEGMENT | SWIZZLED | SYNCHRONOUS_PAGING,
	PRIMARY = 0x1, /* D3DDDI_ALLOCATIONINFO */
};

struct check {
	struct vmm_memory *memory;
	const DXGK_ALLOCATIONINFO *info;
	uint32_t process;
	bool primary;
};

static NTSTATUS refuse(const struct check *check, const char *rule, const char *what)
{
	const DXGK_ALLOCATIONINFO *i = check->info;

	vmm_finding(
		check->memory->adapter->observe, rule, check->process, 0,
		"create refused: %s (Flags 0x%08x, Size %llu, Alignment %u, read set 0x%x, write set 0x%x, "
		"eviction set 0x%x, PreferredSegment 0x%08x, AllocationPriority 0x%08x)",
		what, i->Flags.Value, (unsigned long long)i->Size, i->Alignment,
		i->SupportedReadSegmentSet, i->SupportedWriteSegmentSet, i->EvictionSegmentSet,
		i->PreferredSegment.Value, i->AllocationPriority);
	return STATUS_INVALID_PARAMETER;
}

static bool history_buffer_is_valid(const struct check *c)
{
	uint32_t f = c->info->Flags.Value;
	bool coherent = false;

	for (uint32_t i = 0; i < c->memory->segment_count; i++)
		coherent |= c->memory->segment[i].port->flags.CacheCoherent;
	return (f & CPU_VISIBLE) && !(coherent && !(f & CACHED)) &&
	       !(f & ~(uint32_t)(HISTORY_BUFFER | CPU_VISIBLE | CACHED));
}

static NTSTATUS check_flags(const struct check *c)
{
	uint32_t f = c->info->Flags.Value;

	if (f & (uint32_t)RESERVED_1_X)
		return refuse(c, "ALF-02", "reserved flag bits are set");
	if ((f & PERMANENT_SYSMEM) && !(f & CPU_VISIBLE))
		return refuse(c, "ALF-04", "PermanentSysMem without CpuVisible");
	if ((f & CACHED) && !(f & CPU_VISIBLE))
		return refuse(c, "ALF-05", "Cached without CpuVisible");
	if ((f & PROTECTED) && (f & (PERMANENT_SYSMEM | EXISTING_SYSMEM | EXISTING_KERNEL_SYSMEM)))
		return refuse(c, "ALF-07", "Protected with PermanentSysMem or existing memory");
	if ((f & EXISTING_SYSMEM) && (f & (PERMANENT_SYSMEM | EXISTING_KERNEL_SYSMEM)))
		return refuse(c, "ALF-09",
			      "ExistingSysMem with PermanentSysMem or ExistingKernelSysMem");
	if ((f & EXISTING_KERNEL_SYSMEM) && (f & PERMANENT_SYSMEM))
		return refuse(c, "ALF-10", "ExistingKernelSysMem with PermanentSysMem");
	if ((f & USE_ALTERNATE_VA) && !c->primary)
		return refuse(c, "ALF-21", "UseAlternateVA on an allocation that is not a primary");
	if ((f & LINK_MIRRORED) && (f & LINK_INSTANCED))
		return refuse(c, "ALF-23", "LinkMirrored with LinkInstanced");
	if ((f & HISTORY_BUFFER) && !history_buffer_is_valid(c))
		return refuse(
			c, "ALF-24",
			"HistoryBuffer takes CpuVisible, Cached with a coherent aperture, and no other flag");
	return STATUS_SUCCESS;
}

static uint32_t aperture_set(const struct vmm_memory *memory)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].aperture)
			set |= 1u << i;
	return set;
}

static NTSTATUS check_segments(const struct check *c)
{
	const DXGK_ALLOCATIONINFO *i = c->info;
	uint32_t all =
		c->memory->segment_count == 32 ? UINT32_MAX : (1u << c->memory->segment_count) - 1;
	uint32_t supported = i->SupportedReadSegmentSet | i->SupportedWriteSegmentSet;

	if (!i->SupportedReadSegmentSet || !i->SupportedWriteSegmentSet || (supported & ~all))
		return refuse(
			c, "SEG-19",
			"an empty segment set, or one that names a segment that does not exist");
	if (i->EvictionSegmentSet & ~aperture_set(c->memory))
		return refuse(c, "SEG-20",
			      "EvictionSegmentSet names something that is not an aperture segment");
	for (uint32_t p = 0; p < 5; p++) {
		uint32_t id = i->PreferredSegment.Value >> (6 * p) & 0x1F;

		if (id && (id > c->memory->segment_count || !(supported & 1u << (id - 1))))
			return refuse(
				c, "SEG-16",
				"PreferredSegment names a segment outside the supported sets");
	}
	return STATUS_SUCCESS;
}

static NTSTATUS check_figures(const struct check *c)
{
	const DXGK_ALLOCATIONINFO *i = c->info;

	if (!i->hAllocation)
		return refuse(c, "ALF-33", "hAllocation was not set");
	if (!i->Size || i->Size > UINT64_MAX - VMM_PAGE_SIZE)
		return refuse(c, "SEG-11", "Size is zero or not a size");
	if (i->Alignment && !vmm_is_pow2(i->Alignment))
		return refuse(c, "SEG-11", "Alignment is not a power of two");
	if (!i->AllocationPriority)
		return refuse(c, "PRI-02", "AllocationPriority is zero");
	return STATUS_SUCCESS;
}

static NTSTATUS not_built(const struct check *c, const char *what)
{
	vmm_reason(c->memory->adapter->observe, STATUS_NOT_SUPPORTED, c->process, 0,
		   "create refused: %s is not built (Flags 0x%08x, EvictionSegmentSet 0x%x)", what,
		   c->info->Flags.Value, c->info->EvictionSegmentSet);
	return STATUS_NOT_SUPPORTED;
}

NTSTATUS vmm_allocation_validate(struct vmm_memory *memory, const DXGK_ALLOCATIONINFO *info,
				 const struct vmm_allocate_item *item, uint32_t process)
{
	struct check check = {.memory = memory,
			      .info = info,
			      .process = process,
			      .primary = item->flags & PRIMARY};
	NTSTATUS status;

	if (!check.primary && item->source_id)
		return refuse(&check, "ALF-32",
			      "VidPnSourceId on an allocation that is not a primary");
	status = check_figures(&check);
	if (NT_SUCCESS(status))
		status = check_flags(&check);
	if (NT_SUCCESS(status))
		status = check_segments(&check);
	if (!NT_SUCCESS(status))
		return status;
	if (item->flags)
		return not_built(&check, "a primary or stereo allocation");
	if (info->Flags.Value & ~(uint32_t)BUILT)
		return not_built(&check, "an allocation property");
	if (info->EvictionSegmentSet)
		return not_built(&check, "eviction through an aperture segment");
	if (item->system_memory)
		return not_built(&check, "existing system memory");
	return STATUS_SUCCESS;
}
