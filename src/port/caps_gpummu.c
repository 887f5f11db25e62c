/* SPDX-License-Identifier: MIT */
/*
 * The GPU's page tables as the miniport describes them: DXGK_GPUMMUCAPS and one descriptor for each
 * level (VA-11).
 */
#include <string.h>
#include "port/port_internal.h"

static NTSTATUS query(struct vmm_port *port, DXGKARG_QUERYADAPTERINFO *args, const char *what)
{
	NTSTATUS status;

	memset(args->pOutputData, 0, args->OutputDataSize);
	status = vmm_port_query_adapter_info(port, args);
	if (status < 0)
		vmm_reason(port->observe, status, 0, 0,
			   "DxgkDdiQueryAdapterInfo(%s) failed with 0x%08x: an adapter with "
			   "GpuMmuSupported describes its page tables there",
			   what, (unsigned)status);
	return status;
}

static NTSTATUS query_mmu_caps(struct vmm_port *port, DXGK_GPUMMUCAPS *caps)
{
	UINT physical_adapter = 0;
	DXGKARG_QUERYADAPTERINFO args = {.Type = DXGKQAITYPE_GPUMMUCAPS,
					 .pInputData = &physical_adapter,
					 .InputDataSize = sizeof(physical_adapter),
					 .pOutputData = caps,
					 .OutputDataSize = sizeof(*caps)};

	return query(port, &args, "GPUMMUCAPS");
}

static NTSTATUS query_level(struct vmm_port *port, UINT level, DXGK_PAGE_TABLE_LEVEL_DESC *desc)
{
	DXGK_QUERYPAGETABLELEVELDESCIN in = {.LevelIndex = (WORD)level};
	DXGKARG_QUERYADAPTERINFO args = {.Type = DXGKQAITYPE_PAGETABLELEVELDESC,
					 .pInputData = &in,
					 .InputDataSize = sizeof(in),
					 .pOutputData = desc,
					 .OutputDataSize = sizeof(*desc)};

	return query(port, &args, "PAGETABLELEVELDESC");
}

static NTSTATUS check_caps(struct vmm_port *port, const DXGK_GPUMMUCAPS *caps)
{
	const char *wrong = NULL;

	if (caps->PageTableLevelCount < VMM_PORT_PAGE_TABLE_LEVELS_MIN ||
	    caps->PageTableLevelCount > VMM_PORT_PAGE_TABLE_LEVELS_MAX)
		wrong = "PageTableLevelCount must be 2 to 6";
	else if (caps->VirtualAddressBitCount <= VMM_PAGE_SHIFT ||
		 caps->VirtualAddressBitCount > 63)
		wrong = "VirtualAddressBitCount must be 13 to 63";
	else if (caps->PageTableUpdateMode > DXGK_PAGETABLEUPDATE_GPU_PHYSICAL)
		wrong = "PageTableUpdateMode must be 0 to 2";
	if (wrong)
		return vmm_refuse_rule(
			port->observe, STATUS_INVALID_PARAMETER, "VA-11", 0, 0,
			"GPUMMUCAPS: PageTableLevelCount %u, VirtualAddressBitCount %u, "
			"PageTableUpdateMode %u: %s",
			caps->PageTableLevelCount, caps->VirtualAddressBitCount,
			(unsigned)caps->PageTableUpdateMode, wrong);
	return STATUS_SUCCESS;
}

static const char *segment_error(const struct vmm_port *port,
				 const DXGK_PAGE_TABLE_LEVEL_DESC *desc)
{
	if (!desc->PageTableSegmentId)
		return desc->PageTableSizeInBytes > VMM_PAGE_SIZE
			       ? "a table in system memory must not exceed 4 KB"
			       : NULL;
	if (desc->PageTableSegmentId > port->caps.segment_count)
		return "the segment does not exist";
	if (port->caps.segment[desc->PageTableSegmentId - 1].flags.Aperture)
		return "tables must be in a memory segment or in system memory (0)";
	return port->caps.gpummu.caps.PageTableUpdateMode == DXGK_PAGETABLEUPDATE_CPU_VIRTUAL
		       ? "tables in a memory segment cannot be updated with CPU_VIRTUAL"
		       : NULL;
}

