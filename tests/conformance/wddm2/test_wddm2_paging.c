/* SPDX-License-Identifier: MIT */
/* Paging that differs on adapters of WDDM 2.x: residency notifications, protected content. */
#include "wddm2_world.h"
#include <support/viewer.h>

#include <stdio.h>
#include <string.h>

static void at_once(struct scripted_miniport *m)
{
	wddm2_0(m);
	m->settings.complete_at_once = true;
}

static void encrypted(struct scripted_miniport *m)
{
	DXGK_SEGMENTFLAGS flags = {.EncryptedPagingSupported = 1};

	at_once(m);
	m->settings.segment[0].flags |= flags.Value;
}

static D3DKMT_HANDLE allocate(struct client_device *device, uint64_t bytes, uint32_t flags,
			      uint32_t set)
{
	const struct scripted_allocation spec = {
		.size_bytes = bytes, .flags = flags, .read_set = set, .write_set = set};
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(device, &spec, &handle), S_OK);
	return handle;
}

/*
 * The operations so far, a letter each: Fill, transfer In, transfer Out, Map, Unmap, + and - for
 * notifications.
 */
static const char *operations(const struct world *w, uint32_t from)
{
	static char text[64];
	const struct scripted_call *call;
	uint32_t seen = 0, at = 0;

	for (uint32_t i = 0; (call = scripted_at(w->m, i)) != NULL && at + 1 < sizeof(text); i++) {
		const DXGKARG_BUILDPAGINGBUFFER *op = &call->in.paging;

		if (call->ddi != VIDMM_DDI_BUILD_PAGING_BUFFER || seen++ < from)
			continue;
		switch (op->Operation) {
		case DXGK_OPERATION_FILL:
			text[at++] = 'F';
			break;
		case DXGK_OPERATION_TRANSFER:
			text[at++] = op->Transfer.Source.SegmentId ? 'O' : 'I';
			break;
		case DXGK_OPERATION_MAP_APERTURE_SEGMENT:
			text[at++] = 'M';
			break;
		case DXGK_OPERATION_UNMAP_APERTURE_SEGMENT:
			text[at++] = 'U';
			break;
		case DXGK_OPERATION_NOTIFY_RESIDENCY:
			text[at++] = op->NotifyResidency.Resident ? '+' : '-';
			break;
		default:
			text[at++] = '?';
		}
	}
	text[at] = 0;
	return text;
}

static void evict(struct world *w, D3DKMT_HANDLE a)
{
	assert_int_equal(wddm2_evict(&w->device, a, 0), S_OK);
	while (client_residency(&w->device, a) != D3DDDI_RESIDENCYSTATUS_NOTRESIDENT)
		vidmm_settle(w->client.host);
}

/*
 * VA-14: one for each change, after the content has been paged in and before it is evicted; with
 * the address, or with (0, 0).
 */
static void pag_25_each_residency_change_has_one_notification(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w.device, 64 * KIB, PHYSICAL | NOTIFY_RESIDENCY, WORLD_MEMORY),
		      b = allocate(&w.device, 64 * KIB, PHYSICAL | NOTIFY_RESIDENCY,
				   WORLD_APERTURE),
		      c = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
	uint32_t from = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), notified = 0;
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 0, 0xA);
	world_run(&w);
	evict(&w, a);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	wddm2_make(&w, &w.device, &queue, &b, 1);
	wddm2_make(&w, &w.device, &queue, &c, 1); /* has not requested notifications */
	evict(&w, b);
	assert_string_equal(operations(&w, from), "F+-OI+M+F-U");
	for (uint32_t i = from; i < scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER); i++) {
		const DXGKARG_BUILDPAGINGBUFFER *op =
			&scripted_nth(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)->in.paging;
		const D3DGPU_PHYSICAL_ADDRESS *at = &op->NotifyResidency.PhysicalAddress;

		if (op->Operation != DXGK_OPERATION_NOTIFY_RESIDENCY)
			continue;
		uint32_t segment = !op->NotifyResidency.Resident ? 0 : notified == 3 ? 2 : 1;
		notified++;
		assert_int_equal(op->NotifyResidency.Reserved, 0);
		assert_int_equal(at->SegmentId, segment);
		assert_true(segment || !at->SegmentOffset);
	}
	assert_int_equal(notified, 5);
	wddm2_stop(&w);
}

/* Destroyed while resident: that is notified, too, before DestroyAllocation. */
static void pag_25_destruction_while_resident_is_notified(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w.device, 64 * KIB, PHYSICAL | NOTIFY_RESIDENCY, WORLD_MEMORY);
	uint32_t from = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	world_await(&w, VIDMM_DDI_DESTROY_ALLOCATION, 1);
	assert_string_equal(operations(&w, from), "F+-");
	wddm2_stop(&w);
}

