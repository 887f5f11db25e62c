/* SPDX-License-Identifier: MIT */
/*
 * Monitored fences on a GPU with page tables: one word, which both sides read and the GPU writes.
 */
#include "va_world.h"

struct fence {
	D3DKMT_HANDLE handle;
	const _Atomic uint64_t *cpu;
	uint64_t gpu;
};

static struct fence make(struct va_world *v, uint64_t value, uint32_t flags)
{
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 args = {0};

	args.Info.Type = D3DDDI_MONITORED_FENCE;
	args.Info.Flags.Value = flags;
	args.Info.MonitoredFence.InitialFenceValue = value;
	args.Info.MonitoredFence.FenceValueGPUVirtualAddress = UINT64_MAX;
	assert_int_equal(
		v->w.device.cb->pfnCreateSynchronizationObject2Cb(v->w.device.handle, &args), S_OK);
	return (struct fence){args.hSyncObject,
			      args.Info.MonitoredFence.FenceValueCPUVirtualAddress,
			      args.Info.MonitoredFence.FenceValueGPUVirtualAddress};
}

static HRESULT destroy(struct va_world *v, D3DKMT_HANDLE handle)
{
	const D3DDDICB_DESTROYSYNCHRONIZATIONOBJECT args = {handle};

	return v->w.device.cb->pfnDestroySynchronizationObjectCb(v->w.device.handle, &args);
}

static uint64_t gpu_value(struct va_world *v, uint64_t address)
{
	uint64_t value = 0;

	assert_true(scripted_virtual_access(v->process, address, &value, sizeof(value), false));
	return value;
}

static void mfn_04_mfn_05_mfn_25_cpu_and_gpu_addresses_alias_one_word(void **state)
{
	struct va_world v;
	uint64_t value = 41;

	va_begin(&v, state, va_memory);
	struct fence a = make(&v, 7, 0), b = make(&v, 8, 0);
	assert_true(a.gpu && a.gpu % 8 == 0); /* MFN-01 */
	assert_int_not_equal(a.gpu, b.gpu);
	assert_int_equal(gpu_value(&v, a.gpu), 7);
	assert_int_equal(gpu_value(&v, b.gpu), 8);
	assert_true(scripted_virtual_access(v.process, a.gpu, &value, sizeof(value), true));
	assert_int_equal(atomic_load(a.cpu), 41);
	assert_int_equal(atomic_load(b.cpu), 8);
	/* A CPU signal is visible to the GPU without a call. */
	const D3DKMT_HANDLE handles[] = {b.handle};
	uint64_t values[] = {99};
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {
		.ObjectCount = 1, .ObjectHandleArray = handles, .FenceValueArray = values};
	assert_int_equal(
		v.w.device.cb->pfnSignalSynchronizationObjectFromCpuCb(v.w.device.handle, &signal),
		S_OK);
	assert_int_equal(gpu_value(&v, b.gpu), 99);
	/* A store is literal, also to a lower value (MFN-25). */
	value = 3;
	assert_true(scripted_virtual_access(v.process, b.gpu, &value, sizeof(value), true));
	assert_int_equal(atomic_load(b.cpu), 3);
	assert_int_equal(destroy(&v, a.handle), S_OK);
	assert_int_equal(destroy(&v, b.handle), S_OK);
	va_finish(&v);
}

/* Mapped in the address space of the creating process; freeing the address is refused. */
static void mfn_04_the_gpu_address_is_in_the_creating_process_and_cannot_be_freed(void **state)
{
	struct va_world v;
	struct client_device other;
	uint64_t value;

	va_begin(&v, state, va_system);
	struct fence a = make(&v, 7, 0);
	client_open(&v.w.client, &other);
	assert_false(scripted_virtual_access(scripted_process(v.w.m, 1), a.gpu, &value,
					     sizeof(value), false));
	client_close(&other);
	assert_int_equal(va_free(&v, a.gpu & ~(uint64_t)4095, 4096), E_INVALIDARG);
	world_expect_finding(&v.w, "VA-09");
	D3DKMT_HANDLE allocation = va_allocate(&v, 64 * KIB, WORLD_APERTURE);
	D3DDDI_MAPGPUVIRTUALADDRESS map = va_mapping(&v, allocation, 1);
	map.BaseAddress = a.gpu & ~(uint64_t)4095;
	assert_int_equal(va_try_map(&v, &map), E_INVALIDARG);
	world_expect_finding(&v.w, "VA-03");
	assert_int_equal(gpu_value(&v, a.gpu), 7);
	va_finish(&v);
}

/* Fences without GPU access are not on a page that the GPU can access (SFL-20, MFN-35). */
static void sfl_20_mfn_35_fences_without_gpu_access_are_not_mapped_for_the_gpu(void **state)
{
	struct va_world v;

	va_begin(&v, state, va_memory);
	struct fence mine = make(&v, 7, 0), hidden = make(&v, 8, 0x80 /* NoGPUAccess */);
	assert_int_equal(hidden.gpu, 0);
	assert_int_equal(atomic_load(hidden.cpu), 8);
	uint64_t page = (uint64_t)(uintptr_t)mine.cpu & ~(uint64_t)16383;
	assert_int_not_equal((uint64_t)(uintptr_t)hidden.cpu & ~(uint64_t)16383, page);
	assert_int_not_equal(
		(uint64_t)(uintptr_t)v.queue.FenceValueCPUVirtualAddress & ~(uint64_t)16383, page);
	va_finish(&v);
}

/* A shared fence has an address for each process that opens it. */
static void mfn_04_a_shared_fence_has_a_gpu_address_per_opener(void **state)
{
	struct va_world v;
	uint64_t value = 0x5A;

	va_begin(&v, state, va_memory);
	struct fence a = make(&v, 7, 0x3 /* Shared, NtSecuritySharing */);
	assert_int_not_equal(a.gpu, 0);
	assert_true(scripted_virtual_access(v.process, a.gpu, &value, sizeof(value), true));
	assert_int_equal(atomic_load(a.cpu), 0x5A);
	assert_int_equal(destroy(&v, a.handle), S_OK);
	va_finish(&v);
}

static void mfn_04_without_page_tables_a_fence_has_no_gpu_address(void **state)
{
	struct va_world v;

	va_begin(&v, state, wddm2_1);
	struct fence a = make(&v, 7, 0);
	assert_int_equal(a.gpu, 0);
	va_finish(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(mfn_04_mfn_05_mfn_25_cpu_and_gpu_addresses_alias_one_word),
		ON_SIM(mfn_04_the_gpu_address_is_in_the_creating_process_and_cannot_be_freed),
		ON_SIM(sfl_20_mfn_35_fences_without_gpu_access_are_not_mapped_for_the_gpu),
		ON_BOTH(mfn_04_a_shared_fence_has_a_gpu_address_per_opener),
		ON_SIM(mfn_04_without_page_tables_a_fence_has_no_gpu_address),
	};

	return cmocka_run_group_tests_name("wddm2_fence", tests, NULL, NULL);
}
