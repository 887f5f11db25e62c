/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiRender and DxgkDdiPatch: accepted commands, their output, and refusals with their
 * statuses.
 */
#include "fixture.h"

#include <stdlib.h>

#include "../../../drivers/softgpu/softgpu_hw.h"

#define ALLOCATION_BYTES (16 * PAGE)
#define ADDRESS(index)   ((uint64_t)(index)*0x100000u)

/* A list of four: 0 NULL, 1 read-only at 1 MiB, 2 writable at 2 MiB, 3 writable and not resident.
 */
struct scene {
	struct gpu *gpu;
	DXGK_ALLOCATIONLIST list[4];
	struct gpu_dma dma;
};

static struct scene *scene_create(struct gpu *gpu)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct softgpu_allocation spec = gpu_spec(ALLOCATION_BYTES);

	assert_non_null(scene);
	scene->gpu = gpu;
	scene->list[0] = gpu_entry(NULL, 0, 0, 0);
	scene->list[1] = gpu_entry(gpu_allocate(gpu, &spec), VRAM, ADDRESS(1), 0);
	scene->list[2] = gpu_entry(gpu_allocate(gpu, &spec), VRAM, ADDRESS(2), 1);
	scene->list[3] = gpu_entry(gpu_allocate(gpu, &spec), 0, 0, 1);
	gpu_dma_init(gpu, &scene->dma, scene->list, 4);
	return scene;
}

static void scene_destroy(struct scene *scene)
{
	gpu_dma_finish(&scene->dma);
	free(scene);
}

static NTSTATUS render(struct scene *scene, const void *commands, uint32_t length)
{
	return gpu_render_pass(scene->gpu, &scene->dma, commands, length, NULL, 0);
}

static struct softgpu_reference make_reference(uint32_t allocation, uint64_t offset, uint16_t flags)
{
	struct softgpu_reference reference = {
		.command = {SOFTGPU_REFERENCE, flags, sizeof(reference)},
		.operand = {.allocation = allocation, .offset = offset},
	};

	return reference;
}

static void assert_patch(const D3DDDI_PATCHLOCATIONLIST *patch, uint32_t allocation, uint32_t slot,
			 uint32_t offset, uint32_t where)
{
	assert_int_equal(patch->AllocationIndex, allocation);
	assert_int_equal(patch->Value, slot);
	assert_int_equal(patch->AllocationOffset, offset);
	assert_int_equal(patch->PatchOffset, where);
}

static void a_command_is_copied_patched_and_listed(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_reference commands[2] = {make_reference(1, 0x123, 0),
						make_reference(2, 0x456, SOFTGPU_FLAG_WRITE)};
	const struct softgpu_reference *out = (const void *)scene->dma.buffer;

	assert_int_equal(render(scene, commands, sizeof(commands)), STATUS_SUCCESS);
	assert_int_equal(scene->dma.length, sizeof(commands));
	assert_int_equal(scene->dma.patch_count, 2);
	assert_int_equal(out[0].operand.address, ADDRESS(1) + 0x123);
	assert_int_equal(out[1].operand.address, ADDRESS(2) + 0x456);
	assert_int_equal(out[1].command.flags, SOFTGPU_FLAG_WRITE);
	assert_patch(&scene->dma.patch[0], 1, 0, 0x123,
		     offsetof(struct softgpu_reference, operand.address));
	assert_patch(&scene->dma.patch[1], 2, 0, 0x456,
		     sizeof(commands[0]) + offsetof(struct softgpu_reference, operand.address));
	assert_int_equal(scene->dma.patch[0].DriverId, SOFTGPU_REFERENCE);
	assert_int_equal(scene->dma.patch[0].SplitOffset, 0);
	assert_int_equal(scene->dma.patch[1].SplitOffset, sizeof(commands[0]));
	scene_destroy(scene);
}

static void the_second_operand_of_a_copy_uses_slot_one(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_copy copy = {
		.command = {SOFTGPU_COPY, 0, sizeof(copy)},
		.source = {.allocation = 1, .offset = 8},
		.destination = {.allocation = 3, .offset = 16},
		.length = 100,
	};
	const struct softgpu_copy *out = (const void *)scene->dma.buffer;

	assert_int_equal(render(scene, &copy, sizeof(copy)), STATUS_SUCCESS);
	assert_patch(&scene->dma.patch[0], 1, 0, 8, offsetof(struct softgpu_copy, source.address));
	assert_patch(&scene->dma.patch[1], 3, 1, 16,
		     offsetof(struct softgpu_copy, destination.address));
	assert_int_equal(scene->dma.patch[1].SplitOffset, 0);
	/* An allocation that is not resident must not get an address. */
	assert_int_equal(out->source.address, ADDRESS(1) + 8);
	assert_int_equal(out->destination.address, NOWHERE);
	scene_destroy(scene);
}

