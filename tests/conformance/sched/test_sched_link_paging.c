/* SPDX-License-Identifier: MIT */
/*
 * Content on both adapters of a link: what is paged where, with which pages, and in which order
 * (ALF-23, PAG-22, PAG-23, SCH-09, SWZ-30).
 */
#include "link_world.h"

#include <string.h>

enum { BYTES = 64 * KIB, DONOT_EVICT = 0x20, DISCARD = 0x80, LOCK_ENTIRE = 0x10 };

static void start(struct world *w, void **state)
{
	world_start(w, state, link_setup);
}

static void with_a_range(struct scripted_miniport *m)
{
	link_setup(m);
	m->settings.caps.NumberOfSwizzlingRanges = 1;
}

/* A request for a backing store first frees those that the GPU has read. */
static uint64_t system_bytes(struct world *w)
{
	struct vidmm_adapter_statistics figures = {.struct_size = sizeof(figures)};
	D3DKMT_HANDLE asker = world_allocate(w, PAGE_BYTES, WORLD_MEMORY);

	client_write(&w->device, asker, PAGE_BYTES, 0);
	assert_int_equal(client_deallocate(&w->device, asker), S_OK);
	world_run(w);
	vidmm_adapter_statistics(w->client.adapter, &figures);
	return figures.system_bytes;
}

static void submit_use(struct world *w, D3DKMT_HANDLE a)
{
	world_submit_use(&w->context, a);
	world_run(w);
}

/* From here on a submission needs no further system memory: a DMA buffer exists. */
static void warm_up(struct world *w, struct client_context *context)
{
	D3DKMT_HANDLE a = world_allocate(w, PAGE_BYTES, WORLD_MEMORY);

	world_submit_use(context, a);
	world_run(w);
	assert_int_equal(client_deallocate(&w->device, a), S_OK);
	world_run(w);
}

static void sch_09_each_adapter_of_a_link_has_a_system_context(void **state)
{
	struct world w;

	world_start_adapter(&w, state, link_setup);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_CREATE_DEVICE), 1);
	assert_true(
		scripted_nth(w.m, VIDMM_DDI_CREATE_DEVICE, 0)->in.create_device.Flags.SystemDevice);
	assert_int_equal(scripted_count(w.m, VIDMM_DDI_CREATE_CONTEXT), LINK_ADAPTERS);
	for (uint32_t i = 0; i < LINK_ADAPTERS; i++) {
		const DXGKARG_CREATECONTEXT *c =
			&scripted_nth(w.m, VIDMM_DDI_CREATE_CONTEXT, i)->in.create_context;

		assert_true(c->Flags.SystemContext);
		assert_int_equal(c->NodeOrdinal, 1);
		assert_int_equal(c->EngineAffinity, 1u << i);
	}
	world_stop_adapter(&w);
	scripted_destroy(link_second);
}

/*
 * Asserts that all paging since scripted_forget was submitted in the system context of its adapter,
 * to that adapter.
 */
static void expect_contexts(struct world *w)
{
	const struct scripted_call *patch, *submit;

	for (uint32_t i = 0; (patch = world_nth_of(w, VIDMM_DDI_PATCH, true, i)); i++) {
		submit = world_nth_of(w, VIDMM_DDI_SUBMIT_COMMAND, true, i);
		const DXGKARG_BUILDPAGINGBUFFER named = {.hSystemContext =
								 patch->in.patch.hContext};
		uint32_t engine = scripted_paging_engine(&named);

		assert_int_equal(patch->in.patch.EngineOrdinal, engine);
		assert_non_null(submit);
		assert_int_equal(submit->in.submit.NodeOrdinal, 1);
	}
}

static void pag_22_page_in_copies_one_backing_store_into_every_copy(void **state)
{
	struct world w;

	start(&w, state);
	warm_up(&w, &w.context);
	D3DKMT_HANDLE a = link_allocate(&w, LINK_MIRRORED, WORLD_MEMORY);
	client_write(&w.device, a, BYTES, 0x1000);
	uint64_t before = system_bytes(&w);
	scripted_forget(w.m);
	submit_use(&w, a);
	for (uint32_t e = 0; e < LINK_ADAPTERS; e++) {
		const DXGKARG_BUILDPAGINGBUFFER *in = link_nth(&w, DXGK_OPERATION_TRANSFER, e, 0),
						*lead = link_nth(&w, DXGK_OPERATION_TRANSFER, 0, 0);

		assert_int_equal(link_moves(&w, e, true), 1);
		assert_ptr_equal(in->Transfer.Source.pMdl, lead->Transfer.Source.pMdl);
		assert_int_equal(in->Transfer.Destination.SegmentId, 1);
		assert_int_equal(in->Transfer.Destination.SegmentAddress.QuadPart,
				 lead->Transfer.Destination.SegmentAddress.QuadPart);
		assert_int_equal(in->Transfer.TransferSize, BYTES);
		for (uint32_t i = 0; i < BYTES / 4; i += 997)
			assert_int_equal(link_word(&w, e, i * 4), 0x1000 + i);
	}
	expect_contexts(&w);
	assert_int_equal(before - system_bytes(&w), BYTES); /* PAG-12 */
	link_stop(&w);
}

