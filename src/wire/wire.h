/* SPDX-License-Identifier: MIT */
/*
 * wire: calls as bytes, so that caller and callee need not share memory. Calls are D3DKMT
 * functions, device callbacks, and the other functions of include/vidmm (runtime). operations.tsv
 * lists the members of each argument that are more than a value. Pure: no threads; no descriptor
 * and no handle is used.
 *
 *   client                                             host
 *   vmm_wire_make_request -> request, descriptors -> vmm_wire_read_request, then the call
 *   vmm_wire_read_answer  <- answer, descriptors  <- vmm_wire_make_answer
 *
 * The host never follows a pointer of the client. What pointers point to is sent along. The host
 * checks every count against the table and the bytes received, and sets pointers to these bytes.
 * For any request, vmm_wire_read_request refuses it or leaves an argument in which each pointer is
 * NULL or has as many bytes behind it as its count says.
 */
#ifndef VMM_WIRE_WIRE_H
#define VMM_WIRE_WIRE_H

#include <vidmm/vidmm.h>
#include "base/base.h"

/* the largest request or answer in bytes; descriptors of one call */
#define VMM_WIRE_BYTES_MAX       (32u << 20)
#define VMM_WIRE_DESCRIPTORS_MAX 8u

/* The argument of functions that take two values. */
struct vmm_wire_priority_class {
	void *process;
	uint32_t priority_class;
};

/*
 * Arguments of the runtime calls. `device` is the number of device_create; 0: none. Pointers and
 * HANDLEs have 8 bytes on every machine.
 */
struct vmm_wire_device_create {
	uint32_t adapter; /* index among the host's adapters, from 0 */
	uint32_t device;  /* out */
	uint32_t handle;  /* out: D3DKMT handle of the device */
};
struct vmm_wire_device {
	uint32_t device;
};
struct vmm_wire_device_set_trim {
	uint32_t device, reserved;
	/* returned in notifications (protocol.h); function NULL: end of the registration */
	void *function, *context;
};
struct vmm_wire_resource_set_shared {
	uint32_t device, reserved;
	void *resource; /* the runtime's handle of the resource */
};
struct vmm_wire_resource_share {
	uint32_t device, km_resource;
	uint32_t global_handle; /* out */
};
struct vmm_wire_resource_open {
	uint32_t device, global_handle;
	uint32_t km_resource;      /* out */
	uint32_t allocation_count; /* in: capacity; out: number of allocations */
	uint32_t *allocations;
};
struct vmm_wire_nt_handle_name {
	void *handle;
	uint16_t *name;
	uint32_t units, reserved;
};
struct vmm_wire_sync_values {
	uint32_t handle;
	uint32_t values; /* out: enum vmm_wire_values; NONE also if the handle names no object */
};
enum vmm_wire_words { VMM_WIRE_WORDS_NEVER, VMM_WIRE_WORDS_NOT_NOW, VMM_WIRE_WORDS_GIVEN };
struct vmm_wire_sync_words {
	uint32_t device, handle;
	uint64_t epoch; /* out: the answer is valid while this is the host's epoch */
	/* out, if GIVEN: a descriptor of the fence's page (base/fence_word.h) */
	void *page;
	uint32_t words;   /* out: enum vmm_wire_words */
	uint32_t adapter; /* out: LUID of the device's adapter */
};
struct vmm_wire_sync_signaled {
	/* fence whose value was raised in its page, while waits in the host are pending */
	uint32_t handle;
};

/*
 * Statistics of an adapter of the host, over all clients. Peaks are since this client last asked,
 * at first since the adapter started.
 */
struct vmm_wire_adapter_statistics {
	uint32_t adapter, reserved;                 /* index among the host's adapters, from 0 */
	struct vidmm_adapter_statistics statistics; /* out; unchanged if the call fails */
};

#define VMM_WIRE_TEXTS_BYTES 16384u
/*
 * Takes the findings and reasons that concern the client, for VMM_HELLO_TEXTS: lines of
 * vidmm_event_format, each ended by a newline.
 */
struct vmm_wire_texts {
	uint8_t *lines;
	uint32_t bytes; /* in: capacity, VMM_WIRE_TEXTS_BYTES; out: length of the lines */
	uint32_t lost;  /* out: how many did not fit into the host's buffer */
};

struct vmm_wire_record;
struct vmm_wire_operation {
	/*
	 * D3DKMT functions from 1, callbacks from 1001 (1501: not built), runtime calls from 2001.
	 * A number is never reused.
	 */
	uint32_t number;
	const char *name;
	bool returned; /* the argument itself is in the answer */
	const struct vmm_wire_record *argument;
	/*
	 * If one of these bits of the argument is set, the memory of its records is a descriptor.
	 * Mask 0: never.
	 */
	uint32_t section_at, section_mask;
};
/* These return NULL if no operation has the number or name. */
const struct vmm_wire_operation *vmm_wire_operation(uint32_t number);
const struct vmm_wire_operation *vmm_wire_operation_named(const char *name);
uint32_t vmm_wire_argument_bytes(const struct vmm_wire_operation *operation);