static void dma_21_without_prepatching_every_address_waits_for_patch(void **state)
{
	const struct gpu_setting settings[] = {{"PrePatch", 0}, {NULL, 0}};
	struct gpu *gpu = gpu_start(settings, 16 * MIB);
	struct scene *scene = scene_create(gpu);
	struct softgpu_reference reference = make_reference(1, 0x40, 0);
	const struct softgpu_reference *out = (const void *)scene->dma.buffer;

	(void)state;
	assert_int_equal(render(scene, &reference, sizeof(reference)), STATUS_SUCCESS);
	assert_int_equal(out->operand.address, NOWHERE);
	gpu_patch(gpu, &scene->dma, scene->list, 0, 1);
	assert_int_equal(out->operand.address, ADDRESS(1) + 0x40);
	scene_destroy(scene);
	gpu_stop(gpu);
}

static void pat_11_patch_writes_the_final_addresses_of_its_range_only(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_reference commands[3] = {make_reference(1, 1, 0), make_reference(2, 2, 0),
						make_reference(3, 3, 0)};
	const struct softgpu_reference *out = (const void *)scene->dma.buffer;
	DXGK_ALLOCATIONLIST later[4];

	assert_int_equal(render(scene, commands, sizeof(commands)), STATUS_SUCCESS);
	memcpy(later, scene->list, sizeof(later));
	later[1].PhysicalAddress.QuadPart = 0x700000;
	later[2].SegmentId = 0;
	later[3].SegmentId = APERTURE;
	later[3].PhysicalAddress.QuadPart = (LONGLONG)(APERTURE_BASE + 0x5000);
	gpu_patch(scene->gpu, &scene->dma, later, 1, 2);
	assert_int_equal(out[0].operand.address, ADDRESS(1) + 1);
	assert_int_equal(out[1].operand.address, NOWHERE);
	assert_int_equal(out[2].operand.address, APERTURE_BASE + 0x5003);
	/* PAT-14: again, with other addresses. */
	gpu_patch(scene->gpu, &scene->dma, scene->list, 0, 3);
	assert_int_equal(out[0].operand.address, ADDRESS(1) + 1);
	assert_int_equal(out[1].operand.address, ADDRESS(2) + 2);
	scene_destroy(scene);
}

/* ---- refusals ---- */

struct refusal {
	const char *what;
	NTSTATUS status;
	uint32_t length;
	union {
		struct softgpu_command command;
		struct softgpu_reference reference;
		struct softgpu_traffic traffic;
		struct softgpu_fill fill;
		struct softgpu_copy copy;
		struct softgpu_sync sync;
		struct softgpu_stall stall;
		struct softgpu_stamps stamps;
		struct softgpu_report_command report;
		struct softgpu_relocations relocations;
		uint64_t words[16];
	};
};

#define BAD STATUS_INVALID_PARAMETER
#define HEADER(opcode, flags, type)                          \
	{                                                    \
		SOFTGPU_##opcode, flags, sizeof(struct type) \
	}
#define ON(index, where)                                 \
	{                                                \
		.allocation = (index), .offset = (where) \
	}

