/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiRender: translates a user's command buffer into a DMA buffer and its patch location list.
 *
 * The command buffer and the input patch location list are user memory that another thread may
 * change at any time. So every word is read exactly once, into the DMA buffer or a local variable,
 * and that copy is checked. No state, no locks, no allocation. Runs on the caller's thread at
 * PASSIVE; several calls may run at once.
 */
#include "softgpu_private.h"

#include "atomic.h"

#define DMA_BUFFER_FULL STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER

struct translation {
	/* user memory */
	const char *commands;
	uint32_t length;
	const D3DDDI_PATCHLOCATIONLIST *relocations;
	uint32_t relocation_count;
	/* progress in it */
	uint32_t at, next_relocation;
	/* output */
	char *dma;
	uint32_t dma_size, out;
	D3DDDI_PATCHLOCATIONLIST *patch;
	uint32_t patch_size, patch_count;

	const DXGK_ALLOCATIONLIST *allocations;
	uint32_t allocation_count;
	int prepatch;
	int unbind_slots;     /* the last element of the list is NULL, for unbinding slots */
	uint32_t first_bound; /* index of the first patch location of the last command */
	/* The last REPORT before `at`. */
	int has_report;
	struct softgpu_operand report;
};

/* The only functions that read user commands. */
static inline void fetch(void *destination, const char *source, size_t bytes)
{
	uint64_t *to = destination;
	size_t i;

	for (i = 0; i < bytes / 8; i++)
		to[i] = softgpu_read_once64(source + 8 * i);
}

static inline struct softgpu_command fetch_header(const char *source)
{
	union {
		uint64_t word;
		struct softgpu_command command;
	} header;

	header.word = softgpu_read_once64(source);
	return header.command;
}

/*
 * Copies a command of fixed size to `record`. Its header is the copy that was checked, because user
 * memory may have changed since.
 */
static inline void copy_command(const struct translation *t, struct softgpu_command header,
				void *record, size_t bytes)
{
	memcpy(record, &header, sizeof(header));
	fetch((char *)record + sizeof(header), t->commands + t->at + sizeof(header),
	      bytes - sizeof(header));
}

static inline int fits(const struct translation *t, uint32_t bytes, uint32_t patches)
{
	return bytes <= t->dma_size - t->out && patches <= t->patch_size - t->patch_count;
}

static inline int operand_is_valid(const struct translation *t,
				   const struct softgpu_operand *operand, uint64_t length,
				   int written)
{
	const DXGK_ALLOCATIONLIST *entry;
	const struct softgpu_open_allocation *open;

	if (operand->allocation >= t->allocation_count || operand->reserved || operand->address)
		return 0;
	entry = &t->allocations[operand->allocation];
	open = entry->hDeviceSpecificAllocation;
	if (!open || (written && !entry->WriteOperation))
		return 0;
	/* AllocationOffset of a patch location has 32 bits. */
	return operand->offset <= UINT32_MAX && operand->offset <= open->size_bytes &&
	       length <= open->size_bytes - operand->offset;
}

/*
 * Adds the patch location of the address at `field` of the command at t->out. Writes the address if
 * it is known.
 */
static inline void add_patch_location(struct translation *t, uint32_t slot, uint32_t opcode,
				      const struct softgpu_operand *operand, size_t field)
{
	const DXGK_ALLOCATIONLIST *entry = &t->allocations[operand->allocation];
	const struct softgpu_open_allocation *open = entry->hDeviceSpecificAllocation;
	D3DDDI_PATCHLOCATIONLIST *patch = &t->patch[t->patch_count++];

	patch->AllocationIndex = operand->allocation;
	patch->Value = slot;
	patch->DriverId = opcode;
	patch->AllocationOffset = (uint32_t)operand->offset;
	patch->PatchOffset = t->out + (uint32_t)field;
	patch->SplitOffset = t->out;
	/* The address is unknown if SegmentId is 0 (DMA-17, DMA-21). */
	*(uint64_t *)(void *)(t->dma + t->out + field) =
		t->prepatch && entry->SegmentId
			? open->base + (uint64_t)entry->PhysicalAddress.QuadPart + operand->offset
			: SOFTGPU_NOWHERE;
}

