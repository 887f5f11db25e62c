/* SPDX-License-Identifier: MIT */
/*
 * The client's side: serializes an argument into a request, and stores an answer in the argument.
 */
#include "wire/wire_private.h"

/* An address of the program; to the host it is only a number. */
static void *pointer(uint64_t value)
{
	return (void *)(uintptr_t)value;
}

static vmm_status request_record(struct vmm_wire_call *call, const struct vmm_wire_record *record,
				 uint32_t at);

static vmm_status request_array(struct vmm_wire_call *call, const struct vmm_wire_member *member,
				uint32_t at)
{
	uint32_t slot = at + member->at;
	uint64_t memory = vmm_wire_slot(call, slot);

	if (!memory)
		return VMM_OK;
	uint64_t count = vmm_wire_count(call, member, at);
	if (count > member->limit) {
		vmm_wire_set_slot(call, slot, VMM_WIRE_TOO_LONG);
		return VMM_OK;
	}
	const uint8_t *sent =
		vmm_wire_append(&call->request, pointer(memory), count * member->unit);
	if (!sent)
		return VMM_NO_MEMORY;
	struct vmm_wire_span span = {
		.slot = slot,
		.at = (uint32_t)(sent - call->request.data),
		.bytes = (uint32_t)(count * member->unit),
		.returned = member->returned,
		.memory = pointer(memory),
	};
	vmm_wire_set_slot(call, slot, VMM_WIRE_SENT);
	vmm_status status = vmm_wire_add_span(call, &span);
	for (uint64_t i = 0; member->record && i < count && vmm_ok(status); i++)
		status = request_record(call, member->record, span.at + (uint32_t)i * member->unit);
	return status;
}

static vmm_status request_descriptor(struct vmm_wire_call *call, uint32_t slot)
{
	uint64_t handle = vmm_wire_slot(call, slot);

	if (!handle)
		return VMM_OK;
	if (handle > INT32_MAX) {
		vmm_wire_set_slot(call, slot, VMM_WIRE_NO_DESCRIPTOR);
		return VMM_OK;
	}
	if (call->descriptor_count == VMM_WIRE_DESCRIPTORS_MAX)
		return VMM_INVALID_PARAMETER;
	call->descriptor_at[call->descriptor_count] = slot;
	call->descriptors[call->descriptor_count++] = (int64_t)handle;
	vmm_wire_set_slot(call, slot, call->descriptor_count);
	return VMM_OK;
}

void vmm_wire_mark_closed(struct vmm_wire_call *call, uint32_t which)
{
	vmm_wire_set_slot(call, call->descriptor_at[which], VMM_WIRE_NO_DESCRIPTOR);
}

static vmm_status request_member(struct vmm_wire_call *call, const struct vmm_wire_member *member,
				 uint32_t at)
{
	switch (vmm_wire_kind_of(call, member)) {
	case VMM_WIRE_ARRAY:
		return request_array(call, member, at);
	case VMM_WIRE_DESCRIPTOR:
		return request_descriptor(call, at + member->at);
	case VMM_WIRE_DESCRIPTOR_OUT:
	case VMM_WIRE_INTO:
	case VMM_WIRE_UNREAD:
		vmm_wire_set_slot(call, at + member->at, VMM_WIRE_NULL);
		return VMM_OK;
	case VMM_WIRE_PRESENCE:
		if (vmm_wire_slot(call, at + member->at))
			vmm_wire_set_slot(call, at + member->at, VMM_WIRE_SENT);
		return VMM_OK;
	default: /* sent as it is */
		return VMM_OK;
	}
}

static vmm_status request_record(struct vmm_wire_call *call, const struct vmm_wire_record *record,
				 uint32_t at)
{
	vmm_status status = VMM_OK;

	for (uint32_t i = 0; i < record->count && vmm_ok(status); i++)
		if (vmm_wire_applies(call, &record->members[i], at))
			status = request_member(call, &record->members[i], at);
	return status;
}

vmm_status vmm_wire_make_request(struct vmm_wire_call *call,
				 const struct vmm_wire_operation *operation, const void *argument)
{
	call->operation = operation;
	call->request.length = 0;
	call->count = call->descriptor_count = 0;
	if (!argument || !operation->argument->bytes)
		return VMM_OK;
	if (!vmm_wire_append(&call->request, argument, operation->argument->bytes))
		return VMM_NO_MEMORY;
	return request_record(call, operation->argument, 0);
}

/* ---- the answer ---- */

