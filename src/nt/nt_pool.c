/* SPDX-License-Identifier: MIT */
/*
 * Pool. Each block has a separate record, found by address in a hash table that grows. So a wild
 * pointer given to ExFreePool is looked up and never read, and leaks can be reported by tag. Guard
 * bytes before and after a block are checked when it is freed. Guarded by the memory lock. With
 * vmm_nt_verify_drivers blocks are placed by nt_guarded.c.
 */
#include "nt/nt_verify.h"

#include <stdlib.h>
#include <string.h>

enum {
	GUARD_BYTES = 16,
	GUARD_FILL = 0xF1,
	UNINITIALIZED_FILL = 0xB7, /* what a driver reads that did not write first */
	POOL_ALIGNMENT = 16,
};

void nt_pool_init(struct vmm_nt *nt)
{
	vmm_os_mutex_init(&nt->memory, nt->os, VMM_NT_RANK, "kernel memory");
	nt->pool = nt->pool_first;
	nt->pool_bits = NT_POOL_BITS_MIN;
}

static struct nt_pool_block **chain_of(struct nt_pool_block **table, uint32_t bits,
				       const void *pointer)
{
	return &table[((uintptr_t)pointer >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - bits)];
}

static void push(struct nt_pool_block **table, uint32_t bits, struct nt_pool_block *block)
{
	struct nt_pool_block **chain = chain_of(table, bits, block->pointer);

	block->next = *chain;
	*chain = block;
}

static void replace_table_locked(struct vmm_nt *nt, struct nt_pool_block **table, uint32_t bits)
	VMM_REQUIRES(nt_memory_class)
{
	vmm_assert_held(&nt->memory);
	for (size_t i = 0; i < (size_t)1 << nt->pool_bits; i++) {
		while (nt->pool[i]) {
			struct nt_pool_block *block = nt->pool[i];

			nt->pool[i] = block->next;
			push(table, bits, block);
		}
	}
	if (nt->pool != nt->pool_first)
		vmm_free(nt->pool);
	nt->pool = table;
	nt->pool_bits = bits;
}

/*
 * Adds a block and grows the table: a driver with a million allocations has millions of blocks.
 * Without memory for a larger table the chains get longer.
 */
static void add_block(struct vmm_nt *nt, struct nt_pool_block *block)
{
	nt_memory_lock(nt);
	if (nt->pool_count >> nt->pool_bits) {
		uint32_t bits = nt->pool_bits + 2;
		struct nt_pool_block **table = vmm_calloc((size_t)1 << bits, sizeof(*table));

		if (table)
			replace_table_locked(nt, table, bits);
	}
	push(nt->pool, nt->pool_bits, block);
	nt->pool_count++;
	nt_memory_unlock(nt);
}

static struct nt_pool_block *take_block(struct vmm_nt *nt, const void *pointer)
{
	struct nt_pool_block **link, *found;

	nt_memory_lock(nt);
	link = chain_of(nt->pool, nt->pool_bits, pointer);
	while (*link && (*link)->pointer != pointer)
		link = &(*link)->next;
	found = *link;
	if (found) {
		*link = found->next;
		nt->pool_count--;
	}
	nt_memory_unlock(nt);
	return found;
}

bool nt_pool_is_block(struct vmm_nt *nt, const void *pointer)
{
	const struct nt_pool_block *block;

	nt_memory_lock(nt);
	block = *chain_of(nt->pool, nt->pool_bits, pointer);
	while (block && block->pointer != pointer)
		block = block->next;
	nt_memory_unlock(nt);
	return block != NULL;
}

bool nt_pool_has_locked(struct vmm_nt *nt, const char *pointer, uint64_t length, bool whole)
{
	vmm_assert_held(&nt->memory);
	for (size_t i = 0; i < (size_t)1 << nt->pool_bits; i++) {
		const struct nt_pool_block *block;

		for (block = nt->pool[i]; block; block = block->next)
			if (nt_range_overlaps(block->pointer, block->size_bytes, pointer, length,
					      whole))
				return true;
	}
	return false;
}

static struct nt_pool_block *containing_locked(struct vmm_nt *nt, const void *pointer)
	VMM_REQUIRES(nt_memory_class)
{
	vmm_assert_held(&nt->memory);
	for (size_t i = 0; i < (size_t)1 << nt->pool_bits; i++) {
		struct nt_pool_block *block;

		for (block = nt->pool[i]; block; block = block->next)
			if ((uintptr_t)pointer - (uintptr_t)block->pointer < block->size_bytes)
				return block;
	}
	return NULL;
}

bool nt_pool_is_paged(struct vmm_nt *nt, const void *pointer)
{
	const struct nt_pool_block *block;
	bool paged;

	nt_memory_lock(nt);
	block = containing_locked(nt, pointer);
	paged = block && block->paged;
	nt_memory_unlock(nt);
	return paged;
}