static inline NTSTATUS put_reference(struct translation *t, struct softgpu_command header)
{
	struct softgpu_reference *record = (struct softgpu_reference *)(void *)(t->dma + t->out);

	if (header.size_bytes != sizeof(*record) || (header.flags & ~SOFTGPU_FLAG_WRITE))
		return STATUS_INVALID_PARAMETER;
	if (!fits(t, sizeof(*record), 1))
		return DMA_BUFFER_FULL;
	copy_command(t, header, record, sizeof(*record));
	if (!operand_is_valid(t, &record->operand, 4, header.flags & SOFTGPU_FLAG_WRITE))
		return STATUS_INVALID_PARAMETER;
	add_patch_location(t, 0, header.opcode, &record->operand,
			   offsetof(struct softgpu_reference, operand.address));
	t->out += sizeof(*record);
	return STATUS_SUCCESS;
}

static NTSTATUS put_traffic(struct translation *t, struct softgpu_command header)
{
	struct softgpu_traffic *record = (struct softgpu_traffic *)(void *)(t->dma + t->out);

	if (header.size_bytes != sizeof(*record) || (header.flags & ~SOFTGPU_FLAG_WRITE))
		return STATUS_INVALID_PARAMETER;
	if (!fits(t, sizeof(*record), 1))
		return DMA_BUFFER_FULL;
	copy_command(t, header, record, sizeof(*record));
	if (record->length < 4 || !operand_is_valid(t, &record->operand, record->length,
						    header.flags & SOFTGPU_FLAG_WRITE))
		return STATUS_INVALID_PARAMETER;
	add_patch_location(t, 0, header.opcode, &record->operand,
			   offsetof(struct softgpu_traffic, operand.address));
	t->out += sizeof(*record);
	return STATUS_SUCCESS;
}

static NTSTATUS put_fill(struct translation *t, struct softgpu_command header)
{
	struct softgpu_fill *record = (struct softgpu_fill *)(void *)(t->dma + t->out);

	if (header.size_bytes != sizeof(*record) || header.flags)
		return STATUS_INVALID_PARAMETER;
	if (!fits(t, sizeof(*record), 1))
		return DMA_BUFFER_FULL;
	copy_command(t, header, record, sizeof(*record));
	if (record->reserved || !operand_is_valid(t, &record->operand, record->length, 1))
		return STATUS_INVALID_PARAMETER;
	add_patch_location(t, 0, header.opcode, &record->operand,
			   offsetof(struct softgpu_fill, operand.address));
	t->out += sizeof(*record);
	return STATUS_SUCCESS;
}

static int ranges_overlap(const struct translation *t, const struct softgpu_copy *copy)
{
	const struct softgpu_open_allocation *a =
		t->allocations[copy->source.allocation].hDeviceSpecificAllocation;
	const struct softgpu_open_allocation *b =
		t->allocations[copy->destination.allocation].hDeviceSpecificAllocation;
	uint64_t from = copy->source.offset, to = copy->destination.offset;

	return a->allocation == b->allocation && from < to + copy->length &&
	       to < from + copy->length;
}

static NTSTATUS put_copy(struct translation *t, struct softgpu_command header)
{
	struct softgpu_copy *record = (struct softgpu_copy *)(void *)(t->dma + t->out);

	if (header.size_bytes != sizeof(*record) || header.flags)
		return STATUS_INVALID_PARAMETER;
	if (!fits(t, sizeof(*record), 2))
		return DMA_BUFFER_FULL;
	copy_command(t, header, record, sizeof(*record));
	if (!operand_is_valid(t, &record->source, record->length, 0) ||
	    !operand_is_valid(t, &record->destination, record->length, 1) ||
	    ranges_overlap(t, record))
		return STATUS_INVALID_PARAMETER;
	add_patch_location(t, 0, header.opcode, &record->source,
			   offsetof(struct softgpu_copy, source.address));
	add_patch_location(t, 1, header.opcode, &record->destination,
			   offsetof(struct softgpu_copy, destination.address));
	t->out += sizeof(*record);
	return STATUS_SUCCESS;
}

