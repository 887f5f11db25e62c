/* SPDX-License-Identifier: MIT */
/*
 * An adapter's life cycle as the miniport sees it (PNP-01 to PNP-03), and the state after a failure
 * in the middle.
 */
#include "sched_world.h"

#include <pthread.h>
#include <string.h>

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

/* ---- starting ---- */

/* A host, and an adapter on a miniport that may fail to start. */
struct attempt {
	struct scripted_miniport *m;
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	uint32_t findings, fatals;
};

/* Events come from several threads at once. */
static pthread_mutex_t ears = PTHREAD_MUTEX_INITIALIZER;

static void count_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct attempt *a = context;

	(void)text;
	pthread_mutex_lock(&ears);
	if (event->type == VIDMM_EVENT_FATAL)
		a->fatals++;
	else
		a->findings++;
	pthread_mutex_unlock(&ears);
}

static vidmm_status try_start(struct attempt *a, void **state)
{
	const struct vidmm_host_options host = {.struct_size = sizeof(host),
						.kind = *(uint32_t *)*state};
	const uint64_t bar = SCRIPTED_BAR_BYTES;
	struct vidmm_adapter_options options = {.struct_size = sizeof(options),
						.bar_sizes = &bar,
						.bar_count = 1,
						.initialization_data = scripted_table(a->m),
						.tdr = &client_no_tdr};

	assert_int_equal(vidmm_host_create(&host, &a->host), 0);
	assert_int_not_equal(
		vidmm_subscribe(a->host, 1ull << VIDMM_EVENT_FINDING | 1ull << VIDMM_EVENT_FATAL,
				count_event, a),
		0);
	return vidmm_adapter_start(a->host, &options, &a->adapter);
}

static void end_attempt(struct attempt *a)
{
	vidmm_host_destroy(a->host);
	assert_int_equal(a->m->live_devices, 0);
	assert_int_equal(a->m->live_contexts, 0);
	scripted_destroy(a->m);
}

static void pnp_01_life_cycle_ddis_come_in_the_documented_order(void **state)
{
	struct attempt a = {.m = scripted_create()};

	assert_int_equal(try_start(&a, state), 0);
	assert_true(starts_with(scripted_order(a.m),
				"add_device start_device query_adapter_info query_adapter_info"));
	assert_true(ends_with(scripted_order(a.m), "create_device create_context"));
	scripted_forget(a.m);
	vidmm_adapter_stop(a.adapter);
	assert_string_equal(scripted_order(a.m),
			    "destroy_context destroy_device stop_device remove_device unload");
	assert_int_equal(a.findings, 0);
	end_attempt(&a);
}

static void pnp_01_a_failed_start_undoes_completed_steps(void **state)
{
	static const struct {
		enum vidmm_ddi ddi;
		NTSTATUS status;
		const char *order;
	} failures[] = {
		{VIDMM_DDI_ADD_DEVICE, STATUS_NO_MEMORY, "add_device unload"},
		{VIDMM_DDI_START_DEVICE, STATUS_UNSUCCESSFUL,
		 "add_device start_device remove_device unload"},
		{VIDMM_DDI_QUERY_ADAPTER_INFO, STATUS_NO_MEMORY,
		 "add_device start_device query_adapter_info stop_device remove_device unload"},
		{VIDMM_DDI_CREATE_DEVICE, STATUS_NO_MEMORY,
		 "create_device stop_device remove_device unload"},
		{VIDMM_DDI_CREATE_CONTEXT, STATUS_NO_MEMORY,
		 "create_device create_context destroy_device stop_device remove_device unload"},
	};

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		struct attempt a = {.m = scripted_create()};

		scripted_fail(a.m, failures[i].ddi, failures[i].status, 1);
		assert_int_equal(try_start(&a, state), failures[i].status);
		assert_null(a.adapter);
		assert_true(ends_with(scripted_order(a.m), failures[i].order));
		end_attempt(&a);
	}
}

