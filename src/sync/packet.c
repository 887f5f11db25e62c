/* SPDX-License-Identifier: MIT */
/*
 * Packets of a context's queue (packet.h). Every check is made at the call, so that a packet that
 * is reached later cannot fail.
 */
#include "sync/packet.h"
#include "sync/type.h"

#include <stdlib.h>

/* ---- the checks at the call ---- */

static bool is_legacy(const struct vmm_sync_packet_request *request)
{
	return request->form == VMM_SYNC_FORM_1 || request->form == VMM_SYNC_FORM_2;
}

static const char *what(const struct vmm_sync_packet_request *request)
{
	return request->signal ? "signal in a context's queue" : "wait in a context's queue";
}

static vmm_status refuse_call(const struct vmm_device *device,
			      const struct vmm_sync_packet_request *request, const char *rule,
			      const char *why)
{
	return vmm_refuse_rule(device->adapter->observe, VMM_INVALID_PARAMETER, rule,
			       device->process->id, 0, "%s: %u objects, flags 0x%x: %s",
			       what(request), request->count, request->flags, why);
}

/* An event takes the place of the objects. (MFN-32) */
static vmm_status check_event(const struct vmm_device *device,
			      const struct vmm_sync_packet_request *request)
{
	if (request->count)
		return refuse_call(device, request, "MFN-32",
				   "EnqueueCpuEvent is valid only without objects");
	return VMM_OK;
}

static vmm_status check_flags(const struct vmm_device *device,
			      const struct vmm_sync_packet_request *request)
{
	const uint32_t known =
		VMM_SYNC_SIGNAL_AT_SUBMISSION | VMM_SYNC_ENQUEUE_CPU_EVENT | VMM_SYNC_ALLOW_REWIND;

	if (request->flags & ~known)
		return refuse_call(device, request, "SYN-24", "reserved flags are set");
	if (request->form == VMM_SYNC_FORM_1 && (request->flags & ~VMM_SYNC_SIGNAL_AT_SUBMISSION))
		return refuse_call(
			device, request, "SYN-24",
			"EnqueueCpuEvent and AllowFenceRewind are invalid in the call of "
			"WDDM 1.0");
	if (request->flags & VMM_SYNC_ENQUEUE_CPU_EVENT)
		return check_event(device, request);
	if (!request->count)
		return refuse_call(device, request, is_legacy(request) ? "SYN-21" : "SYN-31",
				   "at least one object is needed");
	if (is_legacy(request) && request->count > VMM_SYNC_SIGNALS_MAX)
		return refuse_call(device, request, "SYN-21", "at most 32 objects are valid");
	return VMM_OK;
}

static vmm_status deny_access(const struct vmm_sync *sync, const char *rule, const char *why)
	VMM_REQUIRES(vmm_process_lock_class)
{
	vmm_assert_held(&sync->process->lock);
	return vmm_refuse_rule(sync->process->world->observe, VMM_ACCESS_DENIED, rule,
			       sync->process->id, sync->handle,
			       "packet of a context's queue: 0x%08x %s", sync->handle, why);
}

/*
 * An object that belongs to a device can be used by contexts of its adapter only, unless it was
 * created with CrossAdapter. (SYN-23)
 */
static bool is_of_adapter(const struct vmm_sync *sync, const struct vmm_device *device)
{
	return !sync->device || sync->device->adapter == device->adapter ||
	       (sync->object->flags & VMM_SYNC_CROSS_ADAPTER);
}

