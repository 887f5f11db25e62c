/* SPDX-License-Identifier: MIT */
/*
 * Replaces libFuzzer's mutators of bytes in builds without it, for targets that define none. An
 * input is cut and continued with another, and one of its bytes is changed.
 */
#include <string.h>

#include "guided.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	if (size > 0 && size <= max_size)
		data[seed * 7919u % size] ^= (uint8_t)(1u << seed % 8 | seed >> 3);
	return size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max_out_size, unsigned int seed)
{
	size_t cut = size1 ? seed * 31u % (size1 + 1) : 0;
	size_t more = size2 < max_out_size - cut ? size2 : max_out_size - cut;

	if (cut > max_out_size)
		cut = more = 0;
	memcpy(out, data1, cut);
	memcpy(out + cut, data2, more);
	return cut + more;
}
