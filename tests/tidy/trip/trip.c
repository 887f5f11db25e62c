/* SPDX-License-Identifier: MIT */
/*
 * Records the functions that two operations call, in a build with -finstrument-functions
 * (tests/tidy/trip.py): a warm pfnRenderCb until its DMA buffer has retired, and a CPU lock on its
 * fast path. The simulator runs everything in one thread, so that the calls are the same in each
 * run. On a host of real time only the calls of the locking thread are recorded.
 */
#include <support/client.h>

#include <inttypes.h>
#include <stdio.h>

#define WARM_UPS    64u
#define CALLS_MAX   65536u
#define NO_RECORD   __attribute__((no_instrument_function))
#define BUFFER_SIZE (64u * 1024u)

static void *calls[CALLS_MAX];
static uint32_t call_count;
static _Thread_local bool recording;

extern const char __executable_start[];

NO_RECORD void __cyg_profile_func_enter(void *function, void *site);
NO_RECORD void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site)
{
	(void)site;
	if (recording && call_count < CALLS_MAX)
		calls[call_count++] = function;
}

void __cyg_profile_func_exit(void *function, void *site)
{
	(void)function;
	(void)site;
}

/* Prints the operation's name and the offset of each called function in the program. */
NO_RECORD static void print_calls(const char *operation)
{
	recording = false;
	assert_true(call_count < CALLS_MAX);
	printf("%s", operation);
	for (uint32_t i = 0; i < call_count; i++)
		printf(" %" PRIxPTR, (uintptr_t)calls[i] - (uintptr_t)__executable_start);
	printf("\n");
	call_count = 0;
}

NO_RECORD static void render(struct client_context *context, D3DKMT_HANDLE allocation, bool last)
{
	client_reference(context, allocation, true);
	D3DDDICB_RENDER args = {
		.CommandLength = context->command_bytes,
		.NumAllocations = context->allocations,
		.NumPatchLocations = context->patches,
		.hContext = context->c.hContext,
	};

	recording = last;
	HRESULT result = context->device->cb->pfnRenderCb(context->device->handle, &args);
	vidmm_adapter_wait_idle(context->device->client->adapter);
	recording = false;
	assert_int_equal(result, S_OK);
	context->c.pCommandBuffer = args.pNewCommandBuffer;
	context->c.pAllocationList = args.pNewAllocationList;
	context->c.pPatchLocationList = args.pNewPatchLocationList;
	context->command_bytes = context->allocations = context->patches = 0;
}

NO_RECORD static void lock(struct client_device *device, D3DKMT_HANDLE allocation, bool last)
{
	D3DDDICB_LOCK args = {.hAllocation = allocation};
	D3DDDICB_UNLOCK unlock = {.NumAllocations = 1, .phAllocations = &allocation};

	recording = last;
	HRESULT result = device->cb->pfnLockCb(device->handle, &args);
	recording = false;
	assert_int_equal(result, S_OK);
	assert_int_equal(device->cb->pfnUnlockCb(device->handle, &unlock), S_OK);
}

NO_RECORD static void start(struct client *client, struct client_device *device,
			    enum vidmm_host_kind kind)
{
	struct client_options options = {.kind = kind};

	client_start(client, &options);
	client_open(client, device);
}

NO_RECORD static D3DKMT_HANDLE allocate(struct client_device *device)
{
	return client_allocate(device, BUFFER_SIZE, SOFTGPU_ALLOCATION_CPU_VISIBLE);
}

NO_RECORD static void print_render(void)
{
	struct client_context context;
	struct client_device device;
	struct client client;

	start(&client, &device, VIDMM_HOST_SIM);
	client_context(&device, 0, &context);
	D3DKMT_HANDLE allocation = allocate(&device);

	for (uint32_t i = 0; i <= WARM_UPS; i++)
		render(&context, allocation, i == WARM_UPS);
	print_calls("render");
	client_context_end(&context);
	client_close(&device);
	client_stop(&client);
}

NO_RECORD static void print_lock(const char *operation, enum vidmm_host_kind kind)
{
	struct client_device device;
	struct client client;

	start(&client, &device, kind);
	D3DKMT_HANDLE allocation = allocate(&device);

	for (uint32_t i = 0; i <= WARM_UPS; i++)
		lock(&device, allocation, i == WARM_UPS);
	print_calls(operation);
	client_close(&device);
	client_stop(&client);
}

NO_RECORD int main(void)
{
	print_render();
	print_lock("lock", VIDMM_HOST_SIM);
	print_lock("lock_real_time", VIDMM_HOST_LINUX);
	return 0;
}
