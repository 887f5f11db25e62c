/* SPDX-License-Identifier: MIT */
/* The scripted miniport does what other tests rely on. */
#include "port_fixture.h"

#include <stdatomic.h>
#include <string.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, port_fixture_setup, port_fixture_teardown)
#define PAGES      8u
#define BYTES      (PAGES * 4096u)

/* System pages with an MDL, and a paging buffer in other system pages. */
struct pages {
	struct vmm_os_memory memory;
	uint64_t physical;
	MDL *mdl;
	char *buffer; /* of paging commands, one page */
	uint64_t buffer_physical;
	uint32_t write, fence;
};

static void open_pages(struct port_fixture *f, struct pages *p)
{
	memset(p, 0, sizeof(*p));
	assert_int_equal(vmm_os_memory_create(f->os, "pages", BYTES + 4096, &p->memory), VMM_OK);
	p->physical = vmm_nt_phys_reserve(f->nt, BYTES + 4096);
	assert_int_equal(vmm_nt_phys_add(f->nt, p->physical, &p->memory, 0, BYTES + 4096), VMM_OK);
	assert_int_equal(vmm_nt_mdl_create(f->nt, &p->memory, 0, BYTES, p->physical, &p->mdl),
			 VMM_OK);
	p->buffer = p->memory.base + BYTES;
	p->buffer_physical = p->physical + BYTES;
	for (uint32_t i = 0; i < BYTES; i++)
		p->memory.base[i] = (char)(i / 7);
}

static void close_pages(struct port_fixture *f, struct pages *p)
{
	vmm_nt_mdl_destroy(f->nt, p->mdl);
	vmm_nt_phys_remove(f->nt, p->physical);
	vmm_os_memory_destroy(&p->memory);
}

static void submit(struct port_fixture *f, struct pages *p)
{
	DXGKARG_SUBMITCOMMAND args = {.DmaBufferSize = 4096,
				      .DmaBufferSubmissionEndOffset = p->write,
				      .SubmissionFenceId = ++p->fence,
				      .Flags.Paging = 1,
				      .NodeOrdinal = 1};

	args.DmaBufferPhysicalAddress.QuadPart = (LONGLONG)p->buffer_physical;
	assert_int_equal(vmm_port_submit(f->port, &args), STATUS_SUCCESS);
	p->write = 0;
}

/* Builds the operation in as many buffers as it needs and submits each. Returns their number. */
static uint32_t page(struct port_fixture *f, struct pages *p, DXGKARG_BUILDPAGINGBUFFER *args)
{
	uint32_t buffers = 0;
	NTSTATUS status;

	args->MultipassOffset = 0;
	do {
		args->pDmaBuffer = p->buffer + p->write;
		args->DmaSize = 4096 - p->write;
		status = vmm_port_build_paging_buffer(f->port, args);
		p->write = (uint32_t)((char *)args->pDmaBuffer - p->buffer);
		submit(f, p);
		buffers++;
		assert_true(buffers < 1000);
	} while (status == STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER);
	assert_int_equal(status, STATUS_SUCCESS);
	return buffers;
}

static void transfer(struct port_fixture *f, struct pages *p, uint64_t address, bool in,
		     uint32_t *buffers)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_TRANSFER};
	DXGK_TRANSFER_END *segment = in ? &args.Transfer.Destination : &args.Transfer.Source;
	DXGK_TRANSFER_END *pages = in ? &args.Transfer.Source : &args.Transfer.Destination;

	args.Transfer.TransferSize = BYTES;
	segment->SegmentId = address < SCRIPTED_APERTURE_BASE ? 1 : 2;
	segment->SegmentAddress.QuadPart = (LONGLONG)address;
	pages->pMdl = p->mdl;
	*buffers = page(f, p, &args);
}

