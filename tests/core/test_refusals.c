/* SPDX-License-Identifier: MIT */
/*
 * A walk over failure points: a scenario of a client's calls runs again and again, and each time
 * the next request of one kind (memory, a mapping, a descriptor, a thread) is refused once, until
 * a run makes no more of them. A refused request costs one call at most: the call fails as for
 * want of memory, changes nothing, and succeeds when it is repeated. No content is wrong, no
 * finding is made, nothing is left at the end, and the other process notices nothing.
 */
#include <support/client.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { OWN = 3, MORE = 12, BYTES = 16384 };
enum { OTHER_WORD = 7000, OWN_WORD = 100, LOCKED_WORD = 900 };
enum { CPU_VISIBLE = SOFTGPU_ALLOCATION_CPU_VISIBLE };
/* In models. */
enum { ONE = 1, TWO = 2, BOTH = 3 };
#define DISCARD 0x80u

struct walk {
	uint32_t kind, model; /* enum vidmm_host_kind, enum softgpu_model */
	struct client client;
	struct client_device own, other;
	D3DKMT_HANDLE other_allocation;
	bool other_written;
	D3DKMT_HANDLE allocation[OWN], more[MORE];
	uint32_t *locked;
	struct client_context context;
	D3DKMT_HANDLE fence;
	const uint64_t *fence_word;
	uint64_t value; /* that the fence was last signaled with */
	int event;
	D3DDDICB_CREATEPAGINGQUEUE queue;
};

typedef HRESULT step_fn(struct walk *w);

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct client *client = context;
	uint32_t at = __atomic_fetch_add(&client->findings, 1, __ATOMIC_RELAXED) % CLIENT_FINDINGS;

	(void)event;
	snprintf(client->finding[at], sizeof(client->finding[0]), "%s", text ? text : "");
}

/* ---- beginning ---- */

static HRESULT create_host(struct walk *w)
{
	const struct vidmm_host_options options = {
		.struct_size = sizeof(options), .kind = w->kind, .seed = 5};

	w->client.kind = w->kind;
	w->client.owner = pthread_self();
	return vidmm_host_create(&options, &w->client.host);
}

static HRESULT subscribe(struct walk *w)
{
	return vidmm_subscribe(w->client.host,
			       1ull << VIDMM_EVENT_FINDING | 1ull << VIDMM_EVENT_FATAL, on_event,
			       &w->client)
		       ? S_OK
		       : E_OUTOFMEMORY;
}

static HRESULT start_adapter(struct walk *w)
{
	static const uint64_t vram_bytes = 262144;
	const struct vidmm_registry_value registry[] = {
		{"Model", w->model}, {"ApertureSize", 1u << 20}, {"DmaBufferSize", 4096}};
	const struct vidmm_adapter_options options = {
		.struct_size = sizeof(options),
		.driver_entry = softgpu_driver_entry,
		.bar_sizes = &vram_bytes,
		.bar_count = 1,
		.registry = registry,
		.registry_count = 3,
		.tdr = w->kind == VIDMM_HOST_LINUX ? &client_no_tdr : NULL};

	return vidmm_adapter_start(w->client.host, &options, &w->client.adapter);
}

static HRESULT open_process(struct walk *w, struct client_device *device)
{
	device->client = &w->client;
	return vidmm_process_open(w->client.host, "test", &device->process);
}

static HRESULT open_device(struct client_device *device)
{
	vidmm_status status =
		vidmm_device_create(device->process, device->client->adapter, &device->device);

	if (status < 0)
		return status;
	device->cb = vidmm_device_callbacks(device->device);
	device->handle = vidmm_device_handle(device->device);
	return S_OK;
}