static const struct refusal refusals[] = {
	{"unknown opcode", STATUS_ILLEGAL_INSTRUCTION, 8, .command = {SOFTGPU_TRAFFIC + 1, 0, 8}},
	{"what presents are made of", STATUS_ILLEGAL_INSTRUCTION, 8,
	 .command = {SOFTGPU_HW_BLIT, 0, 8}},
	{"half an answer", BAD, 8, .command = {SOFTGPU_ANSWER, 0, 8}},
	{"a long lost interrupt", BAD, 16, .command = {SOFTGPU_LOSE_INTERRUPT, 0, 16}},
	{"another unknown opcode", STATUS_ILLEGAL_INSTRUCTION, 8, .command = {0x7FFF, 0, 8}},
	{"paging opcode", STATUS_PRIVILEGED_INSTRUCTION, 8, .command = {SOFTGPU_PAGING_NOP, 0, 8}},
	{"map opcode", STATUS_PRIVILEGED_INSTRUCTION, 40, .command = {SOFTGPU_PAGING_MAP, 0, 40}},
	{"last opcode", STATUS_PRIVILEGED_INSTRUCTION, 8, .command = {0xFFFF, 0, 8}},
	{"half a header", BAD, 4, .command = {SOFTGPU_NOP, 0, 8}},
	{"size 0", BAD, 8, .command = {SOFTGPU_NOP, 0, 0}},
	{"size 12", BAD, 16, .command = {SOFTGPU_NOP, 0, 12}},
	{"size beyond the buffer", BAD, 8, .command = {SOFTGPU_NOP, 0, 16}},
	{"nop with flags", BAD, 8, .command = {SOFTGPU_NOP, 1, 8}},
	{"hang with payload", BAD, 16, .command = {SOFTGPU_HANG, 0, 16}},
	{"stall without time", BAD, 8, .command = {SOFTGPU_STALL, 0, 8}},
	{"reference too short", BAD, 24, .command = {SOFTGPU_REFERENCE, 0, 24}},
	{"reference with unknown flag", BAD, 32,
	 .reference = {HEADER(REFERENCE, 2, softgpu_reference), ON(1, 0)}},
	{"index at the end of the list", BAD, 32,
	 .reference = {HEADER(REFERENCE, 0, softgpu_reference), ON(4, 0)}},
	{"huge index", BAD, 32,
	 .reference = {HEADER(REFERENCE, 0, softgpu_reference), ON(UINT32_MAX, 0)}},
	{"NULL entry", BAD, 32, .reference = {HEADER(REFERENCE, 0, softgpu_reference), ON(0, 0)}},
	{"word over the end", BAD, 32,
	 .reference = {HEADER(REFERENCE, 0, softgpu_reference), ON(1, ALLOCATION_BYTES - 3)}},
	{"offset beyond the end", BAD, 32,
	 .reference = {HEADER(REFERENCE, 0, softgpu_reference), ON(1, ALLOCATION_BYTES + 8)}},
	{"offset that wraps", BAD, 32,
	 .reference = {HEADER(REFERENCE, 0, softgpu_reference), ON(1, UINT64_MAX - 1)}},
	{"address set", BAD, 32,
	 .reference = {HEADER(REFERENCE, 0, softgpu_reference), {.allocation = 1, .address = 8}}},
	{"reserved set", BAD, 32,
	 .reference = {HEADER(REFERENCE, 0, softgpu_reference), {.allocation = 1, .reserved = 1}}},
	{"write without WriteOperation", BAD, 32,
	 .reference = {HEADER(REFERENCE, SOFTGPU_FLAG_WRITE, softgpu_reference), ON(1, 0)}},
	{"traffic too short", BAD, 32, .command = {SOFTGPU_TRAFFIC, 0, 32}},
	{"traffic with unknown flag", BAD, 48,
	 .traffic = {HEADER(TRAFFIC, 2, softgpu_traffic), ON(1, 0), 4, 0}},
	{"traffic of less than a word", BAD, 48,
	 .traffic = {HEADER(TRAFFIC, 0, softgpu_traffic), ON(1, 0), 3, 0}},
	{"traffic over the end", BAD, 48,
	 .traffic = {HEADER(TRAFFIC, 0, softgpu_traffic), ON(1, 4), ALLOCATION_BYTES - 3, 0}},
	{"traffic without WriteOperation", BAD, 48,
	 .traffic = {HEADER(TRAFFIC, SOFTGPU_FLAG_WRITE, softgpu_traffic), ON(1, 0), 4, 0}},
	{"fill without WriteOperation", BAD, 48,
	 .fill = {HEADER(FILL, 0, softgpu_fill), ON(1, 0), 4, 0, 0}},
	{"fill over the end", BAD, 48,
	 .fill = {HEADER(FILL, 0, softgpu_fill), ON(2, 4), ALLOCATION_BYTES - 3, 0, 0}},
	{"fill of everything", BAD, 48,
	 .fill = {HEADER(FILL, 0, softgpu_fill), ON(2, 4), UINT64_MAX, 0, 0}},
	{"fill with reserved", BAD, 48, .fill = {HEADER(FILL, 0, softgpu_fill), ON(2, 0), 4, 0, 1}},
	{"copy to a read-only entry", BAD, 64,
	 .copy = {HEADER(COPY, 0, softgpu_copy), ON(2, 0), ON(1, 0), 8}},
	{"copy from beyond", BAD, 64,
	 .copy = {HEADER(COPY, 0, softgpu_copy), ON(1, ALLOCATION_BYTES - 8), ON(2, 0), 9}},
	{"copy to beyond", BAD, 64,
	 .copy = {HEADER(COPY, 0, softgpu_copy), ON(1, 0), ON(2, ALLOCATION_BYTES - 8), 9}},
	{"copy onto itself", BAD, 64,
	 .copy = {HEADER(COPY, 0, softgpu_copy), ON(2, 0), ON(2, 7), 8}},
	{"wait at an odd place", BAD, 40, .sync = {HEADER(WAIT, 0, softgpu_sync), ON(1, 4), 1}},
	{"wait over the end", BAD, 40,
	 .sync = {HEADER(WAIT, 0, softgpu_sync), ON(1, ALLOCATION_BYTES), 1}},
	{"signal without WriteOperation", BAD, 40,
	 .sync = {HEADER(SIGNAL, 0, softgpu_sync), ON(1, 8), 1}},
	{"report without WriteOperation", BAD, 32,
	 .report = {HEADER(REPORT, 0, softgpu_report_command), ON(1, 0)}},
	{"report at an odd place", BAD, 32,
	 .report = {HEADER(REPORT, 0, softgpu_report_command), ON(2, 4)}},
	{"report without room for its head", BAD, 32,
	 .report = {HEADER(REPORT, 0, softgpu_report_command), ON(2, ALLOCATION_BYTES - 8)}},
	{"stamps that do nothing", BAD, 56,
	 .stamps = {HEADER(STAMP, 0, softgpu_stamps), ON(2, 0), 0, 1, 64, 1, 0, 1}},
	{"stamps with unknown flag", BAD, 56,
	 .stamps = {HEADER(STAMP, 4, softgpu_stamps), ON(2, 0), 0, 1, 64, 1, 0, 1}},
	{"stamps closer than their size", BAD, 56,
	 .stamps = {HEADER(STAMP, SOFTGPU_FLAG_WRITE, softgpu_stamps), ON(2, 0), 0, 1, 8, 1, 0, 1}},
	{
		"last stamp over the end",
		BAD,
		56,
		.stamps = {HEADER(STAMP, SOFTGPU_FLAG_WRITE, softgpu_stamps), ON(2, PAGE - 8), 0,
			   16, PAGE, 1, 0, 1},
	},
	{"stamps without WriteOperation", BAD, 56,
	 .stamps = {HEADER(STAMP, SOFTGPU_FLAG_WRITE, softgpu_stamps), ON(1, 0), 0, 1, 64, 1, 0,
		    1}},
	{"more slots than the command has", BAD, 24,
	 .relocations = {{SOFTGPU_RELOCATIONS, 0, 24}, 2, 0}},
	{"fewer slots than the command has", BAD, 24,
	 .relocations = {{SOFTGPU_RELOCATIONS, 0, 24}, 0, 0}},
	{"relocations with reserved", BAD, 16, .relocations = {{SOFTGPU_RELOCATIONS, 0, 16}, 0, 1}},
	{"relocations with unknown flag", BAD, 16,
	 .relocations = {{SOFTGPU_RELOCATIONS, 1, 16}, 0, 0}},
};

