/* SPDX-License-Identifier: MIT */
#include "va_world.h"

static void ready(struct scripted_miniport *m)
{
	wddm2_1(m);
	m->settings.complete_at_once = true;
}

void va_memory(struct scripted_miniport *m)
{
	ready(m);
	scripted_mmu(m, 3, 1);
}

void va_two_levels(struct scripted_miniport *m)
{
	ready(m);
	scripted_mmu(m, 2, 1);
}

void va_system(struct scripted_miniport *m)
{
	ready(m);
	scripted_mmu(m, 4, 0);
}

void va_virtual(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.mmu.caps.PageTableUpdateMode = DXGK_PAGETABLEUPDATE_GPU_VIRTUAL;
}

static void open_queue(struct va_world *v)
{
	v->queue = wddm2_queue(&v->w.device);
	v->process = scripted_process(v->w.m, 0);
}

void va_begin(struct va_world *v, void **state, world_setup *setup)
{
	world_start(&v->w, state, setup);
	open_queue(v);
}

void va_begin_lru(struct va_world *v, void **state, world_setup *setup)
{
	world_start_lru(&v->w, state, setup);
	open_queue(v);
}

void va_finish(struct va_world *v)
{
	assert_int_equal(v->w.m->stale, 0);
	wddm2_stop(&v->w);
}

D3DKMT_HANDLE va_allocate(struct va_world *v, uint64_t bytes, uint32_t set)
{
	const struct scripted_allocation spec = {
		.size_bytes = bytes, .flags = WORLD_CPU_VISIBLE, .read_set = set, .write_set = set};
	D3DKMT_HANDLE handle;

	assert_int_equal(wddm2_try_allocate(&v->w.device, &spec, &handle), S_OK);
	return handle;
}

D3DDDI_MAPGPUVIRTUALADDRESS va_mapping(const struct va_world *v, D3DKMT_HANDLE allocation,
				       uint64_t pages)
{
	return (D3DDDI_MAPGPUVIRTUALADDRESS){.hPagingQueue = v->queue.hPagingQueue,
					     .hAllocation = allocation,
					     .SizeInPages = pages,
					     .Protection.Write = 1};
}

HRESULT va_try_map(struct va_world *v, D3DDDI_MAPGPUVIRTUALADDRESS *args)
{
	args->VirtualAddress = args->PagingFenceValue = UINT64_MAX;
	return v->w.device.cb->pfnMapGpuVirtualAddressCb(v->w.device.handle, args);
}

void va_must_map(struct va_world *v, D3DDDI_MAPGPUVIRTUALADDRESS *args)
{
	HRESULT result = va_try_map(v, args);

	assert_true(result == S_OK || result == E_PENDING);
	assert_int_equal(result == S_OK, args->PagingFenceValue == 0);
	wddm2_await(&v->w, &v->queue, args->PagingFenceValue);
}

uint64_t va_map(struct va_world *v, D3DKMT_HANDLE allocation, uint64_t bytes)
{
	D3DDDI_MAPGPUVIRTUALADDRESS args = va_mapping(v, allocation, bytes / PAGE_BYTES);

	va_must_map(v, &args);
	return args.VirtualAddress;
}

HRESULT va_try_reserve(struct va_world *v, D3DDDI_RESERVEGPUVIRTUALADDRESS *args)
{
	args->hPagingQueue = v->queue.hPagingQueue;
	args->VirtualAddress = args->PagingFenceValue = UINT64_MAX;
	return v->w.device.cb->pfnReserveGpuVirtualAddressCb(v->w.device.handle, args);
}

uint64_t va_reserve(struct va_world *v, uint64_t base, uint64_t bytes, uint32_t type)
{
	D3DDDI_RESERVEGPUVIRTUALADDRESS args = {
		.BaseAddress = base,
		.Size = bytes,
		.ReservationType = (D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE)type};
	HRESULT result = va_try_reserve(v, &args);

	assert_true(result == S_OK || result == E_PENDING);
	wddm2_await(&v->w, &v->queue, args.PagingFenceValue);
	return args.VirtualAddress;
}

HRESULT va_free(struct va_world *v, uint64_t base, uint64_t bytes)
{
	const D3DDDICB_FREEGPUVIRTUALADDRESS args = {base, bytes};
	HRESULT result = v->w.device.cb->pfnFreeGpuVirtualAddressCb(v->w.device.handle, &args);

	return result;
}

bool va_is_there(struct va_world *v, uint64_t address)
{
	uint32_t word;

	return scripted_virtual_access(v->process, address, &word, sizeof(word), false);
}

uint32_t va_word(struct va_world *v, uint64_t address)
{
	uint32_t word = 0xDEAD;

	assert_true(scripted_virtual_access(v->process, address, &word, sizeof(word), false));
	return word;
}

void va_store(struct va_world *v, uint64_t address, uint32_t word)
{
	assert_true(scripted_virtual_access(v->process, address, &word, sizeof(word), true));
}

void va_make(struct va_world *v, D3DKMT_HANDLE allocation)
{
	wddm2_make(&v->w, &v->w.device, &v->queue, &allocation, 1);
}
