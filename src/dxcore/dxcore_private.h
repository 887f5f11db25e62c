/* SPDX-License-Identifier: MIT */
/*
 * DXCore: the objects behind IDXCoreAdapterFactory1, IDXCoreAdapterList and IDXCoreAdapter1, and
 * the questions that they ask. All answers come from D3DKMT functions as programs link them, so
 * they are the same in-process and through a host.
 *
 * The program has one mutex for all objects (objects.c). It guards the list of live adapter objects
 * and the order of lists. No call of a D3DKMT function or of the client is made under it.
 */
#ifndef VMM_DXCORE_PRIVATE_H
#define VMM_DXCORE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <dxcore.h>
#include <d3dkmthk.h>
#include "base/base.h"
#include "base/owner.h"

#define DXCORE_API __attribute__((visibility("default")))

/* ---- attributes.c: attributes of adapters as bits (DXC-20, DXC-21) ---- */
enum {
	VMM_DXCORE_D3D11_GRAPHICS = 0x01, /* the values of VidmmAttributes (vidmm.h) */
	VMM_DXCORE_D3D12_GRAPHICS = 0x02,
	VMM_DXCORE_D3D12_CORE_COMPUTE = 0x04,
	VMM_DXCORE_D3D12_GENERIC_ML = 0x08,
	VMM_DXCORE_D3D12_GENERIC_MEDIA = 0x10,
	VMM_DXCORE_RUNTIMES = 0x1F,
	/* The hardware type n of DXCoreHardwareTypeFilterFlags is the bit n << 8. */
	VMM_DXCORE_HARDWARE_SHIFT = 8,
	VMM_DXCORE_HARDWARE = 0xF00
};
/* What a list selects by. An adapter has all bits of `all`, and one of each `any` that is not 0. */
struct vmm_dxcore_filter {
	uint32_t all, any[3];
	bool impossible; /* an unknown attribute was requested, which no adapter has */
};
/* Returns the bit of an attribute's GUID; 0: unknown. */
uint32_t vmm_dxcore_attribute(const GUID *attribute);
bool vmm_dxcore_selects(const struct vmm_dxcore_filter *filter, uint32_t attributes);
/*
 * Fills the filter of a workload. Returns false if a value is out of range. `first` gets the types
 * of hardware (bits of VMM_DXCORE_HARDWARE) in the order of preference, ended by 0. (DXC-13)
 */
enum { VMM_DXCORE_TYPES = 5 };
bool vmm_dxcore_workload(uint32_t workload, uint32_t runtimes, uint32_t hardware,
			 struct vmm_dxcore_filter *filter, uint32_t first[VMM_DXCORE_TYPES]);

/* ---- ask.c: what D3DKMT functions know of adapters ---- */
/* Constant from the creation of the object on: readable also after the adapter's end. (DXC-16) */
struct vmm_dxcore_facts {
	LUID luid;
	uint32_t attributes;
	D3DKMT_ADAPTERTYPE type;
	uint64_t driver_version;
	uint32_t kmd_model; /* D3DKMT_DRIVERVERSION */
	D3DKMT_DEVICE_IDS ids;
	bool has_preemption;
	uint16_t graphics_preemption, compute_preemption;
	D3DKMT_SEGMENTSIZEINFO memory;
	uint32_t physical_adapters;
	char description[512];
};

enum { VMM_DXCORE_ADAPTERS_MAX = 34 }; /* that D3DKMTEnumAdapters2 returns at once (ADP-01) */
struct vmm_dxcore_adapters {
	uint32_t count;
	D3DKMT_ADAPTERINFO info[VMM_DXCORE_ADAPTERS_MAX];
	const void *system; /* identifies the host whose adapters these are */
};
/*
 * Opens the adapters of the host that the calling thread calls. vmm_dxcore_close must follow a
 * success. Failures: the HRESULT of the status (DXC-25).
 */