static void pag_22_eviction_transfers_one_copy_and_drops_the_others(void **state)
{
	struct client_context other;
	struct world w;

	start(&w, state);
	link_context(&w.device, 0, 1, &other);
	D3DKMT_HANDLE a = link_allocate(&w, LINK_MIRRORED, WORLD_MEMORY);
	client_write(&w.device, a, BYTES, 0x1000);
	for (uint32_t writer = 0; writer < LINK_ADAPTERS; writer++) {
		submit_use(&w, a);
		world_submit_write(writer ? &other : &w.context, a, 16, 0x51 + writer);
		world_run(&w);
		assert_int_equal(link_word(&w, writer, 16), 0x51 + writer);
		scripted_forget(w.m);
		link_push_out(&w);
		assert_int_equal(link_moves(&w, writer, false), 1);
		assert_int_equal(link_moves(&w, !writer, false), 0);
		assert_int_equal(link_count(&w, DXGK_OPERATION_DISCARD_CONTENT, writer), 0);
		assert_int_equal(link_count(&w, DXGK_OPERATION_DISCARD_CONTENT, !writer), 1);
		expect_contexts(&w);
		/* All copies get what was written to one. */
		submit_use(&w, a);
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++) {
			assert_int_equal(link_word(&w, e, 16), 0x51 + writer);
			assert_int_equal(link_word(&w, e, 20), 0x1005);
		}
		assert_int_equal(world_word(&w, a, 16), 0x51 + writer);
	}
	link_stop(&w);
}

/*
 * After a page-in all copies are equal again, whichever adapter wrote before: the copy of the lead
 * adapter is transferred out.
 */
static void pag_22_a_copy_that_no_adapter_wrote_is_transferred_by_the_lead(void **state)
{
	struct client_context other;
	struct world w;

	start(&w, state);
	link_context(&w.device, 0, 1, &other);
	D3DKMT_HANDLE a = link_allocate(&w, LINK_MIRRORED, WORLD_MEMORY);
	client_write(&w.device, a, BYTES, 0x1000);
	world_submit_write(&other, a, 16, 0x51);
	world_run(&w);
	link_push_out(&w);
	submit_use(&w, a);
	scripted_forget(w.m);
	link_push_out(&w);
	assert_int_equal(link_moves(&w, 0, false), 1);
	assert_int_equal(link_moves(&w, 1, false), 0);
	assert_int_equal(world_word(&w, a, 16), 0x51);
	link_stop(&w);
}

static void pag_23_an_instanced_allocation_has_a_backing_store_per_adapter(void **state)
{
	struct client_context other;
	struct world w;

	start(&w, state);
	link_context(&w.device, 0, 1, &other);
	warm_up(&w, &w.context);
	warm_up(&w, &other);
	D3DKMT_HANDLE a = link_allocate(&w, LINK_INSTANCED, WORLD_MEMORY);
	uint64_t before = system_bytes(&w);
	/* SWZ-30: one part after the other. */
	client_write(&w.device, a, LINK_ADAPTERS * BYTES, 0x1000);
	assert_int_equal(system_bytes(&w) - before, LINK_ADAPTERS * BYTES);
	scripted_forget(w.m);
	submit_use(&w, a);
	const DXGKARG_BUILDPAGINGBUFFER *first = link_nth(&w, DXGK_OPERATION_TRANSFER, 0, 0),
					*next = link_nth(&w, DXGK_OPERATION_TRANSFER, 1, 0);
	assert_int_equal(link_moves(&w, 0, true), 1);
	assert_int_equal(link_moves(&w, 1, true), 1);
	assert_ptr_not_equal(first->Transfer.Source.pMdl, next->Transfer.Source.pMdl);
	assert_int_equal(first->Transfer.MdlOffset, 0);
	assert_int_equal(next->Transfer.MdlOffset, 0);
	assert_int_equal(next->Transfer.TransferSize, BYTES);
	assert_int_equal(first->Transfer.Destination.SegmentAddress.QuadPart,
			 next->Transfer.Destination.SegmentAddress.QuadPart);
	for (uint32_t i = 0; i < BYTES / 4; i += 997) {
		assert_int_equal(link_word(&w, 0, i * 4), 0x1000 + i);
		assert_int_equal(link_word(&w, 1, i * 4), 0x1000 + BYTES / 4 + i);
	}
	assert_int_equal(system_bytes(&w), before);
	world_submit_write(&w.context, a, 16, 0x51);
	world_submit_write(&other, a, 16, 0x52);
	world_run(&w);
	scripted_forget(w.m);
	link_push_out(&w);
	assert_int_equal(link_moves(&w, 0, false), 1);
	assert_int_equal(link_moves(&w, 1, false), 1);
	assert_ptr_not_equal(
		link_nth(&w, DXGK_OPERATION_TRANSFER, 0, 0)->Transfer.Destination.pMdl,
		link_nth(&w, DXGK_OPERATION_TRANSFER, 1, 0)->Transfer.Destination.pMdl);
	assert_int_equal(link_count(&w, DXGK_OPERATION_DISCARD_CONTENT, 0), 0);
	assert_int_equal(world_word(&w, a, 16), 0x51);
	assert_int_equal(world_word(&w, a, BYTES + 16), 0x52);
	assert_int_equal(world_word(&w, a, BYTES + 20), 0x1000 + BYTES / 4 + 5);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	world_run(&w);
	assert_int_equal(system_bytes(&w), before);
	link_stop(&w);
}

