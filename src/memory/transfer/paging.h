/* SPDX-License-Identifier: MIT */
/*
 * Tier 3, transfer: paging operations (paging.c), the buffers that hold them (paging_buffers.c) and
 * the mapping of DMA buffers (dma.c).
 *
 * Each function below makes the miniport append one operation to the current paging buffer
 * (DxgkDdiBuildPagingBuffer). The operation runs on the paging timeline, after all operations that
 * were appended before it. vmm_memory_flush_locked submits what was appended.
 *
 * On a linked adapter an operation on an instance is built for every physical adapter that holds a
 * copy of it. A status other than VMM_OK means that the operation was not built; VMM_DEVICE_REMOVED
 * then says that the adapter is lost (PAG-09).
 */
#ifndef VMM_MEMORY_PAGING_H
#define VMM_MEMORY_PAGING_H

#include "memory/state/types.h"
#include "memory/transfer/va_entries.h"

/* A CPU address of an instance that is not the address of its view: UseAlternateVA (SWZ-24). */
struct vmm_alternate {
	struct vmm_os_view view;
	uint32_t range, private_data; /* of the swizzling range that it was created for */
	/* evicted while locked: the content returns by SpecialLockTransfer (SWZ-25) */
	bool special;
};

/* A part of an instance, in whole pages, and the place in an aperture segment that it occupies. */
struct vmm_paging_part {
	uint64_t offset, size_bytes; /* in the instance */
	uint32_t physical;           /* physical adapter of a link; 0 for all others */
	uint32_t segment;            /* id of the aperture segment */
	uint64_t at;                 /* offset in that segment */
};

/* ---- dma.c ---- */
/* Returns the request for the aperture range of a DMA buffer. */
struct vmm_range_request vmm_dma_request(struct vmm_backing *backing);
/* Like vmm_memory_dma_map_locked, but evicts nothing. */
vmm_status vmm_dma_map_in_free_space(struct vmm_memory *memory, struct vmm_backing *backing,
				     uint32_t segment_set, struct vmm_dma_mapping *place)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- the buffers ---- */
