/* SPDX-License-Identifier: MIT */
/*
 * Openings, and the objects that the first opening makes: creation (MFN-01), handles (SYN-07,
 * SYN-08, SYN-09, SYN-11, SYN-13), the end of an opening (SYN-14, SYN-15).
 */
#include "object/stopped.h"
#include "sync/type.h"

/* ---- creation ---- */

/*
 * Checks the members that only one type has; all others are valid already. *event: a duplicate of
 * the client's event (CPN-01), which the caller closes.
 */
static vmm_status check_values(const struct vmm_device *device,
			       const struct vmm_sync_request *request, int *event)
{
	struct vmm_observe *observe = device->adapter->observe;
	uint32_t physical = device->adapter->physical_adapters;

	if (request->type == VMM_SYNC_SEMAPHORE && request->count > request->max_count)
		return vmm_refuse_rule(
			observe, VMM_INVALID_PARAMETER, "SEM-02", device->process->id, 0,
			"create semaphore: the initial count %u is above the maximum %u",
			request->count, request->max_count);
	if (request->type >= VMM_SYNC_MONITORED_FENCE && request->affinity >> physical)
		return vmm_refuse_rule(
			observe, VMM_INVALID_PARAMETER, "MFN-09", device->process->id, 0,
			"create fence: EngineAffinity 0x%x names a physical adapter beyond the "
			"%u that exist",
			request->affinity, physical);
	if (request->type == VMM_SYNC_CPU_NOTIFICATION) {
		vmm_status status = vmm_os_event_open(request->event, event);

		if (status == VMM_INVALID_HANDLE)
			vmm_finding(observe, "CPN-02", device->process->id, 0,
				    "create CPU notification: %llu is not an event (eventfd)",
				    (unsigned long long)request->event);
		return status;
	}
	return request->type == VMM_SYNC_PERIODIC_MONITORED_FENCE
		       ? vmm_sync_check_periodic(device, request)
		       : VMM_OK;
}

static vmm_status check(const struct vmm_device *device, const struct vmm_sync_request *request,
			int *event)
{
	const struct vmm_adapter *adapter = device->adapter;
	struct vmm_sync_refusal refusal;

	if (!vmm_sync_may_create(VMM_SYNC_VERSION(adapter->interface_version), request->first_form,
				 request->type, request->flags, &refusal))
		return vmm_refuse_rule(
			adapter->observe, VMM_INVALID_PARAMETER, refusal.rule, device->process->id,
			0,
			"create synchronization object: type %u, flags 0x%x, interface version "
			"0x%x: %s",
			request->type, request->flags, adapter->interface_version, refusal.why);
	return check_values(device, request, event);
}

/* Returns whether a GPU of the device may access a fence with those flags. */
static bool is_for_gpu(const struct vmm_device *device, uint32_t flags)
{
	return vmm_unlikely(device->va != NULL) && !(flags & VMM_SYNC_NO_GPU_ACCESS);
}

/* Takes the memory of a monitored fence that clients and GPUs access. */
static vmm_status take_page(struct vmm_device *device, struct vmm_sync_object *object)
{
	/* A fence that can be shared does not share its page with other fences. (MFN-39) */
	vmm_status status = object->flags & VMM_SYNC_SHARED
				    ? vmm_sync_slot_take_own(device->adapter->os, &object->slot)
				    : vmm_sync_slot_take(device, is_for_gpu(device, object->flags),
							 &object->slot);

	if (!vmm_ok(status))
		return status;
	object->word =
		(_Atomic uint64_t *)(void *)(object->slot.page->memory.base + object->slot.offset);
	/* A fence without GPU access has 64 bits on every adapter. (SFL-20) */
	object->narrow =
		device->adapter->narrow_fences && !(object->flags & VMM_SYNC_NO_GPU_ACCESS);
	return VMM_OK;
}

static void set_value(struct vmm_sync_object *object, uint64_t value)
{
	atomic_init(&object->last, value);
	atomic_init(&object->step, 1);
	if (object->narrow)
		atomic_store((_Atomic uint32_t *)(void *)object->word, (uint32_t)value);
	else
		atomic_store(object->word, value);
}

static void set_state(struct vmm_sync_object *object, const struct vmm_sync_request *request)
{
	switch (object->type) {
	case VMM_SYNC_MUTEX: /* MTX-01 */
		object->units_max = 1;
		object->units = !request->owned;
		break;
	case VMM_SYNC_SEMAPHORE: /* SEM-01 */
		object->units_max = request->max_count;
		object->units = request->count;
		break;
	case VMM_SYNC_CPU_NOTIFICATION:
		break;
	default: /* FEN-01, MFN-02 */
		set_value(object, request->value);
		break;
	}
}

