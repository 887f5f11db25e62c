/* SPDX-License-Identifier: MIT */
/*
 * The scripted miniport's page tables: real ones, in the memory that they were given. Its GPU
 * writes them when a paging buffer runs (GPU_PHYSICAL), or they are written at once (CPU_VIRTUAL);
 * the GPU walks them from the root. A translation stays in its TLB until it is flushed: an access
 * by a stale translation is counted.
 */
#include "support/scripted_miniport.h"

#include <stdlib.h>
#include <string.h>

#define INDEX_BITS        8u
/* In a SCRIPTED_TABLE command: the table is at an address of the paging process. */
#define IN_PAGING_PROCESS UINT32_MAX

/* ---- what it reports ---- */

bool scripted_mmu_query(struct scripted_miniport *m, const DXGKARG_QUERYADAPTERINFO *args)
{
	const DXGK_QUERYPAGETABLELEVELDESCIN *in = args->pInputData;

	if (!m->settings.caps.MemoryManagementCaps.GpuMmuSupported)
		return false;
	if (args->Type == DXGKQAITYPE_GPUMMUCAPS)
		*(DXGK_GPUMMUCAPS *)args->pOutputData = m->settings.mmu.caps;
	else if (args->Type == DXGKQAITYPE_PAGETABLELEVELDESC && in->LevelIndex < 8)
		*(DXGK_PAGE_TABLE_LEVEL_DESC *)args->pOutputData =
			m->settings.mmu.level[in->LevelIndex];
	else
		return false;
	return true;
}

/* ---- processes ---- */

struct scripted_process *scripted_process(struct scripted_miniport *m, uint32_t number)
{
	return &m->process[number];
}

static void reserve(struct scripted_miniport *m, HANDLE process)
{
	DXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE args = {
		.hDxgkProcess = process, .SizeInBytes = m->settings.mmu.reserve_bytes};

	if (!args.SizeInBytes)
		return;
	m->settings.mmu.reserve_status =
		m->services.DxgkCbReserveGpuVirtualAddressRange(m->services.DeviceHandle, &args);
	m->settings.mmu.reserved_at = args.StartVirtualAddress;
}

static NTSTATUS APIENTRY create_process(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_CREATEPROCESS args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call =
		scripted_begin(m, VIDMM_DDI_CREATE_PROCESS, NULL, args, sizeof(*args));
	struct scripted_process *process = m->process;

	if (call->forced)
		return scripted_end(m, call, args);
	if (args->Flags.SystemProcess)
		process = &m->paging_process;
	while (process->live)
		process++;
	*process = (struct scripted_process){.m = m, .port = args->hDxgkProcess, .live = true};
	m->live_processes += !args->Flags.SystemProcess;
	args->hKmdProcess = process;
	call->handle = process;
	if (!args->Flags.SystemProcess)
		reserve(m, args->hDxgkProcess);
	return scripted_end(m, call, args);
}

static NTSTATUS APIENTRY destroy_process(IN_CONST_HANDLE adapter, IN_CONST_HANDLE process)
{
	struct scripted_miniport *m = adapter;

	((struct scripted_process *)process)->live = false;
	m->live_processes -= process != &m->paging_process;
	return scripted_end(m, scripted_begin(m, VIDMM_DDI_DESTROY_PROCESS, process, NULL, 0),
			    NULL);
}

static SIZE_T APIENTRY root_size(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_GETROOTPAGETABLESIZE args)
{
	struct scripted_miniport *m = adapter;
	UINT pages = m->settings.mmu.root_pages ? m->settings.mmu.root_pages : 1,
	     each = pages * PAGE_SIZE / (UINT)sizeof(DXGK_PTE);

	scripted_end(
		m, scripted_begin(m, VIDMM_DDI_GET_ROOT_PAGE_TABLE_SIZE, NULL, args, sizeof(*args)),
		args);
	args->NumberOfPte = (args->NumberOfPte + each - 1) / each * each;
	return args->NumberOfPte * sizeof(DXGK_PTE);
}