/* Paging begins at the start: the paging buffer is mapped. */
static void pnp_01_a_violation_during_start_removes_the_adapter(void **state)
{
	struct attempt a = {.m = scripted_create()};
	struct vidmm_process *process;
	struct vidmm_device *device = NULL;

	a.m->settings.paging_segment = 2;
	scripted_fail(a.m, VIDMM_DDI_SUBMIT_COMMAND, STATUS_UNSUCCESSFUL, 1);
	assert_int_equal(try_start(&a, state), 0);
	assert_int_equal(a.fatals, 1);
	assert_int_equal(vidmm_process_open(a.host, "p", &process), 0);
	assert_int_equal(vidmm_device_create(process, a.adapter, &device), STATUS_DEVICE_REMOVED);
	assert_null(device);
	vidmm_process_close(process);
	vidmm_adapter_stop(a.adapter);
	/* the system device, which a dead adapter's miniport is not asked to destroy */
	a.m->live_devices = a.m->live_contexts = 0;
	end_attempt(&a);
}

static void pnp_01_a_failed_device_creation_leaves_no_device(void **state)
{
	struct world w;
	struct vidmm_device *device = NULL;
	struct vidmm_process *process;

	world_start(&w, state, NULL);
	assert_int_equal(vidmm_process_open(w.client.host, "p", &process), 0);
	scripted_fail(w.m, VIDMM_DDI_CREATE_DEVICE, STATUS_NO_MEMORY, 1);
	assert_int_equal(vidmm_device_create(process, w.client.adapter, &device), STATUS_NO_MEMORY);
	assert_null(device);
	assert_int_equal(vidmm_device_create(process, w.client.adapter, &device), 0);
	vidmm_process_close(process);
	world_stop(&w);
}

/* ---- stopping ---- */

struct at_stop {
	uint32_t outstanding, objects, stops;
};

static void look_at_stop(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct at_stop *seen = context;

	if (call->ddi != VIDMM_DDI_STOP_DEVICE)
		return;
	seen->stops++;
	seen->outstanding = scripted_outstanding(m, 0) + scripted_outstanding(m, 1);
	seen->objects = m->live_devices + m->live_contexts + m->live_allocations + m->live_opens +
			m->live_resources;
}

static void pnp_02_pnp_03_objects_are_closed_and_the_gpu_idle_at_stopdevice(void **state)
{
	struct world w;
	struct at_stop seen = {0};
	struct client_context copy;
	D3DKMT_HANDLE a[10];

	world_start(&w, state, NULL);
	w.m->hook = look_at_stop;
	w.m->hook_context = &seen;
	client_context(&w.device, 1, &copy);
	for (uint32_t i = 0; i < 10; i++) {
		a[i] = world_allocate(&w, 1 * MIB, i & 1 ? WORLD_APERTURE : 0);
		world_submit_use(i & 2 ? &w.context : &copy, a[i]);
	}
	w.m->settings.complete_at_once = true;
	scripted_complete_all(w.m);
	client_lock(&w.device, a[3], 0); /* and the lock is never released */
	assert_int_equal(client_deallocate(&w.device, a[5]), S_OK);
	/* the process still has its device, contexts and allocations */
	vidmm_process_close(w.device.process);
	world_stop_adapter(&w);
	assert_int_equal(seen.stops, 1);
	assert_int_equal(seen.outstanding, 0);
	assert_int_equal(seen.objects, 0);
}

/* ---- stopping with clients present ---- */

struct stop_watch {
	uint32_t transfers, unmaps; /* of clients' allocations */
	uint32_t busy;              /* evictions while a render packet is outstanding */
	uint32_t late;              /* paging after the first object of a client was closed */
	bool closing;
	struct at_stop at_stop;
	/*
	 * Like any miniport, it does not return from StopDevice while its GPU may report something.
	 */
	struct vidmm_host *host;
	bool threads;
	_Atomic bool stopping, gpu_left;
};

static void watch_eviction(struct stop_watch *watch, struct scripted_miniport *m,
			   const DXGKARG_BUILDPAGINGBUFFER *p)
{
	bool out = p->Operation == DXGK_OPERATION_TRANSFER && p->Transfer.Source.SegmentId;
	bool unmap = p->Operation == DXGK_OPERATION_UNMAP_APERTURE_SEGMENT &&
		     p->UnmapApertureSegment.hAllocation;

	watch->transfers += out;
	watch->unmaps += unmap;
	watch->busy += (out || unmap) && scripted_outstanding(m, 0);
	watch->late += (out || unmap) && watch->closing;
}