static vmm_status check_opening(const struct vmm_sync *sync, const struct vmm_device *device,
				const struct vmm_sync_packet_request *request, uint64_t value)
	VMM_REQUIRES(vmm_process_lock_class)
{
	const struct vmm_sync_use use = {.signal = request->signal,
					 .form = request->form,
					 .count = request->count,
					 .flags = request->flags,
					 .value = value,
					 .what = what(request)};

	vmm_assert_held(&sync->process->lock);
	if (!is_of_adapter(sync, device))
		return vmm_refuse_rule(
			device->adapter->observe, VMM_INVALID_PARAMETER, "SYN-23",
			sync->process->id, sync->handle,
			"%s: 0x%08x was created or opened on a device of another adapter", use.what,
			sync->handle);
	if (request->signal && (sync->flags & VMM_SYNC_NO_SIGNAL)) {
		const char *why, *rule = vmm_sync_no_signal(sync, &why);

		return deny_access(sync, rule, why);
	}
	if (!request->signal && (sync->flags & VMM_SYNC_NO_WAIT))
		return sync->denied & VMM_SYNC_NO_WAIT
			       ? deny_access(
					 sync, "SHR-10",
					 "was opened from an NT handle without the right to wait")
			       : deny_access(sync, "SFL-16", "was created or opened with NoWait");
	return sync->object->type_class->check(sync, &use);
}

/* The type of the first object decides how the union of the call is read. (SYN-32) */
static vmm_status check_kind(const struct vmm_sync *sync, const struct vmm_device *device,
			     const struct vmm_sync_object *first)
{
	if (vmm_sync_is_monitored(sync->object) == vmm_sync_is_monitored(first))
		return VMM_OK;
	return vmm_refuse_rule(
		device->adapter->observe, VMM_INVALID_PARAMETER, "SYN-32", sync->process->id,
		sync->handle,
		"packet of a context's queue: 0x%08x is of type %u, the first object of type "
		"%u: monitored fences cannot be mixed with other types",
		sync->handle, sync->object->type, first->type);
}

/*
 * A wait takes all its objects at once, which is impossible if a mutex occurs twice, by the
 * same handle or by two. (MTX-08)
 */
static vmm_status refuse_twice(const struct vmm_device *device,
			       const struct vmm_sync_packet *packet, uint32_t first,
			       uint32_t second)
{
	uint32_t handle = packet->wait.nodes[second].handle;

	return vmm_refuse_rule(
		device->adapter->observe, VMM_INVALID_PARAMETER, "MTX-08", device->process->id,
		handle,
		"wait in a context's queue: object %u, 0x%08x, is the same mutex as object "
		"%u, and a mutex has one unit",
		second, handle, first);
}

struct object_index {
	const struct vmm_sync_object *object;
	uint32_t index;
};

static int by_object(const void *a, const void *b)
{
	const struct object_index *left = a, *right = b;

	if (left->object != right->object)
		return left->object < right->object ? -1 : 1;
	return left->index < right->index ? -1 : 1;
}

/*
 * The number of objects has no limit: sorted, because a comparison of all pairs would take too
 * long.
 */
static vmm_status check_once_of_many(const struct vmm_device *device,
				     const struct vmm_sync_packet *packet)
{
	uint32_t count = packet->wait.count;
	struct object_index *indexes = vmm_calloc(count, sizeof(*indexes));
	vmm_status status = VMM_OK;

	if (!indexes)
		return VMM_NO_MEMORY;
	for (uint32_t i = 0; i < count; i++)
		indexes[i] = (struct object_index){packet->wait.nodes[i].object, i};
	qsort(indexes, count, sizeof(*indexes), by_object);
	for (uint32_t i = 1; i < count && vmm_ok(status); i++)
		if (indexes[i].object == indexes[i - 1].object &&
		    indexes[i].object->type == VMM_SYNC_MUTEX)
			status = refuse_twice(device, packet, indexes[i - 1].index,
					      indexes[i].index);
	vmm_free(indexes);
	return status;
}

static vmm_status check_once(const struct vmm_device *device, const struct vmm_sync_packet *packet)
{
	const struct vmm_sync_node *nodes = packet->wait.nodes;

	if (packet->signal)
		return VMM_OK;
	if (packet->wait.count > VMM_SYNC_SIGNALS_MAX)
		return check_once_of_many(device, packet);
	for (uint32_t i = 1; i < packet->wait.count; i++)
		for (uint32_t k = 0; k < i; k++)
			if (nodes[i].object == nodes[k].object &&
			    nodes[i].object->type == VMM_SYNC_MUTEX)
				return refuse_twice(device, packet, k, i);
	return VMM_OK;
}

