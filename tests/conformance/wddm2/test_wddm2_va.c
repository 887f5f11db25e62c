/* SPDX-License-Identifier: MIT */
/*
 * GPU virtual addresses: which ones a client gets, what it may do with them, and what the GPU
 * finds there.
 */
#include "va_world.h"

#include <string.h>

static void write_word(struct va_world *v, D3DKMT_HANDLE allocation, uint64_t offset, uint32_t word)
{
	D3DDDICB_LOCK2 lock = {.hAllocation = allocation};

	assert_int_equal(v->w.device.cb->pfnLock2Cb(v->w.device.handle, &lock), S_OK);
	memcpy((char *)lock.pData + offset, &word, sizeof(word));
	const D3DDDICB_UNLOCK2 unlock = {.hAllocation = allocation};
	assert_int_equal(v->w.device.cb->pfnUnlock2Cb(v->w.device.handle, &unlock), S_OK);
}

/* ---- placement of addresses ---- */

static void va_01_one_allocation_may_have_several_constant_addresses(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 8 * MIB, WORLD_MEMORY | WORLD_APERTURE),
		      b = va_allocate(&v, 12 * MIB, WORLD_MEMORY);
	write_word(&v, a, 5 * PAGE_BYTES, 0x1234);
	uint64_t first = va_map(&v, a, 8 * MIB), second = va_map(&v, a, 8 * MIB);
	assert_int_not_equal(first, second);
	va_make(&v, a);
	assert_int_equal(va_word(&v, first + 5 * PAGE_BYTES), 0x1234);
	va_store(&v, second + 5 * PAGE_BYTES, 0x5678);
	assert_int_equal(va_word(&v, first + 5 * PAGE_BYTES), 0x5678);
	/* It is evicted and paged in elsewhere; its addresses do not change. */
	assert_int_equal(wddm2_evict(&v.w.device, a, 0), S_OK);
	wddm2_run(&v.w);
	va_make(&v, b);
	assert_false(wddm2_is_in_memory(&v.w.device, a));
	assert_int_equal(wddm2_evict(&v.w.device, b, 0), S_OK);
	wddm2_run(&v.w);
	va_make(&v, a);
	assert_int_equal(va_word(&v, first + 5 * PAGE_BYTES), 0x5678);
	assert_int_equal(va_word(&v, second + 5 * PAGE_BYTES), 0x5678);
	va_finish(&v);
}

static void va_01_each_process_has_its_own_address_space(void **state)
{
	struct va_world v;
	struct client_device other;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	uint64_t at = va_map(&v, a, 64 * KIB);
	va_make(&v, a);
	client_open(&v.w.client, &other);
	/* these two, and the system paging process */
	assert_int_equal(scripted_count(v.w.m, VIDMM_DDI_CREATE_PROCESS), 3);
	uint32_t word;
	assert_false(scripted_virtual_access(scripted_process(v.w.m, 1), at, &word, sizeof(word),
					     false));
	const D3DDDICB_FREEGPUVIRTUALADDRESS args = {at, 64 * KIB};
	assert_int_equal(other.cb->pfnFreeGpuVirtualAddressCb(other.handle, &args), E_INVALIDARG);
	world_expect_finding(&v.w, "VA-09");
	assert_true(va_is_there(&v, at));
	/* The miniport's devices belong to the right processes. */
	assert_ptr_equal(
		scripted_last(v.w.m, VIDMM_DDI_CREATE_DEVICE)->in.create_device.hKmdProcess,
		scripted_process(v.w.m, 1));
	client_close(&other);
	assert_int_equal(v.w.m->live_processes, 1);
	va_finish(&v);
}