static HRESULT allocate(struct walk *w, struct client_device *device, uint32_t count,
			D3DKMT_HANDLE *allocation)
{
	struct softgpu_allocation spec[MORE];
	D3DDDI_ALLOCATIONINFO info[MORE];
	D3DDDICB_ALLOCATE args = {.NumAllocations = count, .pAllocationInfo = info};
	bool two = w->model == SOFTGPU_MODEL_WDDM2;

	memset(info, 0, sizeof(info));
	for (uint32_t i = 0; i < count; i++) {
		spec[i] = (struct softgpu_allocation){
			.version = SOFTGPU_ALLOCATION_VERSION,
			.flags = CPU_VISIBLE | (two ? SOFTGPU_ALLOCATION_ACCESSED_PHYSICALLY : 0),
			.size_bytes = BYTES,
			.renaming_limit = two ? 0 : 3};
		info[i].pPrivateDriverData = &spec[i];
		info[i].PrivateDriverDataSize = sizeof(spec[i]);
	}
	HRESULT result = device->cb->pfnAllocateCb(device->handle, &args);
	for (uint32_t i = 0; i < count; i++) {
		allocation[i] = info[i].hAllocation;
		assert_int_equal(allocation[i] != 0, result == S_OK);
	}
	return result;
}

static HRESULT lock(const struct walk *w, struct client_device *device, D3DKMT_HANDLE *allocation,
		    uint32_t flags, uint32_t **words)
{
	D3DDDICB_LOCK args = {.hAllocation = *allocation, .Flags.Value = flags};
	D3DDDICB_LOCK2 args2 = {.hAllocation = *allocation};
	bool two = w->model == SOFTGPU_MODEL_WDDM2;
	HRESULT result = two ? device->cb->pfnLock2Cb(device->handle, &args2)
			     : device->cb->pfnLockCb(device->handle, &args);

	*words = two ? args2.pData : args.pData;
	if (!two)
		*allocation = args.hAllocation;
	return result;
}

static HRESULT unlock(const struct walk *w, struct client_device *device, D3DKMT_HANDLE allocation)
{
	const D3DDDICB_UNLOCK args = {.NumAllocations = 1, .phAllocations = &allocation};
	const D3DDDICB_UNLOCK2 args2 = {.hAllocation = allocation};

	return w->model == SOFTGPU_MODEL_WDDM2 ? device->cb->pfnUnlock2Cb(device->handle, &args2)
					       : device->cb->pfnUnlockCb(device->handle, &args);
}

static HRESULT write_words(const struct walk *w, struct client_device *device,
			   D3DKMT_HANDLE *allocation, uint32_t flags, uint32_t first)
{
	uint32_t *words;
	HRESULT result = lock(w, device, allocation, flags, &words);

	if (result != S_OK)
		return result;
	for (uint32_t i = 0; i < BYTES / 4; i++)
		words[i] = first + i;
	return unlock(w, device, *allocation);
}

/* step: 1 for rising words, 0 for equal ones. */
static HRESULT compare_words(const struct walk *w, struct client_device *device,
			     D3DKMT_HANDLE allocation, uint32_t first, uint32_t step)
{
	uint32_t *words;
	HRESULT result = lock(w, device, &allocation, 0, &words);

	if (result != S_OK)
		return result;
	for (uint32_t i = 0; i < BYTES / 4; i++)
		if (words[i] != first + step * i)
			fail_msg("word %u of 0x%08x is %u, expected %u", i, allocation, words[i],
				 first + step * i);
	return unlock(w, device, allocation);
}

static HRESULT other_process(struct walk *w)
{
	return open_process(w, &w->other);
}

static HRESULT other_device(struct walk *w)
{
	return open_device(&w->other);
}

static HRESULT other_allocation(struct walk *w)
{
	return allocate(w, &w->other, 1, &w->other_allocation);
}

static HRESULT other_content(struct walk *w)
{
	HRESULT result = write_words(w, &w->other, &w->other_allocation, 0, OTHER_WORD);

	w->other_written = result == S_OK;
	return result;
}

static HRESULT own_process(struct walk *w)
{
	return open_process(w, &w->own);
}

static HRESULT own_device(struct walk *w)
{
	return open_device(&w->own);
}

static HRESULT own_context(struct walk *w)
{
	memset(&w->context, 0, sizeof(w->context));
	w->context.device = &w->own;
	return w->own.cb->pfnCreateContextCb(w->own.handle, &w->context.c);
}