/* Without system memory for the content it stays, and the miniport is notified again. (PAG-25) */
static void pag_25_an_eviction_that_fails_is_notified_again(void **state)
{
	static const struct client_options options = {.system_memory_bytes = 8 * MIB};
	struct world w;

	world_start_with(&w, state, at_once, &options);
	world_open(&w);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w.device, 12 * MIB, PHYSICAL | NOTIFY_RESIDENCY, WORLD_MEMORY);
	uint32_t from = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	assert_int_equal(wddm2_evict(&w.device, a, 0), S_OK);
	wddm2_run(&w);
	assert_true(wddm2_is_in_memory(&w.device, a));
	assert_string_equal(operations(&w, from), "F+-+");
	const struct scripted_call *call = scripted_last(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	assert_int_equal(call->in.paging.NotifyResidency.PhysicalAddress.SegmentId, 1);
	/* It has not left, so its destruction is a change. */
	assert_int_equal(client_deallocate(&w.device, a), S_OK);
	world_await(&w, VIDMM_DDI_DESTROY_ALLOCATION, 1);
	assert_string_equal(operations(&w, from), "F+-+-");
	wddm2_stop(&w);
}

/* The address in a submission equals the one in the notification. */
static void pag_25_the_notified_address_equals_the_patched_one(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE filler = wddm2_allocate(&w.device, 4 * MIB, WORLD_MEMORY),
		      a = allocate(&w.device, 64 * KIB, PHYSICAL | NOTIFY_RESIDENCY, WORLD_MEMORY);
	const D3DKMT_HANDLE both[] = {filler, a};
	wddm2_make(&w, &w.device, &queue, both, 2);
	uint32_t last = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER) - 1;
	const DXGKARG_BUILDPAGINGBUFFER *op =
		&scripted_nth(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, last)->in.paging;
	world_submit_use(&w.context, a);
	world_run(&w);
	const DXGK_ALLOCATIONLIST *entry = world_nth_of(&w, VIDMM_DDI_PATCH, false, 0)->allocations;
	assert_int_equal(op->Operation, DXGK_OPERATION_NOTIFY_RESIDENCY);
	assert_int_equal(entry->SegmentId, op->NotifyResidency.PhysicalAddress.SegmentId);
	assert_int_equal((uint64_t)entry->PhysicalAddress.QuadPart,
			 SCRIPTED_MEMORY_BASE + op->NotifyResidency.PhysicalAddress.SegmentOffset);
	wddm2_stop(&w);
}

/*
 * Without GPU virtual addresses all paging uses physical addresses, as before 2.0: fill, transfers
 * out of a memory segment and in again, map and unmap. No operation uses virtual addresses.
 */
static void pag_26_without_virtual_addresses_operations_stay_physical(void **state)
{
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY),
		      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_APERTURE);
	uint32_t from = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER), calls;
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 8, 0x26);
	world_run(&w);
	evict(&w, a);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	wddm2_make(&w, &w.device, &queue, &b, 1);
	evict(&w, b);
	vidmm_settle(w.client.host);
	assert_string_equal(operations(&w, from), "FOIMU");
	calls = scripted_count(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER);
	for (uint32_t i = from; i < calls; i++) {
		const DXGKARG_BUILDPAGINGBUFFER *op =
			&scripted_nth(w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)->in.paging;
		uint64_t at = op->Operation == DXGK_OPERATION_FILL
				      ? (uint64_t)op->Fill.Destination.SegmentAddress.QuadPart
				      : SCRIPTED_MEMORY_BASE;

		if (op->Operation == DXGK_OPERATION_TRANSFER)
			at = (uint64_t)(op->Transfer.Source.SegmentId
						? op->Transfer.Source.SegmentAddress.QuadPart
						: op->Transfer.Destination.SegmentAddress.QuadPart);
		assert_in_range(at, SCRIPTED_MEMORY_BASE,
				SCRIPTED_MEMORY_BASE + SCRIPTED_BAR_BYTES - 1);
	}
	assert_int_equal(world_word(&w, a, 8), 0x26);
	wddm2_stop(&w);
}

/* Returns whether the CPU can access it; an out-of-process client cannot. */
static bool is_shown(struct world *w, D3DKMT_HANDLE a)
{
	HRESULT result = client_try_lock(&w->device, &a, 0x1, NULL);

	assert_int_equal(result, is_out_of_process(w->device.process) ? E_NOTIMPL : S_OK);
	if (result == S_OK)
		assert_int_equal(client_unlock(&w->device, a), S_OK);
	return result == S_OK;
}

/* The content as the GPU reads it, and as the CPU reads it if it can; it is in memory. */
static void expect_protected_word(struct world *w, D3DKMT_HANDLE a, uint32_t offset, uint32_t word)
{
	world_submit_use(&w->context, a);
	world_run(w);
	assert_int_equal(world_gpu_word(w, offset), word);
	if (is_shown(w, a))
		assert_int_equal(world_word(w, a, offset), word);
}

/*
 * Without the segment's flag the content is discarded, and nothing of it is in system memory. With
 * the flag it is copied.
 */
