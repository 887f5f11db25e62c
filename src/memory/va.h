/* SPDX-License-Identifier: MIT */
/*
 * GPU virtual addresses of the GpuMmu model, for doors and sched: one address space for each
 * process on each adapter, its page tables, and the contexts that use them. Valid only where
 * vmm_port_caps.gpummu.supported is set. The functions take the locks themselves unless they say
 * otherwise.
 */
#ifndef VMM_MEMORY_VA_H
#define VMM_MEMORY_VA_H

#include "object/object.h"
#include "port/port.h"

struct vmm_va;
struct vmm_va_range;

/* D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE */
enum {
	VMM_VA_WRITE = 0x1,
	VMM_VA_EXECUTE = 0x2,
	VMM_VA_ZERO_PAGES = 0x4,
	VMM_VA_NO_ACCESS = 0x8,
	VMM_VA_PROTECTION = 0xF /* flags that clients may set */
};

struct vmm_va_map_request {
	uint32_t queue, allocation; /* handles; allocation is 0 with Zero or NoAccess */
	uint64_t base, minimum, maximum;
	uint64_t offset_pages, size_pages;
	uint64_t protection, driver_protection;
	uint64_t reserved;             /* members that must be 0, combined with OR */
	uint64_t address, fence_value; /* out */
};
/* Copies a client's arguments; both doors use it. */
struct vmm_va_map_request vmm_va_map_request_of(const D3DDDI_MAPGPUVIRTUALADDRESS *args);
/*
 * Returns STATUS_PENDING if the mapping takes effect when the queue's fence reaches fence_value
 * (VA-08).
 */
NTSTATUS vmm_va_map(struct vmm_device *device, struct vmm_va_map_request *request) VMM_MUST_CHECK;

struct vmm_va_reserve_request {
	uint32_t queue; /* handle */
	uint64_t base, minimum, maximum, size;
	uint32_t type; /* D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE */
	uint64_t driver_protection;
	uint64_t address, fence_value; /* out */
};
struct vmm_va_reserve_request vmm_va_reserve_request_of(
	const D3DDDI_RESERVEGPUVIRTUALADDRESS *args);
NTSTATUS vmm_va_reserve(struct vmm_device *device,
			struct vmm_va_reserve_request *request) VMM_MUST_CHECK;
/* The same without a queue: the reservation is in effect on return. */
NTSTATUS vmm_va_reserve_on(struct vmm_adapter *adapter, struct vmm_process *process,
			   struct vmm_va_reserve_request *request) VMM_MUST_CHECK;
NTSTATUS vmm_va_free(struct vmm_adapter *adapter, struct vmm_process *process, uint64_t base,
		     uint64_t size) VMM_MUST_CHECK;

/* One operation of an update (VA-10): D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION. */
struct vmm_va_operation {
	uint32_t type;
	uint32_t allocation; /* handle */
	uint64_t base, size;
	/* in the allocation; piece_size 0: all of `size` */
	uint64_t offset, piece_size;
	/* base address of the source of a copy */
	uint64_t source;
	uint64_t protection, driver_protection;
};
struct vmm_va_update {
	struct vmm_va_operation *operations;
	uint32_t count;
	/* set by prepare: numbers of the reservations that contain all targets and all sources */
	uint64_t target, source;
};
/*
 * Copies a client's operations into *result, which the caller frees. Reads client memory once.
 * Returns VMM_INVALID_PARAMETER if there are too many.
 */
NTSTATUS vmm_va_operations_copy(const D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION *operations,
				uint32_t count, struct vmm_va_operation **result) VMM_MUST_CHECK;
/* Validates the update and creates the page tables that it needs. Caller holds no lock. */
NTSTATUS vmm_va_update_prepare(struct vmm_device *device,
			       struct vmm_va_update *update) VMM_MUST_CHECK;
/*
 * Executes the update; it is complete when the paging timeline completes *sequence. Returns
 * VMM_NO_MEMORY if a part of it was not done. Caller holds the paging lock.
 */
vmm_status vmm_va_update_locked(struct vmm_device *device, const struct vmm_va_update *update,
				uint64_t *sequence) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);

