/* SPDX-License-Identifier: MIT */
/*
 * handle: D3DKMT handles. A table per process maps a 32-bit handle to an object pointer (HND-01). A
 * wrong type, an old generation, another process's or an invented number is never found.
 *
 * Layout of a handle (HND-02, HND-04): bit 31-30 generation (1 to 3), bit 29-6 index, bit 5-0 the
 * table's kind: 0 for a process, 2 for the handles by which resources are shared (HND-05). So the
 * first handle is 0x40000000 and each further one is 0x40 more (HND-03). Freed slots are reused
 * first-in-first-out so that a stale handle stays detectable as long as possible. Not thread safe:
 * the owner locks (look-up included), but for what was shown: that is found without a lock, too.
 */
#ifndef VMM_HANDLE_HANDLE_H
#define VMM_HANDLE_HANDLE_H

#include <stdatomic.h>
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
	_Atomic(void *) object;
	_Atomic uint32_t
		key; /* the handle with its type in the low bits: one compare checks all of it */
	_Atomic uint32_t next; /* the next free slot; of a live one: VMM_HANDLE_SHOWN, or 0 */
};
#define VMM_HANDLE_SHOWN (UINT32_MAX - 1) /* the index of no slot */

#define VMM_HANDLE_GROWTHS 20u
struct vmm_handle_table {
	_Atomic(struct vmm_handle_entry *) entries;
	_Atomic uint32_t capacity;
	uint32_t used;
	uint32_t limit;           /* of `used`; 0: none */
	_Atomic uint32_t refused; /* creations, because of it; read without the lock */
	uint32_t kind;
	uint32_t free_head, free_tail; /* FIFO of slots; UINT32_MAX none */
	/* The smaller ones of before, into which somebody without the lock may still look. */
	struct vmm_handle_entry *old[VMM_HANDLE_GROWTHS];
	uint32_t old_count;
};

void vmm_handle_table_init(struct vmm_handle_table *table, enum vmm_handle_kind kind);
void vmm_handle_table_finish(struct vmm_handle_table *table); /* asserts that it is empty */
/* 0 when out of memory, out of indices or at the limit. */
uint32_t vmm_handle_create(struct vmm_handle_table *table, enum vmm_handle_type type,
			   void *object) VMM_MUST_CHECK;
/* Asserts that it is live. True: it was shown, so that somebody may have its address without the lock. */
bool vmm_handle_destroy(struct vmm_handle_table *table, uint32_t handle);
/* Replaces the object behind a live handle. */
void vmm_handle_rebind(struct vmm_handle_table *table, uint32_t handle, void *object);

/* A table as it is, for many look-ups in one hold of the owner's lock. */
struct vmm_handle_view {
	const struct vmm_handle_entry *entries;
	uint32_t capacity;
};
static inline struct vmm_handle_view vmm_handle_view(const struct vmm_handle_table *table)
{
	return (struct vmm_handle_view){
		atomic_load_explicit(&table->entries, memory_order_relaxed),
		atomic_load_explicit(&table->capacity, memory_order_relaxed)};
}
/*
 * In a local table. Turned so that the bits of the kind, which are 0, come out above those of the index: one that has others is
 * beyond every capacity.
 */
static inline void *vmm_handle_find(const struct vmm_handle_view *view, uint32_t handle,
				    enum vmm_handle_type type)
{
	uint32_t index =
		(handle >> VMM_HANDLE_INDEX_SHIFT | handle << (32 - VMM_HANDLE_INDEX_SHIFT)) &
		~(3u << VMM_HANDLE_INDEX_BITS); /* less the generation */

	if (vmm_unlikely(index >= view->capacity))
		return NULL;
	const struct vmm_handle_entry *entry = &view->entries[index];
	if (vmm_unlikely(atomic_load_explicit(&entry->key, memory_order_relaxed) !=
			 handle + (uint32_t)type))
		return NULL;
	return atomic_load_explicit(&entry->object, memory_order_relaxed);
}

/*
 * NULL unless the handle is live and of that type. The hot path of every call: one load, two
 * compares. A free slot keeps its last generation with the type FREE, which nobody looks up, so it
 * needs no check of its own.
 */
static inline void *vmm_handle_lookup(const struct vmm_handle_table *table, uint32_t handle,
				      enum vmm_handle_type type)
{
	const struct vmm_handle_view view = vmm_handle_view(table);

	return vmm_handle_find(&view, handle - table->kind, type);
}

/*
 * The same without the owner's lock, of what was shown; in a local table. Only an address, of what may be gone: who wants to
 * use it says so where its end looks (vmm_os_announce) and looks up a second time. If that gives the same address,
 * it stays until the caller has said that it is through.
 */
static inline void *vmm_handle_peek(const struct vmm_handle_table *table, uint32_t handle,
				    enum vmm_handle_type type)
{
	uint32_t index = handle >> VMM_HANDLE_INDEX_SHIFT & ((1u << VMM_HANDLE_INDEX_BITS) - 1);

	/* In this order: the entries are at least as new, and as many. */
	if (vmm_unlikely(index >= atomic_load_explicit(&table->capacity, memory_order_acquire) ||
			 (handle & ((1u << VMM_HANDLE_INDEX_SHIFT) - 1))))
		return NULL;
	const struct vmm_handle_entry *entry =
		&atomic_load_explicit(&table->entries, memory_order_acquire)[index];
	if (vmm_unlikely(atomic_load(&entry->next) != VMM_HANDLE_SHOWN ||
			 atomic_load(&entry->key) != handle + (uint32_t)type))
		return NULL;
	return atomic_load_explicit(&entry->object, memory_order_relaxed);
}
/* From here on vmm_handle_peek finds it; asserts that it is live. */
void vmm_handle_show(struct vmm_handle_table *table, uint32_t handle);

/* Why a look-up failed, for findings: "destroyed", "wrong type (context)". Static strings. */
const char *vmm_handle_explain(const struct vmm_handle_table *table, uint32_t handle,
			       enum vmm_handle_type type);
/* Calls fn for every live handle in index order. */
void vmm_handle_for_each(const struct vmm_handle_table *table,
			 void (*fn)(void *context, uint32_t handle, void *object), void *context);

#endif