static void watch_stop(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct stop_watch *watch = context;

	if (call->ddi == VIDMM_DDI_BUILD_PAGING_BUFFER)
		watch_eviction(watch, m, &call->in.paging);
	watch->closing |= call->ddi == VIDMM_DDI_DESTROY_CONTEXT;
	look_at_stop(&watch->at_stop, m, call);
	if (call->ddi != VIDMM_DDI_STOP_DEVICE)
		return;
	atomic_store(&watch->stopping, true);
	while (watch->threads && !atomic_load(&watch->gpu_left))
		vidmm_settle(watch->host);
}

static void stop_main(void *argument)
{
	vidmm_adapter_stop(argument);
}

/*
 * Calls on the device and its context return that it was removed. It can be destroyed; then its
 * handles are invalid. (PNP-03)
 */
static void expect_stopped(struct client_device *d, struct client_context *c, D3DKMT_HANDLE a)
{
	D3DDDICB_RENDER args = world_render_args(c);
	D3DDDICB_DESTROYCONTEXT end = {.hContext = c->c.hContext};
	D3DDDICB_CREATECONTEXT create = {0};
	D3DKMT_HANDLE other;
	uint32_t shared = 0;

	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(world_render(c, &args), D3DDDIERR_DEVICEREMOVED);
		assert_int_equal(client_try_lock(d, &a, 0, NULL), D3DDDIERR_DEVICEREMOVED);
		assert_int_equal(d->cb->pfnCreateContextCb(d->handle, &create),
				 D3DDDIERR_DEVICEREMOVED);
		other = 0x40000040;
		assert_int_equal(client_try_lock(d, &other, 0, NULL), D3DDDIERR_DEVICEREMOVED);
		assert_int_equal(vidmm_resource_share(d->device, 1, &shared),
				 STATUS_DEVICE_REMOVED);
		assert_int_equal(client_deallocate(d, a), S_OK);
		assert_int_equal(d->cb->pfnDestroyContextCb(d->handle, &end), S_OK);
	}
	vidmm_device_destroy(d->device);
	assert_int_equal(world_render(c, &args), E_INVALIDARG);
	assert_int_equal(client_try_lock(d, &a, 0, NULL), E_INVALIDARG);
	vidmm_device_destroy(d->device); /* nothing happens */
	vidmm_process_close(d->process);
}

static void pnp_02_pnp_03_pag_28_a_stop_evicts_memory_and_closes_all_objects(void **state)
{
	struct world w;
	struct stop_watch watch = {0};
	struct client_device other;
	struct client_context others;
	struct vidmm_thread *thread;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DKMT_HANDLE memory = world_allocate(&w, MIB, WORLD_MEMORY);
	D3DKMT_HANDLE aperture = world_allocate(&w, MIB, WORLD_APERTURE);
	struct scripted_allocation spec = {.size_bytes = MIB, .flags = WORLD_CPU_VISIBLE};
	D3DKMT_HANDLE theirs = world_allocate_as(&other, &spec);
	world_submit_write(&w.context, memory, 0, 1);
	world_submit_write(&w.context, aperture, 0, 1);
	world_submit_write(&others, theirs, 0, 1);
	world_run(&w);
	watch.host = w.client.host;
	watch.threads = w.kind == VIDMM_HOST_LINUX;
	w.m->hook_context = &watch;
	w.m->hook = watch_stop;
	for (uint32_t i = 0; i < 10; i++)
		world_submit_use(i & 1 ? &others : &w.context, i & 1 ? theirs : memory);
	client_lock(&w.device, aperture, 0); /* and the lock is never released */
	assert_int_equal(vidmm_thread_create(w.client.host, "stops the adapter", stop_main,
					     w.client.adapter, &thread),
			 0);
	while (!atomic_load(&watch.stopping)) {
		scripted_complete_all(w.m);
		vidmm_settle(w.client.host);
	}
	atomic_store(&watch.gpu_left, true);
	vidmm_thread_join(thread);
	assert_int_equal(watch.transfers, 2);
	assert_int_equal(watch.unmaps, 1);
	assert_int_equal(watch.busy, 0);
	assert_int_equal(watch.late, 0);
	assert_int_equal(watch.at_stop.stops, 1);
	assert_int_equal(watch.at_stop.outstanding + watch.at_stop.objects, 0);
	assert_int_equal(w.client.findings, 0);
	expect_stopped(&w.device, &w.context, memory);
	expect_stopped(&other, &others, theirs);
	vidmm_host_destroy(w.client.host);
	scripted_destroy(w.m);
}

