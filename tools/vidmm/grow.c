/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "grow.h"

bool grow_array(void **array, uint32_t *room, uint32_t count, size_t element_size)
{
	uint32_t wanted = *room ? *room * 2 : 64;
	void *grown;

	if (count < *room)
		return true;
	if (wanted < *room)
		return false;
	grown = realloc(*array, wanted * element_size);
	if (!grown)
		return false;
	*array = grown;
	*room = wanted;
	return true;
}
