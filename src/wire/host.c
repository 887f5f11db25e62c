/* SPDX-License-Identifier: MIT */
/*
 * The host's side: turns a request, which may be any bytes, into an argument, and the result of the
 * call into an answer.
 */
#include "wire/wire_private.h"

static vmm_status read_record(struct vmm_wire_call *call, const struct vmm_wire_record *record,
			      uint32_t at, uint32_t *end);

static vmm_status read_array(struct vmm_wire_call *call, const struct vmm_wire_member *member,
			     uint32_t at, uint32_t *end)
{
	uint32_t slot = at + member->at;
	uint64_t sent = vmm_wire_slot(call, slot);

	if (sent == VMM_WIRE_NULL)
		return VMM_OK;
	uint64_t count = vmm_wire_count(call, member, at);
	if (sent == VMM_WIRE_TOO_LONG && count > member->limit) {
		/*
		 * Functions refuse a count without an array. A function to which NULL means
		 * something gets a pointer that it does not read, because it checks the count
		 * first.
		 */
		vmm_wire_set_slot(call, slot,
				  member->non_null ? (uint64_t)(uintptr_t)call->request.data : 0);
		return VMM_OK;
	}
	if (sent != VMM_WIRE_SENT || count > member->limit)
		return VMM_INVALID_PARAMETER;
	uint64_t length = count * member->unit;
	if (vmm_align_up(length, 8) > call->request.length - *end)
		return VMM_INVALID_PARAMETER;
	struct vmm_wire_span span = {
		.slot = slot,
		.at = *end,
		.bytes = (uint32_t)length,
		.returned = member->returned,
	};
	*end += (uint32_t)vmm_align_up(length, 8);
	vmm_status status = vmm_wire_add_span(call, &span);
	for (uint64_t i = 0; member->record && i < count && vmm_ok(status); i++)
		status = read_record(call, member->record, span.at + (uint32_t)i * member->unit,
				     end);
	/* Set last: conditions and counts of nested members are read as the client sent them. */
	vmm_wire_set_slot(call, slot, (uint64_t)(uintptr_t)(call->request.data + span.at));
	return status;
}

static vmm_status read_descriptor(struct vmm_wire_call *call, uint32_t slot)
{
	uint64_t named = vmm_wire_slot(call, slot);

	/* stays: all ones is not a descriptor of the host either */
	if (!named || named == VMM_WIRE_NO_DESCRIPTOR)
		return VMM_OK;
	if (named > call->descriptor_count)
		return VMM_INVALID_PARAMETER;
	vmm_wire_set_slot(call, slot, (uint64_t)call->descriptors[named - 1]);
	return VMM_OK;
}

static vmm_status read_member(struct vmm_wire_call *call, const struct vmm_wire_member *member,
			      uint32_t at, uint32_t *end)
{
	switch (vmm_wire_kind_of(call, member)) {
	case VMM_WIRE_ARRAY:
		return read_array(call, member, at, end);
	case VMM_WIRE_DESCRIPTOR:
		return read_descriptor(call, at + member->at);
	case VMM_WIRE_DESCRIPTOR_OUT:
	case VMM_WIRE_INTO:
	case VMM_WIRE_UNREAD:
		return vmm_wire_slot(call, at + member->at) == VMM_WIRE_NULL
			       ? VMM_OK
			       : VMM_INVALID_PARAMETER;
	case VMM_WIRE_PRESENCE:
		return vmm_wire_slot(call, at + member->at) <= VMM_WIRE_SENT
			       ? VMM_OK
			       : VMM_INVALID_PARAMETER;
	case VMM_WIRE_MEMORY:
	case VMM_WIRE_CODE:
		call->foreign |= vmm_wire_slot(call, at + member->at) != 0;
		return VMM_OK;
	default:
		return VMM_OK;
	}
}

static vmm_status read_record(struct vmm_wire_call *call, const struct vmm_wire_record *record,
			      uint32_t at, uint32_t *end)
{
	vmm_status status = VMM_OK;

	for (uint32_t i = 0; i < record->count && vmm_ok(status); i++)
		if (vmm_wire_applies(call, &record->members[i], at))
			status = read_member(call, &record->members[i], at, end);
	return status;
}

vmm_status vmm_wire_read_request(struct vmm_wire_call *call,
				 const struct vmm_wire_operation *operation,
				 struct vmm_wire_bytes *bytes)
{
	uint32_t end = (uint32_t)vmm_align_up(operation->argument->bytes, 8);

