/* SPDX-License-Identifier: MIT */
/*
 * handle: D3DKMT handles. A table per process maps a 32-bit handle to an object pointer (HND-01). A
 * handle of the wrong type, an old generation or another process, or an invented number, is never
 * found.
 *
 * Layout of a handle (HND-02, HND-04): bit 31-30 generation (1 to 3), bit 29-6 index, bit 5-0 the
 * kind of the table: 0 for a process, 2 for the global handles of shared resources (HND-05). So the
 * first handle is 0x40000000, and each further one is 0x40 more (HND-03). Freed slots are reused
 * first-in-first-out, so that a stale handle is detected as long as possible.
 *
 * Not thread-safe: the caller of every function holds the owner's lock. The exception is
 * vmm_handle_lookup_lockless.
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
	VMM_HANDLE_STOPPED, /* of a device whose adapter has stopped, or of an object of one */
	VMM_HANDLE_TYPE_COUNT
};

struct vmm_handle_entry {
	_Atomic(void *) object;
	/* The handle with its type in the low bits: one compare checks both. */
	_Atomic uint32_t key;
	_Atomic uint32_t next; /* free slots: the next one; live ones: VMM_HANDLE_LOCKLESS or 0 */
};
#define VMM_HANDLE_LOCKLESS (UINT32_MAX - 1) /* the index of no slot */

#define VMM_HANDLE_GROWTHS 20u
struct vmm_handle_table {
	_Atomic(struct vmm_handle_entry *) entries;
	_Atomic uint32_t capacity;
	uint32_t used;
	uint32_t limit;           /* limit of `used`; 0: none */
	_Atomic uint32_t refused; /* creations refused by the limit; read without the lock */
	uint32_t kind;
	uint32_t free_head, free_tail; /* FIFO of free slots; UINT32_MAX: none */
	/* The smaller arrays that this one replaced. A lock-free look-up may still read them. */
	struct vmm_handle_entry *old[VMM_HANDLE_GROWTHS];
	uint32_t old_count;
};

void vmm_handle_table_init(struct vmm_handle_table *table, enum vmm_handle_kind kind);
void vmm_handle_table_finish(struct vmm_handle_table *table); /* asserts that the table is empty */
/* Creates a handle. Returns 0 when out of memory, out of indexes or at the limit. */
uint32_t vmm_handle_create(struct vmm_handle_table *table, enum vmm_handle_type type,
			   void *object) VMM_MUST_CHECK;
/*
 * Destroys a live handle. Returns true if vmm_handle_enable_lockless was called for it: a thread
 * without the lock may then have a hazard pointer to the object.
 */
bool vmm_handle_destroy(struct vmm_handle_table *table, uint32_t handle);
/*
 * Makes a live handle one of type VMM_HANDLE_STOPPED for that object: a look-up of the former type
 * no longer finds it, and its number is not reused. Returns what vmm_handle_destroy returns.
 */
bool vmm_handle_stop(struct vmm_handle_table *table, uint32_t handle, void *object);
/* Replaces the object behind a live handle. */
void vmm_handle_rebind(struct vmm_handle_table *table, uint32_t handle, void *object);

/* The array of a table, for many look-ups under one hold of the owner's lock. */
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
 * Looks up a handle of a local table. The rotation puts the bits of the kind, which are 0, above
 * those of the index. So an index with other kind bits is beyond every capacity.
 */
static inline void *vmm_handle_find(const struct vmm_handle_view *view, uint32_t handle,
				    enum vmm_handle_type type)
{
	uint32_t index =
		(handle >> VMM_HANDLE_INDEX_SHIFT | handle << (32 - VMM_HANDLE_INDEX_SHIFT)) &
		~(3u << VMM_HANDLE_INDEX_BITS); /* without the generation */

	if (vmm_unlikely(index >= view->capacity))
		return NULL;
	const struct vmm_handle_entry *entry = &view->entries[index];
	if (vmm_unlikely(atomic_load_explicit(&entry->key, memory_order_relaxed) !=
			 handle + (uint32_t)type))
		return NULL;
	return atomic_load_explicit(&entry->object, memory_order_relaxed);
}

/*
 * Returns the object, or NULL unless the handle is live and of that type. This is the hot path of
 * every call: one load, two compares. A free slot keeps its last generation with the type FREE,
 * which is never looked up, so it needs no separate check.
 */
static inline void *vmm_handle_lookup(const struct vmm_handle_table *table, uint32_t handle,
				      enum vmm_handle_type type)
{
	const struct vmm_handle_view view = vmm_handle_view(table);

	return vmm_handle_find(&view, handle - table->kind, type);
}

/*
 * Looks up, without the owner's lock, an object for which vmm_handle_enable_lockless was called; in
 * a local table. The address returned may be of an object that has ended. To use it the caller
 * publishes it as its hazard pointer (vmm_os_hazard_publish) and looks up again. If that returns
 * the same address, the object stays until the caller clears the hazard pointer.
 */
static inline void *vmm_handle_lookup_lockless(const struct vmm_handle_table *table,
					       uint32_t handle, enum vmm_handle_type type)
{
	uint32_t index = handle >> VMM_HANDLE_INDEX_SHIFT & ((1u << VMM_HANDLE_INDEX_BITS) - 1);

	/* Capacity is loaded first: the array loaded next is then at least that large. */
	if (vmm_unlikely(index >= atomic_load_explicit(&table->capacity, memory_order_acquire) ||
			 (handle & ((1u << VMM_HANDLE_INDEX_SHIFT) - 1))))
		return NULL;
	const struct vmm_handle_entry *entry =
		&atomic_load_explicit(&table->entries, memory_order_acquire)[index];
	if (vmm_unlikely(atomic_load(&entry->next) != VMM_HANDLE_LOCKLESS ||
			 atomic_load(&entry->key) != handle + (uint32_t)type))
		return NULL;
	return atomic_load_explicit(&entry->object, memory_order_relaxed);
}
/* Makes a live handle visible to vmm_handle_lookup_lockless. */
void vmm_handle_enable_lockless(struct vmm_handle_table *table, uint32_t handle);

/*
 * Returns why a look-up failed, for findings: "destroyed", "wrong type (context)". Static strings.
 */
const char *vmm_handle_explain(const struct vmm_handle_table *table, uint32_t handle,
			       enum vmm_handle_type type);
/* Calls fn for every live handle in index order. */
void vmm_handle_for_each(const struct vmm_handle_table *table,
			 void (*fn)(void *context, uint32_t handle, void *object), void *context);

#endif
