/* SPDX-License-Identifier: MIT */
/*
 * What the kernel does in addition once vmm_nt_verify_drivers was called: blocks of pool that end
 * at a page that cannot be accessed, the MDLs of the library likewise (nt_guarded.c), and the order
 * of spin locks (nt_lock_order.c).
 */
#ifndef VMM_NT_NT_VERIFY_H
#define VMM_NT_NT_VERIFY_H

#include "nt/nt_internal.h"

struct nt_pool_block {
	struct nt_pool_block *next; /* in its hash chain */
	char *pointer;
	char *raw;
	uint64_t size_bytes;
	uint32_t tag;
	bool paged;
	bool is_mdl;            /* an MDL of the library, in no table of blocks */
	bool has_range;         /* physical pages (nt_pool_add_range) */
	uint64_t guarded_bytes; /* of `raw`, before the guard page; 0: ordinary memory */
	/* with the option, where it was allocated: slot VMM_NT_SLOT_PLACE, the return address */
	uint64_t place;
	const void *caller;
};

/* ---- nt_guarded.c ---- */
enum { NT_GUARDED_FREED = 256, NT_GUARDED_LIVE = 8192 };

struct nt_guarded {
	/* blocks freed last, which stay inaccessible; guarded by memory */
	struct nt_pool_block *freed[NT_GUARDED_FREED];
	uint32_t freed_next;
	struct nt_pool_block *mdls; /* of the library; guarded by memory */
	_Atomic uint32_t live;
};
/*
 * Gives the block separate pages, at whose end it lies; a block of a page or more begins at their
 * start. Returns false if there are too many of them or no memory is left: the block then is
 * an ordinary one.
 */
bool nt_guarded_allocate(struct vmm_nt *nt, struct nt_pool_block *block, uint64_t alignment);
/* Makes a block inaccessible that is in no table, and keeps it for later accesses. */
void nt_guarded_free(struct vmm_nt *nt, struct nt_pool_block *block);
/*
 * NT-25: an MDL of the library, which ends at a page that cannot be accessed and is inaccessible
 * after it was destroyed. NULL: too many, or no memory: the MDL is then ordinary memory, and
 * nt_guarded_mdl_destroy returns false.
 */
void *nt_guarded_mdl_create(struct vmm_nt *nt, size_t size_bytes);
bool nt_guarded_mdl_destroy(struct vmm_nt *nt, const void *mdl);
void nt_guarded_finish(struct vmm_nt *nt);

/* ---- nt_lock_order.c ---- */
struct nt_lock_order *nt_lock_order_create(void); /* NULL: no memory */
/* The thread took the lock, or is about to wait for it. CALLER: the return address. */
void nt_lock_order_take(struct vmm_nt *nt, uint32_t thread, const void *lock, const void *caller);
/* The same without an edge: a try that succeeded. */
void nt_lock_order_hold(struct vmm_nt *nt, uint32_t thread, const void *lock, const void *caller);
void nt_lock_order_release(struct vmm_nt *nt, uint32_t thread, const void *lock);
/* Memory in which locks may have been is used for something else. */
void nt_lock_order_forget(struct vmm_nt *nt, const void *memory, uint64_t size_bytes);

#endif
