/* SPDX-License-Identifier: MIT */
#include "sched_world.h"

#include <pthread.h>
#include <string.h>

uint32_t world_sim = VIDMM_HOST_SIM, world_linux = VIDMM_HOST_LINUX;

/* Events come from several threads at once. */
static pthread_mutex_t ears = PTHREAD_MUTEX_INITIALIZER;

static void on_fatal(void *context, const struct vidmm_event *event, const char *text)
{
	struct world *w = context;

	(void)text;
	pthread_mutex_lock(&ears);
	if (!w->fatals++)
		memcpy(w->fatal, event->arg, sizeof(w->fatal));
	pthread_mutex_unlock(&ears);
}

static void settle(void *client)
{
	client_settle(client);
}

void world_start_adapter(struct world *w, void **state, world_setup *setup)
{
	const struct client_options options = {0};

	world_start_with(w, state, setup, &options);
}

void world_start_with(struct world *w, void **state, world_setup *setup,
		      const struct client_options *more)
{
	struct client_options options = *more;

	options.kind = *(uint32_t *)*state;
	options.driver_entry = scripted_driver_entry;
	if (!options.tdr) /* by default the test decides when its GPU completes packets */
		options.tdr = &client_no_tdr;
	memset(w, 0, sizeof(*w));
	w->kind = options.kind;
	w->m = scripted_create();
	w->m->settings.complete_at_once = false;
	if (setup)
		setup(w->m);
	for (const struct scripted_miniport *m = w->m; m->next; m = m->next) /* scripted_link */
		options.physical_adapters =
			options.physical_adapters ? options.physical_adapters + 1 : 2;
	/* Starting maps the paging buffer; only the miniport itself can complete that. */
	client_start(&w->client, &options);
	w->m->owner = pthread_self();
	w->m->settle = settle;
	w->m->settle_context = &w->client;
	assert_int_not_equal(
		vidmm_subscribe(w->client.host, 1ull << VIDMM_EVENT_FATAL, on_fatal, w), 0);
}

void world_start(struct world *w, void **state, world_setup *setup)
{
	world_start_adapter(w, state, setup);
	world_open(w);
}

void world_start_lru(struct world *w, void **state, world_setup *setup)
{
	static const struct vidmm_registry_value lru = {"VidmmEvictionPolicy", VIDMM_EVICTION_LRU};
	const struct client_options options = {.registry = &lru, .registry_count = 1};

	world_start_with(w, state, setup, &options);
	world_open(w);
}

void world_open(struct world *w)
{
	client_open(&w->client, &w->device);
	client_context(&w->device, 0, &w->context);
}

void world_stop_adapter(struct world *w)
{
	world_run(w);
	w->m->settings.complete_at_once = true; /* stopping may page once more */
	client_stop(&w->client);
	if (w->client.findings)
		fail_msg("a finding that the test did not provoke: %s", w->client.finding[0]);
	assert_int_equal(w->fatals, w->expected_fatals);
	assert_int_equal(w->m->faults, w->expected_faults);
	if (!w->fatals) { /* the miniport of a dead adapter gets no Close and Destroy calls */
		assert_int_equal(w->m->live_devices, 0);
		assert_int_equal(w->m->live_contexts, 0);
		assert_int_equal(w->m->live_allocations, 0);
		assert_int_equal(w->m->live_opens, 0);
		assert_int_equal(w->m->live_events, 0);
		assert_int_equal(w->m->live_periodic, 0);
	}
	scripted_destroy(w->m);
}

void world_stop(struct world *w)
{
	world_run(w);
	w->m->settings.complete_at_once = true;
	client_close(&w->device);
	world_stop_adapter(w);
}

void world_expect_finding(struct world *w, const char *rule)
{
	if (!client_found(&w->client, rule))
		fail_msg("no finding %s; the last is: %s", rule,
			 w->client.findings ? w->client.finding[0] : "none");
	assert_int_equal(w->client.findings, 1);
	client_forget(&w->client);
}

D3DKMT_HANDLE world_allocate_as(struct client_device *device,
				const struct scripted_allocation *spec)
{
	struct scripted_allocation private_data = *spec;
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &private_data,
				      .PrivateDriverDataSize = sizeof(private_data)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(device->cb->pfnAllocateCb(device->handle, &args), S_OK);
	return info.hAllocation;
}

D3DKMT_HANDLE world_allocate(struct world *w, uint64_t bytes, uint32_t segment_set)
{
	struct scripted_allocation spec = {.size_bytes = bytes,
					   .flags = WORLD_CPU_VISIBLE,
					   .read_set = segment_set,
					   .write_set = segment_set};

	return world_allocate_as(&w->device, &spec);
}

void world_command(struct client_context *context, const struct scripted_command *command)
{
	client_command(context, command, sizeof(*command));
}

void world_use(struct client_context *context, D3DKMT_HANDLE allocation)
{
	struct scripted_command command = {.op = SCRIPTED_USE,
					   .size_bytes = sizeof(command),
					   .allocation = client_use(context, allocation, false)};

	world_command(context, &command);
}