struct vmm_wire_bytes {
	uint8_t *data; /* aligned to 8 bytes; freed by vmm_free */
	uint32_t length, capacity;
};

/* The bytes that one pointer points to. */
struct vmm_wire_span {
	uint32_t slot; /* offset of the pointer in the request */
	uint32_t at, bytes;
	bool returned; /* returned in the answer */
	void *memory;  /* address in the client */
};

/*
 * What the union of some calls contains depends on the type of their first object. Only the holder
 * of the handle knows it, so each side looks it up. If they disagree, the request is malformed.
 */
enum vmm_wire_values {
	VMM_WIRE_VALUES_NONE,  /* no values, or no object */
	VMM_WIRE_VALUE_SCALAR, /* one value for all objects: fences of WDDM 1.1 */
	VMM_WIRE_VALUES_ARRAY  /* one value for each object: monitored fences */
};
typedef enum vmm_wire_values (*vmm_wire_values_fn)(void *context, uint32_t handle);

/* A call on one of the two sides. All zero before the first use, except `values` and `context`. */
struct vmm_wire_call {
	vmm_wire_values_fn values; /* NULL: the type of every object is NONE */
	void *context;
	const struct vmm_wire_operation *operation;
	struct vmm_wire_bytes request;
	struct vmm_wire_span *spans;
	uint32_t count, capacity, next;
	/*
	 * the request names memory or code of the client: here they are numbers, which must not be
	 * used as addresses
	 */
	bool foreign;
	/*
	 * Descriptors in the order in which the bytes name them. They are to be sent with the
	 * request (client) or with the answer (host). A number that cannot be a descriptor is not
	 * among them; the bytes say so.
	 */
	int64_t descriptors[VMM_WIRE_DESCRIPTORS_MAX];
	/* client: offset in the request at which it is named */
	uint32_t descriptor_at[VMM_WIRE_DESCRIPTORS_MAX];
	uint32_t descriptor_count;
};
void vmm_wire_finish(struct vmm_wire_call *call);
/* Client: marks descriptors[which] as not open. The caller sends a placeholder in its place. */
void vmm_wire_mark_closed(struct vmm_wire_call *call, uint32_t which);

/*
 * Client: makes the request for an argument in call->request; no bytes for NULL, which functions
 * refuse. An array that is longer than any function takes is not sent; the host then has its count
 * and no array. Returns VMM_INVALID_PARAMETER if there are too many descriptors; VMM_NO_MEMORY also
 * if the request is larger than VMM_WIRE_BYTES_MAX.
 */
vmm_status vmm_wire_make_request(struct vmm_wire_call *call,
				 const struct vmm_wire_operation *operation,
				 const void *argument) VMM_MUST_CHECK;
/*
 * Host: takes over the bytes (data may be NULL then) and makes them the argument, in place; NULL if
 * there are none. call->descriptors are those received. Returns VMM_INVALID_PARAMETER if the
 * request is malformed, which no honest client sends.
 */
vmm_status vmm_wire_read_request(struct vmm_wire_call *call,
				 const struct vmm_wire_operation *operation,
				 struct vmm_wire_bytes *bytes) VMM_MUST_CHECK;
static inline void *vmm_wire_argument(const struct vmm_wire_call *call)
{
	return call->request.data;
}
/*
 * Host, before the call: takes memory for the answer, so that each call that is made is answered.
 * Afterwards vmm_wire_make_answer does not fail. *BYTES: length of the answer. Returns VMM_OK or
 * VMM_NO_MEMORY.
 */
vmm_status vmm_wire_reserve_answer(const struct vmm_wire_call *call, struct vmm_wire_bytes *answer,
				   uint64_t *bytes) VMM_MUST_CHECK;
/*
 * Host: makes the answer. call->descriptors are then those to be sent with it. Returns VMM_OK or
 * VMM_NO_MEMORY.
 */
vmm_status vmm_wire_make_answer(struct vmm_wire_call *call,
				struct vmm_wire_bytes *answer) VMM_MUST_CHECK;
/*
 * Client: stores the answer in the argument, which must be as it was in vmm_wire_make_request.
 * Returns VMM_INVALID_PARAMETER if it is not an answer to this call.
 */
vmm_status vmm_wire_read_answer(struct vmm_wire_call *call, const uint8_t *answer, uint32_t bytes,
				void *argument) VMM_MUST_CHECK;

#endif
