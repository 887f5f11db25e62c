/* SPDX-License-Identifier: MIT */
/* SWZ: swizzling ranges, from the lock that acquires one to its release. */
#include "world.h"

static struct vidmm_registry_value ranges(uint32_t count)
{
	return (struct vidmm_registry_value){"SwizzlingRanges", count};
}

static void start_with(struct world *w, void **state, uint32_t range_count)
{
	struct vidmm_registry_value value = ranges(range_count);
	struct client_options options = {.registry = &value, .registry_count = 1};

	world_start(w, state, &options);
}

static D3DKMT_HANDLE swizzled(struct world *w, uint64_t bytes, uint32_t segment_set)
{
	probe.edit_allocation = flag_swizzled;
	D3DKMT_HANDLE a = allocate_in(&w->device, bytes, CPU, segment_set);
	probe.edit_allocation = NULL;
	return a;
}

static HRESULT lock_level(struct world *w, D3DKMT_HANDLE a, uint32_t flags, UINT level, void **data)
{
	D3DDDICB_LOCK args = {.hAllocation = a, .PrivateDriverData = level, .Flags.Value = flags};
	HRESULT result = w->device.cb->pfnLockCb(w->device.handle, &args);

	assert_int_equal(args.hAllocation, a);
	if (data)
		*data = args.pData;
	return result;
}

static void touch_level(struct world *w, D3DKMT_HANDLE a, UINT level)
{
	assert_int_equal(lock_level(w, a, ACQUIRE_APERTURE | DONOT_EVICT, level, NULL), S_OK);
	assert_int_equal(client_unlock(&w->device, a), S_OK);
}

static void expect_calls(uint32_t acquired, uint32_t released)
{
	assert_int_equal(probe_count(PROBE_ACQUIRE), acquired);
	assert_int_equal(probe_count(PROBE_RELEASE), released);
}

static uint32_t of_linear_to_system(HANDLE allocation)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < probe_paging_count(DXGK_OPERATION_TRANSFER, allocation); i++)
		n += probe_find_paging(DXGK_OPERATION_TRANSFER, allocation, i)
			     ->paging.Transfer.Flags.Unswizzle;
	return n;
}

/*
 * Swizzled content was never evicted, so nothing is converted; and the range is retained (SWZ-13).
 */
static void swz_21_no_conversion_before_gpu_use_after_a_range_lock(void **state)
{
	struct world w;
	D3DKMT_HANDLE copy;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = swizzled(&w, 2 * PAGE, 0);
	HANDLE kmd = probe_last_created();

	copy = allocate_in(&w.device, 2 * PAGE, CPU, 0);
	use_now(&w, a, true);
	use_now(&w, copy, true);
	probe_forget();
	for (uint32_t round = 0; round < 3; round++) {
		uint32_t *words = client_lock(&w.device, a, ACQUIRE_APERTURE);

		for (uint32_t i = 0; i < 2 * PAGE / 4; i++)
			words[i] = 0x21000 + round + i;
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		client_copy(&w.context, a, copy, 2 * PAGE);
		client_submit(&w.context);
		client_expect(&w.device, copy, 2 * PAGE, 0x21000 + round);
	}
	assert_int_equal(probe_paging_count(-1, kmd), 0);
	expect_calls(1, 0);
	/* It is evicted in the form that it has (SWZ-22). */
	evict_by_pressure(&w, a);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, kmd), 1);
	assert_int_equal(of_linear_to_system(kmd), 0);
	world_stop(&w);
}

