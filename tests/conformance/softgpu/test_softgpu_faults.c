/* SPDX-License-Identifier: MIT */
/* softgpu of WDDM 2.x: page faults, wrong commands, and resets. */
#include "gva_client.h"

#include <stdatomic.h>
#include <string.h>

/* Another client, which must notice nothing. */
static void runs(struct gva_client *c, uint32_t word)
{
	struct gva_memory memory = gva_memory(c, 64 * KIB, GVA_VRAM);

	for (uint32_t node = 0; node < 2; node++) {
		gva_fill(c, memory.at, memory.bytes, word + node);
		gva_run(c, node);
		gva_expect(c, memory.handle, 0, memory.bytes, word + node);
	}
	gva_destroy(c, memory.handle);
}

static D3DKMT_DEVICEPAGEFAULT_STATE fault_of(struct gva_client *c)
{
	D3DKMT_GETDEVICESTATE args = {.hDevice = c->device,
				      .StateType = D3DKMT_DEVICESTATE_PAGE_FAULT};

	gva_enter(c);
	assert_int_equal(D3DKMTGetDeviceState(&args), STATUS_SUCCESS);
	return args.PageFaultState;
}

/* The device is lost, and what it queued is not executed. Its fences have their largest value. */
static void expect_lost(struct gva_client *c)
{
	gva_fill(c, c->commands_at, 4, 0);
	assert_int_not_equal(gva_try_submit(c, 0), STATUS_SUCCESS);
	assert_true(atomic_load(c->fence_word) == UINT64_MAX);
}

static void expect_fault(struct gva_client *c, uint64_t address, uint32_t flags)
{
	(void)gva_try_wait(c);
	client_idle(c->host);
	assert_int_equal(gva_state(c), D3DKMT_DEVICEEXECUTION_ERROR_DMAPAGEFAULT);
	const D3DKMT_DEVICEPAGEFAULT_STATE fault = fault_of(c);
	assert_int_equal(fault.FaultedVirtualAddress, address);
	assert_int_equal(fault.PageFaultFlags, flags);
	expect_lost(c);
}

struct pair {
	struct client host;
	struct gva_client bad, good;
};

static void begin(struct pair *p, void **state, const struct gva_options *options)
{
	gva_start(&p->host, state, options);
	gva_open(&p->host, &p->bad);
	gva_open(&p->host, &p->good);
	runs(&p->good, 0x600D0000);
}

static void finish(struct pair *p)
{
	runs(&p->good, 0x600E0000);
	gva_close(&p->bad);
	runs(&p->good, 0x600F0000);
	gva_close(&p->good);
	gva_stop(&p->host);
}

static void tdr_19_a_fault_reports_its_address_and_loses_the_device(void **state)
{
	struct pair p;

	begin(&p, state, &(struct gva_options){0});
	struct gva_memory memory = gva_memory(&p.bad, 64 * KIB, GVA_VRAM);
	/* The bytes before the fault are written, those of the next command are not. */
	gva_fill(&p.bad, memory.at + 60 * KIB, 8 * KIB, 0xBAD);
	gva_fill(&p.bad, memory.at, PAGE, 0xBAD);
	gva_submit(&p.bad, 1);
	expect_fault(&p.bad, memory.at + 64 * KIB, DXGK_PAGE_FAULT_WRITE);
	finish(&p);
}

static void tdr_19_a_read_without_memory_is_no_write(void **state)
{
	struct pair p;

	begin(&p, state, &(struct gva_options){.levels = 2});
	struct gva_memory memory = gva_memory(&p.bad, 64 * KIB, GVA_VRAM);
	gva_copy(&p.bad, 600 * MIB + 12, memory.at, 8);
	gva_submit(&p.bad, 0);
	expect_fault(&p.bad, 600 * MIB + 12, 0);
	finish(&p);
}

static void tdr_19_commands_without_memory_fault(void **state)
{
	struct pair p;

	begin(&p, state, &(struct gva_options){0});
	p.bad.commands_at += 512 * MIB;
	gva_fill(&p.bad, p.bad.fence_at, 8, 0);
	assert_int_equal(gva_try_submit(&p.bad, 0), STATUS_SUCCESS);
	p.bad.signaled = 1;
	expect_fault(&p.bad, p.bad.commands_at, 0);
	finish(&p);
}

