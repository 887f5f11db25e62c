/* SPDX-License-Identifier: MIT */
/*
 * Devices of a host, and the callbacks that a user-mode driver gets with one. A device handle is a
 * number, not an address: a slot index and a generation. A dead or invented handle is therefore
 * recognized without touching memory. At most 65535 devices exist at once.
 *
 * Calls count themselves in `inside` of the slot and then read the handle again. A thread that ends
 * a connection clears the handles and then reads `inside`. So at least one of the two sees the
 * other (a Dekker pattern).
 */
#include "base/sized.h"
#include "client/client_private.h"

#include <d3dkmthk.h>
#include <d3dumddi.h>

#define SLOTS  65536u
/* Bit 62: no in-process device has such a number (object/hazard.h). */
#define REMOTE ((uint64_t)1 << 62)

/* The class of slots_lock. */
VMM_STATIC_LOCK_CLASS(slots_class);

struct slot {
	_Atomic uint64_t handle; /* 0: free */
	_Atomic(struct vidmm_connection *) connection;
	_Atomic uint32_t device;     /* number of the device at the host */
	_Atomic uint32_t kmt_handle; /* its D3DKMT handle */
	/* threads in calls of the device, or of an earlier one in this slot */
	_Atomic uint32_t inside;
	uint32_t generation VMM_GUARDED_BY(slots_class);
	uint32_t next_free VMM_GUARDED_BY(slots_class);
};
static struct slot slots[SLOTS]; /* index 0 is the end of the free list */
static struct vmm_client_mutex slots_lock = VMM_CLIENT_MUTEX;
static pthread_cond_t slots_left = PTHREAD_COND_INITIALIZER;
static _Atomic uint32_t waiting; /* threads that wait in vmm_client_wait_callers */
static uint32_t first_free VMM_GUARDED_BY(slots_class);
static _Atomic uint32_t never_used = 1; /* raised with slots_lock held */

VMM_LOCK_FUNCTIONS(lock_slots, unlock_slots, (void), slots_class, vmm_client_mutex, &slots_lock);

/*
 * Takes a free slot in which no thread is inside: those keep the connection of the slot. Returns 0
 * if all slots are taken.
 */
static uint32_t take_locked(void) VMM_REQUIRES(slots_class)
{
	uint32_t *from = &first_free;

	vmm_assert_owned(&slots_lock.owner);
	while (*from && atomic_load(&slots[*from].inside))
		from = &slots[*from].next_free;
	if (!*from)
		return atomic_load(&never_used) < SLOTS ? atomic_fetch_add(&never_used, 1) : 0;
	uint32_t index = *from;
	*from = slots[index].next_free;
	return index;
}

static uint64_t add(struct vidmm_connection *connection, const struct vmm_wire_device_create *made)
{
	uint64_t handle = 0;

	lock_slots();
	uint32_t index = take_locked();
	if (index) {
		struct slot *slot = &slots[index];

		slot->generation = slot->generation < UINT32_MAX ? slot->generation + 1 : 1;
		atomic_store(&slot->connection, connection);
		atomic_store(&slot->device, made->device);
		atomic_store(&slot->kmt_handle, made->handle);
		handle = REMOTE | (uint64_t)slot->generation << 16 | index;
		atomic_store_explicit(&slot->handle, handle, memory_order_release);
	}
	unlock_slots();
	return handle;
}

static bool drop(uint64_t handle)
{
	struct slot *slot = &slots[handle % SLOTS];

	lock_slots();
	bool there = handle && atomic_load(&slot->handle) == handle;
	if (there) {
		atomic_store(&slot->handle, 0);
		slot->next_free = first_free;
		first_free = (uint32_t)(handle % SLOTS);
	}
	unlock_slots();
	return there;
}

static void leave(const void *device)
{
	struct slot *slot = &slots[(uint64_t)(uintptr_t)device % SLOTS];

	if (atomic_fetch_sub(&slot->inside, 1) != 1 || !atomic_load(&waiting))
		return;
	lock_slots();
	pthread_cond_broadcast(&slots_left);
	unlock_slots();
}

/*
 * Enters a device and returns its connection, which exists until `leave`. Returns NULL if the
 * handle names no live device.
 */