static VOID APIENTRY set_root(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_SETROOTPAGETABLE args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_root *root = m->root;

	while (root->context && root->context != args->hContext)
		root++;
	if (root < m->root + SCRIPTED_ROOTS_MAX - 1) /* the last one stays empty */
		*root = (struct scripted_root){args->hContext, args->Address, args->NumEntries};
	else
		m->faults++;
	if (args->hContext == m->paging_context)
		m->paging_process.root = args->Address;
	scripted_end(m,
		     scripted_begin(m, VIDMM_DDI_SET_ROOT_PAGE_TABLE, args->hContext, args,
				    sizeof(*args)),
		     NULL);
}

static NTSTATUS APIENTRY submit_virtual(IN_CONST_HANDLE adapter,
					IN_CONST_PDXGKARG_SUBMITCOMMANDVIRTUAL args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL,
						    args->hContext, args, sizeof(*args));
	const DXGKARG_SUBMITCOMMAND submit = {.hContext = args->hContext,
					      .DmaBufferVirtualAddress =
						      args->DmaBufferVirtualAddress,
					      .DmaBufferSubmissionEndOffset = args->DmaBufferSize,
					      .SubmissionFenceId = args->SubmissionFenceId,
					      .Flags = args->Flags};
	uint32_t node;

	scripted_of_context(args->hContext, &node);
	if (!call->forced)
		scripted_gpu_submit(m, node, &submit);
	return scripted_end(m, call, NULL);
}

static NTSTATUS APIENTRY validate_command(IN_CONST_HANDLE adapter,
					  INOUT_PDXGKARG_VALIDATESUBMITCOMMAND args)
{
	struct scripted_miniport *m = adapter;
	struct scripted_call *call = scripted_begin(m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND,
						    args->Context[0], args, sizeof(*args));
	unsigned char *data = args->pPrivateDriverData;

	if (args->PrivateDriverDataSize > args->UmdPrivateDataSize)
		data[args->UmdPrivateDataSize] = SCRIPTED_VALIDATED;
	return scripted_end(m, call, args);
}

void scripted_validate_commands(struct scripted_miniport *m)
{
	m->settings.table.DxgkDdiValidateSubmitCommand = validate_command;
}

void scripted_mmu(struct scripted_miniport *m, uint32_t levels, uint32_t segment)
{
	struct scripted_mmu_settings *mmu = &m->settings.mmu;

	m->settings.caps.MemoryManagementCaps.VirtualAddressingSupported = 1;
	m->settings.caps.MemoryManagementCaps.GpuMmuSupported = 1;
	mmu->caps = (DXGK_GPUMMUCAPS){
		.PageTableUpdateMode = segment ? DXGK_PAGETABLEUPDATE_GPU_PHYSICAL
					       : DXGK_PAGETABLEUPDATE_CPU_VIRTUAL,
		.VirtualAddressBitCount = levels == 2 ? 32 : 12 + levels * INDEX_BITS,
		.LeafPageTableSizeFor64KPagesInBytes = PAGE_SIZE,
		.PageTableLevelCount = levels,
	};
	mmu->caps.ReadOnlyMemorySupported = mmu->caps.NoExecuteMemorySupported = 1;
	mmu->caps.ZeroInPteSupported = mmu->caps.CacheCoherentMemorySupported = 1;
	for (uint32_t i = 0; i < 8; i++)
		mmu->level[i] = (DXGK_PAGE_TABLE_LEVEL_DESC){.PageTableIndexBitCount = INDEX_BITS,
							     .PageTableSegmentId = segment,
							     .PageTableSizeInBytes = PAGE_SIZE};
	if (levels == 2) {
		mmu->level[1].PageTableIndexBitCount = 0;
		mmu->level[1].PageTableSizeInBytes = 0;
	}
	m->settings.table.DxgkDdiCreateProcess = create_process;
	m->settings.table.DxgkDdiDestroyProcess = destroy_process;
	m->settings.table.DxgkDdiGetRootPageTableSize = root_size;
	m->settings.table.DxgkDdiSetRootPageTable = set_root;
	m->settings.table.DxgkDdiSubmitCommandVirtual = submit_virtual;
}

