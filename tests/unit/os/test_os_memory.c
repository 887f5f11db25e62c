/* SPDX-License-Identifier: MIT */
/* Memory objects, views and bulk copy, the same on both back ends. */
#include "os_world.h"

#include <setjmp.h>
#include <sys/mman.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static sigjmp_buf faulted;

static void on_fault(int signal)
{
	siglongjmp(faulted, signal);
}

/* Does a read of this byte fault? */
static bool faults(const volatile char *address)
{
	struct sigaction action = {.sa_handler = on_fault}, before_segv, before_bus;
	volatile bool fault = true;

	sigaction(SIGSEGV, &action, &before_segv);
	sigaction(SIGBUS, &action, &before_bus);
	if (sigsetjmp(faulted, 1) == 0) {
		(void)*address;
		fault = false;
	}
	sigaction(SIGSEGV, &before_segv, NULL);
	sigaction(SIGBUS, &before_bus, NULL);
	return fault;
}

static bool all_bytes_are(const char *bytes, uint64_t length, char value)
{
	for (uint64_t i = 0; i < length; i++) {
		if (bytes[i] != value)
			return false;
	}
	return true;
}

static void memory_is_zero_at_first_and_after_a_discard(void **state)
{
	struct vmm_os_memory memory;

	assert_int_equal(vmm_os_memory_create(*state, "m", 3 * MIB, &memory), VMM_OK);
	assert_int_equal(memory.size_bytes, 3 * MIB);
	assert_true(all_bytes_are(memory.base, memory.size_bytes, 0));
	memset(memory.base, 0x5A, memory.size_bytes);
	vmm_os_memory_discard(&memory, 64 * KIB, MIB);
	assert_true(all_bytes_are(memory.base, 64 * KIB, 0x5A));
	assert_true(all_bytes_are(memory.base + 64 * KIB, MIB, 0));
	assert_true(all_bytes_are(memory.base + 64 * KIB + MIB, 3 * MIB - MIB - 64 * KIB, 0x5A));
	vmm_os_memory_discard(&memory, 0, 0);
	vmm_os_memory_destroy(&memory);
	vmm_os_memory_destroy(&memory);
}

static void large_objects_and_views_are_aligned_for_huge_pages(void **state)
{
	struct vmm_os_memory memory;
	struct vmm_os_view view;

	assert_int_equal(vmm_os_memory_create(*state, "m", 5 * MIB, &memory), VMM_OK);
	assert_int_equal((uintptr_t)memory.base % (2 * MIB), 0);
	assert_int_equal(vmm_os_view_reserve(*state, 5 * MIB, &view), VMM_OK);
	assert_int_equal((uintptr_t)view.address % (2 * MIB), 0);
	vmm_os_view_release(&view);
	vmm_os_memory_destroy(&memory);
}

/*
 * Resident pages of the object's permanent mapping, as far as the system counts them; 0: it cannot
 * say.
 */
static uint64_t resident_pages(const struct vmm_os_memory *memory)
{
	static unsigned char present[4 * MIB / VMM_PAGE_SIZE];
	uint64_t pages = memory->size_bytes / VMM_PAGE_SIZE, count = 0;

	assert_true(pages <= sizeof(present));
	assert_int_equal(mincore(memory->base, memory->size_bytes, present), 0);
	for (uint64_t i = 0; i < pages; i++)
		count += present[i] & 1;
	return count;
}

static void expected_memory_keeps_its_content_and_small_parts_get_no_huge_page(void **state)
{
	struct vmm_os_memory memory;

	assert_int_equal(vmm_os_memory_create(*state, "m", 3 * MIB + 4 * KIB, &memory), VMM_OK);
	memory.base[70 * KIB] = 7;
	vmm_os_memory_expect(&memory, 64 * KIB, 64 * KIB);
	assert_true(resident_pages(&memory) < 64);
	for (unsigned i = 0; i < 20; i++)
		vmm_os_memory_expect(&memory, 256 * KIB, 64 * KIB);
	/* From a huge page into the part at the end, which has none. */
	vmm_os_memory_expect(&memory, MIB, 2 * MIB + 4 * KIB);
	assert_int_equal(memory.base[70 * KIB], 7);
	memory.base[70 * KIB] = 0;
	assert_true(all_bytes_are(memory.base, memory.size_bytes, 0));
	if (resident_pages(&memory) < 512)
		print_message("# this kernel makes no huge pages on request\n");

	/* Discarded, and expected again. */
	memset(memory.base, 0x5A, memory.size_bytes);
	vmm_os_memory_discard(&memory, 0, 2 * MIB);
	vmm_os_memory_expect(&memory, 0, 2 * MIB);
	assert_true(all_bytes_are(memory.base, 2 * MIB, 0));
	assert_true(all_bytes_are(memory.base + 2 * MIB, MIB, 0x5A));
	vmm_os_memory_destroy(&memory);
}