static void swz_01_only_acquireaperture_acquires_a_range(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = allocate_in(&w.device, 2 * PAGE, CPU, 0);

	use_now(&w, a, true);
	client_lock(&w.device, a, 0);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_calls(0, 0);
	client_lock(&w.device, a, ACQUIRE_APERTURE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_calls(1, 0);
	world_stop(&w);
}

static void swz_02_lock_38_the_acquire_call_has_the_documented_arguments(void **state)
{
	struct world w;
	void *data;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE before = allocate_in(&w.device, 3 * PAGE, CPU, VRAM),
		      a = allocate_in(&w.device, 2 * PAGE + 5, CPU, VRAM);
	HANDLE kmd = probe_last_created();

	use_now(&w, before, true);
	use_now(&w, a, true);
	const DXGKARG_BUILDPAGINGBUFFER *fill =
		&probe_find_paging(DXGK_OPERATION_FILL, kmd, 0)->paging;

	assert_int_equal(lock_level(&w, a, ACQUIRE_APERTURE, 7, &data), S_OK);
	const DXGKARG_ACQUIRESWIZZLINGRANGE *acquire_args = &probe_find(PROBE_ACQUIRE, 0)->range;

	assert_ptr_equal(acquire_args->hAllocation, kmd);
	assert_int_equal(acquire_args->PrivateDriverData, 7);
	assert_int_equal(acquire_args->RangeId, 0);
	assert_int_equal(acquire_args->SegmentId, IN_VRAM);
	assert_int_equal(acquire_args->RangeSize, 3 * PAGE);
	uint64_t address = (uint64_t)acquire_args->CPUTranslatedAddress.QuadPart;
	uint64_t offset = (uint64_t)fill->Fill.Destination.SegmentAddress.QuadPart;

	/*
	 * The CPU base of the segment plus the allocation's offset, which the other allocation
	 * shows.
	 */
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	touch_level(&w, before, 0);
	const struct probe_call *other = probe_find(PROBE_ACQUIRE, 1);
	uint64_t other_offset = (uint64_t)probe_find_paging(DXGK_OPERATION_FILL, other->object, 0)
					->paging.Fill.Destination.SegmentAddress.QuadPart;

	assert_int_equal(other->range.RangeId, 1);
	assert_int_equal(address - (uint64_t)other->range.CPUTranslatedAddress.QuadPart,
			 offset - other_offset);
	world_stop(&w);
}

static bool change_size(void *context, DXGKARG_ACQUIRESWIZZLINGRANGE *args, NTSTATUS *status)
{
	(void)context;
	args->RangeSize *= 2;
	*status = STATUS_SUCCESS;
	return true;
}

static bool refuse_some(void *context, DXGKARG_ACQUIRESWIZZLINGRANGE *args, NTSTATUS *status)
{
	NTSTATUS *left = context;

	(void)args;
	if (!left[1])
		return false;
	left[1]--;
	*status = left[0];
	return true;
}

static void swz_08_unsupported_is_not_retried(void **state)
{
	NTSTATUS left[] = {STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED, 1};
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE other = allocate_in(&w.device, PAGE, CPU, VRAM),
		      a = allocate_in(&w.device, PAGE, CPU, VRAM);

	use_now(&w, a, true);
	touch_level(&w, other, 0);
	probe_forget();
	probe.context = left;
	probe.answer_acquire = refuse_some;
	expect_lock_refused(&w, a, ACQUIRE_APERTURE | DONOT_EVICT, D3DERR_NOTAVAILABLE, "SWZ-10");
	expect_calls(1, 0);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	world_stop(&w);
}

static void swz_08_unavailable_releases_least_recently_used_ranges_of_others(void **state)
{
	NTSTATUS left[] = {STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE, 2};
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE b = allocate_in(&w.device, PAGE, CPU, VRAM);
	HANDLE kmd_b = probe_last_created();
	D3DKMT_HANDLE c = allocate_in(&w.device, PAGE, CPU, VRAM);
	HANDLE kmd_c = probe_last_created();
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, VRAM);

	touch_level(&w, b, 0);
	touch_level(&w, c, 0);
	touch_level(&w, b, 0); /* now the range of c is the least recently used */
	probe_forget();
	probe.context = left;
	probe.answer_acquire = refuse_some;
	touch_level(&w, a, 0);
	expect_calls(3, 2);
	assert_ptr_equal(probe_find(PROBE_RELEASE, 0)->object, kmd_c);
	assert_ptr_equal(probe_find(PROBE_RELEASE, 1)->object, kmd_b);
	assert_true(probe_position(probe_find(PROBE_ACQUIRE, 0)) <
		    probe_position(probe_find(PROBE_RELEASE, 0)));
	assert_true(probe_position(probe_find(PROBE_ACQUIRE, 1)) <
		    probe_position(probe_find(PROBE_RELEASE, 1)));
	world_stop(&w);
}