/* ---- tables ---- */

static bool access_table(struct scripted_miniport *m, D3DGPU_PHYSICAL_ADDRESS table, UINT index,
			 DXGK_PTE *entry, bool write)
{
	uint64_t address = table.SegmentOffset + index * sizeof(*entry);
	PHYSICAL_ADDRESS physical = {.QuadPart = (LONGLONG)address};
	char *here;

	if (table.SegmentId)
		return scripted_gpu_access(m, table.SegmentId,
					   m->settings.segment[table.SegmentId - 1].base + address,
					   entry, sizeof(*entry), write);
	here = MmGetVirtualForPhysical(physical);
	if (here)
		memcpy(write ? here : (char *)entry, write ? (char *)entry : here, sizeof(*entry));
	return here != NULL;
}

static void note_root(const DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *update,
		      const struct scripted_mmu_settings *mmu)
{
	struct scripted_process *process = update->hProcess;

	if (update->PageTableLevel != mmu->caps.PageTableLevelCount - 1)
		return;
	if (update->UpdateMode == DXGK_PAGETABLEUPDATE_CPU_VIRTUAL)
		process->root = (D3DGPU_PHYSICAL_ADDRESS){
			.SegmentOffset =
				(uint64_t)MmGetPhysicalAddress(update->PageTableAddress.CpuVirtual)
					.QuadPart};
	else
		process->root = update->PageTableAddress.GpuPhysical;
}

/* Without a paging buffer the CPU sets up tables of the paging process (VA-11). */
static DXGK_PAGETABLEUPDATEMODE expected_mode(struct scripted_miniport *m,
					      const DXGKARG_BUILDPAGINGBUFFER *args)
{
	if (args->pDmaBuffer)
		return m->settings.mmu.caps.PageTableUpdateMode;
	m->faults += args->UpdatePageTable.hProcess != &m->paging_process;
	m->paging_context = args->hSystemContext;
	return DXGK_PAGETABLEUPDATE_CPU_VIRTUAL;
}

static NTSTATUS put_update(struct scripted_miniport *m, DXGKARG_BUILDPAGINGBUFFER *args)
{
	const DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *u = &args->UpdatePageTable;
	UINT stored = u->Flags.Repeat ? 1 : u->NumPageTableEntries;
	struct scripted_command *command;

	if (u->UpdateMode != expected_mode(m, args) || u->Reserved0 || u->Flags.Reserved ||
	    !((struct scripted_process *)u->hProcess)->live) {
		m->faults++;
		return STATUS_SUCCESS;
	}
	/* SetRootPageTable has that of the paging process; run_table() finds virtual ones. */
	if (u->hProcess != &m->paging_process && u->UpdateMode != DXGK_PAGETABLEUPDATE_GPU_VIRTUAL)
		note_root(u, &m->settings.mmu);
	if (u->UpdateMode == DXGK_PAGETABLEUPDATE_CPU_VIRTUAL) {
		DXGK_PTE *table = u->PageTableAddress.CpuVirtual;

		for (UINT i = 0; i < u->NumPageTableEntries; i++)
			table[u->StartIndex + i] = u->pPageTableEntries[u->Flags.Repeat ? 0 : i];
		return STATUS_SUCCESS;
	}
	command = scripted_put(args, SCRIPTED_TABLE, stored * sizeof(DXGK_PTE));
	if (!command)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	command->offset = u->StartIndex;
	command->count = u->NumPageTableEntries;
	command->value = u->Flags.Repeat;
	if (u->UpdateMode == DXGK_PAGETABLEUPDATE_GPU_VIRTUAL) {
		command->slot = IN_PAGING_PROCESS;
		command->source.address = u->PageTableAddress.GpuVirtual;
		command->allocation = u->PageTableLevel;
		command->destination.address = (uint64_t)(uintptr_t)u->hProcess;
	} else {
		command->slot = u->PageTableAddress.GpuPhysical.SegmentId;
		command->source.address = u->PageTableAddress.GpuPhysical.SegmentOffset;
	}
	memcpy(command + 1, u->pPageTableEntries, stored * sizeof(DXGK_PTE));
	return STATUS_SUCCESS;
}

