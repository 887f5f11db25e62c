/* SPDX-License-Identifier: MIT */
/*
 * The protocol of the fast lock in every interleaving; and that the model detects faulty protocols.
 */
#include "support/test.h"

#include "model/fast_lock/fast_lock_model.h"

static const enum model_thread thread_sets[][MODEL_THREADS] = {
	{MODEL_LOCKER, MODEL_LOCKER, MODEL_MOVER, MODEL_DESTROYER},
	{MODEL_LOCKER, MODEL_LOCKER, MODEL_SUBMITTER, MODEL_MOVER},
	{MODEL_LOCKER, MODEL_LOCKER, MODEL_SUBMITTER, MODEL_DESTROYER},
	{MODEL_LOCKER, MODEL_MOVER, MODEL_SUBMITTER, MODEL_DESTROYER},
	{MODEL_LOCKER, MODEL_LOCKER, MODEL_LOCKER, MODEL_NO_THREAD},
	{MODEL_LOCKER, MODEL_LOCKER, MODEL_LOSER, MODEL_MOVER},
	{MODEL_LOCKER, MODEL_LOCKER, MODEL_LOSER, MODEL_DESTROYER},
	{MODEL_LOCKER, MODEL_DISCARDER, MODEL_GROWER, MODEL_DESTROYER},
	{MODEL_LOCKER, MODEL_DISCARDER, MODEL_GROWER, MODEL_SUBMITTER},
	{MODEL_LOCKER, MODEL_DISCARDER, MODEL_DISCARDER, MODEL_MOVER},
	{MODEL_LOCKER, MODEL_DISCARDER, MODEL_GROWER, MODEL_LOSER},
};

static void every_interleaving_keeps_the_fast_lock_invariants(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(thread_sets) / sizeof(*thread_sets); i++) {
		struct model_result result = fast_lock_model_explore(thread_sets[i], MODEL_CORRECT);

		print_message("# thread set %u: %llu states\n", i,
			      (unsigned long long)result.states);
		if (result.broken)
			print_error("thread set %u: does not hold: %s\n", i, result.broken);
		assert_null(result.broken);
		assert_false(result.out_of_space);
		assert_true(result.states > 1000);
	}
}

/* Asserts that some set of threads breaks a claim. */
static void assert_found(enum model_fault fault)
{
	for (unsigned i = 0; i < sizeof(thread_sets) / sizeof(*thread_sets); i++) {
		struct model_result result = fast_lock_model_explore(thread_sets[i], fault);

		if (result.broken) {
			print_message("# fault %d: does not hold: %s\n", (int)fault, result.broken);
			return;
		}
	}
	fail_msg("fault %d breaks no claim", (int)fault);
}

static void each_faulty_protocol_is_found(void **state)
{
	(void)state;
	assert_found(MODEL_MOVER_DOES_NOT_DISABLE);
	assert_found(MODEL_SWAP_IGNORES_HANDLE);
	assert_found(MODEL_ADDRESS_AFTER_SWAP);
	assert_found(MODEL_SUBMISSION_IGNORED);
	assert_found(MODEL_UNLOCK_IGNORES_DISABLED);
	assert_found(MODEL_EPOCH_IGNORED);
	assert_found(MODEL_EPOCH_READ_AFTER_DEVICE_CHECK);
	assert_found(MODEL_EPOCH_ADVANCED_BEFORE_LOSS);
	assert_found(MODEL_GROWER_DOES_NOT_DISABLE);
	assert_found(MODEL_DISCARD_IGNORES_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_interleaving_keeps_the_fast_lock_invariants),
		cmocka_unit_test(each_faulty_protocol_is_found),
	};

	return cmocka_run_group_tests_name("fast_lock_model", tests, NULL, NULL);
}