static void pag_05_pag_22_pag_23_every_copy_is_filled_with_zero_at_first(void **state)
{
	static const uint32_t flags[] = {0, LINK_MIRRORED, LINK_INSTANCED};
	struct world w;

	start(&w, state);
	for (uint32_t i = 0; i < 3; i++) {
		D3DKMT_HANDLE dirt = link_allocate(&w, LINK_INSTANCED, WORLD_MEMORY);
		client_write(&w.device, dirt, LINK_ADAPTERS * BYTES, 0xD1D1);
		submit_use(&w, dirt);
		uint64_t place = link_place(&w, 0).address;
		assert_int_equal(client_deallocate(&w.device, dirt), S_OK);
		world_run(&w);
		scripted_forget(w.m);
		D3DKMT_HANDLE a = link_allocate(&w, flags[i], WORLD_MEMORY);
		submit_use(&w, a);
		assert_int_equal(link_place(&w, 0).address, place);
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++) {
			/* Content that is on the lead alone is filled there only. */
			bool there = !e || flags[i];

			assert_int_equal(link_count(&w, DXGK_OPERATION_FILL, e), there);
			assert_int_equal(link_word(&w, e, 0), there ? 0 : 0xD1D1 + BYTES / 4);
		}
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		world_run(&w);
	}
	link_stop(&w);
}

static void pag_17_pag_22_pag_23_an_aperture_is_mapped_on_each_adapter(void **state)
{
	static const uint32_t flags[] = {0, LINK_MIRRORED, LINK_INSTANCED};
	struct client_context other;
	struct world w;

	start(&w, state);
	link_context(&w.device, 0, 1, &other);
	for (uint32_t i = 0; i < 3; i++) {
		bool instanced = flags[i] == LINK_INSTANCED;

		scripted_forget(w.m);
		D3DKMT_HANDLE a = link_allocate(&w, flags[i], WORLD_APERTURE);
		submit_use(&w, a);
		assert_int_equal(link_count(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, 0), 1);
		assert_int_equal(link_count(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, 1),
				 flags[i] != 0);
		if (!flags[i])
			continue;
		assert_int_equal(link_nth(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, 0, 0)
						 ->MapApertureSegment.pMdl !=
					 link_nth(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, 1, 0)
						 ->MapApertureSegment.pMdl,
				 instanced);
		world_submit_write(&w.context, a, 16, 0x51);
		world_submit_write(&other, a, 32, 0x52);
		world_run(&w);
		/* The one backing store is mapped on both. */
		assert_int_equal(world_word(&w, a, 16), 0x51);
		assert_int_equal(world_word(&w, a, 32), instanced ? 0 : 0x52);
		if (instanced)
			assert_int_equal(world_word(&w, a, BYTES + 32), 0x52);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		world_run(&w);
		assert_int_equal(link_count(&w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT, 0), 1);
		assert_int_equal(link_count(&w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT, 1), 1);
	}
	link_stop(&w);
}

