/* SPDX-License-Identifier: MIT */
/*
 * ExistingSysMem and ExistingKernelSysMem (ALF-11 to ALF-13): the memory that the caller passes is
 * the backing store itself. It is the caller's again when the allocation is destroyed.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "world.h"
#include <support/viewer.h>

#include <ntddk.h>
#include <sys/mman.h>

#define TRANSFER DXGK_OPERATION_TRANSFER
#define EXISTING (CPU | SOFTGPU_ALLOCATION_EXISTING_SYSTEM)
#define KERNEL   (CPU | SOFTGPU_ALLOCATION_EXISTING_KERNEL)
#define TAG      0x74736554u
#define BYTES    (8 * PAGE)

static const struct client_options small = {.vram_bytes = 4 * MIB, .aperture_bytes = 8 * MIB};

static char *map_pages(size_t bytes)
{
	char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	return pages;
}

static HRESULT try_wrap(struct world *w, const void *memory, const struct softgpu_allocation *wish,
			HANDLE resource, D3DKMT_HANDLE *a)
{
	struct softgpu_allocation copy = *wish;
	D3DDDI_ALLOCATIONINFO info = {.pSystemMem = memory,
				      .pPrivateDriverData = &copy,
				      .PrivateDriverDataSize = sizeof(copy)};
	D3DDDICB_ALLOCATE args = {
		.hResource = resource, .NumAllocations = 1, .pAllocationInfo = &info};
	HRESULT result = w->device.cb->pfnAllocateCb(w->device.handle, &args);

	*a = info.hAllocation;
	return result;
}

static D3DKMT_HANDLE wrap(struct world *w, const void *memory, uint32_t flags, uint32_t segments)
{
	struct softgpu_allocation wish = wish_of(BYTES, flags, segments);
	D3DKMT_HANDLE a;

	assert_int_equal(try_wrap(w, memory, &wish, NULL, &a), S_OK);
	return a;
}

static void set_words(void *memory, uint32_t pattern)
{
	for (uint32_t i = 0; i < BYTES / 4; i++)
		((uint32_t *)memory)[i] = pattern;
}

static void expect_words(const void *memory, uint32_t pattern)
{
	for (uint32_t i = 0; i < BYTES / 4; i++)
		if (((const uint32_t *)memory)[i] != pattern)
			fail_msg("word %u is 0x%x, not 0x%x", i, ((const uint32_t *)memory)[i],
				 pattern);
}

static void expect_by_gpu(struct world *w, D3DKMT_HANDLE a, uint32_t pattern)
{
	D3DKMT_HANDLE copy = allocate_in(&w->device, BYTES, CPU, APERTURE);

	client_copy(&w->context, a, copy, BYTES);
	client_submit(&w->context);
	client_idle(&w->client);
	expect_words(client_lock(&w->device, copy, READ_ONLY), pattern);
	assert_int_equal(client_unlock(&w->device, copy), S_OK);
	assert_int_equal(client_deallocate(&w->device, copy), S_OK);
}

static void fill_by_gpu(struct world *w, D3DKMT_HANDLE a, uint32_t pattern)
{
	client_fill(&w->context, a, BYTES, pattern);
	client_submit(&w->context);
}

static void expect_wrap_refused(struct world *w, const void *memory, uint32_t flags, uint64_t bytes,
				const char *rule)
{
	struct softgpu_allocation wish = wish_of(bytes, flags, 0);
	D3DKMT_HANDLE a;

	client_forget(&w->client);
	assert_int_equal(try_wrap(w, memory, &wish, NULL, &a), E_INVALIDARG);
	if (!client_found(&w->client, rule) || w->client.findings != 1)
		fail_msg("%p, 0x%llx bytes: %u findings, first: %s", memory,
			 (unsigned long long)bytes, w->client.findings, w->client.finding[0]);
	assert_int_equal(a, 0);
	assert_int_equal(world_statistics(w).allocations, 1); /* the gate */
	client_forget(&w->client);
}

/* softgpu rounds sizes up; a miniport that does not keeps the odd size. */
static void odd_size(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context, (void)index;
	info->Size = BYTES - PAGE + 1;
}