static void sizes_that_are_no_multiple_of_pages_are_refused(void **state)
{
	struct vmm_os_memory memory = {0};
	struct vmm_os_view view = {0};

	assert_int_equal(vmm_os_memory_create(*state, "m", 0, &memory), VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_os_memory_create(*state, "m", 4095, &memory), VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_os_view_reserve(*state, 0, &view), VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_os_view_reserve(*state, 100, &view), VMM_INVALID_PARAMETER);
	assert_int_equal(vmm_os_memory_create(*state, "m", UINT64_MAX & ~4095ull, &memory),
			 VMM_NO_MEMORY);
	assert_int_equal(vmm_os_view_reserve(*state, UINT64_MAX & ~4095ull, &view), VMM_NO_MEMORY);
	assert_null(memory.base);
	assert_null(view.address);
}

static void a_view_shows_the_mapped_memory_at_a_stable_address(void **state)
{
	struct vmm_os_memory segment, backing;
	struct vmm_os_view view;
	char *address;

	assert_int_equal(vmm_os_memory_create(*state, "segment", MIB, &segment), VMM_OK);
	assert_int_equal(vmm_os_memory_create(*state, "backing", 64 * KIB, &backing), VMM_OK);
	assert_int_equal(vmm_os_view_reserve(*state, 64 * KIB, &view), VMM_OK);
	address = view.address;
	assert_true(faults(address));

	assert_int_equal(vmm_os_view_map(&view, 0, &segment, 128 * KIB, 64 * KIB), VMM_OK);
	address[5] = 1;
	assert_int_equal(segment.base[128 * KIB + 5], 1);

	assert_int_equal(vmm_os_view_map(&view, 0, &backing, 0, 64 * KIB), VMM_OK);
	assert_ptr_equal(view.address, address);
	assert_int_equal(address[5], 0);
	backing.base[5] = 2;
	assert_int_equal(address[5], 2);

	/* A part of it alone: an aperture range of some pages. */
	assert_int_equal(vmm_os_view_map(&view, 32 * KIB, &segment, 0, 4 * KIB), VMM_OK);
	segment.base[0] = 9;
	assert_int_equal(address[32 * KIB], 9);
	assert_int_equal(address[5], 2);

	vmm_os_view_unmap(&view);
	assert_ptr_equal(view.address, address);
	assert_true(faults(address + 5));
	vmm_os_view_release(&view);
	vmm_os_view_release(&view);
	vmm_os_memory_destroy(&segment);
	vmm_os_memory_destroy(&backing);
}

static void a_frozen_view_can_be_read_moved_and_thawed(void **state)
{
	struct vmm_os_memory a, b;
	struct vmm_os_view view;
	vmm_status status;

	assert_int_equal(vmm_os_memory_create(*state, "a", 16 * KIB, &a), VMM_OK);
	assert_int_equal(vmm_os_memory_create(*state, "b", 16 * KIB, &b), VMM_OK);
	assert_int_equal(vmm_os_view_reserve(*state, 16 * KIB, &view), VMM_OK);
	assert_int_equal(vmm_os_view_map(&view, 0, &a, 0, 16 * KIB), VMM_OK);
	view.address[0] = 3;
	status = vmm_os_view_freeze(&view);
	if (status == VMM_NOT_SUPPORTED)
		print_message("# this kernel has no userfaultfd write protection\n");
	else
		assert_int_equal(status, VMM_OK);
	assert_int_equal(view.address[0], 3);
	assert_int_equal(view.address[4 * KIB], 0);
	vmm_os_view_thaw(&view);
	view.address[0] = 4; /* would block for ever if it were still frozen */
	assert_int_equal(a.base[0], 4);

	assert_int_equal(vmm_os_view_freeze(&view), status);
	memcpy(b.base, a.base, 16 * KIB);
	assert_int_equal(vmm_os_view_map(&view, 0, &b, 0, 8 * KIB), VMM_OK);
	view.address[0] = 5; /* the part that was mapped again is writable */
	assert_int_equal(b.base[0], 5);
	vmm_os_view_thaw(&view);
	view.address[12 * KIB] = 6;
	assert_int_equal(a.base[12 * KIB], 6);
	vmm_os_view_thaw(&view);

	/* A view with a mapping in its first half only. */
	vmm_os_view_unmap(&view);
	assert_int_equal(vmm_os_view_map(&view, 0, &b, 0, 8 * KIB), VMM_OK);
	assert_int_equal(vmm_os_view_freeze(&view), status);
	assert_int_equal(view.address[0], 5);
	vmm_os_view_thaw(&view);
	view.address[0] = 7;
	assert_int_equal(vmm_os_view_freeze(&view), status);
	vmm_os_view_unmap(&view);
	assert_true(faults(view.address));
	assert_int_equal(vmm_os_view_map(&view, 0, &b, 0, 16 * KIB), VMM_OK);
	assert_int_equal(vmm_os_view_freeze(&view), status);
	vmm_os_view_release(&view);
	vmm_os_memory_destroy(&a);
	vmm_os_memory_destroy(&b);
}

