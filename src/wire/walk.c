/* SPDX-License-Identifier: MIT */
/* What both sides need to visit the members of an argument in the same order. */
#include "wire/wire_private.h"

const struct vmm_wire_operation *vmm_wire_operation(uint32_t number)
{
	const struct vmm_wire_operation *of_kind = vmm_wire_operations;

	for (uint32_t i = 0; i < VMM_WIRE_KINDS; i++) {
		if (number - vmm_wire_numbers[i].first < vmm_wire_numbers[i].count)
			return &of_kind[number - vmm_wire_numbers[i].first];
		of_kind += vmm_wire_numbers[i].count;
	}
	return NULL;
}

const struct vmm_wire_operation *vmm_wire_operation_named(const char *name)
{
	for (uint32_t i = 0; i < vmm_wire_operation_count; i++)
		if (!strcmp(vmm_wire_operations[i].name, name))
			return &vmm_wire_operations[i];
	return NULL;
}

uint32_t vmm_wire_argument_bytes(const struct vmm_wire_operation *operation)
{
	return operation->argument->bytes;
}

void vmm_wire_finish(struct vmm_wire_call *call)
{
	vmm_free(call->request.data);
	vmm_free(call->spans);
	memset(call, 0, sizeof(*call));
}

/* Returns which values the first object of an array takes. */
static enum vmm_wire_values values_of(const struct vmm_wire_call *call, uint32_t slot)
{
	uint32_t handle;

	for (uint32_t i = 0; call->values && i < call->count; i++) {
		const struct vmm_wire_span *span = &call->spans[i];

		if (span->slot != slot || span->bytes < sizeof(handle))
			continue;
		memcpy(&handle, call->request.data + span->at, sizeof(handle));
		return call->values(call->context, handle);
	}
	return VMM_WIRE_VALUES_NONE;
}

bool vmm_wire_applies(const struct vmm_wire_call *call, const struct vmm_wire_member *member,
		      uint32_t at)
{
	uint32_t value = 0;

	if (member->when_mask)
		memcpy(&value, call->request.data + at + member->when_at, sizeof(value));
	if ((value & member->when_mask) != member->when_value)
		return false;
	if (member->given &&
	    !vmm_wire_slot(call, at + member->given_at) != (member->given == VMM_WIRE_IF_NULL))
		return false;
	return !member->when_values ||
	       (uint32_t)values_of(call, at + member->when_objects) >= member->when_values;
}

enum vmm_wire_kind vmm_wire_kind_of(const struct vmm_wire_call *call,
				    const struct vmm_wire_member *member)
{
	uint32_t bits = 0;

	if (member->kind != VMM_WIRE_MEMORY || !call->operation->section_mask)
		return member->kind;
	memcpy(&bits, call->request.data + call->operation->section_at, sizeof(bits));
	return bits & call->operation->section_mask ? VMM_WIRE_DESCRIPTOR : VMM_WIRE_MEMORY;
}

uint64_t vmm_wire_count(const struct vmm_wire_call *call, const struct vmm_wire_member *member,
			uint32_t at)
{
	uint64_t count = 0;

	/* Little endian: the low bytes come first. */
	if (member->counted)
		memcpy(&count, call->request.data + at + member->count_at, member->count_bytes);
	return count ? count : member->least;
}

vmm_status vmm_wire_add_span(struct vmm_wire_call *call, const struct vmm_wire_span *span)
{
	if (call->count == call->capacity) {
		uint32_t capacity = call->capacity ? 2 * call->capacity : 8;
		struct vmm_wire_span *spans = vmm_calloc(capacity, sizeof(*spans));

		if (!spans)
			return VMM_NO_MEMORY;
		if (call->count)
			memcpy(spans, call->spans, call->count * sizeof(*spans));
		vmm_free(call->spans);
		call->spans = spans;
		call->capacity = capacity;
	}
	call->spans[call->count++] = *span;
	return VMM_OK;
}

struct vmm_wire_span *vmm_wire_next_span(struct vmm_wire_call *call, uint32_t slot)
{
	if (call->next == call->count || call->spans[call->next].slot != slot)
		return NULL;
	return &call->spans[call->next++];
}

struct vmm_wire_span *vmm_wire_span_of(struct vmm_wire_call *call, const char *member)
{
	const struct vmm_wire_record *argument = call->operation->argument;

	for (uint32_t i = 0; i < argument->count; i++) {
		if (strcmp(argument->members[i].name, member))
			continue;
		for (uint32_t k = 0; k < call->count; k++)
			if (call->spans[k].slot == argument->members[i].at)
				return &call->spans[k];
	}
	return NULL;
}

uint8_t *vmm_wire_append(struct vmm_wire_bytes *bytes, const void *data, uint64_t length)
{
	uint32_t padding = -bytes->length & 7;
	uint64_t at = (uint64_t)bytes->length + padding;

	if (length > VMM_WIRE_BYTES_MAX - at)
		return NULL;
	uint64_t end = vmm_align_up(at + length, 8);
	if (end > bytes->capacity || !bytes->data) {
		uint64_t capacity =
			vmm_max_u64(end, vmm_max_u64(512, 2 * (uint64_t)bytes->capacity));
		uint8_t *larger = vmm_calloc(1, capacity);

		if (!larger)
			return NULL;
		if (bytes->length)
			memcpy(larger, bytes->data, bytes->length);
		vmm_free(bytes->data);
		bytes->data = larger;
		bytes->capacity = (uint32_t)capacity;
	}
	/* The padding is zero, so no other memory of this process is sent. */
	memset(bytes->data + bytes->length, 0, padding);
	if (length)
		memcpy(bytes->data + at, data, length);
	memset(bytes->data + at + length, 0, end - at - length);
	bytes->length = (uint32_t)end;
	return bytes->data + at;
}