static void dma_31_bad_commands_are_refused_with_their_status(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_reference good = make_reference(1, 0, 0);
	uint64_t commands[32];
	size_t i;

	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *refusal = &refusals[i];
		NTSTATUS status;

		/* Behind a valid command, so that there is output to discard. */
		memcpy(commands, &good, sizeof(good));
		memcpy((char *)commands + sizeof(good), refusal->words, sizeof(refusal->words));
		status = render(scene, commands, sizeof(good) + refusal->length);
		if (status != refusal->status)
			fail_msg("%s: 0x%08X", refusal->what, (unsigned)status);
		assert_int_equal(scene->dma.length, 0);
		assert_int_equal(scene->dma.patch_count, 0);
		assert_int_equal(scene->dma.multipass_offset, 0);
	}
	scene_destroy(scene);
}

static void the_first_and_last_bytes_of_an_allocation_are_usable(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_reference reference = make_reference(1, ALLOCATION_BYTES - 4, 0);
	struct softgpu_fill fill = {
		{SOFTGPU_FILL, 0, sizeof(fill)}, ON(2, 0), ALLOCATION_BYTES, 1, 0};
	struct softgpu_copy copy = {{SOFTGPU_COPY, 0, sizeof(copy)}, ON(2, 0), ON(2, 8), 8};
	struct softgpu_stamps stamps = {{SOFTGPU_STAMP, SOFTGPU_FLAG_WRITE, sizeof(stamps)},
					ON(2, PAGE - 16),
					0,
					16,
					PAGE,
					1,
					0,
					1};

	assert_int_equal(render(scene, &reference, sizeof(reference)), STATUS_SUCCESS);
	assert_int_equal(render(scene, &fill, sizeof(fill)), STATUS_SUCCESS);
	assert_int_equal(render(scene, &copy, sizeof(copy)), STATUS_SUCCESS);
	assert_int_equal(render(scene, &stamps, sizeof(stamps)), STATUS_SUCCESS);
	scene_destroy(scene);
}

