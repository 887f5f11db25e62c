/* SPDX-License-Identifier: MIT */
/* What the files of this module share. Everything is guarded by the adapter's paging lock. */
#ifndef VMM_MEMORY_PRIVATE_H
#define VMM_MEMORY_PRIVATE_H

#include "memory/memory.h"
#include "policy/policy.h"
#include "range/range.h"

#define VMM_ARENA_BYTES ((uint64_t)64 << 20)
#define VMM_ARENAS_MAX  4096u

/* A memory object out of which backing stores are carved. */
struct vmm_arena {
	struct vmm_os_memory memory;
	struct vmm_range_heap *heap;
	uint64_t physical;
	uint64_t clean_from; /* pages from here on were never given out: they are zero */
	uint64_t used_bytes;
};

struct vmm_segment {
	const struct vmm_port_segment *port;
	struct vmm_range_heap *heap;
	struct vmm_os_memory *cpu_memory; /* BAR behind a CPU-visible memory segment, else NULL */
	uint64_t cpu_offset;
	bool aperture;
	uint64_t
		capacity_bytes; /* of the heap: an aperture's commit limit may be below its size (SEG-04) */
	uint64_t resident_bytes, peak_bytes;
	uint32_t residents;
	struct vmm_list lru[VMM_POLICY_CLASS_COUNT]; /* head: least recently used */
};

/* Backing pages whose last reader is a paging packet that has not completed yet. */
struct vmm_deferred {
	struct vmm_list link;
	struct vmm_backing backing;
	uint64_t sequence;
};

struct vmm_paging_buffer {
	struct vmm_backing backing;
	uint64_t bus_address;
	uint32_t segment, range; /* aperture mapping, 0: none */
	uint64_t address;
	void *private_data;
	uint64_t last_sequence; /* reusable once the paging timeline has completed it */
};
#define VMM_PAGING_BUFFERS_MAX 64u

/* Where a DMA buffer is mapped. */
struct vmm_dma_place {
	uint32_t segment, range;
	uint64_t address;
};

struct vmm_memory {
	struct vmm_adapter *adapter;
	const struct vmm_memory_engine *engine;
	const struct vmm_port_caps *caps;
	struct vmm_segment segment[VMM_PORT_SEGMENTS_MAX];
	uint32_t segment_count;

	struct vmm_arena *arenas;
	uint32_t arena_count;
	uint64_t system_bytes, system_limit_bytes, peak_system_bytes;
	struct vmm_list deferred; /* vmm_deferred, oldest first */
	struct vmm_deferred *spare_deferred;

	struct vmm_backing dummy_page; /* where unmapped aperture pages point (PAG-10) */
	struct vmm_paging_buffer buffer[VMM_PAGING_BUFFERS_MAX];
	uint32_t buffer_count, current_buffer;
	uint32_t start,
		write; /* offsets in the current buffer: unsubmitted commands are [start, write) */
	uint32_t private_start, private_write;
	bool pending;                 /* commands were collected since the last flush */
	bool synchronous;             /* one of them names a SynchronousPaging allocation */
	struct vmm_instance *operand; /* of the operation that is about to be built */

	uint64_t use_counter;
	uint64_t resident_total, peak_total;
	struct vmm_list
		closed; /* vmm_ref.zombie_link: handles are gone, the GPU may still use the allocation */
	struct vmm_list queued_offers; /* vmm_allocation.queued_offer.link */
	struct vmm_memory_figures figures;
	uint64_t instances;
};

static inline struct vmm_segment *vmm_memory_segment(struct vmm_memory *memory, uint32_t id)
{
	return &memory->segment[id - 1];
}

/* ---- arena.c ---- */
vmm_status vmm_backing_create(struct vmm_memory *memory, uint64_t size_bytes, bool zero,
			      struct vmm_backing *backing);
void vmm_backing_destroy(struct vmm_memory *memory, struct vmm_backing *backing);
void vmm_backing_destroy_after(struct vmm_memory *memory, struct vmm_backing *backing,
			       uint64_t sequence);
void vmm_backing_collect(struct vmm_memory *memory); /* frees what completed */
uint64_t vmm_backing_bus_address(const struct vmm_memory *memory,
				 const struct vmm_backing *backing);
const struct vmm_os_memory *vmm_backing_memory(const struct vmm_memory *memory,
					       const struct vmm_backing *backing, uint64_t *offset);
void vmm_arenas_finish(struct vmm_memory *memory);

