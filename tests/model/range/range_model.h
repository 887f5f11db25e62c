/* SPDX-License-Identifier: MIT */
/*
 * The range heap against a naive model: an array with the owner of each granule. Used by the model
 * test and by the fuzz program.
 */
#ifndef VMM_TESTS_MODEL_RANGE_MODEL_H
#define VMM_TESTS_MODEL_RANGE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Runs random operations drawn from the seed. Returns false if the results differ; stdout then says
 * at which step and how.
 */
bool range_model_run(uint64_t seed, uint32_t steps);

#endif