static void pag_32_protected_content_is_discarded_or_paged_encrypted(void **state)
{
	struct world w;

	for (uint32_t i = 0; i < 2; i++) {
		world_start(&w, state, i ? encrypted : at_once);
		D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
		D3DKMT_HANDLE a = allocate(&w.device, 64 * KIB, PHYSICAL | HARDWARE_PROTECTED,
					   WORLD_MEMORY),
			      b = wddm2_allocate(&w.device, 64 * KIB, WORLD_MEMORY);
		const D3DKMT_HANDLE both[] = {a, b};
		wddm2_make(&w, &w.device, &queue, both, 2);
		world_submit_write(&w.context, a, 4, 0x44);
		world_submit_write(&w.context, b, 4, 0x45);
		world_run(&w);
		evict(&w, a);
		assert_int_equal(wddm2_transfers(&w, false), i);
		evict(&w, b); /* content that is not protected is paged out as usual */
		assert_int_equal(wddm2_transfers(&w, false), i + 1);
		wddm2_make(&w, &w.device, &queue, both, 2);
		expect_protected_word(&w, a, 4, i ? 0x44 : 0);
		assert_int_equal(world_word(&w, b, 4), 0x45);
		wddm2_stop(&w);
	}
}

/*
 * Other content needs its memory, but what the CPU has locked must not lose its writes. It stays
 * until the unlock.
 */
static void pag_32_locked_protected_content_is_not_discarded(void **state)
{
	D3DDDI_MAKERESIDENT args;
	struct world w;

	world_start(&w, state, at_once);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DKMT_HANDLE a = allocate(&w.device, 64 * KIB, PHYSICAL | HARDWARE_PROTECTED,
				   WORLD_MEMORY | WORLD_APERTURE),
		      all = wddm2_allocate(&w.device, 16 * MIB, WORLD_MEMORY);
	wddm2_make(&w, &w.device, &queue, &a, 1);
	world_submit_write(&w.context, a, 4, 0x44);
	world_run(&w);
	assert_int_equal(wddm2_evict(&w.device, a, EVICT_ONLY_IF_NECESSARY), S_OK);
	if (is_shown(&w, a)) {
		volatile uint32_t *words = client_lock(&w.device, a, 0);

		words[2] = 0x45;
		(void)wddm2_try_make_one(&w.device, &queue, all, &args);
		for (uint32_t i = 0; i < 20; i++)
			vidmm_settle(w.client.host);
		assert_true(wddm2_is_in_memory(&w.device, a));
		assert_int_equal(words[1], 0x44);
		assert_int_equal(words[2], 0x45);
		assert_int_equal(client_unlock(&w.device, a), S_OK);
		assert_int_equal(wddm2_transfers(&w, false), 0);
	}
	wddm2_stop(&w);
}

static void evict_unwritten(struct world *w, D3DKMT_HANDLE a, uint32_t transfers)
{
	assert_int_equal(wddm2_evict(&w->device, a, NOT_WRITTEN_TO), S_OK);
	while (wddm2_is_in_memory(&w->device, a))
		vidmm_settle(w->client.host);
	assert_int_equal(wddm2_transfers(w, false), transfers);
}

/*
 * Content that the GPU has not written to is in system memory already, and may stay there: what
 * the CPU wrote, and what was paged out encrypted.
 */
static void pag_32_content_the_gpu_did_not_write_is_retained(void **state)
{
	struct world w;

	for (uint32_t i = 0; i < 2; i++) {
		world_start(&w, state, i ? encrypted : at_once);
		D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
		D3DKMT_HANDLE a =
			allocate(&w.device, 64 * KIB, PHYSICAL | HARDWARE_PROTECTED, WORLD_MEMORY);
		if (i) {
			wddm2_make(&w, &w.device, &queue, &a, 1);
			world_submit_write(&w.context, a, 4, 0x44);
			world_run(&w);
			evict(&w, a);
		} else if (is_shown(&w, a)) {
			uint32_t *words = client_lock(&w.device, a, 0);
			words[1] = 0x44;
			assert_int_equal(client_unlock(&w.device, a), S_OK);
		}
		wddm2_make(&w, &w.device, &queue, &a, 1);
		evict_unwritten(&w, a, i);
		uint32_t word = i || is_shown(&w, a) ? 0x44 : 0;
		if (word && !i) /* also while it is not in memory */
			assert_int_equal(world_word(&w, a, 4), word);
		wddm2_make(&w, &w.device, &queue, &a, 1);
		expect_protected_word(&w, a, 4, word);
		wddm2_stop(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pag_25_each_residency_change_has_one_notification),
		ON_BOTH(pag_25_destruction_while_resident_is_notified),
		ON_BOTH(pag_25_an_eviction_that_fails_is_notified_again),
		ON_BOTH(pag_25_the_notified_address_equals_the_patched_one),
		ON_BOTH(pag_26_without_virtual_addresses_operations_stay_physical),
		ON_BOTH(pag_32_protected_content_is_discarded_or_paged_encrypted),
		ON_BOTH(pag_32_locked_protected_content_is_not_discarded),
		ON_BOTH(pag_32_content_the_gpu_did_not_write_is_retained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
