/* SPDX-License-Identifier: MIT */
/* Submissions whose working set barely fits or does not fit (SPL-01, SPL-12, SPL-13). */
#include "sched_world.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { IN_MEMORY = 1 }; /* residency */

struct reasons {
	uint32_t count;
	char text[256];
};

/* Events come from several threads at once. */
static pthread_mutex_t ears = PTHREAD_MUTEX_INITIALIZER;

static void on_reason(void *context, const struct vidmm_event *event, const char *text)
{
	struct reasons *r = context;

	(void)event;
	pthread_mutex_lock(&ears);
	r->count++;
	strncpy(r->text, text, sizeof(r->text) - 1);
	pthread_mutex_unlock(&ears);
}

static void watch_reasons(struct world *w, struct reasons *r)
{
	memset(r, 0, sizeof(*r));
	assert_int_not_equal(
		vidmm_subscribe(w->client.host, 1ull << VIDMM_EVENT_REASON, on_reason, r), 0);
}

static void use_all(struct client_context *context, const D3DKMT_HANDLE *a, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		world_use(context, a[i]);
}

static void spl_01_a_working_set_that_fits_is_one_portion(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[4];

	world_start(&w, state, NULL);
	for (uint32_t i = 0; i < 4; i++)
		a[i] = world_allocate(&w, 4 * MIB, WORLD_MEMORY);
	use_all(&w.context, a, 4);
	uint32_t length = w.context.command_bytes;
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 1);
	assert_int_equal(world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)
				 ->in.submit.DmaBufferSubmissionEndOffset,
			 length);
	world_stop(&w);
}

static void spl_12_a_working_set_that_cannot_fit_puts_the_device_in_error(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context others;
	struct reasons reasons;
	D3DKMT_HANDLE a[3];
	const struct scripted_allocation spec = {
		.size_bytes = 16 * MIB, .read_set = WORLD_MEMORY, .write_set = WORLD_MEMORY};

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	watch_reasons(&w, &reasons);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	D3DKMT_HANDLE b = world_allocate_as(&other, &spec);
	for (uint32_t i = 0; i < 3; i++)
		a[i] = world_allocate(&w, 8 * MIB, WORLD_MEMORY);
	use_all(&w.context, a, 2);
	client_submit(&w.context); /* fits, and completes */
	use_all(&w.context, a, 3);
	client_submit(&w.context); /* accepted; the out-of-memory error comes later */
	client_idle(&w.client);
	assert_int_equal(world_render_submits(&w), 1);
	assert_int_equal(reasons.count, 1);
	assert_memory_equal(reasons.text, "SPL-12:", 7);
	world_use(&w.context, a[0]);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(client_try_lock(&w.device, &a[0], 0, NULL), D3DDDIERR_DEVICEREMOVED);
	world_submit_use(&others, b); /* another device may use all of it */
	client_idle(&w.client);
	assert_int_equal(world_render_submits(&w), 2);
	world_assert_fences(&w);
	client_context_end(&others);
	client_close(&other);
	world_stop(&w);
}

/*
 * The packet that cannot run completes in order: packets around it are not delayed, and its buffers
 * become free.
 */
static void spl_12_other_queued_packets_complete_after_an_out_of_memory_packet(void **state)
{
	struct world w;
	struct client_context copy;
	D3DKMT_HANDLE a[3];

	world_start(&w, state, NULL);
	client_context(&w.device, 1, &copy);
	D3DKMT_HANDLE all = world_allocate(&w, 16 * MIB, WORLD_MEMORY);
	for (uint32_t i = 0; i < 3; i++)
		a[i] = world_allocate(&w, 8 * MIB, WORLD_MEMORY);
	world_submit_use(&w.context, all);
	scripted_complete(w.m, 1, 1);
	/* waits for the memory of `all`, and so do all packets behind it */
	world_submit_use(&w.context, a[0]);
	use_all(&w.context, a, 3);
	client_submit(&w.context);
	world_submit_use(&copy, a[1]);
	world_submit_use(&w.context, a[2]);
	assert_int_equal(world_render_submits(&w), 1);
	D3DKMT_HANDLE locked = a[1];
	assert_int_equal(client_try_lock(&w.device, &locked, 0x4, NULL), D3DERR_WASSTILLDRAWING);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 4);
	assert_int_equal(client_try_lock(&w.device, &locked, 0x4, NULL), D3DDDIERR_DEVICEREMOVED);
	/* only destruction remains possible */
	assert_int_equal(client_deallocate(&w.device, a[2]), S_OK);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_DESTROY_ALLOCATION), 1);
	world_assert_fences(&w);
	world_stop(&w);
}