/*
 * PAG-16 on sim, where a store cannot block: what was stored during the freeze is in the new
 * memory, and no other byte of the old one is.
 */
static void a_store_to_a_frozen_view_of_sim_reaches_the_new_memory(void **state)
{
	struct vmm_os_memory a, b;
	struct vmm_os_view view;

	assert_int_equal(vmm_os_memory_create(*state, "a", 16 * KIB, &a), VMM_OK);
	assert_int_equal(vmm_os_memory_create(*state, "b", 16 * KIB, &b), VMM_OK);
	assert_int_equal(vmm_os_view_reserve(*state, 16 * KIB, &view), VMM_OK);
	assert_int_equal(vmm_os_view_map(&view, 0, &a, 0, 16 * KIB), VMM_OK);
	memset(view.address, 1, 16 * KIB);
	assert_int_equal(vmm_os_view_freeze(&view), VMM_OK);
	memcpy(b.base, a.base, 16 * KIB);
	b.base[5 * KIB] = 9; /* the move went wrong here, which must show */
	view.address[3] = 2; /* after the copy */
	view.address[12 * KIB] = 4;
	assert_int_equal(vmm_os_view_map(&view, 0, &b, 0, 8 * KIB), VMM_OK);
	assert_int_equal(vmm_os_view_map(&view, 8 * KIB, &b, 8 * KIB, 8 * KIB), VMM_OK);
	assert_int_equal(b.base[3], 2);
	assert_int_equal(b.base[12 * KIB], 4);
	assert_int_equal(b.base[5 * KIB], 9);

	/* The freeze has ended: the next move carries nothing over. */
	view.address[3] = 7;
	memset(a.base, 0, 16 * KIB);
	assert_int_equal(vmm_os_view_map(&view, 0, &a, 0, 16 * KIB), VMM_OK);
	assert_int_equal(view.address[3], 0);

	/* Thawed without a move. */
	assert_int_equal(vmm_os_view_freeze(&view), VMM_OK);
	view.address[3] = 8;
	vmm_os_view_thaw(&view);
	assert_int_equal(vmm_os_view_map(&view, 0, &b, 0, 16 * KIB), VMM_OK);
	assert_int_equal(view.address[3], 7);
	vmm_os_view_release(&view);
	vmm_os_memory_destroy(&a);
	vmm_os_memory_destroy(&b);
}

/* ---- copy and fill ---- */

static void make_pattern(char *bytes, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		bytes[i] = (char)(i * 131 + (i >> 8) * 7);
}

static void copies_are_exact_at_every_alignment(void **state)
{
	static const uint64_t lengths[] = {
		0, 1, 4095, MIB - 1, MIB, MIB + 1, MIB + 4 * KIB, 2 * MIB + 127, 3 * MIB + 33};
	uint64_t size = 8 * MIB;
	char *source = vmm_calloc(1, size), *target = vmm_calloc(1, size);

	(void)state;
	make_pattern(source, size);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(lengths); i++) {
		for (uint64_t shift = 0; shift < 64; shift += 21) {
			char *to = target + 64 + shift;
			const char *from = source + 63 - shift;

			memset(to - 1, 0x77, lengths[i] + 2);
			vmm_os_copy(to, from, lengths[i]);
			assert_memory_equal(to, from, lengths[i]);
			assert_int_equal(to[-1], 0x77);
			assert_int_equal(to[lengths[i]], 0x77);
		}
	}
	vmm_free(source);
	vmm_free(target);
}

