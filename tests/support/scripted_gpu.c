/* SPDX-License-Identifier: MIT */
/*
 * The scripted miniport's GPU: node queues, paging commands, an aperture's page table, interrupts.
 */
#include "support/scripted_miniport.h"

#include <stdlib.h>
#include <string.h>

/* ---- addresses ---- */

/* On a link the lead describes the segments that each adapter has. */
static const struct scripted_settings *described(const struct scripted_miniport *m)
{
	return m->engine[0] ? &m->engine[0]->settings : &m->settings;
}

static const struct scripted_segment *segment_of(const struct scripted_miniport *m, uint32_t id)
{
	const struct scripted_settings *s = described(m);

	return id >= 1 && id <= s->segment_count ? &s->segment[id - 1] : NULL;
}

static struct scripted_miniport *owner_of(struct scripted_miniport *m, uint32_t engine)
{
	return engine ? m->engine[engine] : m;
}

static bool is_aperture(const struct scripted_segment *s)
{
	return (s->flags & 0x1) != 0;
}

/* The bytes at an address of a segment, and how many of them are contiguous at least. */
static char *resolve(struct scripted_miniport *m, struct scripted_place place, uint64_t *run)
{
	const struct scripted_segment *s = segment_of(m, place.segment);
	uint64_t offset = s ? place.address - s->base : 0;
	PHYSICAL_ADDRESS page;
	char *base;

	if (!place.segment) {
		*run = UINT64_MAX;
		return (char *)(uintptr_t)place.address;
	}
	m = owner_of(m, place.engine);
	if (!s || !m || offset >= s->size_bytes)
		return NULL;
	if (!is_aperture(s)) {
		char *shown = scripted_host_bytes(m, place.segment, offset, run);

		if (shown)
			return shown;
		/* else page by page: the next page may be mapped in the host aperture */
		if (!m->shown)
			*run = s->size_bytes - offset;
		base = !(s->flags & 0x4) ? m->hidden[place.segment - 1]
		       : s->cpu_bytes    ? s->cpu_bytes
					 : m->bar + s->bar_offset;
		return base ? base + offset : NULL;
	}
	page.QuadPart = (LONGLONG)m->page_table[place.segment - 1][offset >> PAGE_SHIFT];
	base = page.QuadPart ? MmGetVirtualForPhysical(page) : NULL;
	*run = PAGE_SIZE - (offset & (PAGE_SIZE - 1));
	return base ? base + (offset & (PAGE_SIZE - 1)) : NULL;
}

bool scripted_gpu_access(struct scripted_miniport *m, uint32_t segment, uint64_t address,
			 void *bytes, size_t length, bool write)
{
	return scripted_engine_access(m, (struct scripted_place){segment, 0, address}, bytes,
				      length, write);
}

bool scripted_engine_access(struct scripted_miniport *m, struct scripted_place place, void *bytes,
			    size_t length, bool write)
{
	char *other = bytes;

	while (length) {
		uint64_t run = 0;
		char *here = resolve(m, place, &run);
		size_t step = run < length ? (size_t)run : length;

		if (!here)
			return false;
		memmove(write ? here : other, write ? other : here, step);
		other += step;
		place.address += step;
		length -= step;
	}
	return true;
}

/* ---- writing paging buffers ---- */

static struct scripted_place segment_place(const DXGKARG_BUILDPAGINGBUFFER *args, UINT segment,
					   LARGE_INTEGER address, uint64_t offset)
{
	return (struct scripted_place){segment, scripted_paging_engine(args),
				       (uint64_t)address.QuadPart + offset};
}

/*
 * PAG-04: segment 0 is the MDL, from MdlOffset pages on; TransferOffset applies to the segment's
 * side.
 */
static struct scripted_place end_place(const DXGKARG_BUILDPAGINGBUFFER *args,
				       const DXGK_TRANSFER_END *end, uint64_t transfer_offset,
				       uint64_t mdl_offset)
{
	char *pages;

	if (end->SegmentId)
		return segment_place(args, end->SegmentId, end->SegmentAddress, transfer_offset);
	pages = MmGetSystemAddressForMdlSafe(end->pMdl, NormalPagePriority);
	return (struct scripted_place){0, 0, (uint64_t)(uintptr_t)(pages + mdl_offset * PAGE_SIZE)};
}

struct scripted_command *scripted_put(DXGKARG_BUILDPAGINGBUFFER *args, enum scripted_op op,
				      size_t more_bytes)
{
	struct scripted_command *command = args->pDmaBuffer;
	size_t size = sizeof(*command) + more_bytes;

	if (args->DmaSize < size)
		return NULL;
	memset(command, 0, sizeof(*command));
	command->op = op;
	command->size_bytes = (uint32_t)size;
	args->pDmaBuffer = (char *)args->pDmaBuffer + size;
	return command;
}