static void alf_11_existing_memory_must_be_whole_mapped_pages(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	char *memory = map_pages(BYTES + PAGE);
	D3DKMT_HANDLE plain;

	expect_wrap_refused(&w, NULL, EXISTING, BYTES, "ALF-11");
	expect_wrap_refused(&w, (void *)(uintptr_t)w.gate_word, EXISTING, PAGE, "ALF-11");
	expect_wrap_refused(&w, memory + 1, EXISTING, BYTES, "ALF-11");
	expect_wrap_refused(&w, (void *)(uintptr_t)0xFFFFFFFFFFFFF000u, EXISTING, BYTES, "ALF-11");
	expect_wrap_refused(&w, (void *)(uintptr_t)0x00FFFFFFFFFFF000u, EXISTING, BYTES, "ALF-11");
	probe.edit_allocation = odd_size;
	expect_wrap_refused(&w, memory, EXISTING, BYTES, "ALF-11");
	probe.edit_allocation = NULL;
	assert_int_equal(munmap(memory + BYTES - PAGE, PAGE), 0);
	expect_wrap_refused(&w, memory, EXISTING, BYTES, "ALF-11"); /* the last page is unmapped */
	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_READ), 0);
	expect_wrap_refused(&w, memory, EXISTING, BYTES - PAGE, "ALF-11");
	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	struct softgpu_allocation fits = wish_of(BYTES - PAGE, EXISTING, 0);
	assert_int_equal(try_wrap(&w, memory, &fits, NULL, &plain), S_OK);
	assert_int_equal(client_deallocate(&w.device, plain), S_OK);
	world_stop(&w);
	assert_int_equal(munmap(memory, BYTES - PAGE), 0);
	assert_int_equal(munmap(memory + BYTES, PAGE), 0);
}

static void alf_11_alf_12_user_memory_is_not_accepted_as_kernel_memory_or_vice_versa(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	char *user = map_pages(BYTES), *pool = ExAllocatePool2(POOL_FLAG_NON_PAGED, BYTES, TAG);

	assert_non_null(pool);
	expect_wrap_refused(&w, pool, EXISTING, BYTES, "ALF-11");
	expect_wrap_refused(&w, user, KERNEL, BYTES, "ALF-12");
	expect_wrap_refused(&w, NULL, KERNEL, BYTES, "ALF-12");
	expect_wrap_refused(&w, pool + 16, KERNEL, PAGE, "ALF-12");
	/* past the end of the pool block */
	expect_wrap_refused(&w, pool + PAGE, KERNEL, BYTES, "ALF-12");
	probe.edit_allocation = odd_size;
	expect_wrap_refused(&w, pool, KERNEL, BYTES, "ALF-12");
	probe.edit_allocation = NULL;
	/* a kernel address of the host is refused for an out-of-process client */
	if (is_out_of_process(w.device.process))
		expect_wrap_refused(&w, pool, KERNEL, BYTES, "ALF-12");
	ExFreePoolWithTag(pool, TAG);
	world_stop(&w);
	munmap(user, BYTES);
}

/* Allocations may overlap each other's memory, wholly or in part. */
static void alf_11_alf_13_allocations_over_the_same_memory_share_content(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	char *user = map_pages(2 * BYTES);

	set_words(user, 0x11130000);
	set_words(user + BYTES, 0x11130001);
	struct softgpu_allocation wish = wish_of(2 * BYTES, EXISTING, APERTURE);
	D3DKMT_HANDLE whole;
	assert_int_equal(try_wrap(&w, user, &wish, NULL, &whole), S_OK);
	D3DKMT_HANDLE first = wrap(&w, user, EXISTING, APERTURE),
		      second = wrap(&w, user + BYTES, EXISTING, APERTURE);

	assert_ptr_equal(client_lock(&w.device, second, 0), user + BYTES);
	expect_words(user + BYTES, 0x11130001);
	assert_int_equal(client_unlock(&w.device, second), S_OK);
	fill_by_gpu(&w, second, 0x11130002);
	client_idle(&w.client);
	expect_words(user, 0x11130000);
	expect_words(user + BYTES, 0x11130002);
	assert_int_equal(client_deallocate(&w.device, whole), S_OK);
	expect_by_gpu(&w, first, 0x11130000);
	set_words(user + BYTES, 0x11130003);
	expect_by_gpu(&w, second, 0x11130003);
	assert_int_equal(client_deallocate(&w.device, first), S_OK);
	assert_int_equal(client_deallocate(&w.device, second), S_OK);
	world_stop(&w);
	munmap(user, 2 * BYTES);
}

