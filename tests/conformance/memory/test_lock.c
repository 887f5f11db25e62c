/* SPDX-License-Identifier: MIT */
/*
 * LOCK: what a lock returns, refuses, and waits for. test_lock_flags.c covers all combinations of
 * flags.
 */
#include <errno.h>
#include <unistd.h>

#include "world.h"

static void lock_01_a_bit_in_value_is_the_field(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);
	D3DDDICB_LOCK args = {.hAllocation = a};
	static const struct {
		D3DDDICB_LOCKFLAGS fields;
		UINT value;
	} same[] = {
		{{.ReadOnly = 1}, READ_ONLY},
		{{.WriteOnly = 1}, WRITE_ONLY},
		{{.DonotWait = 1}, DONOT_WAIT},
		{{.IgnoreSync = 1}, IGNORE_SYNC},
		{{.LockEntire = 1}, LOCK_ENTIRE},
		{{.DonotEvict = 1}, DONOT_EVICT},
		{{.AcquireAperture = 1}, ACQUIRE_APERTURE},
		{{.Discard = 1}, DISCARD},
		{{.NoExistingReference = 1}, NO_EXISTING_REFERENCE},
		{{.UseAlternateVA = 1}, USE_ALTERNATE_VA},
		{{.IgnoreReadSync = 1}, IGNORE_READ_SYNC},
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_int_equal(same[i].fields.Value, same[i].value);
	args.Flags = same[0].fields;
	args.Flags.WriteOnly = 1;
	assert_int_equal(w.device.cb->pfnLockCb(w.device.handle, &args), E_INVALIDARG);
	expect_lock_refused(&w, a, READ_ONLY | WRITE_ONLY, E_INVALIDARG, "LOCK-07");
	world_stop(&w);
}

static void lock_02_reserved_bits_are_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	for (uint32_t bit = 11; bit < 32; bit++)
		expect_lock_refused(&w, a, 1u << bit, E_INVALIDARG, "LOCK-02");
	assert_non_null(client_lock(&w.device, a, 0));
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lock_03_the_next_lock_sees_what_the_last_one_wrote(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, 64 * KIB, CPU);

	client_write(&w.device, a, 64 * KIB, 0x1000);
	client_expect(&w.device, a, 64 * KIB, 0x1000);
	use_now(&w, a, false);
	client_expect(&w.device, a, 64 * KIB, 0x1000);
	evict_by_pressure(&w, a);
	client_expect(&w.device, a, 64 * KIB, 0x1000);
	world_stop(&w);
}

static void lock_03_a_fresh_allocation_reads_as_zero_wherever_it_is(void **state)
{
	static const uint32_t sets[] = {0, VRAM, APERTURE};
	enum { BYTES = 256 * 1024 };
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t round = 0; round < 6; round++) {
		/*
		 * First accessed by the CPU, or by the GPU in either segment, always where another
		 * allocation was before.
		 */
		D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, sets[round % 3]);

		if (round % 3)
			use_now(&w, a, false);
		const uint32_t *words = client_lock(&w.device, a, READ_ONLY);
		for (uint32_t n = 0; n < BYTES / 4; n++)
			assert_int_equal(words[n], 0);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		client_write(&w.device, a, BYTES, 0xAAAA0000);
		use_now(&w, a, true);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
	}
	world_stop(&w);
}

/* Asks the kernel, which does not fault. */
static bool is_readable(const void *address)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	bool readable = write(ends[1], address, 4) == 4;
	assert_true(readable || errno == EFAULT);
	close(ends[0]);
	close(ends[1]);
	return readable;
}

static void lock_03_a_stale_pointer_reaches_no_other_allocation(void **state)
{
	struct world w;
	struct client_device other;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	uint64_t vram = world_statistics(&w).segment[0].size_bytes;
	D3DKMT_HANDLE a = allocate_in(&w.device, vram, CPU, VRAM);
	D3DKMT_HANDLE theirs = allocate_in(&other, vram, CPU, VRAM);
	struct client_context context;

	client_context(&other, 0, &context);
	use_now(&w, a, true);
	uint32_t *stale = client_lock(&w.device, a, 0);
	assert_true(is_readable(stale));
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_fill(&context, theirs, vram, 0x5EC4E7);
	client_submit(&context); /* reuses its memory */
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	assert_false(is_readable(stale));
	/* At the next lock the same address shows the allocation's own content. */
	assert_ptr_equal(client_lock(&w.device, a, 0), stale);
	assert_int_equal(*stale, 0);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_context_end(&context);
	client_close(&other);
	world_stop(&w);
}

