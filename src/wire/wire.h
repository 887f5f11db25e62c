/* SPDX-License-Identifier: MIT */
/*
 * wire: calls as bytes, so that whoever calls and whoever does it need not share memory: D3DKMT functions, device callbacks, and what
 * include/vidmm has beside them (runtime). Which member of which argument is more than a value stands in operations.tsv. Pure: no threads, no descriptors are touched, no handle is looked up.
 *
 *   client                                    host
 *   vmm_wire_ask      -> request, descriptors -> vmm_wire_receive, the call itself
 *   vmm_wire_accept   <- answer, descriptors  <- vmm_wire_answer
 *
 * The host never follows a pointer of the client's: it gets what pointers point to, checks every count against the table and the
 * bytes that came, and lets pointers point into those. Whatever a request says, vmm_wire_receive refuses it or leaves an
 * argument whose every pointer is NULL or has as many bytes behind it as its count says.
 */
#ifndef VMM_WIRE_WIRE_H
#define VMM_WIRE_WIRE_H

#include <vidmm/vidmm.h>
#include "base/base.h"

/* The largest request or answer in bytes; one message of descriptors. */
#define VMM_WIRE_BYTES_MAX       (32u << 20)
#define VMM_WIRE_DESCRIPTORS_MAX 8u

/* The functions that take two values, as one argument. */
struct vmm_wire_priority_class {
	void *process;
	uint32_t priority_class;
};

/* The runtime's calls. A device is what device_create gave; 0 for none. Pointers and HANDLEs are 8 bytes, as everywhere. */
struct vmm_wire_device_create {
	uint32_t adapter; /* its place among the host's, from 0 */
	uint32_t device;  /* out */
	uint32_t handle;  /* out: that of the D3DKMT functions */
};
struct vmm_wire_device {
	uint32_t device;
};
struct vmm_wire_device_set_trim {
	uint32_t device, reserved;
	void *function, *context; /* come back in notices (protocol.h); function NULL: no more */
};
struct vmm_wire_resource_set_shared {
	uint32_t device, reserved;
	void *resource; /* the runtime's own name for it */
};
struct vmm_wire_resource_share {
	uint32_t device, km_resource;
	uint32_t global_handle; /* out */
};
struct vmm_wire_resource_open {
	uint32_t device, global_handle;
	uint32_t km_resource;      /* out */
	uint32_t allocation_count; /* in: room, out: how many */
	uint32_t *allocations;
};
struct vmm_wire_nt_handle_name {
	void *handle;
	uint16_t *name;
	uint32_t units, reserved;
};
struct vmm_wire_sync_values {
	uint32_t handle;
	uint32_t values; /* out: enum vmm_wire_values; none also for what is no object */
};
enum vmm_wire_words { VMM_WIRE_WORDS_NEVER, VMM_WIRE_WORDS_NOT_NOW, VMM_WIRE_WORDS_GIVEN };
struct vmm_wire_sync_words {
	uint32_t device, handle;
	uint64_t epoch;   /* out: as long as it is the host's, the answer holds */
	void *page;       /* out: GIVEN: a descriptor of the fence's page (base/fence_word.h) */
	uint32_t words;   /* out: enum vmm_wire_words */
	uint32_t adapter; /* out: luid of the device's */
};
struct vmm_wire_sync_told {
	uint32_t handle; /* its value was raised in the page, and the host waits for it */
};

/* Of the host's adapter, all clients together; peaks are since this client last asked, at first since the adapter started. */
struct vmm_wire_adapter_statistics {
	uint32_t adapter, reserved;                 /* its place among the host's, from 0 */
	struct vidmm_adapter_statistics statistics; /* out; as it was where the call fails */
};