static void alf_11_memory_without_the_flag_or_for_a_shared_resource_is_refused(void **state)
{
	struct softgpu_allocation wish = wish_of(BYTES, CPU, 0);
	struct softgpu_allocation existing = wish_of(BYTES, EXISTING, 0);
	struct softgpu_allocation kernel = wish_of(BYTES, KERNEL, APERTURE);
	HANDLE resource = (HANDLE)(uintptr_t)0x5A;
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, &small);
	char *memory = map_pages(BYTES);
	assert_int_equal(try_wrap(&w, memory, &wish, NULL, &a), E_NOTIMPL);
	assert_int_equal(vidmm_resource_set_shared(w.device.device, resource), 0);
	assert_int_equal(try_wrap(&w, memory, &existing, resource, &a), E_NOTIMPL);
	assert_int_equal(try_wrap(&w, memory, &kernel, resource, &a), E_NOTIMPL);
	existing.segment_set = APERTURE; /* ALF-40 */
	assert_int_equal(try_wrap(&w, memory, &existing, resource, &a), S_OK);
	const D3DDDICB_DEALLOCATE end = {.hResource = resource};
	assert_int_equal(w.device.cb->pfnDeallocateCb(w.device.handle, &end), S_OK);
	assert_int_equal(w.client.findings, 0);
	world_stop(&w);
	munmap(memory, BYTES);
}

/* A lock returns the caller's own address; an alternate address of the same memory is not built. */
static void swz_24_existing_memory_gets_no_alternate_address(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	char *memory = map_pages(BYTES);
	D3DKMT_HANDLE a = wrap(&w, memory, EXISTING, VRAM);

	expect_lock_refused(&w, a, ACQUIRE_APERTURE | USE_ALTERNATE_VA, E_NOTIMPL, NULL);
	assert_ptr_equal(client_lock(&w.device, a, ACQUIRE_APERTURE), memory);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	world_stop(&w);
	munmap(memory, BYTES);
}

static void use_in(struct world *w, char *memory, uint32_t flags, uint32_t segments)
{
	uint64_t before = world_statistics(w).system_bytes;

	set_words(memory, 0x11110000);
	D3DKMT_HANDLE a = wrap(w, memory, flags, segments);

	expect_by_gpu(w, a, 0x11110000); /* what the client had written before */
	assert_int_equal(client_residency(&w->device, a), segments == VRAM ? IN_VRAM : IN_APERTURE);
	assert_ptr_equal(client_lock(&w->device, a, 0), memory);
	set_words(memory, 0x11110001);
	assert_int_equal(client_unlock(&w->device, a), S_OK);
	expect_by_gpu(w, a, 0x11110001);
	fill_by_gpu(w, a, 0x11110002);
	assert_ptr_equal(client_lock(&w->device, a, READ_ONLY), memory);
	expect_words(memory, 0x11110002);
	assert_int_equal(client_unlock(&w->device, a), S_OK);
	fill_by_gpu(w, a, 0x11110003); /* the result is read after destruction */
	assert_int_equal(client_deallocate(&w->device, a), S_OK);
	expect_words(memory, 0x11110003);
	client_idle(&w->client);
	assert_true(world_statistics(w).system_bytes <= before + BYTES); /* the other copy's */
}

static void alf_13_existingsysmem_is_the_backing_store(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	char *memory = map_pages(BYTES);

	use_in(&w, memory, EXISTING, VRAM);
	use_in(&w, memory, EXISTING, APERTURE);
	use_in(&w, memory, EXISTING | SOFTGPU_ALLOCATION_CACHED, VRAM);
	world_stop(&w);
	munmap(memory, BYTES);
}

/*
 * The owner is a miniport, so its memory is the host's own, also if clients are out-of-process
 * (Q-120).
 */
static void alf_13_existingkernelsysmem_is_the_backing_store(void **state)
{
	struct world w;

	open_in_process(true);
	world_start(&w, state, &small);
	open_in_process(false);
	char *pool = ExAllocatePool2(POOL_FLAG_NON_PAGED, BYTES, TAG);

	assert_non_null(pool);
	use_in(&w, pool, KERNEL, VRAM);
	use_in(&w, pool, KERNEL, APERTURE);
	ExFreePoolWithTag(pool, TAG);
	world_stop(&w);
}

static void alf_13_pag_13_eviction_copies_back_only_gpu_writes(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	char *memory = map_pages(BYTES);

	set_words(memory, 0x13130000);
	D3DKMT_HANDLE a = wrap(&w, memory, EXISTING, VRAM);
	HANDLE kmd = probe_last_created();

	use_now(&w, a, false);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1);
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(TRANSFER, kmd), 1); /* clean: dropped */
	fill_by_gpu(&w, a, 0x13130001);
	client_idle(&w.client);
	expect_words(memory, 0x13130000);
	evict_by_pressure(&w, a);
	expect_words(memory, 0x13130001);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	world_stop(&w);
	munmap(memory, BYTES);
}