static void lock_04_the_address_is_unchanged_through_every_move(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, 64 * KIB, CPU);
	void *at = client_lock(&w.device, a, 0);

	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	assert_ptr_equal(client_lock(&w.device, a, 0), at);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	evict_by_pressure(&w, a);
	assert_ptr_equal(client_lock(&w.device, a, 0), at);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lock_04_a_locked_allocation_under_pressure_keeps_address_and_content(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = allocate_in(&w.device, 64 * KIB, CPU, VRAM);

	client_write(&w.device, a, 64 * KIB, 0x70);
	use_now(&w, a, true);
	uint32_t *words = client_lock(&w.device, a, 0);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	words[1] = 0xCAFE;
	evict_by_pressure(&w, a); /* no other victim is left */
	assert_int_equal(words[0], 0x70);
	assert_int_equal(words[1], 0xCAFE);
	words[2] = 0xF00D;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, false);
	words = client_lock(&w.device, a, 0);
	assert_int_equal(words[1], 0xCAFE);
	assert_int_equal(words[2], 0xF00D);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lock_05_a_plain_lock_waits_for_the_gpu(void **state)
{
	struct world w;
	struct helper h;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	for (uint32_t write = 0; write < 2; write++) {
		gate_close(&w);
		client_fill(&w.context, a, PAGE, 0x11 + write);
		client_submit(&w.context);
		lock_on_thread(&h, &w, a, 0);
		assert_int_equal(atomic_load(&h.state), 1);
		gate_open(&w);
		helper_join(&h);
		assert_int_equal(h.result, S_OK);
		assert_true(h.gate_was_open);
		assert_int_equal(*(uint32_t *)h.data, 0x11 + write);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		assert_int_equal(world_statistics(&w).lock_waits, write + 1);
	}
	world_stop(&w);
}

static void lock_05_a_lock_of_an_idle_allocation_does_not_wait(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU),
		      b = client_allocate(&w.device, PAGE, CPU);

	use_now(&w, b, true);
	gate_close(&w);
	client_reference(&w.context, a, true);
	client_submit(&w.context);
	client_lock(&w.device, b, 0); /* returns although the GPU executes something else */
	assert_int_equal(world_statistics(&w).lock_waits, 0);
	assert_int_equal(client_unlock(&w.device, b), S_OK);
	world_stop(&w);
}

/* A lock that waited looks everything up again. */
static void lock_31_lock_25_a_waiting_lock_rechecks_handle_and_offer(void **state)
{
	struct world w;
	struct helper gone, offered;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);
	D3DKMT_HANDLE b = client_allocate(&w.device, PAGE, CPU);
	D3DDDICB_OFFERALLOCATIONS offer = {
		.HandleList = &b, .NumAllocations = 1, .Priority = D3DDDI_OFFER_PRIORITY_LOW};

	gate_close(&w);
	client_reference(&w.context, a, true);
	client_reference(&w.context, b, true);
	client_submit(&w.context);
	lock_on_thread(&gone, &w, a, 0);
	lock_on_thread(&offered, &w, b, 0);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &offer), S_OK);
	gate_open(&w);
	helper_join(&gone);
	helper_join(&offered);
	assert_int_equal(gone.result, E_INVALIDARG);
	assert_null(gone.data);
	assert_int_equal(offered.result, E_INVALIDARG);
	assert_true(client_found(&w.client, "LOCK-31"));
	assert_true(client_found(&w.client, "LOCK-25"));
	client_forget(&w.client);
	world_stop(&w);
}

