/* SPDX-License-Identifier: MIT */
/*
 * Validation of a miniport's answer to DxgkDdiCreateAllocation (ALF, SEG). An invalid answer fails
 * the create call with a finding that names the rule. A valid answer that asks for something not
 * built fails with STATUS_NOT_SUPPORTED and a reason.
 */
#include "memory/calls/creation.h"
#include "memory/placement/placement.h"
#include "memory/state/state.h"
#include "memory/store/store.h"

enum {
	CPU_VISIBLE = 0x1,
	PERMANENT_SYSMEM = 0x2,
	CACHED = 0x4,
	PROTECTED = 0x8,
	EXISTING_SYSMEM = 0x10,
	EXISTING_KERNEL_SYSMEM = 0x20,
	OVERLAY = 0x100,
	CAPTURE = 0x200,
	HISTORY_BUFFER = 0x4000,
	SYSTEM = PERMANENT_SYSMEM | CACHED | PROTECTED | EXISTING_SYSMEM | EXISTING_KERNEL_SYSMEM,
	PRIMARY = 0x1, /* D3DDDI_ALLOCATIONINFO */
	STEREO = 0x2,
	OVERRIDE_PRIORITY = VMM_ALLOCATE_OVERRIDE_PRIORITY,
};

struct check {
	struct vmm_memory *memory;
	const DXGK_ALLOCATIONINFO *info;
	const struct vmm_allocation_requester *requester;
	bool primary;
	uint32_t flags2;
};

static NTSTATUS refuse_create(const struct check *check, const char *rule, const char *what)
{
	const DXGK_ALLOCATIONINFO *i = check->info;

	return vmm_refuse_rule(
		check->memory->adapter->observe, STATUS_INVALID_PARAMETER, rule,
		check->requester->device->process->id, 0,
		"create refused: %s (Flags 0x%08x, Flags2 0x%08x, Size %llu, Alignment %u, read "
		"set 0x%x, write set 0x%x, eviction set 0x%x, PreferredSegment 0x%08x, "
		"AllocationPriority 0x%08x)",
		what, i->Flags.Value, check->flags2, (unsigned long long)i->Size, i->Alignment,
		i->SupportedReadSegmentSet, i->SupportedWriteSegmentSet, i->EvictionSegmentSet,
		i->PreferredSegment.Value, i->AllocationPriority);
}

static uint32_t aperture_set(const struct vmm_memory *memory)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].aperture)
			set |= 1u << i;
	return set;
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

static bool only_apertures(const struct check *c)
{
	uint32_t set = c->info->SupportedReadSegmentSet | c->info->SupportedWriteSegmentSet;

	return !(set & ~aperture_set(c->memory));
}

/* Checks the bits whose meaning changed with 2.0 (ALF-01). */
static NTSTATUS check_flags_of_model(const struct check *c)
{
	const struct vmm_flags_case flags = {.info = c->info,
					     .flags2 = c->flags2,
					     .primary = c->primary,
					     .shared = c->requester->shared,
					     .only_apertures = only_apertures(c)};
	const struct vmm_flags_verdict verdict = c->memory->model->check_flags(c->memory, &flags);

	return verdict.rule ? refuse_create(c, verdict.rule, verdict.what) : STATUS_SUCCESS;
}