void world_write(struct client_context *context, D3DKMT_HANDLE allocation, uint64_t offset,
		 uint32_t value)
{
	struct scripted_command command = {.op = SCRIPTED_WRITE,
					   .size_bytes = sizeof(command),
					   .allocation = client_use(context, allocation, true),
					   .offset = offset,
					   .value = value};

	world_command(context, &command);
}

D3DDDICB_RENDER world_render_args(const struct client_context *context)
{
	return (D3DDDICB_RENDER){
		.CommandLength = context->command_bytes,
		.NumAllocations = context->allocations,
		.NumPatchLocations = context->patches,
		.hContext = context->c.hContext,
		.QueuedBufferCount = UINT32_MAX, /* stays so unless the call succeeds */
	};
}

HRESULT world_render(struct client_context *context, D3DDDICB_RENDER *args)
{
	HRESULT result = context->device->cb->pfnRenderCb(context->device->handle, args);

	if (args->pNewCommandBuffer) {
		context->c.pCommandBuffer = args->pNewCommandBuffer;
		context->c.CommandBufferSize = args->NewCommandBufferSize;
		context->c.pAllocationList = args->pNewAllocationList;
		context->c.AllocationListSize = args->NewAllocationListSize;
		context->c.pPatchLocationList = args->pNewPatchLocationList;
		context->c.PatchLocationListSize = args->NewPatchLocationListSize;
	}
	context->command_bytes = context->allocations = context->patches = 0;
	client_settle(context->device->client);
	return result;
}

void world_submit_use(struct client_context *context, D3DKMT_HANDLE allocation)
{
	world_use(context, allocation);
	client_submit(context);
}

void world_submit_write(struct client_context *context, D3DKMT_HANDLE allocation, uint64_t offset,
			uint32_t value)
{
	world_write(context, allocation, offset, value);
	client_submit(context);
}

uint32_t world_word(struct world *w, D3DKMT_HANDLE allocation, uint64_t offset)
{
	const char *bytes = client_lock(&w->device, allocation, 0x1);
	uint32_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	assert_int_equal(client_unlock(&w->device, allocation), S_OK);
	return word;
}

struct idle_waiter {
	struct client *client;
	_Atomic bool idle;
};

static void wait_idle(void *argument)
{
	struct idle_waiter *waiter = argument;

	client_idle(waiter->client);
	atomic_store(&waiter->idle, true);
}

/*
 * With real threads the port's worker may be submitting, so the miniport's settings must not
 * change.
 */
static void run_threads(struct world *w)
{
	struct idle_waiter waiter = {.client = &w->client};
	struct vidmm_thread *thread;

	assert_int_equal(
		vidmm_thread_create(w->client.host, "waits for idle", wait_idle, &waiter, &thread),
		0);
	while (!atomic_load(&waiter.idle)) {
		scripted_complete_all(w->m);
		vidmm_settle(w->client.host);
	}
	vidmm_thread_join(thread);
}

void world_run(struct world *w)
{
	bool at_once = w->m->settings.complete_at_once;

	if (w->kind == VIDMM_HOST_LINUX) {
		run_threads(w);
		return;
	}
	/*
	 * From here on every packet that the port submits completes at once. If waiting for one
	 * does not end, the simulator reports the deadlock.
	 */
	w->m->settings.complete_at_once = true;
	scripted_complete_all(w->m);
	client_idle(&w->client);
	w->m->settings.complete_at_once = at_once;
}

void world_await(struct world *w, enum vidmm_ddi ddi, uint32_t count)
{
	while (scripted_count(w->m, ddi) < count)
		vidmm_settle(w->client.host);
}

static bool is_paging(const struct scripted_call *call)
{
	return call->ddi == VIDMM_DDI_PATCH ? call->in.patch.Flags.Paging
					    : call->in.submit.Flags.Paging;
}

uint32_t world_gpu_word(struct world *w, uint64_t offset)
{
	const struct scripted_call *patch =
		world_nth_of(w, VIDMM_DDI_PATCH, false, world_render_submits(w) - 1);
	const DXGK_ALLOCATIONLIST *a = &patch->allocations[0];
	uint32_t word = 0;

	assert_true(scripted_gpu_access(w->m, a->SegmentId,
					(uint64_t)a->PhysicalAddress.QuadPart + offset, &word,
					sizeof(word), false));
	return word;
}

const struct scripted_call *world_nth_of(const struct world *w, enum vidmm_ddi ddi, bool paging,
					 uint32_t n)
{
	const struct scripted_call *call;

	for (uint32_t i = 0; (call = scripted_at(w->m, i)) != NULL; i++) {
		if (call->ddi == ddi && is_paging(call) == paging && n-- == 0)
			return call;
	}
	return NULL;
}

uint32_t world_render_submits(const struct world *w)
{
	uint32_t count = 0;

	while (world_nth_of(w, VIDMM_DDI_SUBMIT_COMMAND, false, count))
		count++;
	return count;
}

void world_assert_fences(const struct world *w)
{
	uint32_t count = scripted_count(w->m, VIDMM_DDI_PATCH);
	uint32_t last = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t fence = scripted_nth(w->m, VIDMM_DDI_PATCH, i)->in.patch.SubmissionFenceId;

		assert_int_not_equal(fence, 0);
		if (i)
			assert_int_equal(fence, last == UINT32_MAX ? 1 : last + 1);
		last = fence;
	}
}
