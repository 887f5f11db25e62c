/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "grow.h"

bool grow_array(void **array, uint32_t *capacity, uint32_t count, size_t element_size)
{
	uint32_t wanted = *capacity ? *capacity * 2 : 64;
	void *grown;

	if (count < *capacity)
		return true;
	if (wanted < *capacity)
		return false;
	grown = realloc(*array, wanted * element_size);
	if (!grown)
		return false;
	*array = grown;
	*capacity = wanted;
	return true;
}