NTSTATUS scripted_portion(const struct scripted_miniport *m, const DXGKARG_BUILDPAGINGBUFFER *args,
			  uint64_t total, uint64_t *step)
{
	uint64_t chunk = m->settings.transfer_chunk_bytes, left = total - args->MultipassOffset;

	*step = chunk && chunk < left ? chunk : left;
	return *step < left ? STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER : STATUS_SUCCESS;
}

static NTSTATUS put_transfer(struct scripted_miniport *m, DXGKARG_BUILDPAGINGBUFFER *args)
{
	uint64_t done = args->MultipassOffset, step;

	if (!args->Transfer.TransferSize) /* PAG-27: the content is lost */
		return STATUS_SUCCESS;
	NTSTATUS status = scripted_portion(m, args, args->Transfer.TransferSize, &step);
	struct scripted_command *command = scripted_put(args, SCRIPTED_COPY, 0);

	if (!command)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	command->source = end_place(args, &args->Transfer.Source, args->Transfer.TransferOffset,
				    args->Transfer.MdlOffset);
	command->destination = end_place(args, &args->Transfer.Destination,
					 args->Transfer.TransferOffset, args->Transfer.MdlOffset);
	command->source.address += done;
	command->destination.address += done;
	command->count = step;
	args->MultipassOffset += (UINT)step;
	return status;
}

/*
 * SWZ-25: what a lock by an alternate address sees. The tiles of this GPU are plain rows, so it is
 * a copy.
 */
static NTSTATUS put_special(struct scripted_miniport *m, DXGKARG_BUILDPAGINGBUFFER *args)
{
	uint64_t done = args->MultipassOffset, step;
	NTSTATUS status = scripted_portion(m, args, args->SpecialLockTransfer.TransferSize, &step);
	struct scripted_command *command = scripted_put(args, SCRIPTED_COPY, 0);

	if (!command)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	command->source = end_place(args, &args->SpecialLockTransfer.Source,
				    args->SpecialLockTransfer.TransferOffset, 0);
	command->destination = end_place(args, &args->SpecialLockTransfer.Destination,
					 args->SpecialLockTransfer.TransferOffset, 0);
	command->source.address += done;
	command->destination.address += done;
	command->count = step;
	args->MultipassOffset += (UINT)step;
	return status;
}

static NTSTATUS put_fill(struct scripted_miniport *m, DXGKARG_BUILDPAGINGBUFFER *args)
{
	uint64_t done = args->MultipassOffset, step;
	NTSTATUS status = scripted_portion(m, args, args->Fill.FillSize, &step);
	struct scripted_command *command = scripted_put(args, SCRIPTED_FILL, 0);

	if (!command)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	command->destination = segment_place(args, args->Fill.Destination.SegmentId,
					     args->Fill.Destination.SegmentAddress, done);
	command->value = args->Fill.FillPattern;
	command->count = step;
	args->MultipassOffset += (UINT)step;
	return status;
}

/* The context memory begins with a word that says that it is initialized. */
static NTSTATUS put_init(DXGKARG_BUILDPAGINGBUFFER *args)
{
	struct scripted_command *command = scripted_put(args, SCRIPTED_FILL, 0);
	const UINT segment = args->InitContextResource.Destination.SegmentId;
	DXGK_TRANSFER_END end = {.SegmentId = segment};

	if (!command)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	end.SegmentAddress = args->InitContextResource.Destination.SegmentAddress;
	command->destination = end_place(args, &end, 0, 0);
	command->value = SCRIPTED_INIT_WORD;
	command->count = sizeof(command->value);
	return STATUS_SUCCESS;
}

/* The page numbers are written to the buffer, as many as fit: the MDL may not exist later. */
/* The number of a page to be mapped, from an MDL or, from 2.9 on, from a list. */
static uint64_t page_to_map(const DXGKARG_BUILDPAGINGBUFFER *args, uint64_t index)
{
	if (args->Operation == DXGK_OPERATION_MAP_APERTURE_SEGMENT)
		return MmGetMdlPfnArray(
			args->MapApertureSegment.pMdl)[args->MapApertureSegment.MdlOffset + index];
	const DXGK_ADL *adl = &args->MapApertureSegment2.Adl;

	index += args->MapApertureSegment2.AdlOffset;
	if (index >= adl->PageCount)
		abort();
	return adl->Flags.Contiguous ? adl->BasePageNumber + index : adl->Pages[index];
}