static void alf_13_discard_does_not_rename_existing_memory(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, &small);
	char *memory = map_pages(BYTES);
	D3DKMT_HANDLE a = wrap(&w, memory, EXISTING, VRAM), before = a;

	gate_close(&w);
	client_reference(&w.context, a, false);
	client_submit(&w.context);
	expect_lock_refused(&w, a, DISCARD | DONOT_WAIT, D3DERR_WASSTILLDRAWING, NULL);
	gate_open(&w);
	assert_int_equal(client_try_lock(&w.device, &a, DISCARD, &data), S_OK);
	assert_int_equal(a, before);
	assert_ptr_equal(data, memory);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
	munmap(memory, BYTES);
}

static void lock_34_a_lock_of_existing_memory_waits_for_the_gpu(void **state)
{
	struct helper helper;
	struct world w;

	world_start(&w, state, &small);
	char *memory = map_pages(BYTES);
	D3DKMT_HANDLE a = wrap(&w, memory, EXISTING, VRAM);

	gate_close(&w);
	fill_by_gpu(&w, a, 0x34343434);
	lock_on_thread(&helper, &w, a, 0);
	assert_int_equal(atomic_load(&helper.state), 1);
	gate_open(&w);
	helper_join(&helper);
	assert_int_equal(helper.result, S_OK);
	assert_true(helper.gate_was_open);
	assert_ptr_equal(helper.data, memory);
	expect_words(memory, 0x34343434);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	world_stop(&w);
	munmap(memory, BYTES);
}

struct opener {
	struct world *world;
	struct vidmm_thread *thread;
	D3DKMT_HANDLE allocation;
	char *memory;
	_Atomic uint32_t gone;
};

static void deallocate_and_unmap(void *argument)
{
	struct opener *o = argument;

	(void)client_deallocate(&o->world->device, o->allocation);
	munmap(o->memory, BYTES); /* from here on an access would fault */
	atomic_store(&o->gone, 1);
}

/*
 * The owner may free its memory when the call returns, so the call waits until the GPU is done
 * with it.
 */
static void alf_13_deallocating_existing_memory_waits_for_the_gpu(void **state)
{
	for (uint32_t segments = VRAM; segments <= APERTURE; segments++) {
		struct world w;
		struct opener o = {.world = &w};

		world_start(&w, state, &small);
		o.memory = map_pages(BYTES);
		o.allocation = wrap(&w, o.memory, EXISTING, segments);
		use_now(&w, o.allocation, false);
		gate_close(&w);
		fill_by_gpu(&w, o.allocation, 0x77);
		assert_int_equal(vidmm_thread_create(w.client.host, "owner", deallocate_and_unmap,
						     &o, &o.thread),
				 0);
		for (uint32_t i = 0; i < 100; i++)
			vidmm_settle(w.client.host);
		assert_int_equal(atomic_load(&o.gone), 0);
		gate_open(&w);
		vidmm_thread_join(o.thread);
		assert_int_equal(atomic_load(&o.gone), 1);
		client_idle(&w.client);
		world_stop(&w);
	}
}

/* Destroying the device, and stopping the adapter, return the memory as a deallocation does. */
/*
 * Deallocation is no eviction: busy apertures of its EvictionSegmentSet neither delay it nor lose
 * content.
 */
