/* SPDX-License-Identifier: MIT */
#include <support/client.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Events come from several threads at once. */
static pthread_mutex_t ears = PTHREAD_MUTEX_INITIALIZER;

const struct vidmm_tdr_options client_no_tdr = {0, 2000, 5000, 60000, 5, 2};

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct client *client = context;

	pthread_mutex_lock(&ears);
	if (event->type == VIDMM_EVENT_FATAL)
		client->fatals++;
	else if (event->type == VIDMM_EVENT_REASON && ++client->reasons)
		snprintf(client->reason, sizeof(client->reason), "0x%08" PRIx64 " %s",
			 event->arg[0], text ? text : "");
	else
		snprintf(client->finding[client->findings++ % CLIENT_FINDINGS],
			 sizeof(client->finding[0]), "%s", text ? text : "");
	pthread_mutex_unlock(&ears);
}

vidmm_status client_try_start(struct client *client, const struct client_options *o)
{
	struct vidmm_registry_value values[32] = {
		{"ApertureSize", o->aperture_bytes ? o->aperture_bytes : 64u << 20}};
	const uint64_t bars[] = {o->vram_bytes ? o->vram_bytes : 16u << 20, o->monitor_bytes};
	uint32_t count = 1;
	struct vidmm_host_options host = {
		.struct_size = sizeof(host),
		.kind = o->kind,
		.seed = o->seed,
		.switch_per_1024 = o->switch_per_1024,
		.hash_events = o->kind == VIDMM_HOST_SIM,
		.enforce_sharing_rights = o->enforce_sharing_rights,
	};

	memset(client, 0, sizeof(*client));
	client->kind = o->kind;
	client->owner = pthread_self();
	for (uint32_t i = 0; i < o->registry_count; i++)
		values[count++] = o->registry[i];
	struct vidmm_adapter_options adapter = {
		.struct_size = sizeof(adapter),
		.driver_entry = o->driver_entry ? o->driver_entry : softgpu_driver_entry,
		.bar_sizes = bars,
		.bar_count = o->monitor_bytes ? 2 : 1,
		.registry = values,
		.registry_count = count,
		.system_memory_bytes = o->system_memory_bytes,
		.first_fence_id = o->first_fence_id,
		.physical_adapters = o->physical_adapters,
		.features = o->features,
		.verify = o->verify,
		.scheduling = o->scheduling,
		.eviction_rank = o->eviction_rank,
		.eviction_context = o->eviction_context,
		.eviction_policy = o->eviction_policy,
		.memory_limit_bytes = o->memory_limit_bytes,
		.tdr = !o->tdr && o->kind == VIDMM_HOST_LINUX ? &client_no_tdr : o->tdr,
	};
	assert_int_equal(vidmm_host_create(&host, &client->host), 0);
	assert_int_not_equal(vidmm_subscribe(client->host,
					     1ull << VIDMM_EVENT_FINDING |
						     1ull << VIDMM_EVENT_REASON |
						     1ull << VIDMM_EVENT_FATAL,
					     on_event, client),
			     0);
	return vidmm_adapter_start(client->host, &adapter, &client->adapter);
}

void client_start(struct client *client, const struct client_options *o)
{
	assert_int_equal(client_try_start(client, o), 0);
}

void client_stop(struct client *client)
{
	vidmm_adapter_stop(client->adapter);
	vidmm_host_destroy(client->host);
}

bool client_found(const struct client *client, const char *rule)
{
	size_t length = strlen(rule);
	bool found = false;

	pthread_mutex_lock(&ears);
	uint32_t n = client->findings < CLIENT_FINDINGS ? client->findings : CLIENT_FINDINGS;
	for (uint32_t i = 0; i < n && !found; i++)
		found = !strncmp(client->finding[i], rule, length) &&
			client->finding[i][length] == ':';
	pthread_mutex_unlock(&ears);
	return found;
}

bool client_is_out_of_process(void)
{
	return getenv("VIDMM_OUT_OF_PROCESS") || getenv("VIDMM_SERVED");
}

bool client_told(struct client *client, uint32_t status, const char *text)
{
	char start[16];

	snprintf(start, sizeof(start), "0x%08" PRIx32 " ", status);
	pthread_mutex_lock(&ears);
	bool told = client->reasons && !strncmp(client->reason, start, strlen(start)) &&
		    strstr(client->reason, text);
	client->reasons = 0;
	pthread_mutex_unlock(&ears);
	return told;
}

