/* SPDX-License-Identifier: MIT */
/* Structures of the public interface that begin with struct_size and grow at their end. */
#ifndef VMM_BASE_SIZED_H
#define VMM_BASE_SIZED_H

#include <string.h>

#include "base/base.h"

/*
 * Copies the structure `from`, of known_bytes, to that of a caller who may have been compiled with
 * another version of it, and who has set its struct_size. Bytes behind struct_size stay as they
 * are; bytes of a larger structure that `from` does not have become 0. struct_size itself stays.
 * Returns false, and writes nothing, if it is not set.
 */
static inline bool vmm_copy_sized(void *to, const void *from, uint32_t known_bytes)
{
	const uint32_t head = sizeof(uint32_t);
	uint32_t size;

	memcpy(&size, to, head);
	if (size < head)
		return false;
	uint32_t common = size < known_bytes ? size : known_bytes;
	memcpy((char *)to + head, (const char *)from + head, common - head);
	memset((char *)to + common, 0, size - common);
	return true;
}

#endif