static void pag_04_transfer_copies_when_it_completes(void **state)
{
	struct port_fixture *f = *state;
	char *there;
	struct pages p;
	uint32_t buffers;

	f->m->settings.complete_at_once = false;
	port_fixture_run(f);
	open_pages(f, &p);
	there = f->m->bar + 12288;
	transfer(f, &p, SCRIPTED_MEMORY_BASE + 12288, true, &buffers);
	assert_int_equal(scripted_outstanding(f->m, 1), 1);
	assert_int_equal(there[700], 0); /* not yet */
	assert_int_equal(scripted_complete(f->m, 1, 5), 1);
	assert_memory_equal(there, p.memory.base, BYTES);
	memset(p.memory.base, 0, BYTES);
	transfer(f, &p, SCRIPTED_MEMORY_BASE + 12288, false, &buffers);
	assert_int_equal(scripted_complete_all(f->m), 1);
	assert_memory_equal(there, p.memory.base, BYTES);
	assert_int_equal(f->m->faults, 0);
	assert_int_equal(f->interrupts, 2);
	close_pages(f, &p);
	assert_nothing_found(f);
}

static void pag_07_transfer_in_chunks(void **state)
{
	struct port_fixture *f = *state;
	struct pages p;
	uint32_t buffers;

	f->m->settings.transfer_chunk_bytes = 1000;
	port_fixture_run(f);
	open_pages(f, &p);
	transfer(f, &p, SCRIPTED_MEMORY_BASE, true, &buffers);
	assert_int_equal(buffers, (BYTES + 999) / 1000);
	assert_memory_equal(f->m->bar, p.memory.base, BYTES);
	close_pages(f, &p);
}

static void map(struct port_fixture *f, struct pages *p, bool mapped)
{
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_MAP_APERTURE_SEGMENT};

	if (mapped) {
		args.MapApertureSegment.SegmentId = 2;
		args.MapApertureSegment.OffsetInPages = 3;
		args.MapApertureSegment.NumberOfPages = PAGES;
		args.MapApertureSegment.pMdl = p->mdl;
	} else {
		args.Operation = DXGK_OPERATION_UNMAP_APERTURE_SEGMENT;
		args.UnmapApertureSegment.SegmentId = 2;
		args.UnmapApertureSegment.OffsetInPages = 3;
		args.UnmapApertureSegment.NumberOfPages = PAGES;
		args.UnmapApertureSegment.DummyPage.QuadPart = (LONGLONG)p->buffer_physical;
	}
	page(f, p, &args);
}

static void pag_10_aperture_shows_pages_then_the_dummy(void **state)
{
	struct port_fixture *f = *state;
	uint64_t address = SCRIPTED_APERTURE_BASE + 3 * 4096 + 4090;
	char bytes[12];
	struct pages p;

	port_fixture_run(f);
	open_pages(f, &p);
	assert_false(scripted_gpu_access(f->m, 2, address, bytes, sizeof(bytes), false));
	map(f, &p, true);
	assert_true(scripted_gpu_access(f->m, 2, address, bytes, sizeof(bytes), false));
	assert_memory_equal(bytes, p.memory.base + 4090, sizeof(bytes));
	map(f, &p, false);
	assert_true(scripted_gpu_access(f->m, 2, address, bytes, sizeof(bytes), false));
	assert_memory_equal(bytes, p.buffer + 4090, 6);
	assert_int_equal(f->m->faults, 0);
	close_pages(f, &p);
}