/* WAIT and SIGNAL. */
static NTSTATUS put_sync(struct translation *t, struct softgpu_command header)
{
	struct softgpu_sync *record = (struct softgpu_sync *)(void *)(t->dma + t->out);

	if (header.size_bytes != sizeof(*record) || header.flags)
		return STATUS_INVALID_PARAMETER;
	if (!fits(t, sizeof(*record), 1))
		return DMA_BUFFER_FULL;
	copy_command(t, header, record, sizeof(*record));
	if (record->operand.offset % 8 ||
	    !operand_is_valid(t, &record->operand, 8, header.opcode == SOFTGPU_SIGNAL))
		return STATUS_INVALID_PARAMETER;
	add_patch_location(t, 0, header.opcode, &record->operand,
			   offsetof(struct softgpu_sync, operand.address));
	t->out += sizeof(*record);
	return STATUS_SUCCESS;
}

static int report_is_valid(const struct translation *t, const struct softgpu_operand *operand)
{
	return operand->offset % 8 == 0 &&
	       operand->allocation < SOFTGPU_SLOTS - SOFTGPU_SLOT_OF_ALLOCATION &&
	       operand_is_valid(t, operand, sizeof(struct softgpu_report), 1);
}

static NTSTATUS put_report(struct translation *t, struct softgpu_command header)
{
	struct softgpu_report_command *record =
		(struct softgpu_report_command *)(void *)(t->dma + t->out);

	if (header.size_bytes != sizeof(*record) || header.flags)
		return STATUS_INVALID_PARAMETER;
	if (!fits(t, sizeof(*record), 1))
		return DMA_BUFFER_FULL;
	copy_command(t, header, record, sizeof(*record));
	if (!report_is_valid(t, &record->operand))
		return STATUS_INVALID_PARAMETER;
	t->has_report = 1;
	t->report = record->operand;
	add_patch_location(t, SOFTGPU_SLOT_OF_ALLOCATION + t->report.allocation, header.opcode,
			   &t->report, offsetof(struct softgpu_report_command, operand.address));
	t->out += sizeof(*record);
	return STATUS_SUCCESS;
}

static int stamps_are_valid(const struct translation *t, const struct softgpu_stamps *stamps)
{
	uint64_t length = 0;

	if (stamps->block_size < sizeof(struct softgpu_stamp))
		return 0;
	if (stamps->block_count)
		length = (uint64_t)(stamps->block_count - 1) * stamps->block_size +
			 sizeof(struct softgpu_stamp);
	return operand_is_valid(t, &stamps->operand, length,
				stamps->command.flags & SOFTGPU_FLAG_WRITE);
}

static NTSTATUS put_stamps(struct translation *t, struct softgpu_command header)
{
	struct softgpu_hw_stamps *record = (struct softgpu_hw_stamps *)(void *)(t->dma + t->out);
	int reports = (header.flags & SOFTGPU_FLAG_VERIFY) && t->has_report;

	if (header.size_bytes != sizeof(record->user) || !header.flags ||
	    (header.flags & ~(SOFTGPU_FLAG_WRITE | SOFTGPU_FLAG_VERIFY)))
		return STATUS_INVALID_PARAMETER;
	if (!fits(t, sizeof(*record), reports ? 2 : 1))
		return DMA_BUFFER_FULL;
	copy_command(t, header, record, sizeof(record->user));
	if (!stamps_are_valid(t, &record->user))
		return STATUS_INVALID_PARAMETER;
	record->user.command.size_bytes = sizeof(*record);
	record->report_address = SOFTGPU_NOWHERE;
	record->report_bytes = 0;
	add_patch_location(t, 0, header.opcode, &record->user.operand,
			   offsetof(struct softgpu_hw_stamps, user.operand.address));
	if (reports) {
		const struct softgpu_open_allocation *open =
			t->allocations[t->report.allocation].hDeviceSpecificAllocation;

		/*
		 * The buffer may be split before this command, so the command carries its own state
		 * (SPL-04).
		 */
		add_patch_location(t, SOFTGPU_SLOT_OF_ALLOCATION + t->report.allocation,
				   header.opcode, &t->report,
				   offsetof(struct softgpu_hw_stamps, report_address));
		record->report_bytes = open->size_bytes - t->report.offset;
	}
	t->out += sizeof(*record);
	return STATUS_SUCCESS;
}

