/* SPDX-License-Identifier: MIT */
/*
 * Checks whether a range of memory that a caller named exists, without touching it: a wrong pointer
 * leads to a refusal instead of a crash. Stateless.
 */
#include "os/os.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Checks by /proc/self/maps, which is in order of addresses. For kernels before 5.14. */
static bool is_listed(uint64_t first, uint64_t end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	if (!maps)
		return false;
	while (first < end && fgets(line, sizeof(line), maps)) {
		uint64_t from, to;
		char access[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, access) != 3 ||
		    to <= first)
			continue;
		if (from > first || strncmp(access, "rw", 2) != 0)
			break;
		first = to;
	}
	fclose(maps);
	return first >= end;
}

bool vmm_os_probe_writable(const void *address, uint64_t length)
{
	uint64_t first = (uint64_t)(uintptr_t)address, end;

	if (!address || !length || (first | length) % VMM_PAGE_SIZE ||
	    vmm_add_overflows(first, length, &end))
		return false;
	/*
	 * Makes every page present and writable as a store would, and fails where a store could
	 * not. Pages that exist already do not change.
	 */
	if (madvise((void *)(uintptr_t)address, length, MADV_POPULATE_WRITE) == 0)
		return true;
	return errno == EINVAL && is_listed(first, end);
}