/* Both operations begin alike: device, allocation, segment, address and number of pages. */
static NTSTATUS put_map(DXGKARG_BUILDPAGINGBUFFER *args)
{
	uint64_t done = args->MultipassOffset, left = args->MapApertureSegment.NumberOfPages - done,
		 count;
	struct scripted_command *command;
	uint64_t *page;

	if (args->DmaSize < sizeof(*command) + sizeof(*page))
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	count = (args->DmaSize - sizeof(*command)) / sizeof(*page);
	if (count > left)
		count = left;
	command = scripted_put(args, SCRIPTED_MAP, count * sizeof(*page));
	command->destination.segment = args->MapApertureSegment.SegmentId;
	command->destination.engine = scripted_paging_engine(args);
	command->destination.address = args->MapApertureSegment.OffsetInPages + done;
	command->count = count;
	page = (uint64_t *)(void *)(command + 1);
	for (uint64_t i = 0; i < count; i++)
		page[i] = page_to_map(args, done + i) << PAGE_SHIFT;
	args->MultipassOffset += (UINT)count;
	return count < left ? STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER : STATUS_SUCCESS;
}

static NTSTATUS put_unmap(DXGKARG_BUILDPAGINGBUFFER *args)
{
	struct scripted_command *command = scripted_put(args, SCRIPTED_UNMAP, 0);

	if (!command)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	command->destination.segment = args->UnmapApertureSegment.SegmentId;
	command->destination.engine = scripted_paging_engine(args);
	command->destination.address = args->UnmapApertureSegment.OffsetInPages;
	command->offset = (uint64_t)args->UnmapApertureSegment.DummyPage.QuadPart;
	command->count = args->UnmapApertureSegment.NumberOfPages;
	return STATUS_SUCCESS;
}

NTSTATUS scripted_gpu_paging(struct scripted_miniport *m, DXGKARG_BUILDPAGINGBUFFER *args)
{
	NTSTATUS status;

	if (scripted_mmu_paging(m, args, &status))
		return status;
	switch (args->Operation) {
	case DXGK_OPERATION_TRANSFER:
		return put_transfer(m, args);
	case DXGK_OPERATION_SPECIAL_LOCK_TRANSFER:
		return put_special(m, args);
	case DXGK_OPERATION_FILL:
		return put_fill(m, args);
	case DXGK_OPERATION_MAP_APERTURE_SEGMENT:
	case DXGK_OPERATION_MAP_APERTURE_SEGMENT2:
		return put_map(args);
	case DXGK_OPERATION_UNMAP_APERTURE_SEGMENT:
		return put_unmap(args);
	case DXGK_OPERATION_INIT_CONTEXT_RESOURCE:
		return put_init(args);
	case DXGK_OPERATION_DISCARD_CONTENT: /* it keeps no record of contents */
	case DXGK_OPERATION_READ_PHYSICAL:
	case DXGK_OPERATION_WRITE_PHYSICAL:
	case DXGK_OPERATION_NOTIFY_RESIDENCY:
	case DXGK_OPERATION_NOTIFY_ALLOC:
		return STATUS_SUCCESS;
	default:
		return STATUS_NOT_SUPPORTED;
	}
}

/* ---- writing render buffers ---- */

static D3DDDI_PATCHLOCATIONLIST patch_of(const struct scripted_command *command, uint32_t at,
					 uint32_t split)
{
	return (D3DDDI_PATCHLOCATIONLIST){
		.AllocationIndex = command->allocation,
		.SlotId = command->slot,
		.DriverId = at,
		.AllocationOffset = (UINT)command->offset,
		.PatchOffset = at + (UINT)offsetof(struct scripted_command, destination),
		.SplitOffset = split,
	};
}

/* The source of a copy; its slot is separate from that of the destination. */
static D3DDDI_PATCHLOCATIONLIST source_patch_of(const struct scripted_command *command, uint32_t at,
						uint32_t split)
{
	D3DDDI_PATCHLOCATIONLIST patch = patch_of(command, at, split);

	patch.AllocationIndex = command->source.segment;
	patch.SlotId = command->slot + 1;
	patch.AllocationOffset = (UINT)command->source.address;
	patch.PatchOffset = at + (UINT)offsetof(struct scripted_command, source);
	return patch;
}

static bool is_command(const DXGKARG_RENDER *args, const struct scripted_command *command,
		       uint32_t left)
{
	if (left < sizeof(*command) || command->size_bytes < sizeof(*command) ||
	    command->allocation >= args->AllocationListSize)
		return false;
	if (command->op == SCRIPTED_COPY)
		return command->source.segment < args->AllocationListSize;
	return command->op == SCRIPTED_USE || command->op == SCRIPTED_WRITE;
}

/* Copies the commands that fit, with patch locations; the rest is for the next pass. */
/* Not patched (NoPatchingRequired): the address comes from the allocation list. */
static void place_at_once(const DXGKARG_RENDER *args, struct scripted_command *command)
{
	const DXGK_ALLOCATIONLIST *a = &args->pAllocationList[command->allocation];

	command->destination = (struct scripted_place){
		.segment = a->SegmentId,
		.address = (uint64_t)a->PhysicalAddress.QuadPart + command->offset,
	};
}

