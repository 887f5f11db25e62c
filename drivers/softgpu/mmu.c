/* SPDX-License-Identifier: MIT */
/* The page walk of the device, and its TLB. See mmu.h. */
#include "mmu.h"

#include <string.h>

#include <ntddk.h>

#include "atomic.h"

#define GROUP (SOFTGPU_LARGE_PAGE / SOFTGPU_PAGE) /* entries of one large translation */

void softgpu_mmu_init(struct softgpu_mmu *mmu, const struct softgpu_memory *memory, uint32_t levels)
{
	memset(mmu, 0, sizeof(*mmu));
	mmu->memory = memory;
	mmu->levels = levels;
}

/* ---- tables ---- */

static volatile uint64_t *entry_at(const struct softgpu_memory *memory, uint64_t offset)
{
	if (offset % sizeof(uint64_t) || offset > memory->vram_bytes - sizeof(uint64_t))
		return NULL;
	return (volatile uint64_t *)(void *)(memory->vram + offset);
}

int softgpu_table_write(const struct softgpu_memory *memory, uint64_t offset, uint64_t entry)
{
	volatile uint64_t *word = entry_at(memory, offset);

	if (word)
		softgpu_store(word, entry);
	return word != NULL;
}

/* An entry outside video memory is invalid: the table is not one. */
static uint64_t read_entry(const struct softgpu_mmu *mmu, uint64_t table, uint64_t index)
{
	const volatile uint64_t *word = entry_at(mmu->memory, table + index * sizeof(uint64_t));

	return word ? softgpu_load(word) : 0;
}

/*
 * Returns the entry of level 0 for the address, 0: page fault at mmu->fault.level. *table: the
 * table of level 0 that contains the entry.
 */
static uint64_t walk(struct softgpu_mmu *mmu, const struct softgpu_space *space, uint64_t address,
		     uint64_t *table)
{
	uint32_t level = mmu->levels - 1;
	uint64_t index = address >> (SOFTGPU_PAGE_SHIFT + level * SOFTGPU_TABLE_BITS);
	uint64_t entry = 0;

	*table = space->root;
	if (index < space->entries)
		entry = read_entry(mmu, *table, index);
	while (level && (entry & SOFTGPU_PTE_VALID)) {
		level--;
		*table = entry & SOFTGPU_PTE_ADDRESS;
		index = address >> (SOFTGPU_PAGE_SHIFT + level * SOFTGPU_TABLE_BITS);
		entry = read_entry(mmu, *table, index & (SOFTGPU_TABLE_ENTRIES - 1));
	}
	mmu->fault.level = level;
	return entry & SOFTGPU_PTE_VALID ? entry : 0;
}

/* ---- translations ---- */

static struct softgpu_translation *small_slot(struct softgpu_mmu *mmu, uint64_t address)
{
	return &mmu->small[(address >> SOFTGPU_PAGE_SHIFT) % SOFTGPU_TLB_SMALL];
}

static struct softgpu_translation *large_slot(struct softgpu_mmu *mmu, uint64_t address)
{
	return &mmu->large[(address >> SOFTGPU_LARGE_SHIFT) % SOFTGPU_TLB_LARGE];
}

static int matches(const struct softgpu_translation *slot, uint64_t root, uint64_t page)
{
	return slot->host && slot->page == page && slot->root == root;
}

/* The page of an entry, as the device's DMA reaches it. NULL: there is no memory. */
static char *page_of(struct softgpu_mmu *mmu, uint64_t entry)
{
	uint64_t address = entry & SOFTGPU_PTE_ADDRESS;
	PHYSICAL_ADDRESS physical;

	if (entry & SOFTGPU_PTE_ZERO)
		return mmu->zero;
	if (!(entry & SOFTGPU_PTE_SYSTEM))
		return address <= mmu->memory->vram_bytes - SOFTGPU_PAGE
			       ? mmu->memory->vram + address
			       : NULL;
	physical.QuadPart = (LONGLONG)address;
	return MmGetVirtualForPhysical(physical);
}

