/* SPDX-License-Identifier: MIT */
/*
 * Blocks of pool on separate pages, so that an access behind the end, or of a freed block,
 * faults at the instruction. What is known of such a block is read without a lock by the report of
 * a crash, whose thread may be anywhere.
 */
#include "nt/nt_verify.h"

#include <string.h>

void vmm_nt_verify_drivers(struct vmm_nt *nt)
{
	struct nt_guarded *guarded;
	struct nt_lock_order *order;

	if (nt->guarded)
		return;
	guarded = vmm_calloc(1, sizeof(*guarded));
	order = nt_lock_order_create();
	if (!guarded || !order) {
		vmm_free(guarded);
		vmm_free(order);
		return;
	}
	nt->lock_order = order;
	nt->guarded = guarded;
}

bool nt_guarded_allocate(struct vmm_nt *nt, struct nt_pool_block *block, uint64_t alignment)
{
	uint64_t bytes = vmm_align_up(block->size_bytes ? block->size_bytes : 1, PAGE_SIZE);

	if (atomic_fetch_add(&nt->guarded->live, 1) >= NT_GUARDED_LIVE)
		goto out;
	block->raw = vmm_os_guarded_create(bytes);
	if (!block->raw)
		goto out;
	block->guarded_bytes = bytes;
	block->pointer = block->raw;
	if (alignment < PAGE_SIZE)
		block->pointer += (bytes - block->size_bytes) & ~(alignment - 1);
	return true;
out:
	atomic_fetch_sub(&nt->guarded->live, 1);
	return false;
}

static void destroy(struct nt_pool_block *block)
{
	if (!block)
		return;
	vmm_os_guarded_destroy(block->raw, block->guarded_bytes);
	vmm_free(block);
}

void nt_guarded_free(struct vmm_nt *nt, struct nt_pool_block *block)
{
	struct nt_guarded *guarded = nt->guarded;
	struct nt_pool_block **slot, *oldest;

	atomic_fetch_sub(&guarded->live, 1);
	if (!vmm_os_guarded_seal(block->raw, block->guarded_bytes)) {
		destroy(block);
		return;
	}
	nt_memory_lock(nt);
	slot = &guarded->freed[guarded->freed_next++ % NT_GUARDED_FREED];
	oldest = *slot;
	*slot = block;
	nt_memory_unlock(nt);
	destroy(oldest);
}

/* ---- MDLs that DDIs get (NT-25) ---- */

void *nt_guarded_mdl_create(struct vmm_nt *nt, size_t size_bytes)
{
	struct nt_pool_block *block = vmm_calloc(1, sizeof(*block));

	if (!block)
		return NULL;
	block->size_bytes = size_bytes;
	block->is_mdl = true;
	if (!nt_guarded_allocate(nt, block, sizeof(uint64_t))) {
		vmm_free(block);
		return NULL;
	}
	nt_memory_lock(nt);
	block->next = nt->guarded->mdls;
	nt->guarded->mdls = block;
	nt_memory_unlock(nt);
	return block->pointer;
}

bool nt_guarded_mdl_destroy(struct vmm_nt *nt, const void *mdl)
{
	struct nt_pool_block **link, *block;

	nt_memory_lock(nt);
	link = &nt->guarded->mdls;
	while (*link && (*link)->pointer != mdl)
		link = &(*link)->next;
	block = *link;
	if (block)
		*link = block->next;
	nt_memory_unlock(nt);
	if (block)
		nt_guarded_free(nt, block);
	return block != NULL;
}

void nt_guarded_finish(struct vmm_nt *nt)
{
	if (!nt->guarded)
		return;
	for (uint32_t i = 0; i < NT_GUARDED_FREED; i++)
		destroy(nt->guarded->freed[i]);
	vmm_free(nt->guarded);
	vmm_free(nt->lock_order);
	nt->guarded = NULL;
	nt->lock_order = NULL;
}

/* ---- for the report of a crash ---- */

static bool contains(const struct nt_pool_block *block, const char *address)
{
	return block && block->guarded_bytes &&
	       (uintptr_t)address - (uintptr_t)block->raw < block->guarded_bytes + PAGE_SIZE;
}

static const struct nt_pool_block *find(const struct vmm_nt *nt, const char *address, bool *freed)
{
	*freed = false;
	for (size_t i = 0; i < (size_t)1 << nt->pool_bits; i++)
		for (const struct nt_pool_block *b = nt->pool[i]; b; b = b->next)
			if (contains(b, address))
				return b;
	for (const struct nt_pool_block *b = nt->guarded->mdls; b; b = b->next)
		if (contains(b, address))
			return b;
	*freed = true;
	for (uint32_t i = 0; i < NT_GUARDED_FREED; i++)
		if (contains(nt->guarded->freed[i], address))
			return nt->guarded->freed[i];
	return NULL;
}

bool vmm_nt_guarded_block(const void *address, struct vmm_nt_block *found)
{
	const struct vmm_nt *nt = nt_of_thread();
	const struct nt_pool_block *block =
		nt && nt->guarded ? find(nt, address, &found->freed) : NULL;

	if (!block)
		return false;
	found->tag = block->tag;
	found->is_mdl = block->is_mdl;
	found->size_bytes = block->size_bytes;
	found->offset = (int64_t)((intptr_t)address - (intptr_t)block->pointer);
	found->place = block->place;
	found->caller = block->caller;
	return true;
}
