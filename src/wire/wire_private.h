/* SPDX-License-Identifier: MIT */
/*
 * The description of an argument that both sides of the wire walk: which members are pointers,
 * handles, descriptors or counts, and how many elements each has. table.py generates the
 * descriptions from operations.tsv.
 */
#ifndef VMM_WIRE_PRIVATE_H
#define VMM_WIRE_PRIVATE_H

#include <string.h>

#include "wddm/d3dkmthk.h"
#include "wddm/d3dumddi.h"
#include "wire/wire.h"

enum vmm_wire_kind {
	VMM_WIRE_ARRAY,
	VMM_WIRE_INTO,
	VMM_WIRE_DESCRIPTOR,
	VMM_WIRE_DESCRIPTOR_OUT,
	VMM_WIRE_ADDRESS,
	VMM_WIRE_MEMORY,
	VMM_WIRE_CODE,
	VMM_WIRE_TOKEN,
	VMM_WIRE_PRESENCE,
	VMM_WIRE_UNREAD
};
enum vmm_wire_given { VMM_WIRE_ALWAYS, VMM_WIRE_IF_NULL, VMM_WIRE_IF_SET };

/* A pointer or HANDLE member of an argument or record. */
struct vmm_wire_member {
	const char *name;
	uint32_t at;
	enum vmm_wire_kind kind;
	/* For arrays: */
	/* the count is the member at count_at, or `least` if that is 0; otherwise it is `least` */
	bool counted;
	bool returned;
	uint32_t count_at, count_bytes, least;
	uint32_t unit, limit; /* unit: bytes of an element. limit: maximum number of elements. */
	/* a longer array is not NULL to the function, which checks its count before it reads it */
	bool non_null;
	const struct vmm_wire_record *record;
	const char *into; /* name of a member of the operation's argument */
	/* Applies only if (the 32 bits at when_at & when_mask) == when_value; mask 0: always. */
	uint32_t when_at, when_mask, when_value;
	/* And only if the pointer or HANDLE at given_at is NULL (or is not NULL). */
	uint32_t given_at;
	enum vmm_wire_given given;
	/*
	 * And only if the type of the first object of the array at when_objects takes at least
	 * these values (enum vmm_wire_values); 0: always.
	 */
	uint32_t when_values, when_objects;
};
struct vmm_wire_record {
	uint32_t bytes, count;
	const struct vmm_wire_member *members;
};

/* Operations of one kind; their numbers are consecutive. */
struct vmm_wire_numbers {
	uint32_t first, count;
};
#define VMM_WIRE_KINDS 4u
extern const struct vmm_wire_numbers vmm_wire_numbers[VMM_WIRE_KINDS];
extern const struct vmm_wire_operation vmm_wire_operations[];
extern const uint32_t vmm_wire_operation_count;

/* Value of a pointer in the bytes. */
enum { VMM_WIRE_NULL, VMM_WIRE_SENT, VMM_WIRE_TOO_LONG };
/* Value of a HANDLE that is not an open descriptor; the host's function gets this number. */
#define VMM_WIRE_NO_DESCRIPTOR UINT64_MAX

static inline uint64_t vmm_wire_slot(const struct vmm_wire_call *call, uint32_t at)
{
	uint64_t value;

	memcpy(&value, call->request.data + at, sizeof(value));
	return value;
}
static inline void vmm_wire_set_slot(struct vmm_wire_call *call, uint32_t at, uint64_t value)
{
	memcpy(call->request.data + at, &value, sizeof(value));
}

/* ---- walk.c; `at`: offset in the request of the record that has the member ---- */
/* Returns whether the conditions of the member hold. */
bool vmm_wire_applies(const struct vmm_wire_call *call, const struct vmm_wire_member *member,
		      uint32_t at);
/* Returns the kind of the member in this call. */
enum vmm_wire_kind vmm_wire_kind_of(const struct vmm_wire_call *call,
				    const struct vmm_wire_member *member);
/* Returns the number of elements of an array. */
uint64_t vmm_wire_count(const struct vmm_wire_call *call, const struct vmm_wire_member *member,
			uint32_t at);
/* Appends a copy of the span. Returns VMM_OK or VMM_NO_MEMORY. */
vmm_status vmm_wire_add_span(struct vmm_wire_call *call,
			     const struct vmm_wire_span *span) VMM_MUST_CHECK;
/*
 * Returns the next span; they come in the order in which they were added. NULL: nothing was sent
 * for the pointer at `slot`.
 */
struct vmm_wire_span *vmm_wire_next_span(struct vmm_wire_call *call, uint32_t slot);
/* Returns the span of a member of the operation's argument; NULL: it was not sent. */
struct vmm_wire_span *vmm_wire_span_of(struct vmm_wire_call *call, const char *member);
/*
 * Appends bytes, aligned to 8, and returns where. NULL: no memory, or more than VMM_WIRE_BYTES_MAX.
 */
uint8_t *vmm_wire_append(struct vmm_wire_bytes *bytes, const void *data, uint64_t length);

#endif