static NTSTATUS check_flags(const struct check *c)
{
	uint32_t f = c->info->Flags.Value;
	NTSTATUS status = check_flags_of_model(c);

	if (!NT_SUCCESS(status))
		return status;
	if ((f & PERMANENT_SYSMEM) && !(f & CPU_VISIBLE))
		return refuse_create(c, "ALF-04", "PermanentSysMem without CpuVisible");
	if ((f & CACHED) && !(f & CPU_VISIBLE))
		return refuse_create(c, "ALF-05", "Cached without CpuVisible");
	if ((f & SYSTEM) && c->primary)
		return refuse_create(
			c, "ALF-06",
			"PermanentSysMem, Cached, Protected or existing memory on a primary");
	if ((f & PROTECTED) && (f & (PERMANENT_SYSMEM | EXISTING_SYSMEM | EXISTING_KERNEL_SYSMEM)))
		return refuse_create(c, "ALF-07",
				     "Protected with PermanentSysMem or existing memory");
	if ((f & EXISTING_SYSMEM) && (f & (PERMANENT_SYSMEM | EXISTING_KERNEL_SYSMEM)))
		return refuse_create(c, "ALF-09",
				     "ExistingSysMem with PermanentSysMem or ExistingKernelSysMem");
	if ((f & EXISTING_KERNEL_SYSMEM) && (f & PERMANENT_SYSMEM))
		return refuse_create(c, "ALF-10", "ExistingKernelSysMem with PermanentSysMem");
	if ((f & HISTORY_BUFFER) && !history_buffer_is_valid(c))
		return refuse_create(c, "ALF-24",
				     "HistoryBuffer needs CpuVisible, also Cached if a segment is "
				     "CacheCoherent, and no other flag");
	return STATUS_SUCCESS;
}

/*
 * The CPU reaches aperture content through its backing pages, whatever the segment's flags are
 * (SEG-08, C-18).
 */
static bool is_cpu_accessible(const struct vmm_memory *memory, uint32_t set)
{
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if ((set & 1u << i) && !memory->segment[i].aperture &&
		    !memory->segment[i].port->flags.CpuVisible)
			return false;
	return true;
}

static NTSTATUS check_banks(const struct check *c)
{
	uint32_t banks = vmm_placement_hinted_banks(c->memory, c->info);
	uint32_t id = c->info->PreferredSegment.SegmentId0;

	for (; banks; banks >>= 8) {
		uint32_t count = vmm_memory_segment(c->memory, id)->port->bank_count;

		if ((banks & 0x7F) <= count)
			continue;
		return vmm_refuse_rule(
			c->memory->adapter->observe, STATUS_INVALID_PARAMETER, "SEG-14",
			c->requester->device->process->id, 0,
			"create refused: HintedBank 0x%08x names bank %u of segment %u, which "
			"has %u banks",
			c->info->HintedBank.Value, banks & 0x7F, id, count);
	}
	return STATUS_SUCCESS;
}

/* Checks that a protected range in each of the read and write sets is large enough (ALF-26). */
static NTSTATUS check_protected(const struct check *c)
{
	uint32_t read = c->info->SupportedReadSegmentSet, write = c->info->SupportedWriteSegmentSet;

	if (!(c->info->Flags.Value & c->memory->model->in_vpr))
		return STATUS_SUCCESS;
	uint32_t present = vmm_protected_set(c->memory, 0);
	uint32_t fitting = vmm_protected_set(c->memory, c->info->Size);
	if (!(read & present) || !(write & present))
		return refuse_create(c, "ALF-26",
				     "CreateInVpr, but a segment set contains no segment with a "
				     "protected range");
	if ((read & fitting) && (write & fitting))
		return STATUS_SUCCESS;
	(void)refuse_create(c, "ALF-26",
			    "CreateInVpr, but the size exceeds the protected ranges of its "
			    "sets");
	return STATUS_NO_VIDEO_MEMORY;
}

/* Returns the segments of the set in which the allocation can be placed. */
static uint32_t placeable_set(const struct check *c, uint32_t set)
{
	return (c->info->Flags.Value & c->memory->model->in_vpr)
		       ? set & vmm_protected_set(c->memory, c->info->Size)
		       : set;
}

/*
 * SEG-10: in an aperture with PitchAlignment, an allocation whose two sizes differ would occupy
 * more pages than it has. That is not built.
 */