vmm_status nt_pool_add_range(struct vmm_nt *nt, const void *pointer)
{
	const struct nt_frames_limits anywhere = {.highest = UINT64_MAX};
	struct nt_phys_range range = {.locked = true};
	struct nt_pool_block *block;
	uint64_t end = 0;

	nt_memory_lock(nt);
	block = containing_locked(nt, pointer);
	if (block) {
		block->has_range = true;
		range.pointer = PAGE_ALIGN(block->pointer);
		range.owner = range.exact = block->pointer;
		range.exact_bytes = block->size_bytes;
		end = (uint64_t)(uintptr_t)block->pointer + block->size_bytes;
	}
	nt_memory_unlock(nt);
	if (!block)
		return VMM_INVALID_PARAMETER;
	range.size_bytes = vmm_align_up(end, PAGE_SIZE) - (uint64_t)(uintptr_t)range.pointer;
	return nt_frames_add_range(nt, &anywhere, &range);
}

/*
 * Gives the block memory: at the end of separate pages with the option, else between guard bytes.
 */
static bool place_block(struct vmm_nt *nt, struct nt_pool_block *block, uint64_t alignment,
			uint64_t total)
{
	if (vmm_unlikely(nt->guarded != NULL) && nt_guarded_allocate(nt, block, alignment))
		return true;
	block->raw = vmm_calloc(1, total);
	if (block->raw)
		block->pointer = (char *)vmm_align_up((uint64_t)(uintptr_t)block->raw + GUARD_BYTES,
						      alignment);
	return block->raw != NULL;
}

/* Returns the number of guard bytes before the block; *behind: behind it. */
static size_t guard_bytes(const struct nt_pool_block *block, size_t *behind)
{
	size_t before = (size_t)(block->pointer - block->raw);

	*behind = GUARD_BYTES;
	if (block->guarded_bytes)
		*behind = block->guarded_bytes - before - block->size_bytes;
	return before < GUARD_BYTES ? before : GUARD_BYTES;
}

static void *allocate(struct vmm_nt *nt, uint64_t size_bytes, uint32_t tag, bool paged, bool zero,
		      const void *caller)
{
	uint64_t alignment = size_bytes >= PAGE_SIZE ? PAGE_SIZE : POOL_ALIGNMENT;
	struct nt_pool_block *block;
	size_t before, behind;
	uint64_t total;

	if (vmm_add_overflows(size_bytes, alignment + 2 * GUARD_BYTES, &total))
		return NULL;
	block = vmm_calloc(1, sizeof(*block));
	if (!block)
		return NULL;
	block->size_bytes = size_bytes;
	block->tag = tag;
	block->paged = paged;
	if (!place_block(nt, block, alignment, total)) {
		vmm_free(block);
		return NULL;
	}
	if (vmm_unlikely(nt->guarded != NULL)) {
		block->place = VMM_OS_OWN(nt->os)->slot[VMM_NT_SLOT_PLACE];
		block->caller = caller;
	}
	before = guard_bytes(block, &behind);
	memset(block->pointer - before, GUARD_FILL, before);
	memset(block->pointer + size_bytes, GUARD_FILL, behind);
	if (!zero)
		memset(block->pointer, UNINITIALIZED_FILL, size_bytes);
	add_block(nt, block);
	return block->pointer;
}

static bool guard_intact(const char *guard, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if ((unsigned char)guard[i] != GUARD_FILL)
			return false;
	}
	return true;
}

static bool guards_intact(const struct nt_pool_block *block)
{
	size_t behind, before = guard_bytes(block, &behind);

	return guard_intact(block->pointer - before, before) &&
	       guard_intact(block->pointer + block->size_bytes, behind);
}

static void free_block(struct vmm_nt *nt, struct nt_pool_block *block)
{
	if (vmm_unlikely(nt->lock_order != NULL))
		nt_lock_order_forget(nt, block->pointer, block->size_bytes);
	if (block->guarded_bytes) {
		nt_guarded_free(nt, block);
		return;
	}
	vmm_free(block->raw);
	vmm_free(block);
}

/* A tag as its bytes read in memory; drivers write the constant in reverse order. */
struct tag_text {
	char text[5];
};

static struct tag_text tag_text(uint32_t tag)
{
	struct tag_text text = {{0}};

	for (int i = 0; i < 4; i++) {
		char c = (char)(tag >> 8 * i);

		text.text[i] = c >= 0x20 && c <= 0x7E ? c : '.';
	}
	return text;
}

static void release(struct vmm_nt *nt, const char *service, void *pointer, const uint32_t *tag)
{
	struct nt_pool_block *block = take_block(nt, pointer);

	if (!block) {
		nt_violation(nt, "NT-05", service,
			     "the pointer is not a pool block, or was freed before");
		return;
	}
	if (block->paged)
		nt_limit(nt, service, APC_LEVEL);
	if (tag && *tag != block->tag)
		nt_violation(nt, "NT-05", service, "a block of tag \"%s\" is freed as \"%s\"",
			     tag_text(block->tag).text, tag_text(*tag).text);
	if (!guards_intact(block))
		nt_violation(nt, "NT-05", service,
			     "a block of tag \"%s\", %llu bytes, was written out of bounds",
			     tag_text(block->tag).text, (unsigned long long)block->size_bytes);
	if (block->has_range)
		nt_phys_remove_pool(nt, block->pointer);
	free_block(nt, block);
}