/* Makes a buffer current whose packets are complete. No command may be pending. */
vmm_status vmm_paging_buffer_next(struct vmm_memory *memory, struct vmm_paging_lane *lane)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Allocates the dummy page and the first paging buffer of each physical adapter. */
vmm_status vmm_paging_buffers_create(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
void vmm_paging_buffers_destroy(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Before power is lost: unmaps the paging buffers from their aperture. No command may be pending.
 * (SEG-21)
 */
vmm_status vmm_paging_buffers_unmap(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/* After power is back: maps the current paging buffers again. */
vmm_status vmm_paging_buffers_remap(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Maps the current buffer of each lane into the paging buffer segment, if the miniport names one.
 * (SEG-21)
 */
vmm_status vmm_paging_map_current(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * After a reset: drops all commands that were not submitted, and frees the buffers' aperture
 * ranges. (PAG-27)
 */
void vmm_paging_drop_pending(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- content ---- */
/*
 * Transfer of the whole instance; `in`: backing store to memory segment, else the other way.
 * (PAG-03, PAG-04)
 */
vmm_status vmm_paging_transfer(struct vmm_memory *memory, struct vmm_instance *instance, bool in)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The same for size_bytes from `offset` in the backing store; both in whole pages. */
vmm_status vmm_paging_transfer_part(struct vmm_memory *memory, struct vmm_instance *instance,
				    bool in, uint64_t offset, uint64_t size_bytes)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Map, Transfer and Unmap: copies the instance out through that offset of an aperture segment.
 * (PAG-17)
 */
vmm_status vmm_paging_transfer_through(struct vmm_memory *memory, struct vmm_instance *instance,
				       uint32_t aperture, uint64_t offset)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Transfer to offset `to` of the same memory segment. The two ranges do not overlap. */
vmm_status vmm_paging_move(struct vmm_memory *memory, struct vmm_instance *instance, uint64_t to)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * SpecialLockTransfer between the instance's placement and `pages`, with the range id and private
 * data of `alternate`; `in`: from the pages into the segment. (SWZ-25)
 */
vmm_status vmm_paging_special(struct vmm_memory *memory, struct vmm_instance *instance,
			      const struct vmm_alternate *alternate,
			      const struct vmm_backing *pages, bool in)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Fill with zero of the instance's range in its memory segment. (PAG-05) */
vmm_status vmm_paging_fill(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* DiscardContent: the instance leaves its memory segment without a copy. (PAG-06) */
vmm_status vmm_paging_discard(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * LinkMirrored: DiscardContent on every physical adapter except the one whose copy was transferred
 * out. Does nothing for all other allocations. (PAG-22)
 */
vmm_status vmm_paging_discard_mirrors(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * InitContextResource at the instance's placement. `address`: where the CPU sees the resource, or
 * NULL. (PRE-11)
 */
vmm_status vmm_paging_init_context(struct vmm_memory *memory, struct vmm_instance *instance,
				   void *address) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * After a reset: a Transfer of size 0 out of the memory segment tells the miniport that the content
 * is lost. (PAG-27)
 */
vmm_status vmm_paging_report_lost(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- content by GPU virtual address (paging_virtual.c) ---- */
enum vmm_paging_virtual_kind {
	VMM_PAGING_VIRTUAL_TRANSFER,
	VMM_PAGING_VIRTUAL_FILL, /* with zero */
	VMM_PAGING_VIRTUAL_UPDATE_CONTEXT,
	VMM_PAGING_VIRTUAL_NOTIFY /* NotifyAlloc with Eviction */
};
/*
 * Bytes of an allocation, and the pages that they have on both sides: source, destination. Only a
 * transfer has a source.
 */
struct vmm_paging_content {
	enum vmm_paging_virtual_kind kind;
	uint64_t offset, size_bytes; /* the offset in whole pages */
	struct vmm_gpu_location side[2];
	/* of an update of a context allocation: what the miniport passed, until the call returns */
	void *private_data;
	uint32_t private_bytes;
};
/* The operation in chunks that fit into the paging window. (PAG-26) */
vmm_status vmm_paging_virtual(struct vmm_memory *memory, struct vmm_instance *instance,
			      const struct vmm_paging_content *content)
	VMM_REQUIRES(vmm_paging_lock_class);

/*
 * UpdateContextAllocation of the instance, which the GPU can use where it is and does not use now.
 * VMM_NO_MEMORY: it is larger than a side of the paging window. (VA-21)
 */
vmm_status vmm_paging_update_context(struct vmm_memory *memory, struct vmm_instance *instance,
				     void *private_data, uint32_t private_bytes)
	VMM_REQUIRES(vmm_paging_lock_class);

/*
 * Maps a page table of a client's process into the paging window; *address receives where. The
 * mapping lasts until the next table is mapped. VMM_NO_MEMORY: the table is too large.
 */
vmm_status vmm_paging_map_table(struct vmm_memory *memory, const struct vmm_va_table *table,
				uint64_t *address) VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the address of the leaf table that translates an address of the window. */
uint64_t vmm_paging_leaf_address(const struct vmm_memory *memory, uint64_t address)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- apertures ---- */
/* Maps the backing pages of the instance at its placement in an aperture segment. (PAG-10) */
vmm_status vmm_paging_map(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Unmaps them; the aperture pages then point to the dummy page. (PAG-10) */
vmm_status vmm_paging_unmap(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The same for one part of the instance, on one physical adapter. */
vmm_status vmm_paging_map_part(struct vmm_memory *memory, struct vmm_instance *instance,
			       const struct vmm_paging_part *part)
	VMM_REQUIRES(vmm_paging_lock_class);
vmm_status vmm_paging_unmap_part(struct vmm_memory *memory, struct vmm_instance *instance,
				 const struct vmm_paging_part *part)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Maps the part, calls `operation` for it and unmaps it, also if the operation failed. Returns the
 * first error.
 */
vmm_status vmm_paging_with_part(struct vmm_memory *memory, struct vmm_instance *instance,
				const struct vmm_paging_part *part,
				vmm_status (*operation)(struct vmm_memory *, struct vmm_instance *,
							const struct vmm_paging_part *))
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Maps a DMA buffer or paging buffer at an offset of an aperture segment, on one physical adapter.
 * (DMA-05)
 */
vmm_status vmm_paging_map_buffer(struct vmm_memory *memory, uint32_t physical,
				 const struct vmm_backing *backing, uint32_t segment,
				 uint64_t offset) VMM_REQUIRES(vmm_paging_lock_class);
/* Unmaps size_bytes from that offset of an aperture segment, on one physical adapter. */
vmm_status vmm_paging_unmap_range(struct vmm_memory *memory, uint32_t physical, uint32_t segment,
				  uint64_t offset, uint64_t size_bytes)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- notifications and others ---- */
/*
 * NotifyResidency: notifies the miniport that the instance has become, or is about to cease to be,
 * resident. Does nothing without ExplicitResidencyNotification, or if the last notification said
 * the same. (PAG-25)
 */
vmm_status vmm_paging_notify(struct vmm_memory *memory, struct vmm_instance *instance,
			     bool resident) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * NotifyAlloc with Eviction for that part of the backing store. The GPU can reach its bytes while
 * the operation runs: at GPU virtual addresses, where the adapter has them, else in an aperture.
 * (PAG-29)
 */
vmm_status vmm_paging_notify_alloc(struct vmm_memory *memory, struct vmm_instance *instance,
				   const struct vmm_paging_part *part)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Builds any other operation, which concerns no allocation, on the lead adapter. */
vmm_status vmm_paging_build(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args)
	VMM_REQUIRES(vmm_paging_lock_class);
/* The same for an operation on the operand. */
vmm_status vmm_paging_build_for(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args,
				struct vmm_instance *operand) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Has the miniport execute an operation with the CPU, before the call returns. It gets no paging
 * buffer. (VA-11)
 */
vmm_status vmm_paging_execute(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args)
	VMM_REQUIRES(vmm_paging_lock_class);

#endif
