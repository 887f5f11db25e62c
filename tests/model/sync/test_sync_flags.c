/* SPDX-License-Identifier: MIT */
/*
 * The flags of synchronization objects: one row per combination that the rule catalogue names, one
 * column per type, and its rule for all other combinations (flag_cells.h). Each is compared with
 * the library.
 */
#include "support/test.h"

#include "model/sync/flag_cells.h"

#include <stdio.h>
#include <string.h>

#include "sync/sync.h"

/*
 * Flags, then OK (1) or refused (0) on: mutex, semaphore, fence, CPU notification, monitored,
 * periodic. At 3.2.
 */
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

/* The general rule gives the same results as the rows. */
static void sfl_33_the_table_rows_agree_with_the_general_rule(void **state)
{
	uint32_t cells = 0;

	(void)state;
	for (uint32_t r = 0; r < VMM_ARRAY_LENGTH(rows); r++)
		for (uint32_t type = 1; type <= 6; type++, cells++) {
			struct vmm_sync_refusal refusal;
			bool ok = rows[r].on[type - 1] == '1';

			assert_int_equal(flag_by_sentence(type, rows[r].flags), ok);
			assert_int_equal(vmm_sync_may_create(FLAG_LAST_VERSION, false, type,
							     rows[r].flags, &refusal),
					 ok);
		}
	printf("# %u cells of the printed table, 0 differences\n", cells);
}

static void sfl_31_sfl_32_every_combination_is_checked_at_every_version(void **state)
{
	struct vmm_sync_refusal refusal;
	uint64_t cells = 0, accepted = 0;

	(void)state;
	for (uint32_t version = 1; version <= FLAG_LAST_VERSION; version++)
		for (uint32_t type = 0; type < FLAG_TYPES; type++)
			for (uint32_t high = 0; high <= FLAG_HIGH; high++)
				for (uint32_t low = 0; low < FLAG_LOW; low++) {
					uint32_t flags = low | flag_high_bits(high);
					bool ok = vmm_sync_may_create(version, false, type, flags,
								      &refusal);

					if (ok != flag_expected(version, false, type, flags))
						fail_msg("version 0x%x type %u flags 0x%x: %d",
							 version, type, flags, ok);
					cells++;
					accepted += ok;
				}
	printf("# %llu cells, %llu accepted, 0 differences\n", (unsigned long long)cells,
	       (unsigned long long)accepted);
	assert_int_equal(cells,
			 (uint64_t)FLAG_LAST_VERSION * FLAG_TYPES * (FLAG_HIGH + 1) * FLAG_LOW);
	assert_true(accepted > 1000 && accepted < cells / 100);
}

static void syn_03_syn_05_syn_06_both_calls_check_their_types(void **state)
{
	struct vmm_sync_refusal refusal;

	(void)state;
	for (uint32_t version = 1; version <= FLAG_LAST_VERSION; version++)
		for (uint32_t type = 0; type < 4 * FLAG_TYPES; type++) {
			assert_int_equal(vmm_sync_may_create(version, true, type, 0, &refusal),
					 type == 1 || type == 2);
			if (type != 1 && type != 2)
				assert_string_equal(refusal.rule, type ? "SYN-05" : "SYN-03");
			if (!vmm_sync_may_create(version, false, type, 0, &refusal))
				assert_string_equal(refusal.rule, "SYN-06");
		}
	assert_false(vmm_sync_may_create(FLAG_LAST_VERSION, false, UINT32_MAX, 0, &refusal));
	assert_string_equal(refusal.rule, "SYN-06");
}

/*
 * Type, then reserved bits, then sharing, then flags illegal for the type: each check precedes the
 * later ones.
 */
static void sfl_31_checks_run_in_a_fixed_order(void **state)
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

		assert_false(vmm_sync_may_create(FLAG_LAST_VERSION, false, cases[i].type,
						 cases[i].flags, &refusal));
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
		cmocka_unit_test(sfl_33_the_table_rows_agree_with_the_general_rule),
		cmocka_unit_test(sfl_31_sfl_32_every_combination_is_checked_at_every_version),
		cmocka_unit_test(syn_03_syn_05_syn_06_both_calls_check_their_types),
		cmocka_unit_test(sfl_31_checks_run_in_a_fixed_order),
	};

	return cmocka_run_group_tests_name("sync flags", tests, NULL, NULL);
}
