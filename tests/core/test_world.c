/* SPDX-License-Identifier: MIT */
/*
 * Worlds as a whole, on softgpu: several adapters and hosts, repeated start and stop, processes
 * that end with locked and busy objects, a GPU that never finishes, and a miniport that breaks its
 * contract while its engines work.
 */
#include <support/client.h>

#include <dispmprt.h>
#include <stdatomic.h>
#include <string.h>

#define KIB 1024u
#define MIB (1024u * 1024u)
#define CPU SOFTGPU_ALLOCATION_CPU_VISIBLE

static uint32_t sim = VIDMM_HOST_SIM, threads = VIDMM_HOST_LINUX;
#define ON_BOTH(test)                                       \
	{"sim: " #test, test, NULL, NULL, &sim},            \
	{                                                   \
		"linux: " #test, test, NULL, NULL, &threads \
	}

/*
 * The linker sends softgpu's DxgkInitialize here (--wrap), so that one DDI can be made to fail.
 */
NTSTATUS __real_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data);

static _Atomic bool patch_fails;
static PDXGKDDI_PATCH real_patch;

static NTSTATUS APIENTRY unreliable_patch(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_PATCH args)
{
	return atomic_load(&patch_fails) ? STATUS_UNSUCCESSFUL : real_patch(adapter, args);
}

NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data)
{
	real_patch = data->DxgkDdiPatch;
	data->DxgkDdiPatch = unreliable_patch;
	return __real_DxgkInitialize(driver, path, data);
}

/* ---- several worlds and adapters ---- */

static struct vidmm_adapter *start_adapter(struct vidmm_host *host, uint64_t vram_bytes)
{
	const struct vidmm_registry_value aperture = {"ApertureSize", 8 * MIB};
	const struct vidmm_adapter_options options = {
		.struct_size = sizeof(options),
		.driver_entry = softgpu_driver_entry,
		.bar_sizes = &vram_bytes,
		.bar_count = 1,
		.registry = &aperture,
		.registry_count = 1,
		.tdr = &client_no_tdr,
	};
	struct vidmm_adapter *adapter;

	assert_int_equal(vidmm_adapter_start(host, &options, &adapter), 0);
	return adapter;
}

static struct vidmm_host *start_host(uint32_t kind)
{
	const struct vidmm_host_options options = {.struct_size = sizeof(options), .kind = kind};
	struct vidmm_host *host;

	assert_int_equal(vidmm_host_create(&options, &host), 0);
	return host;
}

static void open_device(struct client_device *device, struct vidmm_process *process,
			struct vidmm_adapter *adapter)
{
	memset(device, 0, sizeof(*device));
	device->process = process;
	assert_int_equal(vidmm_device_create(process, adapter, &device->device), 0);
	device->cb = vidmm_device_callbacks(device->device);
	device->handle = vidmm_device_handle(device->device);
}

/* The GPU copies a pattern between allocations; all are compared. */
static void work(struct client_device *device, uint32_t rounds, uint32_t pattern)
{
	struct client_context context;
	D3DKMT_HANDLE a[3];

	client_context(device, 0, &context);
	for (uint32_t i = 0; i < 3; i++)
		a[i] = client_allocate(device, 512 * KIB, CPU);
	client_write(device, a[0], 512 * KIB, pattern);
	for (uint32_t i = 0; i < rounds; i++) {
		client_copy(&context, a[i % 3], a[(i + 1) % 3], 512 * KIB);
		client_submit(&context);
	}
	client_expect(device, a[rounds % 3], 512 * KIB, pattern);
	client_context_end(&context);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(client_deallocate(device, a[i]), S_OK);
}

