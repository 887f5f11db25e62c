/* SPDX-License-Identifier: MIT */
/* The protocol of gates in every interleaving; and that the model finds what is wrong with others. */
#include "support/test.h"

#include "model/gate/gate_model.h"

static const enum gate_thread crowds[][GATE_THREADS] = {
	{GATE_LOCKER, GATE_LOCKER, GATE_MOVER, GATE_DESTROYER},
	{GATE_LOCKER, GATE_LOCKER, GATE_SUBMITTER, GATE_MOVER},
	{GATE_LOCKER, GATE_LOCKER, GATE_SUBMITTER, GATE_DESTROYER},
	{GATE_LOCKER, GATE_MOVER, GATE_SUBMITTER, GATE_DESTROYER},
	{GATE_LOCKER, GATE_LOCKER, GATE_LOCKER, GATE_NOBODY},
	{GATE_LOCKER, GATE_LOCKER, GATE_LOSER, GATE_MOVER},
	{GATE_LOCKER, GATE_LOCKER, GATE_LOSER, GATE_DESTROYER},
};

static void every_interleaving_keeps_what_gates_promise(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(crowds) / sizeof(*crowds); i++) {
		struct gate_result result = gate_model_explore(crowds[i], GATE_NO_MISTAKE);

		print_message("# crowd %u: %llu states\n", i, (unsigned long long)result.states);
		if (result.broken)
			print_error("crowd %u: not so: %s\n", i, result.broken);
		assert_null(result.broken);
		assert_false(result.gave_up);
		assert_true(result.states > 1000);
	}
}

/* Some crowd shows it. */
static void assert_found(enum gate_mistake mistake)
{
	for (unsigned i = 0; i < sizeof(crowds) / sizeof(*crowds); i++) {
		struct gate_result result = gate_model_explore(crowds[i], mistake);

		if (result.broken) {
			print_message("# mistake %d: not so: %s\n", (int)mistake, result.broken);
			return;
		}
	}
	fail_msg("mistake %d makes no difference", (int)mistake);
}

static void each_mistake_is_found(void **state)
{
	(void)state;
	assert_found(GATE_MOVER_DOES_NOT_SHUT);
	assert_found(GATE_SWAP_IGNORES_HANDLE);
	assert_found(GATE_ADDRESS_AFTER_SWAP);
	assert_found(GATE_SUBMISSION_IS_NOT_SEEN);
	assert_found(GATE_UNLOCK_IGNORES_SHUT);
	assert_found(GATE_EPOCH_IS_NOT_SEEN);
	assert_found(GATE_EPOCH_BEHIND_THE_LOOK);
	assert_found(GATE_EPOCH_BEFORE_THE_LOSS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_interleaving_keeps_what_gates_promise),
		cmocka_unit_test(each_mistake_is_found),
	};

	return cmocka_run_group_tests_name("gate_model", tests, NULL, NULL);
}