static void va_02_map_chooses_free_ranges_inside_minimum_and_maximum(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	D3DDDI_MAPGPUVIRTUALADDRESS args;
	for (uint32_t i = 0; i < 4; i++) {
		args = va_mapping(&v, a, 4);
		args.MinimumAddress = 8 * MIB;
		args.MaximumAddress = 8 * MIB + 16 * PAGE_BYTES;
		va_must_map(&v, &args);
		assert_int_equal(args.VirtualAddress, 8 * MIB + i * 4 * PAGE_BYTES);
	}
	assert_int_equal(va_try_map(&v, &args), E_OUTOFMEMORY);
	assert_int_equal(args.VirtualAddress, UINT64_MAX);
	/* The first entry is never used, nor anything beyond the last bit. */
	args = va_mapping(&v, a, 1);
	va_must_map(&v, &args);
	assert_int_equal(args.VirtualAddress, LEAF_BYTES);
	args = va_mapping(&v, a, 2);
	args.MaximumAddress = LEAF_BYTES + PAGE_BYTES;
	assert_int_equal(va_try_map(&v, &args), E_OUTOFMEMORY);
	args.MinimumAddress = ((uint64_t)1 << 36) - PAGE_BYTES;
	args.MaximumAddress = 0;
	assert_int_equal(va_try_map(&v, &args), E_OUTOFMEMORY);
	args.SizeInPages = 1;
	va_must_map(&v, &args);
	assert_int_equal(args.VirtualAddress, ((uint64_t)1 << 36) - PAGE_BYTES);
	va_finish(&v);
}

static void va_03_an_explicit_base_must_be_free_or_the_callers_range(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY),
		      b = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	va_make(&v, a);
	va_make(&v, b);
	write_word(&v, a, 0, 0xA);
	write_word(&v, b, 0, 0xB);
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 16);
	args.BaseAddress = 16 * MIB;
	args.MinimumAddress = 1; /* ignored, whatever its value */
	va_must_map(&v, &args);
	assert_int_equal(args.VirtualAddress, 16 * MIB);
	/* Half free, half not. */
	args = va_mapping(&v, b, 16);
	args.BaseAddress = 16 * MIB + 8 * PAGE_BYTES;
	assert_int_equal(va_try_map(&v, &args), E_INVALIDARG);
	assert_int_equal(args.VirtualAddress, UINT64_MAX);
	world_expect_finding(&v.w, "VA-03");
	/* Inside the caller's range the new mapping replaces the old, and the rest is unchanged. */
	args.SizeInPages = 8;
	va_must_map(&v, &args);
	assert_int_equal(va_word(&v, 16 * MIB), 0xA);
	assert_int_equal(va_word(&v, 16 * MIB + 8 * PAGE_BYTES), 0xB);
	/* Zero and NoAccess are for reservations. */
	for (uint32_t i = 0; i < 2; i++) {
		args = va_mapping(&v, 0, 8);
		args.Protection.Value = i ? 0x8 : 0x4;
		args.BaseAddress = 16 * MIB;
		assert_int_equal(va_try_map(&v, &args), E_INVALIDARG);
		world_expect_finding(&v.w, "VA-03");
	}
	uint64_t r = va_reserve(&v, 32 * MIB, 64 * KIB, 1);
	assert_int_equal(r, 32 * MIB);
	assert_int_equal(va_word(&v, r), 0);
	args.BaseAddress = r;
	args.Protection.Value = 0x8;
	va_must_map(&v, &args);
	assert_false(va_is_there(&v, r));
	args.Protection.Value = 0x4;
	va_must_map(&v, &args);
	assert_int_equal(va_word(&v, r), 0);
	assert_int_equal(va_word(&v, 16 * MIB), 0xA);
	va_finish(&v);
}

static void va_03_zero_and_no_access_exclude_an_allocation(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	const struct {
		D3DKMT_HANDLE allocation;
		uint64_t protection;
	} bad[] = {{a, 0x4}, {a, 0x8}, {0, 0x1}, {0, 0}, {0, 0xC}, {0x4242, 0x1}};
	for (uint32_t i = 0; i < 6; i++) {
		D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, bad[i].allocation, 1);
		args.Protection.Value = bad[i].protection;
		assert_int_equal(va_try_map(&v, &args), E_INVALIDARG);
		world_expect_finding(&v.w, "VA-03");
		assert_int_equal(args.VirtualAddress, UINT64_MAX);
		assert_int_equal(args.PagingFenceValue, UINT64_MAX);
	}
	va_finish(&v);
}