static void va_06_a_write_to_a_read_only_page_faults(void **state)
{
	struct pair p;

	begin(&p, state, &(struct gva_options){0});
	struct gva_memory memory = gva_memory(&p.bad, 64 * KIB, GVA_VRAM);
	D3DDDI_MAPGPUVIRTUALADDRESS args = {.hAllocation = memory.handle, .SizeInPages = 16};
	uint64_t read_only = gva_map_args(&p.bad, &args);
	gva_fill(&p.bad, memory.at, 64 * KIB, 0x61);
	gva_copy(&p.bad, read_only, memory.at + PAGE, PAGE);
	gva_run(&p.bad, 0);
	gva_fill(&p.bad, read_only + 8, 4, 0xBAD);
	gva_submit(&p.bad, 0);
	expect_fault(&p.bad, read_only + 8, DXGK_PAGE_FAULT_WRITE);
	finish(&p);
}

/* VA-09: freed addresses fault, although the engine used them before. */
static void va_09_va_13_a_freed_address_faults(void **state)
{
	struct pair p;

	begin(&p, state, &(struct gva_options){0});
	struct gva_memory memory = gva_memory(&p.bad, 64 * KIB, GVA_VRAM);
	gva_fill(&p.bad, memory.at, 64 * KIB, 0x61);
	gva_run(&p.bad, 0);
	const D3DKMT_FREEGPUVIRTUALADDRESS free = {p.bad.adapter, memory.at, memory.bytes};
	gva_enter(&p.bad);
	assert_int_equal(D3DKMTFreeGpuVirtualAddress(&free), STATUS_SUCCESS);
	/* The flush is behind what was paged before; so is this mapping. */
	gva_map(&p.bad, memory.handle, memory.bytes, 1024 * MIB);
	gva_fill(&p.bad, memory.at + 32 * KIB, 8, 0xBAD);
	gva_submit(&p.bad, 0);
	expect_fault(&p.bad, memory.at + 32 * KIB, DXGK_PAGE_FAULT_WRITE);
	finish(&p);
}

static void refuse(void **state, const void *command, uint32_t bytes)
{
	struct pair p;

	begin(&p, state, &(struct gva_options){0});
	gva_command(&p.bad, command, bytes);
	gva_submit(&p.bad, 0);
	expect_fault(&p.bad, p.bad.commands_at, 0);
	assert_int_equal(fault_of(&p.bad).FaultErrorCode.GeneralErrorCode,
			 DXGK_GENERAL_ERROR_INVALID_INSTRUCTION);
	finish(&p);
}

static void tdr_19_wrong_commands_lose_their_device(void **state)
{
	const struct softgpu_command unknown = {77, 0, sizeof(unknown)},
				     privileged = {0x8001, 0, sizeof(privileged)},
				     flagged = {SOFTGPU_NOP, 1, sizeof(flagged)},
				     longer = {SOFTGPU_NOP, 0, 16}, empty = {SOFTGPU_NOP, 0, 0};
	struct softgpu_fill fill = {.command = {SOFTGPU_FILL, 0, sizeof(fill)},
				    .operand.allocation = 1};
	struct softgpu_sync sync = {.command = {SOFTGPU_WAIT, 0, sizeof(sync)},
				    .operand.address = 0x200004};
	const struct softgpu_traffic short_traffic = {
		.command = {SOFTGPU_TRAFFIC, 0, sizeof(short_traffic)}, .length = 3};

	refuse(state, &unknown, sizeof(unknown));
	refuse(state, &privileged, sizeof(privileged));
	refuse(state, &flagged, sizeof(flagged));
	refuse(state, &longer, sizeof(longer));
	refuse(state, &empty, sizeof(empty));
	refuse(state, &fill, sizeof(fill));
	fill.operand.allocation = 0;
	fill.reserved = 1;
	refuse(state, &fill, sizeof(fill));
	refuse(state, &sync, sizeof(sync));
	refuse(state, &short_traffic, sizeof(short_traffic));
}