/* AllocationOffset has 32 bits: a larger offset is refused, however large the allocation. */
static void an_operand_beyond_4_gib_is_refused(void **state)
{
	struct gpu *gpu = *state;
	struct scene *scene = scene_create(gpu);
	struct softgpu_allocation spec = gpu_spec(6144 * MIB);
	struct softgpu_reference reference = make_reference(1, UINT32_MAX, 0);
	const struct softgpu_reference *out = (const void *)scene->dma.buffer;

	scene->list[1] = gpu_entry(gpu_allocate(gpu, &spec), VRAM, 0x1000, 0);
	assert_int_equal(render(scene, &reference, sizeof(reference)), STATUS_SUCCESS);
	assert_int_equal(out->operand.address, 0x1000u + (uint64_t)UINT32_MAX);
	reference.operand.offset = (uint64_t)UINT32_MAX + 1;
	assert_int_equal(render(scene, &reference, sizeof(reference)), STATUS_INVALID_PARAMETER);
	scene_destroy(scene);
}

static void misaligned_buffers_are_refused(void **state)
{
	struct scene *scene = scene_create(*state);
	uint64_t commands[4] = {0};

	assert_int_equal(render(scene, (char *)commands + 4, 8), STATUS_INVALID_PARAMETER);
	assert_int_equal(render(scene, commands, 12), STATUS_INVALID_PARAMETER);
	scene_destroy(scene);
}

/* ---- relocations ---- */

struct table {
	struct softgpu_relocations head;
	uint64_t slot[4];
};

static struct table make_table(uint32_t count)
{
	struct table table = {
		.head = {.command = {SOFTGPU_RELOCATIONS, 0, 16 + 8 * count}, .count = count}};

	memset(table.slot, 0x5A, sizeof(table.slot)); /* must not be seen */
	return table;
}

static D3DDDI_PATCHLOCATIONLIST at_slot(uint32_t table_offset, uint32_t slot, uint32_t allocation,
					uint32_t delta)
{
	D3DDDI_PATCHLOCATIONLIST entry = {
		.AllocationIndex = allocation,
		.Value = 0xFFFFFFFF, /* the client's slot id and driver id are ignored */
		.DriverId = 0xFFFFFFFF,
		.AllocationOffset = delta,
		.PatchOffset = table_offset + 16 + 8 * slot,
		.SplitOffset = 0xFFFFFFFF,
	};

	return entry;
}

static void relocations_become_patch_locations_with_a_slot_per_allocation(void **state)
{
	struct scene *scene = scene_create(*state);
	struct {
		struct softgpu_stall stall;
		struct table first, second;
	} commands = {{{SOFTGPU_STALL, 0, 16}, 1}, make_table(4), make_table(4)};
	uint32_t first = offsetof(__typeof__(commands), first),
		 second = offsetof(__typeof__(commands), second);
	D3DDDI_PATCHLOCATIONLIST in[4] = {at_slot(first, 1, 2, 0x30),
					  at_slot(first, 0, 1, 0xFFFFFFFF),
					  at_slot(second, 3, 3, 5), at_slot(second, 3, 2, 6)};
	const __typeof__(commands) *out = (const void *)scene->dma.buffer;

	assert_int_equal(
		gpu_render_pass(scene->gpu, &scene->dma, &commands, sizeof(commands), in, 4),
		STATUS_SUCCESS);
	assert_int_equal(scene->dma.patch_count, 4);
	assert_patch(&scene->dma.patch[0], 2, 4, 0x30, first + 24);
	assert_patch(&scene->dma.patch[1], 1, 3, 0xFFFFFFFF, first + 16);
	assert_patch(&scene->dma.patch[2], 3, 5, 5, second + 40);
	assert_int_equal(scene->dma.patch[0].SplitOffset, first);
	assert_int_equal(scene->dma.patch[3].SplitOffset, second);
	assert_int_equal(scene->dma.patch[3].DriverId, SOFTGPU_RELOCATIONS);
	assert_int_equal(out->first.slot[0], ADDRESS(1) + 0xFFFFFFFFu);
	assert_int_equal(out->first.slot[1], ADDRESS(2) + 0x30);
	assert_int_equal(out->first.slot[2], 0);
	assert_int_equal(out->second.slot[0], 0);
	assert_int_equal(out->second.slot[3], ADDRESS(2) + 6);
	scene_destroy(scene);
}

struct unbinding {
	struct softgpu_reference first;
	struct table table;
	struct softgpu_reference second;
};