void client_forget(struct client *client)
{
	pthread_mutex_lock(&ears);
	client->findings = 0;
	pthread_mutex_unlock(&ears);
}

void client_open(struct client *client, struct client_device *device)
{
	memset(device, 0, sizeof(*device));
	device->client = client;
	assert_int_equal(vidmm_process_open(client->host, "test", &device->process), 0);
	assert_int_equal(vidmm_device_create(device->process, client->adapter, &device->device), 0);
	device->cb = vidmm_device_callbacks(device->device);
	device->handle = vidmm_device_handle(device->device);
}

void client_close(struct client_device *device)
{
	vidmm_device_destroy(device->device);
	vidmm_process_close(device->process);
}

HRESULT client_try_allocate(struct client_device *device, const struct softgpu_allocation *spec,
			    HANDLE resource, D3DKMT_HANDLE *allocation, D3DKMT_HANDLE *km_resource)
{
	struct softgpu_allocation private_data = *spec;
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &private_data,
				      .PrivateDriverDataSize = sizeof(private_data)};
	D3DDDICB_ALLOCATE args = {
		.hResource = resource, .NumAllocations = 1, .pAllocationInfo = &info};
	HRESULT result = device->cb->pfnAllocateCb(device->handle, &args);

	*allocation = info.hAllocation;
	if (km_resource)
		*km_resource = args.hKMResource;
	return result;
}

D3DKMT_HANDLE client_allocate(struct client_device *device, uint64_t bytes, uint32_t softgpu_flags)
{
	struct softgpu_allocation spec = {
		.version = SOFTGPU_ALLOCATION_VERSION, .flags = softgpu_flags, .size_bytes = bytes};
	D3DKMT_HANDLE allocation;

	assert_int_equal(client_try_allocate(device, &spec, NULL, &allocation, NULL), S_OK);
	assert_int_not_equal(allocation, 0);
	return allocation;
}

HRESULT client_deallocate(struct client_device *device, D3DKMT_HANDLE allocation)
{
	D3DDDICB_DEALLOCATE args = {.NumAllocations = 1, .HandleList = &allocation};

	HRESULT result = device->cb->pfnDeallocateCb(device->handle, &args);

	client_settle(device->client); /* the worker calls the miniport */
	return result;
}

HRESULT client_try_lock(struct client_device *device, D3DKMT_HANDLE *allocation, uint32_t flags,
			void **data)
{
	D3DDDICB_LOCK args = {.hAllocation = *allocation, .Flags.Value = flags};
	HRESULT result = device->cb->pfnLockCb(device->handle, &args);

	*allocation = args.hAllocation;
	if (data)
		*data = args.pData;
	return result;
}

void *client_lock(struct client_device *device, D3DKMT_HANDLE allocation, uint32_t flags)
{
	void *data;

	assert_int_equal(client_try_lock(device, &allocation, flags, &data), S_OK);
	assert_non_null(data);
	return data;
}

HRESULT client_unlock(struct client_device *device, D3DKMT_HANDLE allocation)
{
	D3DDDICB_UNLOCK args = {.NumAllocations = 1, .phAllocations = &allocation};

	return device->cb->pfnUnlockCb(device->handle, &args);
}

void client_write(struct client_device *device, D3DKMT_HANDLE allocation, uint64_t bytes,
		  uint32_t pattern)
{
	uint32_t *words = client_lock(device, allocation, 0);

	for (uint64_t i = 0; i < bytes / 4; i++)
		words[i] = pattern + (uint32_t)i;
	assert_int_equal(client_unlock(device, allocation), S_OK);
}

void client_expect(struct client_device *device, D3DKMT_HANDLE allocation, uint64_t bytes,
		   uint32_t pattern)
{
	const uint32_t *words = client_lock(device, allocation, 0x1);

	for (uint64_t i = 0; i < bytes / 4; i++)
		if (words[i] != pattern + (uint32_t)i)
			fail_msg("word %llu of 0x%08x is 0x%08x, expected 0x%08x",
				 (unsigned long long)i, allocation, words[i],
				 pattern + (uint32_t)i);
	assert_int_equal(client_unlock(device, allocation), S_OK);
}

void client_context(struct client_device *device, uint32_t node, struct client_context *context)
{
	memset(context, 0, sizeof(*context));
	context->device = device;
	context->c.NodeOrdinal = node;
	assert_int_equal(device->cb->pfnCreateContextCb(device->handle, &context->c), S_OK);
}

