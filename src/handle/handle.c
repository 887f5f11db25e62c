/* SPDX-License-Identifier: MIT */
/*
 * Slots, generations and their reuse. Look-up is inline in the header.
 *
 * A free slot keeps its last generation under type FREE: nobody looks that type up, so the compare
 * of a look-up fails, and the next create knows which generation comes next.
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

/* Of a handle or a key. */
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

static uint32_t handle_of(const struct vmm_handle_table *table, uint32_t key)
{
	return (key & ~LOW_MASK) | table->kind;
}

static bool is_live(const struct vmm_handle_table *table, uint32_t handle)
{
	uint32_t index = index_of(handle);

	return index < table->capacity && type_of(table->entries[index].key) != VMM_HANDLE_FREE &&
	       handle_of(table, table->entries[index].key) == handle;
}

static void free_list_push(struct vmm_handle_table *table, uint32_t index)
{
	table->entries[index].next_free = NONE;
	if (table->free_tail == NONE)
		table->free_head = index;
	else
		table->entries[table->free_tail].next_free = index;
	table->free_tail = index;
}

static uint32_t free_list_pop(struct vmm_handle_table *table)
{
	uint32_t index = table->free_head;

	table->free_head = table->entries[index].next_free;
	/* The last one is gone: the tail must not go on naming a slot that is in use. */
	if (table->free_head == NONE)
		table->free_tail = NONE;
	return index;
}

static bool grow(struct vmm_handle_table *table)
{
	uint32_t capacity = table->capacity ? table->capacity * 2 : FIRST_CAPACITY;
	struct vmm_handle_entry *entries;

	if (table->capacity == INDEX_COUNT)
		return false;
	entries = vmm_calloc(capacity, sizeof(*entries));
	if (!entries)
		return false;
	if (table->capacity)
		memcpy(entries, table->entries, table->capacity * sizeof(*entries));
	vmm_free(table->entries);
	table->entries = entries;
	for (uint32_t index = table->capacity; index < capacity; index++) {
		entries[index].key = make_key(0, VMM_HANDLE_FREE, index);
		free_list_push(table, index);
	}
	table->capacity = capacity;
	return true;
}

void vmm_handle_table_init(struct vmm_handle_table *table, enum vmm_handle_kind kind)
{
	*table = (struct vmm_handle_table){.free_head = NONE, .free_tail = NONE, .kind = kind};
}

void vmm_handle_table_finish(struct vmm_handle_table *table)
{
	vmm_assert(table->used == 0);
	vmm_free(table->entries);
	vmm_handle_table_init(table, table->kind);
}

uint32_t vmm_handle_create(struct vmm_handle_table *table, enum vmm_handle_type type, void *object)
{
	struct vmm_handle_entry *entry;
	uint32_t index;

	vmm_assert(type > VMM_HANDLE_FREE && type < VMM_HANDLE_TYPE_COUNT && object);
	if (table->free_head == NONE && !grow(table))
		return 0;
	index = free_list_pop(table);
	entry = &table->entries[index];
	entry->key = make_key(generation_of(entry->key) % GENERATION_MAX + 1, type, index);
	entry->object = object;
	table->used++;
	return handle_of(table, entry->key);
}

void vmm_handle_destroy(struct vmm_handle_table *table, uint32_t handle)
{
	uint32_t index = index_of(handle);

	vmm_assert(is_live(table, handle));
	table->entries[index].object = NULL;
	table->entries[index].key = make_key(generation_of(handle), VMM_HANDLE_FREE, index);
	free_list_push(table, index);
	table->used--;
}

void vmm_handle_rebind(struct vmm_handle_table *table, uint32_t handle, void *object)
{
	vmm_assert(is_live(table, handle) && object);
	table->entries[index_of(handle)].object = object;
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
		uint32_t found = type_of(table->entries[index].key);

		return found == (uint32_t)type ? "live" : wrong_type[found];
	}
	last = generation_of(table->entries[index].key);
	if (generation_of(handle) <= last)
		return "destroyed";
	/* Generations come round after three uses of a slot, and nobody counts the rounds. */
	return last == 0 ? "never issued" : "never issued, or destroyed long ago";
}

void vmm_handle_for_each(const struct vmm_handle_table *table,
			 void (*fn)(void *context, uint32_t handle, void *object), void *context)
{
	for (uint32_t index = 0; index < table->capacity; index++) {
		/* A copy: fn may destroy its handle, and create others. */
		struct vmm_handle_entry entry = table->entries[index];

		if (entry.object)
			fn(context, handle_of(table, entry.key), entry.object);
	}
}