static NTSTATUS check_pitch(const struct check *c)
{
	const DXGK_ALLOCATIONINFO *i = c->info;
	uint32_t set = i->SupportedReadSegmentSet | i->SupportedWriteSegmentSet;

	for (uint32_t s = 0; s < c->memory->segment_count; s++) {
		if (!(set & 1u << s) || !c->memory->segment[s].port->unpitched ||
		    i->PitchAlignedSize <= i->Size)
			continue;
		return vmm_refuse_reason(
			c->memory->adapter->observe, STATUS_NOT_SUPPORTED,
			c->requester->device->process->id, 0,
			"SEG-10: create refused: PitchAlignedSize %llu exceeds Size %llu, and "
			"PitchAlignment of an aperture (segment %u) is not built",
			(unsigned long long)i->PitchAlignedSize, (unsigned long long)i->Size,
			s + 1);
	}
	return STATUS_SUCCESS;
}

static NTSTATUS check_segments(const struct check *c)
{
	const DXGK_ALLOCATIONINFO *i = c->info;
	uint32_t all =
		c->memory->segment_count == 32 ? UINT32_MAX : (1u << c->memory->segment_count) - 1;
	uint32_t supported = i->SupportedReadSegmentSet | i->SupportedWriteSegmentSet;
	uint32_t both = i->SupportedReadSegmentSet & i->SupportedWriteSegmentSet;
	/* From 2.0 on one placement serves all GPU uses (vmm_allocation_resident_set). */
	uint32_t resident = both ? both : i->SupportedWriteSegmentSet;

	if (!i->SupportedReadSegmentSet || !i->SupportedWriteSegmentSet || (supported & ~all))
		return refuse_create(
			c, "SEG-19",
			"a segment set is empty or includes a segment that does not exist");
	if (i->EvictionSegmentSet & ~aperture_set(c->memory))
		return refuse_create(
			c, "SEG-20",
			"EvictionSegmentSet includes a segment that is not an aperture");
	const struct vmm_flags_verdict size = vmm_footprint_check(c->memory, i);
	if (size.rule)
		return refuse_create(c, size.rule, size.what);
	for (uint32_t p = 0; p < 5; p++) {
		uint32_t id = i->PreferredSegment.Value >> (6 * p) & 0x1F;

		if (id && (id > c->memory->segment_count || !(supported & 1u << (id - 1))))
			return refuse_create(
				c, "SEG-16",
				"PreferredSegment includes a segment outside the supported sets");
	}
	if (c->memory->model->visible_in_segments &&
	    (i->Flags.Value & (CPU_VISIBLE | VMM_ALLOCATION_CPU_VISIBLE_ON_DEMAND)) &&
	    !(placeable_set(c, resident) & aperture_set(c->memory)) &&
	    !is_cpu_accessible(c->memory, placeable_set(c, resident)))
		return refuse_create(
			c, "SEG-25",
			"it is CPU-visible, and its sets have memory segments without CpuVisible "
			"and no aperture");
	if (c->primary && !c->memory->caps->non_cpu_visible_primary &&
	    !is_cpu_accessible(c->memory, i->SupportedWriteSegmentSet))
		return refuse_create(
			c, "ALF-31",
			"a primary whose write set includes a memory segment without CpuVisible");
	NTSTATUS status = check_protected(c);
	if (NT_SUCCESS(status))
		status = check_pitch(c);
	return NT_SUCCESS(status) ? check_banks(c) : status;
}

static NTSTATUS check_sizes(const struct check *c)
{
	const DXGK_ALLOCATIONINFO *i = c->info;

	if (!i->hAllocation)
		return refuse_create(c, "ALF-33", "hAllocation was not set");
	if (!i->Size || i->Size > UINT64_MAX - VMM_PAGE_SIZE)
		return refuse_create(c, "SEG-11", "Size is zero or exceeds the address space");
	if (i->Alignment && !vmm_is_pow2(i->Alignment))
		return refuse_create(c, "SEG-11", "Alignment is not a power of two");
	if (!i->AllocationPriority)
		return refuse_create(c, "PRI-02", "AllocationPriority is zero");
	return STATUS_SUCCESS;
}