static void one_host_runs_two_adapters(void **state)
{
	struct vidmm_host *host = start_host(*(uint32_t *)*state);
	struct vidmm_adapter *adapter[2] = {start_adapter(host, 1 * MIB),
					    start_adapter(host, 4 * MIB)};
	struct client_device device[2];
	struct client_context context;
	struct vidmm_process *process;

	assert_int_equal(vidmm_process_open(host, "p", &process), 0);
	for (uint32_t i = 0; i < 2; i++)
		open_device(&device[i], process, adapter[i]);
	D3DKMT_HANDLE other = client_allocate(&device[1], 64 * KIB, CPU);
	for (uint32_t i = 0; i < 4; i++)
		work(&device[i % 2], 5, i << 20);
	/* an object of the other adapter is invalid here */
	client_context(&device[0], 0, &context);
	client_reference(&context, other, false);
	assert_int_equal(client_try_submit(&context), (HRESULT)0xC0262115);
	vidmm_device_destroy(device[0].device);
	vidmm_adapter_stop(adapter[0]);
	work(&device[1], 4, 0x77000000); /* continues without it */
	vidmm_process_close(process);
	vidmm_adapter_stop(adapter[1]);
	vidmm_host_destroy(host);
}

static void two_hosts_are_independent(void **state)
{
	struct vidmm_host *host[2] = {start_host(*(uint32_t *)*state), start_host(VIDMM_HOST_SIM)};

	for (uint32_t i = 0; i < 2; i++) {
		struct vidmm_adapter *adapter = start_adapter(host[i], 2 * MIB);
		struct client_device device;
		struct vidmm_process *process;

		assert_int_equal(vidmm_process_open(host[i], "p", &process), 0);
		open_device(&device, process, adapter);
		work(&device, 3, 0x5000000);
		vidmm_process_close(process);
		vidmm_adapter_stop(adapter);
	}
	vidmm_host_destroy(host[1]);
	vidmm_host_destroy(host[0]);
}

/* vidmm_host_destroy asserts that no thread or memory object is leaked. */
static void an_adapter_starts_and_stops_a_hundred_times(void **state)
{
	struct vidmm_host *host = start_host(*(uint32_t *)*state);

	for (uint32_t i = 0; i < 100; i++) {
		struct vidmm_adapter *adapter = start_adapter(host, 1 * MIB);
		struct client_device device;
		struct vidmm_process *process;

		assert_int_equal(vidmm_process_open(host, "p", &process), 0);
		open_device(&device, process, adapter);
		if (i % 10 == 0)
			work(&device, 3, i << 20);
		if (i & 1)
			vidmm_device_destroy(device.device);
		vidmm_process_close(process);
		vidmm_adapter_stop(adapter);
	}
	vidmm_host_destroy(host);
}

/* ---- ends ---- */

static void a_process_ends_with_locked_and_busy_objects(void **state)
{
	struct vidmm_host *host = start_host(*(uint32_t *)*state);
	struct vidmm_adapter *adapter = start_adapter(host, 2 * MIB);
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};
	struct vidmm_process *process;

	assert_int_equal(vidmm_process_open(host, "p", &process), 0);
	for (uint32_t d = 0; d < 3; d++) {
		struct client_device device;
		struct client_context context[2];
		D3DKMT_HANDLE a[6], renamed;

		open_device(&device, process, adapter);
		for (uint32_t i = 0; i < 2; i++)
			client_context(&device, i, &context[i]);
		for (uint32_t i = 0; i < 6; i++) {
			a[i] = client_allocate(&device, 256 * KIB, CPU);
			client_stall(&context[i & 1], 200000);
			client_reference(&context[i & 1], a[i], true);
			client_submit(&context[i & 1]);
		}
		renamed = a[4];
		/* the lock is never released */
		assert_int_equal(client_try_lock(&device, &renamed, 0x80, NULL), S_OK);
		assert_int_equal(client_deallocate(&device, a[5]), S_OK);
	}
	vidmm_process_close(process);
	vidmm_adapter_statistics(adapter, &statistics);
	assert_int_equal(statistics.allocations, 0);
	assert_int_equal(statistics.instances, 0);
	vidmm_adapter_stop(adapter);
	vidmm_host_destroy(host);
}

/*
 * The adapter stops for a violation while an engine executes long copies. The memory that it reads
 * and writes stays valid.
 */