static const D3DDDI_PATCHLOCATIONLIST *unbinding(struct scene *scene, struct unbinding *commands)
{
	const uint32_t table = offsetof(struct unbinding, table);
	D3DDDI_PATCHLOCATIONLIST in[3] = {at_slot(table, 0, 1, 0), at_slot(table, 1, 2, 8),
					  at_slot(table, 2, 1, 16)};

	*commands =
		(struct unbinding){make_reference(2, 0, 0), make_table(4), make_reference(1, 0, 0)};
	assert_int_equal(
		gpu_render_pass(scene->gpu, &scene->dma, commands, sizeof(*commands), in, 3),
		STATUS_SUCCESS);
	return scene->dma.patch;
}

static void pat_09_slots_are_unbound_after_each_command_on_request(void **state)
{
	struct scene *scene = scene_create(*state);
	const uint32_t table = offsetof(struct unbinding, table),
		       last = offsetof(struct unbinding, second);
	struct unbinding commands;
	const D3DDDI_PATCHLOCATIONLIST *patch = unbinding(scene, &commands);
	char *before;

	assert_int_equal(scene->dma.patch_count, 5); /* not requested */
	scene->list[3] = gpu_entry(NULL, 0, 0, 0);
	patch = unbinding(scene, &commands);
	assert_int_equal(scene->dma.patch_count, 5 + 1 + 2);
	assert_patch(&patch[1], 3, 0, 0, table); /* what the first command used */
	assert_int_equal(patch[1].SplitOffset, table);
	assert_int_equal(patch[2].SplitOffset, table);
	assert_patch(&patch[5], 3, 2 + 1, 0, last); /* each slot of the table once */
	assert_patch(&patch[6], 3, 2 + 2, 0, last);
	assert_int_equal(patch[5].SplitOffset, last);
	assert_int_equal(patch[7].AllocationIndex, 1);
	/* Patch has no address to write for them. */
	before = malloc(scene->dma.length);
	assert_non_null(before);
	memcpy(before, scene->dma.buffer, scene->dma.length);
	gpu_patch(scene->gpu, &scene->dma, scene->list, 0, scene->dma.patch_count);
	assert_memory_equal(scene->dma.buffer, before, scene->dma.length);
	free(before);
	scene_destroy(scene);
}

static void pat_09_unbinding_takes_another_pass_if_the_list_is_full(void **state)
{
	struct scene *scene = scene_create(*state);
	const D3DDDI_PATCHLOCATIONLIST in[3] = {
		at_slot(offsetof(struct unbinding, table), 0, 1, 0),
		at_slot(offsetof(struct unbinding, table), 1, 2, 8),
		at_slot(offsetof(struct unbinding, table), 2, 1, 16)};
	struct unbinding commands = {make_reference(2, 0, 0), make_table(4),
				     make_reference(1, 0, 0)};

	scene->list[3] = gpu_entry(NULL, 0, 0, 0);
	/* reference, unbinding, three of the table: space for one of two */
	scene->dma.patch_size = 6;
	assert_int_equal(
		gpu_render_pass(scene->gpu, &scene->dma, &commands, sizeof(commands), in, 3),
		STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER);
	assert_int_equal(scene->dma.patch_count, 5);
	assert_int_equal(scene->dma.length, offsetof(struct unbinding, second));
	assert_int_equal(
		gpu_render_pass(scene->gpu, &scene->dma, &commands, sizeof(commands), in, 3),
		STATUS_SUCCESS);
	assert_int_equal(scene->dma.patch_count, 1); /* a new buffer starts with empty slots */
	scene_destroy(scene);
}

/* STAMP grows during translation, so commands behind it move. */
static void relocations_behind_a_grown_command_are_adjusted(void **state)
{
	struct scene *scene = scene_create(*state);
	struct {
		struct softgpu_stamps stamps;
		struct table table;
	} commands = {{{SOFTGPU_STAMP, SOFTGPU_FLAG_WRITE, sizeof(struct softgpu_stamps)},
		       ON(2, 0),
		       0,
		       1,
		       64,
		       1,
		       0,
		       1},
		      make_table(4)};
	D3DDDI_PATCHLOCATIONLIST in = at_slot(offsetof(__typeof__(commands), table), 2, 1, 0);

	assert_int_equal(
		gpu_render_pass(scene->gpu, &scene->dma, &commands, sizeof(commands), &in, 1),
		STATUS_SUCCESS);
	assert_patch(&scene->dma.patch[1], 1, 3, 0, sizeof(struct softgpu_hw_stamps) + 16 + 16);
	scene_destroy(scene);
}

