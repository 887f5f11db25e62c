/* SPDX-License-Identifier: MIT */
/* softgpu of WDDM 2.x: commands at GPU virtual addresses, as a D3DKMT client uses them. */
#include "gva_client.h"

#include <stdatomic.h>
#include <string.h>

/* Fills one allocation, copies it into another, and reads that on the CPU. */
static void fill_and_copy(struct gva_client *c, uint32_t from_set, uint32_t to_set)
{
	struct gva_memory from = gva_memory(c, 192 * KIB, from_set),
			  to = gva_memory(c, 192 * KIB, to_set);

	gva_fill(c, from.at, from.bytes, 0xF111F111);
	gva_run(c, 0);
	gva_expect(c, from.handle, 0, from.bytes, 0xF111F111);
	gva_fill(c, to.at, to.bytes, 0);
	gva_copy(c, from.at + 4, to.at + PAGE - 4, 70 * KIB);
	gva_run(c, 1);
	gva_expect(c, to.handle, 0, PAGE - 4, 0);
	gva_expect(c, to.handle, PAGE - 4, 70 * KIB, 0xF111F111);
	gva_expect(c, to.handle, PAGE - 4 + 70 * KIB, to.bytes - PAGE + 4 - 70 * KIB, 0);
	gva_destroy(c, from.handle);
	gva_destroy(c, to.handle);
}

static void in_all_segments(void **state, const struct gva_options *options)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, options);
	gva_open(&host, &c);
	fill_and_copy(&c, GVA_VRAM, GVA_VRAM);
	fill_and_copy(&c, GVA_APERTURE, GVA_VRAM);
	fill_and_copy(&c, GVA_VRAM, GVA_APERTURE);
	fill_and_copy(&c, GVA_APERTURE, GVA_APERTURE);
	gva_close(&c);
	gva_stop(&host);
}

static void sub_23_fills_and_copies_run_with_pages_of_4_kib(void **state)
{
	in_all_segments(state, &(struct gva_options){0});
}

static void va_05_fills_and_copies_run_with_pages_of_64_kib(void **state)
{
	in_all_segments(state, &(struct gva_options){.page_bytes = 64 * KIB});
}

static void va_11_two_levels_have_a_root_that_grows(void **state)
{
	struct client host;
	struct gva_client c;

	in_all_segments(state, &(struct gva_options){.levels = 2});
	gva_start(&host, state, &(struct gva_options){.levels = 2});
	gva_open(&host, &c);
	struct gva_memory low = gva_memory(&c, 64 * KIB, GVA_VRAM);
	/* entry 4096 of the root, behind its 512 first ones */
	uint64_t high = gva_map(&c, low.handle, 64 * KIB, 4096 * 2 * MIB);
	gva_fill(&c, high, 64 * KIB, 0x816);
	gva_fill(&c, low.at + PAGE, PAGE, 0x10);
	gva_run(&c, 0);
	gva_expect(&c, low.handle, 0, PAGE, 0x816);
	gva_expect(&c, low.handle, PAGE, PAGE, 0x10);
	gva_close(&c);
	gva_stop(&host);
}

static void pnp_01_every_interface_version_of_2_x_runs_commands(void **state)
{
	static const uint32_t versions[] = {0x5023, 0x6003, 0x700A, 0x8001, 0x9006, 0xA00B, 0xC004};

	for (uint32_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		in_all_segments(state, &(struct gva_options){.version = versions[i]});
}

/* VA-05: 16 entries are one translation, until one of them changes. */
static void va_13_a_page_inside_64_kib_is_replaced(void **state)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){0});
	gva_open(&host, &c);
	D3DKMT_HANDLE whole = gva_allocate(&c, 64 * KIB, GVA_VRAM),
		      page = gva_allocate(&c, PAGE, GVA_VRAM);
	gva_make_resident(&c, whole);
	gva_make_resident(&c, page);
	uint64_t at = gva_reserve(&c, 64 * KIB, D3DDDIGPUVIRTUALADDRESS_RESERVE_NO_ACCESS);
	gva_map(&c, whole, 64 * KIB, at);
	gva_fill(&c, at, 64 * KIB, 0x1111);
	gva_run(&c, 0);
	gva_map(&c, page, PAGE, at + 5 * PAGE);
	gva_fill(&c, at, 64 * KIB, 0x2222);
	gva_run(&c, 0);
	gva_expect(&c, whole, 0, 5 * PAGE, 0x2222);
	gva_expect(&c, whole, 5 * PAGE, PAGE, 0x1111);
	gva_expect(&c, whole, 6 * PAGE, 10 * PAGE, 0x2222);
	gva_expect(&c, page, 0, PAGE, 0x2222);
	gva_map(&c, whole, 64 * KIB, at);
	gva_fill(&c, at + 5 * PAGE, PAGE, 0x3333);
	gva_run(&c, 0);
	gva_expect(&c, whole, 5 * PAGE, PAGE, 0x3333);
	gva_expect(&c, page, 0, PAGE, 0x2222);
	gva_close(&c);
	gva_stop(&host);
}