/*
 * Translates the user's patch locations for the slots [first, first + bytes) of the command buffer.
 * The slots are at t->out + 16 and are zero. This is the hottest loop of the driver: three loads
 * from the user's entry, one entry written.
 */
static NTSTATUS put_slots(struct translation *t, uint32_t first, uint32_t bytes)
{
	const uint32_t start = t->out,
		       table = t->out + (uint32_t)sizeof(struct softgpu_relocations);
	const uint32_t limit = t->allocation_count < SOFTGPU_SLOTS - SOFTGPU_SLOT_OF_ALLOCATION
				       ? t->allocation_count
				       : SOFTGPU_SLOTS - SOFTGPU_SLOT_OF_ALLOCATION;
	const DXGK_ALLOCATIONLIST *allocations = t->allocations;
	char *slots = t->dma + table;
	const int prepatch = t->prepatch;
	const D3DDDI_PATCHLOCATIONLIST *in = t->relocations + t->next_relocation;
	const D3DDDI_PATCHLOCATIONLIST *end = t->relocations + t->relocation_count;
	D3DDDI_PATCHLOCATIONLIST *out = t->patch + t->patch_count;
	D3DDDI_PATCHLOCATIONLIST *out_end = t->patch + t->patch_size;

	for (; in < end; in++, out++) {
		const uint32_t offset = softgpu_read_once32(&in->PatchOffset) - first;
		const uint32_t index = softgpu_read_once32(&in->AllocationIndex);
		const uint32_t delta = softgpu_read_once32(&in->AllocationOffset);

		if (offset >= bytes)
			break;
		if (out == out_end)
			return DMA_BUFFER_FULL;
		if ((offset & 7) || index >= limit || !allocations[index].hDeviceSpecificAllocation)
			return STATUS_INVALID_PARAMETER;
		const struct softgpu_open_allocation *open =
			allocations[index].hDeviceSpecificAllocation;
		out->AllocationIndex = index;
		out->Value = SOFTGPU_SLOT_OF_ALLOCATION + index;
		out->DriverId = SOFTGPU_RELOCATIONS;
		out->AllocationOffset = delta;
		out->PatchOffset = table + offset;
		out->SplitOffset = start;
		*(uint64_t *)(void *)(slots + offset) =
			prepatch && allocations[index].SegmentId
				? open->base +
					  (uint64_t)allocations[index].PhysicalAddress.QuadPart +
					  delta
				: SOFTGPU_NOWHERE;
	}
	t->next_relocation = (uint32_t)(in - t->relocations);
	t->patch_count = (uint32_t)(out - t->patch);
	return STATUS_SUCCESS;
}

static NTSTATUS put_relocations(struct translation *t, struct softgpu_command header)
{
	struct softgpu_relocations *record =
		(struct softgpu_relocations *)(void *)(t->dma + t->out);
	uint32_t patch_count = t->patch_count, bytes;
	NTSTATUS status;

	if (header.size_bytes < sizeof(*record) || (header.flags & ~SOFTGPU_FLAG_CHECK))
		return STATUS_INVALID_PARAMETER;
	if (!fits(t, header.size_bytes, 0))
		return DMA_BUFFER_FULL;
	copy_command(t, header, record, sizeof(*record));
	bytes = header.size_bytes - (uint32_t)sizeof(*record);
	if (record->count != bytes / 8 || record->reserved)
		return STATUS_INVALID_PARAMETER;
	/* The user's values of the slots are not used: a slot without a patch location stays 0. */
	memset(record + 1, 0, bytes);
	status = put_slots(t, t->at + (uint32_t)sizeof(*record), bytes);
	if (!NT_SUCCESS(status)) {
		t->patch_count = patch_count;
		return status;
	}
	t->out += header.size_bytes;
	return STATUS_SUCCESS;
}

