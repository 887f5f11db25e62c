/* SPDX-License-Identifier: MIT */
/*
 * Creates and destroys handles: slots, their generations and their reuse. Look-up is inline in
 * handle.h. (HND-01 to HND-05)
 * A free slot contains its last generation and the type FREE. No look-up asks for that type, so a
 * free slot is never found. The next create increments the generation.
 */
#include <string.h>

#include "handle/handle.h"

#define GENERATION_SHIFT (VMM_HANDLE_INDEX_SHIFT + VMM_HANDLE_INDEX_BITS)
#define GENERATION_MAX   ((1u << (32 - GENERATION_SHIFT)) - 1)
#define INDEX_COUNT      (1u << VMM_HANDLE_INDEX_BITS)
#define LOW_MASK         ((1u << VMM_HANDLE_INDEX_SHIFT) - 1)
#define FIRST_CAPACITY   64u
#define NONE             UINT32_MAX

static uint32_t index_of(uint32_t handle)
{
	return handle >> VMM_HANDLE_INDEX_SHIFT & (INDEX_COUNT - 1);
}

/* The generation of a handle or a key. */
static uint32_t generation_of(uint32_t handle)
{
	return handle >> GENERATION_SHIFT;
}

static uint32_t type_of(uint32_t key)
{
	return key & LOW_MASK;
}

static uint32_t make_key(uint32_t generation, uint32_t type, uint32_t index)
{
	return generation << GENERATION_SHIFT | index << VMM_HANDLE_INDEX_SHIFT | type;
}

/*
 * Returns the handle: generation and index of the key, and the kind of the table. (HND-02, HND-04)
 */
static uint32_t handle_of(const struct vmm_handle_table *table, uint32_t key)
{
	return (key & ~LOW_MASK) | table->kind;
}

/* The caller holds the owner's lock. */
static struct vmm_handle_entry *entry_at(const struct vmm_handle_table *table, uint32_t index)
{
	return &atomic_load_explicit(&table->entries, memory_order_relaxed)[index];
}

static uint32_t key_at(const struct vmm_handle_table *table, uint32_t index)
{
	return atomic_load_explicit(&entry_at(table, index)->key, memory_order_relaxed);
}

static bool is_live(const struct vmm_handle_table *table, uint32_t handle)
{
	uint32_t index = index_of(handle);

	return index < table->capacity && type_of(key_at(table, index)) != VMM_HANDLE_FREE &&
	       handle_of(table, key_at(table, index)) == handle;
}

static void set_next(struct vmm_handle_table *table, uint32_t index, uint32_t next)
{
	atomic_store_explicit(&entry_at(table, index)->next, next, memory_order_relaxed);
}

static void free_list_push(struct vmm_handle_table *table, uint32_t index)
{
	set_next(table, index, NONE);
	if (table->free_tail == NONE)
		table->free_head = index;
	else
		set_next(table, table->free_tail, index);
	table->free_tail = index;
}

static uint32_t free_list_pop(struct vmm_handle_table *table)
{
	uint32_t index = table->free_head;

	table->free_head =
		atomic_load_explicit(&entry_at(table, index)->next, memory_order_relaxed);
	/* The list is empty: free_tail must not name a slot that is in use. */
	if (table->free_head == NONE)
		table->free_tail = NONE;
	return index;
}

/* Doubles the array. Called when no slot is free, so the new slots are the whole free list. */
static bool grow(struct vmm_handle_table *table)
{
	uint32_t before = table->capacity, capacity = before ? before * 2 : FIRST_CAPACITY;
	struct vmm_handle_entry *entries;

	if (before == INDEX_COUNT)
		return false;
	entries = vmm_calloc(capacity, sizeof(*entries));
	if (!entries)
		return false;
	if (before) {
		memcpy(entries, entry_at(table, 0), before * sizeof(*entries));
		vmm_assert(table->old_count < VMM_HANDLE_GROWTHS);
		table->old[table->old_count++] = entry_at(table, 0);
	}
	for (uint32_t index = before; index < capacity; index++) {
		atomic_init(&entries[index].key, make_key(0, VMM_HANDLE_FREE, index));
		atomic_init(&entries[index].next, index + 1 < capacity ? index + 1 : NONE);
	}
	table->free_head = before;
	table->free_tail = capacity - 1;
	/* This order: see vmm_handle_lookup_lockless. */
	atomic_store_explicit(&table->entries, entries, memory_order_release);
	atomic_store_explicit(&table->capacity, capacity, memory_order_release);
	return true;
}

/* Makes an empty table: the one of a process, or the table of global handles. (HND-01, HND-05) */
void vmm_handle_table_init(struct vmm_handle_table *table, enum vmm_handle_kind kind)
{
	*table = (struct vmm_handle_table){.free_head = NONE, .free_tail = NONE, .kind = kind};
}

void vmm_handle_table_finish(struct vmm_handle_table *table)
{
	vmm_assert(table->used == 0);
	vmm_free(table->entries);
	for (uint32_t i = 0; i < table->old_count; i++)
		vmm_free(table->old[i]);
	vmm_handle_table_init(table, table->kind);
}