NTSTATUS scripted_gpu_translate(DXGKARG_RENDER *args)
{
	D3DDDI_PATCHLOCATIONLIST *patch = args->pPatchLocationListOut,
				 *patch_end = patch ? patch + args->PatchLocationListOutSize : NULL;
	char *out = args->pDmaBuffer, *start = out;
	uint32_t done = args->MultipassOffset, split = 0;

	while (done < args->CommandLength) {
		const struct scripted_command *command =
			(const void *)((const char *)args->pCommand + done);

		if (!is_command(args, command, args->CommandLength - done))
			return STATUS_ILLEGAL_INSTRUCTION;
		uint32_t places = !patch ? 0 : command->op == SCRIPTED_COPY ? 2 : 1;
		if ((size_t)(out - start) + sizeof(*command) > args->DmaSize ||
		    (patch && patch_end - patch < (ptrdiff_t)places)) {
			args->MultipassOffset = done;
			break;
		}
		memcpy(out, command, sizeof(*command));
		if (command->split)
			split = (uint32_t)(out - start);
		if (places)
			*patch++ = patch_of(command, (uint32_t)(out - start), split);
		else
			place_at_once(args, (struct scripted_command *)(void *)out);
		if (places == 2)
			*patch++ = source_patch_of(command, (uint32_t)(out - start), split);
		out += sizeof(*command);
		done += command->size_bytes;
	}
	args->pDmaBuffer = out;
	args->pPatchLocationListOut = patch;
	return done < args->CommandLength ? STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER
					  : STATUS_SUCCESS;
}

/* ---- execution ---- */

static void fault(struct scripted_miniport *m)
{
	m->faults++;
}

static void run_copy(struct scripted_miniport *m, const struct scripted_command *c)
{
	struct scripted_place from = c->source, to = c->destination;
	uint64_t left = c->count;

	while (left) {
		uint64_t from_run = 0, to_run = 0, step = left;
		char *source = resolve(m, from, &from_run), *destination = resolve(m, to, &to_run);

		if (!source || !destination) {
			fault(m);
			return;
		}
		step = from_run < step ? from_run : step;
		step = to_run < step ? to_run : step;
		memmove(destination, source, step);
		from.address += step;
		to.address += step;
		left -= step;
	}
}

static void run_fill(struct scripted_miniport *m, const struct scripted_command *c)
{
	struct scripted_place to = c->destination;
	uint64_t left = c->count;

	while (left) {
		uint64_t run = 0, step;
		char *here = resolve(m, to, &run);

		if (!here) {
			fault(m);
			return;
		}
		step = run < left ? run : left;
		for (uint64_t i = 0; i < step; i += sizeof(c->value))
			memcpy(here + i, &c->value, sizeof(c->value));
		to.address += step;
		left -= step;
	}
}

static void run_map(struct scripted_miniport *m, const struct scripted_command *c)
{
	const struct scripted_segment *s = segment_of(m, c->destination.segment);
	const uint64_t *page = (const uint64_t *)(const void *)(c + 1);
	uint64_t first = c->destination.address;

	m = owner_of(m, c->destination.engine);
	if (!s || !is_aperture(s) || (first + c->count) << PAGE_SHIFT > s->size_bytes) {
		fault(m);
		return;
	}
	for (uint64_t i = 0; i < c->count; i++)
		m->page_table[c->destination.segment - 1][first + i] =
			c->op == SCRIPTED_MAP ? page[i] : c->offset;
}

static void run_use(struct scripted_miniport *m, const struct scripted_command *c)
{
	uint32_t word = c->value;

	if (!c->destination.segment ||
	    !scripted_engine_access(m, c->destination, &word, sizeof(word),
				    c->op == SCRIPTED_WRITE))
		fault(m);
}

/*
 * A paging command runs on the adapter for which it was built. Without contexts that is known only
 * here (DMA-33).
 */
static bool is_for(const struct scripted_miniport *m, struct scripted_command *c, uint32_t engine)
{
	if (!m->settings.caps.SchedulingCaps.MultiEngineAware)
		c->source.engine = c->destination.engine = engine;
	return (!c->source.segment || c->source.engine == engine) &&
	       (!c->destination.segment || c->destination.engine == engine);
}

