/* SPDX-License-Identifier: MIT */
/* Address ranges: what memory objects and views do alike. */
#ifndef VMM_OS_OS_MAPPING_H
#define VMM_OS_OS_MAPPING_H

#include "os/os.h"

/*
 * An inaccessible range, aligned to a huge page if it is at least as large as one: the kernel maps
 * a huge page only where address and file offset are congruent. NULL when there is no room. Freed
 * with munmap.
 */
char *vmm_os_reserve_addresses(uint64_t size_bytes);
/*
 * Replaces what is mapped there by a part of a memory object, in one step; NULL when out of memory.
 * POPULATE: with its pages, whether or not they will be touched.
 */
enum { VMM_OS_MAP_POPULATE = 1, VMM_OS_MAP_READ_ONLY = 2 };
char *vmm_os_map_over(char *address, uint64_t length, int fd, uint64_t offset, uint32_t how);
/* A new memfd, of the caller's. */
vmm_status vmm_os_open_object(const char *name, uint64_t size_bytes, int *fd) VMM_MUST_CHECK;
/* From now on its size stays. */
bool vmm_os_seal_size(int fd);
/* What that viewer may be given of the start of the range, and how much that is; it asserts that there is something. */
uint64_t vmm_os_find_shown(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			   uint64_t owner, int *fd, uint64_t *at);
/* What lies over an object that is not mapped any more: nobody uses it. */
void vmm_os_private_finish(struct vmm_os_memory_record *record);
/* The pages of the range are given back: what was asked for there counts no more. */
void vmm_os_memory_forget(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length);

#endif