/*
 * Makes an object, which then owns the event. NULL: no memory, and the event stays the caller's.
 * (SYN-17, SYN-20)
 */
static struct vmm_sync_object *make_object(struct vmm_device *device,
					   const struct vmm_sync_request *request, int event)
{
	struct vmm_sync_object *object = vmm_calloc(1, sizeof(*object));

	if (!object)
		return NULL;
	object->world = device->process->world;
	object->type = request->type;
	object->type_class = vmm_sync_classes[object->type];
	object->flags = request->flags;
	object->luid = device->adapter->luid;
	object->number = atomic_fetch_add(&object->world->sync_numbers, 1) + 1;
	object->process = device->process->id;
	object->word = object->type == VMM_SYNC_FENCE ? &object->value : NULL;
	atomic_init(&object->references, 1);
	vmm_list_init(&object->awaited);
	vmm_list_init(&object->queue);
	vmm_list_init(&object->held);
	if (vmm_sync_is_monitored(object) && !vmm_ok(take_page(device, object))) {
		vmm_free(object);
		return NULL;
	}
	object->event = event;
	set_state(object, request);
	vmm_assert(vmm_sync_object_is_valid(object));
	vmm_sync_offer(object);
	return object;
}

/* Maps the fence's page at a separate address for this opening. (SHR-32) */
static vmm_status map_own(struct vmm_sync *sync)
{
	struct vmm_sync_object *object = sync->object;

	vmm_assert(vmm_sync_slot_is_valid(&object->slot) && !sync->address);
	vmm_sync_withdraw(sync);
	vmm_status status = vmm_os_view_reserve_for(object->world->os, sync->process->viewer,
						    VMM_PAGE_SIZE, &sync->view);

	if (vmm_ok(status))
		status = vmm_os_view_map_read_only(&sync->view, &object->slot.page->memory);
	if (!vmm_ok(status))
		return status;
	sync->address = sync->view.address + object->slot.offset;
	return VMM_OK;
}

/* Returns whether openings of the object belong to a device. (SYN-14, CPN-06) */
static bool belongs_to_device(const struct vmm_sync_object *object)
{
	return vmm_sync_is_monitored(object) || vmm_sync_is_drivers(object);
}

/*
 * Sets the GPU address of the opening. A private fence uses the address of its page; other openings
 * each have their own. (MFN-04, SFL-20, SFL-22, SHR-16)
 */
static vmm_status give_gpu_address(struct vmm_sync *sync)
{
	struct vmm_sync_object *object = sync->object;
	vmm_status status = VMM_OK;

	if (!object->slot.page || !sync->device ||
	    !is_for_gpu(sync->device, sync->flags | object->flags))
		return VMM_OK;
	if (!(object->flags & VMM_SYNC_SHARED))
		sync->gpu_address = object->slot.page->gpu_address;
	else {
		vmm_sync_disable_words(object);
		status = vmm_sync_page_show(sync->device, object->slot.page, VMM_PAGE_SIZE,
					    &sync->gpu_address);
	}
	if (vmm_ok(status))
		sync->gpu_address += object->slot.offset;
	return status;
}

/*
 * Makes an opening without a handle, with a reference to the object. Only monitored fences have
 * addresses. (FEN-04, MFN-01)
 */
static struct vmm_sync *make_opening(struct vmm_process *process, struct vmm_device *device,
				     struct vmm_sync_object *object, uint32_t flags)
{
	struct vmm_sync *sync = vmm_calloc(1, sizeof(*sync));

