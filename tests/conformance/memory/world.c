/* SPDX-License-Identifier: MIT */
#include "world.h"

uint32_t on_sim = VIDMM_HOST_SIM, on_linux = VIDMM_HOST_LINUX;

int world_prepare(void **state)
{
	(void)state;
	probe_reset();
	return 0;
}

static void make_gate(struct world *w)
{
	w->gate = allocate_in(&w->device, PAGE, CPU, APERTURE);
	w->gate_word = client_lock(&w->device, w->gate, 0);
	use_now(w, w->gate, false); /* resident, and the context has its DMA buffer */
}

void world_start(struct world *w, void **state, const struct client_options *options)
{
	struct client_options o = options ? *options : (struct client_options){0};

	o.kind = *(uint32_t *)*state;
	memset(w, 0, sizeof(*w));
	w->kind = o.kind;
	client_start(&w->client, &o);
	client_open(&w->client, &w->device);
	client_context(&w->device, 0, &w->context);
	make_gate(w);
	w->system_bytes = world_statistics(w).system_bytes;
	probe_forget();
}

void world_stop(struct world *w)
{
	gate_open(w);
	client_context_end(&w->context);
	client_close(&w->device);
	assert_int_equal(world_statistics(w).allocations, 0);
	assert_int_equal(world_statistics(w).instances, 0);
	client_stop(&w->client);
	if (w->client.findings)
		fail_msg("%u findings, first: %s", w->client.findings, w->client.finding[0]);
	assert_int_equal(w->client.fatals, w->expect_fatal);
}

void gate_close(struct world *w)
{
	struct softgpu_sync wait = {
		.command = {SOFTGPU_WAIT, 0, sizeof(wait)},
		.operand = {.allocation = client_use(&w->context, w->gate, false)},
		.value = ++w->gate_value,
	};

	client_command(&w->context, &wait, sizeof(wait));
}

void gate_open(struct world *w)
{
	atomic_store(w->gate_word, w->gate_value);
}

struct softgpu_allocation wish_of(uint64_t bytes, uint32_t flags, uint32_t segment_set)
{
	return (struct softgpu_allocation){.version = SOFTGPU_ALLOCATION_VERSION,
					   .flags = flags,
					   .size_bytes = bytes,
					   .segment_set = segment_set};
}

D3DKMT_HANDLE allocate_wish(struct client_device *device, const struct softgpu_allocation *wish)
{
	D3DKMT_HANDLE allocation;

	assert_int_equal(client_try_allocate(device, wish, NULL, &allocation, NULL), S_OK);
	assert_int_not_equal(allocation, 0);
	return allocation;
}

D3DKMT_HANDLE allocate_in(struct client_device *device, uint64_t bytes, uint32_t flags,
			  uint32_t segment_set)
{
	struct softgpu_allocation wish = wish_of(bytes, flags, segment_set);

	return allocate_wish(device, &wish);
}

void allocate_all(struct world *w, D3DKMT_HANDLE *a, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		a[i] = allocate_in(&w->device, MIB, CPU, VRAM);
}

uint32_t in_vram(struct world *w, const D3DKMT_HANDLE *a, uint32_t count)
{
	uint32_t mask = 0;

	for (uint32_t i = 0; i < count; i++)
		mask |= (uint32_t)(client_residency(&w->device, a[i]) == IN_VRAM) << i;
	return mask;
}

void set_priority(struct world *w, D3DKMT_HANDLE allocation, UINT priority)
{
	D3DDDICB_SETPRIORITY args = {
		.NumAllocations = 1, .HandleList = &allocation, .pPriorities = &priority};

	assert_int_equal(w->device.cb->pfnSetPriorityCb(w->device.handle, &args), S_OK);
}

void use_now(struct world *w, D3DKMT_HANDLE allocation, bool write)
{
	client_reference(&w->context, allocation, write);
	client_submit(&w->context);
	client_idle(&w->client);
}

void evict_by_pressure(struct world *w, D3DKMT_HANDLE allocation)
{
	uint64_t vram = world_statistics(w).segment[0].size_bytes;
	D3DKMT_HANDLE all = allocate_in(&w->device, vram, 0, VRAM);

	use_now(w, all, false);
	assert_int_equal(client_residency(&w->device, allocation), EVICTED);
	assert_int_equal(client_deallocate(&w->device, all), S_OK);
}