static void va_04_unaligned_or_out_of_range_mappings_are_refused(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	const D3DDDI_MAPGPUVIRTUALADDRESS bad[] = {
		{.BaseAddress = 4 * MIB + 1, .SizeInPages = 1},
		{.MinimumAddress = 4 * MIB + 1, .SizeInPages = 1},
		{.SizeInPages = 0},
		{.SizeInPages = 17},
		{.OffsetInPages = 16, .SizeInPages = 1},
		{.OffsetInPages = 8, .SizeInPages = 9},
		{.OffsetInPages = (uint64_t)1 << 52, .SizeInPages = 1},
		{.SizeInPages = ((uint64_t)1 << 52) + 1},
		{.OffsetInPages = UINT64_MAX, .SizeInPages = 2},
		{.BaseAddress = UINT64_MAX - 4095, .SizeInPages = 2},
	};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		D3DDDI_MAPGPUVIRTUALADDRESS args = bad[i];
		args.hPagingQueue = v.queue.hPagingQueue;
		args.hAllocation = a;
		assert_int_equal(va_try_map(&v, &args), E_INVALIDARG);
		world_expect_finding(&v.w, "VA-04");
	}
	const D3DDDI_RESERVEGPUVIRTUALADDRESS unaligned[] = {
		{.Size = 64 * KIB - 4096},
		{.Size = 0},
		{.BaseAddress = 2 * MIB + 4096, .Size = 64 * KIB},
		{.MinimumAddress = 4096, .Size = 64 * KIB},
	};
	for (uint32_t i = 0; i < sizeof(unaligned) / sizeof(unaligned[0]); i++) {
		D3DDDI_RESERVEGPUVIRTUALADDRESS args = unaligned[i];
		assert_int_equal(va_try_reserve(&v, &args), E_INVALIDARG);
		world_expect_finding(&v.w, "VA-04");
		assert_int_equal(args.VirtualAddress, UINT64_MAX);
	}
	/* The last page, and the whole allocation. */
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 1);
	args.OffsetInPages = 15;
	va_must_map(&v, &args);
	va_map(&v, a, 64 * KIB);
	va_finish(&v);
}

static bool is_accepted(HRESULT result)
{
	return result == S_OK || result == E_PENDING;
}

/* Maps one page into the window, with a finding about its end if `found`. */
static HRESULT map_below(struct va_world *v, D3DKMT_HANDLE a, uint64_t from, uint64_t to,
			 bool found, uint64_t *address)
{
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(v, a, 1);

	args.MinimumAddress = from;
	args.MaximumAddress = to;
	HRESULT result = va_try_map(v, &args);
	if (found)
		world_expect_finding(&v->w, "VA-04");
	assert_int_equal(v->w.client.findings, 0);
	*address = args.VirtualAddress;
	return result;
}

static void va_04_an_unaligned_maximum_is_rounded_down_with_a_finding(void **state)
{
	const uint64_t base = 4 * MIB, last_of_47_bits = ((uint64_t)1 << 47) - 1;
	uint64_t address;
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	assert_true(is_accepted(map_below(&v, a, base, base + 4096, false, &address)));
	assert_int_equal(address, base);
	/* The page that ends behind the maximum is left out. */
	assert_true(is_accepted(map_below(&v, a, base, base + 3 * 4096 - 1, true, &address)));
	assert_int_equal(address, base + 4096);
	assert_int_equal(map_below(&v, a, base, base + 3 * 4096 - 1, true, &address),
			 E_OUTOFMEMORY);
	assert_true(is_accepted(map_below(&v, a, base, base + 3 * 4096, false, &address)));
	assert_int_equal(address, base + 2 * 4096);
	assert_true(is_accepted(map_below(&v, a, 0, last_of_47_bits, true, &address)));
	/* Rounded down it would be 0, which means no limit. */
	assert_int_equal(map_below(&v, a, 0, 4095, true, &address), E_OUTOFMEMORY);
	/* With a base the maximum is ignored (VA-03). */
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 1);
	args.BaseAddress = 8 * MIB;
	args.MaximumAddress = 1;
	va_must_map(&v, &args);
	D3DDDI_RESERVEGPUVIRTUALADDRESS reserve = {.MinimumAddress = 16 * MIB,
						   .MaximumAddress = 16 * MIB + 128 * KIB - 1,
						   .Size = 64 * KIB};
	assert_true(is_accepted(va_try_reserve(&v, &reserve)));
	world_expect_finding(&v.w, "VA-04");
	assert_int_equal(reserve.VirtualAddress, 16 * MIB);
	assert_int_equal(va_try_reserve(&v, &reserve), E_OUTOFMEMORY);
	world_expect_finding(&v.w, "VA-04");
	reserve.MaximumAddress = 16 * MIB + 128 * KIB;
	assert_true(is_accepted(va_try_reserve(&v, &reserve)));
	assert_int_equal(reserve.VirtualAddress, 16 * MIB + 64 * KIB);
	va_finish(&v);
}

