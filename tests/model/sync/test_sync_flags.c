/* SPDX-License-Identifier: MIT */
/*
 * The flags of synchronization objects, written down a second time as the catalogue prints them: one row per combination it
 * names, one column per type, and its sentence for all other combinations. Compared with the library in every cell.
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "sync/sync.h"

enum { LAST_VERSION = 0x11, TYPES = 10, LOW = 0x800, HIGH = 22 };

/* Flags, then OK (1) or refused (0) on: mutex, semaphore, fence, CPU notification, monitored, periodic. At 3.2. */
static const struct {
	uint32_t flags;
	char on[7];
} rows[] = {
	{0x000, "111111"}, /* none */
	{0x001, "111100"}, /* Shared */
	{0x002, "000000"}, /* Nt */
	{0x003, "111111"}, /* Shared + Nt */
	{0x004, "000000"}, /* CrossAdapter alone */
	{0x005, "001000"}, /* Shared + CrossAdapter */
	{0x007, "001010"}, /* Shared + Nt + CrossAdapter */
	{0x008, "000010"}, /* TopOfPipeline */
	{0x010, "000010"}, /* NoSignal */
	{0x020, "000010"}, /* NoWait */
	{0x030, "000000"}, /* NoSignal + NoWait */
	{0x040, "000010"}, /* NoSignalMaxValueOnTdr */
	{0x080, "000011"}, /* NoGPUAccess */
	{0x100, "000100"}, /* SignalByKmd */
	{0x101, "000000"}, /* SignalByKmd + Shared */
	{0x103, "000000"}, /* SignalByKmd + Shared + Nt */
	{0x200, "000000"}, /* bit 9 */
	{0x400, "111111"}, /* Unwait...: as without it */
	{0x401, "111100"}, {0x403, "111111"},
};

/* Which flag is legal on which type at all, bits 0 to 10 from left to right. */
static const char *const legal[6] = {
	"11000000001", "11000000001", "11100000001", "11000000101", "11111111001", "11000001001",
};
/* How many flags have names at each version, and how many types there are: 1.0, 1.1, 1.2, 1.3, 2.0, 2.1, 2.2 ... 3.2. */
static const uint8_t names[LAST_VERSION + 1] = {0, 0, 1, 2, 3, 8, 8, 8,  8,
						8, 8, 8, 8, 8, 8, 9, 10, 11};
static const uint8_t types[LAST_VERSION + 1] = {0, 2, 4, 4, 4, 5, 5, 6, 6,
						6, 6, 6, 6, 6, 6, 6, 6, 6};

static bool has(uint32_t flags, uint32_t bits)
{
	return (flags & bits) == bits;
}

/* "Any other combination", literally. */
static bool by_sentence(uint32_t type, uint32_t flags)
{
	for (uint32_t bit = 0; bit < 11; bit++)
		if ((flags >> bit & 1) && legal[type - 1][bit] == '0')
			return false;
	if (has(flags, 0x2) && !has(flags, 0x1))
		return false;
	if (has(flags, 0x4) && !has(flags, 0x1))
		return false;
	if (has(flags, 0x30) || (has(flags, 0x100) && (flags & 0x3)))
		return false;
	return !(type >= 5 && has(flags, 0x1) && !has(flags, 0x2));
}

static bool expected(uint32_t version, bool first_form, uint32_t type, uint32_t flags)
{
	if (!type || type > types[version] || (first_form && type > 2))
		return false;
	return !(flags >> names[version]) && by_sentence(type, flags);
}

/* The catalogue's sentence says of its own rows what they say. */
static void sfl_33_the_rows_and_the_sentence_agree(void **state)
{
	uint32_t cells = 0;

	(void)state;
	for (uint32_t r = 0; r < VMM_ARRAY_LENGTH(rows); r++)
		for (uint32_t type = 1; type <= 6; type++, cells++) {
			struct vmm_sync_refusal refusal;
			bool ok = rows[r].on[type - 1] == '1';

			assert_int_equal(by_sentence(type, rows[r].flags), ok);
			assert_int_equal(vmm_sync_may_create(LAST_VERSION, false, type,
							     rows[r].flags, &refusal),
					 ok);
		}
	printf("# %u cells of the printed table, 0 differences\n", cells);
}