static void a_violation_during_a_copy_stops_the_adapter(void **state)
{
	struct vidmm_host *host = start_host(*(uint32_t *)*state);

	for (uint32_t round = 0; round < 5; round++) {
		struct vidmm_adapter *adapter = start_adapter(host, 16 * MIB);
		struct client_device device;
		struct client_context context;
		struct vidmm_process *process;

		assert_int_equal(vidmm_process_open(host, "p", &process), 0);
		open_device(&device, process, adapter);
		client_context(&device, 0, &context);
		D3DKMT_HANDLE a = client_allocate(&device, 2 * MIB, CPU),
			      b = client_allocate(&device, 2 * MIB, CPU);
		client_reference(&context, a, false);
		client_reference(&context, b, true);
		client_submit(&context);
		vidmm_adapter_wait_idle(adapter);
		for (uint32_t i = 0; i < 40; i++)
			client_copy(&context, a, b, 2 * MIB);
		client_submit(&context);
		vidmm_settle(host);
		atomic_store(&patch_fails, true);
		client_reference(&context, a, false);
		/* Patched before the call returns, or later; or it fails for its DMA buffer. */
		(void)client_try_submit(&context);
		assert_int_equal(client_try_lock(&device, &a, 0, NULL), D3DDDIERR_DEVICEREMOVED);
		vidmm_process_close(process);
		vidmm_adapter_stop(adapter);
		atomic_store(&patch_fails, false);
	}
	vidmm_host_destroy(host);
}

/* ---- a GPU that never finishes ---- */

struct deadlock {
	uint32_t reports;
	char text[4096];
};

static void on_deadlock(void *context, const char *report)
{
	struct deadlock *d = context;

	d->reports++;
	strncpy(d->text, report, sizeof(d->text) - 1);
}

static void hang(struct client_context *context)
{
	const struct softgpu_command command = {SOFTGPU_HANG, 0, sizeof(command)};

	client_command(context, &command, sizeof(command));
	client_submit(context);
}

struct hung_client {
	struct client_device *device;
	D3DKMT_HANDLE allocation;
};

static void lock_for_ever(void *argument)
{
	struct hung_client *c = argument;

	(void)client_try_lock(c->device, &c->allocation, 0, NULL);
}

/*
 * On the simulator no wait lasts for ever: when no thread can continue, the deadlock report names
 * each thread and what it waits for, and the world ends.
 */
static void a_hang_is_reported_and_the_host_can_be_destroyed(void **state)
{
	struct deadlock deadlock = {0};
	const struct vidmm_host_options options = {.struct_size = sizeof(options),
						   .kind = VIDMM_HOST_SIM,
						   .deadlock = on_deadlock,
						   .deadlock_context = &deadlock};
	struct client_device device;
	struct client_context context;
	struct vidmm_process *process;
	struct vidmm_thread *thread;
	struct vidmm_host *host;

	(void)state;
	assert_int_equal(vidmm_host_create(&options, &host), 0);
	struct vidmm_adapter *adapter = start_adapter(host, 2 * MIB);
	assert_int_equal(vidmm_process_open(host, "p", &process), 0);
	open_device(&device, process, adapter);
	client_context(&device, 0, &context);
	D3DKMT_HANDLE a = client_allocate(&device, 64 * KIB, CPU);
	client_reference(&context, a, true);
	hang(&context);
	struct hung_client other = {&device, a};
	assert_int_equal(
		vidmm_thread_create(host, "another client", lock_for_ever, &other, &thread), 0);
	assert_int_not_equal(client_try_lock(&device, &a, 0, NULL), S_OK);

	assert_int_equal(deadlock.reports, 1);
	assert_non_null(strstr(deadlock.text, "\"main\" waits for completion of a packet"));
	assert_non_null(
		strstr(deadlock.text, "\"another client\" waits for completion of a packet"));
	assert_non_null(strstr(deadlock.text, "\"vidsch worker\" waits for work (idle worker)"));
	assert_non_null(strstr(deadlock.text, "kernel objects")); /* the threads of the engines */

	assert_int_not_equal(client_try_lock(&device, &a, 0, NULL), S_OK);
	vidmm_thread_join(thread);
	vidmm_process_close(process);
	vidmm_adapter_stop(adapter);
	vidmm_host_destroy(host);
	assert_int_equal(deadlock.reports, 1);
}

/* ---- calls with invalid arguments ---- */

static void end_at_once(void *argument)
{
	(void)argument;
}

static void count_event(void *context, const struct vidmm_event *event, const char *text)
{
	(void)event;
	(void)text;
	atomic_fetch_add((_Atomic uint32_t *)context, 1);
}

