/* SPDX-License-Identifier: MIT */
/* The handle table, one rule per test. */
#include "support/test.h"
#include "unit/aborts.h"

#include "handle/handle.h"

#define SLOTS       64u /* the first capacity */
#define INDEX_COUNT (1u << VMM_HANDLE_INDEX_BITS)

static char objects[INDEX_COUNT];

static uint32_t index_of(uint32_t handle)
{
	return handle >> VMM_HANDLE_INDEX_SHIFT & (INDEX_COUNT - 1);
}

static uint32_t create(struct vmm_handle_table *table, enum vmm_handle_type type, void *object)
{
	uint32_t handle = vmm_handle_create(table, type, object);

	assert_true(handle != 0);
	return handle;
}

static void fill(struct vmm_handle_table *table, uint32_t *handles, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		handles[i] = create(table, VMM_HANDLE_ALLOCATION, &objects[i]);
}

static void destroy_all(void *context, uint32_t handle, void *object)
{
	(void)object;
	vmm_handle_destroy(context, handle);
}

static void finish(struct vmm_handle_table *table)
{
	vmm_handle_for_each(table, destroy_all, table);
	vmm_handle_table_finish(table);
}

static void lookup_compares_the_whole_handle_and_the_type(void **state)
{
	struct vmm_handle_table table;
	uint32_t handle;

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	assert_null(vmm_handle_lookup(&table, 0x80000000, VMM_HANDLE_ALLOCATION)); /* empty table */
	handle = create(&table, VMM_HANDLE_ALLOCATION, &objects[1]);
	assert_ptr_equal(vmm_handle_lookup(&table, handle, VMM_HANDLE_ALLOCATION), &objects[1]);
	for (int type = VMM_HANDLE_ADAPTER; type < VMM_HANDLE_TYPE_COUNT; type++)
		if (type != VMM_HANDLE_ALLOCATION)
			assert_null(vmm_handle_lookup(&table, handle, (enum vmm_handle_type)type));
	for (int bit = 0; bit < 32; bit++)
		for (int type = VMM_HANDLE_FREE; type < VMM_HANDLE_TYPE_COUNT; type++)
			assert_null(vmm_handle_lookup(&table, handle ^ 1u << bit,
						      (enum vmm_handle_type)type));
	for (int type = VMM_HANDLE_FREE; type < VMM_HANDLE_TYPE_COUNT; type++)
		assert_null(vmm_handle_lookup(&table, 0, (enum vmm_handle_type)type));
	finish(&table);
}

static void hnd_02_hnd_03_handles_begin_at_0x40000000_in_steps_of_0x40(void **state)
{
	struct vmm_handle_table table;
	uint32_t handles[3 * SLOTS];

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	fill(&table, handles, 3 * SLOTS);
	for (uint32_t i = 0; i < 3 * SLOTS; i++)
		assert_int_equal(handles[i], 0x40000000 + 0x40 * i);
	vmm_handle_destroy(&table, handles[5]);
	/* A freed slot is reused only after the slots that were never used. */
	for (uint32_t i = 3 * SLOTS; i < 4 * SLOTS; i++)
		assert_int_equal(create(&table, VMM_HANDLE_DEVICE, &objects[i]),
				 0x40000000 + 0x40 * i);
	assert_int_equal(create(&table, VMM_HANDLE_DEVICE, &objects[5]), handles[5] + 0x40000000);
	finish(&table);
}

static void hnd_05_low_bits_of_global_handles_are_two(void **state)
{
	struct vmm_handle_table global, local;
	uint32_t handle;

	(void)state;
	vmm_handle_table_init(&global, VMM_HANDLE_GLOBAL);
	vmm_handle_table_init(&local, VMM_HANDLE_LOCAL);
	handle = create(&global, VMM_HANDLE_SHARED, &objects[7]);
	assert_int_equal(handle, 0x40000002);
	assert_ptr_equal(vmm_handle_lookup(&global, handle, VMM_HANDLE_SHARED), &objects[7]);
	assert_null(vmm_handle_lookup(&global, handle - 2, VMM_HANDLE_SHARED));
	create(&local, VMM_HANDLE_SHARED, &objects[8]);
	assert_null(vmm_handle_lookup(&local, handle, VMM_HANDLE_SHARED));
	assert_string_equal(vmm_handle_explain(&local, handle, VMM_HANDLE_SHARED), "never issued");
	finish(&global);
	finish(&local);
}