static void tdr_19_wrong_stamps_and_tables_lose_their_device(void **state)
{
	/* VERIFY without a report */
	const struct softgpu_stamps stamps = {
		.command = {SOFTGPU_STAMP, SOFTGPU_FLAG_VERIFY, sizeof(stamps)},
		.operand.address = 0x200000,
		.block_count = 1};
	const struct softgpu_report_command report = {
		.command = {SOFTGPU_REPORT, 0, sizeof(report)}, .operand.address = 0x200004};
	struct {
		struct softgpu_relocations head;
		uint64_t slot[2];
	} table = {.head = {{SOFTGPU_RELOCATIONS, SOFTGPU_FLAG_CHECK, sizeof(table)}, 3, 0}};

	refuse(state, &stamps, sizeof(stamps));
	refuse(state, &report, sizeof(report));
	refuse(state, &table, sizeof(table));
	table.head.count = 1;
	refuse(state, &table, sizeof(table));
}

static void tdr_19_an_address_of_a_table_without_memory_faults(void **state)
{
	struct {
		struct softgpu_relocations head;
		uint64_t slot[2];
	} table = {.head = {{SOFTGPU_RELOCATIONS, SOFTGPU_FLAG_CHECK, sizeof(table)}, 2, 0}};
	struct pair p;

	begin(&p, state, &(struct gva_options){0});
	table.slot[0] = p.bad.commands_at;
	table.slot[1] = 600 * MIB;
	gva_command(&p.bad, &table, sizeof(table));
	gva_submit(&p.bad, 0);
	expect_fault(&p.bad, 600 * MIB, 0);
	finish(&p);
}

static void tdr_14_a_hang_loses_its_device(void **state)
{
	const struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	struct pair p;

	begin(&p, state, &(struct gva_options){0});
	gva_command(&p.bad, &hang, sizeof(hang));
	gva_submit(&p.bad, 0);
	(void)gva_try_wait(&p.bad);
	client_idle(&p.host);
	assert_int_not_equal(gva_state(&p.bad), D3DKMT_DEVICEEXECUTION_ACTIVE);
	expect_lost(&p.bad);
	finish(&p);
}

/* TDR-07: every device is lost. The page tables are written anew for those that come later. */
static void tdr_07_new_devices_have_page_tables_after_an_adapter_reset(void **state)
{
	const struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	struct gva_client later;
	struct pair p;

	begin(&p, state, &(struct gva_options){.adapter_reset = true});
	gva_command(&p.bad, &hang, sizeof(hang));
	gva_submit(&p.bad, 0);
	(void)gva_try_wait(&p.bad);
	client_idle(&p.host);
	expect_lost(&p.bad);
	expect_lost(&p.good);
	gva_open(&p.host, &later);
	runs(&later, 0x600E0000);
	gva_close(&p.bad);
	gva_close(&p.good);
	runs(&later, 0x600F0000);
	gva_close(&later);
	gva_stop(&p.host);
}

/* Fills of 4 GiB take 43 s on a slow engine. The one that runs at the timeout is not completed. */
static void tdr_14_a_reset_ends_a_long_packet_inside_a_command(void **state)
{
	struct pair p;

	begin(&p, state, &(struct gva_options){.rate = 100});
	uint64_t zero = gva_reserve(&p.bad, 64 * MIB, D3DDDIGPUVIRTUALADDRESS_RESERVE_ZERO);
	for (uint32_t i = 0; i < 64; i++)
		gva_fill(&p.bad, zero, 64 * MIB, 0);
	gva_submit(&p.bad, 0);
	(void)gva_try_wait(&p.bad);
	client_idle(&p.host);
	assert_int_not_equal(gva_state(&p.bad), D3DKMT_DEVICEEXECUTION_ACTIVE);
	expect_lost(&p.bad);
	finish(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(tdr_19_a_fault_reports_its_address_and_loses_the_device),
		ON_BOTH(tdr_19_a_read_without_memory_is_no_write),
		ON_BOTH(tdr_19_commands_without_memory_fault),
		ON_BOTH(va_06_a_write_to_a_read_only_page_faults),
		ON_BOTH(va_09_va_13_a_freed_address_faults),
		ON_SIM(tdr_19_wrong_commands_lose_their_device),
		ON_SIM(tdr_19_wrong_stamps_and_tables_lose_their_device),
		ON_SIM(tdr_19_an_address_of_a_table_without_memory_faults),
		ON_SIM(tdr_14_a_hang_loses_its_device),
		ON_SIM(tdr_07_new_devices_have_page_tables_after_an_adapter_reset),
		ON_SIM(tdr_14_a_reset_ends_a_long_packet_inside_a_command),
	};

	return cmocka_run_group_tests_name("softgpu_faults", tests, NULL, NULL);
}