static NTSTATUS put_flush(DXGKARG_BUILDPAGINGBUFFER *args)
{
	struct scripted_command *command = scripted_put(args, SCRIPTED_FLUSH, 0);

	if (!command)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	command->offset = (uint64_t)(uintptr_t)args->FlushTlb.hProcess;
	command->source.address = args->FlushTlb.StartVirtualAddress;
	command->destination.address = args->FlushTlb.EndVirtualAddress;
	return STATUS_SUCCESS;
}

/* The bytes of this pass begin behind those of the passes before (PAG-07). */
static NTSTATUS put_virtual(struct scripted_miniport *m, DXGKARG_BUILDPAGINGBUFFER *args)
{
	const bool fill = args->Operation == DXGK_OPERATION_VIRTUAL_FILL;
	uint64_t done = args->MultipassOffset, step;
	NTSTATUS status = scripted_portion(m, args,
					   fill ? args->FillVirtual.FillSizeInBytes
						: args->TransferVirtual.TransferSizeInBytes,
					   &step);
	struct scripted_command *command =
		scripted_put(args, fill ? SCRIPTED_VIRTUAL_FILL : SCRIPTED_VIRTUAL_COPY, 0);

	if (!command)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	command->count = step;
	if (fill) {
		command->value = args->FillVirtual.FillPattern;
		command->destination.address = args->FillVirtual.DestinationVirtualAddress + done;
	} else {
		command->source.address = args->TransferVirtual.SourceVirtualAddress + done;
		command->destination.address =
			args->TransferVirtual.DestinationVirtualAddress + done;
	}
	args->MultipassOffset += (UINT)step;
	return status;
}

/* Its private data are words to store: struct scripted_word. */
static NTSTATUS put_context_update(struct scripted_miniport *m, DXGKARG_BUILDPAGINGBUFFER *args)
{
	const DXGK_BUILDPAGINGBUFFER_UPDATECONTEXTALLOCATION *u = &args->UpdateContextAllocation;
	const struct scripted_word *word = u->pDriverPrivateData;

	for (UINT i = args->MultipassOffset; i < u->DriverPrivateDataSize / sizeof(*word); i++) {
		struct scripted_command *command = scripted_put(args, SCRIPTED_VIRTUAL_FILL, 0);

		if (!command)
			return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
		m->faults += word[i].offset + sizeof(UINT) > u->ContextAllocationSize;
		command->count = sizeof(word[i].value);
		command->value = word[i].value;
		command->destination.address = u->ContextAllocation + word[i].offset;
		args->MultipassOffset++;
	}
	return STATUS_SUCCESS;
}

bool scripted_mmu_paging(struct scripted_miniport *m, DXGKARG_BUILDPAGINGBUFFER *args,
			 NTSTATUS *status)
{
	if (!m->settings.caps.MemoryManagementCaps.GpuMmuSupported)
		return false;
	*status = STATUS_SUCCESS;
	switch (args->Operation) {
	case DXGK_OPERATION_UPDATE_PAGE_TABLE:
		*status = put_update(m, args);
		return true;
	case DXGK_OPERATION_FLUSH_TLB:
		*status = put_flush(args);
		return true;
	case DXGK_OPERATION_VIRTUAL_TRANSFER:
	case DXGK_OPERATION_VIRTUAL_FILL:
		*status = put_virtual(m, args);
		return true;
	case DXGK_OPERATION_UPDATE_CONTEXT_ALLOCATION:
		*status = put_context_update(m, args);
		return true;
	case DXGK_OPERATION_TRANSFER:
	case DXGK_OPERATION_FILL:
	case DXGK_OPERATION_DISCARD_CONTENT:
	case DXGK_OPERATION_READ_PHYSICAL:
	case DXGK_OPERATION_WRITE_PHYSICAL:
	case DXGK_OPERATION_SPECIAL_LOCK_TRANSFER:
		m->faults++; /* PAG-26 */
		return true;
	default:
		return false;
	}
}

