/* SPDX-License-Identifier: MIT */
/*
 * Monitored fences through the D3DKMT door: a signal without waiters and a satisfied wait, relative
 * to the ordered store and the locked instruction that they need at least; and two threads that
 * wake each other by signals, each waiting for one fence or for any of 64, relative to the same
 * hand-off by a bare futex on the same CPUs. The miniport is the scripted one of the tests; these
 * cases do not call it.
 */
#include "bench.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <support/scripted_miniport.h>
#include <d3dkmthk.h>
#include <vidmm/vidmm.h>

enum { MINE, PARTNERS, SIDES, FENCES = 64 };
enum { ROUNDS_A_STEP = 16, THE_END = UINT32_MAX };

struct client {
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_process *process;
	struct scripted_miniport *miniport;
	D3DKMT_HANDLE device;
	D3DKMT_HANDLE fence[SIDES][FENCES];
	uint32_t fences; /* fences of a wait: one, or any of several */
	uint64_t value;
	pthread_t partner;
	bool has_partner;
	/* total rounds requested of the partner, which sleeps on this word between runs */
	_Atomic uint32_t goal;
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

static D3DKMT_HANDLE make_fence(const struct client *c)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.hDevice = c->device,
						    .Info.Type = D3DDDI_MONITORED_FENCE};

	if (D3DKMTCreateSynchronizationObject2(&args))
		abort();
	return args.hSyncObject;
}

static void signal(const struct client *c, D3DKMT_HANDLE fence, uint64_t value)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = c->device,
								.ObjectCount = 1,
								.ObjectHandleArray = &fence,
								.FenceValueArray = &value};

	if (D3DKMTSignalSynchronizationObjectFromCpu(&args))
		abort();
}

static void set_goal(struct client *c, uint32_t goal)
{
	atomic_store(&c->goal, goal);
	syscall(SYS_futex, &c->goal, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void client_end(void *state)
{
	struct client *c = state;

	if (c->has_partner) {
		set_goal(c, THE_END);
		pthread_join(c->partner, NULL);
	}
	vidmm_d3dkmt_attach(NULL);
	vidmm_process_close(c->process);
	vidmm_adapter_stop(c->adapter);
	vidmm_host_destroy(c->host);
	scripted_destroy(c->miniport);
	free(c);
}

static void *client_begin(const struct bench_case *self)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (!start(c))
		abort();
	c->fences = self->parameter ? (uint32_t)self->parameter : 1;
	for (uint32_t i = 0; i < SIDES * c->fences; i++)
		c->fence[i % SIDES][i / SIDES] = make_fence(c);
	return c;
}

static void run_door_signal(void *state, uint64_t steps)
{
	struct client *c = state;
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = c->device,
							  .ObjectCount = 1,
							  .ObjectHandleArray = c->fence[MINE],
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
								 .ObjectHandleArray =
									 c->fence[MINE],
								 .FenceValueArray = &zero};

	vidmm_d3dkmt_attach(c->process);
	for (uint64_t i = 0; i < steps; i++)
		if (D3DKMTWaitForSynchronizationObjectFromCpu(&args))
			abort();
}
BENCH(.name = "sync.door_wait_satisfied", .setup = client_begin, .run = run_door_wait,
      .teardown = client_end, .peer = "floor.xadd", .ratio_max = 3);

/* ---- hand-offs ---- */

/* Waits until the last fence of SIDE has VALUE. The other fences never reach it. */
static void wait_for(const struct client *c, unsigned side, uint64_t value)
{
	UINT64 values[FENCES];
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = c->device,
								 .ObjectCount = c->fences,
								 .ObjectHandleArray =
									 c->fence[side],
								 .FenceValueArray = values,
								 .Flags.WaitAny = c->fences > 1};

	for (uint32_t i = 0; i < c->fences; i++)
		values[i] = 1;
	values[c->fences - 1] = value;
	if (D3DKMTWaitForSynchronizationObjectFromCpu(&args))
		abort();
}

static void *partner_main(void *context)
{
	struct client *c = context;

	bench_pin(1);
	for (uint32_t round = 1;; round++) {
		uint32_t goal;

		while ((goal = atomic_load(&c->goal)) < round)
			syscall(SYS_futex, &c->goal, FUTEX_WAIT_PRIVATE, goal, NULL, NULL, 0);
		if (goal == THE_END)
			return NULL;
		wait_for(c, MINE, round);
		signal(c, c->fence[PARTNERS][c->fences - 1], round);
	}
}

static void *hand_off_begin(const struct bench_case *self)
{
	struct client *c = client_begin(self);

	if (!c)
		return NULL;
	c->has_partner = pthread_create(&c->partner, NULL, partner_main, c) == 0;
	if (c->has_partner)
		return c;
	client_end(c);
	return NULL;
}

static void run_hand_off(void *state, uint64_t steps)
{
	struct client *c = state;

	vidmm_d3dkmt_attach(c->process);
	set_goal(c, (uint32_t)(c->value + steps * ROUNDS_A_STEP));
	for (uint64_t i = 0; i < steps * ROUNDS_A_STEP; i++) {
		signal(c, c->fence[MINE][c->fences - 1], ++c->value);
		wait_for(c, PARTNERS, c->value);
	}
}
BENCH(.name = "sync.wake_asleep", .threads = 2, .per_run = 2 * ROUNDS_A_STEP,
      .setup = hand_off_begin, .run = run_hand_off, .teardown = client_end,
      .peer = "floor.futex_hand_off", .ratio_max = 1.1);
BENCH(.name = "sync.wake_any_of_64", .threads = 2, .per_run = 2 * ROUNDS_A_STEP,
      .parameter = FENCES, .setup = hand_off_begin, .run = run_hand_off, .teardown = client_end,
      .peer = "floor.futex_hand_off", .ratio_max = 1.2);