/* The CPU writes the first entries of the paging process's tables (VA-11). */
static const char *paging_segment_error(const struct vmm_port *port,
					const DXGK_PAGE_TABLE_LEVEL_DESC *desc)
{
	UINT id = desc->PagingProcessPageTableSegmentId;

	if (!id)
		return desc->PageTableSizeInBytes > VMM_PAGE_SIZE
			       ? "a table of the paging process in system memory must not exceed "
				 "4 KB"
			       : NULL;
	if (id > port->caps.segment_count)
		return "the paging process's segment does not exist";
	if (port->caps.segment[id - 1].flags.Aperture ||
	    !port->caps.segment[id - 1].flags.CpuVisible)
		return "tables of the paging process must be in a CPU-visible memory segment or in "
		       "system memory (0)";
	return NULL;
}

static NTSTATUS check_level(struct vmm_port *port, UINT level,
			    const DXGK_PAGE_TABLE_LEVEL_DESC *desc)
{
	const DXGK_GPUMMUCAPS *caps = &port->caps.gpummu.caps;
	bool resizable = caps->PageTableLevelCount == 2 && level == 1;
	const char *wrong = segment_error(port, desc);

	if (!wrong && (desc->PageTableAlignmentInBytes & (desc->PageTableAlignmentInBytes - 1)))
		wrong = "the alignment must be 0 or a power of two";
	if (!wrong && !desc->PageTableSegmentId && desc->PageTableAlignmentInBytes > VMM_PAGE_SIZE)
		wrong = "the alignment of a table in system memory must not exceed 4096";
	if (!wrong && desc->PageTableSizeInBytes % VMM_PAGE_SIZE)
		wrong = "the size must be a multiple of 4096";
	if (!wrong && !resizable && !desc->PageTableSizeInBytes)
		wrong = "a table of fixed size must report its size";
	if (!wrong &&
	    (desc->PageTableIndexBitCount > 24 || (!resizable && !desc->PageTableIndexBitCount)))
		wrong = "an index must have 1 to 24 bits";
	if (!wrong)
		wrong = paging_segment_error(port, desc);
	if (!wrong)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		port->observe, STATUS_INVALID_PARAMETER, "VA-11", 0, 0,
		"PAGETABLELEVELDESC of level %u: PageTableIndexBitCount %u, PageTableSegmentId "
		"%u, PagingProcessPageTableSegmentId %u, PageTableSizeInBytes %u, "
		"PageTableAlignmentInBytes %u: %s",
		level, desc->PageTableIndexBitCount, desc->PageTableSegmentId,
		desc->PagingProcessPageTableSegmentId, desc->PageTableSizeInBytes,
		desc->PageTableAlignmentInBytes, wrong);
}

/*
 * The levels together translate all bits of an address. With two levels the root takes the bits
 * that the leaf leaves.
 */
static NTSTATUS check_bits(struct vmm_port *port)
{
	const struct vmm_port_gpummu *mmu = &port->caps.gpummu;
	UINT levels = mmu->caps.PageTableLevelCount, bits = VMM_PAGE_SHIFT;

	for (UINT i = 0; i < levels && (levels > 2 || i == 0); i++)
		bits += mmu->level[i].PageTableIndexBitCount;
	if (levels == 2 ? bits < mmu->caps.VirtualAddressBitCount &&
				  mmu->caps.VirtualAddressBitCount - bits <= 24
			: bits == mmu->caps.VirtualAddressBitCount)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		port->observe, STATUS_INVALID_PARAMETER, "VA-11", 0, 0,
		"GPUMMUCAPS: VirtualAddressBitCount is %u, but the page offset and the indexes of "
		"%u levels have %u bits",
		mmu->caps.VirtualAddressBitCount, levels == 2 ? 1 : levels, bits);
}

NTSTATUS vmm_port_query_gpummu(struct vmm_port *port)
{
	struct vmm_port_gpummu *mmu = &port->caps.gpummu;
	NTSTATUS status;

	if (!mmu->supported)
		return STATUS_SUCCESS;
	status = query_mmu_caps(port, &mmu->caps);
	if (status >= 0)
		status = check_caps(port, &mmu->caps);
	for (UINT i = 0; status >= 0 && i < mmu->caps.PageTableLevelCount; i++) {
		status = query_level(port, i, &mmu->level[i]);
		if (status >= 0)
			status = check_level(port, i, &mmu->level[i]);
	}
	if (status >= 0)
		status = check_bits(port);
	return status < 0 ? status
			  : vmm_port_table_check_gpummu(port, mmu->caps.PageTableLevelCount == 2);
}