/* ---- filling ---- */

static vmm_status reserve_nodes(struct vmm_sync_packet *packet, uint32_t count)
{
	packet->wait.nodes = packet->local;
	if (count <= VMM_SYNC_PACKET_NODES)
		return VMM_OK;
	if (count > packet->capacity) {
		struct vmm_sync_node *more = vmm_calloc(count, sizeof(*more));

		if (!more)
			return VMM_NO_MEMORY;
		vmm_free(packet->more);
		packet->more = more;
		packet->capacity = count;
	}
	packet->wait.nodes = packet->more;
	return VMM_OK;
}

/* Also after an error, wait.count is the number of nodes that have a reference. */
static vmm_status fill_locked(struct vmm_sync_packet *packet, const struct vmm_device *device,
			      const struct vmm_sync_packet_request *request)
	VMM_REQUIRES(vmm_process_lock_class)
{
	vmm_assert_held(&device->process->lock);
	for (uint32_t i = 0; i < request->count; i++) {
		uint64_t value = request->values[request->scalar ? 0 : i];
		const struct vmm_sync *sync =
			vmm_sync_find_locked(device->process, request->handles[i], what(request));

		if (!sync)
			return VMM_INVALID_PARAMETER;
		vmm_status status = check_opening(sync, device, request, value);
		if (vmm_ok(status) && i)
			status = check_kind(sync, device, packet->wait.nodes[0].object);
		if (!vmm_ok(status))
			return status;
		vmm_sync_get(sync->object);
		packet->wait.nodes[i] = (struct vmm_sync_node){.object = sync->object,
							       .wait = &packet->wait,
							       .value = value,
							       .handle = sync->handle};
		packet->wait.count = i + 1;
	}
	return VMM_OK;
}

static vmm_status fill_event(struct vmm_sync_packet *packet, const struct vmm_device *device,
			     uint64_t event)
{
	vmm_status status = vmm_sync_keep_event(device, event, &packet->wait);

	packet->has_event = vmm_ok(status);
	if (vmm_ok(status) || status == VMM_NO_MEMORY)
		return status;
	return vmm_refuse_rule(
		device->adapter->observe, VMM_INVALID_PARAMETER, "MFN-32", device->process->id, 0,
		"EnqueueCpuEvent: %llu is not an event (eventfd)", (unsigned long long)event);
}

/* Charges the whole packet before any memory is allocated. */
static vmm_status charge(struct vmm_sync_packet *packet, const struct vmm_device *device,
			 const struct vmm_sync_packet_request *request)
{
	uint64_t nodes = request->count > VMM_SYNC_PACKET_NODES ? request->count : 0;

	return vmm_sync_charge(device->process, &packet->wait, what(request),
			       request->owner_bytes + nodes * sizeof(*packet->more));
}

vmm_status vmm_sync_packet_fill(struct vmm_sync_packet *packet, const struct vmm_device *device,
				struct vmm_sync_owner *owner,
				const struct vmm_sync_packet_request *request)
{
	struct vmm_process *process = device->process;

	vmm_assert(vmm_device_is_valid(device) && (!owner || owner->device == device));
	vmm_status status = check_flags(device, request);
	if (vmm_ok(status))
		status = charge(packet, device, request);
	if (!vmm_ok(status))
		return status;
	status = reserve_nodes(packet, request->count);
	if (!vmm_ok(status)) {
		vmm_sync_refund(&packet->wait);
		return status;
	}
	packet->wait.world = process->world;
	packet->wait.count = packet->wait.missing = 0;
	packet->wait.any = packet->wait.done = packet->wait.queued = packet->wait.of_cpu = false;
	packet->wait.sleeper = NULL;
	packet->signal = request->signal;
	packet->flags = request->flags;
	packet->has_event = false;
	packet->owner = owner;
	packet->queuer = (struct vmm_sync_queuer){.owner = owner ? owner->number : 0,
						  .process = process->id,
						  .device = device->handle};
	vmm_list_init(&packet->wait.link);
	if (request->flags & VMM_SYNC_ENQUEUE_CPU_EVENT) {
		status = fill_event(packet, device, request->event);
	} else {
		vmm_process_lock(process);
		status = fill_locked(packet, device, request);
		vmm_process_unlock(process);
		if (vmm_ok(status))
			status = check_once(device, packet);
	}
	vmm_assert(vmm_sync_packet_is_valid(packet));
	if (!vmm_ok(status))
		vmm_sync_packet_clear(packet);
	return status;
}