static struct vidmm_connection *enter(const void *device, uint32_t *number)
{
	uint64_t handle = (uint64_t)(uintptr_t)device;
	struct slot *slot = &slots[handle % SLOTS];

	if (!handle || atomic_load_explicit(&slot->handle, memory_order_acquire) != handle)
		return NULL;
	atomic_fetch_add(&slot->inside, 1);
	if (atomic_load(&slot->handle) == handle) {
		struct vidmm_connection *connection = atomic_load(&slot->connection);

		*number = atomic_load(&slot->device);
		/* the slot may have been reused meanwhile */
		if (atomic_load(&slot->handle) == handle)
			return connection;
	}
	leave(device);
	return NULL;
}

void vmm_client_forget_devices(const struct vidmm_connection *connection)
{
	for (uint32_t i = 1; i < atomic_load(&never_used); i++) {
		uint64_t handle = atomic_load(&slots[i].handle);

		if (handle && atomic_load(&slots[i].connection) == connection)
			(void)drop(handle);
	}
}

static bool are_inside_locked(const struct vidmm_connection *connection) VMM_REQUIRES(slots_class)
{
	vmm_assert_owned(&slots_lock.owner);
	for (uint32_t i = 1; i < atomic_load(&never_used); i++)
		if (atomic_load(&slots[i].connection) == connection &&
		    atomic_load(&slots[i].inside))
			return true;
	return false;
}

bool vmm_client_has_callers(const struct vidmm_connection *connection)
{
	lock_slots();
	bool inside = are_inside_locked(connection);
	unlock_slots();
	return inside;
}

void vmm_client_wait_callers(const struct vidmm_connection *connection)
{
	atomic_fetch_add(&waiting, 1);
	lock_slots();
	while (are_inside_locked(connection))
		vmm_client_mutex_wait(&slots_lock, &slots_left);
	unlock_slots();
	atomic_fetch_sub(&waiting, 1);
}

static vmm_status runtime(struct vidmm_connection *connection, uint32_t operation, void *args)
{
	int32_t result;
	vmm_status status = vmm_client_call(connection, operation, 0, args, &result);

	return vmm_ok(status) ? result : status;
}

vidmm_status vidmm_remote_device_create(struct vidmm_connection *connection, uint32_t adapter,
					struct vidmm_remote_device **device)
{
	struct vmm_wire_device_create args = {.adapter = adapter};

	if (!connection || !device)
		return VMM_INVALID_PARAMETER;
	vmm_status status = runtime(connection, VMM_WIRE_device_create, &args);
	if (!vmm_ok(status))
		return status;
	uint64_t handle = add(connection, &args);
	if (handle) {
		*device = (struct vidmm_remote_device *)(uintptr_t)handle;
		return status;
	}
	struct vmm_wire_device created = {.device = args.device};
	(void)runtime(connection, VMM_WIRE_device_destroy, &created);
	return VMM_INSUFFICIENT_RESOURCES;
}

void vidmm_remote_device_destroy(struct vidmm_remote_device *device)
{
	struct vmm_wire_device args;
	struct vidmm_connection *connection = enter(device, &args.device);
	uint64_t number;

	if (!connection)
		return;
	if (drop((uint64_t)(uintptr_t)device)) {
		(void)runtime(connection, VMM_WIRE_device_destroy, &args);
		while ((number = vmm_client_find(connection, VMM_NOTIFICATION_TRIM_DEVICE,
						 args.device, NULL)) != 0)
			vmm_client_unregister(connection, number);
	}
	leave(device);
}

void *vidmm_remote_device_handle(struct vidmm_remote_device *device)
{
	return device;
}

vidmm_status vidmm_remote_device_set_trim(struct vidmm_remote_device *device, void *umd_device,
					  vidmm_trim_residency_set_fn *function)
{
	struct vmm_wire_device_set_trim args = {0};
	struct vidmm_connection *connection = enter(device, &args.device);
	uint64_t number = 0;

	if (!connection)
		return VMM_INVALID_PARAMETER;
	uint64_t before =
		vmm_client_find(connection, VMM_NOTIFICATION_TRIM_DEVICE, args.device, NULL);
	if (function) {
		number = vmm_client_register(connection, VMM_NOTIFICATION_TRIM_DEVICE, args.device,
					     (void *)(uintptr_t)function, umd_device);
		if (!number) {
			leave(device);
			return VMM_NO_MEMORY;
		}
	}
	args.function = (void *)(uintptr_t)function;
	args.context = (void *)(uintptr_t)number;
	vmm_status status = runtime(connection, VMM_WIRE_device_set_trim, &args);
	uint64_t over = vmm_ok(status) ? before : number;
	if (over)
		vmm_client_unregister(connection, over);
	leave(device);
	return status;
}