struct vmm_wire_record;
struct vmm_wire_operation {
	uint32_t
		number; /* D3DKMT functions from 1, callbacks from 1001 (1501: unbuilt), the runtime's calls from 2001; for ever */
	const char *name;
	bool back; /* the argument itself is written to */
	const struct vmm_wire_record *argument;
	/* With one of those bits of the argument the memory of its records is a descriptor; mask 0: never. */
	uint32_t section_at, section_mask;
};
/* NULL: there is none of that number, or name. */
const struct vmm_wire_operation *vmm_wire_operation(uint32_t number);
const struct vmm_wire_operation *vmm_wire_operation_named(const char *name);
uint32_t vmm_wire_argument_bytes(const struct vmm_wire_operation *operation);

struct vmm_wire_bytes {
	uint8_t *data; /* aligned to 8; vmm_free */
	uint32_t length, capacity;
};

/* What one pointer points to. */
struct vmm_wire_span {
	uint32_t slot; /* where in the request the pointer stands */
	uint32_t at, bytes;
	bool back;    /* comes back with the answer */
	void *memory; /* the client's */
};

/*
 * What the union of some calls is depends on the type of their first object, which only who has the handle knows. So each side
 * looks for itself; if they do not agree the request is malformed.
 */
enum vmm_wire_values {
	VMM_WIRE_VALUES_NONE,  /* none, or no object */
	VMM_WIRE_VALUE_SCALAR, /* one for all: fences of WDDM 1.1 */
	VMM_WIRE_VALUES_ARRAY  /* one for each: monitored fences */
};
typedef enum vmm_wire_values (*vmm_wire_values_fn)(void *context, uint32_t handle);

/* A call on one of the two sides; all zero before the first use, but for `values` and its context. */
struct vmm_wire_call {
	vmm_wire_values_fn values; /* NULL: everything is of type none */
	void *context;
	const struct vmm_wire_operation *operation;
	struct vmm_wire_bytes request;
	struct vmm_wire_span *spans;
	uint32_t count, capacity, next;
	bool foreign; /* the request names memory or code of the client's: numbers here, of which nothing may be made */
	/* In the order in which the bytes name them. With the request on the client's side, and with the answer on the host's,
	 * they are for the other side. A number that can be none is not among them, and says so in the bytes. */
	int64_t descriptors[VMM_WIRE_DESCRIPTORS_MAX];
	uint32_t descriptor_at[VMM_WIRE_DESCRIPTORS_MAX]; /* the client's: where it is named */
	uint32_t descriptor_count;
};
void vmm_wire_finish(struct vmm_wire_call *call);
/* On the client's side: nothing is open by the number of descriptors[which]. Something else has to go in its place. */
void vmm_wire_disown(struct vmm_wire_call *call, uint32_t which);

/*
 * The request, in call->request, of an argument; for NULL, which functions refuse, one of no bytes. An array that is longer than any function takes is not sent; the host then
 * has its count and no array. VMM_INVALID_PARAMETER: too many descriptors; VMM_NO_MEMORY: also when it is larger than
 * VMM_WIRE_BYTES_MAX.
 */
vmm_status vmm_wire_ask(struct vmm_wire_call *call, const struct vmm_wire_operation *operation,
			const void *argument) VMM_MUST_CHECK;
/*
 * On the host: takes the bytes (data may be NULL then) and makes them the argument, in place; of none it is NULL. call->descriptors are those that came.
 * VMM_INVALID_PARAMETER: malformed; no well-meant client sends that.
 */
vmm_status vmm_wire_receive(struct vmm_wire_call *call, const struct vmm_wire_operation *operation,
			    struct vmm_wire_bytes *bytes) VMM_MUST_CHECK;
static inline void *vmm_wire_argument(const struct vmm_wire_call *call)
{
	return call->request.data;
}
/* What goes back; call->descriptors then are those to be sent along. VMM_NO_MEMORY. */
vmm_status vmm_wire_answer(struct vmm_wire_call *call,
			   struct vmm_wire_bytes *answer) VMM_MUST_CHECK;
/* The answer into the client's argument, which is as it was asked with. VMM_INVALID_PARAMETER: it is none for this call. */
vmm_status vmm_wire_accept(struct vmm_wire_call *call, const uint8_t *answer, uint32_t bytes,
			   void *argument) VMM_MUST_CHECK;

#endif