static void pag_17_each_copy_is_evicted_through_its_adapters_aperture(void **state)
{
	static const uint32_t flags[] = {LINK_MIRRORED, LINK_INSTANCED};
	struct client_context other;
	struct world w;

	start(&w, state);
	link_context(&w.device, 0, 1, &other);
	for (uint32_t i = 0; i < 2; i++) {
		const struct scripted_allocation spec = {.size_bytes = BYTES,
							 .flags = WORLD_CPU_VISIBLE | flags[i],
							 .read_set = WORLD_MEMORY,
							 .write_set = WORLD_MEMORY,
							 .eviction_set = WORLD_APERTURE};
		D3DKMT_HANDLE a = world_allocate_as(&w.device, &spec);

		submit_use(&w, a);
		world_submit_write(&other, a, 16, 0x52);
		world_run(&w);
		scripted_forget(w.m);
		link_push_out(&w);
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++) {
			bool leaves = e || flags[i] == LINK_INSTANCED;

			assert_int_equal(link_count(&w, DXGK_OPERATION_MAP_APERTURE_SEGMENT, e),
					 leaves);
			assert_int_equal(link_count(&w, DXGK_OPERATION_TRANSFER, e), leaves);
			assert_int_equal(link_count(&w, DXGK_OPERATION_UNMAP_APERTURE_SEGMENT, e),
					 leaves);
			assert_int_equal(link_count(&w, DXGK_OPERATION_DISCARD_CONTENT, e),
					 !leaves);
		}
		assert_int_equal(world_word(&w, a, flags[i] == LINK_INSTANCED ? BYTES + 16 : 16),
				 0x52);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
	}
	link_stop(&w);
}

/* ---- what the CPU sees ---- */

static void swz_30_a_lock_evicts_linked_content_from_all_adapters(void **state)
{
	static const uint32_t flags[] = {LINK_MIRRORED, LINK_INSTANCED};
	struct world w;

	start(&w, state);
	for (uint32_t i = 0; i < 2; i++) {
		D3DKMT_HANDLE a = link_allocate(&w, flags[i], WORLD_MEMORY), handle = a;
		uint64_t seen = flags[i] == LINK_INSTANCED ? LINK_ADAPTERS * BYTES : BYTES;
		void *data;

		client_write(&w.device, a, seen, 0x7000);
		submit_use(&w, a);
		/* LOCK-40: it would have to be evicted. */
		assert_int_equal(client_try_lock(&w.device, &handle, DONOT_EVICT, &data),
				 D3DDDIERR_NOTAVAILABLE);
		world_expect_finding(&w, "LOCK-49");
		scripted_forget(w.m);
		client_write(&w.device, a, seen, 0x8000);
		assert_int_equal(link_moves(&w, 0, false), 1);
		submit_use(&w, a);
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++)
			assert_int_equal(link_word(&w, e, 40),
					 0x8000 + 10 + (seen > BYTES ? e * BYTES / 4 : 0));
		client_expect(&w.device, a, seen, 0x8000);
	}
	link_stop(&w);
}

static void lock_18_swz_30_a_locked_page_list_covers_every_instance(void **state)
{
	static const UINT past_mirrored[] = {BYTES / PAGE_BYTES},
			  last[] = {LINK_ADAPTERS * BYTES / PAGE_BYTES - 1},
			  past[] = {LINK_ADAPTERS * BYTES / PAGE_BYTES};
	struct world w;

	start(&w, state);
	D3DKMT_HANDLE m = link_allocate(&w, LINK_MIRRORED, WORLD_MEMORY);
	D3DKMT_HANDLE i = link_allocate(&w, LINK_INSTANCED, WORLD_MEMORY);
	D3DDDICB_LOCK lock = {.hAllocation = m, .NumPages = 1, .pPages = past_mirrored};
	assert_int_equal(w.device.cb->pfnLockCb(w.device.handle, &lock), E_INVALIDARG);
	world_expect_finding(&w, "LOCK-18");
	lock = (D3DDDICB_LOCK){.hAllocation = i, .NumPages = 1, .pPages = past};
	assert_int_equal(w.device.cb->pfnLockCb(w.device.handle, &lock), E_INVALIDARG);
	world_expect_finding(&w, "LOCK-18");
	lock = (D3DDDICB_LOCK){.hAllocation = i, .NumPages = 1, .pPages = last};
	assert_int_equal(w.device.cb->pfnLockCb(w.device.handle, &lock), S_OK);
	*(uint32_t *)lock.pData = 0x99;
	assert_int_equal(client_unlock(&w.device, i), S_OK);
	submit_use(&w, i);
	assert_int_equal(link_word(&w, 1, BYTES - PAGE_BYTES), 0x99);
	assert_int_equal(link_word(&w, 0, BYTES - PAGE_BYTES), 0);
	link_stop(&w);
}

