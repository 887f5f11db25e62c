/* SPDX-License-Identifier: MIT */
/* UseAlternateVA while an eviction fails: a mapping is refused, or the miniport fails the copy. */
#include "world.h"

enum { ALTERNATE = ACQUIRE_APERTURE | USE_ALTERNATE_VA, BYTES = 4 * PAGE };

static const struct client_options small = {.vram_bytes = 2 * MIB, .aperture_bytes = 4 * MIB};

/* Returns whether the n-th mapping that the eviction asked for was made, and so refused. */
static bool evict_with_refusal(void **state, uint32_t n)
{
	struct world w;

	world_start(&w, state, &small);
	probe.edit_allocation = flag_swizzled;
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);

	probe.edit_allocation = NULL;
	D3DKMT_HANDLE all =
		allocate_in(&w.device, world_statistics(&w).segment[0].size_bytes, 0, VRAM);

	client_write(&w.device, a, BYTES, 0x900);
	use_now(&w, a, true);
	uint32_t *words = client_lock(&w.device, a, ALTERNATE);

	(void)vidmm_fail_nth(VIDMM_FAIL_MAPPING, n);
	use_now(&w, all, false);
	bool refused = !vidmm_fail_nth(VIDMM_FAIL_MAPPING, 0);

	assert_int_equal(probe_paging_count(DXGK_OPERATION_SPECIAL_LOCK_TRANSFER, NULL), 1);
	for (uint32_t i = 0; i < BYTES / 4; i++) {
		assert_int_equal(words[i], 0x900 + i);
		words[i] = 0x1900 + i;
	}
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_expect(&w.device, a, BYTES, 0x1900);
	world_stop(&w);
	return refused;
}

static void lkr_07_q_480_a_refused_mapping_loses_nothing_of_an_alternate_address(void **state)
{
	uint32_t n = 1;

	while (evict_with_refusal(state, n))
		n++;
	assert_true(n > 1);
}

static bool fail_special(void *context, DXGKARG_BUILDPAGINGBUFFER *args, NTSTATUS *status)
{
	(void)context;
	*status = STATUS_UNSUCCESSFUL;
	return args->Operation == DXGK_OPERATION_SPECIAL_LOCK_TRANSFER;
}

/* The adapter is removed. Stores that waited for the move go on, and so do later ones. */
static void lkr_07_pag_09_stores_do_not_wait_for_an_eviction_that_failed(void **state)
{
	struct client_context context;
	struct client_device other;
	struct world w;

	world_start(&w, state, &small);
	probe.edit_allocation = flag_swizzled;
	D3DKMT_HANDLE a = allocate_in(&w.device, BYTES, CPU, VRAM);

	probe.edit_allocation = NULL;
	client_open(&w.client, &other);
	client_context(&other, 0, &context);
	D3DKMT_HANDLE all =
		allocate_in(&other, world_statistics(&w).segment[0].size_bytes, 0, VRAM);

	use_now(&w, a, true);
	volatile uint32_t *words = client_lock(&w.device, a, ALTERNATE);

	words[0] = 0x900;
	probe.answer_paging = fail_special;
	client_reference(&context, all, true);
	(void)client_try_submit(&context);
	client_idle(&w.client);
	probe.answer_paging = NULL;
	assert_int_equal(w.client.fatals, 1);
	w.expect_fatal = true;
	words[0] = 0x901;
	assert_int_equal(words[0], 0x901);
	client_context_end(&context);
	client_close(&other);
	client_forget(&w.client);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SIM(lkr_07_q_480_a_refused_mapping_loses_nothing_of_an_alternate_address),
		BOTH(lkr_07_pag_09_stores_do_not_wait_for_an_eviction_that_failed),
	};

	return cmocka_run_group_tests_name("failed evictions of alternate addresses", tests, NULL,
					   NULL);
}
