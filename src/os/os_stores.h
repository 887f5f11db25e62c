/* SPDX-License-Identifier: MIT */
/*
 * Stores through frozen views where a store cannot block (os_sim_stores.c). `views`: the frozen
 * ones of one address space, all addresses in this process. The caller serializes all calls of one
 * list.
 */
#ifndef VMM_OS_STORES_H
#define VMM_OS_STORES_H

#include "os/os.h"

/* From now on, stores to the range are noticed. VMM_NO_MEMORY: they are not. */
vmm_status vmm_os_stores_watch(struct vmm_list *views, char *address,
			       uint64_t size_bytes) VMM_MUST_CHECK;
/*
 * Before other memory is mapped over a part of the range, and after it: repeats the stores there.
 * The range is watched until all of it has been mapped so.
 */
void vmm_os_stores_take(const struct vmm_list *views, const char *address, uint64_t length);
void vmm_os_stores_repeat(struct vmm_list *views, char *address, uint64_t length);
/* Does nothing if the range is not watched. */
void vmm_os_stores_forget(struct vmm_list *views, const char *address);

#endif
