/* SPDX-License-Identifier: MIT */
/* Whoever keeps stores of a client from landing; freezer.c. */
#ifndef VMM_SERVE_FREEZER_H
#define VMM_SERVE_FREEZER_H

#include "base/base.h"

#include <stdatomic.h>

/* How long is waited at most for the first client that is late; for each one behind it half as long. */
#define VMM_FREEZER_MS 4000u

struct vmm_freezer;
/* late: how many clients were late, for all freezers of a server. NULL: no memory, or no thread. The descriptor stays the caller's. */
struct vmm_freezer *vmm_freezer_create(int userfault, _Atomic uint32_t *late);
/* When its thread is through with what it was asked for, which may take as long as the client likes. */
void vmm_freezer_destroy(struct vmm_freezer *freezer);
/* VMM_NOT_SUPPORTED: also when it takes too long, and then for all that comes behind it. */
vmm_status vmm_freezer_freeze(struct vmm_freezer *freezer, uint64_t address,
			      uint64_t length) VMM_MUST_CHECK;
/* Soon; nobody waits for that. */
void vmm_freezer_thaw(struct vmm_freezer *freezer, uint64_t address, uint64_t length);

#endif
