/* SPDX-License-Identifier: MIT */
/* Write protection of a client's CPU mappings (write_protector.c). */
#ifndef VMM_SERVE_WRITE_PROTECTOR_H
#define VMM_SERVE_WRITE_PROTECTOR_H

#include "base/base.h"

#include <stdatomic.h>
#include <time.h>

/* How long freezing waits for the first late client, in ms; for each later one half as long. */
#define VMM_WRITE_PROTECTOR_MS 4000u

/*
 * Returns when to stop waiting for a client, on CLOCK_MONOTONIC. Each late client halves the time
 * for the next, so many late clients together cost at most twice the time of the first.
 */
struct timespec vmm_write_protector_deadline(uint32_t late);

struct vmm_write_protector;
/*
 * Creates the thread. late: counter of late clients of the server. Returns NULL if there is no
 * memory or no thread can be started. The caller keeps the descriptor.
 */
struct vmm_write_protector *vmm_write_protector_create(int userfault, _Atomic uint32_t *late);
/* Waits until the thread has done all jobs, which may take as long as the client likes. */
void vmm_write_protector_destroy(struct vmm_write_protector *write_protector);
/*
 * Write-protects a range. Returns VMM_NOT_SUPPORTED if that fails or takes too long; after it took
 * too long once, always.
 */
vmm_status vmm_write_protector_freeze(struct vmm_write_protector *write_protector, uint64_t address,
				      uint64_t length) VMM_MUST_CHECK;
/* Removes the protection; returns before that is done. */
void vmm_write_protector_thaw(struct vmm_write_protector *write_protector, uint64_t address,
			      uint64_t length);

#endif
