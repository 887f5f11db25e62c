/* SPDX-License-Identifier: MIT */
/*
 * IDXCoreAdapterList: the adapters that a filter selected when the list was created. The list holds
 * a reference to each. Its content never changes, except for the order (Sort).
 */
#include "dxcore/dxcore_private.h"

struct list {
	IDXCoreAdapterList interface; /* first */
	_Atomic uint32_t references;
	_Atomic bool stale; /* one-way (DXC-08) */
	const void *system;
	struct vmm_dxcore_filter filter;
	uint32_t count;
	/* The order is guarded by the mutex of objects.c. */
	struct vmm_dxcore_adapter *adapters[VMM_DXCORE_ADAPTERS_MAX];
};

static struct list *of(IDXCoreAdapterList *self)
{
	return (struct list *)self;
}

static HRESULT query_interface(IDXCoreAdapterList *self, const GUID *riid, void **object)
{
	static const struct vmm_dxcore_interfaces interfaces = {
		"IDXCoreAdapterList::QueryInterface",
		2,
		{DXCORE_IID_IUNKNOWN, DXCORE_IID_ADAPTER_LIST}};

	return vmm_dxcore_serve(&interfaces, self, &of(self)->references, riid, object);
}

static ULONG add_reference(IDXCoreAdapterList *self)
{
	return atomic_fetch_add(&of(self)->references, 1) + 1;
}

static ULONG release(IDXCoreAdapterList *self)
{
	struct list *list = of(self);
	uint32_t left = atomic_fetch_sub(&list->references, 1) - 1;

	if (left)
		return left;
	vmm_dxcore_object_ends(list);
	for (uint32_t i = 0; i < list->count; i++)
		(void)vmm_dxcore_adapter_release(list->adapters[i]);
	vmm_free(list);
	return 0;
}

static HRESULT get_adapter(IDXCoreAdapterList *self, uint32_t index, const GUID *riid,
			   void **object)
{
	struct list *list = of(self);
	HRESULT result = vmm_dxcore_check_out("IDXCoreAdapterList::GetAdapter", riid, object);

	if (FAILED(result))
		return result;
	if (index >= list->count)
		return vmm_dxcore_refuse_rule(
			E_INVALIDARG, "DXC-05",
			"IDXCoreAdapterList::GetAdapter: index %u of a list of %u adapters", index,
			list->count);
	vmm_dxcore_lock();
	struct vmm_dxcore_adapter *adapter = list->adapters[index];
	vmm_dxcore_unlock();
	IDXCoreAdapter1 *interface = &adapter->interface;
	if (!interface->lpVtbl->IsValid(interface))
		return vmm_dxcore_refuse_reason(
			DXGI_ERROR_DEVICE_REMOVED, "DXC-05",
			"IDXCoreAdapterList::GetAdapter: the adapter with LUID 0x%x has ended",
			adapter->facts.luid.LowPart);
	return interface->lpVtbl->QueryInterface(interface, riid, object);
}

static uint32_t get_adapter_count(IDXCoreAdapterList *self)
{
	return of(self)->count;
}

static bool contains(struct list *list, LUID luid)
{
	bool found = false;

	vmm_dxcore_lock();
	for (uint32_t i = 0; i < list->count; i++)
		found |= vmm_dxcore_same_luid(list->adapters[i]->facts.luid, luid);
	vmm_dxcore_unlock();
	return found;
}

/* Returns whether the adapters that the filter selects are not those of the list. */
static bool differs(struct list *list, const struct vmm_dxcore_adapters *adapters)
{
	uint32_t still_there = 0;

	for (uint32_t i = 0; i < adapters->count; i++) {
		HRESULT result;

		if (contains(list, adapters->info[i].AdapterLuid)) {
			still_there++;
			continue;
		}
		struct vmm_dxcore_adapter *other = vmm_dxcore_adapter_of(adapters, i, &result);
		bool arrived = other && vmm_dxcore_selects(&list->filter, other->facts.attributes);
		if (other)
			(void)vmm_dxcore_adapter_release(other);
		if (arrived)
			return true;
	}
	return still_there != list->count;
}

static bool is_stale(IDXCoreAdapterList *self)
{
	struct list *list = of(self);
	struct vmm_dxcore_adapters adapters;

	if (atomic_load(&list->stale))
		return true;
	HRESULT result = vmm_dxcore_open(&adapters);
	bool stale = result == DXGI_ERROR_DEVICE_REMOVED; /* the host is gone */
	if (SUCCEEDED(result)) {
		stale = adapters.system == list->system && differs(list, &adapters); /* DXC-27 */
		vmm_dxcore_close(&adapters);
	}
	if (stale)
		atomic_store(&list->stale, true);
	return stale;
}