static void swz_08_q_13_a_range_in_use_by_a_lock_is_not_released(void **state)
{
	struct world w;

	start_with(&w, state, 1);
	D3DKMT_HANDLE held = allocate_in(&w.device, PAGE, CPU, VRAM),
		      a = allocate_in(&w.device, PAGE, CPU, VRAM);

	use_now(&w, a, true);
	client_lock(&w.device, held, ACQUIRE_APERTURE);
	probe_forget();
	expect_lock_refused(&w, a, ACQUIRE_APERTURE | DONOT_EVICT, D3DERR_NOTAVAILABLE, "SWZ-10");
	expect_calls(0, 0);
	assert_int_equal(client_unlock(&w.device, held), S_OK);
	touch_level(&w, a, 0); /* the same range: there is only one */
	expect_calls(1, 1);
	assert_int_equal(probe_find(PROBE_ACQUIRE, 0)->range.RangeId, 0);
	assert_true(probe_position(probe_find(PROBE_RELEASE, 0)) <
		    probe_position(probe_find(PROBE_ACQUIRE, 0)));
	world_stop(&w);
}

static void swz_03_an_acquire_that_changes_the_range_counts_as_failed(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = swizzled(&w, 4 * PAGE, VRAM);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, 4 * PAGE, 0x300);
	use_now(&w, a, false);
	probe.answer_acquire = change_size;
	D3DKMT_HANDLE handle = a;
	void *data;

	assert_int_equal(client_try_lock(&w.device, &handle, ACQUIRE_APERTURE, &data),
			 D3DERR_NOTAVAILABLE);
	assert_true(client_found(&w.client, "SWZ-03"));
	assert_true(client_found(&w.client, "LOCK-19"));
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	const uint32_t *words = client_lock(&w.device, a, ACQUIRE_APERTURE | LOCK_ENTIRE);

	assert_int_equal(words[1023], 0x300 + 1023);
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	assert_int_equal(of_linear_to_system(kmd), 1);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	probe.answer_acquire = NULL;
	client_forget(&w.client);
	world_stop(&w);
}

static void swz_06_an_acquired_range_is_reused_without_a_ddi_call(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, VRAM);

	for (uint32_t i = 0; i < 3; i++)
		touch_level(&w, a, 1);
	expect_calls(1, 0);
	use_now(&w, a, true); /* SWZ-21: no conversion is needed before the GPU uses it */
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, NULL), 0);
	touch_level(&w, a, 1);
	expect_calls(1, 0);
	world_stop(&w);
}

static void swz_07_each_private_data_value_has_its_own_range(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = allocate_in(&w.device, 8 * PAGE, CPU, VRAM);

	for (UINT round = 0; round < 2; round++)
		for (UINT level = 0; level < 40; level++)
			touch_level(&w, a, level);
	expect_calls(40, 0);
	for (UINT level = 0; level < 40; level++) {
		assert_int_equal(probe_find(PROBE_ACQUIRE, level)->range.RangeId, level);
		assert_int_equal(probe_find(PROBE_ACQUIRE, level)->range.PrivateDriverData, level);
	}
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	client_idle(&w.client);
	expect_calls(40, 40); /* SWZ-13 */
	world_stop(&w);
}

static void swz_12_one_range_too_many_evicts_the_allocation_and_its_ranges(void **state)
{
	struct world w;
	void *data;

	start_with(&w, state, 2);
	D3DKMT_HANDLE a = swizzled(&w, 4 * PAGE, VRAM);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, 4 * PAGE, 0x100);
	touch_level(&w, a, 0);
	touch_level(&w, a, 1);
	probe_forget();
	/* Not evicted, it keeps its ranges. */
	assert_int_equal(lock_level(&w, a, ACQUIRE_APERTURE | DONOT_EVICT, 2, NULL),
			 D3DERR_NOTAVAILABLE);
	client_forget(&w.client);
	touch_level(&w, a, 0);
	expect_calls(0, 0);
	assert_int_equal(lock_level(&w, a, ACQUIRE_APERTURE | LOCK_ENTIRE, 2, &data), S_OK);
	expect_calls(0, 2);
	assert_int_equal(of_linear_to_system(kmd), 1);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, kmd), 1);
	assert_true(probe_position(probe_find(PROBE_RELEASE, 1)) <
		    probe_position(probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 0)));
	assert_int_equal(((uint32_t *)data)[1024], 0x100 + 1024);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void swz_13_eviction_releases_and_unlocking_does_not(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = swizzled(&w, 4 * PAGE, VRAM);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, 4 * PAGE, 0x100);
	touch_level(&w, a, 3);
	touch_level(&w, a, 5);
	expect_calls(2, 0);
	probe_forget();
	evict_by_pressure(&w, a);
	expect_calls(0, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_ptr_equal(probe_find(PROBE_RELEASE, i)->object, kmd);
		assert_int_equal(probe_find(PROBE_RELEASE, i)->range.RangeId, i);
		assert_int_equal(probe_find(PROBE_RELEASE, i)->range.PrivateDriverData, 3 + 2 * i);
		assert_int_equal(probe_find(PROBE_RELEASE, i)->status, STATUS_SUCCESS);
	}
	/* SWZ-22: no lock needed the linear form, so it keeps its form. */
	assert_int_equal(
		probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 0)->paging.Transfer.Flags.Value,
		0x18);
	client_expect(&w.device, a, 4 * PAGE, 0x100);
	world_stop(&w);
}