static void spl_13_idle_allocations_of_other_devices_are_evicted_first(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context others;
	const struct scripted_allocation spec = {
		.size_bytes = 4 * MIB, .read_set = WORLD_MEMORY, .write_set = WORLD_MEMORY};

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	for (uint32_t i = 0; i < 4; i++)
		world_submit_use(&others, world_allocate_as(&other, &spec));
	D3DKMT_HANDLE all = world_allocate(&w, 16 * MIB, WORLD_MEMORY);
	world_submit_write(&w.context, all, 16 * MIB - 4, 0x55);
	world_run(&w);
	assert_int_equal(world_word(&w, all, 16 * MIB - 4), 0x55);
	client_context_end(&others);
	client_close(&other);
	world_stop(&w);
}

/*
 * The larger part of the set lies in the middle of 16 MiB, with 4 MiB on each side. The other 7 MiB
 * fit only if it moves.
 */
static void spl_13_a_part_of_the_set_in_the_middle_is_placed_anew(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE below = world_allocate(&w, 4 * MIB, WORLD_MEMORY);
	D3DKMT_HANDLE middle = world_allocate(&w, 8 * MIB, WORLD_MEMORY);
	D3DKMT_HANDLE other = world_allocate(&w, 7 * MIB, WORLD_MEMORY);

	world_submit_use(&w.context, below);
	world_submit_write(&w.context, middle, 8 * MIB - 4, 0x77);
	world_run(&w);
	assert_int_equal(client_deallocate(&w.device, below), S_OK);
	world_run(&w);
	world_use(&w.context, middle);
	world_use(&w.context, other);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(client_residency(&w.device, middle), IN_MEMORY);
	assert_int_equal(client_residency(&w.device, other), IN_MEMORY);
	assert_int_equal(world_word(&w, middle, 8 * MIB - 4), 0x77);
	world_stop(&w);
}

/*
 * More uses than the journal of uses has entries, 8192, in another order each time. The victims are
 * still the least recently used.
 */
static void q_300_victims_are_least_recently_used_after_thousands_of_uses(void **state)
{
	enum { COUNT = 16, ROUNDS = 520 };
	D3DKMT_HANDLE a[COUNT];
	struct world w;

	world_start_lru(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	for (uint32_t i = 0; i < COUNT; i++)
		a[i] = world_allocate(&w, MIB, WORLD_MEMORY);
	for (uint32_t r = 0; r <= ROUNDS; r++) {
		for (uint32_t i = 0; i < COUNT; i++)
			world_use(&w.context, a[(i * 7 + r) % COUNT]);
		client_submit(&w.context);
		world_run(&w);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		for (uint32_t k = i; k < COUNT; k++)
			assert_int_equal(client_residency(&w.device, a[(k * 7 + ROUNDS) % COUNT]),
					 IN_MEMORY);
		world_submit_use(&w.context, world_allocate(&w, MIB, WORLD_MEMORY));
		world_run(&w);
		assert_int_not_equal(client_residency(&w.device, a[(i * 7 + ROUNDS) % COUNT]),
				     IN_MEMORY);
	}
	world_stop(&w);
}

static void spl_13_memory_in_flight_is_waited_for(void **state)
{
	struct world w;
	struct client_context copy;

	world_start(&w, state, NULL);
	client_context(&w.device, 1, &copy);
	D3DKMT_HANDLE a = world_allocate(&w, 8 * MIB, WORLD_MEMORY),
		      all = world_allocate(&w, 16 * MIB, WORLD_MEMORY);
	world_submit_use(&w.context, a);
	scripted_complete(w.m, 1, 1);
	world_submit_use(&copy, all);
	for (uint32_t i = 0; i < 50; i++)
		vidmm_settle(w.client.host);
	assert_int_equal(world_render_submits(&w), 1);
	scripted_complete(w.m, 0, 1);
	world_await(&w, VIDMM_DDI_BUILD_PAGING_BUFFER, 3);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 2);
	world_stop(&w);
}