static HRESULT get_factory(IDXCoreAdapterList *self, const GUID *riid, void **factory)
{
	HRESULT result = vmm_dxcore_check_out("IDXCoreAdapterList::GetFactory", riid, factory);

	(void)self;
	return SUCCEEDED(result) ? vmm_dxcore_factory(riid, factory) : result;
}

/* Returns how well an adapter fits: lower is better. Unknown preferences are ignored. (DXC-10) */
static uint32_t rank(const struct vmm_dxcore_adapter *adapter, DXCoreAdapterPreference preference)
{
	D3DKMT_ADAPTERTYPE type = adapter->facts.type;

	switch ((uint32_t)preference) {
	case DXCoreAdapterPreference_Hardware:
		return type.SoftwareDevice;
	case DXCoreAdapterPreference_MinimumPower:
		return type.HybridIntegrated ? 0 : type.Detachable ? 2 : 1;
	case DXCoreAdapterPreference_HighPerformance:
		return type.Detachable ? 0 : type.HybridIntegrated ? 2 : 1;
	default:
		return 0;
	}
}

static bool is_better(const struct vmm_dxcore_adapter *a, const struct vmm_dxcore_adapter *b,
		      const DXCoreAdapterPreference *preferences, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t first = rank(a, preferences[i]), second = rank(b, preferences[i]);

		if (first != second)
			return first < second;
	}
	return false;
}

/* An insertion sort, so adapters that fit equally well keep their order. */
static HRESULT sort(IDXCoreAdapterList *self, uint32_t count,
		    const DXCoreAdapterPreference *preferences)
{
	struct list *list = of(self);

	if (!count || !preferences)
		return vmm_dxcore_refuse_rule(
			E_INVALIDARG, "DXC-10",
			"IDXCoreAdapterList::Sort: %u preferences%s: at least one is needed", count,
			preferences ? "" : ", the pointer to them is NULL");
	vmm_dxcore_lock();
	for (uint32_t i = 1; i < list->count; i++) {
		struct vmm_dxcore_adapter *moved = list->adapters[i];
		uint32_t to = i;

		for (; to && is_better(moved, list->adapters[to - 1], preferences, count); to--)
			list->adapters[to] = list->adapters[to - 1];
		list->adapters[to] = moved;
	}
	vmm_dxcore_unlock();
	return S_OK;
}

static bool is_adapter_preference_supported(IDXCoreAdapterList *self,
					    DXCoreAdapterPreference preference)
{
	(void)self;
	return (uint32_t)preference <= DXCoreAdapterPreference_HighPerformance;
}

static const IDXCoreAdapterListVtbl functions = {
	.QueryInterface = query_interface,
	.AddRef = add_reference,
	.Release = release,
	.GetAdapter = get_adapter,
	.GetAdapterCount = get_adapter_count,
	.IsStale = is_stale,
	.GetFactory = get_factory,
	.Sort = sort,
	.IsAdapterPreferenceSupported = is_adapter_preference_supported,
};

const void *vmm_dxcore_list_system(const struct IUnknown *list)
{
	return ((const struct list *)(const void *)list)->system;
}

bool vmm_dxcore_is_list(const struct IUnknown *object)
{
	return ((const IDXCoreAdapterList *)(const void *)object)->lpVtbl == &functions;
}

/* Adds those of the selected adapters that have a type of hardware; 0: any. */
static HRESULT add_adapters(struct list *list, const struct vmm_dxcore_adapters *adapters,
			    uint32_t hardware)
{
	for (uint32_t i = 0; i < adapters->count; i++) {
		HRESULT result;
		struct vmm_dxcore_adapter *adapter = vmm_dxcore_adapter_of(adapters, i, &result);
		uint32_t attributes = adapter ? adapter->facts.attributes : 0;

		if (FAILED(result))
			return result;
		if (!adapter)
			continue; /* it has ended meanwhile */
		if (vmm_dxcore_selects(&list->filter, attributes) &&
		    (!hardware || attributes & hardware))
			list->adapters[list->count++] = adapter;
		else
			(void)vmm_dxcore_adapter_release(adapter);
	}
	return S_OK;
}

HRESULT vmm_dxcore_create_list(const struct vmm_dxcore_filter *filter, const uint32_t *first,
			       const GUID *riid, void **object)
{
	struct vmm_dxcore_adapters adapters;
	struct list *list = vmm_calloc(1, sizeof(*list));

	if (!list)
		return E_OUTOFMEMORY;
	list->interface.lpVtbl = &functions;
	atomic_init(&list->references, 1);
	list->filter = *filter;
	HRESULT result = vmm_dxcore_open(&adapters);
	if (SUCCEEDED(result)) {
		list->system = adapters.system;
		do {
			result = add_adapters(list, &adapters, first ? *first : 0);
		} while (SUCCEEDED(result) && first && *++first);
		vmm_dxcore_close(&adapters);
	}
	if (SUCCEEDED(result))
		result = query_interface(&list->interface, riid, object);
	(void)release(&list->interface);
	return result;
}