static void swz_13_stopping_the_adapter_releases_acquired_ranges(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	touch_level(&w, allocate_in(&w.device, PAGE, CPU, VRAM), 0);
	touch_level(&w, allocate_in(&w.device, PAGE, CPU, 0), 9);
	world_stop(&w); /* destroying the device does it */
	expect_calls(2, 2);
	assert_true(probe_position(probe_find(PROBE_RELEASE, 1)) <
		    probe_position(probe_find(PROBE_STOP, 0)));
}

static void swz_04_evicted_content_is_paged_in_before_the_acquire(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = swizzled(&w, 4 * PAGE, VRAM);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, 4 * PAGE, 0x400); /* raw bytes, in system memory */
	assert_int_equal(client_residency(&w.device, a), EVICTED);
	probe_forget();
	const uint32_t *words = client_lock(&w.device, a, ACQUIRE_APERTURE);

	assert_int_equal(words[4095], 0x400 + 4095);
	const struct probe_call *in = probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 0);

	assert_int_equal(probe_paging_count(-1, kmd), 1);
	assert_int_equal(in->paging.Transfer.Flags.Value, 0x18);
	assert_int_equal(in->paging.Transfer.Destination.SegmentId, IN_VRAM);
	expect_calls(1, 0);
	assert_true(probe_position(in) < probe_position(probe_find(PROBE_ACQUIRE, 0)));
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void only_aperture(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index)
{
	flag_swizzled(context, info, index);
	info->PreferredSegment.Value = IN_APERTURE;
}

static void swz_04_content_in_an_aperture_is_moved_to_memory_first(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	probe.edit_allocation = only_aperture;
	D3DKMT_HANDLE a = allocate_in(&w.device, 4 * PAGE, CPU, 0);
	HANDLE kmd = probe_last_created();

	probe.edit_allocation = NULL;
	client_write(&w.device, a, 4 * PAGE, 0x500);
	use_now(&w, a, false);
	assert_int_equal(client_residency(&w.device, a), IN_APERTURE);
	probe_forget();
	const uint32_t *words = client_lock(&w.device, a, ACQUIRE_APERTURE | DONOT_EVICT);

	assert_int_equal(words[2048], 0x500 + 2048);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_calls(1, 0);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_UNMAP_APERTURE_SEGMENT, kmd), 1);
	assert_int_equal(probe_paging_count(DXGK_OPERATION_TRANSFER, kmd), 1);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	world_stop(&w);
}

static void swz_14_swz_15_range_locks_and_plain_locks_exclude_each_other(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = client_allocate(&w.device, PAGE, CPU);

	client_lock(&w.device, a, 0);
	expect_lock_refused(&w, a, ACQUIRE_APERTURE, E_INVALIDARG, "SWZ-14");
	client_lock(&w.device, a, 0); /* those nest (LOCK-27) */
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	expect_lock_refused(&w, a, ACQUIRE_APERTURE, E_INVALIDARG, "SWZ-14");
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_lock(&w.device, a, ACQUIRE_APERTURE);
	expect_lock_refused(&w, a, 0, E_INVALIDARG, "SWZ-15");
	expect_lock_refused(&w, a, ACQUIRE_APERTURE, E_INVALIDARG, "SWZ-15");
	expect_lock_refused(&w, a, DISCARD, E_INVALIDARG, "SWZ-15");
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_lock(&w.device, a, 0);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_lock(&w.device, a, ACQUIRE_APERTURE);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void swz_16_acquireaperture_of_an_aperture_only_allocation_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, APERTURE),
		      both = allocate_in(&w.device, PAGE, CPU, 0);

	expect_lock_refused(&w, a, ACQUIRE_APERTURE, E_INVALIDARG, "SWZ-16");
	expect_lock_refused(&w, a, ACQUIRE_APERTURE | LOCK_ENTIRE, E_INVALIDARG, "SWZ-16");
	expect_calls(0, 0);
	touch_level(&w, both, 0);
	world_stop(&w);
}