HRESULT vmm_dxcore_open(struct vmm_dxcore_adapters *adapters);
void vmm_dxcore_close(const struct vmm_dxcore_adapters *adapters);
/* Returns 0 if none has the LUID. */
D3DKMT_HANDLE vmm_dxcore_find(const struct vmm_dxcore_adapters *adapters, LUID luid);
/* Returns S_FALSE if the adapter has ended meanwhile. */
HRESULT vmm_dxcore_read(const D3DKMT_ADAPTERINFO *adapter, struct vmm_dxcore_facts *facts);
NTSTATUS vmm_dxcore_query(D3DKMT_HANDLE adapter, uint32_t type, void *data, size_t size);
/* Returns the HRESULT of an NTSTATUS. (DXC-25) */
HRESULT vmm_dxcore_result(NTSTATUS status);
static inline bool vmm_dxcore_same_luid(LUID a, LUID b)
{
	return a.LowPart == b.LowPart && a.HighPart == b.HighPart;
}

/* ---- objects.c: the live adapter objects ---- */
struct vmm_dxcore_adapter {
	IDXCoreAdapter1 interface; /* first */
	_Atomic uint32_t references;
	struct vmm_list link; /* of the live objects */
	const void *system;
	struct vmm_dxcore_facts facts;
	_Atomic bool gone; /* was found to have ended; stays set (DXC-09) */
};
/* The mutex of this module and its owner. */
struct vmm_dxcore_mutex {
	pthread_mutex_t mutex;
	struct vmm_owner owner;
};
extern struct vmm_dxcore_mutex vmm_dxcore_objects;
extern struct vmm_lock_class vmm_dxcore_class;
static inline void vmm_dxcore_mutex_lock(struct vmm_dxcore_mutex *mutex)
{
	pthread_mutex_lock(&mutex->mutex);
	vmm_owner_set(&mutex->owner);
}
static inline void vmm_dxcore_mutex_unlock(struct vmm_dxcore_mutex *mutex)
{
	vmm_owner_clear(&mutex->owner);
	pthread_mutex_unlock(&mutex->mutex);
}
VMM_LOCK_FUNCTIONS(vmm_dxcore_lock, vmm_dxcore_unlock, (void), vmm_dxcore_class, vmm_dxcore_mutex,
		   &vmm_dxcore_objects);
/*
 * Returns the object of an adapter with one more reference. `now` is NULL: only if it is live, else
 * NULL. Otherwise the object is created with these facts; NULL: no memory. (DXC-06)
 */
struct vmm_dxcore_adapter *vmm_dxcore_adapter_get(const void *system, LUID luid,
						  const struct vmm_dxcore_facts *now);
ULONG vmm_dxcore_adapter_release(struct vmm_dxcore_adapter *adapter);
/*
 * Returns the object of an enumerated adapter with one more reference. NULL: *result is the
 * failure, or S_FALSE if the adapter has ended meanwhile.
 */
struct vmm_dxcore_adapter *vmm_dxcore_adapter_of(const struct vmm_dxcore_adapters *adapters,
						 uint32_t index, HRESULT *result);

/* ---- adapter.c, property.c, state.c, list.c, factory.c: the interfaces ---- */
extern const IDXCoreAdapter1Vtbl vmm_dxcore_adapter_functions;
/*
 * Opens the adapters if the object's is among them. Returns DXGI_ERROR_DEVICE_REMOVED if it is not,
 * from then on always. E_FAIL: the calling thread calls another host. (DXC-27)
 */
HRESULT vmm_dxcore_reach(struct vmm_dxcore_adapter *adapter, struct vmm_dxcore_adapters *adapters,
			 D3DKMT_HANDLE *handle);
bool vmm_dxcore_has_property(IDXCoreAdapter1 *self, DXCoreAdapterProperty property);
HRESULT vmm_dxcore_property_size(IDXCoreAdapter1 *self, DXCoreAdapterProperty property,
				 size_t *size);
