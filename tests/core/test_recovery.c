/* SPDX-License-Identifier: MIT */
/*
 * Clients that hang the GPU at random while others use it. Each call returns with a lost device;
 * the client opens a new one and continues. On the simulator with random interleavings, and on real
 * threads. No wait lasts for ever, there are no findings, and the host continues.
 *     test_recovery [FIRST_SEED [COUNT]]
 */
#include <support/client.h>

#include <dispmprt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB         1024u
#define ACTORS      3u
#define ALLOCATIONS 6u
#define VRAM_ONLY   1u /* segment set of every third allocation */
#define SIZE        (96u * KIB)

struct run;

struct actor {
	struct run *run;
	uint64_t random;
	uint32_t number;
	struct vidmm_process *process;
	struct client_device device;
	struct client_context context[2];
	D3DKMT_HANDLE allocation[ALLOCATIONS];
	struct vidmm_thread *thread;
};

struct run {
	struct client client;
	uint32_t steps, hang_per_1024;
	uint64_t stall_ns; /* at most; 0: no packet is long */
	_Atomic uint32_t lost, wrong;
	struct actor actor[ACTORS];
};

static uint32_t draw(struct actor *a, uint32_t below)
{
	a->random += 0x9E3779B97F4A7C15u;
	uint64_t x = (a->random ^ a->random >> 30) * 0xBF58476D1CE4E5B9u;

	return (uint32_t)((x ^ x >> 27) >> 33) % below;
}

/* Success, or the device is lost; any other status is reported and counted. */
static bool good(struct actor *a, HRESULT result, const char *what)
{
	if (result == S_OK)
		return true;
	if (result != D3DDDIERR_DEVICEREMOVED && result != D3DERR_WASSTILLDRAWING) {
		fprintf(stderr, "actor %u: %s gave 0x%08x\n", a->number, what, (unsigned)result);
		atomic_fetch_add(&a->run->wrong, 1);
	}
	return false;
}

static bool open_all(struct actor *a)
{
	a->device = (struct client_device){.client = &a->run->client, .process = a->process};
	if (!good(a, vidmm_device_create(a->process, a->run->client.adapter, &a->device.device),
		  "create device"))
		return false;
	a->device.cb = vidmm_device_callbacks(a->device.device);
	a->device.handle = vidmm_device_handle(a->device.device);
	for (uint32_t i = 0; i < 2; i++) {
		memset(&a->context[i], 0, sizeof(a->context[i]));
		a->context[i].device = &a->device;
		a->context[i].c.NodeOrdinal = i;
		if (!good(a, a->device.cb->pfnCreateContextCb(a->device.handle, &a->context[i].c),
			  "create context"))
			return false;
	}
	for (uint32_t i = 0; i < ALLOCATIONS; i++) {
		struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
						  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
						  .size_bytes = SIZE,
						  .segment_set = i % 3,
						  .renaming_limit = 3};

		if (!good(a, client_try_allocate(&a->device, &spec, NULL, &a->allocation[i], NULL),
			  "allocate"))
			return false;
	}
	return true;
}

static bool render(struct actor *a)
{
	uint32_t node = draw(a, 2);
	struct client_context *c = &a->context[node];

	/* Two contexts have no order between them, so each has its own allocations. */
	for (uint32_t n = 1 + draw(a, 3); n; n--)
		client_reference(c, a->allocation[draw(a, ALLOCATIONS / 2) * 2 + node], draw(a, 2));
	if (a->run->stall_ns && draw(a, 16) == 0) {
		const struct {
			struct softgpu_command head;
			uint64_t nanoseconds;
		} stall = {{SOFTGPU_STALL, 0, sizeof(stall)},
			   (uint64_t)draw(a, 1024) * a->run->stall_ns / 1024};

		client_command(c, &stall, sizeof(stall));
	}
	if (draw(a, 1024) < a->run->hang_per_1024) {
		const struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};

		client_command(c, &hang, sizeof(hang));
	}
	return good(a, client_try_submit(c), "render");
}

static bool lock(struct actor *a)
{
	static const uint32_t flags[] = {0, 0x80, 0x4, 0x84, 0x10};
	uint32_t index = draw(a, ALLOCATIONS);
	D3DKMT_HANDLE *allocation = &a->allocation[index];
	void *data;
	HRESULT result = client_try_lock(&a->device, allocation,
					 flags[draw(a, sizeof(flags) / sizeof(flags[0]))], &data);

	if (result == D3DERR_WASSTILLDRAWING)
		return true;
	if (!good(a, result, "lock"))
		return false;
	memset(data, (int)a->number, 256);
	/*
	 * LKR-02: an allocation that can only be in video memory must not be rendered with while it
	 * is locked.
	 */
	if (index % 3 != VRAM_ONLY && draw(a, 4) == 0 && !render(a)) {
		/*
		 * TDR-11: locks of a lost device can be released, and their pointers are valid
		 * until then.
		 */
		memset(data, 0, 256);
		good(a, client_unlock(&a->device, *allocation), "unlock of a lost device");
		return false;
	}
	memset(data, 0, 256);
	return good(a, client_unlock(&a->device, *allocation), "unlock");
}