/* A command of the paging process, page by page through its tables. */
static void run_virtual(struct scripted_miniport *m, const struct scripted_command *c)
{
	struct scripted_process *process = &m->paging_process;
	char page[PAGE_SIZE] = {0};

	for (uint64_t done = 0, step; done < c->count; done += step) {
		bool good = true;

		step = c->count - done < PAGE_SIZE ? c->count - done : PAGE_SIZE;
		if (c->op == SCRIPTED_VIRTUAL_COPY)
			good = scripted_virtual_access(process, c->source.address + done, page,
						       step, false);
		for (uint64_t i = 0; c->op == SCRIPTED_VIRTUAL_FILL && i < step; i += 4)
			memcpy(page + i, &c->value, sizeof(c->value));
		if (!good || !scripted_virtual_access(process, c->destination.address + done, page,
						      step, true)) {
			m->faults++;
			return;
		}
	}
}

static void run_flush(const struct scripted_command *c)
{
	struct scripted_process *process = (struct scripted_process *)(uintptr_t)c->offset;
	uint64_t first = c->source.address, end = c->destination.address;

	for (uint32_t i = 0; i < SCRIPTED_TLB; i++) {
		uint64_t page = process->tlb[i].page - 1;

		if ((!first && !end) || (page << PAGE_SHIFT >= first && page << PAGE_SHIFT < end))
			process->tlb[i].page = 0;
	}
}

/* A table at an address of the paging process. The root of the other process is found there. */
static void run_table(struct scripted_miniport *m, const struct scripted_command *c)
{
	const DXGK_PTE *entries = (const DXGK_PTE *)(const void *)(c + 1);
	struct scripted_process *process = (void *)(uintptr_t)c->destination.address;
	DXGK_PTE at;

	for (uint64_t i = 0; i < c->count; i++) {
		DXGK_PTE entry = entries[c->value ? 0 : i];

		if (!scripted_virtual_access(&m->paging_process,
					     c->source.address + (c->offset + i) * sizeof(entry),
					     &entry, sizeof(entry), true))
			m->faults++;
	}
	if (c->allocation == m->settings.mmu.caps.PageTableLevelCount - 1 &&
	    scripted_walk(&m->paging_process, c->source.address, &at))
		process->root = (D3DGPU_PHYSICAL_ADDRESS){
			.SegmentId = at.Segment, .SegmentOffset = at.PageAddress << PAGE_SHIFT};
}

void scripted_mmu_run(struct scripted_miniport *m, const struct scripted_command *c)
{
	DXGK_PTE *entries = (DXGK_PTE *)(uintptr_t)(const void *)(c + 1);
	const D3DGPU_PHYSICAL_ADDRESS table = {.SegmentId = c->slot,
					       .SegmentOffset = c->source.address};

	if (c->op == SCRIPTED_FLUSH)
		run_flush(c);
	else if (c->op != SCRIPTED_TABLE)
		run_virtual(m, c);
	else if (c->slot == IN_PAGING_PROCESS)
		run_table(m, c);
	else
		for (uint64_t i = 0; i < c->count; i++)
			if (!access_table(m, table, (UINT)(c->offset + i),
					  &entries[c->value ? 0 : i], true))
				m->faults++;
}

/* ---- translation ---- */

bool scripted_walk(struct scripted_process *process, uint64_t address, DXGK_PTE *entry)
{
	struct scripted_miniport *m = process->m;
	const struct scripted_mmu_settings *mmu = &m->settings.mmu;
	D3DGPU_PHYSICAL_ADDRESS table = process->root;

	for (UINT level = mmu->caps.PageTableLevelCount; level-- > 0;) {
		UINT shift = 12 + level * INDEX_BITS;
		UINT index =
			(UINT)(address >> shift) &
			(level == 1 && mmu->caps.PageTableLevelCount == 2 ? 0xFFFFFFFFu
									  : (1u << INDEX_BITS) - 1);

		if (!access_table(m, table, index, entry, false) || !entry->Valid)
			return false;
		table.SegmentId = entry->Segment;
		table.SegmentOffset = entry->PageTableAddress << PAGE_SHIFT;
	}
	return true;
}