HRESULT vmm_dxcore_property(IDXCoreAdapter1 *self, DXCoreAdapterProperty property, size_t size,
			    void *data);
HRESULT vmm_dxcore_property_with_input(IDXCoreAdapter1 *self, DXCoreAdapterProperty property,
				       size_t input_size, const void *input, size_t output_size,
				       void *output);
bool vmm_dxcore_has_state(IDXCoreAdapter1 *self, DXCoreAdapterState state);
HRESULT vmm_dxcore_query_state(IDXCoreAdapter1 *self, DXCoreAdapterState state, size_t input_size,
			       const void *input, size_t output_size, void *output);
bool vmm_dxcore_can_set_state(IDXCoreAdapter1 *self, DXCoreAdapterState state);
HRESULT vmm_dxcore_set_state(IDXCoreAdapter1 *self, DXCoreAdapterState state, size_t details_size,
			     const void *details, size_t data_size, const void *data);
/* Creates a list of the adapters that the filter selects, and returns it by QueryInterface. */
HRESULT vmm_dxcore_create_list(const struct vmm_dxcore_filter *filter, const uint32_t *first,
			       const GUID *riid, void **list);
/* Returns whether the object is a list or an adapter of this module. */
bool vmm_dxcore_is_list(const struct IUnknown *object);
bool vmm_dxcore_is_adapter(const struct IUnknown *object);
HRESULT vmm_dxcore_factory(const GUID *riid, void **factory);
/* Returns the host of a list. */
const void *vmm_dxcore_list_system(const struct IUnknown *list);
/*
 * Stores the budget of the calling process in each segment group. Returns false if the adapter has
 * no budgets, has ended, or is another host's.
 */
enum { VMM_DXCORE_GROUPS = 2 };
bool vmm_dxcore_budgets(struct vmm_dxcore_adapter *adapter, uint64_t budget[VMM_DXCORE_GROUPS]);

/* ---- notify.c: notifications, functions of the factory ---- */
bool vmm_dxcore_notifies(IDXCoreAdapterFactory1 *self, DXCoreNotificationType type);
HRESULT vmm_dxcore_register(IDXCoreAdapterFactory1 *self, struct IUnknown *object,
			    DXCoreNotificationType type, PFN_DXCORE_NOTIFICATION_CALLBACK function,
			    void *context, uint32_t *cookie);
HRESULT vmm_dxcore_unregister(IDXCoreAdapterFactory1 *self, uint32_t cookie);
/* The last reference to a list or an adapter is gone: ends its registrations. (C-241) */
void vmm_dxcore_object_ends(const void *object);

/* ---- report.c ---- */
/*
 * Reports a finding of the calling process and returns `result`. Out-of-process: prints it if
 * VIDMM_DEBUG is 1.
 */
HRESULT vmm_dxcore_refuse_rule(HRESULT result, const char *rule, const char *format, ...)
	VMM_PRINTF(3, 4) VMM_COLD;
/* The same for a reason: no contract is broken. */
HRESULT vmm_dxcore_refuse_reason(HRESULT result, const char *rule, const char *format, ...)
	VMM_PRINTF(3, 4) VMM_COLD;
/* The interfaces of an object that counts references. */
struct vmm_dxcore_interfaces {
	const char *function; /* its QueryInterface */
	uint32_t count;
	GUID id[3];
};
/* QueryInterface of such an object: the pointer `self` serves each of its interfaces. */
HRESULT vmm_dxcore_serve(const struct vmm_dxcore_interfaces *interfaces, void *self,
			 _Atomic uint32_t *references, const GUID *riid, void **object);
/* Begins a function that returns an interface. Checks both pointers and sets *object to NULL. */
HRESULT vmm_dxcore_check_out(const char *function, const GUID *riid, void **object);
bool vmm_dxcore_is_guid(const GUID *a, const GUID *b);

#endif
