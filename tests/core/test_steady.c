/* SPDX-License-Identifier: MIT */
/*
 * The steady state must not use the system. Once every page has been at the addresses where it will
 * be again, paging takes no page faults, because backing stores that are given up (PAG-12) are
 * retained by the library.
 */
#include <support/client.h>

#include <stdatomic.h>
#include <sys/resource.h>

#define MIB          (1024u * 1024u)
#define VRAM_BYTES   (8 * MIB)
#define BUFFER_BYTES (256u * 1024u)
#define BUFFERS      (4 * VRAM_BYTES / BUFFER_BYTES)

static uint64_t page_faults(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return (uint64_t)usage.ru_minflt;
}

/* Pages every allocation in and out again, by writes of the GPU. */
static void go_around(struct client_context *context, const D3DKMT_HANDLE *buffers, unsigned times)
{
	for (unsigned i = 0; i < times * BUFFERS; i++) {
		client_reference(context, buffers[i % BUFFERS], true);
		client_submit(context);
	}
	client_idle(context->device->client);
}

static void pag_12_reused_backing_stores_cause_no_page_faults(void **state)
{
	/* lru pages everything in each round */
	const struct vidmm_registry_value lru = {"VidmmEvictionPolicy", VIDMM_EVICTION_LRU};
	struct client_options options = {.kind = *(uint32_t *)*state,
					 .vram_bytes = VRAM_BYTES,
					 .registry = &lru,
					 .registry_count = 1};
	struct vidmm_adapter_statistics before = {.struct_size = sizeof(before)}, after = before;
	D3DKMT_HANDLE buffers[BUFFERS];
	struct client_context context;
	struct client_device device;
	struct client client;

	client_start(&client, &options);
	client_open(&client, &device);
	client_context(&device, 0, &context);
	for (unsigned i = 0; i < BUFFERS; i++) {
		struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
						  .size_bytes = BUFFER_BYTES,
						  .segment_set = 0x1};

		assert_int_equal(client_try_allocate(&device, &spec, NULL, &buffers[i], NULL),
				 S_OK);
	}
	go_around(&context, buffers, 3);
	vidmm_adapter_statistics(client.adapter, &before);
	uint64_t faults = page_faults();

	go_around(&context, buffers, 2);
	faults = page_faults() - faults;
	vidmm_adapter_statistics(client.adapter, &after);
	/*
	 * All content was paged out and in, 16384 pages each way. Some faults come from the rest of
	 * the program (mainly a sanitizer) and from the system, which may reclaim a page table. If
	 * pages were given back to the system, each would fault.
	 */
	assert_int_equal(after.bytes_paged_in - before.bytes_paged_in, 8u * VRAM_BYTES);
	assert_true(after.bytes_paged_out > before.bytes_paged_out);
	assert_true(faults < 16384 / 4);
	assert_int_equal(client.findings, 0);
	client_context_end(&context);
	client_close(&device);
	client_stop(&client);
}

/* ---- a submission allocates no memory ---- */

static _Atomic bool counting;
static _Atomic uint32_t allocated;

void *__real_vmm_calloc(size_t count, size_t size);
void *__wrap_vmm_calloc(size_t count, size_t size);
void *__wrap_vmm_calloc(size_t count, size_t size)
{
	if (atomic_load(&counting))
		atomic_fetch_add(&allocated, 1);
	return __real_vmm_calloc(count, size);
}

enum { REFERENCES = 64 };

static void submit_all(struct client_context *context, const D3DKMT_HANDLE *buffers)
{
	for (unsigned i = 0; i < REFERENCES; i++)
		client_reference(context, buffers[i], i % 2);
	client_submit(context);
	client_idle(context->device->client);
}

static void sub_01_a_submission_in_steady_state_allocates_nothing(void **state)
{
	struct client_options options = {.kind = *(uint32_t *)*state, .vram_bytes = VRAM_BYTES};
	D3DKMT_HANDLE buffers[REFERENCES];
	struct client_context context;
	struct client_device device;
	struct client client;

	client_start(&client, &options);
	client_open(&client, &device);
	client_context(&device, 0, &context);
	for (unsigned i = 0; i < REFERENCES; i++)
		buffers[i] = client_allocate(&device, 16384, 0);
	for (unsigned i = 0; i < 40; i++) /* more than the context has DMA buffers */
		submit_all(&context, buffers);
	atomic_store(&allocated, 0);
	atomic_store(&counting, true);
	for (unsigned i = 0; i < 200; i++)
		submit_all(&context, buffers);
	atomic_store(&counting, false);
	assert_int_equal(atomic_load(&allocated), 0);
	atomic_store(&counting, true);
	(void)client_allocate(&device, 16384, 0); /* allocations are counted */
	atomic_store(&counting, false);
	assert_true(atomic_load(&allocated) > 0);
	assert_int_equal(client.findings, 0);
	client_context_end(&context);
	client_close(&device);
	client_stop(&client);
}

int main(void)
{
	static uint32_t kinds[] = {VIDMM_HOST_LINUX, VIDMM_HOST_SIM};
	const struct CMUnitTest tests[] = {
		{"linux: pag_12 given-up stores come back without page faults",
		 pag_12_reused_backing_stores_cause_no_page_faults, NULL, NULL, &kinds[0]},
		{"sim: pag_12 given-up stores come back without page faults",
		 pag_12_reused_backing_stores_cause_no_page_faults, NULL, NULL, &kinds[1]},
		{"linux: sub_01 a submission allocates nothing",
		 sub_01_a_submission_in_steady_state_allocates_nothing, NULL, NULL, &kinds[0]},
		{"sim: sub_01 a submission allocates nothing",
		 sub_01_a_submission_in_steady_state_allocates_nothing, NULL, NULL, &kinds[1]},
	};

	return cmocka_run_group_tests_name("steady", tests, NULL, NULL);
}
