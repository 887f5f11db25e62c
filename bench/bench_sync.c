/* SPDX-License-Identifier: MIT */
/*
 * Monitored fences: a signal that nobody waits for and a wait that need not wait, in the core and through the D3DKMT door, against
 * the ordered store and the locked instruction that they cannot do without; one signal that frees one of so many waits; a wait
 * for any of 64 fences. The adapter's miniport is the scripted one of the tests, which is never called here.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <support/scripted_miniport.h>
#include <d3dkmthk.h>
#include <vidmm/vidmm.h>

#include "sync/sync_private.h"

enum { FENCES = 64 };

struct client {
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process;
	struct scripted_miniport *miniport;
	D3DKMT_HANDLE device, fence;
	uint64_t value;
};

static bool start(struct client *c)
{
	static const uint64_t bars[] = {SCRIPTED_BAR_BYTES};
	const struct vidmm_host_options host = {.struct_size = sizeof(host),
						.kind = VIDMM_HOST_LINUX};
	D3DKMT_ADAPTERINFO info;
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};
	D3DKMT_CREATEDEVICE device = {0};

	c->miniport = scripted_create();
	scripted_set_version(c->miniport, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
	c->miniport->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
	struct vidmm_adapter_options adapter = {.struct_size = sizeof(adapter),
						.initialization_data = scripted_table(c->miniport),
						.bar_sizes = bars,
						.bar_count = 1};
	if (vidmm_host_create(&host, &c->host) < 0 ||
	    vidmm_adapter_start(c->host, &adapter, &c->adapter) < 0 ||
	    vidmm_process_open(c->host, "bench", &c->process) < 0)
		return false;
	vidmm_d3dkmt_attach(c->process);
	if (D3DKMTEnumAdapters2(&all))
		return false;
	device.hAdapter = info.hAdapter;
	if (D3DKMTCreateDevice(&device))
		return false;
	c->device = device.hDevice;
	return true;
}

static bool make_fence(struct client *c)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.hDevice = c->device,
						    .Info.Type = D3DDDI_MONITORED_FENCE};

	if (D3DKMTCreateSynchronizationObject2(&args))
		return false;
	c->fence = args.hSyncObject;
	return true;
}

static void client_end(void *state)
{
	struct client *c = state;

	vidmm_d3dkmt_attach(NULL);
	vidmm_process_close(c->process);
	vidmm_adapter_stop(c->adapter);
	vidmm_host_destroy(c->host);
	scripted_destroy(c->miniport);
	free(c);
}

static void *client_begin(const struct bench_case *self)
{
	(void)self;
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (!start(c) || !make_fence(c))
		abort();
	return c;
}

static void run_door_signal(void *state, uint64_t steps)
{
	struct client *c = state;
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = c->device,
							  .ObjectCount = 1,
							  .ObjectHandleArray = &c->fence,
							  .FenceValueArray = &c->value};

	vidmm_d3dkmt_attach(c->process);
	for (uint64_t i = 0; i < steps; i++) {
		c->value++;
		if (D3DKMTSignalSynchronizationObjectFromCpu(&args))
			abort();
	}
}
BENCH(.name = "sync.door_signal", .setup = client_begin, .run = run_door_signal,
      .teardown = client_end, .peer = "floor.store_seq_cst", .ratio_max = 3);

static void run_door_wait(void *state, uint64_t steps)
{
	struct client *c = state;
	const UINT64 zero = 0;
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = c->device,
								 .ObjectCount = 1,
								 .ObjectHandleArray = &c->fence,
								 .FenceValueArray = &zero};

	vidmm_d3dkmt_attach(c->process);
	for (uint64_t i = 0; i < steps; i++)
		if (D3DKMTWaitForSynchronizationObjectFromCpu(&args))
			abort();
}
BENCH(.name = "sync.door_wait_satisfied", .setup = client_begin, .run = run_door_wait,
      .teardown = client_end, .peer = "floor.xadd", .ratio_max = 3);

/* ---- the core ---- */

struct core {
	struct vmm_os *os;
	struct vmm_world world;
	struct vmm_sync_object object;
	_Alignas(64) _Atomic uint64_t word;
	uint64_t value, count;
	struct vmm_sync_wait *waits;
	struct vmm_sync_node *nodes;
};

static void core_end(void *state)
{
	struct core *c = state;

	vmm_os_mutex_finish(&c->world.sync_lock);
	vmm_os_destroy(c->os);
	free(c->waits);
	free(c->nodes);
	free(c);
}

static void forget(struct vmm_sync_wait *wait)
{
	bench_use(wait);
}

