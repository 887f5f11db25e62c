/* SPDX-License-Identifier: MIT */
/* What a program that embeds the library needs beside the DDI: include/vidmm/vidmm.h. */
#define _GNU_SOURCE /* memfd_create */

#include <support/client.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <d3dkmthk.h>

#define MIB ((uint64_t)1 << 20)

static uint32_t on_sim = VIDMM_HOST_SIM, on_linux = VIDMM_HOST_LINUX;
#define ON_BOTH(test)                                        \
	{"sim: " #test, test, NULL, NULL, &on_sim},          \
	{                                                    \
		"linux: " #test, test, NULL, NULL, &on_linux \
	}

/* ---- D3DKMT handles of what the runtime side has made ---- */

static uint32_t created; /* the object of the last door event of pfnCreateContextCb */

static void remember(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context;
	(void)text;
	if (event->reason == VIDMM_DOOR_CREATE_CONTEXT)
		created = event->object;
}

static void hnd_01_a_device_and_a_context_of_callbacks_have_d3dkmt_handles(void **state)
{
	const struct client_options options = {.kind = *(uint32_t *)*state};
	struct client_context context;
	struct client_device device, other;
	struct client client;

	client_start(&client, &options);
	uint32_t subscription =
		vidmm_subscribe(client.host, UINT64_C(1) << VIDMM_EVENT_DOOR, remember, NULL);
	client_open(&client, &device);
	client_open(&client, &other);
	client_context(&device, 0, &context);
	uint32_t d = vidmm_device_d3dkmt_handle(device.device);
	uint32_t c = vidmm_context_d3dkmt_handle(device.device, context.c.hContext);
	assert_int_not_equal(d, 0);
	assert_int_not_equal(c, 0);
	assert_int_equal(created, c);
	assert_int_equal(vidmm_context_d3dkmt_handle(other.device, context.c.hContext), 0);
	assert_int_equal(vidmm_context_d3dkmt_handle(device.device, NULL), 0);
	assert_int_equal(vidmm_device_d3dkmt_handle(NULL), 0);

	assert_null(vidmm_d3dkmt_enter(device.process));
	D3DKMT_GETDEVICESTATE query = {.hDevice = d, .StateType = D3DKMT_DEVICESTATE_EXECUTION};
	assert_int_equal(D3DKMTGetDeviceState(&query), STATUS_SUCCESS);
	assert_int_equal(query.ExecutionState, D3DKMT_DEVICEEXECUTION_ACTIVE);
	D3DKMT_GETCONTEXTSCHEDULINGPRIORITY priority = {.hContext = c, .Priority = 7};
	assert_int_equal(D3DKMTGetContextSchedulingPriority(&priority), STATUS_SUCCESS);
	assert_int_equal(priority.Priority, 0);
	assert_ptr_equal(vidmm_d3dkmt_enter(NULL), device.process);

	client_context_end(&context);
	assert_int_equal(vidmm_context_d3dkmt_handle(device.device, context.c.hContext), 0);
	vidmm_device_destroy(device.device);
	assert_int_equal(vidmm_device_d3dkmt_handle(device.device), 0);
	vidmm_process_close(device.process);
	client_close(&other);
	vidmm_unsubscribe(client.host, subscription);
	assert_int_equal(client.findings, 0);
	client_stop(&client);
}

static void hnd_01_a_stopped_adapter_has_no_d3dkmt_handles(void **state)
{
	const struct client_options options = {.kind = *(uint32_t *)*state};
	struct client_device device;
	struct client client;

	client_start(&client, &options);
	client_open(&client, &device);
	vidmm_adapter_stop(client.adapter);
	client.adapter = NULL;
	assert_int_equal(vidmm_device_d3dkmt_handle(device.device), 0);
	vidmm_process_close(device.process);
	client_stop(&client);
}

/* ---- the process of a thread ---- */

/* Counts the adapters that the calling process sees. UINT32_MAX: there is no calling process. */
static uint32_t adapters(void)
{
	D3DKMT_ADAPTERINFO info[4];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 4, .pAdapters = info};
	NTSTATUS status = D3DKMTEnumAdapters2(&all);

	if (status == STATUS_UNSUCCESSFUL)
		return UINT32_MAX;
	assert_int_equal(status, STATUS_SUCCESS);
	for (uint32_t i = 0; i < all.NumAdapters; i++) {
		D3DKMT_CLOSEADAPTER close = {.hAdapter = info[i].hAdapter};

		assert_int_equal(D3DKMTCloseAdapter(&close), STATUS_SUCCESS);
	}
	return all.NumAdapters;
}