	if (!sync)
		return NULL;
	vmm_list_init(&sync->link);
	sync->object = object;
	sync->process = process;
	sync->device = belongs_to_device(object) ? device : NULL;
	sync->flags = flags;
	if (object->type == VMM_SYNC_PERIODIC_MONITORED_FENCE)
		sync->flags |= VMM_SYNC_NO_SIGNAL; /* PMF-04 */
	if (device && vmm_sync_is_monitored(object) && !object->narrow)
		sync->quick = (sync->flags & VMM_SYNC_NO_SIGNAL ? 0 : VMM_SYNC_QUICK_SIGNAL) |
			      (sync->flags & VMM_SYNC_NO_WAIT ? 0 : VMM_SYNC_QUICK_WAIT);
	if (object->slot.page && !(object->flags & VMM_SYNC_SHARED))
		sync->address = object->slot.page->view.address + object->slot.offset;
	else if (object->slot.page && device && !vmm_ok(map_own(sync))) {
		vmm_os_view_release(&sync->view);
		vmm_free(sync);
		return NULL;
	}
	if (!vmm_ok(give_gpu_address(sync))) {
		vmm_os_view_release(&sync->view);
		vmm_free(sync);
		return NULL;
	}
	vmm_sync_get(object);
	vmm_sync_lock(object->world);
	object->openings++;
	vmm_sync_unlock(object->world);
	return sync;
}

static struct vmm_sync *make(struct vmm_device *device, const struct vmm_sync_request *request,
			     int event)
{
	struct vmm_sync_object *object = make_object(device, request, event);

	if (!object) {
		if (event >= 0)
			vmm_os_event_close(event);
		return NULL;
	}
	struct vmm_sync *sync = make_opening(device->process, device, object, request->flags);
	vmm_sync_put(object);
	return sync;
}

/*
 * Creates the handle, in the table that all kinds of objects of the process share. (SYN-07,
 * SYN-08, SYN-09)
 */
static uint32_t publish_locked(struct vmm_sync *sync) VMM_REQUIRES(vmm_process_lock_class)
{
	vmm_assert_held(&sync->process->lock);
	vmm_assert(!sync->handle && vmm_sync_is_valid(sync));
	sync->handle = vmm_handle_create(&sync->process->handles, VMM_HANDLE_SYNC, sync);
	if (!sync->handle)
		return 0;
	vmm_sync_lock(sync->process->world);
	vmm_list_push_back(sync->device ? &sync->device->syncs : &sync->process->syncs,
			   &sync->link);
	vmm_sync_unlock(sync->process->world);
	return sync->handle;
}

static vmm_status publish(struct vmm_sync *sync, uint32_t *handle, void **address,
			  uint64_t *gpu_address)
{
	struct vmm_process *process = sync->process;

	vmm_process_lock(process);
	uint32_t number = publish_locked(sync);
	void *at = sync->address; /* once the handle exists, another thread may destroy it */
	uint64_t gpu_at = sync->gpu_address;
	vmm_process_unlock(process);
	if (!number) {
		vmm_sync_end(sync);
		return VMM_NO_MEMORY;
	}
	*handle = number;
	*address = at;
	*gpu_address = gpu_at;
	return VMM_OK;
}

/*
 * Creates the global handle. From here on any process that knows the number may open the object.
 * (SFL-02, FEN-08)
 */
static vmm_status make_global(struct vmm_sync_object *object)
{
	struct vmm_world *world = object->world;

	if ((object->flags & (VMM_SYNC_SHARED | VMM_SYNC_NT_SECURITY)) != VMM_SYNC_SHARED)
		return VMM_OK;
	vmm_sync_lock(world);
	vmm_shared_lock(world);
	object->global_handle = vmm_handle_create(&world->shared, VMM_HANDLE_SYNC, object);
	vmm_shared_unlock(world);
	vmm_status status = object->global_handle ? VMM_OK : VMM_NO_MEMORY;
	vmm_sync_unlock(world);
	return status;
}

vmm_status vmm_sync_create(struct vmm_device *device, struct vmm_sync_request *request)
{
	int event = -1;

	vmm_assert(vmm_device_is_valid(device));
	vmm_status status = check(device, request, &event);
	if (!vmm_ok(status)) {
		if (event >= 0)
			vmm_os_event_close(event);
		return status;
	}
	struct vmm_sync *sync = make(device, request, event);
	if (!sync)
		return VMM_NO_MEMORY;
	if (vmm_sync_is_drivers(sync->object))
		status = vmm_sync_begin_driver(sync);
	else if (request->type == VMM_SYNC_PERIODIC_MONITORED_FENCE)
		status = vmm_sync_begin_periodic(device, sync->object, request);
	if (vmm_ok(status))
		status = make_global(sync->object);
	if (!vmm_ok(status)) {
		vmm_sync_end(sync);
		return status;
	}
	/* once it is published another thread may destroy it */
	uint32_t global = sync->object->global_handle;
	status = publish(sync, &request->handle, &request->cpu_address, &request->gpu_address);
	if (vmm_ok(status))
		request->global_handle = global;
	return status;
}