static void large_pages(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.segment[0].flags |= 0x800; /* Use64KBPages */
}

static void va_05_64_kib_mappings_share_the_low_16_bits(void **state)
{
	struct va_world v;

	va_begin(&v, state, large_pages);
	D3DKMT_HANDLE odd = va_allocate(&v, 64 * KIB, WORLD_MEMORY),
		      a = va_allocate(&v, 256 * KIB, WORLD_MEMORY);
	va_make(&v, odd);
	va_make(&v, a);
	for (uint64_t offset = 0; offset < 20; offset += 5) {
		D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 16);
		args.OffsetInPages = offset;
		va_must_map(&v, &args);
		for (uint32_t i = 0; i < 16; i++) {
			uint64_t address = args.VirtualAddress + i * PAGE_BYTES;
			DXGK_PTE entry;

			assert_true(scripted_walk(v.process, address, &entry));
			assert_int_equal(entry.PageAddress % 16, address / PAGE_BYTES % 16);
		}
	}
	va_finish(&v);
}

static void va_06_protection_is_written_to_the_page_table_entries(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	va_make(&v, a);
	for (uint64_t protection = 0; protection < 4; protection++) {
		D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 16);
		DXGK_PTE entry;
		uint32_t word = 1;

		args.Protection.Value = protection;
		args.DriverProtection = 0xABCD000000000000u + protection;
		va_must_map(&v, &args);
		assert_true(scripted_walk(v.process, args.VirtualAddress, &entry));
		assert_int_equal(entry.ReadOnly, !(protection & 1));
		assert_int_equal(entry.NoExecute, !(protection & 2));
		assert_int_equal(scripted_virtual_access(v.process, args.VirtualAddress, &word,
							 sizeof(word), true),
				 protection & 1);
		assert_true(va_is_there(&v, args.VirtualAddress));
		const struct scripted_call *call = NULL;
		for (uint32_t i = 0; scripted_nth(v.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i); i++) {
			const struct scripted_call *at =
				scripted_nth(v.w.m, VIDMM_DDI_BUILD_PAGING_BUFFER, i);
			if (at->in.paging.Operation == DXGK_OPERATION_UPDATE_PAGE_TABLE)
				call = at;
		}
		assert_non_null(call);
		assert_int_equal(call->in.paging.UpdatePageTable.DriverProtection,
				 args.DriverProtection);
		assert_int_equal(call->in.paging.UpdatePageTable.FirstPteVirtualAddress,
				 args.VirtualAddress);
	}
	for (uint32_t bit = 4; bit < 64; bit += 7) {
		D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 1);
		args.Protection.Value |= (uint64_t)1 << bit;
		assert_int_equal(va_try_map(&v, &args), E_INVALIDARG);
		world_expect_finding(&v.w, "VA-06");
	}
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 1);
	args.Reserved1 = 1;
	assert_int_equal(va_try_map(&v, &args), E_INVALIDARG);
	world_expect_finding(&v.w, "VA-06");
	va_finish(&v);
}