static HRESULT own_allocations(struct walk *w)
{
	return allocate(w, &w->own, OWN, w->allocation);
}

static HRESULT more_allocations(struct walk *w)
{
	return allocate(w, &w->own, MORE, w->more);
}

/* ---- work ---- */

static HRESULT own_content(struct walk *w)
{
	return write_words(w, &w->own, &w->allocation[0], 0, OWN_WORD);
}

static HRESULT rename_by_discard(struct walk *w)
{
	return write_words(w, &w->own, &w->allocation[2], DISCARD, OWN_WORD);
}

static HRESULT submit(struct client_context *c)
{
	D3DDDICB_RENDER args = {.CommandLength = c->command_bytes,
				.NumAllocations = c->allocations,
				.hContext = c->c.hContext};
	HRESULT result = c->device->cb->pfnRenderCb(c->device->handle, &args);

	if (args.pNewCommandBuffer) {
		c->c.pCommandBuffer = args.pNewCommandBuffer;
		c->c.CommandBufferSize = args.NewCommandBufferSize;
		c->c.pAllocationList = args.pNewAllocationList;
		c->c.AllocationListSize = args.NewAllocationListSize;
		c->c.pPatchLocationList = args.pNewPatchLocationList;
		c->c.PatchLocationListSize = args.NewPatchLocationListSize;
	}
	c->command_bytes = c->allocations = c->patches = 0;
	return result;
}

static HRESULT copy(struct walk *w)
{
	client_copy(&w->context, w->allocation[0], w->allocation[1], BYTES);
	return submit(&w->context);
}

/* The GPU then uses the instance that a lock with Discard replaces. */
static HRESULT copy_to_renamed(struct walk *w)
{
	client_copy(&w->context, w->allocation[0], w->allocation[2], BYTES);
	return submit(&w->context);
}

/* Together with the others these do not fit into video memory. */
static HRESULT fill(struct walk *w, uint32_t first)
{
	HRESULT result = S_OK;

	for (uint32_t i = first; i < first + MORE / 2 && result == S_OK; i++) {
		client_fill(&w->context, w->more[i], BYTES, i);
		result = submit(&w->context);
	}
	return result;
}

static HRESULT fill_some(struct walk *w)
{
	return fill(w, 0);
}

static HRESULT fill_others(struct walk *w)
{
	return fill(w, MORE / 2);
}

static HRESULT idle(struct walk *w)
{
	vidmm_settle(w->client.host);
	vidmm_adapter_wait_idle(w->client.adapter);
	vidmm_settle(w->client.host);
	return S_OK;
}

static HRESULT copy_again(struct walk *w)
{
	return copy(w);
}

static HRESULT lock_target(struct walk *w)
{
	return lock(w, &w->own, &w->allocation[1], 0, &w->locked);
}

/* What the GPU uses while the CPU has it locked moves to where both can. (LKR-02) */
static HRESULT copy_to_locked(struct walk *w)
{
	return copy(w);
}

/* The pointer of the lock shows the content of the GPU, and the GPU gets what is written there. */
static HRESULT unlock_target(struct walk *w)
{
	for (uint32_t i = 0; i < BYTES / 4; i++) {
		if (w->locked[i] != OWN_WORD + i && w->locked[i] != LOCKED_WORD + i)
			fail_msg("the lock shows %u as word %u", w->locked[i], i);
		w->locked[i] = LOCKED_WORD + i;
	}
	return unlock(w, &w->own, w->allocation[1]);
}

static HRESULT check_target(struct walk *w)
{
	return compare_words(w, &w->own, w->allocation[1], LOCKED_WORD, 1);
}

/* ---- residency ---- */

static HRESULT paging_queue(struct walk *w)
{
	return w->own.cb->pfnCreatePagingQueueCb(w->own.handle, &w->queue);
}