/*
 * Many allocations take turns in memory for two: submission order is kept, no packet starves, and
 * content moves along.
 */
static void spl_13_packets_that_do_not_fit_together_run_in_submission_order(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[6];

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	for (uint32_t i = 0; i < 6; i++)
		a[i] = world_allocate(&w, 8 * MIB, WORLD_MEMORY);
	for (uint32_t round = 0; round < 5; round++)
		for (uint32_t i = 0; i < 6; i++) {
			world_use(&w.context, a[(i + 1) % 6]);
			world_write(&w.context, a[i], 4 * round, 0x1000 * round + i);
			client_submit(&w.context);
		}
	world_run(&w);
	for (uint32_t i = 0; i < 6; i++)
		for (uint32_t round = 0; round < 5; round++)
			assert_int_equal(world_word(&w, a[i], 4 * round), 0x1000 * round + i);
	world_assert_fences(&w);
	world_stop(&w);
}

/*
 * Resident parts of the working set may have to move so that the rest finds one contiguous free
 * range.
 */
static void spl_13_memory_is_compacted_for_a_fragmented_working_set(void **state)
{
	struct world w;
	D3DKMT_HANDLE a[4];

	world_start(&w, state, NULL);
	w.m->settings.complete_at_once = true;
	for (uint32_t i = 0; i < 4; i++) { /* four quarters of memory */
		a[i] = world_allocate(&w, 4 * MIB, WORLD_MEMORY);
		world_submit_write(&w.context, a[i], 0, 0x60 + i);
	}
	D3DKMT_HANDLE half = world_allocate(&w, 8 * MIB, WORLD_MEMORY);
	world_use(&w.context, a[0]); /* every other quarter, and an allocation of half the memory */
	world_use(&w.context, a[2]);
	world_write(&w.context, half, 0, 0x64);
	client_submit(&w.context);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 5);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(world_word(&w, a[i], 0), 0x60 + i);
	assert_int_equal(world_word(&w, half, 0), 0x64);
	world_stop(&w);
}

/*
 * OFR-01: queued packets keep the content of an allocation offered behind them. That must not block
 * the queue.
 */
static void spl_13_allocations_offered_behind_queued_work_can_be_evicted(void **state)
{
	struct world w;
	struct client_context copy;
	D3DDDICB_OFFERALLOCATIONS offer = {.NumAllocations = 1,
					   .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {.NumAllocations = 1};
	BOOL discarded = 1;

	world_start(&w, state, NULL);
	client_context(&w.device, 1, &copy);
	D3DKMT_HANDLE c = world_allocate(&w, 8 * MIB, WORLD_MEMORY),
		      a = world_allocate(&w, 8 * MIB, WORLD_MEMORY);
	D3DKMT_HANDLE h = world_allocate(&w, 8 * MIB, WORLD_MEMORY),
		      all = world_allocate(&w, 16 * MIB, WORLD_MEMORY);
	world_submit_use(&w.context, c);
	world_submit_write(&copy, a, 0, 0x70);
	scripted_complete(w.m, 1, 2); /* the fills; both run, and neither can be evicted */
	world_submit_use(&w.context, h);
	world_submit_use(&w.context, all);
	world_submit_write(&w.context, a, 4, 0x71);
	offer.HandleList = reclaim.HandleList = &a;
	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &offer), S_OK);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 5);
	reclaim.pDiscarded = &discarded;
	assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &reclaim), S_OK);
	assert_false(discarded);
	assert_int_equal(world_word(&w, a, 0), 0x70);
	assert_int_equal(world_word(&w, a, 4), 0x71);
	world_stop(&w);
}

/* ---- system memory ---- */

/* Memory for one of the two, and for the adapter and the contexts. */
static const struct client_options little = {.system_memory_bytes = 12 * MIB};

static void start_with_little(struct world *w, void **state, D3DKMT_HANDLE *a, D3DKMT_HANDLE *b)
{
	world_start_with(w, state, NULL, &little);
	world_open(w);
	*a = world_allocate(w, 8 * MIB, WORLD_APERTURE);
	*b = world_allocate(w, 8 * MIB, WORLD_APERTURE);
	world_submit_use(&w->context, *a);
	assert_int_equal(scripted_complete(w->m, 1, 1), 1); /* mapped */
	assert_int_equal(world_render_submits(w), 1);
}