	vmm_free(call->request.data);
	call->operation = operation;
	call->request = *bytes;
	call->count = 0;
	call->foreign = false;
	*bytes = (struct vmm_wire_bytes){0};
	if (!call->request.length) { /* a buffer of length 0 is not the client's data */
		vmm_free(call->request.data);
		call->request = (struct vmm_wire_bytes){0};
		return VMM_OK;
	}
	if (call->descriptor_count > VMM_WIRE_DESCRIPTORS_MAX || call->request.length < end)
		return VMM_INVALID_PARAMETER;
	vmm_status status = read_record(call, operation->argument, 0, &end);
	if (vmm_ok(status) && end != call->request.length)
		return VMM_INVALID_PARAMETER;
	return status;
}

/* ---- the answer ---- */

static void hide_record(struct vmm_wire_call *call, const struct vmm_wire_record *record,
			uint32_t at);

/* Returns the offset + 1 at which `value` points into the array of `into`; 0: not into it. */
static uint64_t offset_in(struct vmm_wire_call *call, const struct vmm_wire_member *member,
			  uint64_t value)
{
	const struct vmm_wire_span *span = vmm_wire_span_of(call, member->into);
	uint64_t begin = span ? (uint64_t)(uintptr_t)(call->request.data + span->at) : 0;

	if (!span || value < begin || value - begin >= span->bytes)
		return 0;
	return value - begin + 1;
}

static void hide_array(struct vmm_wire_call *call, const struct vmm_wire_member *member,
		       uint32_t at)
{
	const struct vmm_wire_span *span = vmm_wire_next_span(call, at + member->at);

	vmm_wire_set_slot(call, at + member->at, span ? VMM_WIRE_SENT : VMM_WIRE_NULL);
	if (!span)
		return;
	for (uint32_t done = 0; member->record && done < span->bytes; done += member->unit)
		hide_record(call, member->record, span->at + done);
}

static void hide_member(struct vmm_wire_call *call, const struct vmm_wire_member *member,
			uint32_t at)
{
	uint32_t slot = at + member->at;
	uint64_t value = vmm_wire_slot(call, slot);

	switch (vmm_wire_kind_of(call, member)) {
	case VMM_WIRE_ARRAY:
		hide_array(call, member, at);
		break;
	case VMM_WIRE_INTO:
		vmm_wire_set_slot(call, slot, offset_in(call, member, value));
		break;
	case VMM_WIRE_DESCRIPTOR_OUT:
		vmm_assert(call->descriptor_count < VMM_WIRE_DESCRIPTORS_MAX);
		if (!value)
			break;
		call->descriptors[call->descriptor_count++] = (int64_t)value;
		vmm_wire_set_slot(call, slot, call->descriptor_count);
		break;
	case VMM_WIRE_DESCRIPTOR:
		vmm_wire_set_slot(call, slot, VMM_WIRE_NULL);
		break;
	default:
		break;
	}
}

/* Removes all addresses and descriptor numbers of the host from the argument. */
static void hide_record(struct vmm_wire_call *call, const struct vmm_wire_record *record,
			uint32_t at)
{
	for (uint32_t i = 0; i < record->count; i++)
		if (vmm_wire_applies(call, &record->members[i], at))
			hide_member(call, &record->members[i], at);
}

static bool append_all(const struct vmm_wire_call *call, struct vmm_wire_bytes *answer)
{
	answer->length = 0;
	if (call->operation->returned &&
	    !vmm_wire_append(answer, call->request.data, call->operation->argument->bytes))
		return false;
	for (uint32_t i = 0; i < call->count; i++) {
		const struct vmm_wire_span *span = &call->spans[i];

		if (span->returned &&
		    !vmm_wire_append(answer, call->request.data + span->at, span->bytes))
			return false;
	}
	return true;
}

vmm_status vmm_wire_reserve_answer(const struct vmm_wire_call *call, struct vmm_wire_bytes *answer,
				   uint64_t *bytes)
{
	*bytes = 0;
	if (!call->request.data)
		return VMM_OK;
	if (call->operation->returned)
		*bytes = vmm_align_up(call->operation->argument->bytes, 8);
	for (uint32_t i = 0; i < call->count; i++)
		if (call->spans[i].returned)
			*bytes += vmm_align_up(call->spans[i].bytes, 8);
	if (vmm_likely(*bytes <= answer->capacity))
		return VMM_OK;
	bool room = append_all(call, answer);
	answer->length = 0;
	return room ? VMM_OK : VMM_NO_MEMORY;
}

vmm_status vmm_wire_make_answer(struct vmm_wire_call *call, struct vmm_wire_bytes *answer)
{
	call->next = call->descriptor_count = 0;
	if (!call->request.data) {
		answer->length = 0;
		return VMM_OK;
	}
	hide_record(call, call->operation->argument, 0);
	return append_all(call, answer) ? VMM_OK : VMM_NO_MEMORY;
}