static HRESULT make_resident(struct walk *w, const D3DKMT_HANDLE *list, uint32_t count)
{
	D3DDDI_MAKERESIDENT args = {.hPagingQueue = w->queue.hPagingQueue,
				    .NumAllocations = count,
				    .AllocationList = list};
	HRESULT result = w->own.cb->pfnMakeResidentCb(w->own.handle, &args);

	if (result != S_OK && result != E_PENDING)
		assert_int_equal(args.NumAllocations, 0);
	return result == E_PENDING ? S_OK : result;
}

static HRESULT evict(struct walk *w, const D3DKMT_HANDLE *list, uint32_t count)
{
	D3DDDICB_EVICT args = {.NumAllocations = count, .AllocationList = list};

	return w->own.cb->pfnEvictCb(w->own.handle, &args);
}

static HRESULT list_own(struct walk *w)
{
	return make_resident(w, w->allocation, 2);
}

static HRESULT unlist_own(struct walk *w)
{
	return evict(w, w->allocation, 2);
}

static HRESULT list_some(struct walk *w)
{
	return make_resident(w, w->more, MORE / 2);
}

static HRESULT unlist_some(struct walk *w)
{
	return evict(w, w->more, MORE / 2);
}

static HRESULT list_others(struct walk *w)
{
	return make_resident(w, w->more + MORE / 2, MORE / 2);
}

static HRESULT unlist_others(struct walk *w)
{
	return evict(w, w->more + MORE / 2, MORE / 2);
}

static HRESULT offer(struct walk *w)
{
	const D3DDDICB_OFFERALLOCATIONS args = {.HandleList = &w->allocation[2],
						.NumAllocations = 1,
						.Priority = D3DDDI_OFFER_PRIORITY_LOW};

	return w->own.cb->pfnOfferAllocationsCb(w->own.handle, &args);
}

static HRESULT reclaim(struct walk *w)
{
	BOOL discarded = 0;
	const D3DDDICB_RECLAIMALLOCATIONS args = {
		.HandleList = &w->allocation[2], .NumAllocations = 1, .pDiscarded = &discarded};
	D3DDDICB_RECLAIMALLOCATIONS2 args2 = {.PagingQueue = w->queue.hPagingQueue,
					      .HandleList = &w->allocation[2],
					      .NumAllocations = 1,
					      .pDiscarded = &discarded};
	HRESULT result = w->model == SOFTGPU_MODEL_WDDM2
				 ? w->own.cb->pfnReclaimAllocations2Cb(w->own.handle, &args2)
				 : w->own.cb->pfnReclaimAllocationsCb(w->own.handle, &args);

	return result == E_PENDING ? S_OK : result;
}

static HRESULT prioritize(struct walk *w)
{
	static const UINT priority[OWN] = {0x28000000, 0x78000000, 0xA0000000};
	const D3DDDICB_SETPRIORITY args = {
		.HandleList = w->allocation, .NumAllocations = OWN, .pPriorities = priority};

	return w->own.cb->pfnSetPriorityCb(w->own.handle, &args);
}

static HRESULT query(struct walk *w)
{
	D3DDDI_RESIDENCYSTATUS status[OWN];
	const D3DDDICB_QUERYRESIDENCY args = {
		.HandleList = w->allocation, .NumAllocations = OWN, .pResidencyStatus = status};

	return w->own.cb->pfnQueryResidencyCb(w->own.handle, &args);
}

/* ---- fences ---- */

static HRESULT create_fence(struct walk *w)
{
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 args = {.Info.Type = D3DDDI_FENCE};

	if (w->model == SOFTGPU_MODEL_WDDM2)
		args.Info.Type = D3DDDI_MONITORED_FENCE;
	HRESULT result = w->own.cb->pfnCreateSynchronizationObject2Cb(w->own.handle, &args);
	w->fence = args.hSyncObject;
	w->fence_word = args.Info.Type == D3DDDI_MONITORED_FENCE
				? args.Info.MonitoredFence.FenceValueCPUVirtualAddress
				: NULL;
	return result;
}