static void a_destroyed_handle_is_not_found(void **state)
{
	struct vmm_handle_table table;
	uint32_t handles[SLOTS], again;

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	fill(&table, handles, SLOTS);
	vmm_handle_destroy(&table, handles[9]);
	assert_null(vmm_handle_lookup(&table, handles[9], VMM_HANDLE_ALLOCATION));
	again = create(&table, VMM_HANDLE_ALLOCATION, &objects[99]);
	assert_int_equal(index_of(again), index_of(handles[9]));
	assert_null(vmm_handle_lookup(&table, handles[9], VMM_HANDLE_ALLOCATION));
	assert_ptr_equal(vmm_handle_lookup(&table, again, VMM_HANDLE_ALLOCATION), &objects[99]);
	finish(&table);
}

static void freed_slots_are_reused_in_the_order_of_freeing(void **state)
{
	static const uint32_t order[] = {5, 60, 0, 33, 63};
	struct vmm_handle_table table;
	uint32_t handles[SLOTS];

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	fill(&table, handles, SLOTS);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(order); i++)
		vmm_handle_destroy(&table, handles[order[i]]);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(order); i++)
		assert_int_equal(index_of(create(&table, VMM_HANDLE_CONTEXT, &objects[i])),
				 index_of(handles[order[i]]));
	finish(&table);
}

static void an_emptied_free_list_refills_and_grows_correctly(void **state)
{
	struct vmm_handle_table table;
	uint32_t handles[SLOTS], again, grown;

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	fill(&table, handles, SLOTS);
	assert_int_equal(table.capacity, SLOTS);
	/*
	 * Empty, one slot, empty, several times: head and tail of the list must both forget the
	 * slot.
	 */
	for (uint32_t i = 0; i < 10; i++) {
		vmm_handle_destroy(&table, handles[i]);
		handles[i] = create(&table, VMM_HANDLE_ALLOCATION, &objects[i]);
	}
	vmm_handle_destroy(&table, handles[20]);
	vmm_handle_destroy(&table, handles[21]);
	again = create(&table, VMM_HANDLE_ALLOCATION, &objects[20]);
	assert_int_equal(index_of(again), index_of(handles[20]));
	again = create(&table, VMM_HANDLE_ALLOCATION, &objects[21]);
	assert_int_equal(index_of(again), index_of(handles[21]));
	grown = create(&table, VMM_HANDLE_ALLOCATION, &objects[SLOTS]);
	assert_int_equal(index_of(grown), SLOTS);
	assert_int_equal(table.capacity, 2 * SLOTS);
	assert_int_equal(table.used, SLOTS + 1);
	for (uint32_t i = 0; i < SLOTS; i++)
		if (i != 20 && i != 21)
			assert_ptr_equal(
				vmm_handle_lookup(&table, handles[i], VMM_HANDLE_ALLOCATION),
				&objects[i]);
	finish(&table);
}

static void hnd_04_a_slot_repeats_no_handle_within_two_reuses(void **state)
{
	struct vmm_handle_table table;
	uint32_t handles[SLOTS], given[4];

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	fill(&table, handles, SLOTS);
	given[0] = handles[7]; /* all other slots are taken, so this one is reused each time */
	for (uint32_t i = 1; i < 4; i++) {
		vmm_handle_destroy(&table, given[i - 1]);
		given[i] = create(&table, VMM_HANDLE_ALLOCATION, &objects[7]);
		assert_int_equal(index_of(given[i]), index_of(given[0]));
		for (uint32_t j = 0; i <= 2 && j < i; j++) {
			assert_int_not_equal(given[i], given[j]);
			assert_null(vmm_handle_lookup(&table, given[j], VMM_HANDLE_ALLOCATION));
		}
	}
	assert_int_equal(given[3], given[0]);
	finish(&table);
}

