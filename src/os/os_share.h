/* SPDX-License-Identifier: MIT */
/*
 * The descriptors that a host has for its clients, and the share of each client (os_share.c). A
 * client's share is set aside when it connects. A descriptor that the library opens for a client,
 * and keeps, is charged to it until it is closed. Beyond its share a client borrows from what is
 * set aside for no client. So a client that uses up descriptors takes none that another client has
 * a share of. Any thread may call; nothing is called with the lock of a budget.
 */
#ifndef VMM_OS_SHARE_H
#define VMM_OS_SHARE_H

#include "base/base.h"

struct vmm_os_budget;
struct vmm_os_share;

/* Returns the descriptors that this process can still open and that a server need not keep back. */
uint32_t vmm_os_free_descriptors(void);
/* NULL: no memory. */
struct vmm_os_budget *vmm_os_budget_create(uint32_t descriptors);
/* All shares have ended. What is still charged to them, ends with its descriptors. */
void vmm_os_budget_end(struct vmm_os_budget *budget);

/*
 * Sets `set_aside` descriptors aside for a client, which may have `limit` at most.
 * VMM_INSUFFICIENT_RESOURCES: the budget has not so many left. VMM_NO_MEMORY: no memory.
 */
vmm_status vmm_os_share_create(struct vmm_os_budget *budget, uint32_t set_aside, uint32_t limit,
			       struct vmm_os_share **share) VMM_MUST_CHECK;
/* The client has gone. Its objects that others still use stay charged until they end. */
void vmm_os_share_end(struct vmm_os_share *share);
/* Charges descriptors. false, and nothing is charged: the client has all that it may have. */
bool vmm_os_share_take(struct vmm_os_share *share, uint32_t count) VMM_MUST_CHECK;
void vmm_os_share_give(struct vmm_os_share *share, uint32_t count);
/* How many descriptors it has; how many charges were refused. */
uint32_t vmm_os_share_used(struct vmm_os_share *share);
uint32_t vmm_os_share_refused(const struct vmm_os_share *share);
/*
 * From now on vmm_os_charged charges the share with what the calling thread opens. NULL: nothing is
 * charged. Returns the share before.
 */
struct vmm_os_share *vmm_os_share_pay(struct vmm_os_share *share);

/*
 * Charges a new descriptor to the share for which the calling thread works. Returns the descriptor.
 * If the client may not have it, closes it, sets errno to EMFILE and returns -1. A negative `fd` is
 * returned as it is.
 */
int vmm_os_charged(int fd) VMM_MUST_CHECK;
/* Closes a descriptor that vmm_os_charged may have charged. */
void vmm_os_close_charged(int fd);

#endif
