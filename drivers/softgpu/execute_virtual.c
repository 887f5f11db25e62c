/* SPDX-License-Identifier: MIT */
/*
 * The command decoder for packets of contexts with GPU virtual addresses. Their commands are in
 * memory that the client may change at any time, so each command is read once, before it is
 * checked. Every address is translated when it is used. A page fault or a wrong command ends the
 * packet; what was executed before stays done.
 */
#include "execute_virtual.h"

#include "atomic.h"
#include "copy.h"

/* The work after which a packet lets a reset and the time that passed have an effect. */
#define BREATH_BYTES ((uint64_t)16 << 20)

union any_command {
	struct softgpu_command command;
	struct softgpu_reference reference;
	struct softgpu_traffic traffic;
	struct softgpu_fill fill;
	struct softgpu_copy copy;
	struct softgpu_sync sync;
	struct softgpu_stall stall;
	struct softgpu_stamps stamps;
	struct softgpu_relocations relocations;
	struct softgpu_report_command report;
	struct softgpu_hw_blit blit;
};

static char *translate(struct softgpu_run *run, uint64_t address, uint64_t *bytes,
		       enum softgpu_access access)
{
	return softgpu_translate(&run->engine->mmu, run->space, address, bytes, access);
}

static void charge(struct softgpu_run *run)
{
	softgpu_charge_bytes(run->engine, run->work - run->remote, 1);
	softgpu_charge_bytes(run->engine, run->remote, 0);
	run->work = 0;
	run->remote = 0;
}

int softgpu_run_worked(struct softgpu_run *run, uint64_t bytes)
{
	run->work += bytes;
	if (run->work < BREATH_BYTES)
		return 1;
	charge(run);
	return softgpu_engine_breathe(run->engine);
}

/* The same for bytes that were read at `in` (NULL: not read) and written at `out`. */
static int moved(struct softgpu_run *run, const char *in, const char *out, uint64_t bytes)
{
	const struct softgpu_memory *memory = &run->engine->adapter->memory;

	if (!softgpu_is_video_memory(memory, out) || (in && !softgpu_is_video_memory(memory, in)))
		run->remote += bytes;
	return softgpu_run_worked(run, bytes);
}

/* ---- access ---- */

NTSTATUS softgpu_run_read(struct softgpu_run *run, uint64_t address, void *data, uint64_t length)
{
	char *out = data;

	while (length) {
		uint64_t bytes = length;
		const char *in = translate(run, address, &bytes, SOFTGPU_READ);

		if (!in)
			return SOFTGPU_PAGE_FAULT;
		memcpy(out, in, (size_t)bytes);
		out += bytes;
		address += bytes;
		length -= bytes;
	}
	return STATUS_SUCCESS;
}

NTSTATUS softgpu_run_write(struct softgpu_run *run, uint64_t address, const void *data,
			   uint64_t length)
{
	const char *in = data;

	while (length) {
		uint64_t bytes = length;
		char *out = translate(run, address, &bytes, SOFTGPU_WRITE);

		if (!out)
			return SOFTGPU_PAGE_FAULT;
		memcpy(out, in, (size_t)bytes);
		in += bytes;
		address += bytes;
		length -= bytes;
	}
	return STATUS_SUCCESS;
}

/* ---- commands ---- */

static NTSTATUS reference(struct softgpu_run *run, uint64_t address, uint32_t flags)
{
	uint32_t word;
	NTSTATUS status = softgpu_run_read(run, address, &word, sizeof(word));

	if (!NT_SUCCESS(status) || !(flags & SOFTGPU_FLAG_WRITE))
		return status;
	return softgpu_run_write(run, address, &word, sizeof(word));
}

static NTSTATUS traffic(struct softgpu_run *run, const struct softgpu_traffic *command)
{
	uint64_t address = command->operand.address, bytes = 1;
	NTSTATUS status = reference(run, address, command->command.flags);

	if (NT_SUCCESS(status))
		softgpu_charge_traffic(run->engine, command,
				       translate(run, address, &bytes, SOFTGPU_READ));
	return status;
}