static void at_most_2_to_the_24_indices_are_used(void **state)
{
	struct vmm_handle_table table;
	uint32_t handle = 0;

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	for (uint32_t i = 0; i < INDEX_COUNT; i++)
		handle = create(&table, VMM_HANDLE_RESOURCE, &objects[i]);
	assert_int_equal(vmm_handle_create(&table, VMM_HANDLE_RESOURCE, objects), 0);
	assert_int_equal(vmm_handle_create(&table, VMM_HANDLE_RESOURCE, objects), 0);
	assert_int_equal(table.used, INDEX_COUNT);
	vmm_handle_destroy(&table, handle);
	handle = create(&table, VMM_HANDLE_RESOURCE, &objects[3]);
	assert_ptr_equal(vmm_handle_lookup(&table, handle, VMM_HANDLE_RESOURCE), &objects[3]);
	assert_int_equal(vmm_handle_create(&table, VMM_HANDLE_RESOURCE, objects), 0);
	finish(&table);
}

static void a_failed_memory_allocation_changes_nothing(void **state)
{
	struct vmm_handle_table table;
	uint32_t handles[SLOTS];

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	vmm_calloc_fail_after(1);
	assert_int_equal(vmm_handle_create(&table, VMM_HANDLE_DEVICE, objects), 0);
	fill(&table, handles, SLOTS);
	vmm_calloc_fail_after(1);
	assert_int_equal(vmm_handle_create(&table, VMM_HANDLE_DEVICE, objects), 0);
	assert_int_equal(table.used, SLOTS);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_ptr_equal(vmm_handle_lookup(&table, handles[i], VMM_HANDLE_ALLOCATION),
				 &objects[i]);
	create(&table, VMM_HANDLE_DEVICE, objects);
	finish(&table);
}

static void enabled_handles_are_found_without_the_lock(void **state)
{
	struct vmm_handle_table table;
	uint32_t handle, other;

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	assert_null(vmm_handle_lookup_lockless(&table, 0x40000000, VMM_HANDLE_SYNC));
	handle = create(&table, VMM_HANDLE_SYNC, &objects[1]);
	other = create(&table, VMM_HANDLE_SYNC, &objects[2]);
	assert_null(vmm_handle_lookup_lockless(&table, handle, VMM_HANDLE_SYNC));
	vmm_handle_enable_lockless(&table, handle);
	assert_ptr_equal(vmm_handle_lookup_lockless(&table, handle, VMM_HANDLE_SYNC), &objects[1]);
	assert_null(vmm_handle_lookup_lockless(&table, other, VMM_HANDLE_SYNC));
	assert_null(vmm_handle_lookup_lockless(&table, handle, VMM_HANDLE_DEVICE));
	assert_null(vmm_handle_lookup_lockless(&table, handle | 1, VMM_HANDLE_SYNC));
	assert_null(vmm_handle_lookup_lockless(&table, handle ^ 0xC0000000, VMM_HANDLE_SYNC));
	for (uint32_t i = 0; i < SLOTS; i++)
		(void)create(&table, VMM_HANDLE_ALLOCATION, &objects[3]);
	assert_int_equal(table.old_count, 1);
	assert_ptr_equal(vmm_handle_lookup_lockless(&table, handle, VMM_HANDLE_SYNC), &objects[1]);
	/* Destroying a handle returns whether a lockless lookup may have found it. */
	assert_false(vmm_handle_destroy(&table, other));
	assert_true(vmm_handle_destroy(&table, handle));
	assert_null(vmm_handle_lookup_lockless(&table, handle, VMM_HANDLE_SYNC));
	finish(&table);
}

static void rebind_changes_only_the_object(void **state)
{
	struct vmm_handle_table table;
	uint32_t handle;

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	handle = create(&table, VMM_HANDLE_ALLOCATION, &objects[1]);
	vmm_handle_rebind(&table, handle, &objects[2]);
	assert_ptr_equal(vmm_handle_lookup(&table, handle, VMM_HANDLE_ALLOCATION), &objects[2]);
	assert_int_equal(table.used, 1);
	finish(&table);
}