static void va_07_reserve_claims_addresses_without_memory(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	uint64_t hole = va_reserve(&v, 4 * MIB, 128 * KIB, 0),
		 zero = va_reserve(&v, 0, 64 * KIB, 1);
	assert_int_equal(hole, 4 * MIB);
	assert_false(va_is_there(&v, hole));
	assert_int_equal(va_word(&v, zero + 4096), 0);
	va_store(&v, zero + 4096, 7); /* the store is discarded */
	assert_int_equal(va_word(&v, zero + 4096), 0);
	D3DDDI_RESERVEGPUVIRTUALADDRESS args = {.BaseAddress = 4 * MIB + 64 * KIB,
						.Size = 128 * KIB};
	assert_int_equal(va_try_reserve(&v, &args), E_INVALIDARG);
	world_expect_finding(&v.w, "VA-07");
	args = (D3DDDI_RESERVEGPUVIRTUALADDRESS){.Size = 64 * KIB, .ReservationType = 2};
	assert_int_equal(va_try_reserve(&v, &args), E_INVALIDARG);
	world_expect_finding(&v.w, "VA-07");
	/* The mapped part has content, the rest does not. */
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	va_make(&v, a);
	D3DDDI_MAPGPUVIRTUALADDRESS map = va_mapping(&v, a, 2);
	map.BaseAddress = hole + 4096;
	va_must_map(&v, &map);
	assert_false(va_is_there(&v, hole));
	assert_true(va_is_there(&v, hole + 4096));
	assert_true(va_is_there(&v, hole + 8192));
	assert_false(va_is_there(&v, hole + 12288));
	assert_int_equal(va_free(&v, hole, 128 * KIB), S_OK);
	assert_false(va_is_there(&v, hole + 4096));
	va_finish(&v);
}

static void without_zero(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.mmu.caps.ZeroInPteSupported = 0;
}

static void q_76_zero_pages_without_hardware_support_are_refused(void **state)
{
	struct va_world v;
	D3DDDI_RESERVEGPUVIRTUALADDRESS args = {.Size = 64 * KIB, .ReservationType = 1};

	va_begin(&v, state, without_zero);
	assert_int_equal(va_try_reserve(&v, &args), E_NOTIMPL);
	va_reserve(&v, 0, 64 * KIB, 0);
	va_finish(&v);
}

/* ---- times ---- */

static void completes_on_request(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.complete_at_once = false;
}

static void va_08_page_tables_are_correct_at_the_fence_value(void **state)
{
	struct va_world v;

	va_begin(&v, state, completes_on_request);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	/* Not resident, but it has an address. */
	uint64_t at = va_map(&v, a, 64 * KIB);
	assert_false(va_is_there(&v, at));
	va_make(&v, a);
	assert_true(va_is_there(&v, at));
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 16);
	assert_int_equal(va_try_map(&v, &args), E_PENDING);
	assert_true(args.PagingFenceValue > wddm2_fence(&v.queue));
	assert_false(va_is_there(&v, args.VirtualAddress));
	wddm2_await(&v.w, &v.queue, args.PagingFenceValue);
	memset(v.process->tlb, 0, sizeof(v.process->tlb)); /* the GPU read too early */
	assert_true(va_is_there(&v, args.VirtualAddress));
	/* No table has to be written: effective at once. */
	D3DDDI_RESERVEGPUVIRTUALADDRESS hole = {.Size = 64 * KIB};
	assert_int_equal(va_try_reserve(&v, &hole), S_OK);
	assert_int_equal(hole.PagingFenceValue, 0);
	args.hPagingQueue = v.queue.hSyncObject;
	assert_int_equal(va_try_map(&v, &args), E_INVALIDARG);
	world_expect_finding(&v.w, "VA-08");
	va_finish(&v);
}

static void va_09_free_is_immediate_and_for_whole_ranges_only(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	va_make(&v, a);
	uint64_t at = va_map(&v, a, 64 * KIB);
	assert_true(va_is_there(&v, at));
	const uint64_t bad[][2] = {{at, 4096},       {at + 4096, 60 * KIB},
				   {at, 128 * KIB},  {at - 4096, 64 * KIB},
				   {64 * MIB, 4096}, {at, 0}};
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(va_free(&v, bad[i][0], bad[i][1]), E_INVALIDARG);
		world_expect_finding(&v.w, "VA-09");
	}
	assert_true(va_is_there(&v, at));
	assert_int_equal(va_free(&v, at, 64 * KIB), S_OK);
	assert_false(va_is_there(&v, at));
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 16);
	args.BaseAddress = at;
	va_must_map(&v, &args);
	assert_true(va_is_there(&v, at));
	va_finish(&v);
}

