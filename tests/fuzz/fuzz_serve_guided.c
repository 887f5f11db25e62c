/* SPDX-License-Identifier: MIT */
/*
 * fuzz_serve_guided: the scripts of fuzz_serve.c, guided by coverage. With -Dguided=true (`./x
 * build fuzz`) it is linked with libFuzzer and run by `./x fuzz`. In other builds guided_main.c
 * runs it over its seeds. Scripts are mutated by steps (hostile_mutate.c), and sometimes by
 * libFuzzer's mutators.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "beside.h"
#include "guided.h"

static struct beside beside;

static void end(void)
{
	beside_end(&beside);
	hostile_print_counts(stderr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!beside.honest[0].generation) {
		beside_begin(&beside);
		(void)atexit(end);
	}
	beside_run(&beside, data, size);
	if (beside.wrong) {
		fprintf(stderr, "not true: %s\n", beside.wrong);
		abort();
	}
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	struct draw draw = {.seed = (seed + 1) * 0x9E3779B97F4A7C15u};

	if (draw_below(&draw, 8) == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	return hostile_mutate(&draw, data, size, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max_out_size, unsigned int seed)
{
	struct draw draw = {.seed = (seed + 1) * 0x9E3779B97F4A7C15u};

	return hostile_cross(&draw, data1, size1, data2, size2, out, max_out_size);
}