static bool exchange(struct actor *a)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = SIZE};
	D3DKMT_HANDLE *allocation = &a->allocation[draw(a, ALLOCATIONS)];

	if (!good(a, client_deallocate(&a->device, *allocation), "deallocate"))
		return false;
	return good(a, client_try_allocate(&a->device, &spec, NULL, allocation, NULL), "allocate");
}

static bool step(struct actor *a)
{
	switch (draw(a, 8)) {
	case 0:
	case 1:
	case 2:
	case 3:
		return render(a);
	case 4:
	case 5:
	case 6:
		return lock(a);
	default:
		return exchange(a);
	}
}

static void act(void *argument)
{
	struct actor *a = argument;
	bool open = open_all(a);

	for (uint32_t n = 0; n < a->run->steps; n++) {
		if (open && step(a))
			continue;
		atomic_fetch_add(&a->run->lost, 1);
		if (a->device.device)
			vidmm_device_destroy(a->device.device);
		open = open_all(a);
	}
	if (a->device.device)
		vidmm_device_destroy(a->device.device);
}

/* Packets that were preempted (PRE-04), in all runs. */
static _Atomic uint64_t taken_back;

static void count_taken_back(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context, (void)text;
	if (event->reason == VIDMM_RECOVERY_PREEMPTED)
		atomic_fetch_add(&taken_back, event->arg[3]);
}

/* The number of devices that were lost. */
static uint32_t run_seed(uint32_t kind, uint64_t seed, uint32_t steps)
{
	/* Any number of resets is permitted: each must be survived. */
	struct vidmm_tdr_options tdr = {3, 2000, 60000, 1, VIDMM_TDR_LIMIT_MAX, 2};
	const struct vidmm_registry_value registry[] = {{"SwizzlingRanges", 4},
							{"PreemptionAware", seed / 2 % 2},
							{"PerEngineTdr", seed / 4 % 2}};
	const struct client_options options = {
		.kind = kind,
		.seed = seed,
		.switch_per_1024 = seed % 2 ? 64 : 0,
		.vram_bytes = 512 * KIB,
		.aperture_bytes = 4096 * KIB,
		.registry = registry,
		.registry_count = 3,
		.tdr = &tdr,
	};
	/*
	 * On the simulator some packets are long, too long by themselves or together with others.
	 */
	struct run run = {.steps = steps,
			  .hang_per_1024 = 24,
			  .stall_ns = kind == VIDMM_HOST_SIM ? 4000000000u : 0};

	/* an additional reset does no harm here */
	if (kind == VIDMM_HOST_LINUX)
		tdr.delay_ms = 60;
	client_start(&run.client, &options);
	assert_int_not_equal(vidmm_subscribe(run.client.host, 1ull << VIDMM_EVENT_RECOVERY,
					     count_taken_back, NULL),
			     0);
	for (uint32_t i = 0; i < ACTORS; i++) {
		struct actor *a = &run.actor[i];

		*a = (struct actor){.run = &run, .number = i, .random = seed * ACTORS + i};
		assert_int_equal(vidmm_process_open(run.client.host, "actor", &a->process), 0);
	}
	for (uint32_t i = 0; i < ACTORS; i++)
		assert_int_equal(vidmm_thread_create(run.client.host, "actor", act, &run.actor[i],
						     &run.actor[i].thread),
				 0);
	for (uint32_t i = 0; i < ACTORS; i++)
		vidmm_thread_join(run.actor[i].thread);
	vidmm_adapter_check(run.client.adapter);
	for (uint32_t i = 0; i < ACTORS; i++)
		vidmm_process_close(run.actor[i].process);
	client_stop(&run.client);
	if (run.client.findings || run.client.fatals || atomic_load(&run.wrong))
		fail_msg("seed %llu: %u findings (%s), %u fatal, %u wrong answers",
			 (unsigned long long)seed, run.client.findings, run.client.finding[0],
			 run.client.fatals, atomic_load(&run.wrong));
	return atomic_load(&run.lost);
}

static uint64_t first_seed = 1, seed_count = 60;

static void tdr_07_tdr_09_pre_07_clients_recover_from_hangs_on_the_simulator(void **state)
{
	uint32_t lost = 0;

	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++)
		lost += run_seed(VIDMM_HOST_SIM, seed, 60);
	print_message("# %u devices lost, %u packets preempted\n", lost,
		      (unsigned)atomic_load(&taken_back));
	assert_true(lost >= seed_count);
	assert_true(atomic_load(&taken_back) >= seed_count / 4);
}

static void tdr_07_tdr_09_pre_07_clients_recover_from_hangs_on_threads(void **state)
{
	uint32_t lost = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++)
		lost += run_seed(VIDMM_HOST_LINUX, seed, 40);
	print_message("# %u devices lost\n", lost);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tdr_07_tdr_09_pre_07_clients_recover_from_hangs_on_the_simulator),
		cmocka_unit_test(tdr_07_tdr_09_pre_07_clients_recover_from_hangs_on_threads),
	};

	if (argc > 1)
		first_seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		seed_count = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