static void relocations_outside_a_slot_are_refused(void **state)
{
	struct scene *scene = scene_create(*state);
	struct table table = make_table(4);
	const D3DDDI_PATCHLOCATIONLIST bad[] = {
		at_slot(0, 4, 1, 0),                       /* behind the last slot */
		at_slot(0, UINT32_MAX, 1, 0),              /* the command's own head */
		{.AllocationIndex = 1, .PatchOffset = 20}, /* between two slots */
		at_slot(0, 0, 4, 0),                       /* beyond the allocation list */
		at_slot(0, 0, 0, 0),                       /* the NULL entry */
		at_slot(0, 0, UINT32_MAX, 0),
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(
			gpu_render_pass(scene->gpu, &scene->dma, &table, sizeof(table), &bad[i], 1),
			STATUS_INVALID_PARAMETER);
		assert_int_equal(scene->dma.patch_count, 0);
	}
	/* Without a table there is nothing that they could refer to. */
	assert_int_equal(gpu_render_pass(scene->gpu, &scene->dma, NULL, 0, &bad[0], 1),
			 STATUS_INVALID_PARAMETER);
	scene_destroy(scene);
}

static void relocations_of_an_earlier_table_are_refused(void **state)
{
	struct scene *scene = scene_create(*state);
	struct table tables[2] = {make_table(4), make_table(4)};
	D3DDDI_PATCHLOCATIONLIST in[2] = {at_slot(sizeof(struct table), 0, 1, 0),
					  at_slot(0, 0, 1, 0)};

	assert_int_equal(gpu_render_pass(scene->gpu, &scene->dma, tables, sizeof(tables), in, 2),
			 STATUS_INVALID_PARAMETER);
	scene_destroy(scene);
}

/* ---- several passes ---- */

/*
 * Renders with little space until all commands are through. Checks that the passes together equal
 * the one-pass result.
 */
static uint32_t render_in_passes(struct scene *scene, const void *commands, uint32_t length,
				 const D3DDDI_PATCHLOCATIONLIST *in, uint32_t in_count, char *whole)
{
	uint32_t passes = 0, total = 0, last_offset = 0;
	NTSTATUS status;

	do {
		status = gpu_render_pass(scene->gpu, &scene->dma, commands, length, in, in_count);
		if (status != STATUS_SUCCESS)
			assert_int_equal(status, STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER);
		assert_true(scene->dma.multipass_offset > last_offset || status == STATUS_SUCCESS);
		last_offset = scene->dma.multipass_offset;
		memcpy(whole + total, scene->dma.buffer, scene->dma.length);
		total += scene->dma.length;
		passes++;
		assert_true(passes < 100);
	} while (status != STATUS_SUCCESS);
	return passes;
}

static void dma_29_a_small_dma_buffer_takes_several_passes(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_reference commands[10];
	char whole[sizeof(commands)];
	uint32_t i;

	for (i = 0; i < 10; i++)
		commands[i] = make_reference(1, i * 4, 0);
	scene->dma.size = 3 * sizeof(commands[0]) + 8;
	assert_int_equal(render_in_passes(scene, commands, sizeof(commands), NULL, 0, whole), 4);
	for (i = 0; i < 10; i++)
		assert_int_equal(((struct softgpu_reference *)(void *)whole)[i].operand.address,
				 ADDRESS(1) + i * 4);
	assert_int_equal(scene->dma.patch_count, 1);
	assert_int_equal(scene->dma.patch[0].PatchOffset,
			 offsetof(struct softgpu_reference, operand.address));
	scene_destroy(scene);
}

static void dma_29_a_short_patch_list_takes_several_passes(void **state)
{
	struct scene *scene = scene_create(*state);
	struct table tables[3] = {make_table(4), make_table(4), make_table(4)};
	D3DDDI_PATCHLOCATIONLIST in[9];
	char whole[sizeof(tables)];
	uint32_t i;

	for (i = 0; i < 9; i++)
		in[i] = at_slot(i / 3 * (uint32_t)sizeof(struct table), i % 3, 1, i);
	scene->dma.patch_size = 4;
	assert_int_equal(render_in_passes(scene, tables, sizeof(tables), in, 9, whole), 3);
	for (i = 0; i < 9; i++)
		assert_int_equal(((struct table *)(void *)whole)[i / 3].slot[i % 3],
				 ADDRESS(1) + i);
	scene_destroy(scene);
}