void flag_swizzled(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	(void)context;
	(void)index;
	info->Flags.Swizzled = 1;
}

uint64_t keep_window(DXGK_QUERYSEGMENTOUT3 *out, uint64_t bytes)
{
	out->pSegmentDescriptor[0].Size -= bytes;
	out->pSegmentDescriptor[0].CommitLimit -= bytes;
	return (uint64_t)out->pSegmentDescriptor[0].CpuTranslatedAddress.QuadPart;
}

struct vidmm_adapter_statistics world_statistics(const struct world *w)
{
	struct vidmm_adapter_statistics s = {.struct_size = sizeof(s)};

	vidmm_adapter_statistics(w->client.adapter, &s);
	return s;
}

void expect_lock_refused(struct world *w, D3DKMT_HANDLE allocation, uint32_t flags, HRESULT result,
			 const char *rule)
{
	D3DKMT_HANDLE handle = allocation;
	void *data = &handle;

	client_forget(&w->client);
	assert_int_equal(client_try_lock(&w->device, &handle, flags, &data), result);
	assert_int_equal(handle, allocation);
	assert_null(data);
	if (!rule)
		assert_int_equal(w->client.findings, 0);
	else if (!client_found(&w->client, rule) || w->client.findings != 1)
		fail_msg("flags 0x%x: expected one finding of %s, got %u, first: %s", flags, rule,
			 w->client.findings, w->client.finding[0]);
	client_forget(&w->client);
}

void expect_lock_declined(struct world *w, D3DKMT_HANDLE allocation, uint32_t flags)
{
	uint64_t events = client_events(&w->client, VIDMM_EVENT_WAIT);

	expect_lock_refused(w, allocation, flags | DONOT_WAIT, D3DERR_WASSTILLDRAWING, NULL);
	assert_int_equal(client_events(&w->client, VIDMM_EVENT_WAIT), events + 1);
}

HRESULT lock_pages(struct client_device *device, D3DKMT_HANDLE *allocation, uint32_t flags,
		   const UINT *pages, UINT count, void **data)
{
	D3DDDICB_LOCK args = {.hAllocation = *allocation,
			      .NumPages = count,
			      .pPages = pages,
			      .Flags.Value = flags};
	HRESULT result = device->cb->pfnLockCb(device->handle, &args);

	*allocation = args.hAllocation;
	*data = args.pData;
	return result;
}

HRESULT unlock_many(struct client_device *device, const D3DKMT_HANDLE *handles, UINT count)
{
	D3DDDICB_UNLOCK args = {.NumAllocations = count, .phAllocations = handles};

	return device->cb->pfnUnlockCb(device->handle, &args);
}

static void helper_main(void *argument)
{
	struct helper *h = argument;

	atomic_store(&h->state, 1);
	h->result = client_try_lock(&h->world->device, &h->allocation, h->flags, &h->data);
	h->gate_was_open = atomic_load(h->world->gate_word) == h->world->gate_value;
	atomic_store(&h->state, 2);
}

void lock_on_thread(struct helper *h, struct world *w, D3DKMT_HANDLE allocation, uint32_t flags)
{
	memset(h, 0, sizeof(*h));
	h->world = w;
	h->allocation = allocation;
	h->flags = flags;
	assert_int_equal(vidmm_thread_create(w->client.host, "locker", helper_main, h, &h->thread),
			 0);
	while (!atomic_load(&h->state))
		vidmm_settle(w->client.host);
	/* On the simulator the thread is now blocked; on real threads, very likely. */
	for (uint32_t i = 0; i < 100; i++)
		vidmm_settle(w->client.host);
}

void helper_join(struct helper *h)
{
	vidmm_thread_join(h->thread);
	h->thread = NULL;
}

D3DKMT_HANDLE lock_all_system_memory(struct world *w, uint64_t bytes)
{
	D3DKMT_HANDLE last = 0, a = 0;
	HRESULT result;
	void *data;

	do {
		last = a;
		a = allocate_in(&w->device, bytes, CPU, VRAM);
		result = client_try_lock(&w->device, &a, 0, &data);
	} while (result == S_OK);
	assert_int_equal(result, E_OUTOFMEMORY);
	return last;
}