/* Takes the slot that has been free for the longest time. (HND-03) */
uint32_t vmm_handle_create(struct vmm_handle_table *table, enum vmm_handle_type type, void *object)
{
	struct vmm_handle_entry *entry;
	uint32_t index, key;

	vmm_assert(type > VMM_HANDLE_FREE && type < VMM_HANDLE_TYPE_COUNT && object);
	if (vmm_unlikely(table->limit && table->used >= table->limit)) {
		atomic_fetch_add(&table->refused, 1);
		return 0;
	}
	if (table->free_head == NONE && !grow(table))
		return 0;
	index = free_list_pop(table);
	entry = entry_at(table, index);
	key = make_key(generation_of(key_at(table, index)) % GENERATION_MAX + 1, type, index);
	atomic_store_explicit(&entry->next, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->object, object, memory_order_relaxed);
	atomic_store_explicit(&entry->key, key, memory_order_release);
	table->used++;
	return handle_of(table, key);
}

bool vmm_handle_destroy(struct vmm_handle_table *table, uint32_t handle)
{
	uint32_t index = index_of(handle);
	struct vmm_handle_entry *entry;

	vmm_assert(is_live(table, handle));
	entry = entry_at(table, index);
	bool shown =
		atomic_load_explicit(&entry->next, memory_order_relaxed) == VMM_HANDLE_LOCKLESS;
	/*
	 * The key is cleared before the object: a look-up that finds the key gets the old object or
	 * none.
	 */
	atomic_store_explicit(&entry->key, make_key(generation_of(handle), VMM_HANDLE_FREE, index),
			      memory_order_release);
	atomic_store_explicit(&entry->object, NULL, memory_order_relaxed);
	free_list_push(table, index);
	table->used--;
	return shown;
}

void vmm_handle_enable_lockless(struct vmm_handle_table *table, uint32_t handle)
{
	vmm_assert(is_live(table, handle));
	atomic_store_explicit(&entry_at(table, index_of(handle))->next, VMM_HANDLE_LOCKLESS,
			      memory_order_release);
}

bool vmm_handle_stop(struct vmm_handle_table *table, uint32_t handle, void *object)
{
	uint32_t index = index_of(handle);
	struct vmm_handle_entry *entry = entry_at(table, index);

	vmm_assert(is_live(table, handle) && object);
	bool shown =
		atomic_load_explicit(&entry->next, memory_order_relaxed) == VMM_HANDLE_LOCKLESS;
	/* As vmm_handle_destroy: a look-up that finds the former key gets the former object. */
	atomic_store_explicit(&entry->key,
			      make_key(generation_of(handle), VMM_HANDLE_STOPPED, index),
			      memory_order_release);
	atomic_store_explicit(&entry->next, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->object, object, memory_order_relaxed);
	return shown;
}

void vmm_handle_rebind(struct vmm_handle_table *table, uint32_t handle, void *object)
{
	vmm_assert(is_live(table, handle) && object);
	atomic_store_explicit(&entry_at(table, index_of(handle))->object, object,
			      memory_order_relaxed);
}

static const char *const wrong_type[VMM_HANDLE_TYPE_COUNT] = {
	[VMM_HANDLE_ADAPTER] = "wrong type (adapter)",
	[VMM_HANDLE_DEVICE] = "wrong type (device)",
	[VMM_HANDLE_CONTEXT] = "wrong type (context)",
	[VMM_HANDLE_RESOURCE] = "wrong type (resource)",
	[VMM_HANDLE_ALLOCATION] = "wrong type (allocation)",
	[VMM_HANDLE_SYNC] = "wrong type (synchronization object)",
	[VMM_HANDLE_SHARED] = "wrong type (shared)",
	[VMM_HANDLE_KEYED] = "wrong type (keyed mutex)",
	[VMM_HANDLE_HW_CONTEXT] = "wrong type (hardware context)",
	[VMM_HANDLE_HW_QUEUE] = "wrong type (hardware queue)",
	[VMM_HANDLE_PAGING_QUEUE] = "wrong type (paging queue)",
	[VMM_HANDLE_TRIM] = "wrong type (trim notification)",
	[VMM_HANDLE_STOPPED] = "its adapter has stopped",
};

const char *vmm_handle_explain(const struct vmm_handle_table *table, uint32_t handle,
			       enum vmm_handle_type type)
{
	uint32_t index = index_of(handle), last;

	if (handle == 0)
		return "zero";
	if (index >= table->capacity || generation_of(handle) == 0 ||
	    (handle & LOW_MASK) != table->kind)
		return "never issued";
	if (is_live(table, handle)) {
		uint32_t found = type_of(key_at(table, index));

		return found == (uint32_t)type ? "live" : wrong_type[found];
	}
	last = generation_of(key_at(table, index));
	if (generation_of(handle) <= last)
		return "destroyed";
	/* Generations repeat after three uses of a slot, and the repetitions are not counted. */
	return last == 0 ? "never issued" : "never issued, or destroyed long ago";
}

void vmm_handle_for_each(const struct vmm_handle_table *table,
			 void (*fn)(void *context, uint32_t handle, void *object), void *context)
{
	for (uint32_t index = 0; index < table->capacity; index++) {
		/* A copy, because fn may destroy its handle and create others. */
		void *object =
			atomic_load_explicit(&entry_at(table, index)->object, memory_order_relaxed);

		if (object)
			fn(context, handle_of(table, key_at(table, index)), object);
	}
}