static void pag_02_page_in_waits_for_system_memory_that_will_be_freed(void **state)
{
	struct world w;
	D3DKMT_HANDLE a, b;

	start_with_little(&w, state, &a, &b);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	world_submit_use(&w.context, b);
	assert_int_equal(world_render_submits(&w), 1);
	assert_int_equal(w.m->live_allocations, 2);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 2);
	assert_int_equal(client_residency(&w.device, b), 2);
	world_submit_use(&w.context, b);
	world_stop(&w);
}

/*
 * The GPU has finished with it, but it is not closed yet. On threads the worker may have closed it;
 * the submission then waits for paging that only this thread can complete.
 */
static void pag_02_page_in_waits_for_memory_of_objects_to_be_closed(void **state)
{
	struct world w;
	D3DKMT_HANDLE a, b;

	start_with_little(&w, state, &a, &b);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	assert_int_equal(scripted_complete(w.m, 0, 1), 1);
	world_submit_use(&w.context, b);
	world_run(&w);
	assert_int_equal(client_residency(&w.device, b), 2);
	world_submit_use(&w.context, b);
	world_stop(&w);
}

struct reason {
	pthread_mutex_t lock; /* events come from several threads */
	char text[256];
};

static void keep_reason(void *context, const struct vidmm_event *event, const char *text)
{
	struct reason *reason = context;

	(void)event;
	pthread_mutex_lock(&reason->lock);
	snprintf(reason->text, sizeof(reason->text), "%s", text);
	pthread_mutex_unlock(&reason->lock);
}

static void pag_02_without_system_memory_only_that_device_is_in_error(void **state)
{
	struct world w;
	struct client_device other;
	struct client_context others;
	struct reason reason = {.lock = PTHREAD_MUTEX_INITIALIZER};
	D3DKMT_HANDLE a, b;

	start_with_little(&w, state, &a, &b);
	client_open(&w.client, &other);
	client_context(&other, 0, &others);
	struct scripted_allocation spec = {.size_bytes = 64 * KIB, .flags = WORLD_CPU_VISIBLE};
	D3DKMT_HANDLE theirs = world_allocate_as(&other, &spec);
	world_run(&w);
	assert_int_not_equal(
		vidmm_subscribe(w.client.host, 1ull << VIDMM_EVENT_REASON, keep_reason, &reason),
		0);
	world_submit_use(&w.context, b);
	world_run(&w);
	pthread_mutex_lock(&reason.lock);
	assert_non_null(strstr(reason.text, "PAG-02: no system memory"));
	pthread_mutex_unlock(&reason.lock);
	world_use(&w.context, a);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_DEVICEREMOVED);
	world_submit_use(&others, theirs);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	world_run(&w);
	w.m->settings.complete_at_once = true;
	client_close(&other);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(spl_01_a_working_set_that_fits_is_one_portion),
		ON_BOTH(spl_12_a_working_set_that_cannot_fit_puts_the_device_in_error),
		ON_BOTH(spl_12_other_queued_packets_complete_after_an_out_of_memory_packet),
		ON_BOTH(spl_13_idle_allocations_of_other_devices_are_evicted_first),
		ON_BOTH(spl_13_a_part_of_the_set_in_the_middle_is_placed_anew),
		ON_BOTH(q_300_victims_are_least_recently_used_after_thousands_of_uses),
		ON_BOTH(spl_13_memory_in_flight_is_waited_for),
		ON_BOTH(spl_13_packets_that_do_not_fit_together_run_in_submission_order),
		ON_BOTH(spl_13_memory_is_compacted_for_a_fragmented_working_set),
		ON_BOTH(spl_13_allocations_offered_behind_queued_work_can_be_evicted),
		ON_BOTH(pag_02_page_in_waits_for_system_memory_that_will_be_freed),
		ON_SIM(pag_02_page_in_waits_for_memory_of_objects_to_be_closed),
		ON_BOTH(pag_02_without_system_memory_only_that_device_is_in_error),
	};

	return cmocka_run_group_tests_name("sched pressure", tests, NULL, NULL);
}