/* One bit above the eleven, or none; then several at once. */
static uint32_t high_bits(uint32_t i)
{
	return i == 0 ? 0 : i == HIGH ? 0xFFFFF800 : 0x400u << i;
}

static void sfl_31_sfl_32_every_combination_at_every_version(void **state)
{
	struct vmm_sync_refusal refusal;
	uint64_t cells = 0, accepted = 0;

	(void)state;
	for (uint32_t version = 1; version <= LAST_VERSION; version++)
		for (uint32_t type = 0; type < TYPES; type++)
			for (uint32_t high = 0; high <= HIGH; high++)
				for (uint32_t low = 0; low < LOW; low++) {
					uint32_t flags = low | high_bits(high);
					bool ok = vmm_sync_may_create(version, false, type, flags,
								      &refusal);

					if (ok != expected(version, false, type, flags))
						fail_msg("version 0x%x type %u flags 0x%x: %d",
							 version, type, flags, ok);
					cells++;
					accepted += ok;
				}
	printf("# %llu cells, %llu accepted, 0 differences\n", (unsigned long long)cells,
	       (unsigned long long)accepted);
	assert_int_equal(cells, (uint64_t)LAST_VERSION * TYPES * (HIGH + 1) * LOW);
	assert_true(accepted > 1000 && accepted < cells / 100);
}

static void syn_03_syn_05_syn_06_the_types_of_both_calls(void **state)
{
	struct vmm_sync_refusal refusal;

	(void)state;
	for (uint32_t version = 1; version <= LAST_VERSION; version++)
		for (uint32_t type = 0; type < 4 * TYPES; type++) {
			assert_int_equal(vmm_sync_may_create(version, true, type, 0, &refusal),
					 type == 1 || type == 2);
			if (type != 1 && type != 2)
				assert_string_equal(refusal.rule, type ? "SYN-05" : "SYN-03");
			if (!vmm_sync_may_create(version, false, type, 0, &refusal))
				assert_string_equal(refusal.rule, "SYN-06");
		}
	assert_false(vmm_sync_may_create(LAST_VERSION, false, UINT32_MAX, 0, &refusal));
	assert_string_equal(refusal.rule, "SYN-06");
}

/* Type, then reserved bits, then sharing, then what fits the type: each outdoes those behind it. */
static void sfl_31_the_checks_come_in_one_order(void **state)
{
	static const struct {
		uint32_t type, flags;
		const char *rule;
	} cases[] = {
		{9, 0x80000032, "SYN-06"}, {5, 0x80000032, "SFL-31"}, {5, 0x00000832, "SFL-31"},
		{5, 0x32, "SFL-05"},       {5, 0x31, "SFL-03"},       {5, 0x33, "SFL-17"},
		{1, 0x13, "SFL-17"},       {3, 0x23, "SFL-17"},       {1, 0x04, "SFL-10"},
		{3, 0x04, "SFL-10"},       {1, 0x08, "SFL-13"},       {4, 0x40, "SFL-18"},
		{2, 0x80, "SFL-20"},       {5, 0x100, "SFL-23"},      {4, 0x101, "SFL-25"},
		{4, 0x102, "SFL-05"},      {5, 0x200, "SFL-26"},      {6, 0x001, "SFL-03"},
	};

	(void)state;
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(cases); i++) {
		struct vmm_sync_refusal refusal = {0};

		assert_false(vmm_sync_may_create(LAST_VERSION, false, cases[i].type, cases[i].flags,
						 &refusal));
		assert_string_equal(refusal.rule, cases[i].rule);
		assert_non_null(refusal.why);
	}
	struct vmm_sync_refusal refusal;
	assert_false(vmm_sync_may_create(0xE, false, 4, 0x100, &refusal)); /* SignalByKmd at 2.9 */
	assert_string_equal(refusal.rule, "SFL-32");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sfl_33_the_rows_and_the_sentence_agree),
		cmocka_unit_test(sfl_31_sfl_32_every_combination_at_every_version),
		cmocka_unit_test(syn_03_syn_05_syn_06_the_types_of_both_calls),
		cmocka_unit_test(sfl_31_the_checks_come_in_one_order),
	};

	return cmocka_run_group_tests_name("sync flags", tests, NULL, NULL);
}