static void a_map_operation_may_take_several_paging_buffers(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_MAP_APERTURE_SEGMENT};
	uint32_t word = 0;
	struct pages p;

	port_fixture_run(f);
	open_pages(f, &p);
	/* space for three pages in the first buffer */
	p.write = 4096 - sizeof(struct scripted_command) - 3 * 8;
	memset(p.buffer, 0, 4096);
	args.MapApertureSegment.SegmentId = 2;
	args.MapApertureSegment.NumberOfPages = PAGES;
	args.MapApertureSegment.pMdl = p.mdl;
	args.pDmaBuffer = p.buffer + p.write;
	args.DmaSize = 4096 - p.write;
	assert_int_equal(vmm_port_build_paging_buffer(f->port, &args),
			 STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER);
	assert_int_equal(args.MultipassOffset, 3);
	args.pDmaBuffer = p.buffer;
	args.DmaSize = 4096;
	assert_int_equal(vmm_port_build_paging_buffer(f->port, &args), STATUS_SUCCESS);
	p.write = (uint32_t)((char *)args.pDmaBuffer - p.buffer);
	submit(f, &p);
	/* the first was not run */
	assert_false(scripted_gpu_access(f->m, 2, SCRIPTED_APERTURE_BASE, &word, 4, false));
	assert_true(
		scripted_gpu_access(f->m, 2, SCRIPTED_APERTURE_BASE + 7 * 4096, &word, 4, false));
	assert_memory_equal(&word, p.memory.base + 7 * 4096, 4);
	close_pages(f, &p);
}

static void pag_05_fill_writes_the_pattern(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_BUILDPAGINGBUFFER args = {.Operation = DXGK_OPERATION_FILL};
	struct pages p;

	port_fixture_run(f);
	open_pages(f, &p);
	args.Fill.FillSize = 8192;
	args.Fill.FillPattern = 0x01020304;
	args.Fill.Destination.SegmentId = 1;
	args.Fill.Destination.SegmentAddress.QuadPart = (LONGLONG)SCRIPTED_MEMORY_BASE + 4096;
	page(f, &p, &args);
	assert_int_equal(*(uint32_t *)(void *)(f->m->bar + 4092), 0);
	assert_int_equal(*(uint32_t *)(void *)(f->m->bar + 4096), 0x01020304);
	assert_int_equal(*(uint32_t *)(void *)(f->m->bar + 12284), 0x01020304);
	assert_int_equal(*(uint32_t *)(void *)(f->m->bar + 12288), 0);
	close_pages(f, &p);
}

static void accesses_to_invalid_addresses_are_faults(void **state)
{
	struct port_fixture *f = *state;
	struct pages p;
	uint32_t buffers;

	port_fixture_run(f);
	open_pages(f, &p);
	transfer(f, &p, SCRIPTED_APERTURE_BASE, true, &buffers); /* nothing is mapped */
	assert_int_equal(f->m->faults, 1);
	transfer(f, &p, SCRIPTED_MEMORY_BASE + SCRIPTED_BAR_BYTES - 4096, true, &buffers);
	assert_int_equal(f->m->faults, 2);
	memset(p.buffer, 0xFF, 64);
	p.write = 64;
	submit(f, &p);
	assert_int_equal(f->m->faults, 3);
	close_pages(f, &p);
}

