/* SPDX-License-Identifier: MIT */
/*
 * The simulator: handing over between two of its threads, which is the step that everything else
 * consists of; and a submission through softgpu, from the UMD door to the completion of an earlier
 * one, with all threads of the core and of the GPU as coroutines. observe.emit_sim is what each
 * event costs, because of the event hash.
 */
#include "bench.h"
#include "bench_client.h"

#include "os/os.h"

#include <stdlib.h>

struct pair {
	struct vmm_os *os;
	struct vmm_os_thread *other;
	_Atomic uint32_t turn; /* futex: even: the main thread's, odd: the other's */
	_Atomic bool ends;
};

static void await(struct pair *pair, uint32_t turn)
{
	(void)!vmm_os_wait(pair->os, &pair->turn, turn - 1, VMM_OS_FOREVER, NULL, 0);
}

static void pass(struct pair *pair, uint32_t turn)
{
	atomic_store(&pair->turn, turn + 1);
	vmm_os_wake(pair->os, &pair->turn, 1);
}

static void answer(void *arg)
{
	struct pair *pair = arg;

	for (uint32_t turn = 1;; turn += 2) {
		while (atomic_load(&pair->turn) != turn)
			await(pair, turn);
		if (atomic_load(&pair->ends))
			return;
		pass(pair, turn);
	}
}

static void *pair_create(const struct bench_case *self)
{
	const struct vmm_os_config config = {.kind = VMM_OS_SIM, .seed = 1};
	struct pair *pair = calloc(1, sizeof(*pair));

	(void)self;
	if (pair && vmm_ok(vmm_os_create(&config, &pair->os)) &&
	    vmm_ok(vmm_os_thread_create(pair->os, "bench", answer, pair, &pair->other)))
		return pair;
	if (pair && pair->os)
		vmm_os_destroy(pair->os);
	free(pair);
	return NULL;
}

static void pair_destroy(void *state)
{
	struct pair *pair = state;

	atomic_store(&pair->ends, true);
	pass(pair, atomic_load(&pair->turn));
	vmm_os_thread_join(pair->other);
	vmm_os_destroy(pair->os);
	free(pair);
}

static void run_pair(void *state, uint64_t steps)
{
	struct pair *pair = state;

	for (uint64_t i = 0; i < steps; i++) {
		uint32_t turn = atomic_load(&pair->turn);

		pass(pair, turn);
		while (atomic_load(&pair->turn) != turn + 2)
			await(pair, turn + 2);
	}
}

BENCH(.name = "sim.hand_over", .peer = "floor.mutex", .per_run = 2, .setup = pair_create,
      .run = run_pair, .teardown = pair_destroy);

struct submitter {
	struct bench_client client;
	D3DKMT_HANDLE allocation;
};

static void submitter_destroy(void *state)
{
	struct submitter *submitter = state;

	bench_client_finish(&submitter->client);
	free(submitter);
}

static void *submitter_create(const struct bench_case *self)
{
	const struct vidmm_adapter_options options = {0};
	struct submitter *submitter = calloc(1, sizeof(*submitter));

	(void)self;
	if (!submitter)
		return NULL;
	if (bench_client_start(&submitter->client, 256 << 20, &options) &&
	    bench_client_allocate(&submitter->client, 65536, &submitter->allocation))
		return submitter;
	submitter_destroy(submitter);
	return NULL;
}

static void run_submissions(void *state, uint64_t steps)
{
	struct submitter *submitter = state;

	for (uint64_t i = 0; i < steps; i++)
		bench_client_write(&submitter->client, &submitter->allocation, 1);
}

BENCH(.name = "sim.submission", .peer = "sim.hand_over", .setup = submitter_create,
      .run = run_submissions, .teardown = submitter_destroy);