void client_context_end(struct client_context *context)
{
	D3DDDICB_DESTROYCONTEXT args = {.hContext = context->c.hContext};

	assert_int_equal(context->device->cb->pfnDestroyContextCb(context->device->handle, &args),
			 S_OK);
}

uint32_t client_use(struct client_context *context, D3DKMT_HANDLE allocation, bool write)
{
	uint32_t i;

	for (i = 0; i < context->allocations; i++)
		if (context->c.pAllocationList[i].hAllocation == allocation)
			break;
	if (i == context->allocations) {
		assert_true(i < context->c.AllocationListSize);
		context->c.pAllocationList[i] = (D3DDDI_ALLOCATIONLIST){.hAllocation = allocation};
		context->allocations++;
	}
	if (write)
		context->c.pAllocationList[i].WriteOperation = 1;
	return i;
}

void client_command(struct client_context *context, const void *command, uint32_t bytes)
{
	assert_true(context->command_bytes + bytes <= context->c.CommandBufferSize);
	memcpy((char *)context->c.pCommandBuffer + context->command_bytes, command, bytes);
	context->command_bytes += bytes;
}

void client_reference(struct client_context *context, D3DKMT_HANDLE allocation, bool write)
{
	struct softgpu_reference r = {
		.command = {SOFTGPU_REFERENCE, write ? SOFTGPU_FLAG_WRITE : 0, sizeof(r)},
		.operand = {.allocation = client_use(context, allocation, write)},
	};

	client_command(context, &r, sizeof(r));
}

void client_copy(struct client_context *context, D3DKMT_HANDLE from, D3DKMT_HANDLE to,
		 uint64_t bytes)
{
	struct softgpu_copy c = {
		.command = {SOFTGPU_COPY, 0, sizeof(c)},
		.source = {.allocation = client_use(context, from, false)},
		.destination = {.allocation = client_use(context, to, true)},
		.length = bytes,
	};

	client_command(context, &c, sizeof(c));
}

void client_fill(struct client_context *context, D3DKMT_HANDLE to, uint64_t bytes, uint32_t pattern)
{
	struct softgpu_fill f = {
		.command = {SOFTGPU_FILL, 0, sizeof(f)},
		.operand = {.allocation = client_use(context, to, true)},
		.length = bytes,
		.pattern = pattern,
	};

	client_command(context, &f, sizeof(f));
}

void client_stall(struct client_context *context, uint64_t nanoseconds)
{
	struct softgpu_stall s = {.command = {SOFTGPU_STALL, 0, sizeof(s)},
				  .nanoseconds = nanoseconds};

	client_command(context, &s, sizeof(s));
}

HRESULT client_try_submit(struct client_context *context)
{
	D3DDDICB_RENDER args = {
		.CommandLength = context->command_bytes,
		.NumAllocations = context->allocations,
		.NumPatchLocations = context->patches,
		.hContext = context->c.hContext,
	};
	HRESULT result = context->device->cb->pfnRenderCb(context->device->handle, &args);

	assert_non_null(args.pNewCommandBuffer);
	context->c.pCommandBuffer = args.pNewCommandBuffer;
	context->c.CommandBufferSize = args.NewCommandBufferSize;
	context->c.pAllocationList = args.pNewAllocationList;
	context->c.AllocationListSize = args.NewAllocationListSize;
	context->c.pPatchLocationList = args.pNewPatchLocationList;
	context->c.PatchLocationListSize = args.NewPatchLocationListSize;
	context->command_bytes = context->allocations = context->patches = 0;
	client_settle(context->device->client);
	return result;
}

void client_submit(struct client_context *context)
{
	assert_int_equal(client_try_submit(context), S_OK);
}

void client_settle(struct client *client)
{
	if (client && client->kind == VIDMM_HOST_LINUX && !client->racing &&
	    pthread_equal(client->owner, pthread_self()))
		vidmm_settle(client->host);
}

void client_idle(struct client *client)
{
	vidmm_adapter_wait_idle(client->adapter);
}

uint32_t client_residency(struct client_device *device, D3DKMT_HANDLE allocation)
{
	D3DDDI_RESIDENCYSTATUS status;
	D3DDDICB_QUERYRESIDENCY args = {
		.NumAllocations = 1, .HandleList = &allocation, .pResidencyStatus = &status};

	assert_int_equal(device->cb->pfnQueryResidencyCb(device->handle, &args), S_OK);
	return (uint32_t)status;
}

uint64_t client_events(const struct client *client, uint32_t type)
{
	struct vidmm_counter counter;

	vidmm_event_counter(client->host, type, &counter);
	return counter.count;
}