static void explain_gives_the_reason_of_a_failed_lookup(void **state)
{
	struct vmm_handle_table table;
	uint32_t first, second;

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	assert_string_equal(vmm_handle_explain(&table, 0x80000040, VMM_HANDLE_CONTEXT),
			    "never issued");
	first = create(&table, VMM_HANDLE_CONTEXT, objects);
	assert_string_equal(vmm_handle_explain(&table, 0, VMM_HANDLE_CONTEXT), "zero");
	assert_string_equal(vmm_handle_explain(&table, first, VMM_HANDLE_CONTEXT), "live");
	assert_string_equal(vmm_handle_explain(&table, first, VMM_HANDLE_DEVICE),
			    "wrong type (context)");
	assert_string_equal(vmm_handle_explain(&table, first + 1, VMM_HANDLE_CONTEXT),
			    "never issued");
	vmm_handle_destroy(&table, first);
	assert_string_equal(vmm_handle_explain(&table, first, VMM_HANDLE_CONTEXT), "destroyed");
	do { /* until the slot is used again */
		second = create(&table, VMM_HANDLE_CONTEXT, objects);
		vmm_handle_destroy(&table, second);
	} while (index_of(second) != index_of(first));
	assert_int_not_equal(first, second);
	assert_string_equal(vmm_handle_explain(&table, first, VMM_HANDLE_CONTEXT), "destroyed");
	/* The next generation of a used slot may repeat one of an earlier round. */
	assert_string_equal(vmm_handle_explain(&table, second + (1u << 30), VMM_HANDLE_CONTEXT),
			    "never issued, or destroyed long ago");
	finish(&table);
}

struct walk {
	uint32_t count, last;
};

static void walk_step(void *context, uint32_t handle, void *object)
{
	struct walk *walk = context;

	assert_true(walk->count == 0 || index_of(handle) > walk->last);
	assert_ptr_equal(object, &objects[index_of(handle)]);
	walk->last = index_of(handle);
	walk->count++;
}

static void for_each_visits_live_handles_in_index_order(void **state)
{
	struct vmm_handle_table table;
	struct walk walk = {0};
	uint32_t handles[SLOTS];

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	vmm_handle_for_each(&table, walk_step, &walk);
	assert_int_equal(walk.count, 0);
	fill(&table, handles, SLOTS);
	for (uint32_t i = 0; i < SLOTS; i += 3)
		vmm_handle_destroy(&table, handles[i]);
	vmm_handle_for_each(&table, walk_step, &walk);
	assert_int_equal(walk.count, SLOTS - (SLOTS + 2) / 3);
	finish(&table); /* destroys inside the walk */
}

struct misuse {
	struct vmm_handle_table *table;
	uint32_t handle;
};

static void destroy_twice(void *arg)
{
	struct misuse *misuse = arg;

	vmm_handle_destroy(misuse->table, misuse->handle);
	vmm_handle_destroy(misuse->table, misuse->handle);
}

static void finish_full(void *arg)
{
	vmm_handle_table_finish(((struct misuse *)arg)->table);
}

static void rebind_zero(void *arg)
{
	vmm_handle_rebind(((struct misuse *)arg)->table, 0, arg);
}

static void internal_misuse_asserts(void **state)
{
	struct vmm_handle_table table;
	struct misuse misuse = {.table = &table};

	(void)state;
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	misuse.handle = create(&table, VMM_HANDLE_SYNC, objects);
	assert_true(aborts(destroy_twice, &misuse));
	assert_true(aborts(finish_full, &misuse));
	assert_true(aborts(rebind_zero, &misuse));
	finish(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lookup_compares_the_whole_handle_and_the_type),
		cmocka_unit_test(hnd_02_hnd_03_handles_begin_at_0x40000000_in_steps_of_0x40),
		cmocka_unit_test(hnd_05_low_bits_of_global_handles_are_two),
		cmocka_unit_test(a_destroyed_handle_is_not_found),
		cmocka_unit_test(freed_slots_are_reused_in_the_order_of_freeing),
		cmocka_unit_test(an_emptied_free_list_refills_and_grows_correctly),
		cmocka_unit_test(hnd_04_a_slot_repeats_no_handle_within_two_reuses),
		cmocka_unit_test(at_most_2_to_the_24_indices_are_used),
		cmocka_unit_test(a_failed_memory_allocation_changes_nothing),
		cmocka_unit_test(enabled_handles_are_found_without_the_lock),
		cmocka_unit_test(rebind_changes_only_the_object),
		cmocka_unit_test(explain_gives_the_reason_of_a_failed_lookup),
		cmocka_unit_test(for_each_visits_live_handles_in_index_order),
		cmocka_unit_test(internal_misuse_asserts),
	};

	return cmocka_run_group_tests_name("handle", tests, NULL, NULL);
}