NTSTATUS softgpu_run_fill(struct softgpu_run *run, const struct softgpu_fill *command)
{
	uint64_t done = 0;

	while (done < command->length) {
		uint64_t bytes = command->length - done;
		char *out = translate(run, command->operand.address + done, &bytes, SOFTGPU_WRITE);

		if (!out)
			return SOFTGPU_PAGE_FAULT;
		softgpu_fill(out, command->pattern, (size_t)bytes, (size_t)(done & 3));
		done += bytes;
		if (!moved(run, NULL, out, bytes))
			return SOFTGPU_ABORTED;
	}
	return STATUS_SUCCESS;
}

/* Two addresses may lead to the same memory. Then the order of the bytes is undefined. */
static void copy_run(char *out, const char *in, uint64_t bytes)
{
	if (out + bytes <= in || in + bytes <= out)
		softgpu_copy(out, in, (size_t)bytes);
	else
		memmove(out, in, (size_t)bytes);
}

NTSTATUS softgpu_run_copy(struct softgpu_run *run, const struct softgpu_copy *command)
{
	uint64_t done = 0;

	while (done < command->length) {
		uint64_t bytes = command->length - done;
		const char *in =
			translate(run, command->source.address + done, &bytes, SOFTGPU_READ);
		char *out = in ? translate(run, command->destination.address + done, &bytes,
					   SOFTGPU_WRITE)
			       : NULL;

		if (!out)
			return SOFTGPU_PAGE_FAULT;
		copy_run(out, in, bytes);
		done += bytes;
		if (!moved(run, in, out, bytes))
			return SOFTGPU_ABORTED;
	}
	return STATUS_SUCCESS;
}

static volatile uint64_t *sync_word(struct softgpu_run *run, const struct softgpu_sync *command,
				    enum softgpu_access access)
{
	uint64_t bytes = sizeof(uint64_t);

	return (volatile uint64_t *)(void *)translate(run, command->operand.address, &bytes,
						      access);
}

static NTSTATUS wait_value(struct softgpu_run *run, const struct softgpu_sync *command)
{
	struct softgpu_hw_queue *hw = run->engine->hw_running;
	uint64_t interval_ns = hw ? hw->poll_ns : 0;

	for (;;) {
		const volatile uint64_t *word = sync_word(run, command, SOFTGPU_READ);

		if (!word)
			return SOFTGPU_PAGE_FAULT;
		if (softgpu_load(word) >= command->value)
			break;
		if (!softgpu_engine_poll(run->engine, &interval_ns)) {
			if (hw)
				hw->poll_ns = interval_ns;
			return SOFTGPU_ABORTED;
		}
	}
	if (hw)
		hw->poll_ns = 0;
	return STATUS_SUCCESS;
}

/*
 * The commands before it have taken their time when the value is visible. A store to a monitored
 * fence wakes its waiters at the end of the packet, or with NOTIFY now.
 */
static NTSTATUS signal_value(struct softgpu_run *run, const struct softgpu_sync *command)
{
	volatile uint64_t *word;

	charge(run);
	if (!softgpu_engine_catch_up(run->engine))
		return SOFTGPU_ABORTED;
	word = sync_word(run, command, SOFTGPU_WRITE);
	if (!word)
		return SOFTGPU_PAGE_FAULT;
	softgpu_store(word, command->value);
	softgpu_engine_signalled(run->engine);
	if (command->command.flags & SOFTGPU_FLAG_NOTIFY) {
		softgpu_bus_leave(softgpu_bus_of(run->engine->adapter));
		softgpu_raise_fence_signaled(run->engine);
		softgpu_bus_enter(softgpu_bus_of(run->engine->adapter));
	}
	return STATUS_SUCCESS;
}

static NTSTATUS go_on(int ok)
{
	return ok ? STATUS_SUCCESS : SOFTGPU_ABORTED;
}