static void fills_are_exact_at_every_size(void **state)
{
	static const uint64_t lengths[] = {0, 4, 4096, MIB - 4, MIB, MIB + 4, 2 * MIB + 124};
	char *target = vmm_calloc(1, 4 * MIB);

	(void)state;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(lengths); i++) {
		for (uint64_t shift = 0; shift < 32; shift += 4) {
			uint32_t *to = (uint32_t *)(void *)(target + 64 + shift);
			uint64_t wrong = 0;

			memset(target, 0x77, 4 * MIB);
			vmm_os_fill_u32(to, 0x12345678, lengths[i]);
			for (uint64_t w = 0; w < lengths[i] / 4; w++)
				wrong += to[w] != 0x12345678;
			assert_int_equal(wrong, 0);
			assert_int_equal(to[-1], 0x77777777);
			assert_int_equal(to[lengths[i] / 4], 0x77777777);
		}
	}
	vmm_free(target);
}

static void invalid_client_memory_is_probed_without_a_crash(void **state)
{
	const uint64_t page = VMM_PAGE_SIZE;
	char *map =
		mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(map != MAP_FAILED);
	map[page] = 42;
	assert_true(vmm_os_probe_writable(map, 4 * page));
	assert_int_equal(map[page], 42);
	assert_false(vmm_os_probe_writable(NULL, page));
	assert_false(vmm_os_probe_writable(map, 0));
	assert_false(vmm_os_probe_writable(map + 1, page));
	assert_false(vmm_os_probe_writable(map, page + 1));
	assert_false(vmm_os_probe_writable((void *)-page, 2 * page)); /* across the end */
	assert_false(vmm_os_probe_writable((void *)(uintptr_t)page, page));
	assert_int_equal(mprotect(map + 3 * page, page, PROT_READ), 0);
	assert_false(vmm_os_probe_writable(map, 4 * page));
	assert_int_equal(munmap(map + page, page), 0);
	assert_false(vmm_os_probe_writable(map, 3 * page));
	assert_true(vmm_os_probe_writable(map, page));
	assert_true(vmm_os_probe_writable(map + 2 * page, page));
	munmap(map, page);
	munmap(map + 2 * page, 2 * page);
}

static void a_flush_counts_lines_and_changes_nothing(void **state)
{
	const struct vmm_os *os = *state;
	char *bytes = vmm_calloc(1, 8192);
	uint64_t all = vmm_os_cache_flush(os, bytes, 8192);

	for (int i = 0; i < 8192; i++)
		bytes[i] = (char)i;
	assert_true(vmm_os_cache_flush(os, bytes, 0) == 0);
#if defined(__x86_64__)
	assert_true(all >= 8192 / 256 && all <= 8192 / 16 + 1); /* lines of 16 to 256 bytes */
	assert_true(vmm_os_cache_flush(os, bytes + 100, 1) == 1);
#endif
	assert_true(vmm_os_cache_flush(os, bytes, 8192) == all);
	for (int i = 0; i < 8192; i++)
		assert_int_equal(bytes[i], (char)i);
	vmm_free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(memory_is_zero_at_first_and_after_a_discard),
		BOTH(large_objects_and_views_are_aligned_for_huge_pages),
		BOTH(expected_memory_keeps_its_content_and_small_parts_get_no_huge_page),
		BOTH(sizes_that_are_no_multiple_of_pages_are_refused),
		BOTH(a_view_shows_the_mapped_memory_at_a_stable_address),
		BOTH(a_frozen_view_can_be_read_moved_and_thawed),
		ON_SIM(a_store_to_a_frozen_view_of_sim_reaches_the_new_memory),
		cmocka_unit_test(invalid_client_memory_is_probed_without_a_crash),
		BOTH(a_flush_counts_lines_and_changes_nothing),
		cmocka_unit_test(copies_are_exact_at_every_alignment),
		cmocka_unit_test(fills_are_exact_at_every_size),
	};

	return cmocka_run_group_tests_name("os_memory", tests, NULL, NULL);
}