static void run_command(struct scripted_miniport *m, const struct scripted_command *c)
{
	switch (c->op) {
	case SCRIPTED_USE:
	case SCRIPTED_WRITE:
		run_use(m, c);
		break;
	case SCRIPTED_COPY:
		run_copy(m, c);
		break;
	case SCRIPTED_FILL:
		run_fill(m, c);
		break;
	case SCRIPTED_MAP:
	case SCRIPTED_UNMAP:
		run_map(m, c);
		break;
	case SCRIPTED_TABLE:
	case SCRIPTED_FLUSH:
	case SCRIPTED_VIRTUAL_COPY:
	case SCRIPTED_VIRTUAL_FILL:
		scripted_mmu_run(m, c);
		break;
	default:
		fault(m);
	}
}

/* The address of a packet's buffer: physical, or in the aperture. */
static bool fetch(struct scripted_miniport *m, const DXGKARG_SUBMITCOMMAND *s, UINT offset,
		  void *bytes, size_t length)
{
	PHYSICAL_ADDRESS address = s->DmaBufferPhysicalAddress;
	const char *pointer;

	address.QuadPart += offset;
	if (s->DmaBufferSegmentId)
		return scripted_engine_access(m,
					      (struct scripted_place){s->DmaBufferSegmentId,
								      s->EngineOrdinal,
								      (uint64_t)address.QuadPart},
					      bytes, length, false);
	pointer = MmGetVirtualForPhysical(address);
	if (pointer)
		memcpy(bytes, pointer, length);
	return pointer != NULL;
}

/* Content of which each adapter of a link has a part, or a copy. */
static void choose_engine(struct scripted_command *c, uint32_t engine)
{
	if (c->source.engine == SCRIPTED_EACH)
		c->source.engine = engine;
	if (c->destination.engine == SCRIPTED_EACH)
		c->destination.engine = engine;
}

static void run_packet(struct scripted_miniport *m, const DXGKARG_SUBMITCOMMAND *s)
{
	UINT offset = s->DmaBufferSubmissionStartOffset;

	if (s->DmaBufferVirtualAddress) {
		scripted_mmu_packet(m, s);
		return;
	}
	while (!s->Flags.NullRendering && offset < s->DmaBufferSubmissionEndOffset) {
		struct scripted_command head, *command;

		if (!fetch(m, s, offset, &head, sizeof(head)) || head.size_bytes < sizeof(head) ||
		    head.size_bytes > s->DmaBufferSubmissionEndOffset - offset) {
			fault(m);
			return;
		}
		command = malloc(head.size_bytes);
		if (!command)
			abort();
		bool good = fetch(m, s, offset, command, head.size_bytes);

		choose_engine(command, s->EngineOrdinal);
		if (good && (!s->Flags.Paging || is_for(m, command, s->EngineOrdinal)))
			run_command(m, command);
		else
			fault(m);
		free(command);
		offset += head.size_bytes;
	}
}

/* ---- queues and interrupts ---- */

struct report {
	struct scripted_miniport *m;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data;
};

static BOOLEAN report_routine(PVOID context)
{
	struct report *r = context;

	r->m->services.DxgkCbNotifyInterrupt(r->m->services.DeviceHandle, &r->data);
	return r->m->services.DxgkCbQueueDpc(r->m->services.DeviceHandle);
}

static void raise_interrupt(struct report *r)
{
	BOOLEAN result;

	r->m->services.DxgkCbSynchronizeExecution(r->m->services.DeviceHandle, report_routine, r, 0,
						  &result);
}

void scripted_raise(struct scripted_miniport *m, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	struct report r = {.m = m, .data = *data};

	raise_interrupt(&r);
}

/* Without a link an invalid node is reported as it is. */
static uint32_t nodes_each(const struct scripted_miniport *m)
{
	return m->settings.link.NumberOfLinksInChain > 1
		       ? m->settings.caps.GpuEngineTopology.NbAsymetricProcessingNodes
		       : UINT32_MAX;
}

uint32_t scripted_index(const struct scripted_miniport *m, uint32_t node, uint32_t engine)
{
	return engine ? engine * nodes_each(m) + node : node;
}

static void describe_completion(struct report *r, uint32_t node, uint32_t fence)
{
	r->data.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED;
	r->data.DmaCompleted.SubmissionFenceId = fence;
	r->data.DmaCompleted.NodeOrdinal = node % nodes_each(r->m);
	r->data.DmaCompleted.EngineOrdinal = node / nodes_each(r->m);
}

void scripted_report(struct scripted_miniport *m, uint32_t node, uint32_t fence)
{
	struct report r = {.m = m};

	scripted_guard(m);
	m->node[node].reported_fence = fence;
	scripted_unguard(m);
	describe_completion(&r, node, fence);
	raise_interrupt(&r);
}

struct progress {
	struct report report;
	uint32_t node;
};

