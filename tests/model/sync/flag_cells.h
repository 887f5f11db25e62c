/* SPDX-License-Identifier: MIT */
/*
 * The flags of synchronization objects, a second time, as the rule catalogue states them: which
 * exist at which version, which are legal on which type, and the rule for all combinations.
 */
#ifndef VMM_TESTS_FLAG_CELLS_H
#define VMM_TESTS_FLAG_CELLS_H

#include <stdbool.h>
#include <stdint.h>

enum { FLAG_LAST_VERSION = 0x11, FLAG_TYPES = 10, FLAG_LOW = 0x800, FLAG_HIGH = 22 };

/* Which flag is legal on which type at all, bits 0 to 10 from left to right. */
static const char *const flag_legal[6] = {
	"11000000001", "11000000001", "11100000001", "11000000101", "11111111001", "11000001001",
};
/*
 * The number of named flags at each version, and of types: 1.0, 1.1, 1.2, 1.3, 2.0, 2.1, 2.2 ...
 * 3.2.
 */
static const uint8_t flag_names[FLAG_LAST_VERSION + 1] = {0, 0, 1, 2, 3, 8, 8, 8,  8,
							  8, 8, 8, 8, 8, 8, 9, 10, 11};
static const uint8_t flag_types[FLAG_LAST_VERSION + 1] = {0, 2, 4, 4, 4, 5, 5, 6, 6,
							  6, 6, 6, 6, 6, 6, 6, 6, 6};

static inline bool flag_has(uint32_t flags, uint32_t bits)
{
	return (flags & bits) == bits;
}

/* The rule for any other combination, literally. */
static inline bool flag_by_sentence(uint32_t type, uint32_t flags)
{
	for (uint32_t bit = 0; bit < 11; bit++)
		if ((flags >> bit & 1) && flag_legal[type - 1][bit] == '0')
			return false;
	if (flag_has(flags, 0x2) && !flag_has(flags, 0x1))
		return false;
	if (flag_has(flags, 0x4) && !flag_has(flags, 0x1))
		return false;
	if (flag_has(flags, 0x30) || (flag_has(flags, 0x100) && (flags & 0x3)))
		return false;
	return !(type >= 5 && flag_has(flags, 0x1) && !flag_has(flags, 0x2));
}

static inline bool flag_expected(uint32_t version, bool first_form, uint32_t type, uint32_t flags)
{
	if (!type || type > flag_types[version] || (first_form && type > 2))
		return false;
	return !(flags >> flag_names[version]) && flag_by_sentence(type, flags);
}

/* One bit above the eleven, or none; then several at once. */
static inline uint32_t flag_high_bits(uint32_t i)
{
	return i == 0 ? 0 : i == FLAG_HIGH ? 0xFFFFF800 : 0x400u << i;
}

#endif
