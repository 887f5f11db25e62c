/* SPDX-License-Identifier: MIT */
/*
 * Client objects: memory objects that are mapped over ranges of a segment, each for one
 * out-of-process client. They isolate clients, because a file descriptor cannot be restricted to a
 * range. An out-of-process client maps content from two places:
 * - Content in system memory is in arenas of that client alone (arena.c).
 * - Content in a CPU-visible memory segment, or in one that swizzling ranges show, has a client
 *   object mapped over its placement.
 * Only the creator locks an allocation (LOCK-24), so one client per object is enough. The client
 * gets its objects when it creates its first allocation, because then a lack of descriptors refuses
 * a call. Later it would cost the client a packet, and with it the device.
 *
 * A client object stays mapped over its range after the allocation was evicted or destroyed. The
 * next allocation there is often the same client's. It then reuses the object without a wait.
 *
 * Segment space is reused while paging packets still read the former content (occupancy.c). To map
 * or to remove a client object would hide that content from them. Both therefore wait until those
 * packets are complete.
 *
 * Bounded retry: at first an instance that would have to wait gives its new placement up and is
 * placed again later (VMM_PENDING), so that the paging lock is free meanwhile. Such a retry may
 * never end: the instances that were evicted for it are paged in again and must be evicted again
 * (SPL-13). So the number of retries is limited. When TRIES different packets have been waited for
 * without progress, the thread keeps the placement and waits with the paging lock held. All further
 * placements for the same packet do the same. Each placement thus succeeds in the end.
 */
#include "memory/placement/client_object.h"
#include "memory/placement/placement.h"
#include "memory/state/state.h"
#include "memory/store/store.h"

/*
 * Packets for which placements are retried before a thread waits with the paging lock held. Any
 * number is correct. With a smaller one the lock is held more often while the GPU works, also
 * against threads that would give the GPU more work; with a larger one more content is moved in
 * vain.
 */
enum { TRIES = 32 };

static vmm_status await(struct vmm_memory *memory, uint64_t sequence, bool wait)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = memory->adapter;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_timeline_done(adapter, adapter->paging_timeline, sequence))
		return VMM_OK;
	vmm_memory_flush_locked(adapter);
	if (!wait &&
	    (sequence <= adapter->placement_retry_packet || adapter->placement_retries < TRIES)) {
		/* Retries for the same packet count once. */
		adapter->placement_retries += sequence > adapter->placement_retry_packet;
		adapter->placement_retry_packet =
			vmm_max_u64(adapter->placement_retry_packet, sequence);
		return VMM_PENDING;
	}
	return memory->engine->wait_locked(adapter, adapter->paging_timeline, sequence,
					   VIDMM_WAIT_SPACE);
}

/* Returns the last paging packet that may still read content that left this range. */
static uint64_t last_reader(const struct vmm_segment *segment, uint64_t offset, uint64_t size_bytes)
{
	uint64_t last = 0;

	for (uint64_t i = offset / VMM_LAST_READER_BYTES;
	     i <= (offset + size_bytes - 1) / VMM_LAST_READER_BYTES; i++)
		last = vmm_max_u64(last, segment->last_reader[i]);
	return last;
}

/*
 * Waits for the readers of the parts of the range that will change to OWNER's objects (0: to none).
 * Parts that are OWNER's already do not change, so their readers do not matter.
 */
static vmm_status await_readers(struct vmm_memory *memory, const struct vmm_segment *segment,
				uint64_t offset, uint64_t size_bytes, uint64_t owner, bool wait)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t end = offset + size_bytes, last = 0, length;
	bool unchanged;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (; offset < end; offset += length) {
		length = vmm_os_client_object_owner_run(segment->bar, segment->cpu_offset + offset,
							end - offset, owner, &unchanged);
		if (!unchanged)
			last = vmm_max_u64(last, last_reader(segment, offset, length));
	}
	return await(memory, last, wait);
}

/* Removes all client objects from the range, once its readers are done. */
static vmm_status clear(struct vmm_memory *memory, const struct vmm_segment *segment,
			uint64_t offset, uint64_t size_bytes, bool wait)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t from = segment->cpu_offset + offset;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!segment->bar || vmm_os_client_object_is_owned_by(segment->bar, from, size_bytes, 0))
		return VMM_OK;
	vmm_status status = await_readers(memory, segment, offset, size_bytes, 0, wait);
	if (status != VMM_OK)
		return status;
	return vmm_os_client_object_uncover(segment->bar, from,
					    vmm_align_up(size_bytes, VMM_PAGE_SIZE));
}

vmm_status vmm_client_objects_prepare(struct vmm_memory *memory, uint64_t owner)
{
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count && status == VMM_OK; i++) {
		const struct vmm_segment *segment = &memory->segment[i];

		if (segment->bar)
			status = vmm_os_client_object_prepare(segment->bar, owner);
	}
	return status;
}

vmm_status vmm_client_object_clear(struct vmm_memory *memory, const struct vmm_segment *segment,
				   uint64_t offset, uint64_t size_bytes)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return clear(memory, segment, offset, size_bytes, false);
}

/*
 * Where the content of an instance is, or will be: at OFFSET of its segment, or in its extents. Its
 * footprint may be larger than its size. (SEG-10)
 */