static void ren_04_each_renaming_instance_is_on_all_adapters(void **state)
{
	static const uint32_t flags[] = {LINK_MIRRORED, LINK_INSTANCED};
	struct world w;

	start(&w, state);
	for (uint32_t i = 0; i < 2; i++) {
		const struct scripted_allocation spec = {.size_bytes = BYTES,
							 .flags = WORLD_CPU_VISIBLE | flags[i],
							 .read_set = WORLD_MEMORY,
							 .write_set = WORLD_MEMORY,
							 .renaming_limit = 3};
		uint64_t seen = flags[i] == LINK_INSTANCED ? LINK_ADAPTERS * BYTES : BYTES;
		D3DKMT_HANDLE a = world_allocate_as(&w.device, &spec);
		void *data;

		for (uint32_t round = 0; round < 4; round++) {
			assert_int_equal(client_try_lock(&w.device, &a, DISCARD, &data), S_OK);
			memset(data, 0x30 + (int)round, seen);
			assert_int_equal(client_unlock(&w.device, a), S_OK);
			submit_use(&w, a);
			for (uint32_t e = 0; e < LINK_ADAPTERS; e++)
				assert_int_equal(link_word(&w, e, BYTES - 4),
						 0x30303030 + 0x01010101 * round);
		}
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		world_run(&w);
	}
	link_stop(&w);
}

/* ---- validity of the copies ---- */

static void pag_06_ofr_09_a_discard_frees_the_copies_on_every_adapter(void **state)
{
	static const uint32_t flags[] = {LINK_MIRRORED, LINK_INSTANCED};
	struct world w;

	start(&w, state);
	for (uint32_t i = 0; i < 2; i++) {
		D3DKMT_HANDLE a = link_allocate(&w, flags[i], WORLD_MEMORY);
		D3DDDICB_OFFERALLOCATIONS offer = {.HandleList = &a,
						   .NumAllocations = 1,
						   .Priority = D3DDDI_OFFER_PRIORITY_LOW};
		BOOL discarded = FALSE;
		D3DDDICB_RECLAIMALLOCATIONS reclaim = {
			.HandleList = &a, .NumAllocations = 1, .pDiscarded = &discarded};

		submit_use(&w, a);
		assert_int_equal(w.device.cb->pfnOfferAllocationsCb(w.device.handle, &offer), S_OK);
		scripted_forget(w.m);
		link_push_out(&w);
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++) {
			assert_int_equal(link_moves(&w, e, false), 0);
			assert_int_equal(link_count(&w, DXGK_OPERATION_DISCARD_CONTENT, e), 1);
		}
		assert_int_equal(w.device.cb->pfnReclaimAllocationsCb(w.device.handle, &reclaim),
				 S_OK);
		assert_true(discarded);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
	}
	link_stop(&w);
}

static void pag_13_pag_14_a_retained_copy_is_transferred_to_every_adapter(void **state)
{
	static const uint32_t flags[] = {LINK_MIRRORED, LINK_INSTANCED};
	struct client_context other;
	struct world w;

	start(&w, state);
	link_context(&w.device, 0, 1, &other);
	for (uint32_t i = 0; i < 2; i++) {
		bool instanced = flags[i] == LINK_INSTANCED;
		uint32_t part = instanced ? BYTES : 0;
		D3DKMT_HANDLE a = link_allocate(&w, flags[i] | 0x2, WORLD_MEMORY);

		client_write(&w.device, a, instanced ? LINK_ADAPTERS * BYTES : BYTES, 0x1000);
		submit_use(&w, a);
		/* PAG-13: it is not dirty, so nothing is copied. */
		scripted_forget(w.m);
		link_push_out(&w);
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++) {
			assert_int_equal(link_moves(&w, e, false), 0);
			assert_int_equal(link_count(&w, DXGK_OPERATION_DISCARD_CONTENT, e), 1);
		}
		submit_use(&w, a);
		/*
		 * PAG-15: the lock gets what the second adapter wrote, and what the CPU writes is
		 * transferred to both.
		 */
		world_submit_write(&other, a, 16, 0x52);
		world_run(&w);
		assert_int_equal(world_word(&w, a, part + 16), 0x52);
		scripted_forget(w.m);
		uint32_t *words = client_lock(&w.device, a, 0);
		words[5] = 0x60;
		words[part / 4 + 6] = 0x61;
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		submit_use(&w, a);
		assert_int_equal(link_word(&w, 0, 20), 0x60);
		assert_int_equal(link_word(&w, 1, 24), 0x61);
		assert_int_equal(link_word(&w, 1, 16), 0x52);
		if (!instanced) {
			assert_int_equal(link_word(&w, 1, 20), 0x60);
			assert_int_equal(link_word(&w, 0, 16), 0x52);
		}
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		world_run(&w);
	}
	link_stop(&w);
}

