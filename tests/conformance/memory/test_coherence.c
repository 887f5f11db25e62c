/* SPDX-License-Identifier: MIT */
/* ALF-14, ALF-15: when CPU caches are flushed for a Cached allocation, and when they are not. */
#include "world.h"

#include <pthread.h>

#define CACHED (CPU | SOFTGPU_ALLOCATION_CACHED)
#define BYTES  (4 * PAGE)

static const struct vidmm_registry_value incoherent = {"ApertureCoherent", 0};
static const struct client_options not_coherent = {.vram_bytes = 4 * MIB,
						   .aperture_bytes = 8 * MIB,
						   .registry = &incoherent,
						   .registry_count = 1};
static const struct client_options coherent = {.vram_bytes = 4 * MIB, .aperture_bytes = 8 * MIB};

/* The flushes of one allocation, in order. Events come from several threads at once. */
struct flushes {
	pthread_mutex_t lock;
	uint32_t object;
	uint32_t to_gpu, to_cpu;
	uint64_t bytes;
	/* sequence number of the first submission after a flush for the GPU */
	uint64_t submit_after;
	uint64_t flushed_at;
};

static void on_flush(void *context, const struct vidmm_event *event, const char *text)
{
	struct flushes *f = context;

	(void)text;
	pthread_mutex_lock(&f->lock);
	if (event->type == VIDMM_EVENT_QUEUE) {
		if (f->flushed_at && !f->submit_after)
			f->submit_after = event->sequence;
	} else if (event->object == f->object) {
		f->to_gpu += event->reason == VIDMM_FLUSH_TO_GPU;
		f->to_cpu += event->reason == VIDMM_FLUSH_TO_CPU;
		f->bytes += event->arg[0];
		if (event->reason == VIDMM_FLUSH_TO_GPU)
			f->flushed_at = event->sequence;
	}
	pthread_mutex_unlock(&f->lock);
}

static void start(struct world *w, struct flushes *f, void **state,
		  const struct client_options *options)
{
	world_start(w, state, options);
	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->lock, NULL);
	assert_int_not_equal(vidmm_subscribe(w->client.host,
					     1ull << VIDMM_EVENT_FLUSH | 1ull << VIDMM_EVENT_QUEUE,
					     on_flush, f),
			     0);
}

static void expect_flushes(struct flushes *f, uint32_t to_gpu, uint32_t to_cpu)
{
	pthread_mutex_lock(&f->lock);
	assert_int_equal(f->to_gpu, to_gpu);
	assert_int_equal(f->to_cpu, to_cpu);
	assert_true(f->bytes == (uint64_t)(to_gpu + to_cpu) * BYTES);
	f->to_gpu = f->to_cpu = 0;
	f->bytes = f->flushed_at = f->submit_after = 0;
	pthread_mutex_unlock(&f->lock);
}

static void expect_flushed_before_submission(struct flushes *f)
{
	pthread_mutex_lock(&f->lock);
	assert_true(f->flushed_at && f->submit_after > f->flushed_at);
	pthread_mutex_unlock(&f->lock);
}

static void alf_15_cpu_writes_are_flushed_once_before_submission(void **state)
{
	for (uint32_t segments = VRAM; segments <= APERTURE; segments++) {
		struct world w;
		struct flushes f;

		start(&w, &f, state, &not_coherent);
		D3DKMT_HANDLE a = f.object = allocate_in(&w.device, BYTES, CACHED, segments);

		client_write(&w.device, a, BYTES, 0x15);
		expect_flushes(&f, 0, 0);
		use_now(&w, a, false);
		expect_flushed_before_submission(&f);
		expect_flushes(&f, 1, 0);
		use_now(&w, a, true); /* the GPU owns it already */
		expect_flushes(&f, 0, 0);
		/* ownership returns to the CPU, whose cached bytes are stale */
		client_write(&w.device, a, BYTES, 0x16);
		expect_flushes(&f, 0, 1);
		client_write(&w.device, a, BYTES, 0x17);
		expect_flushes(&f, 0, 0);
		use_now(&w, a, false); /* resident all the while */
		expect_flushed_before_submission(&f);
		expect_flushes(&f, 1, 0);
		world_stop(&w);
	}
}

static void alf_15_lock_06_a_readonly_lock_causes_no_flush(void **state)
{
	struct world w;
	struct flushes f;

	start(&w, &f, state, &not_coherent);
	D3DKMT_HANDLE a = f.object = allocate_in(&w.device, BYTES, CACHED, VRAM);

	use_now(&w, a, true);
	expect_flushes(&f, 0, 0);
	client_lock(&w.device, a, READ_ONLY);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_flushes(&f, 0, 1);
	use_now(&w, a, true);
	expect_flushes(&f, 0, 0);
	client_lock(&w.device, a, READ_ONLY);
	client_lock(&w.device, a, 0); /* the same owner: no flush */
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_flushes(&f, 0, 1);
	use_now(&w, a, false);
	expect_flushes(&f, 1, 0);
	world_stop(&w);
}

static void alf_15_a_coherent_aperture_needs_no_flush(void **state)
{
	struct world w;
	struct flushes f;

	start(&w, &f, state, &coherent);
	D3DKMT_HANDLE a = f.object = allocate_in(&w.device, BYTES, CACHED, APERTURE);

	for (uint32_t round = 0; round < 3; round++) {
		client_write(&w.device, a, BYTES, 0x20 + round);
		use_now(&w, a, true);
	}
	expect_flushes(&f, 0, 0);
	world_stop(&w);
}