static HRESULT signal_by_gpu(struct walk *w)
{
	const UINT64 value = w->value + 1;
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT2 args = {.hContext = w->context.c.hContext,
							    .ObjectCount = 1,
							    .ObjectHandleArray = {w->fence},
							    .Fence.FenceValue = value};
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU args2 = {
		.hContext = w->context.c.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = &w->fence,
		.MonitoredFenceValueArray = &value};
	HRESULT result =
		w->model == SOFTGPU_MODEL_WDDM2
			? w->own.cb->pfnSignalSynchronizationObjectFromGpuCb(w->own.handle, &args2)
			: w->own.cb->pfnSignalSynchronizationObject2Cb(w->own.handle, &args);

	w->value += result == S_OK;
	return result;
}

static HRESULT wait_by_gpu(struct walk *w)
{
	const UINT64 value = w->value;
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT2 args = {.hContext = w->context.c.hContext,
							     .ObjectCount = 1,
							     .ObjectHandleArray = {w->fence},
							     .Fence.FenceValue = value};
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU args2 = {
		.hContext = w->context.c.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = &w->fence,
		.MonitoredFenceValueArray = &value};

	return w->model == SOFTGPU_MODEL_WDDM2
		       ? w->own.cb->pfnWaitForSynchronizationObjectFromGpuCb(w->own.handle, &args2)
		       : w->own.cb->pfnWaitForSynchronizationObject2Cb(w->own.handle, &args);
}

/* The value comes later: what is submitted next stays in the queue. (MFN-30) */
static HRESULT hold_context(struct walk *w)
{
	const UINT64 value = w->value + 1;
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU args = {
		.hContext = w->context.c.hContext,
		.ObjectCount = 1,
		.ObjectHandleArray = &w->fence,
		.MonitoredFenceValueArray = &value};

	return w->own.cb->pfnWaitForSynchronizationObjectFromGpuCb(w->own.handle, &args);
}

/* More packets than the context has free DMA buffers. */
static HRESULT copy_behind_wait(struct walk *w)
{
	HRESULT result = S_OK;

	for (uint32_t i = 0; i < 8 && result == S_OK; i++)
		result = copy(w);
	return result;
}

/* The value comes later; the client waits by an event. */
static HRESULT wait_by_event(struct walk *w)
{
	const UINT64 value = w->value + 1;
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {
		.ObjectCount = 1,
		.ObjectHandleArray = &w->fence,
		.FenceValueArray = &value,
		.hAsyncEvent = (HANDLE)(intptr_t)w->event};

	return w->own.cb->pfnWaitForSynchronizationObjectFromCpuCb(w->own.handle, &args);
}

static HRESULT signal_by_cpu(struct walk *w)
{
	const UINT64 value = w->value + 1;
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {
		.ObjectCount = 1, .ObjectHandleArray = &w->fence, .FenceValueArray = &value};
	HRESULT result = w->own.cb->pfnSignalSynchronizationObjectFromCpuCb(w->own.handle, &args);

	w->value += result == S_OK;
	return result;
}

/* ---- end ---- */

static HRESULT check_content(struct walk *w)
{
	HRESULT result = compare_words(w, &w->own, w->allocation[0], OWN_WORD, 1);

	if (result == S_OK)
		result = compare_words(w, &w->own, w->allocation[1], OWN_WORD, 1);
	for (uint32_t i = 0; i < MORE && result == S_OK; i++)
		result = compare_words(w, &w->own, w->more[i], i, 0);
	return result;
}

static HRESULT check_fence(struct walk *w)
{
	uint64_t sets = 0;

	assert_true(*w->fence_word == w->value);
	assert_int_equal(read(w->event, &sets, sizeof(sets)), sizeof(sets));
	return S_OK;
}

static HRESULT destroy_fence(struct walk *w)
{
	const D3DDDICB_DESTROYSYNCHRONIZATIONOBJECT args = {.hSyncObject = w->fence};

	return w->own.cb->pfnDestroySynchronizationObjectCb(w->own.handle, &args);
}