/* Do the 16 entries around the address form one page of 64 KiB in video memory? */
static int is_large(const struct softgpu_mmu *mmu, uint64_t table, uint64_t entry, uint64_t address)
{
	uint64_t index = (address >> SOFTGPU_PAGE_SHIFT) & (SOFTGPU_TABLE_ENTRIES - 1), i;
	uint64_t first = entry - index % GROUP * SOFTGPU_PAGE, base = index - index % GROUP;

	if ((entry & (SOFTGPU_PTE_SYSTEM | SOFTGPU_PTE_ZERO)) ||
	    mmu->memory->vram_bytes < SOFTGPU_LARGE_PAGE ||
	    (entry & SOFTGPU_PTE_ADDRESS) < index % GROUP * SOFTGPU_PAGE ||
	    (first & SOFTGPU_PTE_ADDRESS) > mmu->memory->vram_bytes - SOFTGPU_LARGE_PAGE)
		return 0;
	for (i = 0; i < GROUP; i++)
		if (read_entry(mmu, table, base + i) != first + i * SOFTGPU_PAGE)
			return 0;
	return 1;
}

static const struct softgpu_translation *fill(struct softgpu_mmu *mmu,
					      const struct softgpu_space *space, uint64_t address)
{
	struct softgpu_translation *slot = small_slot(mmu, address);
	uint64_t table, entry = walk(mmu, space, address, &table);
	char *host = entry ? page_of(mmu, entry) : NULL;

	if (!host)
		return NULL;
	*slot = (struct softgpu_translation){
		.root = space->root,
		.page = address >> SOFTGPU_PAGE_SHIFT,
		.host = host,
		.can_write = !(entry & SOFTGPU_PTE_READ_ONLY),
		.is_zero = (entry & SOFTGPU_PTE_ZERO) != 0,
	};
	if (!is_large(mmu, table, entry, address))
		return slot;
	host -= ((address >> SOFTGPU_PAGE_SHIFT) % GROUP) * SOFTGPU_PAGE;
	*large_slot(mmu, address) = (struct softgpu_translation){
		.root = space->root,
		.page = address >> SOFTGPU_LARGE_SHIFT,
		.host = host,
		.can_write = slot->can_write,
	};
	return slot;
}

/* Stores the run from `address` on in *bytes. */
static char *in_page(struct softgpu_mmu *mmu, const struct softgpu_translation *slot,
		     uint64_t in_page_offset, uint64_t left, enum softgpu_access access,
		     uint64_t *bytes)
{
	if (access == SOFTGPU_WRITE && !slot->can_write)
		return NULL;
	if (*bytes > left)
		*bytes = left;
	return (slot->is_zero && access == SOFTGPU_WRITE ? mmu->discarded : slot->host) +
	       in_page_offset;
}

char *softgpu_translate(struct softgpu_mmu *mmu, const struct softgpu_space *space,
			uint64_t address, uint64_t *bytes, enum softgpu_access access)
{
	const struct softgpu_translation *slot = large_slot(mmu, address);
	uint64_t page = SOFTGPU_LARGE_PAGE, offset;
	char *host = NULL;

	mmu->fault.level = 0;
	if (!matches(slot, space->root, address >> SOFTGPU_LARGE_SHIFT)) {
		page = SOFTGPU_PAGE;
		slot = small_slot(mmu, address);
		if (!matches(slot, space->root, address >> SOFTGPU_PAGE_SHIFT))
			slot = fill(mmu, space, address);
	}
	offset = address & (page - 1);
	if (slot)
		host = in_page(mmu, slot, offset, page - offset, access, bytes);
	if (!host) {
		mmu->fault.address = address;
		mmu->fault.is_write = access == SOFTGPU_WRITE;
		mmu->fault.is_instruction = 0;
	}
	return host;
}

/* ---- flushes ---- */

static void flush(struct softgpu_translation *slots, uint32_t count, uint64_t root,
		  const uint64_t range[2])
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (slots[i].root == root && slots[i].page >= range[0] && slots[i].page <= range[1])
			slots[i].host = NULL;
}

void softgpu_mmu_flush(struct softgpu_mmu *mmu, uint64_t root, uint64_t start, uint64_t end)
{
	uint64_t last = !start && !end ? UINT64_MAX : end - 1;
	const uint64_t small[2] = {start >> SOFTGPU_PAGE_SHIFT, last >> SOFTGPU_PAGE_SHIFT};
	const uint64_t large[2] = {start >> SOFTGPU_LARGE_SHIFT, last >> SOFTGPU_LARGE_SHIFT};

	flush(mmu->small, SOFTGPU_TLB_SMALL, root, small);
	flush(mmu->large, SOFTGPU_TLB_LARGE, root, large);
}

void softgpu_mmu_flush_all(struct softgpu_mmu *mmu)
{
	memset(mmu->small, 0, sizeof(mmu->small));
	memset(mmu->large, 0, sizeof(mmu->large));
}
