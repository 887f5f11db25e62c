/* SPDX-License-Identifier: MIT */
/*
 * guided_calls, guided_kmt, guided_answers: the programs that refuse random calls, guided by
 * coverage. Each byte of an input is what the program would draw.
 */
#include "guided.h"
#include "refusal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	refusal_input(data, size);
	return 0;
}