static void alf_14_without_cached_there_is_no_flush(void **state)
{
	struct world w;
	struct flushes f;

	start(&w, &f, state, &not_coherent);
	for (uint32_t segments = VRAM; segments <= APERTURE; segments++) {
		D3DKMT_HANDLE a = f.object = allocate_in(&w.device, BYTES, CPU, segments);

		client_write(&w.device, a, BYTES, 0x14);
		use_now(&w, a, true);
		client_expect(&w.device, a, 4, 0x14);
		use_now(&w, a, true);
	}
	expect_flushes(&f, 0, 0);
	world_stop(&w);
}

/* What the CPU wrote through a mapping of the segment is transferred with the rest. */
static void alf_15_eviction_flushes_cpu_writes(void **state)
{
	struct world w;
	struct flushes f;

	start(&w, &f, state, &not_coherent);
	D3DKMT_HANDLE a = f.object = allocate_in(&w.device, BYTES, CACHED, VRAM);

	use_now(&w, a, false);
	client_write(&w.device, a, BYTES, 0x51);
	expect_flushes(&f, 0, 1);
	evict_by_pressure(&w, a);
	expect_flushes(&f, 1, 0);
	client_expect(&w.device, a, BYTES, 0x51);
	expect_flushes(&f, 0, 1);
	world_stop(&w);
}

/* CPU and GPU own it at once: what the CPU writes under its lock is flushed before each use. */
static void alf_15_lock_37_each_use_of_a_locked_aperture_allocation_flushes(void **state)
{
	struct world w;
	struct flushes f;

	start(&w, &f, state, &not_coherent);
	D3DKMT_HANDLE a = f.object = allocate_in(&w.device, BYTES, CACHED, APERTURE);

	uint32_t *word = client_lock(&w.device, a, 0);
	for (uint32_t round = 0; round < 3; round++) {
		word[0] = round;
		use_now(&w, a, false);
		expect_flushes(&f, 1, 0);
	}
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void alf_15_pag_14_a_retained_copy_is_flushed_before_the_gpu_reads_it(void **state)
{
	struct world w;
	struct flushes f;

	start(&w, &f, state, &not_coherent);
	D3DKMT_HANDLE a = f.object =
		allocate_in(&w.device, BYTES, CACHED | SOFTGPU_ALLOCATION_PERMANENT_SYSTEM, VRAM);

	client_write(&w.device, a, BYTES, 0x61);
	use_now(&w, a, false);
	expect_flushes(&f, 1, 0);
	client_write(&w.device, a, BYTES, 0x62); /* the unlock copies it to the segment */
	client_idle(&w.client);
	expect_flushes(&f, 1, 1);
	use_now(&w, a, true);
	expect_flushes(&f, 0, 0);
	client_expect(&w.device, a, 4, 0x62); /* softgpu's use rewrites what is there */
	world_stop(&w);
}

static HRESULT invalidate(const struct world *w, D3DKMT_HANDLE a, SIZE_T offset, SIZE_T length)
{
	const D3DDDICB_INVALIDATECACHE args = {a, offset, length};

	return w->device.cb->pfnInvalidateCacheCb(w->device.handle, &args);
}

static void expect_bytes(struct flushes *f, uint64_t bytes)
{
	pthread_mutex_lock(&f->lock);
	assert_true(f->bytes == bytes);
	f->bytes = 0;
	pthread_mutex_unlock(&f->lock);
}

/* The callback of a user-mode driver; D3DKMTInvalidateCache has the other cases. */
static void cch_01_cch_02_a_user_mode_driver_flushes_a_range(void **state)
{
	struct world w;
	struct flushes f;

	start(&w, &f, state, &not_coherent);
	D3DKMT_HANDLE a = f.object = allocate_in(&w.device, BYTES, CACHED, APERTURE);

	client_write(&w.device, a, BYTES, 0x33);
	use_now(&w, a, true);
	expect_flushes(&f, 1, 0);
	assert_int_equal(invalidate(&w, a, PAGE, 2 * PAGE), S_OK);
	expect_bytes(&f, 2 * PAGE);
	assert_int_equal(invalidate(&w, a, PAGE, BYTES), E_INVALIDARG);
	assert_true(client_found(&w.client, "CCH-02"));
	client_forget(&w.client);
	assert_int_equal(invalidate(&w, a + 64, 0, PAGE), E_INVALIDARG);
	assert_true(client_found(&w.client, "CCH-02"));
	client_forget(&w.client);
	assert_int_equal(w.device.cb->pfnInvalidateCacheCb(w.device.handle, NULL), E_INVALIDARG);
	client_forget(&w.client);
	expect_bytes(&f, 0);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(alf_15_cpu_writes_are_flushed_once_before_submission),
		BOTH(alf_15_lock_06_a_readonly_lock_causes_no_flush),
		BOTH(alf_15_a_coherent_aperture_needs_no_flush),
		BOTH(alf_14_without_cached_there_is_no_flush),
		BOTH(alf_15_eviction_flushes_cpu_writes),
		BOTH(alf_15_lock_37_each_use_of_a_locked_aperture_allocation_flushes),
		BOTH(alf_15_pag_14_a_retained_copy_is_flushed_before_the_gpu_reads_it),
		BOTH(cch_01_cch_02_a_user_mode_driver_flushes_a_range),
	};

	return cmocka_run_group_tests_name("coherence", tests, NULL, NULL);
}