/* Render, Patch, Submit: the word is written at the patched address. */
static void pat_11_render_writes_where_it_was_patched(void **state)
{
	struct port_fixture *f = *state;
	struct scripted_command command = {.op = SCRIPTED_WRITE,
					   .size_bytes = sizeof(command),
					   .allocation = 1,
					   .offset = 64,
					   .value = 0xCAFE,
					   .slot = 5};
	DXGK_ALLOCATIONLIST list[2] = {{0}};
	D3DDDI_PATCHLOCATIONLIST patches[4];
	DXGK_DEVICEINFO info;
	DXGKARG_CREATECONTEXT context = {0};
	DXGKARG_RENDER render = {.pCommand = &command,
				 .CommandLength = sizeof(command),
				 .DmaSize = 4096,
				 .pAllocationList = list,
				 .AllocationListSize = 2,
				 .pPatchLocationListOut = patches,
				 .PatchLocationListOutSize = 4};
	DXGKARG_PATCH patch = {.DmaBufferSize = 4096,
			       .DmaBufferSubmissionEndOffset = sizeof(command),
			       .pAllocationList = list,
			       .AllocationListSize = 2,
			       .pPatchLocationList = patches,
			       .PatchLocationListSize = 1,
			       .PatchLocationListSubmissionLength = 1,
			       .SubmissionFenceId = 3};
	DXGKARG_SUBMITCOMMAND args = {.DmaBufferSize = 4096,
				      .DmaBufferSubmissionEndOffset = sizeof(command),
				      .SubmissionFenceId = 3};
	HANDLE device = NULL;
	struct pages p;

	port_fixture_run(f);
	open_pages(f, &p);
	assert_int_equal(vmm_port_create_device(f->port, &device, false, &info), STATUS_SUCCESS);
	assert_int_equal(vmm_port_create_context(f->port, device, &context), STATUS_SUCCESS);
	render.pDmaBuffer = patch.pDmaBuffer = p.buffer;
	assert_int_equal(vmm_port_render(f->port, context.hContext, &render), STATUS_SUCCESS);
	assert_int_equal(patches[0].SlotId, 5);
	list[1].hDeviceSpecificAllocation = &p;
	list[1].SegmentId = 1;
	list[1].PhysicalAddress.QuadPart = (LONGLONG)SCRIPTED_MEMORY_BASE + 8192;
	assert_int_equal(vmm_port_patch(f->port, &patch), STATUS_SUCCESS);
	assert_int_equal(scripted_last(f->m, VIDMM_DDI_PATCH)->allocations[1].SegmentId, 1);
	assert_int_equal(scripted_last(f->m, VIDMM_DDI_PATCH)->patches[0].SlotId, 5);
	args.hContext = context.hContext;
	args.DmaBufferPhysicalAddress.QuadPart = (LONGLONG)p.buffer_physical;
	assert_int_equal(vmm_port_submit(f->port, &args), STATUS_SUCCESS);
	assert_int_equal(*(uint32_t *)(void *)(f->m->bar + 8192 + 64), 0xCAFE);
	assert_int_equal(f->interrupt[0].DmaCompleted.NodeOrdinal, 0);
	assert_int_equal(f->m->faults, 0);
	assert_int_equal(vmm_port_destroy_context(f->port, context.hContext), STATUS_SUCCESS);
	assert_int_equal(vmm_port_destroy_device(f->port, device), STATUS_SUCCESS);
	close_pages(f, &p);
}

/* DMA-29: three commands, space for two. */
static void dma_29_render_in_two_passes(void **state)
{
	struct port_fixture *f = *state;
	struct scripted_command commands[3] = {{0}};
	char dma[2 * sizeof(struct scripted_command)];
	D3DDDI_PATCHLOCATIONLIST patches[4];
	DXGK_ALLOCATIONLIST list[1] = {{0}};
	DXGKARG_RENDER args = {.pCommand = commands,
			       .CommandLength = sizeof(commands),
			       .pAllocationList = list,
			       .AllocationListSize = 1,
			       .PatchLocationListOutSize = 4};
	DXGK_DEVICEINFO info;
	DXGKARG_CREATECONTEXT context = {0};
	HANDLE device = NULL;

	for (uint32_t i = 0; i < 3; i++)
		commands[i] = (struct scripted_command){
			.op = SCRIPTED_USE, .size_bytes = sizeof(commands[i]), .value = i};
	port_fixture_run(f);
	assert_int_equal(vmm_port_create_device(f->port, &device, false, &info), STATUS_SUCCESS);
	assert_int_equal(vmm_port_create_context(f->port, device, &context), STATUS_SUCCESS);
	args.pDmaBuffer = dma;
	args.DmaSize = sizeof(dma);
	args.pPatchLocationListOut = patches;
	assert_int_equal(vmm_port_render(f->port, context.hContext, &args),
			 STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER);
	assert_int_equal(args.MultipassOffset, 2 * sizeof(commands[0]));
	args.pDmaBuffer = dma;
	args.pPatchLocationListOut = patches;
	assert_int_equal(vmm_port_render(f->port, context.hContext, &args), STATUS_SUCCESS);
	assert_int_equal(((struct scripted_command *)(void *)dma)->value, 2);
	assert_int_equal(vmm_port_destroy_context(f->port, context.hContext), STATUS_SUCCESS);
	assert_int_equal(vmm_port_destroy_device(f->port, device), STATUS_SUCCESS);
}