vidmm_status vidmm_remote_resource_set_shared(struct vidmm_remote_device *device,
					      void *runtime_resource)
{
	struct vmm_wire_resource_set_shared args = {.resource = runtime_resource};
	struct vidmm_connection *connection = enter(device, &args.device);

	if (!connection)
		return VMM_INVALID_PARAMETER;
	vmm_status status = runtime(connection, VMM_WIRE_resource_set_shared, &args);
	leave(device);
	return status;
}

vidmm_status vidmm_remote_resource_share(struct vidmm_remote_device *device, uint32_t km_resource,
					 uint32_t *global_handle)
{
	struct vmm_wire_resource_share args = {.km_resource = km_resource};
	struct vidmm_connection *connection = global_handle ? enter(device, &args.device) : NULL;

	if (!connection)
		return VMM_INVALID_PARAMETER;
	vmm_status status = runtime(connection, VMM_WIRE_resource_share, &args);
	leave(device);
	if (vmm_ok(status))
		*global_handle = args.global_handle;
	return status;
}

vidmm_status vidmm_remote_resource_open(struct vidmm_remote_device *device, uint32_t global_handle,
					uint32_t *km_resource, uint32_t *allocations,
					uint32_t *allocation_count)
{
	struct vmm_wire_resource_open args = {.global_handle = global_handle};
	struct vidmm_connection *connection =
		km_resource && allocations && allocation_count ? enter(device, &args.device) : NULL;

	if (!connection)
		return VMM_INVALID_PARAMETER;
	args.allocations = allocations;
	args.allocation_count = *allocation_count;
	vmm_status status = runtime(connection, VMM_WIRE_resource_open, &args);
	leave(device);
	*allocation_count = args.allocation_count;
	if (vmm_ok(status))
		*km_resource = args.km_resource;
	return status;
}

vidmm_status vidmm_remote_adapter_statistics(struct vidmm_connection *connection, uint32_t adapter,
					     struct vidmm_adapter_statistics *statistics)
{
	struct vmm_wire_adapter_statistics args = {.adapter = adapter};

	if (!connection || !statistics || statistics->struct_size < sizeof(statistics->struct_size))
		return VMM_INVALID_PARAMETER;
	vmm_status status = runtime(connection, VMM_WIRE_adapter_statistics, &args);
	if (vmm_ok(status))
		(void)vmm_copy_sized(statistics, &args.statistics, sizeof(args.statistics));
	return status;
}

/* ---- device callbacks ---- */

/* Translates a failure to reach the host. Results of the call itself are translated at the host. */
static HRESULT result_of(vmm_status status)
{
	switch (status) {
	case VMM_DEVICE_REMOVED:
		return D3DDDIERR_DEVICEREMOVED;
	case VMM_NO_MEMORY:
	case VMM_INSUFFICIENT_RESOURCES:
		return E_OUTOFMEMORY;
	case VMM_INVALID_PARAMETER:
		return E_INVALIDARG;
	case VMM_NOT_SUPPORTED:
		return E_NOTIMPL;
	default:
		return E_FAIL;
	}
}

/* Stores what a failed lock leaves in its argument, also if no call was made. */
static HRESULT fail(uint32_t operation, const void *argument, HRESULT result)
{
	void *args = (void *)(uintptr_t)argument;

	if (args && operation == VMM_WIRE_pfnLockCb)
		((D3DDDICB_LOCK *)args)->pData = NULL;
	if (args && operation == VMM_WIRE_pfnLock2Cb)
		((D3DDDICB_LOCK2 *)args)->pData = NULL;
	return result;
}

static HRESULT callback(const void *handle, uint32_t operation, const void *argument)
{
	uint32_t device;
	struct vidmm_connection *connection = enter(handle, &device);
	int32_t result;

	if (!connection)
		return fail(operation, argument, E_INVALIDARG);
	vmm_status status = vmm_client_call(connection, operation, device,
					    (void *)(uintptr_t)argument, &result);
	leave(handle);
	return vmm_ok(status) ? result : fail(operation, argument, result_of(status));
}