static D3DKMT_HANDLE allocate_pages(struct world *w, uint32_t pages, uint32_t flags,
				    uint32_t segments)
{
	const struct scripted_allocation spec = {
		.size_bytes = pages * PAGE_BYTES,
		.flags = WORLD_CPU_VISIBLE | flags,
		.read_set = segments,
		.write_set = segments,
		.eviction_set = segments == WORLD_MEMORY ? WORLD_APERTURE : 0};

	return world_allocate_as(&w->device, &spec);
}

static void narrow_aperture(struct scripted_miniport *m)
{
	link_setup(m);
	m->settings.segment[0].size_bytes = m->settings.segment[0].commit_limit_bytes =
		400 * PAGE_BYTES;
	m->settings.segment[1].size_bytes = m->settings.segment[1].commit_limit_bytes =
		100 * PAGE_BYTES;
}

/* Content that cannot be evicted moves inside its memory segment, in each copy. */
static void pag_20_content_that_cannot_be_evicted_is_compacted_on_every_adapter(void **state)
{
	static const uint32_t flags[] = {LINK_MIRRORED, LINK_INSTANCED};
	enum { PAGES = 81 };
	struct client_context other;
	struct world w;

	world_start(&w, state, narrow_aperture);
	link_context(&w.device, 0, 1, &other);
	/* an overlay that blocks the eviction path */
	allocate_pages(&w, 20, 0x100, WORLD_APERTURE);
	for (uint32_t i = 0; i < 2; i++) {
		D3DKMT_HANDLE first = allocate_pages(&w, 160, 0, WORLD_MEMORY);
		submit_use(&w, first);
		D3DKMT_HANDLE a = allocate_pages(&w, PAGES, flags[i], WORLD_MEMORY);
		world_submit_write(&w.context, a, 16, 0x51);
		world_submit_write(&other, a, 16, 0x52);
		world_run(&w);
		assert_int_equal(client_deallocate(&w.device, first), S_OK);
		world_run(&w);
		scripted_forget(w.m);
		D3DKMT_HANDLE large = allocate_pages(&w, 230, 0, WORLD_MEMORY);
		submit_use(&w, large);
		assert_int_equal(client_deallocate(&w.device, large), S_OK);
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++) {
			const DXGKARG_BUILDPAGINGBUFFER *move =
				link_nth(&w, DXGK_OPERATION_TRANSFER, e, 0);

			assert_int_equal(link_count(&w, DXGK_OPERATION_TRANSFER, e), 1);
			assert_int_equal(move->Transfer.Source.SegmentId, 1);
			assert_int_equal(move->Transfer.Destination.SegmentId, 1);
			assert_int_equal(move->Transfer.TransferSize, PAGES * PAGE_BYTES);
		}
		submit_use(&w, a);
		assert_int_equal(link_word(&w, 0, 16), 0x51);
		assert_int_equal(link_word(&w, 1, 16), 0x52);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		world_run(&w);
	}
	link_stop(&w);
}

static void pag_18_pinned_allocations_are_pinned_on_each_adapter(void **state)
{
	static const uint32_t flags[] = {LINK_MIRRORED, LINK_INSTANCED};
	struct world w;

	start(&w, state);
	for (uint32_t i = 0; i < 2; i++) {
		void *data;

		scripted_forget(w.m);
		D3DKMT_HANDLE a = link_allocate(&w, flags[i] | 0x100, WORLD_MEMORY), handle = a;
		for (uint32_t e = 0; e < LINK_ADAPTERS; e++)
			assert_int_equal(link_count(&w, DXGK_OPERATION_FILL, e), 1);
		assert_int_equal(link_nth(&w, DXGK_OPERATION_FILL, 0, 0)
					 ->Fill.Destination.SegmentAddress.QuadPart,
				 link_nth(&w, DXGK_OPERATION_FILL, 1, 0)
					 ->Fill.Destination.SegmentAddress.QuadPart);
		assert_int_equal(client_try_lock(&w.device, &handle, 0, &data),
				 D3DDDIERR_CANTEVICTPINNEDALLOCATION);
		world_expect_finding(&w, "LOCK-49");
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		world_run(&w);
	}
	link_stop(&w);
}

/*
 * Segments are counted as one adapter has them; system memory and copied bytes are counted in full.
 */