static NTSTATUS not_supported(const struct check *c, const char *what)
{
	return vmm_refuse_reason(c->memory->adapter->observe, STATUS_NOT_SUPPORTED,
				 c->requester->device->process->id, 0,
				 "create refused: %s is not built (Flags 0x%08x)", what,
				 c->info->Flags.Value);
}

/*
 * Checks memory that the caller provides; it is allowed only if the miniport asked for it (ALF-11,
 * ALF-12).
 */
static NTSTATUS check_existing(const struct check *c, const struct vmm_allocate_item *item)
{
	if (!(c->info->Flags.Value & VMM_ALLOCATION_EXISTING))
		return item->system_memory
			       ? not_supported(c, "pSystemMem without ExistingSysMem or "
						  "ExistingKernelSysMem")
			       : STATUS_SUCCESS;
	/*
	 * If the owner of the memory ends first, the GPU's copy would have no place to be copied
	 * back to. A miniport does not know when the last handle is closed (ALF-40).
	 */
	if (c->requester->shared &&
	    (!only_apertures(c) || (c->info->Flags.Value & EXISTING_KERNEL_SYSMEM)))
		return not_supported(
			c, "existing memory of a shared resource (ALF-38), unless it is a client's "
			   "in apertures,");
	if (c->info->Size > UINT32_MAX)
		return not_supported(c, "existing memory of 4 GiB or more");
	if (c->requester->has_section)
		/*
		 * The size of a section was checked already, and no client can remove its memory.
		 */
		return STATUS_SUCCESS;
	return vmm_existing_check(c->requester->device, item, c->info);
}

/* The client priority was added in 2.2, and only to the newer structure (PRI-02). */
static uint32_t known_client_flags(const struct check *c, const struct vmm_allocate_item *item)
{
	bool may_override = item->newer &&
			    c->memory->caps->interface_version >= DXGKDDI_INTERFACE_VERSION_WDDM2_2;

	return PRIMARY | STEREO | (may_override ? OVERRIDE_PRIORITY : 0);
}

/*
 * Checks what client and miniport request. A source on an allocation that is no primary is
 * refused. (C-17)
 */
NTSTATUS vmm_allocation_validate(struct vmm_memory *memory, const DXGK_ALLOCATIONINFO *info,
				 const struct vmm_allocate_item *item,
				 const struct vmm_allocation_requester *requester)
{
	struct check check = {.memory = memory,
			      .info = info,
			      .requester = requester,
			      .primary = item->flags & PRIMARY};
	NTSTATUS status;

	check.flags2 = vmm_flags2_of(memory, info);
	if (!check.primary && item->source_id)
		return refuse_create(&check, "ALF-32",
				     "VidPnSourceId on an allocation that is not a primary");
	if (!check.primary && (item->flags & STEREO))
		return refuse_create(&check, "ALF-31",
				     "Stereo on an allocation that is not a primary");
	status = check_sizes(&check);
	if (NT_SUCCESS(status))
		status = check_flags(&check);
	if (NT_SUCCESS(status))
		status = check_segments(&check);
	if (!NT_SUCCESS(status))
		return status;
	if (item->flags & ~known_client_flags(&check, item))
		return not_supported(&check, "a client flag other than Primary, Stereo and "
					     "OverridePriority");
	if ((item->flags & OVERRIDE_PRIORITY) && !item->priority)
		return refuse_create(&check, "PRI-02", "OverridePriority with Priority zero");
	if (info->Flags.Value & ~memory->model->built_flags)
		return not_supported(&check, "an allocation property");
	/* No public page defines these flags. */
	if (!vmm_flags_are_built_wddm3(check.flags2))
		return not_supported(&check,
				     "NoImplicitSynchronization, DisablePartialResidency or "
				     "RestrictedToSingleSegment");
	const char *on_link = memory->adapter->physical_adapters > 1 &&
					      (info->Flags.Value & memory->model->linked)
				      ? vmm_link_not_built(info->Flags.Value)
				      : NULL;
	if (on_link)
		return not_supported(&check, on_link);
	return check_existing(&check, item);
}