/* NOP, STALL, HANG and the interrupt commands: no operands. The payload of a NOP is dropped. */
static NTSTATUS put_plain(struct translation *t, struct softgpu_command header)
{
	struct softgpu_stall *record = (struct softgpu_stall *)(void *)(t->dma + t->out);
	int stall = header.opcode == SOFTGPU_STALL;

	if (header.flags || (stall && header.size_bytes != sizeof(*record)) ||
	    (!stall && header.opcode != SOFTGPU_NOP && header.size_bytes != sizeof(header)))
		return STATUS_INVALID_PARAMETER;
	if (!fits(t, stall ? sizeof(*record) : sizeof(header), 0))
		return DMA_BUFFER_FULL;
	if (stall)
		fetch(&record->nanoseconds, t->commands + t->at + sizeof(header),
		      sizeof(record->nanoseconds));
	else
		header.size_bytes = sizeof(header);
	record->command = header;
	t->out += header.size_bytes;
	return STATUS_SUCCESS;
}

/*
 * ANSWER: Render returns the status that the command names. Success is invalid, because the
 * commands after it would not be read.
 */
static NTSTATUS answer(const struct translation *t, struct softgpu_command header)
{
	struct softgpu_answer wanted;

	if (header.size_bytes != sizeof(wanted) || header.flags)
		return STATUS_INVALID_PARAMETER;
	fetch(&wanted, t->commands + t->at, sizeof(wanted));
	return wanted.status < 0 && !wanted.reserved && wanted.status != DMA_BUFFER_FULL
		       ? wanted.status
		       : STATUS_INVALID_PARAMETER;
}

static NTSTATUS put_command(struct translation *t, struct softgpu_command header)
{
	switch (header.opcode) {
	case SOFTGPU_NOP:
	case SOFTGPU_STALL:
	case SOFTGPU_HANG:
	case SOFTGPU_LOSE_INTERRUPT:
	case SOFTGPU_REPEAT_INTERRUPT:
		return put_plain(t, header);
	case SOFTGPU_ANSWER:
		return answer(t, header);
	case SOFTGPU_REFERENCE:
		return put_reference(t, header);
	case SOFTGPU_TRAFFIC:
		return put_traffic(t, header);
	case SOFTGPU_FILL:
		return put_fill(t, header);
	case SOFTGPU_COPY:
		return put_copy(t, header);
	case SOFTGPU_STAMP:
		return put_stamps(t, header);
	case SOFTGPU_RELOCATIONS:
		return put_relocations(t, header);
	case SOFTGPU_REPORT:
		return put_report(t, header);
	case SOFTGPU_WAIT:
	case SOFTGPU_SIGNAL:
		return put_sync(t, header);
	default:
		return header.opcode >= SOFTGPU_OPCODE_PRIVILEGED ? STATUS_PRIVILEGED_INSTRUCTION
								  : STATUS_ILLEGAL_INSTRUCTION;
	}
}

static int header_is_valid(const struct translation *t, struct softgpu_command header)
{
	return header.size_bytes >= sizeof(header) && header.size_bytes % 8 == 0 &&
	       header.size_bytes <= t->length - t->at;
}

/*
 * Unbinds the slots of the last command: no state outlives a command, so its allocations need not
 * stay resident if the buffer is split after it (PAT-09). Done only on request (the last element of
 * the allocation list is NULL), because it takes one more patch location for each slot.
 */
static NTSTATUS unbind_last_command(struct translation *t)
{
	uint64_t seen[SOFTGPU_SLOTS / 64 + 1] = {0};
	uint32_t end = t->patch_count;

	for (uint32_t p = t->first_bound; p < end; p++) {
		uint32_t slot = t->patch[p].SlotId;
		uint64_t bit = (uint64_t)1 << slot % 64;

		if (seen[slot / 64] & bit)
			continue;
		if (t->patch_count == t->patch_size) {
			t->patch_count = end;
			return DMA_BUFFER_FULL;
		}
		seen[slot / 64] |= bit;
		t->patch[t->patch_count++] = (D3DDDI_PATCHLOCATIONLIST){
			.AllocationIndex = t->allocation_count - 1,
			.Value = slot,
			.PatchOffset = t->out,
			.SplitOffset = t->out,
		};
	}
	return STATUS_SUCCESS;
}

