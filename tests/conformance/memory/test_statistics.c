/* SPDX-License-Identifier: MIT */
/*
 * vidmm_adapter_statistics: callers of other versions (struct_size), and counters that a rule
 * defines.
 */
#include "world.h"

enum { FILLER = 0xA5 };

static void expect_bytes(const unsigned char *bytes, size_t from, size_t to, unsigned char value)
{
	for (size_t i = from; i < to; i++)
		if (bytes[i] != value)
			fail_msg("byte %zu is 0x%02x, expected 0x%02x", i, bytes[i], value);
}

/*
 * Fills a structure of `size` bytes, as the caller gives it, in a buffer twice as large as the
 * known one.
 */
static void read_as(const struct world *w, uint32_t size, unsigned char *buffer, size_t bytes)
{
	memset(buffer, FILLER, bytes);
	memcpy(buffer, &size, sizeof(size));
	vidmm_adapter_statistics(w->client.adapter, (struct vidmm_adapter_statistics *)buffer);
	assert_memory_equal(buffer, &size, sizeof(size)); /* struct_size stays */
}

static void q_151_a_smaller_struct_size_gets_the_members_inside_it(void **state)
{
	enum { ALL = sizeof(struct vidmm_adapter_statistics), HEAD = sizeof(uint32_t) };
	const uint32_t sizes[] = {HEAD,
				  offsetof(struct vidmm_adapter_statistics, segment),
				  offsetof(struct vidmm_adapter_statistics, bytes_moved),
				  offsetof(struct vidmm_adapter_statistics, bytes_moved) + 3,
				  ALL - 1,
				  ALL};
	_Alignas(8) unsigned char buffer[2 * ALL];
	struct world w;

	world_start(&w, state, NULL);
	(void)allocate_in(&w.device, 64 * KIB, CPU, 0);
	const struct vidmm_adapter_statistics all = world_statistics(&w);
	assert_int_equal(all.struct_size, ALL);
	assert_true(all.allocations > 0);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		read_as(&w, sizes[i], buffer, sizeof(buffer));
		assert_memory_equal(buffer + HEAD, (const char *)&all + HEAD, sizes[i] - HEAD);
		expect_bytes(buffer, sizes[i], sizeof(buffer), FILLER);
	}
	/* Not set, or too small to have been set: nothing is written. */
	for (uint32_t size = 0; size < HEAD; size++) {
		read_as(&w, size, buffer, sizeof(buffer));
		expect_bytes(buffer, HEAD, sizeof(buffer), FILLER);
	}
	world_stop(&w);
}

static void q_151_a_larger_struct_size_gets_zeros_in_unknown_members(void **state)
{
	enum { ALL = sizeof(struct vidmm_adapter_statistics), HEAD = sizeof(uint32_t) };
	_Alignas(8) unsigned char buffer[2 * ALL];
	struct world w;

	world_start(&w, state, NULL);
	const struct vidmm_adapter_statistics all = world_statistics(&w);
	for (uint32_t beyond = 1; beyond < 20; beyond++) {
		read_as(&w, ALL + beyond, buffer, sizeof(buffer));
		assert_memory_equal(buffer + HEAD, (const char *)&all + HEAD, ALL - HEAD);
		expect_bytes(buffer, ALL, ALL + beyond, 0);
		expect_bytes(buffer, ALL + beyond, sizeof(buffer), FILLER);
	}
	world_stop(&w);
}

/*
 * Two locks of one allocation count once; an unlocked one does not count; destroying a device
 * counts like a deallocation.
 */
static void q_04_a_handle_that_is_destroyed_while_locked_is_counted(void **state)
{
	struct client_device other;
	struct world w;

	world_start(&w, state, NULL);
	client_open(&w.client, &other);
	D3DKMT_HANDLE locked = allocate_in(&w.device, 64 * KIB, CPU, 0),
		      unlocked = allocate_in(&w.device, 64 * KIB, CPU, 0),
		      theirs = allocate_in(&other, 64 * KIB, CPU, 0);

	client_lock(&w.device, locked, 0);
	client_lock(&w.device, locked, 0);
	client_lock(&w.device, unlocked, 0);
	client_lock(&other, theirs, 0);
	assert_int_equal(client_unlock(&w.device, unlocked), S_OK);
	assert_int_equal(world_statistics(&w).handles_destroyed_locked, 0);
	assert_int_equal(client_deallocate(&w.device, unlocked), S_OK);
	assert_int_equal(world_statistics(&w).handles_destroyed_locked, 0);
	assert_int_equal(client_deallocate(&w.device, locked), S_OK);
	assert_int_equal(world_statistics(&w).handles_destroyed_locked, 1);
	client_close(&other);
	assert_int_equal(world_statistics(&w).handles_destroyed_locked, 2);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(q_151_a_smaller_struct_size_gets_the_members_inside_it),
		BOTH(q_151_a_larger_struct_size_gets_zeros_in_unknown_members),
		BOTH(q_04_a_handle_that_is_destroyed_while_locked_is_counted),
	};

	return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
