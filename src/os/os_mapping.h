/* SPDX-License-Identifier: MIT */
/* Address ranges: functions shared by memory objects, client objects and views. */
#ifndef VMM_OS_OS_MAPPING_H
#define VMM_OS_OS_MAPPING_H

#include "os/os.h"
#include "os/os_stores.h"

/*
 * Reserves an inaccessible range. It is aligned to a huge page if it is at least as large as one:
 * the kernel maps a huge page only where address and file offset are congruent. Returns NULL when
 * no addresses or no memory are left. Freed with munmap.
 */
char *vmm_os_reserve_addresses(uint64_t size_bytes);
/*
 * Replaces the mapping at the address by a part of a memory object, in one step. Returns NULL when
 * out of memory. POPULATE: makes all pages present, whether or not they will be touched.
 */
enum { VMM_OS_MAP_POPULATE = 1, VMM_OS_MAP_READ_ONLY = 2 };
char *vmm_os_map_over(char *address, uint64_t length, int fd, uint64_t offset, uint32_t how);

/* Creates a memfd, which the caller closes. */
vmm_status vmm_os_open_object(const char *name, uint64_t size_bytes, int *fd) VMM_MUST_CHECK;
/* Seals the size of the memfd. Returns false if that fails. */
bool vmm_os_seal_size(int fd);
/*
 * Finds the descriptor and offset (*fd, *at) that the viewer of this owner may be given for the
 * start of the range. Returns how many bytes of the range it covers. Asserts that the owner may see
 * the start.
 */
uint64_t vmm_os_find_visible(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length,
			     uint64_t owner, int *fd, uint64_t *at);
/* Frees all client objects of a memory object that is no longer mapped; none is in use. */
void vmm_os_client_object_finish(struct vmm_os_memory_record *record);
/*
 * The pages of the range were given back: earlier calls of vmm_os_memory_expect for them no longer
 * count.
 */
void vmm_os_memory_forget(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length);

#endif