static void alf_13_deallocation_does_not_wait_for_eviction_apertures(void **state)
{
	static const struct vidmm_registry_value bare[] = {{"DmaBufferSegmentSet", 0},
							   {"PagingBufferSegment", 0}};
	const struct client_options narrow = {.vram_bytes = 4 * MIB,
					      .aperture_bytes = 64 * PAGE,
					      .registry = bare,
					      .registry_count = 2};
	struct softgpu_allocation wish = wish_of(BYTES, EXISTING, VRAM);
	char *memory = map_pages(BYTES);
	struct world w;
	D3DKMT_HANDLE a;

	world_start(&w, state, &narrow);
	wish.eviction_set = APERTURE;
	assert_int_equal(try_wrap(&w, memory, &wish, NULL, &a), S_OK);
	D3DKMT_HANDLE user = allocate_in(&w.device, 60 * PAGE, CPU, APERTURE);
	set_words(memory, 0x10101010);
	fill_by_gpu(&w, a, 0x62626262);
	client_idle(&w.client);
	gate_close(&w);
	client_reference(&w.context, user, true);
	client_submit(&w.context);
	for (int i = 0; i < 20; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(client_residency(&w.device, user), IN_APERTURE);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	expect_words(memory, 0x62626262);
	gate_open(&w);
	client_idle(&w.client);
	world_stop(&w);
	munmap(memory, BYTES);
}

static void alf_13_destroying_the_device_returns_the_memory(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context context;

	world_start(&w, state, &small);
	char *memory = map_pages(BYTES);

	client_open(&w.client, &other);
	client_context(&other, 0, &context);
	struct softgpu_allocation wish = wish_of(BYTES, EXISTING, VRAM);
	D3DDDI_ALLOCATIONINFO info = {.pSystemMem = memory,
				      .pPrivateDriverData = &wish,
				      .PrivateDriverDataSize = sizeof(wish)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	assert_int_equal(other.cb->pfnAllocateCb(other.handle, &args), S_OK);
	client_fill(&context, info.hAllocation, BYTES, 0x99);
	client_submit(&context);
	client_context_end(&context);
	client_close(&other);
	expect_words(memory, 0x99);
	munmap(memory, BYTES);
	world_stop(&w);
}

static bool fail_all(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	(void)context, (void)args;
	*status = STATUS_UNSUCCESSFUL;
	return true;
}

/* The GPU's copy is lost with the adapter, but the memory is returned to its owner. */
static void alf_13_lock_33_a_removed_adapter_returns_the_memory(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	w.expect_fatal = true;
	char *memory = map_pages(3 * BYTES);
	D3DKMT_HANDLE moved = wrap(&w, memory, EXISTING, VRAM),
		      mapped = wrap(&w, memory + BYTES, EXISTING, APERTURE),
		      unused = wrap(&w, memory + 2 * BYTES, EXISTING, VRAM);

	fill_by_gpu(&w, moved, 1);
	use_now(&w, mapped, true);
	probe.answer_paging = fail_all;
	client_reference(&w.context, unused, false);
	(void)client_try_submit(&w.context);
	client_idle(&w.client);
	assert_int_equal(w.client.fatals, 1);
	assert_int_equal(client_deallocate(&w.device, moved), S_OK);
	assert_int_equal(client_deallocate(&w.device, mapped), S_OK);
	assert_int_equal(client_deallocate(&w.device, unused), S_OK);
	munmap(memory, 3 * BYTES);
	client_forget(&w.client);
	world_stop(&w);
}

static void refuse_open(struct world *w, void *memory)
{
	struct softgpu_allocation wish = wish_of(BYTES, EXISTING, VRAM);
	D3DKMT_HANDLE a;

	probe.open_status = STATUS_NO_MEMORY;
	assert_int_equal(try_wrap(w, memory, &wish, NULL, &a), E_OUTOFMEMORY);
	assert_int_equal(a, 0);
}

static void alf_33_a_failed_creation_leaves_existing_memory_unchanged(void **state)
{
	struct world w;

	world_start(&w, state, &small);
	char *memory = map_pages(BYTES);

	set_words(memory, 0x33);
	refuse_open(&w, memory);
	expect_words(memory, 0x33);
	munmap(memory, BYTES);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(swz_24_existing_memory_gets_no_alternate_address),
		BOTH(alf_11_existing_memory_must_be_whole_mapped_pages),
		BOTH(alf_11_alf_12_user_memory_is_not_accepted_as_kernel_memory_or_vice_versa),
		BOTH(alf_11_alf_13_allocations_over_the_same_memory_share_content),
		BOTH(alf_11_memory_without_the_flag_or_for_a_shared_resource_is_refused),
		BOTH(alf_13_existingsysmem_is_the_backing_store),
		BOTH(alf_13_existingkernelsysmem_is_the_backing_store),
		BOTH(alf_13_pag_13_eviction_copies_back_only_gpu_writes),
		BOTH(alf_13_discard_does_not_rename_existing_memory),
		BOTH(lock_34_a_lock_of_existing_memory_waits_for_the_gpu),
		BOTH(alf_13_deallocating_existing_memory_waits_for_the_gpu),
		BOTH(alf_13_deallocation_does_not_wait_for_eviction_apertures),
		BOTH(alf_13_destroying_the_device_returns_the_memory),
		BOTH(alf_13_lock_33_a_removed_adapter_returns_the_memory),
		BOTH(alf_33_a_failed_creation_leaves_existing_memory_unchanged),
	};

	return cmocka_run_group_tests_name("existing", tests, NULL, NULL);
}