static HRESULT deallocate(struct walk *w)
{
	const D3DDDICB_DEALLOCATE args = {.NumAllocations = MORE, .HandleList = w->more};

	return w->own.cb->pfnDeallocateCb(w->own.handle, &args);
}

static HRESULT destroy_context(struct walk *w)
{
	const D3DDDICB_DESTROYCONTEXT args = {.hContext = w->context.c.hContext};

	return w->own.cb->pfnDestroyContextCb(w->own.handle, &args);
}

static HRESULT end_own(struct walk *w)
{
	vidmm_device_destroy(w->own.device);
	vidmm_process_close(w->own.process);
	return S_OK;
}

static HRESULT end_other(struct walk *w)
{
	w->other_written = false;
	vidmm_process_close(w->other.process);
	return S_OK;
}

static HRESULT stop_adapter(struct walk *w)
{
	vidmm_adapter_stop(w->client.adapter);
	w->client.adapter = NULL;
	return S_OK;
}

/* The host aborts if anything of it is left. */
static HRESULT destroy_host(struct walk *w)
{
	vidmm_host_destroy(w->client.host);
	w->client.host = NULL;
	return S_OK;
}

/* ---- the walk ---- */

#define STEP(name, models)          \
	{                           \
#name, name, models \
	}
static const struct {
	const char *name;
	step_fn *run;
	uint32_t models;
} steps[] = {
	STEP(create_host, BOTH),    STEP(subscribe, BOTH),
	STEP(start_adapter, BOTH),  STEP(other_process, BOTH),
	STEP(other_device, BOTH),   STEP(other_allocation, BOTH),
	STEP(other_content, BOTH),  STEP(own_process, BOTH),
	STEP(own_device, BOTH),     STEP(own_context, BOTH),
	STEP(paging_queue, TWO),    STEP(own_allocations, BOTH),
	STEP(own_content, BOTH),    STEP(list_own, TWO),
	STEP(copy, BOTH),           STEP(lock_target, BOTH),
	STEP(copy_to_locked, BOTH), STEP(idle, BOTH),
	STEP(unlock_target, BOTH),  STEP(check_target, BOTH),
	STEP(copy_to_renamed, ONE), STEP(rename_by_discard, ONE),
	STEP(copy_to_renamed, ONE), STEP(more_allocations, BOTH),
	STEP(list_some, TWO),       STEP(fill_some, BOTH),
	STEP(idle, BOTH),           STEP(rename_by_discard, ONE),
	STEP(unlist_some, TWO),     STEP(list_others, TWO),
	STEP(fill_others, BOTH),    STEP(create_fence, BOTH),
	STEP(signal_by_gpu, BOTH),  STEP(wait_by_gpu, BOTH),
	STEP(copy_again, BOTH),     STEP(idle, BOTH),
	STEP(offer, BOTH),          STEP(reclaim, BOTH),
	STEP(prioritize, BOTH),     STEP(query, BOTH),
	STEP(unlist_others, TWO),   STEP(wait_by_event, TWO),
	STEP(hold_context, TWO),    STEP(copy_behind_wait, TWO),
	STEP(signal_by_cpu, TWO),   STEP(idle, TWO),
	STEP(unlist_own, TWO),      STEP(check_fence, TWO),
	STEP(check_content, BOTH),  STEP(destroy_fence, BOTH),
	STEP(deallocate, BOTH),     STEP(destroy_context, BOTH),
	STEP(end_own, BOTH),        STEP(end_other, BOTH),
	STEP(stop_adapter, BOTH),   STEP(destroy_host, BOTH),
};

static bool is_refusal(HRESULT result)
{
	/* A lock with Discard that gets no new instance may be repeated later. */
	return result == E_OUTOFMEMORY || result == D3DERR_WASSTILLDRAWING ||
	       result == (HRESULT)STATUS_NO_MEMORY ||
	       result == (HRESULT)STATUS_INSUFFICIENT_RESOURCES;
}