static void seg_04_pag_22_pag_23_statistics_count_one_adapters_segments(void **state)
{
	static const uint32_t flags[] = {0, LINK_MIRRORED, LINK_INSTANCED};
	struct vidmm_adapter_statistics before = {.struct_size = sizeof(before)}, after = before;
	struct world w;

	start(&w, state);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t copies = flags[i] ? LINK_ADAPTERS : 1;
		D3DKMT_HANDLE a = link_allocate(&w, flags[i], WORLD_MEMORY);

		vidmm_adapter_statistics(w.client.adapter, &before);
		submit_use(&w, a);
		vidmm_adapter_statistics(w.client.adapter, &after);
		assert_int_equal(after.segment[0].resident_bytes - before.segment[0].resident_bytes,
				 BYTES);
		assert_int_equal(after.bytes_filled - before.bytes_filled, copies * BYTES);
		before = after;
		/* CPU-visible, or evicted and paged in again */
		client_write(&w.device, a, BYTES, 1);
		submit_use(&w, a);
		vidmm_adapter_statistics(w.client.adapter, &after);
		assert_int_equal(after.bytes_paged_in - before.bytes_paged_in,
				 flags[i] ? copies * BYTES : 0);
		assert_int_equal(after.bytes_paged_out - before.bytes_paged_out,
				 flags[i] == LINK_INSTANCED  ? copies * BYTES
				 : flags[i] == LINK_MIRRORED ? BYTES
							     : 0);
		assert_int_equal(after.segment[0].resident_bytes, before.segment[0].resident_bytes);
		assert_int_equal(client_deallocate(&w.device, a), S_OK);
		world_run(&w);
	}
	link_stop(&w);
}

static void pnp_05_content_of_all_adapters_survives_power_down(void **state)
{
	static const uint32_t flags[] = {LINK_MIRRORED, LINK_INSTANCED, 0};
	struct client_context other;
	D3DKMT_HANDLE a[3];
	struct world w;

	start(&w, state);
	link_context(&w.device, 0, 1, &other);
	for (uint32_t i = 0; i < 3; i++) {
		a[i] = link_allocate(&w, flags[i], WORLD_MEMORY);
		world_submit_write(&w.context, a[i], 16, 0x51);
		world_submit_write(&w.context, a[i], 20, 0x53);
		world_submit_write(&other, a[i], 16, 0x52);
		world_submit_write(&other, a[i], 20, 0x53);
	}
	world_run(&w);
	assert_int_equal(
		vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY), 0);
	memset(w.m->bar, 0xEE, w.m->bar_bytes);
	memset(link_second->bar, 0xEE, link_second->bar_bytes);
	assert_int_equal(vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D0, 0), 0);
	for (uint32_t i = 0; i < 3; i++) {
		submit_use(&w, a[i]);
		assert_int_equal(link_word(&w, 0, 16), flags[i] == LINK_INSTANCED ? 0x51 : 0x52);
		assert_int_equal(link_word(&w, 0, 20), 0x53);
		if (flags[i])
			assert_int_equal(link_word(&w, 1, 16), 0x52);
	}
	link_stop(&w);
}

static void without_contexts(struct scripted_miniport *m)
{
	link_setup(m);
	m->settings.caps.SchedulingCaps.MultiEngineAware = 0;
}

/* The device handles replace contexts; EngineOrdinal gives the adapter of a packet. */
static void dma_33_pag_23_without_multi_engine_paging_runs_on_each_adapter(void **state)
{
	struct client_context other;
	struct world w;

	world_start(&w, state, without_contexts);
	link_context(&w.device, 0, 1, &other);
	D3DKMT_HANDLE m = link_allocate(&w, LINK_MIRRORED, WORLD_MEMORY);
	D3DKMT_HANDLE i = link_allocate(&w, LINK_INSTANCED, WORLD_MEMORY);
	for (uint32_t round = 0; round < 2; round++) {
		world_submit_write(&other, m, 16, 0x52 + round);
		world_submit_write(&w.context, i, 16, 0x61 + round);
		world_submit_write(&other, i, 16, 0x71 + round);
		world_run(&w);
		link_push_out(&w);
		assert_int_equal(world_word(&w, m, 16), 0x52 + round);
		assert_int_equal(world_word(&w, i, 16), 0x61 + round);
		assert_int_equal(world_word(&w, i, BYTES + 16), 0x71 + round);
	}
	link_stop(&w);
}

/* PAG-22: the caller's memory is the only backing store. */
static void alf_13_pag_22_existing_memory_backs_a_mirrored_allocation(void **state)
{
	static uint32_t memory[BYTES / 4] __attribute__((aligned(4096)));
	struct scripted_allocation spec = {.size_bytes = BYTES,
					   .flags = WORLD_CPU_VISIBLE | LINK_MIRRORED | 0x10,
					   .read_set = WORLD_MEMORY,
					   .write_set = WORLD_MEMORY};
	D3DDDI_ALLOCATIONINFO info = {.pSystemMem = memory,
				      .pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	struct client_context other;
	struct world w;

	start(&w, state);
	link_context(&w.device, 0, 1, &other);
	for (uint32_t i = 0; i < BYTES / 4; i++)
		memory[i] = 0x900 + i;
	assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args), S_OK);
	submit_use(&w, info.hAllocation);
	for (uint32_t e = 0; e < LINK_ADAPTERS; e++)
		assert_int_equal(link_word(&w, e, 400), 0x900 + 100);
	world_submit_write(&other, info.hAllocation, 16, 0x52);
	world_run(&w);
	assert_int_equal(client_deallocate(&w.device, info.hAllocation), S_OK);
	assert_int_equal(memory[4], 0x52);
	assert_int_equal(memory[5], 0x905);
	link_stop(&w);
}