/* ---- a device in error ---- */

/* Creates two contexts, then a render that the miniport answers with an exception (DMA-31). */
static void pri_16_a_device_in_error_accepts_destruction_only(void **state)
{
	struct world w;
	struct client_context copy;
	struct client_device other;
	struct client_context others;
	void *data;

	world_start(&w, state, NULL);
	client_context(&w.device, 1, &copy);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0), locked = world_allocate(&w, KIB, 0);
	client_lock(&w.device, locked, 0);
	scripted_fail(w.m, VIDMM_DDI_RENDER, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE, 1);
	world_use(&w.context, a);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_DEVICEREMOVED);

	struct client_context *all[] = {&w.context, &copy};
	for (uint32_t i = 0; i < 2; i++) {
		world_use(all[i], a);
		assert_int_equal(client_try_submit(all[i]), D3DDDIERR_DEVICEREMOVED);
	}
	D3DDDICB_OFFERALLOCATIONS offer = {.HandleList = &a, .NumAllocations = 1, .Priority = 1};
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {.HandleList = &a, .NumAllocations = 1};
	D3DDDICB_CREATECONTEXT create = {0};
	D3DDDI_ALLOCATIONINFO info = {0};
	D3DDDICB_ALLOCATE allocate = {.NumAllocations = 1, .pAllocationInfo = &info};
	const D3DDDI_DEVICECALLBACKS *cb = w.device.cb;
	HANDLE d = w.device.handle;
	assert_int_equal(client_try_lock(&w.device, &a, 0, &data), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(cb->pfnOfferAllocationsCb(d, &offer), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(cb->pfnReclaimAllocationsCb(d, &reclaim), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(cb->pfnCreateContextCb(d, &create), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(cb->pfnAllocateCb(d, &allocate), D3DDDIERR_DEVICEREMOVED);
	/* Other devices continue, and this one can be destroyed. */
	struct scripted_allocation spec = {.size_bytes = KIB};
	world_submit_use(&others, world_allocate_as(&other, &spec));
	assert_int_equal(client_unlock(&w.device, locked), S_OK);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	client_context_end(&copy);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_RENDER), 2);
	world_run(&w);
	w.m->settings.complete_at_once = true;
	client_close(&other);
	world_stop(&w);
}

static void pnp_03_a_devices_objects_are_closed_before_the_device(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = world_allocate(&w, 64 * KIB, 0);
	world_submit_use(&w.context, a);
	world_run(&w);
	scripted_forget(w.m);
	client_close(&w.device);
	assert_string_equal(scripted_order(w.m),
			    "destroy_context close_allocation destroy_allocation destroy_device");
	world_stop_adapter(&w);
}

/* An object whose close DDI fails counts as closed. */
static void pnp_03_failed_close_ddis_are_reported(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	scripted_fail(w.m, VIDMM_DDI_DESTROY_CONTEXT, STATUS_UNSUCCESSFUL, 1);
	client_context_end(&w.context);
	world_expect_finding(&w, "PNP-03");
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pnp_01_life_cycle_ddis_come_in_the_documented_order),
		ON_BOTH(pnp_01_a_failed_start_undoes_completed_steps),
		ON_BOTH(pnp_01_a_violation_during_start_removes_the_adapter),
		ON_SIM(pnp_01_a_failed_device_creation_leaves_no_device),
		ON_BOTH(pnp_02_pnp_03_objects_are_closed_and_the_gpu_idle_at_stopdevice),
		ON_BOTH(pnp_02_pnp_03_pag_28_a_stop_evicts_memory_and_closes_all_objects),
		ON_BOTH(pri_16_a_device_in_error_accepts_destruction_only),
		ON_BOTH(pnp_03_a_devices_objects_are_closed_before_the_device),
		ON_SIM(pnp_03_failed_close_ddis_are_reported),
	};

	return cmocka_run_group_tests_name("sched life", tests, NULL, NULL);
}
