/* SPDX-License-Identifier: MIT */
/*
 * The range heap against a naive one: an array that says for each granule who holds it. Used by the
 * model test and by the fuzz program.
 */
#ifndef VMM_TESTS_MODEL_RANGE_MODEL_H
#define VMM_TESTS_MODEL_RANGE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* Runs random operations drawn from the seed. False: they differ, and stdout says at which step and
 * how. */
bool range_model_run(uint64_t seed, uint32_t steps);

#endif