static void lock_07_readonly_with_writeonly_is_invalid(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	expect_lock_refused(&w, a, READ_ONLY | WRITE_ONLY, E_INVALIDARG, "LOCK-07");
	client_lock(&w.device, a, READ_ONLY);
	client_lock(&w.device, a, WRITE_ONLY);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

/* Busy with reads only, or with writes. The gate is closed when this returns. */
static D3DKMT_HANDLE make_busy(struct world *w, uint32_t segment_set, bool write)
{
	D3DKMT_HANDLE a = allocate_in(&w->device, PAGE, CPU, segment_set);

	use_now(w, a, true);
	gate_close(w);
	client_reference(&w->context, a, write);
	client_submit(&w->context);
	return a;
}

static void lock_08_donotwait_fails_at_once_while_busy(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = make_busy(&w, 0, false);

	expect_lock_declined(&w, a, 0);
	assert_int_equal(client_unlock(&w.device, a), E_INVALIDARG); /* no lock was counted */
	assert_true(client_found(&w.client, "LOCK-28"));
	client_forget(&w.client);
	gate_open(&w);
	client_idle(&w.client);
	client_lock(&w.device, a, DONOT_WAIT);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lock_10_ignoresync_with_donotwait_succeeds_while_busy(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	for (uint32_t write = 0; write < 2; write++) {
		D3DKMT_HANDLE a = make_busy(&w, APERTURE, write);

		client_lock(&w.device, a, IGNORE_SYNC | DONOT_WAIT);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		gate_open(&w);
	}
	world_stop(&w);
}

static void expect_wait(struct world *w, D3DKMT_HANDLE a, uint32_t flags)
{
	struct helper h;

	lock_on_thread(&h, w, a, flags);
	gate_open(w);
	helper_join(&h);
	assert_int_equal(h.result, S_OK);
	assert_true(h.gate_was_open);
	assert_int_equal(client_unlock(&w->device, a), S_OK);
}

static void lock_11_ignoresync_alone_waits(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	expect_wait(&w, make_busy(&w, APERTURE, false), IGNORE_SYNC);
	world_stop(&w);
}

static void lock_09_lock_12_lock_16_discard_overrides_donotwait_and_sync_flags(void **state)
{
	static const uint32_t flags[] = {DONOT_WAIT, IGNORE_SYNC | DONOT_WAIT, IGNORE_SYNC,
					 IGNORE_READ_SYNC, IGNORE_READ_SYNC | DONOT_WAIT};
	struct world w;

	world_start(&w, state, NULL);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		D3DKMT_HANDLE a = make_busy(&w, VRAM, true),
			      renamed = a; /* in memory only: LOCK-13 does not apply */

		assert_int_equal(client_try_lock(&w.device, &renamed, DISCARD | flags[i], NULL),
				 S_OK);
		assert_int_not_equal(renamed, a);
		assert_int_equal(client_unlock(&w.device, renamed), S_OK);
		gate_open(&w);
	}
	world_stop(&w);
}

static void lock_13_ignoresync_needs_an_aperture_and_linear_coherent_content(void **state)
{
	static const struct vidmm_registry_value incoherent = {"ApertureCoherent", 0};
	struct client_options options = {.registry = &incoherent, .registry_count = 1};
	static const uint32_t flags[] = {IGNORE_SYNC, IGNORE_SYNC | DONOT_WAIT, IGNORE_READ_SYNC};
	struct softgpu_allocation tiled = wish_of(64 * KIB, CPU | SOFTGPU_ALLOCATION_TILED_X, 0);
	struct world w;

	world_start(&w, state, &options);
	tiled.stride_bytes = 512;
	D3DKMT_HANDLE memory = allocate_in(&w.device, PAGE, CPU, VRAM);
	D3DKMT_HANDLE cached =
		allocate_in(&w.device, PAGE, CPU | SOFTGPU_ALLOCATION_CACHED, APERTURE);
	D3DKMT_HANDLE swizzled = allocate_wish(&w.device, &tiled);
	D3DKMT_HANDLE plain = allocate_in(&w.device, PAGE, CPU, 0);

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		expect_lock_refused(&w, memory, flags[i], E_INVALIDARG, "LOCK-13");
		expect_lock_refused(&w, cached, flags[i], E_INVALIDARG, "LOCK-13");
		expect_lock_refused(&w, swizzled, flags[i], E_INVALIDARG, "LOCK-13");
		client_lock(&w.device, plain, flags[i]);
		assert_int_equal(client_unlock(&w.device, plain), S_OK);
	}
	world_stop(&w);
}

