/* SPDX-License-Identifier: MIT */
/*
 * handle: D3DKMT handles. A table per process maps a 32-bit handle to an object pointer (HND-01). A
 * wrong type, an old generation, another process's or an invented number is never found.
 *
 * Layout of a handle (HND-02, HND-04): bit 31-30 generation (1 to 3), bit 29-6 index, bit 5-0 the
 * table's kind: 0 for a process, 2 for the handles by which resources are shared (HND-05). So the
 * first handle is 0x40000000 and each further one is 0x40 more (HND-03). Freed slots are reused
 * first-in-first-out so that a stale handle stays detectable as long as possible. Not thread safe:
 * the owner locks (look-up included).
 */
#ifndef VMM_HANDLE_HANDLE_H
#define VMM_HANDLE_HANDLE_H

#include "base/base.h"

#define VMM_HANDLE_INDEX_SHIFT 6u
#define VMM_HANDLE_INDEX_BITS  24u

enum vmm_handle_kind { VMM_HANDLE_LOCAL = 0, VMM_HANDLE_GLOBAL = 2 };

enum vmm_handle_type {
	VMM_HANDLE_FREE = 0,
	VMM_HANDLE_ADAPTER,
	VMM_HANDLE_DEVICE,
	VMM_HANDLE_CONTEXT,
	VMM_HANDLE_RESOURCE,
	VMM_HANDLE_ALLOCATION,
	VMM_HANDLE_SYNC,
	VMM_HANDLE_SHARED,
	VMM_HANDLE_PAGING_QUEUE,
	VMM_HANDLE_TRIM,
	VMM_HANDLE_KEYED,
	VMM_HANDLE_HW_CONTEXT,
	VMM_HANDLE_HW_QUEUE,
	VMM_HANDLE_TYPE_COUNT
};

struct vmm_handle_entry {
	void *object;
	uint32_t key; /* the handle with its type in the low bits: one compare checks all of it */
	uint32_t next_free;
};

struct vmm_handle_table {
	struct vmm_handle_entry *entries;
	uint32_t capacity, used;
	uint32_t kind;
	uint32_t free_head, free_tail; /* FIFO of slots; UINT32_MAX none */
};

void vmm_handle_table_init(struct vmm_handle_table *table, enum vmm_handle_kind kind);
void vmm_handle_table_finish(struct vmm_handle_table *table); /* asserts that it is empty */
/* 0 when out of memory or out of indices. */
uint32_t vmm_handle_create(struct vmm_handle_table *table, enum vmm_handle_type type,
			   void *object) VMM_MUST_CHECK;
void vmm_handle_destroy(struct vmm_handle_table *table,
			uint32_t handle); /* asserts that it is live */
/* Replaces the object behind a live handle. */
void vmm_handle_rebind(struct vmm_handle_table *table, uint32_t handle, void *object);

/*
 * NULL unless the handle is live and of that type. The hot path of every call: one load, two
 * compares. A free slot keeps its last generation with the type FREE, which nobody looks up, so it
 * needs no check of its own.
 */
static inline void *vmm_handle_lookup(const struct vmm_handle_table *table, uint32_t handle,
				      enum vmm_handle_type type)
{
	uint32_t index = handle >> VMM_HANDLE_INDEX_SHIFT & ((1u << VMM_HANDLE_INDEX_BITS) - 1);

	if (vmm_unlikely(index >= table->capacity))
		return NULL;
	if (vmm_unlikely(table->entries[index].key != handle - table->kind + (uint32_t)type))
		return NULL;
	if (vmm_unlikely((handle & ((1u << VMM_HANDLE_INDEX_SHIFT) - 1)) != table->kind))
		return NULL;
	return table->entries[index].object;
}

/* Why a look-up failed, for findings: "destroyed", "wrong type (context)". Static strings. */
const char *vmm_handle_explain(const struct vmm_handle_table *table, uint32_t handle,
			       enum vmm_handle_type type);
/* Calls fn for every live handle in index order. */
void vmm_handle_for_each(const struct vmm_handle_table *table,
			 void (*fn)(void *context, uint32_t handle, void *object), void *context);

#endif