/* Runs with the interrupt lock held: each fence is reported once, and all in order. */
static BOOLEAN progress_routine(PVOID context)
{
	struct progress *p = context;
	struct scripted_miniport *m = p->report.m;
	struct scripted_node *n = &m->node[p->node];

	scripted_guard(m);
	uint32_t fence = n->completed_fence;
	bool reported = n->reported_fence == fence;
	n->reported_fence = fence;
	scripted_unguard(m);
	if (reported)
		return FALSE;
	describe_completion(&p->report, p->node, fence);
	return report_routine(&p->report);
}

void scripted_report_progress(struct scripted_miniport *m, uint32_t node)
{
	struct progress p = {.report.m = m, .node = node};
	BOOLEAN result;

	m->services.DxgkCbSynchronizeExecution(m->services.DeviceHandle, progress_routine, &p, 0,
					       &result);
}

uint32_t scripted_completed_fence(struct scripted_miniport *m, uint32_t node)
{
	scripted_guard(m);
	uint32_t fence = m->node[node].completed_fence;
	scripted_unguard(m);
	return fence;
}

static uint32_t complete(struct scripted_miniport *m, uint32_t node, uint32_t count);

void scripted_gpu_submit(struct scripted_miniport *m, uint32_t node,
			 const DXGKARG_SUBMITCOMMAND *submit)
{
	struct scripted_node *n = &m->node[node];

	scripted_guard(m);
	if (n->count == SCRIPTED_QUEUE_MAX)
		abort(); /* SUB-15 allows 64 */
	n->queue[(n->head + n->count++) % SCRIPTED_QUEUE_MAX].submit = *submit;
	/*
	 * Ids may begin anywhere (SUB-01): initially the one before the first counts as completed.
	 */
	if (!n->submitted_fence)
		n->completed_fence = n->reported_fence = submit->SubmissionFenceId - 1;
	n->submitted_fence = submit->SubmissionFenceId;
	m->faults += n->halted; /* TDR-05 */
	scripted_unguard(m);
	if (m->settings.complete_at_once)
		complete(m, node, UINT32_MAX);
}

static bool take(struct scripted_miniport *m, struct scripted_node *n,
		 struct scripted_packet *packet)
{
	bool any;

	scripted_guard(m);
	any = n->count != 0;
	if (any) {
		*packet = n->queue[n->head];
		n->head = (n->head + 1) % SCRIPTED_QUEUE_MAX;
		n->count--;
	}
	scripted_unguard(m);
	return any;
}

/*
 * A node executes one packet at a time: a second thread that calls this leaves its packets to the
 * first.
 */
static bool start_running(struct scripted_miniport *m, struct scripted_node *n)
{
	scripted_guard(m);
	bool free = n->count && (!n->drivers || pthread_equal(n->driver, pthread_self()));
	if (free)
		n->driver = pthread_self();
	n->drivers += free;
	scripted_unguard(m);
	return free;
}

static void stop_running(struct scripted_miniport *m, struct scripted_node *n)
{
	scripted_guard(m);
	n->drivers--;
	scripted_unguard(m);
}

static uint32_t complete(struct scripted_miniport *m, uint32_t node, uint32_t count)
{
	struct scripted_node *n = &m->node[node];
	struct scripted_packet packet;
	uint32_t done = 0;

	atomic_fetch_add(&m->completing, 1);
	while (done < count && start_running(m, n)) {
		while (done < count && take(m, n, &packet)) {
			run_packet(m, &packet.submit);
			scripted_guard(m);
			n->completed_fence = packet.submit.SubmissionFenceId;
			scripted_unguard(m);
			if (!m->settings.ignore_fences)
				scripted_report_progress(m, node);
			done++;
		}
		stop_running(m, n);
	}
	atomic_fetch_sub(&m->completing, 1);
	return done;
}

/* The effects of a completion may be the work of another thread. */
void scripted_settle(struct scripted_miniport *m)
{
	if (m->settle && !scripted_in_hook && pthread_equal(m->owner, pthread_self()))
		m->settle(m->settle_context);
}

uint32_t scripted_complete(struct scripted_miniport *m, uint32_t node, uint32_t count)
{
	uint32_t done = complete(m, node, count);

	scripted_settle(m);
	return done;
}

uint32_t scripted_complete_all(struct scripted_miniport *m)
{
	uint32_t done = 0, round;

	do {
		round = 0;
		for (uint32_t node = 0; node < SCRIPTED_NODES_MAX; node++)
			round += complete(m, node, UINT32_MAX);
		done += round;
		scripted_settle(m);
	} while (round);
	return done;
}

uint32_t scripted_outstanding(struct scripted_miniport *m, uint32_t node)
{
	uint32_t count;

	scripted_guard(m);
	count = m->node[node].count;
	scripted_unguard(m);
	return count;
}