/* ---- leaks at the end, by tag and the routine that allocated ---- */

static int by_tag(const void *a, const void *b)
{
	const struct nt_pool_block *const *x = a, *const *y = b;
	int order = ((*x)->tag > (*y)->tag) - ((*x)->tag < (*y)->tag);

	return order ? order : ((*x)->place > (*y)->place) - ((*x)->place < (*y)->place);
}

static void collect(struct vmm_nt *nt, struct nt_pool_block **blocks)
{
	size_t count = 0;

	for (size_t i = 0; i < (size_t)1 << nt->pool_bits; i++)
		for (struct nt_pool_block *block = nt->pool[i]; block; block = block->next)
			blocks[count++] = block;
}

static void report_group(struct vmm_nt *nt, const struct nt_pool_block *one, size_t count,
			 uint64_t bytes)
{
	char place[80] = "";

	if (one->place && nt->config.place)
		nt->config.place(one->place, place, sizeof(place));
	nt_violation(nt, "NT-06", "ExAllocatePool",
		     "tag \"%s\": %zu blocks, %llu bytes never freed%s%s", tag_text(one->tag).text,
		     count, (unsigned long long)bytes, place[0] ? ", allocated in " : "", place);
}

static void report_left(struct vmm_nt *nt, struct nt_pool_block **blocks, size_t count)
{
	uint64_t bytes = 0;
	size_t first = 0;

	qsort(blocks, count, sizeof(*blocks), by_tag);
	for (size_t i = 0; i < count; i++) {
		bytes += blocks[i]->size_bytes;
		if (i + 1 < count && by_tag(&blocks[i], &blocks[i + 1]) == 0)
			continue;
		report_group(nt, blocks[i], i + 1 - first, bytes);
		first = i + 1;
		bytes = 0;
	}
}

void nt_pool_finish(struct vmm_nt *nt)
{
	size_t count = nt->pool_count;
	struct nt_pool_block **blocks =
		count ? vmm_calloc(count, sizeof(struct nt_pool_block *)) : NULL;

	if (blocks) {
		collect(nt, blocks);
		report_left(nt, blocks, count);
	} else if (count) {
		nt_violation(nt, "NT-06", "ExAllocatePool", "%zu blocks never freed", count);
	}
	vmm_free(blocks);
	for (size_t i = 0; i < (size_t)1 << nt->pool_bits; i++) {
		while (nt->pool[i]) {
			struct nt_pool_block *block = nt->pool[i];

			nt->pool[i] = block->next;
			free_block(nt, block);
		}
	}
	nt_guarded_finish(nt);
	if (nt->pool != nt->pool_first)
		vmm_free(nt->pool);
	vmm_os_mutex_finish(&nt->memory);
}

/* ---- services ---- */

PVOID ExAllocatePool2(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag)
{
	const POOL_FLAGS kinds =
		POOL_FLAG_NON_PAGED | POOL_FLAG_NON_PAGED_EXECUTE | POOL_FLAG_PAGED;
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "ExAllocatePool2", Flags & POOL_FLAG_PAGED ? APC_LEVEL : DISPATCH_LEVEL);
	if (!vmm_is_pow2(Flags & kinds) || !Tag || !NumberOfBytes) {
		nt_violation(nt, "NT-05", "ExAllocatePool2", "flags 0x%llx, %zu bytes, tag 0x%x",
			     (unsigned long long)Flags, NumberOfBytes, Tag);
		return NULL;
	}
	return allocate(nt, NumberOfBytes, Tag, Flags & POOL_FLAG_PAGED,
			!(Flags & POOL_FLAG_UNINITIALIZED), __builtin_return_address(0));
}

PVOID ExAllocatePoolWithTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
	struct vmm_nt *nt = vmm_nt_current();
	bool paged = PoolType & PagedPool;

	nt_limit(nt, "ExAllocatePoolWithTag", paged ? APC_LEVEL : DISPATCH_LEVEL);
	/* Unlike ExAllocatePool2, the old routine does not fail for either. */
	if (!Tag || !NumberOfBytes)
		nt_violation(nt, "NT-05", "ExAllocatePoolWithTag", "%zu bytes, tag 0x%x",
			     NumberOfBytes, Tag);
	return allocate(nt, NumberOfBytes, Tag, paged, false, __builtin_return_address(0));
}

VOID ExFreePool(PVOID P)
{
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "ExFreePool", DISPATCH_LEVEL);
	release(nt, "ExFreePool", P, NULL);
}

VOID ExFreePoolWithTag(PVOID P, ULONG Tag)
{
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "ExFreePoolWithTag", DISPATCH_LEVEL);
	/* Tag 0 frees a block of any tag. */
	release(nt, "ExFreePoolWithTag", P, Tag ? &Tag : NULL);
}