static void a_command_that_can_never_fit_is_refused(void **state)
{
	struct scene *scene = scene_create(*state);
	struct softgpu_reference commands[2] = {make_reference(1, 0, 0), make_reference(1, 0, 0)};
	struct table table = make_table(4);
	D3DDDI_PATCHLOCATIONLIST in[3] = {at_slot(0, 0, 1, 0), at_slot(0, 1, 1, 0),
					  at_slot(0, 2, 1, 0)};

	scene->dma.size = 24;
	assert_int_equal(render(scene, commands, sizeof(commands)), STATUS_INVALID_PARAMETER);
	scene->dma.size = DMA_BYTES;
	scene->dma.patch_size = 2;
	assert_int_equal(gpu_render_pass(scene->gpu, &scene->dma, &table, sizeof(table), in, 3),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(scene->dma.patch_count, 0);
	scene_destroy(scene);
}

/* ---- the address of the report is in each stamp ---- */

static void spl_04_every_stamp_carries_the_address_of_the_report(void **state)
{
	struct scene *scene = scene_create(*state);
	struct {
		struct softgpu_report_command report;
		struct softgpu_stamps verify, write;
	} commands = {
		{HEADER(REPORT, 0, softgpu_report_command), ON(2, PAGE)},
		{HEADER(STAMP, SOFTGPU_FLAG_VERIFY, softgpu_stamps), ON(1, 0), 0, 1, 64, 1, 0, 1},
		{HEADER(STAMP, SOFTGPU_FLAG_WRITE, softgpu_stamps), ON(2, 0), 0, 1, 64, 1, 0, 1},
	};
	const struct softgpu_hw_stamps *out =
		(const void *)(scene->dma.buffer + sizeof(struct softgpu_report_command));

	assert_int_equal(render(scene, &commands, sizeof(commands)), STATUS_SUCCESS);
	assert_int_equal(scene->dma.patch_count, 4);
	assert_patch(&scene->dma.patch[0], 2, 2 + 2, PAGE,
		     offsetof(struct softgpu_report_command, operand.address));
	assert_patch(&scene->dma.patch[2], 2, 2 + 2, PAGE,
		     sizeof(struct softgpu_report_command) +
			     offsetof(struct softgpu_hw_stamps, report_address));
	assert_int_equal(out[0].report_address, ADDRESS(2) + PAGE);
	assert_int_equal(out[0].report_bytes, ALLOCATION_BYTES - PAGE);
	assert_int_equal(out[1].report_bytes, 0); /* this stamp is not checked */
	scene_destroy(scene);
}

static void dma_29_a_report_counts_in_later_passes_too(void **state)
{
	struct scene *scene = scene_create(*state);
	struct {
		struct softgpu_report_command report;
		struct softgpu_reference between;
		struct softgpu_stamps verify;
	} commands = {
		{HEADER(REPORT, 0, softgpu_report_command), ON(2, PAGE)},
		make_reference(1, 0, 0),
		{HEADER(STAMP, SOFTGPU_FLAG_VERIFY, softgpu_stamps), ON(1, 0), 0, 1, 64, 1, 0, 1},
	};
	const struct softgpu_hw_stamps *out = (const void *)scene->dma.buffer;

	scene->dma.size = sizeof(struct softgpu_hw_stamps);
	assert_int_equal(render(scene, &commands, sizeof(commands)),
			 STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER);
	assert_int_equal(render(scene, &commands, sizeof(commands)), STATUS_SUCCESS);
	assert_int_equal(scene->dma.length, sizeof(*out));
	assert_int_equal(out->report_address, ADDRESS(2) + PAGE);
	scene_destroy(scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, gpu_setup, gpu_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_command_is_copied_patched_and_listed),
		TEST(the_second_operand_of_a_copy_uses_slot_one),
		cmocka_unit_test(dma_21_without_prepatching_every_address_waits_for_patch),
		TEST(pat_11_patch_writes_the_final_addresses_of_its_range_only),
		TEST(dma_31_bad_commands_are_refused_with_their_status),
		TEST(the_first_and_last_bytes_of_an_allocation_are_usable),
		TEST(an_operand_beyond_4_gib_is_refused),
		TEST(misaligned_buffers_are_refused),
		cmocka_unit_test_setup_teardown(
			relocations_become_patch_locations_with_a_slot_per_allocation, gpu_setup,
			gpu_teardown),
		TEST(relocations_behind_a_grown_command_are_adjusted),
		TEST(relocations_outside_a_slot_are_refused),
		TEST(relocations_of_an_earlier_table_are_refused),
		TEST(dma_29_a_small_dma_buffer_takes_several_passes),
		TEST(dma_29_a_short_patch_list_takes_several_passes),
		TEST(a_command_that_can_never_fit_is_refused),
		TEST(pat_09_slots_are_unbound_after_each_command_on_request),
		TEST(pat_09_unbinding_takes_another_pass_if_the_list_is_full),
		TEST(spl_04_every_stamp_carries_the_address_of_the_report),
		TEST(dma_29_a_report_counts_in_later_passes_too),
	};

	return cmocka_run_group_tests_name("softgpu_render", tests, NULL, NULL);
}