enum vmm_sync_values vmm_sync_values_of(struct vmm_process *process, uint32_t handle)
{
	enum vmm_sync_values values = VMM_SYNC_VALUES_NONE;

	vmm_process_lock(process);
	const struct vmm_sync *sync = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_SYNC);
	if (sync && vmm_sync_is_monitored(sync->object))
		values = VMM_SYNC_VALUES_ARRAY;
	else if (sync && sync->object->type == VMM_SYNC_FENCE)
		values = VMM_SYNC_VALUES_SCALAR;
	vmm_process_unlock(process);
	return values;
}

/* Index of the thread slot (os.h). */
enum { UNION_SLOT = 6 };

void vmm_sync_set_union_values(struct vmm_os *os, enum vmm_sync_values values)
{
	VMM_OS_OWN(os)->slot[UNION_SLOT] = 1 + (uint64_t)values; /* 0: never set by this thread */
}

/*
 * Another thread of an out-of-process client may end the object, and create one with the same
 * handle, between the decoding of the call and this. Then a value could be read as an address. So
 * the call uses what the decoding noted for this thread.
 */
static enum vmm_sync_values union_of(struct vmm_process *process, uint32_t handle)
{
	uint64_t taken = vmm_unlikely(process->viewer != NULL)
				 ? VMM_OS_OWN(process->world->os)->slot[UNION_SLOT]
				 : 0;

	return taken ? (enum vmm_sync_values)(taken - 1) : vmm_sync_values_of(process, handle);
}

bool vmm_sync_union_is_array(struct vmm_process *process,
			     const struct vmm_sync_packet_request *request)
{
	enum vmm_sync_values values = VMM_SYNC_VALUES_NONE;

	if (vmm_likely(request->count))
		values = union_of(process, request->handles[0]);
	/* The call that always has an array has one for fences, too (FEN-07). */
	return values == VMM_SYNC_VALUES_ARRAY ||
	       (values == VMM_SYNC_VALUES_SCALAR && request->signal &&
		request->form == VMM_SYNC_FORM_GPU);
}

vmm_status vmm_sync_check_broadcast(const struct vmm_process *process, uint32_t count)
{
	if (count <= VMM_SYNC_BROADCAST_MAX)
		return VMM_OK;
	return vmm_refuse_rule(process->world->observe, VMM_INVALID_PARAMETER, "SYN-29",
			       process->id, 0,
			       "signal by %u more contexts than the first: at most %u", count,
			       VMM_SYNC_BROADCAST_MAX);
}

/* ---- when packets are reached ---- */

/* The value of a call is meaningless for objects with units (SYN-30). */
static void report(const struct vmm_sync_packet *packet, const struct vmm_sync_node *node,
		   uint32_t reason, uint32_t context)
{
	const struct vmm_sync_object *object = node->object;
	bool by_value = vmm_sync_is_fence(object);

	vmm_event(packet->wait.world->observe, VIDMM_EVENT_SYNC, packet->queuer.process, context,
		  reason, object->number, by_value ? node->value : 0,
		  by_value ? vmm_sync_value(object) : object->units, node->handle);
}

/*
 * Reports the objects that hold the packet. The library does not search for cycles; a reader of the
 * events can. Caller holds the sync lock. (MFN-31)
 */
static void report_held_locked(const struct vmm_sync_packet *packet, uint32_t context)
	VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&packet->wait.world->sync_lock);
	for (uint32_t i = 0; i < packet->wait.count; i++)
		if (packet->wait.queued || packet->wait.nodes[i].rank)
			report(packet, &packet->wait.nodes[i], VIDMM_SYNC_HELD, context);
}