static void va_01_two_processes_see_their_own_memory_at_one_address(void **state)
{
	const uint64_t at = 1024 * MIB;
	struct gva_client c[2];
	D3DKMT_HANDLE memory[2];
	struct client host;

	gva_start(&host, state, &(struct gva_options){0});
	for (uint32_t i = 0; i < 2; i++) {
		gva_open(&host, &c[i]);
		memory[i] = gva_allocate(&c[i], 128 * KIB, GVA_VRAM);
		gva_make_resident(&c[i], memory[i]);
		assert_int_equal(gva_map(&c[i], memory[i], 128 * KIB, at), at);
	}
	for (uint32_t i = 0; i < 8; i++)
		gva_fill(&c[i % 2], at + i / 2 * 32 * KIB, 32 * KIB, 0xA000 + i);
	gva_submit(&c[0], 0);
	gva_submit(&c[1], 1);
	gva_wait(&c[1]);
	gva_wait(&c[0]);
	for (uint32_t i = 0; i < 8; i++)
		gva_expect(&c[i % 2], memory[i % 2], i / 2 * 32 * KIB, 32 * KIB, 0xA000 + i);
	gva_close(&c[0]);
	gva_fill(&c[1], at, 64 * KIB, 0xB);
	gva_run(&c[1], 0);
	gva_expect(&c[1], memory[1], 0, 64 * KIB, 0xB);
	gva_close(&c[1]);
	gva_stop(&host);
}

/* A reservation of zeros reads as zero, and writes there change nothing. */
static void va_07_zero_pages_read_as_zero(void **state)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){0});
	gva_open(&host, &c);
	struct gva_memory memory = gva_memory(&c, 64 * KIB, GVA_VRAM);
	uint64_t zero = gva_reserve(&c, 64 * KIB, D3DDDIGPUVIRTUALADDRESS_RESERVE_ZERO);
	gva_fill(&c, memory.at, 64 * KIB, 0x5A5A);
	gva_fill(&c, zero, 64 * KIB, 0xBAD);
	gva_copy(&c, zero, memory.at, 32 * KIB);
	gva_run(&c, 0);
	gva_expect(&c, memory.handle, 0, 32 * KIB, 0);
	gva_expect(&c, memory.handle, 32 * KIB, 32 * KIB, 0x5A5A);
	gva_close(&c);
	gva_stop(&host);
}

/* The copy node signals a word, and the 3D node waits for it. */
static void mfn_05_nodes_wait_for_each_other_in_memory(void **state)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){0});
	gva_open(&host, &c);
	struct gva_memory word = gva_memory(&c, PAGE, GVA_VRAM),
			  memory = gva_memory(&c, 64 * KIB, GVA_APERTURE);
	gva_fill(&c, word.at, PAGE, 0);
	gva_fill(&c, memory.at, 64 * KIB, 0);
	gva_run(&c, 0);
	gva_sync(&c, SOFTGPU_WAIT, 0, word.at + 8, 7);
	gva_copy(&c, memory.at, memory.at + 32 * KIB, 32 * KIB);
	gva_submit(&c, 0);
	gva_stall(&c, 50000);
	gva_fill(&c, memory.at, 32 * KIB, 0x77);
	gva_sync(&c, SOFTGPU_SIGNAL, 0, word.at + 8, 7);
	assert_int_equal(gva_try_submit(&c, 1), STATUS_SUCCESS);
	gva_wait(&c);
	gva_expect(&c, memory.handle, 0, 64 * KIB, 0x77);
	gva_close(&c);
	gva_stop(&host);
}

static void add_traffic(struct gva_client *c, const struct gva_memory *memory, uint64_t length,
			uint64_t nanoseconds)
{
	const struct softgpu_traffic traffic = {
		.command = {SOFTGPU_TRAFFIC, SOFTGPU_FLAG_WRITE, sizeof(traffic)},
		.operand.address = memory->at,
		.length = length,
		.nanoseconds = nanoseconds,
	};

	gva_command(c, &traffic, sizeof(traffic));
}

