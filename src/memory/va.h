/* SPDX-License-Identifier: MIT */
/*
 * GPU virtual addresses of the GpuMmu model, for doors and sched: one space for each process on each adapter, its page
 * tables, and which contexts use them. Only where vmm_port_caps.gpummu.supported. The functions take the locks themselves.
 */
#ifndef VMM_MEMORY_VA_H
#define VMM_MEMORY_VA_H

#include "object/object.h"
#include "port/port.h"

struct vmm_va;

/* D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE */
enum {
	VMM_VA_WRITE = 0x1,
	VMM_VA_EXECUTE = 0x2,
	VMM_VA_ZERO_PAGES = 0x4,
	VMM_VA_NO_ACCESS = 0x8,
	VMM_VA_PROTECTION = 0xF /* what clients may say */
};

struct vmm_va_map_request {
	uint32_t queue, allocation; /* handles; allocation 0: Zero or NoAccess */
	uint64_t base, minimum, maximum;
	uint64_t offset_pages, size_pages;
	uint64_t protection, driver_protection;
	uint64_t reserved;             /* what must be 0, or-ed */
	uint64_t address, fence_value; /* out */
};
/* What a client asks for, of its argument copied in; both doors have the same. */
struct vmm_va_map_request vmm_va_map_request_of(const D3DDDI_MAPGPUVIRTUALADDRESS *args);
/* STATUS_PENDING: effective once the queue's fence has reached fence_value (VA-08). */
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
/* The same without a queue: it is effective when the call comes back. */
NTSTATUS vmm_va_reserve_on(struct vmm_adapter *adapter, struct vmm_process *process,
			   struct vmm_va_reserve_request *request) VMM_MUST_CHECK;
NTSTATUS vmm_va_free(struct vmm_adapter *adapter, struct vmm_process *process, uint64_t base,
		     uint64_t size) VMM_MUST_CHECK;

/* One step of an update (VA-10): D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION. */
struct vmm_va_operation {
	uint32_t type;
	uint32_t allocation; /* handle */
	uint64_t base, size;
	uint64_t offset, piece_size; /* in the allocation; piece_size 0: all of `size` */
	uint64_t source;             /* of a copy */
	uint64_t protection, driver_protection;
};
struct vmm_va_update {
	struct vmm_va_operation *operations;
	uint32_t count;
	uint64_t target, source; /* of memory: which reservations they are in */
};
/* A client's operations as ours, which are the caller's to free; read once. VMM_INVALID_PARAMETER: there are too many. */
NTSTATUS vmm_va_operations_copy(const D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION *operations,
				uint32_t count, struct vmm_va_operation **result) VMM_MUST_CHECK;
/* May it be done, and is there what it takes? No lock held. */
NTSTATUS vmm_va_update_prepare(struct vmm_device *device,
			       struct vmm_va_update *update) VMM_MUST_CHECK;
/* Done when the paging timeline has completed *sequence. VMM_NO_MEMORY: a part of it is not. Paging lock held. */
vmm_status vmm_va_update_locked(struct vmm_device *device, const struct vmm_va_update *update,
				uint64_t *sequence) VMM_MUST_CHECK;

/* The space of the new device's process, made for the first one; *kmd_process: the miniport's handle. No lock held. */
NTSTATUS vmm_va_begin_device(struct vmm_device *device, void **kmd_process) VMM_MUST_CHECK;
/* The process ends, its devices are gone; or the adapter stops, all devices are. No lock held. */
void vmm_va_end_process(struct vmm_adapter *adapter, const struct vmm_process *process);
void vmm_va_end_all(struct vmm_adapter *adapter);

/* A context whose addresses are virtual: it is told of its root table, now and whenever that moves (VA-12). */
struct vmm_va_context {
	struct vmm_list link; /* guarded by the paging lock */
	struct vmm_device *device;
	void *kmd_context;
};
void vmm_va_attach(struct vmm_va_context *context);
void vmm_va_detach(struct vmm_va_context *context);

/* Pages of the library's own at addresses of the device's process, to be read and written (MFN-04); VMM_NO_MEMORY. No lock held. */
struct vmm_va_window;
vmm_status vmm_va_map_pages(struct vmm_device *device, const struct vmm_os_memory *pages,
			    uint64_t size_bytes, struct vmm_va_window **window,
			    uint64_t *address) VMM_MUST_CHECK;
/* No GPU finds them any more. */
void vmm_va_unmap_pages(struct vmm_device *device, struct vmm_va_window *window);

#endif