void vmm_sync_packet_report(const struct vmm_sync_packet *packet, uint32_t reason, uint32_t context)
{
	uint32_t count = packet->signal ? packet->wait.count : 1;

	vmm_sync_lock(packet->wait.world);
	for (uint32_t i = 0; i < count && i < packet->wait.count; i++)
		report(packet, &packet->wait.nodes[i], reason, context);
	vmm_sync_unlock(packet->wait.world);
}

bool vmm_sync_packet_begin(struct vmm_sync_packet *packet, uint32_t holds)
{
	struct vmm_sync_wait *wait = &packet->wait;

	vmm_assert(vmm_sync_packet_is_valid(packet) && !packet->signal && wait->count);
	vmm_sync_lock(wait->world);
	bool done = wait->nodes[0].object->type_class->by_value ? vmm_sync_wait_begin_locked(wait)
								: vmm_sync_queue_begin_locked(wait);
	if (!done && holds)
		report_held_locked(packet, holds);
	vmm_sync_unlock(wait->world);
	return done;
}

bool vmm_sync_packet_withdraw(struct vmm_sync_packet *packet)
{
	vmm_sync_lock(packet->wait.world);
	bool withdrawn = vmm_sync_wait_withdraw_locked(&packet->wait);
	vmm_sync_unlock(packet->wait.world);
	return withdrawn;
}

void vmm_sync_packet_signal(struct vmm_sync_packet *packet)
{
	if (packet->has_event)
		vmm_os_event_set(packet->wait.event);
	for (uint32_t i = 0; i < packet->wait.count; i++) {
		struct vmm_sync_node *node = &packet->wait.nodes[i];

		node->object->type_class->signal(node, &packet->queuer, packet->flags);
	}
}

void vmm_sync_packet_clear(struct vmm_sync_packet *packet)
{
	for (uint32_t i = 0; i < packet->wait.count; i++)
		vmm_sync_put(packet->wait.nodes[i].object);
	packet->wait.count = 0;
	if (packet->has_event)
		vmm_sync_drop_event(&packet->wait);
	packet->has_event = false;
	/* The retained nodes are charged to no account, so their number is limited. */
	if (vmm_unlikely(packet->capacity > VMM_SYNC_PACKET_SPARE)) {
		vmm_free(packet->more);
		packet->more = NULL;
		packet->capacity = 0;
	}
	vmm_sync_refund(&packet->wait);
}

void vmm_sync_packet_free(struct vmm_sync_packet *packet)
{
	vmm_free(packet->more);
}

/* ---- stores by a GPU ---- */

/*
 * Starts over after each object with a satisfied wait, because the end of a wait for several fences
 * removes others from the list, too.
 */
static bool reread_locked(struct vmm_world *world, struct vmm_sync_batch *batch)
	VMM_REQUIRES(vmm_sync_lock_class)
{
	struct vmm_list *link = world->sync_awaited.next;

	vmm_assert_held(&world->sync_lock);
	while (link != &world->sync_awaited) {
		struct vmm_sync_object *object =
			vmm_container_of(link, struct vmm_sync_object, awaited);

		link = link->next;
		if (!vmm_sync_reached(object, object->heap->value))
			continue;
		if (!vmm_sync_deliver_locked(object, batch))
			return false;
		link = world->sync_awaited.next;
	}
	return true;
}

/* Ends the waits that the values satisfy which the GPU has stored. (MFN-25) */
void vmm_sync_reread(struct vmm_world *world)
{
	struct vmm_sync_batch batch;
	bool all;

	if (vmm_likely(!atomic_load(&world->sync_awaited_count)))
		return;
	vmm_sync_batch_init(&batch, world->os);
	do {
		vmm_sync_lock(world);
		all = reread_locked(world, &batch);
		vmm_sync_unlock(world);
		vmm_sync_batch_flush(&batch);
	} while (!all);
}
