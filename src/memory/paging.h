/* SPDX-License-Identifier: MIT */
/*
 * The paging timeline (paging_timeline.c), paging buffers (paging_buffers.c) and paging operations
 * (paging.c).
 *
 * Each function below makes the miniport append one operation to the current paging buffer
 * (DxgkDdiBuildPagingBuffer). The operation runs on the paging timeline, after all operations that
 * were appended before it. vmm_memory_flush_locked submits what was appended.
 *
 * On a linked adapter an operation on an instance is built for every physical adapter that holds a
 * copy of it. The caller holds the paging lock everywhere. A status other than VMM_OK means that
 * the operation was not built; VMM_DEVICE_REMOVED then says that the adapter is lost (PAG-09).
 */
#ifndef VMM_MEMORY_PAGING_H
#define VMM_MEMORY_PAGING_H

#include "memory/memory.h"

/* One paging buffer. It may be reused once the paging timeline has completed last_sequence. */
struct vmm_paging_buffer {
	struct vmm_backing backing;
	uint64_t bus_address;
	uint32_t segment, range; /* aperture mapping; segment 0: not mapped */
	uint64_t address;        /* for the GPU: in the aperture if mapped, else bus_address */
	void *private_data;
	uint64_t last_sequence; /* the newest paging packet with commands from this buffer */
};
#define VMM_PAGING_BUFFERS_MAX 64u

/*
 * The paging buffers of one physical adapter: a ring that grows up to VMM_PAGING_BUFFERS_MAX. The
 * commands in [start, write) of the current buffer are not submitted yet; private_start and
 * private_write are the same offsets in the buffer's private data.
 */
struct vmm_paging_lane {
	uint32_t physical;
	struct vmm_paging_buffer buffer[VMM_PAGING_BUFFERS_MAX];
	uint32_t buffer_count, current_buffer;
	uint32_t start, write;
	uint32_t private_start, private_write;
	bool pending; /* commands were written here since the last flush */
};

/* A part of an instance, in whole pages, and the place in an aperture segment that it occupies. */
struct vmm_paging_part {
	uint64_t offset, size_bytes; /* in the instance */
	uint32_t physical;           /* physical adapter of a link; 0 for all others */
	uint32_t segment;            /* id of the aperture segment */
	uint64_t at;                 /* offset in that segment */
};

/* ---- paging_timeline.c ---- */

/*
 * Returns the sequence number of the packet that holds, or will hold after the next flush, the
 * newest command. No thread may wait for a higher one.
 */
uint64_t vmm_paging_sequence(const struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Records the newest paging packet as the last one that touches the instance. With moves_content a
 * CPU lock waits for that packet.
 */
void vmm_paging_mark_instance(struct vmm_memory *memory, struct vmm_instance *instance,
			      bool moves_content) VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the sequence number of the last paging packet that touches the instance. */
uint64_t vmm_paging_last_of(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The instance is about to move or leave. If it belongs to a context, makes the nodes switch away
 * from that context first. (SUB-20)
 */
void vmm_paging_switch_away(struct vmm_memory *memory, const struct vmm_instance *instance)
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
 * NotifyAlloc with Eviction for that part. The GPU can reach its bytes while the operation runs.
 * (PAG-29)
 */
vmm_status vmm_paging_notify_alloc(struct vmm_memory *memory, struct vmm_instance *instance,
				   const struct vmm_paging_part *part)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Builds any other operation, which concerns no allocation, on the lead adapter. */
vmm_status vmm_paging_build(struct vmm_memory *memory, DXGKARG_BUILDPAGINGBUFFER *args)
	VMM_REQUIRES(vmm_paging_lock_class);

#endif