void scripted_preempted(struct scripted_miniport *m, uint32_t node, uint32_t fence, uint32_t last)
{
	struct scripted_node *n = &m->node[node];
	struct report r = {.m = m};

	scripted_guard(m);
	n->count = 0;
	scripted_unguard(m);
	r.data.InterruptType = DXGK_INTERRUPT_DMA_PREEMPTED;
	r.data.DmaPreempted.PreemptionFenceId = fence;
	r.data.DmaPreempted.LastCompletedFenceId = last;
	r.data.DmaPreempted.NodeOrdinal = node % nodes_each(m);
	r.data.DmaPreempted.EngineOrdinal = node / nodes_each(m);
	raise_interrupt(&r);
}

void scripted_page_fault(struct scripted_miniport *m, uint32_t node, uint32_t fence, uint32_t flags)
{
	struct scripted_node *n = &m->node[node];
	struct report r = {.m = m};

	scripted_guard(m);
	if (n->count && n->queue[n->head].submit.SubmissionFenceId == fence &&
	    !(flags &
	      (DXGK_PAGE_FAULT_ADAPTER_RESET_REQUIRED | DXGK_PAGE_FAULT_ENGINE_RESET_REQUIRED))) {
		n->completed_fence = n->reported_fence = fence; /* it continues with the next one */
		n->head = (n->head + 1) % SCRIPTED_QUEUE_MAX;
		n->count--;
	}
	scripted_unguard(m);
	r.data.InterruptType = DXGK_INTERRUPT_DMA_PAGE_FAULTED;
	r.data.DmaPageFaulted.FaultedFenceId = fence;
	r.data.DmaPageFaulted.FaultedPrimitiveAPISequenceNumber = 0x1122334455667788;
	r.data.DmaPageFaulted.FaultedPipelineStage = DXGK_RENDER_PIPELINE_STAGE_PIXEL_SHADER;
	r.data.DmaPageFaulted.FaultedBindTableEntry = 17;
	r.data.DmaPageFaulted.PageFaultFlags = (DXGK_PAGE_FAULT_FLAGS)flags;
	r.data.DmaPageFaulted.FaultedVirtualAddress = 0xABCDE000;
	r.data.DmaPageFaulted.FaultErrorCode.IsDeviceSpecificCode = 1;
	r.data.DmaPageFaulted.FaultErrorCode.GeneralErrorCode = 99;
	r.data.DmaPageFaulted.NodeOrdinal = node % nodes_each(m);
	r.data.DmaPageFaulted.EngineOrdinal = node / nodes_each(m);
	raise_interrupt(&r);
}

void scripted_gpu_preempt(struct scripted_miniport *m, uint32_t node, uint32_t fence)
{
	scripted_preempted(m, node, fence, scripted_completed_fence(m, node));
}

uint32_t scripted_gpu_abort(struct scripted_miniport *m, uint32_t node)
{
	struct scripted_node *n = &m->node[node];

	scripted_guard(m);
	if (n->count)
		n->completed_fence = n->queue[n->head].submit.SubmissionFenceId;
	uint32_t fence = n->reported_fence = n->completed_fence;
	n->count = 0;
	scripted_unguard(m);
	return fence;
}

static void forget_mappings(struct scripted_miniport *m)
{
	const struct scripted_settings *s = described(m);

	for (uint32_t i = 0; i < s->segment_count && i < SCRIPTED_SEGMENTS_MAX; i++)
		if (m->page_table[i])
			memset(m->page_table[i], 0,
			       (s->segment[i].size_bytes >> PAGE_SHIFT) * sizeof(uint64_t));
}

void scripted_gpu_halt(struct scripted_miniport *m, bool halted)
{
	scripted_guard(m);
	for (uint32_t i = 0; i < SCRIPTED_NODES_MAX; i++) {
		m->node[i].count = 0;
		m->node[i].completed_fence = m->node[i].reported_fence = m->node[i].submitted_fence;
		m->node[i].halted = halted;
	}
	forget_mappings(m);
	for (uint32_t e = 1; e < SCRIPTED_NODES_MAX && m->engine[e]; e++)
		forget_mappings(m->engine[e]);
	scripted_unguard(m);
}

void scripted_gpu_start(struct scripted_miniport *m)
{
	const struct scripted_settings *settings = described(m);

	scripted_guard(m);
	for (uint32_t i = 0; i < SCRIPTED_NODES_MAX; i++)
		m->node[i].submitted_fence = 0; /* the ids of a new start begin again */
	scripted_unguard(m);
	for (uint32_t i = 0; i < settings->segment_count && i < SCRIPTED_SEGMENTS_MAX; i++) {
		const struct scripted_segment *s = &settings->segment[i];

		if (is_aperture(s))
			m->page_table[i] = calloc((s->size_bytes >> PAGE_SHIFT) + 1,
						  sizeof(*m->page_table[i]));
		else if (!(s->flags & 0x4))
			m->hidden[i] = calloc(1, s->size_bytes ? s->size_bytes : 1);
	}
	scripted_host_start(m);
}