static NTSTATUS execute_command(struct softgpu_run *run, uint64_t address,
				const union any_command *any)
{
	switch (any->command.opcode) {
	case SOFTGPU_REFERENCE:
		return reference(run, any->reference.operand.address, any->command.flags);
	case SOFTGPU_TRAFFIC:
		return traffic(run, &any->traffic);
	case SOFTGPU_FILL:
		return softgpu_run_fill(run, &any->fill);
	case SOFTGPU_COPY:
		return softgpu_run_copy(run, &any->copy);
	case SOFTGPU_WAIT:
		return wait_value(run, &any->sync);
	case SOFTGPU_SIGNAL:
		return signal_value(run, &any->sync);
	case SOFTGPU_STAMP:
		return softgpu_run_stamps(run, &any->stamps);
	case SOFTGPU_RELOCATIONS:
		return softgpu_run_relocations(run, address, &any->relocations);
	case SOFTGPU_REPORT:
		run->report = any->report.operand.address;
		return STATUS_SUCCESS;
	case SOFTGPU_HW_BLIT:
		return softgpu_run_blit(run, &any->blit);
	case SOFTGPU_STALL:
		return go_on(softgpu_engine_stall(run->engine, any->stall.nanoseconds));
	case SOFTGPU_HANG:
		return go_on(softgpu_engine_hang(run->engine));
	case SOFTGPU_LOSE_INTERRUPT:
		run->engine->interrupts = 0;
		return STATUS_SUCCESS;
	case SOFTGPU_REPEAT_INTERRUPT:
		run->engine->interrupts = 2;
		return STATUS_SUCCESS;
	default:
		return STATUS_SUCCESS; /* NOP */
	}
}

/* ---- checks ---- */

/*
 * What a virtual command of this opcode is: its size (0: no such command; of RELOCATIONS without
 * the slots) and its flags.
 */
struct form {
	uint32_t size_bytes, flags;
};

static struct form form_of(uint16_t opcode)
{
	const uint32_t head = sizeof(struct softgpu_command);

	switch (opcode) {
	case SOFTGPU_NOP:
	case SOFTGPU_HANG:
	case SOFTGPU_LOSE_INTERRUPT:
	case SOFTGPU_REPEAT_INTERRUPT:
		return (struct form){head, 0};
	case SOFTGPU_REFERENCE:
		return (struct form){sizeof(struct softgpu_reference), SOFTGPU_FLAG_WRITE};
	case SOFTGPU_TRAFFIC:
		return (struct form){sizeof(struct softgpu_traffic), SOFTGPU_FLAG_WRITE};
	case SOFTGPU_FILL:
		return (struct form){sizeof(struct softgpu_fill), 0};
	case SOFTGPU_COPY:
		return (struct form){sizeof(struct softgpu_copy), 0};
	case SOFTGPU_WAIT:
		return (struct form){sizeof(struct softgpu_sync), 0};
	case SOFTGPU_SIGNAL:
		return (struct form){sizeof(struct softgpu_sync), SOFTGPU_FLAG_NOTIFY};
	case SOFTGPU_STALL:
		return (struct form){sizeof(struct softgpu_stall), 0};
	case SOFTGPU_STAMP:
		return (struct form){sizeof(struct softgpu_stamps),
				     SOFTGPU_FLAG_WRITE | SOFTGPU_FLAG_VERIFY};
	case SOFTGPU_RELOCATIONS:
		return (struct form){sizeof(struct softgpu_relocations), SOFTGPU_FLAG_CHECK};
	case SOFTGPU_REPORT:
		return (struct form){sizeof(struct softgpu_report_command), 0};
	case SOFTGPU_HW_BLIT:
		return (struct form){sizeof(struct softgpu_hw_blit), SOFTGPU_HW_BLIT_FILL};
	default:
		return (struct form){0, 0};
	}
}

static int operand_is_valid(const struct softgpu_operand *operand)
{
	return !operand->allocation && !operand->reserved && !operand->offset;
}

static int stamps_are_valid(const struct softgpu_run *run, const struct softgpu_stamps *stamps)
{
	return operand_is_valid(&stamps->operand) &&
	       (run->report || !(stamps->command.flags & SOFTGPU_FLAG_VERIFY));
}

/* The table has exactly `count` slots behind the structure. */
static int table_is_valid(const struct softgpu_relocations *table)
{
	return !table->reserved &&
	       table->command.size_bytes - sizeof(*table) == (uint64_t)table->count * 8;
}

static int is_aligned_operand(const struct softgpu_operand *operand)
{
	return operand_is_valid(operand) && operand->address % sizeof(uint64_t) == 0;
}