/* How long a TRAFFIC at the memory, or with length 0 a copy inside it, keeps the engine busy. */
static uint64_t busy_ns(struct gva_client *c, const struct gva_memory *memory, uint64_t length)
{
	uint64_t start = vidmm_now_ns(c->host->host);

	if (length)
		add_traffic(c, memory, length, 20000);
	else
		gva_copy(c, memory->at, memory->at + 32 * KIB, 32 * KIB);
	gva_run(c, 0);
	return vidmm_now_ns(c->host->host) - start;
}

static void sub_23_work_in_system_memory_takes_the_time_of_the_host_link(void **state)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){.link_rate = 1});
	gva_open(&host, &c);
	struct gva_memory local = gva_memory(&c, 64 * KIB, GVA_VRAM),
			  remote = gva_memory(&c, 64 * KIB, GVA_APERTURE);
	assert_in_range(busy_ns(&c, &local, 64 * KIB), 20000, 30000);
	assert_in_range(busy_ns(&c, &remote, 64 * KIB), 65536000, 65556000);
	assert_in_range(busy_ns(&c, &remote, 4), 20000, 30000);
	assert_in_range(busy_ns(&c, &local, 0), 0, 10000);
	assert_in_range(busy_ns(&c, &remote, 0), 32768000, 32788000);
	gva_close(&c);
	gva_stop(&host);
}

/* The value is visible when the work before it is done, not when its commands were read. */
static void mfn_04_a_fence_is_stored_after_the_time_of_the_work_before_it(void **state)
{
	enum { BUSY_NS = 3000000 };
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){0});
	gva_open(&host, &c);
	struct gva_memory memory = gva_memory(&c, 64 * KIB, GVA_VRAM);
	uint64_t start = vidmm_now_ns(host.host);
	add_traffic(&c, &memory, 64 * KIB, BUSY_NS);
	gva_sync(&c, SOFTGPU_SIGNAL, 0, c.fence_at, 1);
	add_traffic(&c, &memory, 64 * KIB, BUSY_NS);
	gva_sync(&c, SOFTGPU_SIGNAL, 0, c.fence_at, 2);
	assert_int_equal(gva_try_submit(&c, 0), STATUS_SUCCESS);
	while (atomic_load(c.fence_word) < 1)
		vidmm_sleep_until_ns(host.host, vidmm_now_ns(host.host) + 10000);
	assert_in_range(vidmm_now_ns(host.host) - start, BUSY_NS, 2 * BUSY_NS);
	c.signaled = 2;
	gva_wait(&c);
	assert_in_range(vidmm_now_ns(host.host) - start, 2 * BUSY_NS, 3 * BUSY_NS);
	gva_close(&c);
	gva_stop(&host);
}

/* The packet goes on for a second after the signal. */
static void mfn_27_an_interrupt_wakes_a_waiter_inside_a_packet(void **state)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){0});
	gva_open(&host, &c);
	gva_sync(&c, SOFTGPU_SIGNAL, SOFTGPU_FLAG_NOTIFY, c.fence_at, 1);
	gva_stall(&c, 1000000000);
	gva_sync(&c, SOFTGPU_SIGNAL, 0, c.fence_at, 2);
	assert_int_equal(gva_try_submit(&c, 0), STATUS_SUCCESS);
	c.signaled = 1;
	assert_int_equal(gva_try_wait(&c), STATUS_SUCCESS);
	assert_int_equal(atomic_load(c.fence_word), 1);
	c.signaled = 2;
	gva_wait(&c);
	gva_close(&c);
	gva_stop(&host);
}

/* MFN-26: a word that is not a monitored fence wakes no waiter, the end of the packet does. */
static void mfn_04_the_gpu_stores_a_fence_by_its_address(void **state)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){0});
	gva_open(&host, &c);
	for (uint32_t i = 0; i < 20; i++)
		gva_run(&c, i % 2);
	assert_int_equal(atomic_load(c.fence_word), 20);
	/* MFN-25: the GPU may lower the value */
	gva_sync(&c, SOFTGPU_SIGNAL, 0, c.fence_at, 5);
	gva_sync(&c, SOFTGPU_SIGNAL, 0, c.fence_at, 6);
	assert_int_equal(gva_try_submit(&c, 0), STATUS_SUCCESS);
	gva_run(&c, 0);
	gva_close(&c);
	gva_stop(&host);
}

