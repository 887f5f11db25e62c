/* SPDX-License-Identifier: MIT */
/*
 * test_handle_model [SEED]: all seeds of the suite, or one that failed.
 *
 * Random operations on a handle table against a naive map: an array with one entry per slot, and a
 * queue of free slots. The model predicts each handle, so order of reuse, generations and growth
 * are all checked.
 */
#include <stdlib.h>

#include "support/test.h"

#include "handle/handle.h"

#define SLOTS_MAX  4096u
#define ISSUED_MAX 65536u
#define SEEDS      24u
#define STEPS      12000u /* enough for the generations to wrap */

struct model {
	struct {
		void *object; /* NULL: free */
		uint32_t handle, generation;
		enum vmm_handle_type type;
	} slots[SLOTS_MAX];
	uint32_t slot_count, live;
	uint32_t queue[ISSUED_MAX + SLOTS_MAX], queue_first, queue_end;
	uint32_t issued[ISSUED_MAX], issued_count; /* all handles that were ever created */
};

static struct model model;

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static uint32_t model_create(enum vmm_handle_type type, void *object)
{
	uint32_t slot;

	if (model.queue_first == model.queue_end) {
		uint32_t count = model.slot_count ? 2 * model.slot_count : 64;

		while (model.slot_count < count)
			model.queue[model.queue_end++] = model.slot_count++;
	}
	slot = model.queue[model.queue_first++];
	model.slots[slot].generation = model.slots[slot].generation % 3 + 1;
	model.slots[slot].object = object;
	model.slots[slot].handle = model.slots[slot].generation << 30 | slot << 6;
	model.slots[slot].type = type;
	model.live++;
	return model.slots[slot].handle;
}

static void model_destroy(uint32_t slot)
{
	model.slots[slot].object = NULL;
	model.queue[model.queue_end++] = slot;
	model.live--;
}

static void *model_lookup(uint32_t handle, enum vmm_handle_type type)
{
	uint32_t slot = handle >> 6 & 0xFFFFFF;

	if (slot >= model.slot_count || model.slots[slot].handle != handle ||
	    model.slots[slot].type != type)
		return NULL;
	return model.slots[slot].object;
}

static void check_lookups(const struct vmm_handle_table *table, uint64_t *random)
{
	uint32_t handle = next_random(random) << 1;

	if (model.issued_count && next_random(random) % 4)
		handle = model.issued[next_random(random) % model.issued_count];
	for (int type = VMM_HANDLE_ADAPTER; type < VMM_HANDLE_TYPE_COUNT; type++)
		assert_ptr_equal(vmm_handle_lookup(table, handle, (enum vmm_handle_type)type),
				 model_lookup(handle, (enum vmm_handle_type)type));
}

static void drop(void *context, uint32_t handle, void *object)
{
	uint32_t slot = handle >> 6 & 0xFFFFFF;

	assert_ptr_equal(model.slots[slot].object, object);
	assert_int_equal(model.slots[slot].handle, handle);
	vmm_handle_destroy(context, handle);
	model_destroy(slot);
}

static void run_seed(uint64_t seed)
{
	struct vmm_handle_table table;
	uint64_t random = seed;
	/* The table stays small and its free list is often empty, or it grows. */
	uint32_t create_share = 30 + (uint32_t)(seed % 4) * 10;

	model = (struct model){0};
	vmm_handle_table_init(&table, VMM_HANDLE_LOCAL);
	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t choice = next_random(&random) % 100;
		uint32_t slot = model.slot_count ? next_random(&random) % model.slot_count : 0;

		if (choice < create_share && model.live < SLOTS_MAX) {
			enum vmm_handle_type type =
				1 + next_random(&random) % (VMM_HANDLE_TYPE_COUNT - 1);
			void *object = (char *)&model + 1 + step;
			uint32_t handle = vmm_handle_create(&table, type, object);

			assert_int_equal(handle, model_create(type, object));
			model.issued[model.issued_count++] = handle;
		} else if (choice < 95 && model.live && model.slots[slot].object) {
			vmm_handle_destroy(&table, model.slots[slot].handle);
			model_destroy(slot);
		} else if (model.live && model.slots[slot].object) {
			model.slots[slot].object = (char *)&model + 1 + STEPS + step;
			vmm_handle_rebind(&table, model.slots[slot].handle,
					  model.slots[slot].object);
		}
		assert_int_equal(table.used, model.live);
		check_lookups(&table, &random);
	}
	vmm_handle_for_each(&table, drop, &table);
	assert_int_equal(model.live, 0);
	vmm_handle_table_finish(&table);
}

static uint64_t only_seed, running_seed;

static void random_operations_match_a_naive_map(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		running_seed = only_seed ? only_seed : seed;
		run_seed(running_seed);
	}
	running_seed = 0;
}

static int name_the_failed_seed(void **state)
{
	(void)state;
	if (running_seed)
		print_message("# failed with seed %llu\n", (unsigned long long)running_seed);
	return 0;
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(random_operations_match_a_naive_map,
					  name_the_failed_seed),
	};

	if (count > 1)
		only_seed = strtoull(arguments[1], NULL, 0);
	return cmocka_run_group_tests_name("handle_model", tests, NULL, NULL);
}