vmm_status vmm_sync_open_object(struct vmm_process *process, struct vmm_sync_object *object,
				struct vmm_sync_open *open, uint32_t flags, uint32_t denied)
{
	vmm_assert(vmm_sync_object_is_valid(object));
	vmm_assert(!open->device || open->device->process == process);
	struct vmm_sync *sync = make_opening(process, open->device, object, flags | denied);
	if (!sync)
		return VMM_NO_MEMORY;
	sync->denied = denied;
	return publish(sync, &open->handle, &open->cpu_address, &open->gpu_address);
}

/* ---- the end ---- */

void vmm_sync_end(struct vmm_sync *sync)
{
	struct vmm_sync_object *object = sync->object;
	struct vmm_sync_batch batch;
	bool all;

	vmm_assert(vmm_sync_is_valid(sync));
	if (sync->driver_event)
		vmm_sync_end_driver(sync);
	if (sync->lockless)
		vmm_sync_await_hazards(sync);
	vmm_sync_batch_init(&batch, object->world->os);
	vmm_sync_lock(object->world);
	/* SFL-27, SFL-28, SFL-29 */
	bool unwait = vmm_sync_uncount_locked(object) || !(object->flags & VMM_SYNC_UNWAIT_ON_LAST);
	vmm_sync_unlock(object->world);
	do {
		vmm_sync_lock(object->world);
		all = !unwait || vmm_sync_cancel_locked(object, &batch);
		vmm_sync_unlock(object->world);
		vmm_sync_batch_flush(&batch);
	} while (!all);
	vmm_sync_end_opening_words(sync, unwait);
	if (object->flags & VMM_SYNC_NT_SECURITY)
		vmm_nt_collect(object->world);
	vmm_os_view_release(&sync->view);
	vmm_sync_put(object);
	vmm_free(sync);
}

/*
 * Takes the opening out of its tables. device: the one that it ends with, or NULL; if that is
 * stopped, the handle answers so from now on (PNP-03).
 */
static void unlink_locked(struct vmm_sync *sync, struct vmm_device *device)
	VMM_REQUIRES(vmm_process_lock_class)
{
	vmm_assert_held(&sync->process->lock);
	vmm_assert(!device || device == sync->device);
	sync->lockless = device ? vmm_device_handle_destroy_locked(device, sync->handle)
				: vmm_handle_destroy(&sync->process->handles, sync->handle);
	vmm_sync_lock(sync->process->world);
	vmm_list_remove(&sync->link);
	vmm_sync_unlock(sync->process->world);
}

/* Returns whether the caller must not destroy the opening this way, with a finding. */
static bool refuses_destroy(const struct vmm_sync *sync, const struct vmm_device *inside)
	VMM_REQUIRES(vmm_process_lock_class)
{
	vmm_assert_held(&sync->process->lock);
	if (sync->owned)
		vmm_finding(
			sync->process->world->observe, "MFN-35", sync->process->id, sync->handle,
			"destroy synchronization object: the fence of a paging queue or hardware "
			"queue ends with its queue");
	else if (vmm_sync_is_drivers(sync->object) && inside != sync->device)
		vmm_finding(
			sync->process->world->observe, "CPN-06", sync->process->id, sync->handle,
			"destroy synchronization object: a notification that the miniport signals "
			"can be destroyed only through its device, which is another one or ends");
	else
		return false;
	return true;
}

/* Ends an opening by its handle, which must be one of the process. (SYN-11, SYN-13) */
vmm_status vmm_sync_destroy(struct vmm_process *process, const struct vmm_device *inside,
			    uint32_t handle)
{
	vmm_assert(!inside || inside->process == process);
	vmm_process_lock(process);
	struct vmm_sync *sync = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_SYNC);
	vmm_assert(!sync || vmm_sync_is_valid(sync));
	bool kept = sync && refuses_destroy(sync, inside);
	bool stopped = !sync && vmm_stopped_device_find_locked(process, handle);

	if (!sync && !stopped)
		vmm_finding(process->world->observe, "SYN-12", process->id, handle,
			    "destroy synchronization object: 0x%08x is not a live one of process "
			    "%u (%s)",
			    handle, process->id,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_SYNC));
	else if (sync && !kept)
		unlink_locked(sync, NULL);
	vmm_process_unlock(process);
	if (!sync || kept)
		return stopped ? VMM_DEVICE_REMOVED : VMM_INVALID_PARAMETER;
	vmm_sync_end(sync);
	return VMM_OK;
}