static void stand_in(struct core *c, uint64_t index, uint64_t value)
{
	struct vmm_sync_wait *wait = &c->waits[index];

	*wait = (struct vmm_sync_wait){
		.world = &c->world, .nodes = &c->nodes[index], .count = 1, .tell = forget};
	vmm_list_init(&wait->link);
	c->nodes[index] =
		(struct vmm_sync_node){.object = &c->object, .wait = wait, .value = value};
	vmm_os_mutex_lock(&c->world.sync_lock);
	if (vmm_sync_wait_begin_locked(wait))
		abort();
	vmm_os_mutex_unlock(&c->world.sync_lock);
}

static void *core_begin(const struct bench_case *self)
{
	const struct vmm_os_config config = {.kind = VMM_OS_LINUX};
	struct core *c = aligned_alloc(64, sizeof(*c));

	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->count = self->parameter;
	c->waits = calloc(c->count + 1, sizeof(*c->waits));
	c->nodes = calloc(c->count + 1, sizeof(*c->nodes));
	if (!c->waits || !c->nodes || vmm_os_create(&config, &c->os) != VMM_OK)
		abort();
	c->world.os = c->os;
	vmm_os_mutex_init(&c->world.sync_lock, c->os, VMM_RANK_SYNC, "sync");
	c->object.world = &c->world;
	c->object.type = VMM_SYNC_MONITORED_FENCE;
	c->object.word = &c->word;
	for (uint64_t i = 0; i < c->count; i++)
		stand_in(c, i, i + 1);
	return c;
}

static void run_signal(void *state, uint64_t steps)
{
	struct core *c = state;
	uint64_t value = c->value; /* counted in a register, as by the floor */

	for (uint64_t i = 0; i < steps; i++)
		if (vmm_sync_raise(&c->object, ++value, false))
			abort();
	c->value = value;
}
BENCH(.name = "sync.signal", .setup = core_begin, .run = run_signal, .teardown = core_end,
      .peer = "floor.store_seq_cst", .ratio_max = 1.3);

static void run_satisfied(void *state, uint64_t steps)
{
	struct core *c = state;

	for (uint64_t i = 0; i < steps; i++)
		bench_use(vmm_sync_reached(&c->object, 0));
}
BENCH(.name = "sync.wait_satisfied", .setup = core_begin, .run = run_satisfied,
      .teardown = core_end, .peer = "floor.xadd", .ratio_max = 0.4);

/* One signal frees the wait for the least value, which then waits behind all others. */
static void run_wake_one(void *state, uint64_t steps)
{
	struct core *c = state;

	for (uint64_t i = 0; i < steps; i++) {
		uint64_t index = c->value % c->count;

		if (!vmm_sync_raise(&c->object, ++c->value, false))
			abort();
		vmm_sync_deliver(&c->object);
		stand_in(c, index, c->value + c->count);
	}
}
BENCH(.name = "sync.wake_one_of_100", .parameter = 100, .setup = core_begin, .run = run_wake_one,
      .teardown = core_end);
BENCH(.name = "sync.wake_one_of_10k", .parameter = 10000, .setup = core_begin, .run = run_wake_one,
      .teardown = core_end, .peer = "sync.wake_one_of_100", .ratio_max = 4);

/* A wait for any of 64 fences: into all their heaps, woken by one, out of the others. */
static void run_wait_any(void *state, uint64_t steps)
{
	struct core *c = state;
	static struct vmm_sync_object objects[FENCES];
	static _Atomic uint64_t words[FENCES];
	struct vmm_sync_node nodes[FENCES];

	for (uint32_t f = 0; f < FENCES; f++) {
		objects[f] = (struct vmm_sync_object){
			.world = &c->world, .type = VMM_SYNC_MONITORED_FENCE, .word = &words[f]};
		atomic_store(&words[f], 0);
	}
	for (uint64_t i = 1; i <= steps; i++) {
		struct vmm_sync_wait wait = {.world = &c->world,
					     .nodes = nodes,
					     .count = FENCES,
					     .any = true,
					     .tell = forget};

		vmm_list_init(&wait.link);
		for (uint32_t f = 0; f < FENCES; f++)
			nodes[f] = (struct vmm_sync_node){
				.object = &objects[f], .wait = &wait, .value = i};
		vmm_os_mutex_lock(&c->world.sync_lock);
		if (vmm_sync_wait_begin_locked(&wait))
			abort();
		vmm_os_mutex_unlock(&c->world.sync_lock);
		if (!vmm_sync_raise(&objects[i % FENCES], i, false) || wait.done)
			abort();
		vmm_sync_deliver(&objects[i % FENCES]);
		for (uint32_t f = 0; f < FENCES; f++)
			atomic_store_explicit(&words[f], i, memory_order_relaxed);
	}
}
BENCH(.name = "sync.any_of_64", .setup = core_begin, .run = run_wait_any, .teardown = core_end,
      .peer = "floor.xadd");
