/* SPDX-License-Identifier: MIT */
/*
 * What a device does with the physical address space: its BARs get addresses, and it reads and
 * writes memory. Guarded by the memory lock, also during a copy, so that no range is removed under
 * it; the lock is released between pieces of a large copy.
 */
#include "nt/nt_internal.h"

#include <string.h>

#define LOW_FIRST   ((uint64_t)0xC0000000)
#define LOW_END     ((uint64_t)0xFEC00000) /* behind it are the interrupt controllers */
#define PIECE_BYTES ((uint64_t)256 << 10)

/* ---- addresses ---- */

static vmm_status place_low_locked(struct vmm_nt *nt, struct nt_phys_range *range)
	VMM_REQUIRES(nt_memory_class)
{
	uint64_t physical = LOW_FIRST;

	vmm_assert_held(&nt->memory);
	for (;;) {
		uint32_t at = nt_phys_find_locked(nt, physical);

		if (physical + range->size_bytes > LOW_END)
			return VMM_INSUFFICIENT_RESOURCES;
		if (at == nt->range_count ||
		    nt->ranges[at].physical >= physical + range->size_bytes)
			break;
		physical = vmm_align_up(nt->ranges[at].physical + nt->ranges[at].size_bytes,
					range->size_bytes);
	}
	range->physical = physical;
	return nt_phys_add_range_locked(nt, *range);
}

vmm_status nt_phys_place_range(struct vmm_nt *nt, struct nt_phys_range *range, bool low)
{
	vmm_status status;

	if (!low) {
		/* Twice the size has a multiple of the size in it, with as much space behind. */
		uint64_t reserved = vmm_nt_phys_reserve(nt, 2 * range->size_bytes);

		if (!reserved)
			return VMM_INSUFFICIENT_RESOURCES;
		range->physical = vmm_align_up(reserved, range->size_bytes);
		return nt_phys_add_range(nt, *range);
	}
	nt_memory_lock(nt);
	status = place_low_locked(nt, range);
	nt_memory_unlock(nt);
	return status;
}

vmm_status vmm_nt_phys_place(struct vmm_nt *nt, const struct vmm_os_memory *memory, bool low,
			     uint64_t *physical)
{
	struct nt_phys_range range = {.size_bytes = memory->size_bytes,
				      .pointer = memory->base,
				      .exact = memory->base,
				      .exact_bytes = memory->size_bytes,
				      .memory = memory};
	vmm_status status = nt_phys_place_range(nt, &range, low);

	*physical = range.physical;
	return status;
}

/* ---- copies ---- */

/* Returns the memory at `physical` and how much of `length` it has; NULL: none. */
static char *memory_at_locked(const struct vmm_nt *nt, uint64_t physical, uint64_t *length)
	VMM_REQUIRES(nt_memory_class)
{
	vmm_assert_held(&nt->memory);
	uint32_t at = nt_phys_find_locked(nt, physical);
	const struct nt_phys_range *range = at < nt->range_count ? &nt->ranges[at] : NULL;

	if (!range || range->physical > physical || range->trapped)
		return NULL;
	uint64_t offset = physical - range->physical, rest = range->size_bytes - offset;

	*length = *length < rest ? *length : rest;
	return range->pointer + offset;
}

/* Returns whether all of the range is memory. If not, *bad is the first address that is none. */
static bool is_memory_locked(const struct vmm_nt *nt, uint64_t physical, uint64_t length,
			     uint64_t *bad) VMM_REQUIRES(nt_memory_class)
{
	vmm_assert_held(&nt->memory);
	*bad = physical;
	if (length > UINT64_MAX - physical)
		return false;
	while (length) {
		uint64_t piece = length;

		*bad = physical;
		if (!memory_at_locked(nt, physical, &piece))
			return false;
		physical += piece;
		length -= piece;
	}
	return true;
}

/*
 * A word at its natural alignment is transferred in one step, as on a bus: a driver may poll a
 * fence while the device writes it. A reader of the word sees what the device did before.
 */
#define TRANSFER_WORD(bits)                                                              \
	static void transfer_##bits(char *memory, char *to, const char *from)            \
	{                                                                                \
		_Atomic uint##bits##_t *word = (_Atomic uint##bits##_t *)(void *)memory; \
		uint##bits##_t value;                                                    \
                                                                                         \
		if (to) {                                                                \
			value = atomic_load_explicit(word, memory_order_acquire);        \
			memcpy(to, &value, sizeof(value));                               \
		} else {                                                                 \
			memcpy(&value, from, sizeof(value));                             \
			atomic_store_explicit(word, value, memory_order_release);        \
		}                                                                        \
	}
TRANSFER_WORD(16)
TRANSFER_WORD(32)
TRANSFER_WORD(64)

static void transfer(char *memory, char *to, const char *from, uint64_t length)
{
	if (length <= 8 && (uintptr_t)memory % length == 0) {
		if (length == 2)
			transfer_16(memory, to, from);
		if (length == 4)
			transfer_32(memory, to, from);
		if (length == 8)
			transfer_64(memory, to, from);
		if (length == 2 || length == 4 || length == 8)
			return;
	}
	if (to)
		memcpy(to, memory, length);
	else
		memcpy(memory, from, length);
}

/* FROM and TO: one is NULL. */
static bool copy(struct vmm_nt *nt, uint64_t physical, char *to, const char *from, uint64_t length,
		 uint64_t *bad)
{
	bool good = true;
	uint64_t done = 0;

	while (done < length && good) {
		uint64_t piece = length - done < PIECE_BYTES ? length - done : PIECE_BYTES;

		nt_memory_lock(nt);
		good = is_memory_locked(nt, physical + done, length - done, bad);
		while (good && piece) {
			uint64_t part = piece;
			char *memory = memory_at_locked(nt, physical + done, &part);

			transfer(memory, to ? to + done : NULL, from ? from + done : NULL, part);
			done += part;
			piece -= part;
		}
		nt_memory_unlock(nt);
	}
	return good;
}

bool vmm_nt_phys_read(struct vmm_nt *nt, uint64_t physical, void *buffer, uint64_t length,
		      uint64_t *bad)
{
	return copy(nt, physical, buffer, NULL, length, bad);
}

bool vmm_nt_phys_write(struct vmm_nt *nt, uint64_t physical, const void *buffer, uint64_t length,
		       uint64_t *bad)
{
	return copy(nt, physical, NULL, buffer, length, bad);
}