static void lock_13_ignorereadsync_of_cached_is_allowed_in_a_coherent_aperture(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU | SOFTGPU_ALLOCATION_CACHED, APERTURE);

	client_lock(&w.device, a, IGNORE_READ_SYNC);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lock_14_ignoresync_with_acquireaperture_is_invalid(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	expect_lock_refused(&w, a, IGNORE_SYNC | ACQUIRE_APERTURE, E_INVALIDARG, "LOCK-14");
	client_lock(&w.device, a, ACQUIRE_APERTURE | DONOT_WAIT);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lock_15_ignorereadsync_waits_for_writes_only(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE read = make_busy(&w, APERTURE, false);

	client_lock(&w.device, read, IGNORE_READ_SYNC);
	assert_int_equal(client_unlock(&w.device, read), S_OK);
	gate_open(&w);
	expect_wait(&w, make_busy(&w, APERTURE, true), IGNORE_READ_SYNC);
	world_stop(&w);
}

static void lock_16_ignorereadsync_with_donotwait_fails_only_for_pending_writes(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE read = make_busy(&w, APERTURE, false);

	client_lock(&w.device, read, IGNORE_READ_SYNC | DONOT_WAIT);
	assert_int_equal(client_unlock(&w.device, read), S_OK);
	gate_open(&w);
	D3DKMT_HANDLE write = make_busy(&w, APERTURE, true);
	expect_lock_declined(&w, write, IGNORE_READ_SYNC);
	world_stop(&w);
}

static void lock_50_ignoresync_governs_with_donotwait_else_ignorereadsync(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE write = make_busy(&w, APERTURE, true);

	client_lock(&w.device, write, IGNORE_SYNC | IGNORE_READ_SYNC | DONOT_WAIT);
	assert_int_equal(client_unlock(&w.device, write), S_OK);
	expect_wait(&w, write, IGNORE_SYNC | IGNORE_READ_SYNC);
	D3DKMT_HANDLE read = make_busy(&w, APERTURE, false);
	client_lock(&w.device, read, IGNORE_SYNC | IGNORE_READ_SYNC);
	assert_int_equal(client_unlock(&w.device, read), S_OK);
	world_stop(&w);
}

static void lock_49_a_lock_evicts_from_a_segment_without_cpuvisible(void **state)
{
	static const struct vidmm_registry_value hidden = {"VramCpuVisible", 0};
	struct client_options options = {.registry = &hidden, .registry_count = 1};
	struct world w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE a = client_allocate(&w.device, 64 * KIB, CPU);

	client_write(&w.device, a, 64 * KIB, 0x4900);
	use_now(&w, a, true);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	expect_lock_refused(&w, a, DONOT_EVICT, D3DERR_NOTAVAILABLE, "LOCK-49");
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	client_expect(&w.device, a, 64 * KIB, 0x4900);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	client_lock(&w.device, a, DONOT_EVICT); /* LOCK-40: no effect if no eviction is needed */
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void lock_49_donotwait_does_not_wait_for_the_eviction(void **state)
{
	static const struct vidmm_registry_value hidden = {"VramCpuVisible", 0};
	struct client_options options = {.registry = &hidden, .registry_count = 1};
	struct world w;

	world_start(&w, state, &options);
	D3DKMT_HANDLE a = make_busy(&w, 0, false);

	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	/* It would have to be evicted while the GPU reads it. */
	expect_lock_declined(&w, a, IGNORE_SYNC);
	expect_lock_declined(&w, a, IGNORE_READ_SYNC);
	expect_wait(&w, a, IGNORE_READ_SYNC);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	world_stop(&w);
}

static void lock_40_donotevict_has_no_effect_if_no_eviction_is_needed(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	client_lock(&w.device, a, DONOT_EVICT);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	client_lock(&w.device, a, DONOT_EVICT);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(lock_01_a_bit_in_value_is_the_field),
		BOTH(lock_02_reserved_bits_are_refused),
		BOTH(lock_03_the_next_lock_sees_what_the_last_one_wrote),
		BOTH(lock_03_a_fresh_allocation_reads_as_zero_wherever_it_is),
		BOTH(lock_03_a_stale_pointer_reaches_no_other_allocation),
		BOTH(lock_04_the_address_is_unchanged_through_every_move),
		BOTH(lock_04_a_locked_allocation_under_pressure_keeps_address_and_content),
		BOTH(lock_05_a_plain_lock_waits_for_the_gpu),
		BOTH(lock_05_a_lock_of_an_idle_allocation_does_not_wait),
		BOTH(lock_31_lock_25_a_waiting_lock_rechecks_handle_and_offer),
		BOTH(lock_07_readonly_with_writeonly_is_invalid),
		BOTH(lock_08_donotwait_fails_at_once_while_busy),
		BOTH(lock_09_lock_12_lock_16_discard_overrides_donotwait_and_sync_flags),
		BOTH(lock_10_ignoresync_with_donotwait_succeeds_while_busy),
		BOTH(lock_11_ignoresync_alone_waits),
		BOTH(lock_13_ignoresync_needs_an_aperture_and_linear_coherent_content),
		BOTH(lock_13_ignorereadsync_of_cached_is_allowed_in_a_coherent_aperture),
		BOTH(lock_14_ignoresync_with_acquireaperture_is_invalid),
		BOTH(lock_15_ignorereadsync_waits_for_writes_only),
		BOTH(lock_16_ignorereadsync_with_donotwait_fails_only_for_pending_writes),
		BOTH(lock_40_donotevict_has_no_effect_if_no_eviction_is_needed),
		BOTH(lock_49_a_lock_evicts_from_a_segment_without_cpuvisible),
		BOTH(lock_49_donotwait_does_not_wait_for_the_eviction),
		BOTH(lock_50_ignoresync_governs_with_donotwait_else_ignorereadsync),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