/*
 * Finds or creates the address space of the device's process; *kmd_process receives the miniport's
 * handle. Caller holds no lock.
 */
NTSTATUS vmm_va_begin_device(struct vmm_device *device, void **kmd_process) VMM_MUST_CHECK;
/*
 * Destroys one address space (the process ends, its devices are gone) or all of them (the adapter
 * stops, all devices are gone). Caller holds no lock.
 */
void vmm_va_end_process(struct vmm_adapter *adapter, const struct vmm_process *process);
void vmm_va_end_all(struct vmm_adapter *adapter);

/*
 * The system paging process (PAG-26). Begin, before the system device is created: creates it in the
 * miniport; *kmd_process stays NULL without GPU virtual addresses. End: the miniport destroys it.
 * Caller holds no lock.
 */
NTSTATUS vmm_va_begin_system(struct vmm_adapter *adapter, void **kmd_process) VMM_MUST_CHECK;
void vmm_va_end_system(struct vmm_adapter *adapter);

/*
 * A context that uses virtual addresses. The miniport gets its root table at attach and whenever
 * the root moves (VA-12).
 */
struct vmm_va_context {
	struct vmm_list link; /* guarded by the paging lock */
	struct vmm_device *device;
	void *kmd_context;
};
void vmm_va_attach(struct vmm_va_context *context);
void vmm_va_detach(struct vmm_va_context *context);

/*
 * Maps pages of the library into the address space of the device's process, for reading and writing
 * (MFN-04). Returns VMM_NO_MEMORY if that fails. Caller holds no lock.
 */
struct vmm_va_window;
vmm_status vmm_va_map_pages(struct vmm_device *device, const struct vmm_os_memory *pages,
			    uint64_t size_bytes, struct vmm_va_window **window,
			    uint64_t *address) VMM_MUST_CHECK;
/* Unmaps them; on return no GPU accesses them. */
void vmm_va_unmap_pages(struct vmm_device *device, struct vmm_va_window *window);
/*
 * The same for memory of the library that has a bus address already. The mapping is in effect when
 * the paging timeline completes the number that vmm_memory_flush_locked returns next. Returns
 * VMM_PENDING if the caller must retry after progress of the GPU: it uses the memory of a table.
 * Paging lock held.
 */
vmm_status vmm_va_map_bus_locked(struct vmm_device *device, uint64_t bus_address,
				 uint64_t size_bytes, struct vmm_va_range **range) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_paging_lock_class);
uint64_t vmm_va_range_address(const struct vmm_va_range *range);
/*
 * Unmaps it. The memory may get another owner when the paging timeline completes the number that
 * vmm_memory_flush_locked returns next.
 */
void vmm_va_unmap_bus_locked(struct vmm_device *device, struct vmm_va_range *range)
	VMM_REQUIRES(vmm_paging_lock_class);

/*
 * Maps a whole allocation for commands that the miniport writes, at an address that the client can
 * neither free nor map over. The mapping exists until the handle is closed, and a later
 * call finds it. It is in effect on return. Caller holds no lock.
 */
NTSTATUS vmm_va_map_for_driver(struct vmm_device *device, uint32_t allocation) VMM_MUST_CHECK;
/* Returns the address of that mapping; 0: none. Caller holds no lock but the submit lock. */
uint64_t vmm_va_driver_address(struct vmm_device *device, uint32_t allocation);

/*
 * DxgkCbMapContextAllocation (VA-20). `handle`: what DxgkCbCreateContextAllocation returned;
 * request->allocation is not read, but must not be 0. Sets request->address on success. The mapping
 * is in effect on return and exists until the allocation ends. STATUS_INVALID_HANDLE,
 * STATUS_INVALID_PARAMETER, STATUS_NO_MEMORY. Called from the miniport, with no mutex above the
 * submit lock held.
 */
NTSTATUS vmm_va_map_context_allocation(struct vmm_adapter *adapter, const void *handle,
				       struct vmm_va_map_request *request) VMM_MUST_CHECK;

#endif