/* ---- locks: without a message where possible ---- */

/* As `enter`; stores the D3DKMT handle of the device. */
static struct vidmm_connection *enter_with_kmt_handle(const void *device, uint32_t *kmt_handle)
{
	uint32_t number;
	struct vidmm_connection *connection = enter(device, &number);

	*kmt_handle = atomic_load(&slots[(uint64_t)(uintptr_t)device % SLOTS].kmt_handle);
	return connection;
}

static HRESULT lock_or_call(const void *device, uint32_t operation, const void *args,
			    struct vmm_client_lock *request, void **data)
{
	struct vidmm_connection *connection = enter_with_kmt_handle(device, &request->device);
	void *address = NULL;

	if (connection) {
		address = vmm_client_lock(connection, request);
		leave(device);
	}
	if (!address)
		return callback(device, operation, args);
	*data = address;
	return S_OK;
}

static HRESULT lock(const void *device, D3DDDICB_LOCK *args)
{
	if (!args)
		return callback(device, VMM_WIRE_pfnLockCb, args);
	struct vmm_client_lock request = {.handle = args->hAllocation,
					  .flags = args->Flags.Value,
					  .pages = args->pPages,
					  .page_count = args->NumPages};
	return lock_or_call(device, VMM_WIRE_pfnLockCb, args, &request, &args->pData);
}

static HRESULT lock2(const void *device, D3DDDICB_LOCK2 *args)
{
	if (!args)
		return callback(device, VMM_WIRE_pfnLock2Cb, args);
	struct vmm_client_lock request = {
		.handle = args->hAllocation, .flags = args->Flags.Value, .lock2 = true};
	return lock_or_call(device, VMM_WIRE_pfnLock2Cb, args, &request, &args->pData);
}

static bool unlock(const void *device, const D3DKMT_HANDLE *allocation)
{
	uint32_t kmt_handle;
	struct vidmm_connection *connection = enter_with_kmt_handle(device, &kmt_handle);

	if (!connection)
		return false;
	bool done = vmm_client_unlock(connection, kmt_handle, *allocation);
	leave(device);
	return done;
}

static HRESULT call_lock(const void *device, uint32_t operation, const void *argument)
{
	void *args = (void *)(uintptr_t)argument;
	const D3DDDICB_UNLOCK *one = argument;
	const D3DDDICB_UNLOCK2 *two = argument;

	switch (operation) {
	case VMM_WIRE_pfnLockCb:
		return lock(device, args);
	case VMM_WIRE_pfnLock2Cb:
		return lock2(device, args);
	case VMM_WIRE_pfnUnlockCb:
		if (one && one->NumAllocations == 1 && one->phAllocations &&
		    unlock(device, one->phAllocations))
			return S_OK;
		break;
	case VMM_WIRE_pfnUnlock2Cb:
		if (two && unlock(device, &two->hAllocation))
			return S_OK;
		break;
	default:
		break;
	}
	return callback(device, operation, argument);
}

#define REQUEST(number, member, argument)                                  \
	static HRESULT APIENTRY do_##member(HANDLE device, argument *args) \
	{                                                                  \
		return call_lock(device, number, args);                    \
	}
VMM_WIRE_CALLBACKS(REQUEST)

/* Callbacks that are not built. The host answers them too: it does nothing and emits an event. */
#define UNBUILT(number, member, type)                                   \
	static HRESULT APIENTRY do_##member(HANDLE device, type unsent) \
	{                                                               \
		(void)unsent;                                           \
		return callback(device, number, NULL);                  \
	}
VMM_WIRE_UNBUILT(UNBUILT)

static const D3DDDI_DEVICECALLBACKS callbacks = {
#define ROW(number, member, argument) .member = do_##member,
	VMM_WIRE_CALLBACKS(ROW) VMM_WIRE_UNBUILT(ROW)
#undef ROW
};

const struct _D3DDDI_DEVICECALLBACKS *vidmm_remote_device_callbacks(
	struct vidmm_remote_device *device)
{
	(void)device;
	return &callbacks;
}