static struct softgpu_stamps stamps_at(uint64_t at, uint32_t flags, uint32_t expected, uint32_t new)
{
	return (struct softgpu_stamps){
		.command = {SOFTGPU_STAMP, (uint16_t)flags, sizeof(struct softgpu_stamps)},
		.operand.address = at,
		.block_count = 16,
		.block_size = PAGE,
		.buffer = 7,
		.expected_version = expected,
		.new_version = new};
}

/* Writes stamps, checks them, and checks for a version that is not there: 16 records. */
static void sub_23_stamps_are_checked_at_virtual_addresses(void **state)
{
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){0});
	gva_open(&host, &c);
	struct gva_memory memory = gva_memory(&c, 64 * KIB, GVA_VRAM);
	struct gva_memory report = gva_memory(&c, PAGE, GVA_APERTURE);
	struct softgpu_report *head = gva_lock(&c, report.handle);
	const struct softgpu_report_record *records = (const void *)(head + 1);
	const struct softgpu_report_command use = {.command = {SOFTGPU_REPORT, 0, sizeof(use)},
						   .operand.address = report.at};
	const struct softgpu_stamps commands[] = {
		stamps_at(memory.at, SOFTGPU_FLAG_VERIFY | SOFTGPU_FLAG_WRITE, 0, 3),
		stamps_at(memory.at, SOFTGPU_FLAG_VERIFY, 3, 0),
		stamps_at(memory.at, SOFTGPU_FLAG_VERIFY, 4, 0)};

	head->capacity = 10;
	gva_command(&c, &use, sizeof(use));
	gva_command(&c, &commands[0], sizeof(commands[0]));
	gva_command(&c, &commands[1], sizeof(commands[1]));
	gva_run(&c, 0);
	assert_int_equal(head->count, 0);
	gva_command(&c, &use, sizeof(use));
	gva_command(&c, &commands[2], sizeof(commands[2]));
	gva_run(&c, 1);
	assert_int_equal(head->count, 16);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(records[i].buffer, 7);
		assert_int_equal(records[i].block, i);
		assert_int_equal(records[i].expected_version, 4);
		assert_int_equal(records[i].found_version, 3);
	}
	assert_int_equal(records[10].buffer, 0);
	gva_unlock(&c, report.handle);
	gva_close(&c);
	gva_stop(&host);
}

static void sub_23_a_table_of_addresses_is_checked(void **state)
{
	struct {
		struct softgpu_relocations head;
		uint64_t slot[200];
	} table = {.head = {{SOFTGPU_RELOCATIONS, SOFTGPU_FLAG_CHECK, sizeof(table)}, 200, 0}};
	struct client host;
	struct gva_client c;

	gva_start(&host, state, &(struct gva_options){0});
	gva_open(&host, &c);
	struct gva_memory memory = gva_memory(&c, 64 * KIB, GVA_VRAM);
	for (uint32_t i = 0; i < 200; i++)
		table.slot[i] = memory.at + i * 300;
	gva_command(&c, &table, sizeof(table));
	gva_run(&c, 0);
	/* Without CHECK, nothing is read. */
	table.head.command.flags = 0;
	table.slot[150] = 600 * MIB;
	gva_command(&c, &table, sizeof(table));
	gva_run(&c, 0);
	assert_int_equal(gva_state(&c), D3DKMT_DEVICEEXECUTION_ACTIVE);
	gva_close(&c);
	gva_stop(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_23_fills_and_copies_run_with_pages_of_4_kib),
		ON_BOTH(va_05_fills_and_copies_run_with_pages_of_64_kib),
		ON_BOTH(va_11_two_levels_have_a_root_that_grows),
		ON_SIM(pnp_01_every_interface_version_of_2_x_runs_commands),
		ON_BOTH(va_13_a_page_inside_64_kib_is_replaced),
		ON_BOTH(va_01_two_processes_see_their_own_memory_at_one_address),
		ON_BOTH(va_07_zero_pages_read_as_zero),
		ON_BOTH(mfn_05_nodes_wait_for_each_other_in_memory),
		ON_SIM(sub_23_work_in_system_memory_takes_the_time_of_the_host_link),
		ON_SIM(mfn_27_an_interrupt_wakes_a_waiter_inside_a_packet),
		ON_SIM(mfn_04_a_fence_is_stored_after_the_time_of_the_work_before_it),
		ON_BOTH(mfn_04_the_gpu_stores_a_fence_by_its_address),
		ON_BOTH(sub_23_stamps_are_checked_at_virtual_addresses),
		ON_BOTH(sub_23_a_table_of_addresses_is_checked),
	};

	return cmocka_run_group_tests_name("softgpu_virtual", tests, NULL, NULL);
}