static void expect_unharmed(struct walk *w, const char *step)
{
	if (w->client.findings)
		fail_msg("finding in %s: %s", step, w->client.finding[0]);
	if (w->client.adapter)
		vidmm_adapter_check(w->client.adapter);
	if (w->other_written)
		assert_int_equal(compare_words(w, &w->other, w->other_allocation, OTHER_WORD, 1),
				 S_OK);
}

/* Returns whether the n-th request of the kind was made, and so refused. */
static bool run(uint32_t kind, uint32_t model, uint32_t failure, uint32_t n)
{
	struct walk w = {.kind = kind, .model = model};
	bool refused = false;

	w.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(w.event >= 0);
	(void)vidmm_fail_nth(failure, n);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (!(steps[i].models & (model == SOFTGPU_MODEL_WDDM2 ? TWO : ONE)))
			continue;
		HRESULT result = steps[i].run(&w);
		uint32_t left = refused ? 0 : vidmm_fail_nth(failure, 0);

		if (result != S_OK && (refused || left || !is_refusal(result)))
			fail_msg("%s returned 0x%08" PRIx32 ", %s request %u of kind %u",
				 steps[i].name, (uint32_t)result, left ? "before" : "after", n,
				 failure);
		if (!refused && !left) {
			refused = true;
			expect_unharmed(&w, steps[i].name);
			if (result != S_OK)
				result = steps[i].run(&w);
			if (result != S_OK)
				fail_msg("%s returned 0x%08" PRIx32
					 " when it was repeated after request %u of kind %u",
					 steps[i].name, (uint32_t)result, n, failure);
		} else if (!refused) {
			(void)vidmm_fail_nth(failure, left);
		}
	}
	(void)vidmm_fail_nth(failure, 0);
	close(w.event);
	return refused;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED
#endif
#endif
/* A run costs many times as much under a sanitizer. The other builds refuse every allocation. */
#ifdef IS_SANITIZED
enum { ALLOCATIONS_BETWEEN = 3 };
#else
enum { ALLOCATIONS_BETWEEN = 1 };
#endif

static void walk(void **state, uint32_t failure, uint32_t least)
{
	uint32_t kind = *(uint32_t *)*state;

	for (uint32_t model = SOFTGPU_MODEL_WDDM1; model <= SOFTGPU_MODEL_WDDM2; model++) {
		uint32_t n = 1;

		while (run(kind, model, failure, n))
			n += failure == VIDMM_FAIL_ALLOCATION ? ALLOCATIONS_BETWEEN : 1;
		print_message("# kind %u, model %u: %u requests\n", failure, model, n - 1);
		assert_true(n > least);
	}
}

static void q_480_one_refused_allocation_costs_one_call(void **state)
{
	walk(state, VIDMM_FAIL_ALLOCATION, 50);
}

static void q_480_one_refused_mapping_costs_one_call(void **state)
{
	walk(state, VIDMM_FAIL_MAPPING, 5);
}

static void q_481_a_mapping_that_stays_costs_addresses_only(void **state)
{
	walk(state, VIDMM_FAIL_UNMAPPING, 5);
}

static void q_480_one_refused_descriptor_costs_one_call(void **state)
{
	walk(state, VIDMM_FAIL_DESCRIPTOR, 2);
}

static void q_480_one_refused_thread_costs_one_call(void **state)
{
	walk(state, VIDMM_FAIL_THREAD, 2);
}

static uint32_t sim = VIDMM_HOST_SIM, linux_host = VIDMM_HOST_LINUX;
#define ON(test, kind)                                     \
	{                                                  \
#test "_" #kind, test, NULL, NULL, &(kind) \
	}
#define ON_BOTH(test) ON(test, sim), ON(test, linux_host)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(q_480_one_refused_allocation_costs_one_call),
		ON_BOTH(q_480_one_refused_mapping_costs_one_call),
		ON_BOTH(q_481_a_mapping_that_stays_costs_addresses_only),
		ON_BOTH(q_480_one_refused_descriptor_costs_one_call),
		ON_BOTH(q_480_one_refused_thread_costs_one_call),
	};

	return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