static int operands_are_valid(const struct softgpu_run *run, const union any_command *any)
{
	switch (any->command.opcode) {
	case SOFTGPU_REFERENCE:
		return operand_is_valid(&any->reference.operand);
	case SOFTGPU_TRAFFIC:
		return operand_is_valid(&any->traffic.operand) && any->traffic.length >= 4;
	case SOFTGPU_FILL:
		return operand_is_valid(&any->fill.operand) && !any->fill.reserved;
	case SOFTGPU_COPY:
		return operand_is_valid(&any->copy.source) &&
		       operand_is_valid(&any->copy.destination);
	case SOFTGPU_WAIT:
	case SOFTGPU_SIGNAL:
		return is_aligned_operand(&any->sync.operand);
	case SOFTGPU_STAMP:
		return stamps_are_valid(run, &any->stamps);
	case SOFTGPU_RELOCATIONS:
		return table_is_valid(&any->relocations);
	case SOFTGPU_REPORT:
		return is_aligned_operand(&any->report.operand);
	case SOFTGPU_HW_BLIT:
		return softgpu_blit_is_valid(&any->blit);
	default:
		return 1;
	}
}

static NTSTATUS wrong(struct softgpu_run *run, uint64_t address)
{
	run->engine->mmu.fault = (struct softgpu_fault){.address = address, .is_instruction = 1};
	return STATUS_ILLEGAL_INSTRUCTION;
}

static int has_size(const struct softgpu_command *command, uint32_t bytes)
{
	return command->opcode == SOFTGPU_RELOCATIONS ? command->size_bytes >= bytes
						      : command->size_bytes == bytes;
}

/* Reads and checks the command at an address; `left`: bytes to the end of the packet. */
static NTSTATUS fetch(struct softgpu_run *run, uint64_t address, uint32_t left,
		      union any_command *any)
{
	const struct softgpu_command *command = &any->command;
	NTSTATUS status;
	struct form form;

	if (left < sizeof(*command))
		return wrong(run, address);
	status = softgpu_run_read(run, address, any, sizeof(*command));
	if (!NT_SUCCESS(status))
		return status;
	form = form_of(command->opcode);
	if (!form.size_bytes || !has_size(command, form.size_bytes) || command->size_bytes > left ||
	    (command->flags & ~form.flags))
		return wrong(run, address);
	status = softgpu_run_read(run, address + sizeof(*command), (char *)any + sizeof(*command),
				  form.size_bytes - sizeof(*command));
	if (NT_SUCCESS(status) && !operands_are_valid(run, any))
		return wrong(run, address);
	return status;
}

NTSTATUS softgpu_execute_virtual(struct softgpu_engine *engine, struct softgpu_packet *packet)
{
	struct softgpu_run run = {.engine = engine,
				  .space = packet->space,
				  .fence = packet->fence,
				  .report = packet->report};
	NTSTATUS status = STATUS_SUCCESS;

	while (packet->length && NT_SUCCESS(status)) {
		union any_command any;

		status = fetch(&run, packet->address, packet->length, &any);
		if (NT_SUCCESS(status))
			status = execute_command(&run, packet->address, &any);
		if (!NT_SUCCESS(status))
			break;
		packet->address += any.command.size_bytes;
		packet->length -= any.command.size_bytes;
		softgpu_bus_yield(softgpu_bus_of(engine->adapter));
		if (!softgpu_run_worked(&run, any.command.size_bytes))
			status = SOFTGPU_ABORTED;
	}
	packet->report = run.report;
	charge(&run);
	return status;
}

NTSTATUS softgpu_execute_virtual_paging(struct softgpu_engine *engine,
					const struct softgpu_paging_virtual *paging)
{
	struct softgpu_run run = {.engine = engine,
				  .space = (const struct softgpu_space *)(uintptr_t)paging->space};
	const struct softgpu_copy copied = {.source = {.address = paging->source},
					    .destination = {.address = paging->destination},
					    .length = paging->length};
	const struct softgpu_fill filled = {.operand = {.address = paging->destination},
					    .length = paging->length,
					    .pattern = paging->pattern};
	NTSTATUS status = paging->command.opcode == SOFTGPU_PAGING_VIRTUAL_FILL
				  ? softgpu_run_fill(&run, &filled)
				  : softgpu_run_copy(&run, &copied);

	charge(&run);
	return status;
}