static void va_09_destroying_an_allocation_frees_its_mappings(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	va_make(&v, a);
	uint64_t at = va_map(&v, a, 64 * KIB), r = va_reserve(&v, 8 * MIB, 64 * KIB, 0);
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 4);
	args.BaseAddress = r;
	va_must_map(&v, &args);
	assert_true(va_is_there(&v, r));
	assert_int_equal(client_deallocate(&v.w.device, a), S_OK);
	wddm2_run(&v.w);
	assert_false(va_is_there(&v, at));
	assert_false(va_is_there(&v, r));
	assert_int_equal(va_free(&v, at, 64 * KIB), E_INVALIDARG);
	world_expect_finding(&v.w, "VA-09");
	assert_int_equal(va_free(&v, r, 64 * KIB), S_OK);
	va_finish(&v);
}

static void va_15_reserves_inside_create_process(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.mmu.reserve_bytes = 2 * LEAF_BYTES;
}

static void va_15_addresses_reserved_by_the_miniport_are_not_mapped(void **state)
{
	struct va_world v;
	DXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE late = {.SizeInBytes = LEAF_BYTES};

	va_begin(&v, state, va_15_reserves_inside_create_process);
	uint64_t at = v.w.m->settings.mmu.reserved_at;
	assert_int_equal(v.w.m->settings.mmu.reserve_status, STATUS_SUCCESS);
	assert_int_equal(at, LEAF_BYTES);
	D3DKMT_HANDLE a = va_allocate(&v, 64 * KIB, WORLD_MEMORY);
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(&v, a, 1);
	args.BaseAddress = at;
	assert_int_equal(va_try_map(&v, &args), E_INVALIDARG);
	world_expect_finding(&v.w, "VA-03");
	assert_int_equal(va_free(&v, at, 2 * LEAF_BYTES), E_INVALIDARG);
	world_expect_finding(&v.w, "VA-09");
	assert_int_equal(va_map(&v, a, 64 * KIB), 3 * LEAF_BYTES);
	(void)late;
	va_finish(&v);
}

static void va_01_without_page_tables_map_is_refused(void **state)
{
	struct world w;

	world_start(&w, state, wddm2_1);
	D3DDDICB_CREATEPAGINGQUEUE queue = wddm2_queue(&w.device);
	D3DDDI_MAPGPUVIRTUALADDRESS map = {
		.hPagingQueue = queue.hPagingQueue, .hAllocation = 1, .SizeInPages = 1};
	D3DDDI_RESERVEGPUVIRTUALADDRESS reserve = {.hPagingQueue = queue.hPagingQueue,
						   .Size = 64 * KIB};
	const D3DDDICB_FREEGPUVIRTUALADDRESS free = {MIB, 64 * KIB};
	assert_int_equal(w.device.cb->pfnMapGpuVirtualAddressCb(w.device.handle, &map), E_NOTIMPL);
	assert_int_equal(w.device.cb->pfnReserveGpuVirtualAddressCb(w.device.handle, &reserve),
			 E_NOTIMPL);
	assert_int_equal(w.device.cb->pfnFreeGpuVirtualAddressCb(w.device.handle, &free),
			 E_NOTIMPL);
	wddm2_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(va_01_one_allocation_may_have_several_constant_addresses),
		ON_SIM(va_01_each_process_has_its_own_address_space),
		ON_SIM(va_01_without_page_tables_map_is_refused),
		ON_SIM(va_02_map_chooses_free_ranges_inside_minimum_and_maximum),
		ON_SIM(va_03_an_explicit_base_must_be_free_or_the_callers_range),
		ON_SIM(va_03_zero_and_no_access_exclude_an_allocation),
		ON_SIM(va_04_unaligned_or_out_of_range_mappings_are_refused),
		ON_SIM(va_04_an_unaligned_maximum_is_rounded_down_with_a_finding),
		ON_SIM(va_05_64_kib_mappings_share_the_low_16_bits),
		ON_SIM(va_06_protection_is_written_to_the_page_table_entries),
		ON_SIM(va_07_reserve_claims_addresses_without_memory),
		ON_SIM(q_76_zero_pages_without_hardware_support_are_refused),
		ON_BOTH(va_08_page_tables_are_correct_at_the_fence_value),
		ON_SIM(va_09_free_is_immediate_and_for_whole_ranges_only),
		ON_SIM(va_09_destroying_an_allocation_frees_its_mappings),
		ON_SIM(va_15_addresses_reserved_by_the_miniport_are_not_mapped),
	};

	return cmocka_run_group_tests_name("wddm2_va", tests, NULL, NULL);
}