static void packets_complete_in_order_when_the_test_says_so(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_SUBMITCOMMAND args = {.Flags.NullRendering = 1, .Flags.Paging = 1};

	f->m->settings.complete_at_once = false;
	port_fixture_run(f);
	for (uint32_t fence = 0xFFFFFFFE; fence != 2; fence++) {
		/* SUB-01: 0 is never issued */
		if (!fence)
			continue;
		args.SubmissionFenceId = fence;
		assert_int_equal(vmm_port_submit(f->port, &args), STATUS_SUCCESS);
	}
	assert_int_equal(scripted_outstanding(f->m, 1), 3);
	assert_int_equal(scripted_complete(f->m, 1, 2), 2);
	assert_int_equal(f->interrupt[1].DmaCompleted.SubmissionFenceId, 0xFFFFFFFF);
	assert_int_equal(scripted_complete(f->m, 0, 2), 0);
	assert_int_equal(scripted_complete_all(f->m), 1);
	assert_int_equal(f->interrupt[2].DmaCompleted.SubmissionFenceId, 1);
}

#define PACKETS 300u

struct watchdog {
	struct port_fixture *f;
	atomic_bool done;
	uint32_t queries, refused;
};

static void query_until_done(void *arg)
{
	struct watchdog *w = arg;
	UINT fence;

	do {
		w->refused += vmm_port_query_current_fence(w->f->port, 1, &fence) != STATUS_SUCCESS;
		w->queries++;
	} while (!atomic_load(&w->done));
}

/* The watchdog asks for a fence that another thread is about to report. */
static void sub_14_a_query_beside_a_completion_reports_no_fence_twice(void **state)
{
	struct port_fixture *f = *state;
	DXGKARG_SUBMITCOMMAND args = {.Flags.NullRendering = 1, .Flags.Paging = 1};
	struct watchdog watchdog = {.f = f};
	struct vmm_os_thread *thread;

	port_fixture_run(f);
	assert_int_equal(
		vmm_os_thread_create(f->os, "watchdog", query_until_done, &watchdog, &thread),
		VMM_OK);
	while (args.SubmissionFenceId < PACKETS) {
		args.SubmissionFenceId++;
		assert_int_equal(vmm_port_submit(f->port, &args), STATUS_SUCCESS);
	}
	atomic_store(&watchdog.done, true);
	vmm_os_thread_join(thread);
	assert_true(watchdog.queries > 0);
	assert_int_equal(watchdog.refused, 0);
	assert_int_equal(f->interrupts, PACKETS);
	assert_int_equal(f->last_fence, PACKETS);
	assert_int_equal(f->unordered, 0);
	assert_nothing_found(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pag_04_transfer_copies_when_it_completes),
		TEST(pag_07_transfer_in_chunks),
		TEST(pag_10_aperture_shows_pages_then_the_dummy),
		TEST(a_map_operation_may_take_several_paging_buffers),
		TEST(pag_05_fill_writes_the_pattern),
		TEST(accesses_to_invalid_addresses_are_faults),
		TEST(pat_11_render_writes_where_it_was_patched),
		TEST(dma_29_render_in_two_passes),
		TEST(packets_complete_in_order_when_the_test_says_so),
		cmocka_unit_test_setup_teardown(
			sub_14_a_query_beside_a_completion_reports_no_fence_twice,
			port_fixture_setup_linux, port_fixture_teardown),
	};

	return cmocka_run_group_tests_name("port_scripted", tests, NULL, NULL);
}