static NTSTATUS put_next(struct translation *t, struct softgpu_command header)
{
	uint32_t patch_count = t->patch_count;
	NTSTATUS status;

	if (!t->unbind_slots)
		return put_command(t, header);
	status = unbind_last_command(t);
	if (!NT_SUCCESS(status))
		return status;
	t->first_bound = t->patch_count;
	status = put_command(t, header);
	/* the buffer ends before this command, so nothing stays bound */
	if (!NT_SUCCESS(status))
		t->patch_count = patch_count;
	return status;
}

static NTSTATUS translate(struct translation *t)
{
	t->unbind_slots = t->allocation_count &&
			  !t->allocations[t->allocation_count - 1].hDeviceSpecificAllocation;

	while (t->at < t->length) {
		struct softgpu_command header = fetch_header(t->commands + t->at);
		NTSTATUS status;

		if (!header_is_valid(t, header))
			return STATUS_INVALID_PARAMETER;
		status = put_next(t, header);
		if (!NT_SUCCESS(status))
			return status;
		t->at += header.size_bytes;
	}
	/* A patch location that no table used refers to nothing. */
	return t->next_relocation == t->relocation_count ? STATUS_SUCCESS
							 : STATUS_INVALID_PARAMETER;
}

/*
 * Continues a buffer that did not fit (DMA-29). The commands before `stop` are in an earlier DMA
 * buffer, but their REPORT still applies. If the user has changed the commands since, no REPORT
 * applies, or another one of the same user.
 */
static void skip_to(struct translation *t, uint32_t stop)
{
	while (t->at < stop) {
		struct softgpu_command header = fetch_header(t->commands + t->at);

		if (!header_is_valid(t, header))
			break;
		if (header.opcode == SOFTGPU_REPORT &&
		    header.size_bytes == sizeof(struct softgpu_report_command)) {
			struct softgpu_operand operand;

			fetch(&operand, t->commands + t->at + sizeof(header), sizeof(operand));
			if (report_is_valid(t, &operand)) {
				t->has_report = 1;
				t->report = operand;
			}
		}
		t->at += header.size_bytes;
	}
	t->at = stop;
	while (t->next_relocation < t->relocation_count &&
	       softgpu_read_once32(&t->relocations[t->next_relocation].PatchOffset) < stop)
		t->next_relocation++;
}

static int arguments_are_valid(const DXGKARG_RENDER *render)
{
	return ((uintptr_t)render->pCommand & 7) == 0 && (render->CommandLength & 7) == 0 &&
	       (render->MultipassOffset & 7) == 0 &&
	       render->MultipassOffset <= render->CommandLength &&
	       ((uintptr_t)render->pPatchLocationListIn & 3) == 0 &&
	       render->DmaBufferPrivateDataSize >= sizeof(struct softgpu_dma_private);
}

NTSTATUS APIENTRY softgpu_render(IN_CONST_HANDLE hContext, INOUT_PDXGKARG_RENDER pRender)
{
	const struct softgpu_context *context = hContext;
	struct softgpu_dma_private *private_data = pRender->pDmaBufferPrivateData;
	struct translation t = {
		.commands = pRender->pCommand,
		.length = pRender->CommandLength,
		.relocations = pRender->pPatchLocationListIn,
		.relocation_count = pRender->PatchLocationListInSize,
		.dma = pRender->pDmaBuffer,
		.dma_size = pRender->DmaSize,
		.patch = pRender->pPatchLocationListOut,
		.patch_size = pRender->PatchLocationListOutSize,
		.allocations = pRender->pAllocationList,
		.allocation_count = pRender->AllocationListSize,
		.prepatch = context->adapter->settings.prepatch != 0,
	};
	NTSTATUS status;

	if (!arguments_are_valid(pRender))
		return STATUS_INVALID_PARAMETER;
	skip_to(&t, pRender->MultipassOffset);
	status = translate(&t);
	/* not even one command fits into an empty buffer */
	if (status == DMA_BUFFER_FULL && t.at == pRender->MultipassOffset)
		return STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status) && status != DMA_BUFFER_FULL)
		return status;
	private_data->kernel_address = (uintptr_t)t.dma;
	pRender->pDmaBuffer = t.dma + t.out;
	pRender->pDmaBufferPrivateData = private_data + 1;
	pRender->pPatchLocationListOut = t.patch + t.patch_count;
	pRender->MultipassOffset = t.at;
	return status;
}