static vmm_status copy_answer(struct vmm_wire_call *call, const uint8_t *answer, uint32_t bytes)
{
	uint64_t at = 0;

	if (call->operation->returned) {
		uint32_t length = call->operation->argument->bytes;

		if (bytes < length)
			return VMM_INVALID_PARAMETER;
		memcpy(call->request.data, answer, length);
		at = vmm_align_up(length, 8);
	}
	for (uint32_t i = 0; i < call->count; i++) {
		const struct vmm_wire_span *span = &call->spans[i];

		if (!span->returned)
			continue;
		if (at > bytes || span->bytes > bytes - at)
			return VMM_INVALID_PARAMETER;
		if (span->bytes)
			memcpy(call->request.data + span->at, answer + at, span->bytes);
		at = vmm_align_up(at + span->bytes, 8);
	}
	return at == bytes ? VMM_OK : VMM_INVALID_PARAMETER;
}

/* Translates an offset + 1 in an array of the client to an address. 0 stays 0. */
static vmm_status restore_into(struct vmm_wire_call *call, const struct vmm_wire_member *member,
			       uint64_t *value)
{
	const struct vmm_wire_span *span = vmm_wire_span_of(call, member->into);

	if (!*value)
		return VMM_OK;
	if (!span || *value > span->bytes)
		return VMM_INVALID_PARAMETER;
	*value = (uint64_t)(uintptr_t)((uint8_t *)span->memory + *value - 1);
	return VMM_OK;
}

static vmm_status restore_descriptor(const struct vmm_wire_call *call, uint64_t *value)
{
	if (!*value)
		return VMM_OK;
	if (*value > call->descriptor_count)
		return VMM_INVALID_PARAMETER;
	*value = (uint64_t)call->descriptors[*value - 1];
	return VMM_OK;
}

static vmm_status restore_record(struct vmm_wire_call *call, const struct vmm_wire_record *record,
				 uint32_t at, const uint8_t *to);

static vmm_status restore_array(struct vmm_wire_call *call, const struct vmm_wire_member *member,
				uint32_t at)
{
	struct vmm_wire_span *span = vmm_wire_next_span(call, at + member->at);
	vmm_status status = VMM_OK;

	if (!span || !member->record)
		return VMM_OK;
	for (uint32_t done = 0; done < span->bytes && vmm_ok(status); done += member->unit)
		status = restore_record(call, member->record, span->at + done,
					(const uint8_t *)span->memory + done);
	return status;
}

/* Stores what the host returned in the slot; otherwise the slot gets the client's value back. */
static vmm_status restore_member(struct vmm_wire_call *call, const struct vmm_wire_member *member,
				 uint32_t at, const uint8_t *to)
{
	uint32_t slot = at + member->at;
	uint64_t value = vmm_wire_slot(call, slot);
	vmm_status status = VMM_OK;

	switch (vmm_wire_kind_of(call, member)) {
	case VMM_WIRE_ADDRESS:
	case VMM_WIRE_TOKEN:
		return VMM_OK;
	case VMM_WIRE_INTO:
		status = restore_into(call, member, &value);
		break;
	case VMM_WIRE_DESCRIPTOR_OUT:
		status = restore_descriptor(call, &value);
		break;
	case VMM_WIRE_ARRAY:
		status = restore_array(call, member, at);
		value = 0;
		break;
	default:
		value = 0;
		break;
	}
	if (!value)
		memcpy(&value, to + member->at, sizeof(value));
	vmm_wire_set_slot(call, slot, value);
	return status;
}

static vmm_status restore_record(struct vmm_wire_call *call, const struct vmm_wire_record *record,
				 uint32_t at, const uint8_t *to)
{
	vmm_status status = VMM_OK;

	for (uint32_t i = 0; i < record->count && vmm_ok(status); i++)
		if (vmm_wire_applies(call, &record->members[i], at))
			status = restore_member(call, &record->members[i], at, to);
	return status;
}

vmm_status vmm_wire_read_answer(struct vmm_wire_call *call, const uint8_t *answer, uint32_t bytes,
				void *argument)
{
	if (!argument || !call->operation->argument->bytes)
		return bytes ? VMM_INVALID_PARAMETER : VMM_OK;
	vmm_status status = copy_answer(call, answer, bytes);

	call->next = 0;
	if (vmm_ok(status))
		status = restore_record(call, call->operation->argument, 0, argument);
	if (!vmm_ok(status))
		return status;
	if (call->operation->returned)
		memcpy(argument, call->request.data, call->operation->argument->bytes);
	for (uint32_t i = 0; i < call->count; i++) {
		const struct vmm_wire_span *span = &call->spans[i];

		if (span->returned && span->bytes)
			memcpy(span->memory, call->request.data + span->at, span->bytes);
	}
	return VMM_OK;
}