static void invalid_arguments_are_refused_and_change_nothing(void **state)
{
	struct vidmm_host *host = start_host(*(uint32_t *)*state);
	struct vidmm_thread *thread = NULL;
	struct vidmm_counter counter = {.count = 7, .sum = {1, 2, 3, 4}};
	_Atomic uint32_t seen = 0; /* the threads of the GPU emit events too */
	uint32_t units = 5;
	uint16_t name[5];

	assert_int_equal(vidmm_thread_create(NULL, "t", end_at_once, NULL, &thread),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(vidmm_thread_create(host, NULL, end_at_once, NULL, &thread),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(vidmm_thread_create(host, "t", NULL, NULL, &thread),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(vidmm_thread_create(host, "t", end_at_once, NULL, NULL),
			 STATUS_INVALID_PARAMETER);
	assert_null(thread);

	assert_int_equal(vidmm_subscribe(NULL, ~0ull, count_event, &seen), 0);
	assert_int_equal(vidmm_subscribe(host, ~0ull, NULL, &seen), 0);
	uint32_t subscription = vidmm_subscribe(host, ~0ull, count_event, &seen);
	assert_int_not_equal(subscription, 0);
	vidmm_unsubscribe(host, subscription + 1);
	struct vidmm_adapter *adapter = start_adapter(host, 1 * MIB);
	assert_int_not_equal(atomic_load(&seen), 0); /* that subscription has not ended */
	vidmm_adapter_stop(adapter);
	vidmm_unsubscribe(host, subscription);
	vidmm_unsubscribe(host, subscription);

	vidmm_event_counter(host, VIDMM_EVENT_TYPE_COUNT, &counter);
	assert_int_equal(counter.count, 0);
	assert_int_equal(counter.sum[3], 0);
	assert_int_equal(vidmm_nt_handle_name(host, -1, name, &units), STATUS_INVALID_PARAMETER);
	assert_int_equal(units, 5);
	vidmm_host_destroy(host);
}

static void a_report_is_cleared_when_a_feature_is_refused(void **state)
{
	struct vidmm_host *host = start_host(*(uint32_t *)*state);
	struct vidmm_adapter_report report;
	const struct vidmm_adapter_options options = {
		.struct_size = sizeof(options),
		.driver_entry = softgpu_driver_entry,
		.features = 0x80000000u,
		.report = &report,
	};
	struct vidmm_adapter *adapter;

	memset(&report, 0xAA, sizeof(report));
	report.struct_size = sizeof(report);
	assert_int_equal(vidmm_adapter_start(host, &options, &adapter), STATUS_NOT_SUPPORTED);
	assert_int_equal(report.struct_size, sizeof(report));
	assert_int_equal(report.step, VIDMM_START_OPTIONS);
	assert_int_equal(report.interface_version, 0);
	assert_int_equal(report.described_count, 0);
	vidmm_host_destroy(host);
}

static void events_are_hashed_on_both_kinds_of_host(void **state)
{
	for (uint32_t hashed = 0; hashed < 2; hashed++) {
		const struct vidmm_host_options options = {.struct_size = sizeof(options),
							   .kind = *(uint32_t *)*state,
							   .hash_events = hashed};
		struct vidmm_host *host;

		assert_int_equal(vidmm_host_create(&options, &host), 0);
		assert_int_equal(vidmm_event_hash(host), 0);
		vidmm_adapter_stop(start_adapter(host, 1 * MIB));
		assert_int_equal(vidmm_event_hash(host) != 0, hashed);
		vidmm_host_destroy(host);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(one_host_runs_two_adapters),
		ON_BOTH(two_hosts_are_independent),
		ON_BOTH(an_adapter_starts_and_stops_a_hundred_times),
		ON_BOTH(a_process_ends_with_locked_and_busy_objects),
		ON_BOTH(a_violation_during_a_copy_stops_the_adapter),
		cmocka_unit_test(a_hang_is_reported_and_the_host_can_be_destroyed),
		ON_BOTH(invalid_arguments_are_refused_and_change_nothing),
		ON_BOTH(a_report_is_cleared_when_a_feature_is_refused),
		ON_BOTH(events_are_hashed_on_both_kinds_of_host),
	};

	return cmocka_run_group_tests_name("world", tests, NULL, NULL);
}