/* ---- paging.c: operations are appended to the current paging buffer ---- */
vmm_status vmm_paging_buffers_create(struct vmm_memory *memory);
void vmm_paging_buffers_destroy(struct vmm_memory *memory);
/* Of the packet that has, or on its way out will have, the newest command: nothing may be waited for beyond it. */
uint64_t vmm_paging_sequence(const struct vmm_memory *memory);
vmm_status vmm_paging_transfer(struct vmm_memory *memory, struct vmm_instance *instance, bool in);
vmm_status vmm_paging_fill(struct vmm_memory *memory, struct vmm_instance *instance);
vmm_status vmm_paging_discard(struct vmm_memory *memory, struct vmm_instance *instance);
vmm_status vmm_paging_map(struct vmm_memory *memory, struct vmm_instance *instance);
vmm_status vmm_paging_unmap(struct vmm_memory *memory, struct vmm_instance *instance);
vmm_status vmm_paging_map_buffer(struct vmm_memory *memory, const struct vmm_backing *backing,
				 uint32_t segment, uint64_t offset);
vmm_status vmm_paging_unmap_range(struct vmm_memory *memory, uint32_t segment, uint64_t offset,
				  uint64_t size_bytes);

/* ---- residency.c ---- */
void vmm_residency_touch(struct vmm_memory *memory, struct vmm_instance *instance);
void vmm_residency_reclass(struct vmm_memory *memory, struct vmm_instance *instance);
/* Moves a resident instance to its backing store; the caller made sure that the GPU does not use it. */
vmm_status vmm_residency_evict(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t reason);
/* Leaves its segment without copying: destroyed or discarded content. */
void vmm_residency_drop(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t reason);
vmm_status vmm_residency_give_backing(struct vmm_memory *memory, struct vmm_instance *instance);
bool vmm_instance_unused(
	const struct vmm_instance *instance); /* no prepared packet uses its memory */
/* Evicts what is idle until a range of that size and place is free. VMM_NO_VIDEO_MEMORY: the GPU uses the rest. */
vmm_status vmm_residency_make_room(struct vmm_memory *memory, struct vmm_segment *segment,
				   const struct vmm_range_request *request);

/* ---- view.c ---- */
vmm_status vmm_view_show(struct vmm_memory *memory, struct vmm_instance *instance);
void vmm_view_hide(struct vmm_instance *instance);
vmm_status vmm_view_move_locked_instance(struct vmm_memory *memory, struct vmm_instance *instance,
					 uint32_t reason);

/* ---- memory.c ---- */
/* As vmm_memory_dma_map_locked, where there is room; nobody is evicted for it. */
vmm_status vmm_dma_map_in_free_space(struct vmm_memory *memory, struct vmm_backing *backing,
				     uint32_t segment_set, struct vmm_dma_place *place);

/* ---- instance.c ---- */
void vmm_instance_init(struct vmm_instance *instance, struct vmm_allocation *allocation);
void vmm_instance_finish(struct vmm_memory *memory, struct vmm_instance *instance); /* idle */
uint32_t vmm_allocation_class(const struct vmm_allocation *allocation);

/* ---- rename.c ---- */
NTSTATUS vmm_rename_select(struct vmm_device *device, struct vmm_ref *ref, uint32_t flags,
			   struct vmm_ref **chosen, struct vmm_instance **wait_for);
void vmm_rename_commit(struct vmm_device *device, struct vmm_ref *ref, uint32_t old_handle);
bool vmm_rename_is_growth(const struct vmm_ref *ref); /* made for this lock */
void vmm_rename_undo_growth(struct vmm_device *device, struct vmm_ref *ref);

/* ---- offer.c, offer_queued.c ---- */
void vmm_allocation_set_offer(struct vmm_allocation *allocation, uint32_t priority); /* 0: none */
void vmm_offer_cancel(struct vmm_allocation *allocation); /* the queued one */
void vmm_offers_settle(struct vmm_memory *memory);        /* all whose time has come */

/* ---- validate.c ---- */
NTSTATUS vmm_allocation_validate(struct vmm_memory *memory, const DXGK_ALLOCATIONINFO *info,
				 const struct vmm_allocate_item *item, uint32_t process);

/* ---- resource.c ---- */
struct vmm_resource *vmm_resource_find_locked(struct vmm_device *device,
					      const void *runtime_resource);
NTSTATUS vmm_resource_prepare(struct vmm_device *device, void *runtime_resource, uint32_t count,
			      struct vmm_resource **resource, bool *created);
/* The call that prepared it has failed; resource may be NULL. */
void vmm_resource_unprepare(struct vmm_resource *resource, bool created);
void vmm_resource_detach(struct vmm_resource *resource); /* handle and list gone; freed */
NTSTATUS vmm_share_create(struct vmm_resource *resource, const struct vmm_allocate_request *request,
			  struct vmm_allocation *const *allocations);

void vmm_share_put(struct vmm_world *world, struct vmm_share *share);

/* ---- destroy.c ---- */
/* Drops one reference; the last one ends the allocation in the miniport too. No lock held; the GPU is done with it. */
void vmm_allocation_put(struct vmm_memory *memory, struct vmm_allocation *allocation);

static inline void vmm_mark_used(_Atomic uint64_t *slot, uint64_t sequence)
{
	atomic_store_explicit(slot, sequence, memory_order_relaxed);
}

#endif