/* Through the TLB, which must agree with the tables. */
static bool translate(struct scripted_process *process, uint64_t address, DXGK_PTE *entry)
{
	struct scripted_translation *slot = &process->tlb[(address >> PAGE_SHIFT) % SCRIPTED_TLB];
	bool valid = scripted_walk(process, address, entry);

	if (!valid)
		memset(entry, 0, sizeof(*entry));
	if (slot->page == (address >> PAGE_SHIFT) + 1) {
		process->m->stale += memcmp(&slot->entry, entry, sizeof(*entry)) != 0;
		*entry = slot->entry;
	} else if (valid || !process->m->settings.mmu.caps.InvalidTlbEntriesNotCached) {
		slot->page = (address >> PAGE_SHIFT) + 1;
		slot->entry = *entry;
	}
	return entry->Valid;
}

static bool access_page(struct scripted_miniport *m, const DXGK_PTE *entry, uint64_t offset,
			void *bytes, size_t length, bool write)
{
	uint64_t address = (entry->PageAddress << PAGE_SHIFT) + offset;
	PHYSICAL_ADDRESS physical = {.QuadPart = (LONGLONG)address};
	char *here;

	if (entry->Zero) {
		if (!write)
			memset(bytes, 0, length);
		return true;
	}
	if (write && entry->ReadOnly)
		return false;
	if (entry->Segment)
		return scripted_gpu_access(m, entry->Segment,
					   m->settings.segment[entry->Segment - 1].base + address,
					   bytes, length, write);
	here = MmGetVirtualForPhysical(physical);
	if (here)
		memcpy(write ? here : (char *)bytes, write ? (char *)bytes : here, length);
	return here != NULL;
}

bool scripted_virtual_access(struct scripted_process *process, uint64_t address, void *bytes,
			     size_t length, bool write)
{
	char *other = bytes;

	while (length) {
		uint64_t offset = address & (PAGE_SIZE - 1);
		size_t step = PAGE_SIZE - offset < length ? PAGE_SIZE - offset : length;
		DXGK_PTE entry;

		if (!translate(process, address, &entry) ||
		    !access_page(process->m, &entry, offset, other, step, write))
			return false;
		other += step;
		address += step;
		length -= step;
	}
	return true;
}

/* ---- packets ---- */

static struct scripted_process *process_of(struct scripted_miniport *m, HANDLE context)
{
	const struct scripted_root *root = m->root;

	while (root->context && root->context != context)
		root++;
	for (uint32_t i = 0; root->context && i < SCRIPTED_PROCESSES_MAX; i++)
		if (m->process[i].live &&
		    !memcmp(&m->process[i].root, &root->address, sizeof(root->address)))
			return &m->process[i];
	return NULL;
}

static bool run(struct scripted_process *process, const struct scripted_command *c)
{
	uint32_t word = c->value;

	if (c->op != SCRIPTED_COPY)
		return scripted_virtual_access(process, c->destination.address, &word, sizeof(word),
					       c->op == SCRIPTED_WRITE);
	for (uint64_t i = 0; i < c->count; i += sizeof(word))
		if (!scripted_virtual_access(process, c->source.address + i, &word, sizeof(word),
					     false) ||
		    !scripted_virtual_access(process, c->destination.address + i, &word,
					     sizeof(word), true))
			return false;
	return true;
}

void scripted_mmu_packet(struct scripted_miniport *m, const DXGKARG_SUBMITCOMMAND *s)
{
	struct scripted_process *process = process_of(m, s->hContext);
	UINT offset = 0;

	while (!s->Flags.NullRendering && offset < s->DmaBufferSubmissionEndOffset) {
		struct scripted_command command = {0};

		if (!process ||
		    !scripted_virtual_access(process, s->DmaBufferVirtualAddress + offset, &command,
					     sizeof(command), false) ||
		    command.size_bytes < sizeof(command) || !run(process, &command)) {
			m->faults++;
			return;
		}
		offset += command.size_bytes;
	}
}