struct place {
	struct vmm_memory *memory;
	struct vmm_segment *segment;
	const struct vmm_allocation *allocation;
	const struct vmm_range_extents *extents;
	uint64_t offset;
	bool wait;
};

static struct place place_of(struct vmm_memory *memory, const struct vmm_instance *instance,
			     uint64_t offset) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return (struct place){.memory = memory,
			      .segment = vmm_memory_segment(memory, instance->segment),
			      .allocation = instance->allocation,
			      .extents = instance->extents,
			      .offset = offset};
}

/* Clears the part [from, end) of the place. */
static vmm_status clear_place(const struct place *place, uint64_t from, uint64_t end)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = VMM_OK;
	struct vmm_extent extent;

	vmm_assert_held(&place->memory->adapter->paging_lock);
	for (uint64_t at = from; at < end && status == VMM_OK; at += extent.size_bytes) {
		extent = vmm_extent_of(place->extents, place->offset, at, end);
		status = clear(place->memory, place->segment, extent.offset, extent.size_bytes,
			       place->wait);
	}
	return status;
}

static void release(const struct place *place, uint64_t end, bool may_go)
{
	struct vmm_extent extent;

	for (uint64_t at = 0; at < end; at += extent.size_bytes) {
		extent = vmm_extent_of(place->extents, place->offset, at, end);
		vmm_os_client_object_release(place->segment->bar,
					     place->segment->cpu_offset + extent.offset,
					     extent.size_bytes, may_go);
	}
}

/* Lays the owner's objects over the content: over all of it, or over nothing. */
static vmm_status cover(const struct place *place, uint64_t owner)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t size = place->allocation->size_bytes, at;
	const struct vmm_segment *segment = place->segment;
	vmm_status status = VMM_OK;
	struct vmm_extent extent;

	vmm_assert_held(&place->memory->adapter->paging_lock);
	for (at = 0; at < size && status == VMM_OK; at += extent.size_bytes) {
		extent = vmm_extent_of(place->extents, place->offset, at, size);
		status = await_readers(place->memory, segment, extent.offset, extent.size_bytes,
				       owner, place->wait);
	}
	if (status == VMM_OK) /* SEG-10 */
		status = clear_place(place, size, vmm_footprint_bytes(segment, place->allocation));
	for (at = 0; at < size && status == VMM_OK;) {
		extent = vmm_extent_of(place->extents, place->offset, at, size);
		status = vmm_os_client_object_cover(segment->bar,
						    segment->cpu_offset + extent.offset,
						    extent.size_bytes, owner, NULL);
		if (status == VMM_OK)
			at += extent.size_bytes;
		else
			release(place, at, false);
	}
	return status;
}

vmm_status vmm_client_object_enter(struct vmm_memory *memory, struct vmm_instance *instance,
				   uint64_t offset, bool wait)
{
	const struct vmm_allocation *a = instance->allocation;
	struct place place = place_of(memory, instance, offset);

	vmm_assert_held(&memory->adapter->paging_lock);
	place.wait = wait;
	if (!place.segment->bar)
		return VMM_OK;
	if (!a->viewer || vmm_link_copies(a) > 1)
		return clear_place(&place, 0, vmm_footprint_bytes(place.segment, a));
	vmm_status status = cover(&place, vmm_os_viewer_owner(a->viewer));
	instance->has_client_object = status == VMM_OK;
	return status;
}

/* Is an object over the content one that no client can use any more? */
static bool has_surplus(const struct place *place)
{
	uint64_t size = place->allocation->size_bytes;
	struct vmm_extent extent;

	for (uint64_t at = 0; at < size; at += extent.size_bytes) {
		extent = vmm_extent_of(place->extents, place->offset, at, size);
		if (vmm_os_client_object_is_surplus(place->segment->bar,
						    place->segment->cpu_offset + extent.offset,
						    extent.size_bytes))
			return true;
	}
	return false;
}

static void note_readers(const struct place *place, uint64_t sequence)
{
	uint64_t size = place->allocation->size_bytes;
	struct vmm_extent extent;

	for (uint64_t at = 0; at < size; at += extent.size_bytes) {
		extent = vmm_extent_of(place->extents, place->offset, at, size);
		for (uint64_t i = extent.offset / VMM_LAST_READER_BYTES;
		     i <= (extent.offset + extent.size_bytes - 1) / VMM_LAST_READER_BYTES; i++)
			place->segment->last_reader[i] = sequence;
	}
}

void vmm_client_object_leave(struct vmm_memory *memory, const struct vmm_instance *instance,
			     uint64_t offset, bool had_client_object)
{
	const struct place place = place_of(memory, instance, offset);
	uint64_t sequence = vmm_paging_sequence(memory);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!place.segment->last_reader)
		return;
	note_readers(&place, sequence);
	if (vmm_likely(!had_client_object))
		return;
	/*
	 * An object that no client can use any more is removed, unless a packet may still read it.
	 */
	bool may_go = has_surplus(&place) && vmm_ok(await(memory, sequence, true));

	release(&place, instance->allocation->size_bytes, may_go);
}

void vmm_client_objects_end_owner(struct vmm_memory *memory, uint64_t owner)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	(void)!vmm_ok(await(memory, vmm_paging_sequence(memory), true));
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].bar)
			vmm_os_client_object_end_owner(memory->segment[i].bar, owner);
}