static void a_thread_selects_a_process_while_none_is_attached(void **state)
{
	const struct client_options options = {.kind = *(uint32_t *)*state};
	struct vidmm_process *process, *bare;
	struct client client;

	client_start(&client, &options);
	assert_int_equal(vidmm_process_open(client.host, "one", &process), 0);
	assert_int_equal(adapters(), UINT32_MAX);
	assert_null(vidmm_d3dkmt_enter(process));
	assert_int_equal(adapters(), 1);

	/* A second host, of the other kind, without an adapter. */
	struct vidmm_host_options second = {.struct_size = sizeof(second), .kind = !options.kind};
	struct vidmm_host *host;

	assert_int_equal(vidmm_host_create(&second, &host), 0);
	assert_int_equal(vidmm_process_open(host, "bare", &bare), 0);
	assert_ptr_equal(vidmm_d3dkmt_enter(bare), process);
	assert_int_equal(adapters(), 0);
	assert_ptr_equal(vidmm_d3dkmt_enter(process), bare);
	assert_int_equal(adapters(), 1);
	assert_ptr_equal(vidmm_d3dkmt_enter(NULL), process);
	assert_int_equal(adapters(), UINT32_MAX);
	assert_null(vidmm_d3dkmt_enter(NULL));
	vidmm_process_close(bare);
	vidmm_host_destroy(host);

	/* The selection goes before the process of the program. */
	struct vidmm_process *attached;

	assert_int_equal(vidmm_process_open(client.host, "attached", &attached), 0);
	vidmm_d3dkmt_attach(attached);
	assert_null(vidmm_d3dkmt_enter(process));
	assert_ptr_equal(vidmm_d3dkmt_enter(NULL), process);
	assert_int_equal(adapters(), 1);
	vidmm_process_close(attached);
	assert_int_equal(adapters(), UINT32_MAX);
	vidmm_process_close(process);
	client_stop(&client);
}

/* ---- failures on demand ---- */

static void no_memory_on_demand_fails_one_call_and_changes_nothing(void **state)
{
	const struct client_options options = {.kind = *(uint32_t *)*state};
	struct vidmm_process *process = NULL;
	struct client client;

	client_start(&client, &options);
	vidmm_fail_allocation(1);
	assert_int_equal(vidmm_process_open(client.host, "p", &process), STATUS_NO_MEMORY);
	assert_null(process);
	assert_int_equal(vidmm_process_open(client.host, "p", &process), 0);
	vidmm_process_close(process);
	vidmm_fail_allocation(1);
	vidmm_fail_allocation(0);
	assert_int_equal(vidmm_process_open(client.host, "p", &process), 0);
	vidmm_process_close(process);
	client_stop(&client);
}

/* ---- the memory of a BAR ---- */

static int file_of(uint64_t bytes)
{
	int fd = memfd_create("bar", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

static NTSTATUS start_with(struct client *client, const int *bar_memory, uint32_t physical_adapters,
			   struct vidmm_adapter **adapter)
{
	static const uint64_t size = 4 * MIB;
	const struct vidmm_registry_value registry[] = {{"ApertureSize", 4 * MIB}};
	struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						.driver_entry = softgpu_driver_entry,
						.bar_sizes = &size,
						.bar_count = 1,
						.bar_memory = bar_memory,
						.physical_adapters = physical_adapters,
						.registry = registry,
						.registry_count = 1,
						.tdr = &client_no_tdr};

	return vidmm_adapter_start(client->host, &options, adapter);
}

static void a_bar_is_the_memory_that_the_program_gives(void **state)
{
	const struct client_options options = {.kind = *(uint32_t *)*state};
	struct vidmm_adapter *adapter;
	struct client client;
	uint64_t bytes;
	int fd = file_of(4 * MIB);

	client_start(&client, &options);
	assert_int_equal(start_with(&client, &fd, 1, &adapter), STATUS_SUCCESS);
	uint32_t *own = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(own != MAP_FAILED);
	close(fd);
	own[77] = 0x600DF00D;
	const uint32_t *bar = vidmm_adapter_bar(adapter, 0, &bytes);
	assert_int_equal(bytes, 4 * MIB);
	assert_int_equal(bar[77], 0x600DF00D);
	vidmm_adapter_stop(adapter);
	assert_int_equal(own[77], 0x600DF00D);
	munmap(own, 4 * MIB);
	assert_int_equal(client.findings, 0);
	client_stop(&client);
}

static void wrong_memory_of_a_bar_is_refused(void **state)
{
	const struct client_options options = {.kind = *(uint32_t *)*state};
	struct vidmm_adapter *adapter = NULL;
	struct client client;
	int small = file_of(4 * MIB - 4096), ends[2], none = -1, bad = 1 << 20;

	client_start(&client, &options);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(start_with(&client, &small, 1, &adapter), STATUS_INVALID_PARAMETER);
	assert_true(client_told(&client, (uint32_t)STATUS_INVALID_PARAMETER, "BAR 0"));
	assert_int_equal(start_with(&client, &ends[0], 1, &adapter), STATUS_INVALID_PARAMETER);
	assert_int_equal(start_with(&client, &bad, 1, &adapter), STATUS_INVALID_HANDLE);
	assert_int_equal(start_with(&client, &none, 2, &adapter), STATUS_NOT_SUPPORTED);
	assert_null(adapter);
	assert_int_equal(start_with(&client, &none, 1, &adapter), STATUS_SUCCESS);
	vidmm_adapter_stop(adapter);
	close(small);
	close(ends[0]);
	close(ends[1]);
	client_stop(&client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(hnd_01_a_device_and_a_context_of_callbacks_have_d3dkmt_handles),
		ON_BOTH(hnd_01_a_stopped_adapter_has_no_d3dkmt_handles),
		ON_BOTH(a_thread_selects_a_process_while_none_is_attached),
		ON_BOTH(no_memory_on_demand_fails_one_call_and_changes_nothing),
		ON_BOTH(a_bar_is_the_memory_that_the_program_gives),
		ON_BOTH(wrong_memory_of_a_bar_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
