/* SPDX-License-Identifier: MIT */
/*
 * Operations of a client that are not D3DKMT functions or callbacks: devices by small numbers,
 * sharing, names, statistics (include/vidmm/client.h).
 */
#include "serve/serve_private.h"

#include "object/hazard.h"
#include "sync/packet.h"

void *vmm_serve_device(struct vmm_session *session, uint32_t number)
{
	return number - 1 < VMM_SERVE_DEVICES_MAX ? atomic_load(&session->devices[number - 1])
						  : NULL;
}

static bool store_device(struct vmm_session *session, void *device, uint32_t *number)
{
	for (uint32_t i = 0; i < VMM_SERVE_DEVICES_MAX; i++) {
		void *empty = NULL;

		if (atomic_compare_exchange_strong(&session->devices[i], &empty, device)) {
			*number = i + 1;
			return true;
		}
	}
	return false;
}

static uint32_t handle_of(const void *live)
{
	struct vmm_hazard_guard guard;
	const struct vmm_device *device = vmm_hazard_enter(&guard, VMM_HAZARD_DEVICE, live);
	uint32_t handle = 0;

	if (device) {
		handle = device->handle;
		vmm_hazard_leave(&guard);
	}
	return handle;
}

int32_t vmm_serve_device_create(struct vmm_session *session, struct vmm_wire_device_create *args)
{
	struct vmm_adapter *adapter = vmm_adapter_nth(&session->server->host->world, args->adapter);
	struct vidmm_device *device;

	if (!adapter)
		return VMM_INVALID_PARAMETER;
	vmm_status status = vidmm_device_create(
		session->process, vmm_container_of(adapter, struct vidmm_adapter, core), &device);
	vmm_adapter_put(adapter);
	if (!vmm_ok(status))
		return status;
	if (store_device(session, device, &args->device)) {
		args->handle = handle_of(device);
		return VMM_OK;
	}
	vidmm_device_destroy(device);
	return VMM_INSUFFICIENT_RESOURCES;
}

int32_t vmm_serve_device_destroy(struct vmm_session *session, const struct vmm_wire_device *args)
{
	uint32_t number = args->device;
	void *device = number - 1 < VMM_SERVE_DEVICES_MAX
			       ? atomic_exchange(&session->devices[number - 1], NULL)
			       : NULL;

	/*
	 * A registration for this device's trim function ends with the session, or is replaced by
	 * that of the next device with the same address.
	 */
	vidmm_device_destroy(device);
	return device ? VMM_OK : VMM_INVALID_PARAMETER;
}

int32_t vmm_serve_device_set_trim(struct vmm_session *session,
				  const struct vmm_wire_device_set_trim *args)
{
	void *device = vmm_serve_device(session, args->device);

	return device ? vmm_serve_set_trim(session, device, (uint64_t)(uintptr_t)args->function,
					   (uint64_t)(uintptr_t)args->context)
		      : VMM_INVALID_PARAMETER;
}

int32_t vmm_serve_resource_set_shared(struct vmm_session *session,
				      const struct vmm_wire_resource_set_shared *args)
{
	return vidmm_resource_set_shared(vmm_serve_device(session, args->device), args->resource);
}

int32_t vmm_serve_resource_share(struct vmm_session *session, struct vmm_wire_resource_share *args)
{
	return vidmm_resource_share(vmm_serve_device(session, args->device), args->km_resource,
				    &args->global_handle);
}

int32_t vmm_serve_resource_open(struct vmm_session *session, struct vmm_wire_resource_open *args)
{
	return vidmm_resource_open(vmm_serve_device(session, args->device), args->global_handle,
				   &args->km_resource, args->allocations, &args->allocation_count);
}

int32_t vmm_serve_nt_handle_name(struct vmm_session *session, struct vmm_wire_nt_handle_name *args)
{
	return vidmm_nt_handle_name(session->server->host, (int)(intptr_t)args->handle, args->name,
				    &args->units);
}

int32_t vmm_serve_sync_values(struct vmm_session *session, struct vmm_wire_sync_values *args)
{
	args->values =
		(uint32_t)vmm_sync_values_of(vidmm_core_process(session->process), args->handle);
	return VMM_OK;
}

int32_t vmm_serve_sync_words(struct vmm_session *session, struct vmm_wire_sync_words *args)
{
	struct vmm_sync_words words;

	/* Without a page the client's other values stay: they mean nothing. */
	args->page = NULL;
	args->words = VMM_WIRE_WORDS_NEVER;
	/* Without the epoch a client cannot know whether the page is still valid. */
	if (!vmm_views_share_words(&session->views))
		return VMM_OK;
	args->words = VMM_WIRE_WORDS_NOT_NOW;
	if (vmm_sync_share_words(vidmm_core_process(session->process), args->device, args->handle,
				 &words)) {
		args->words = VMM_WIRE_WORDS_GIVEN;
		args->page = (void *)(intptr_t)words.fd;
	}
	args->epoch = words.epoch;
	args->adapter = words.adapter;
	return VMM_OK;
}

int32_t vmm_serve_sync_signaled(struct vmm_session *session,
				const struct vmm_wire_sync_signaled *args)
{
	vmm_sync_client_signaled(vidmm_core_process(session->process), args->handle);
	return VMM_OK;
}

/*
 * Statistics are sums over all clients of the adapter, as an unprivileged program may query them on
 * Windows. They do not identify a client.
 */
int32_t vmm_serve_adapter_statistics(struct vmm_session *session,
				     struct vmm_wire_adapter_statistics *args)
{
	struct vmm_adapter *adapter = vmm_adapter_nth(&session->server->host->world, args->adapter);

	if (!adapter)
		return VMM_INVALID_PARAMETER;
	vmm_status status =
		vmm_host_statistics_of(vmm_container_of(adapter, struct vidmm_adapter, core),
				       session->process, &args->statistics);
	vmm_adapter_put(adapter);
	return status;
}