static void alf_23_flags_not_supported_on_a_link_are_refused(void **state)
{
	static char memory[BYTES] __attribute__((aligned(4096)));
	static const struct {
		uint32_t flags, client_flags;
		HRESULT result;
		const char *rule;
	} cases[] = {
		{LINK_MIRRORED | LINK_INSTANCED, 0, E_INVALIDARG, "ALF-23"},
		{LINK_MIRRORED | 0x400, 0x1, E_NOTIMPL, NULL}, /* UseAlternateVA */
		{LINK_INSTANCED | 0x400, 0x1, E_NOTIMPL, NULL},
		{LINK_INSTANCED | 0x10, 0, E_NOTIMPL, NULL}, /* ExistingSysMem */
		{LINK_MIRRORED | 0x10, 0, S_OK, NULL},
		{LINK_MIRRORED, 0x1, S_OK, NULL},
		{LINK_INSTANCED, 0x1, S_OK, NULL},
	};
	struct world w;

	world_start(&w, state, with_a_range);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scripted_allocation spec = {.size_bytes = BYTES,
						   .flags = WORLD_CPU_VISIBLE | cases[i].flags,
						   .read_set = WORLD_MEMORY,
						   .write_set = WORLD_MEMORY};
		D3DDDI_ALLOCATIONINFO info = {.pSystemMem = cases[i].flags & 0x10 ? memory : NULL,
					      .pPrivateDriverData = &spec,
					      .PrivateDriverDataSize = sizeof(spec),
					      .Flags.Value = cases[i].client_flags};
		D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
		uint32_t live = w.m->live_allocations;

		assert_int_equal(w.device.cb->pfnAllocateCb(w.device.handle, &args),
				 cases[i].result);
		assert_int_equal(info.hAllocation != 0, cases[i].result == S_OK);
		assert_int_equal(w.m->live_allocations - live, cases[i].result == S_OK);
		if (cases[i].rule)
			world_expect_finding(&w, cases[i].rule);
		assert_int_equal(w.client.findings, 0);
		if (info.hAllocation) {
			submit_use(&w, info.hAllocation);
			assert_int_equal(client_deallocate(&w.device, info.hAllocation), S_OK);
		}
	}
	link_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sch_09_each_adapter_of_a_link_has_a_system_context),
		ON_BOTH(pag_22_page_in_copies_one_backing_store_into_every_copy),
		ON_BOTH(pag_22_eviction_transfers_one_copy_and_drops_the_others),
		ON_BOTH(pag_22_a_copy_that_no_adapter_wrote_is_transferred_by_the_lead),
		ON_BOTH(pag_23_an_instanced_allocation_has_a_backing_store_per_adapter),
		ON_BOTH(pag_05_pag_22_pag_23_every_copy_is_filled_with_zero_at_first),
		ON_BOTH(pag_17_pag_22_pag_23_an_aperture_is_mapped_on_each_adapter),
		ON_BOTH(pag_17_each_copy_is_evicted_through_its_adapters_aperture),
		ON_BOTH(swz_30_a_lock_evicts_linked_content_from_all_adapters),
		ON_BOTH(lock_18_swz_30_a_locked_page_list_covers_every_instance),
		ON_BOTH(ren_04_each_renaming_instance_is_on_all_adapters),
		ON_BOTH(pag_06_ofr_09_a_discard_frees_the_copies_on_every_adapter),
		ON_BOTH(pag_13_pag_14_a_retained_copy_is_transferred_to_every_adapter),
		ON_BOTH(pag_20_content_that_cannot_be_evicted_is_compacted_on_every_adapter),
		ON_BOTH(pag_18_pinned_allocations_are_pinned_on_each_adapter),
		ON_BOTH(seg_04_pag_22_pag_23_statistics_count_one_adapters_segments),
		ON_BOTH(pnp_05_content_of_all_adapters_survives_power_down),
		ON_BOTH(dma_33_pag_23_without_multi_engine_paging_runs_on_each_adapter),
		ON_BOTH(alf_13_pag_22_existing_memory_backs_a_mirrored_allocation),
		ON_BOTH(alf_23_flags_not_supported_on_a_link_are_refused),
	};

	return cmocka_run_group_tests_name("sched_link_paging", tests, NULL, NULL);
}