/* Ends all openings of the list: those of the device, or (NULL) those of the process. */
static void end_list(struct vmm_process *process, struct vmm_device *device, struct vmm_list *list)
{
	for (;;) {
		struct vmm_sync *sync = NULL;

		/* The process lock keeps the list from changing. */
		vmm_process_lock(process);
		if (!vmm_list_empty(list)) {
			sync = vmm_container_of(list->next, struct vmm_sync, link);
			unlink_locked(sync, device);
		}
		vmm_process_unlock(process);
		if (!sync)
			return;
		vmm_sync_end(sync);
	}
}

void vmm_sync_begin_device(struct vmm_device *device)
{
	vmm_list_init(&device->syncs);
	vmm_list_init(&device->sync_pages);
	vmm_list_init(&device->sync_windows);
	vmm_list_init(&device->sync_waits);
	vmm_list_init(&device->sync_owners);
	vmm_list_init(&device->keyed);
}

void vmm_sync_end_device(struct vmm_device *device)
{
	end_list(device->process, device, &device->syncs);
	vmm_sync_cancel_events(device);
	vmm_sync_pages_end(device);
	vmm_keyed_end_device(device);
	vmm_assert(vmm_list_empty(&device->syncs) && vmm_list_empty(&device->sync_waits));
	vmm_assert(vmm_list_empty(&device->sync_pages) && vmm_list_empty(&device->sync_windows));
}

/* Ends the openings of the process. Objects that other processes have open live on. (SHR-33) */
void vmm_sync_end_process(struct vmm_process *process)
{
	end_list(process, NULL, &process->syncs);
	vmm_keyed_end_process(process);
}

/* ---- fences of the library ---- */

vmm_status vmm_sync_make_owned(struct vmm_device *device, bool for_gpu, struct vmm_sync **sync)
{
	const struct vmm_sync_request request = {.type = VMM_SYNC_MONITORED_FENCE,
						 .flags = VMM_SYNC_NO_SIGNAL |
							  (for_gpu ? 0 : VMM_SYNC_NO_GPU_ACCESS)};

	vmm_assert(vmm_device_is_valid(device));
	*sync = make(device, &request, -1);
	if (!*sync)
		return VMM_NO_MEMORY;
	(*sync)->owned = true;
	vmm_assert(for_gpu || !(*sync)->gpu_address);
	return VMM_OK;
}

uint32_t vmm_sync_publish_owned_locked(struct vmm_sync *sync)
{
	vmm_assert_held(&sync->process->lock);
	vmm_assert(sync->owned);
	return publish_locked(sync);
}

void *vmm_sync_address(const struct vmm_sync *sync)
{
	return sync->address;
}

uint64_t vmm_sync_gpu_address(const struct vmm_sync *sync)
{
	vmm_assert(sync->owned);
	return sync->gpu_address;
}

void vmm_sync_set(struct vmm_sync *sync, uint64_t value)
{
	vmm_assert(sync->owned && vmm_sync_object_is_valid(sync->object));
	if (vmm_sync_raise(sync->object, value, false))
		vmm_sync_deliver(sync->object);
}

/* A 32-bit value is extended to the nearest one to the previous value (MFN-07). */
uint64_t vmm_sync_owned_value(const struct vmm_sync *sync)
{
	struct vmm_sync_object *object = sync->object;

	vmm_assert(sync->owned);
	uint64_t value = vmm_sync_value(object);

	if (object->narrow && !atomic_load(&object->at_maximum))
		atomic_store(&object->last, value);
	return value;
}

void *vmm_sync_owned_word(const struct vmm_sync *sync)
{
	return (void *)(uintptr_t)sync->object->word;
}

struct vmm_sync_object *vmm_sync_owned_get(const struct vmm_sync *sync)
{
	vmm_sync_get(sync->object);
	return sync->object;
}

void vmm_sync_owned_notify(struct vmm_sync_object *object)
{
	vmm_assert(vmm_sync_object_is_valid(object));
	if (atomic_load(&object->waiters))
		vmm_sync_deliver(object);
	vmm_sync_put(object);
}

void vmm_sync_end_owned(struct vmm_sync *sync)
{
	vmm_assert(sync->owned);
	if (sync->handle) {
		vmm_process_lock(sync->process);
		unlink_locked(sync, sync->device);
		vmm_process_unlock(sync->process);
	}
	vmm_sync_end(sync);
}