static void swz_18_lkr_06_rendering_under_a_range_lock_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, 0);

	client_lock(&w.device, a, ACQUIRE_APERTURE);
	client_reference(&w.context, a, false);
	assert_int_equal(client_try_submit(&w.context), D3DDDIERR_CANTRENDERLOCKEDALLOCATION);
	assert_true(client_found(&w.client, "SWZ-18"));
	client_forget(&w.client);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, true);
	client_lock(&w.device, a, 0); /* and it may be locked with another range */
	use_now(&w, a, true);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void swz_18_earlier_submissions_run_under_a_range_lock(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = allocate_in(&w.device, PAGE, CPU, 0);
	D3DKMT_HANDLE first = allocate_in(&w.device, 12 * MIB, 0, VRAM),
		      second = allocate_in(&w.device, 12 * MIB, 0, VRAM);

	use_now(&w, a, true);
	gate_close(&w);
	client_reference(&w.context, first, false);
	client_reference(&w.context, a, false);
	client_submit(&w.context);
	client_reference(&w.context, second, false); /* has to wait for the memory of the first */
	client_submit(&w.context);
	client_reference(&w.context, a, false); /* and this one behind it */
	client_submit(&w.context);
	client_lock(&w.device, a, ACQUIRE_APERTURE | IGNORE_READ_SYNC);
	gate_open(&w);
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, second), IN_VRAM);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	expect_calls(1, 0);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void swz_19_eviction_under_a_range_lock_keeps_address_and_bytes(void **state)
{
	struct world w;

	world_start(&w, state, NULL);
	D3DKMT_HANDLE a = swizzled(&w, 4 * PAGE, VRAM);
	HANDLE kmd = probe_last_created();

	client_write(&w.device, a, 4 * PAGE, 0x700);
	uint32_t *words = client_lock(&w.device, a, ACQUIRE_APERTURE);

	words[5] = 0x55;
	probe_forget();
	if (w.kind == VIDMM_HOST_SIM) { /* a kernel may have no write protection (userfaultfd) */
		evict_by_pressure(&w, a);
		assert_int_equal(of_linear_to_system(kmd), 1);
		expect_calls(0, 1);
		assert_true(probe_position(probe_find_paging(DXGK_OPERATION_TRANSFER, kmd, 0)) <
			    probe_position(probe_find(PROBE_RELEASE, 0)));
	}
	assert_int_equal(words[5], 0x55);
	assert_int_equal(words[4095], 0x700 + 4095);
	words[6] = 0x66;
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	use_now(&w, a, false);
	words = client_lock(&w.device, a, ACQUIRE_APERTURE);
	assert_int_equal(words[5], 0x55);
	assert_int_equal(words[6], 0x66);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(swz_21_no_conversion_before_gpu_use_after_a_range_lock),
		BOTH(swz_01_only_acquireaperture_acquires_a_range),
		BOTH(swz_02_lock_38_the_acquire_call_has_the_documented_arguments),
		BOTH(swz_03_an_acquire_that_changes_the_range_counts_as_failed),
		BOTH(swz_04_evicted_content_is_paged_in_before_the_acquire),
		BOTH(swz_04_content_in_an_aperture_is_moved_to_memory_first),
		BOTH(swz_06_an_acquired_range_is_reused_without_a_ddi_call),
		BOTH(swz_07_each_private_data_value_has_its_own_range),
		BOTH(swz_08_unsupported_is_not_retried),
		BOTH(swz_08_unavailable_releases_least_recently_used_ranges_of_others),
		BOTH(swz_08_q_13_a_range_in_use_by_a_lock_is_not_released),
		BOTH(swz_12_one_range_too_many_evicts_the_allocation_and_its_ranges),
		BOTH(swz_13_eviction_releases_and_unlocking_does_not),
		BOTH(swz_13_stopping_the_adapter_releases_acquired_ranges),
		BOTH(swz_14_swz_15_range_locks_and_plain_locks_exclude_each_other),
		BOTH(swz_16_acquireaperture_of_an_aperture_only_allocation_is_refused),
		BOTH(swz_18_lkr_06_rendering_under_a_range_lock_is_refused),
		BOTH(swz_18_earlier_submissions_run_under_a_range_lock),
		BOTH(swz_19_eviction_under_a_range_lock_keeps_address_and_bytes),
	};

	return cmocka_run_group_tests_name("swizzling ranges", tests, NULL, NULL);
}
