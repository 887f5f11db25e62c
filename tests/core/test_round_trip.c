/* SPDX-License-Identifier: MIT */
/*
 * The whole stack once, on both back ends: the GPU copies what the CPU wrote, with more allocations
 * than video memory holds. Every byte is compared.
 */
#include <support/client.h>

#define KIB 1024u
#define MIB (1024u * 1024u)
#define CPU SOFTGPU_ALLOCATION_CPU_VISIBLE

static void start(void **state, struct client *client, struct client_device *device)
{
	struct client_options options = {.kind = *(uint32_t *)*state, .vram_bytes = 4 * MIB};

	client_start(client, &options);
	client_open(client, device);
}

static void stop(struct client *client, struct client_device *device)
{
	client_close(device);
	assert_int_equal(client->findings, 0);
	assert_int_equal(client->fatals, 0);
	client_stop(client);
}

static void an_adapter_starts_and_stops(void **state)
{
	struct client client;
	struct client_device device;

	start(state, &client, &device);
	stop(&client, &device);
}

static void the_gpu_copies_what_the_cpu_wrote(void **state)
{
	struct client client;
	struct client_device device;
	struct client_context context;

	start(state, &client, &device);
	client_context(&device, 0, &context);
	D3DKMT_HANDLE a = client_allocate(&device, 256 * KIB, CPU);
	D3DKMT_HANDLE b = client_allocate(&device, 256 * KIB, CPU);
	client_write(&device, a, 256 * KIB, 0x10000000);
	client_copy(&context, a, b, 256 * KIB);
	client_submit(&context);
	client_expect(&device, b, 256 * KIB, 0x10000000);
	client_expect(&device, a, 256 * KIB, 0x10000000);
	assert_int_equal(client_residency(&device, b), 1);
	assert_int_equal(client_deallocate(&device, a), S_OK);
	assert_int_equal(client_deallocate(&device, b), S_OK);
	client_context_end(&context);
	stop(&client, &device);
}

static void pag_01_more_allocations_than_memory_keep_their_content(void **state)
{
	enum { COUNT = 40 };
	struct client client;
	struct client_device device;
	struct client_context context;
	D3DKMT_HANDLE allocation[COUNT];
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	start(state, &client, &device);
	client_context(&device, 0, &context);
	for (uint32_t i = 0; i < COUNT; i++) {
		allocation[i] = client_allocate(&device, 512 * KIB, CPU);
		client_write(&device, allocation[i], 512 * KIB, i << 20);
	}
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 0; i < COUNT; i++) {
			client_reference(&context, allocation[i], false);
			client_reference(&context, allocation[(i + 7) % COUNT], true);
			client_submit(&context);
		}
	for (uint32_t i = 0; i < COUNT; i++)
		client_expect(&device, allocation[i], 512 * KIB, i << 20);
	vidmm_adapter_statistics(client.adapter, &statistics);
	assert_true(statistics.evictions > COUNT);
	assert_true(statistics.bytes_paged_in > 0 && statistics.bytes_paged_out > 0);
	client_context_end(&context);
	stop(&client, &device);
}

static void sub_29_destruction_waits_for_the_gpu(void **state)
{
	struct client client;
	struct client_device device;
	struct client_context context;

	start(state, &client, &device);
	client_context(&device, 0, &context);
	D3DKMT_HANDLE a = client_allocate(&device, 64 * KIB, CPU);
	client_stall(&context, 1000000);
	client_reference(&context, a, true);
	client_submit(&context);
	assert_int_equal(client_deallocate(&device, a), S_OK);
	client_idle(&client);
	stop(&client, &device);
}

int main(void)
{
	static uint32_t sim = VIDMM_HOST_SIM, threads = VIDMM_HOST_LINUX;
	const struct CMUnitTest tests[] = {
		{"sim: an adapter starts and stops", an_adapter_starts_and_stops, NULL, NULL, &sim},
		{"linux: an adapter starts and stops", an_adapter_starts_and_stops, NULL, NULL,
		 &threads},
		{"sim: the gpu copies what the cpu wrote", the_gpu_copies_what_the_cpu_wrote, NULL,
		 NULL, &sim},
		{"linux: the gpu copies what the cpu wrote", the_gpu_copies_what_the_cpu_wrote,
		 NULL, NULL, &threads},
		{"sim: pag_01 more allocations than memory",
		 pag_01_more_allocations_than_memory_keep_their_content, NULL, NULL, &sim},
		{"linux: pag_01 more allocations than memory",
		 pag_01_more_allocations_than_memory_keep_their_content, NULL, NULL, &threads},
		{"sim: sub_29 destruction waits", sub_29_destruction_waits_for_the_gpu, NULL, NULL,
		 &sim},
		{"linux: sub_29 destruction waits", sub_29_destruction_waits_for_the_gpu, NULL,
		 NULL, &threads},
	};

	return cmocka_run_group_tests_name("round trip", tests, NULL, NULL);
}