/* A stopped device raises no interrupt: a thread that is completing packets finishes first. */
void scripted_gpu_stop(struct scripted_miniport *m)
{
	LARGE_INTEGER a_moment = {.QuadPart = -10};

	while (atomic_load(&m->completing))
		KeDelayExecutionThread(KernelMode, FALSE, &a_moment);
	for (uint32_t i = 0; i < SCRIPTED_SEGMENTS_MAX; i++) {
		free(m->page_table[i]);
		free(m->hidden[i]);
		m->page_table[i] = NULL;
		m->hidden[i] = NULL;
	}
	scripted_host_stop(m);
}

/* ---- what it reports to 2.x ---- */

static void query_segments4(struct scripted_miniport *m, const DXGKARG_QUERYADAPTERINFO *args)
{
	const struct scripted_settings *s = &m->settings;
	DXGK_QUERYSEGMENTOUT4 *out = args->pOutputData;

	if (!out->pSegmentDescriptor) {
		out->NbSegment = s->segment_count;
		return;
	}
	for (UINT i = 0; i < s->segment_count; i++) {
		DXGK_SEGMENTDESCRIPTOR4 *d =
			(void *)(out->pSegmentDescriptor + i * out->SegmentDescriptorStride);

		d->Flags.Value = s->segment[i].flags;
		d->BaseAddress.QuadPart = (LONGLONG)s->segment[i].base;
		d->Size = s->segment[i].size_bytes;
		d->CommitLimit = s->segment[i].commit_limit_bytes;
		d->CpuTranslatedAddress.QuadPart =
			s->segment[i].cpu_address
				? (LONGLONG)s->segment[i].cpu_address
				: (LONGLONG)m->bar_physical + s->segment[i].bar_offset;
		if (d->Flags.SupportsCpuHostAperture) {
			d->CpuHostAperture.PhysicalAddress.QuadPart =
				(LONGLONG)m->bar_physical + (LONGLONG)s->segment[i].host_offset;
			d->CpuHostAperture.SizeInPages = s->segment[i].host_pages;
		}
		d->NumInvalidMemoryRanges = s->invalid_counts[i];
		d->VprRangeStartOffset = s->segment[i].vpr_offset;
		d->VprRangeSize = s->segment[i].vpr_bytes;
		d->VprAlignment = s->segment[i].vpr_alignment;
		d->NumVprSupported = s->segment[i].vpr_regions;
		d->VprReserveSize = s->segment[i].vpr_reserve_bytes;
	}
	out->NbSegment = s->second_segment_count ? s->second_segment_count : s->segment_count;
	out->PagingBufferSegmentId = s->paging_segment;
	out->PagingBufferSize = s->paging_bytes;
	out->PagingBufferPrivateDataSize = s->paging_private_bytes;
}

static void query_memory_state(const struct scripted_miniport *m,
			       const DXGKARG_QUERYADAPTERINFO *args)
{
	DXGK_SEGMENTMEMORYSTATE *state = args->pOutputData;
	UINT segment = state->DriverSegmentId - 1u;

	for (UINT i = 0;
	     i < m->settings.invalid_counts[segment] && i < state->NumInvalidMemoryRanges; i++)
		state->pMemoryRanges[i] = m->settings.invalid[segment][i];
}

static void query_physical(const struct scripted_miniport *m, const DXGKARG_QUERYADAPTERINFO *args)
{
	const struct scripted_settings *s = &m->settings;
	DXGK_PHYSICALADAPTERCAPS *out = args->pOutputData;

	*out = s->physical;
	if (out->NumExecutionNodes)
		return;
	out->NumExecutionNodes = (WORD)s->caps.GpuEngineTopology.NbAsymetricProcessingNodes;
	out->PagingNodeIndex = (WORD)s->caps.MemoryManagementCaps.PagingNode;
}

NTSTATUS scripted_query_wddm2(struct scripted_miniport *m, const DXGKARG_QUERYADAPTERINFO *args)
{
	if (m->settings.table.Version < DXGKDDI_INTERFACE_VERSION_WDDM2_0)
		return STATUS_NOT_SUPPORTED;
	switch (args->Type) {
	case DXGKQAITYPE_QUERYSEGMENT4:
		query_segments4(m, args);
		return STATUS_SUCCESS;
	case DXGKQAITYPE_SEGMENTMEMORYSTATE:
		query_memory_state(m, args);
		return STATUS_SUCCESS;
	case DXGKQAITYPE_PHYSICALADAPTERCAPS:
		query_physical(m, args);
		return STATUS_SUCCESS;
	default:
		return scripted_mmu_query(m, args) ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED;
	}
}
