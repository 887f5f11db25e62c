/* SPDX-License-Identifier: MIT */
/*
 * CPU cache coherence (ALF-14, ALF-15). A GPU that does not snoop CPU caches reads only what was
 * written back, and its own writes do not update the caches. So the lines of a Cached allocation
 * are flushed when it passes between CPU and GPU.
 *
 * Nothing is flushed for an allocation without the Cached flag (C-34), or in a cache-coherent
 * aperture. Whether the flag suits the CPU's accesses is not checked (ALF-16).
 */
#include "memory/image/image.h"
#include "memory/state/state.h"
#include "memory/store/store.h"

/*
 * Returns the segment through which the GPU accesses the instance. For one in system memory without
 * AccessedPhysically that is the aperture (PAG-24). NULL: there is no aperture.
 */
static const struct vmm_segment *segment_of(struct vmm_memory *memory,
					    const struct vmm_instance *instance)
{
	if (instance->place == VMM_PLACEMENT_MEMORY || instance->place == VMM_PLACEMENT_APERTURE)
		return vmm_memory_segment(memory, instance->segment);
	/* only an instance that is reached through the aperture is resident in no segment */
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].aperture)
			return &memory->segment[i];
	return NULL;
}

/* The CacheCoherent flag has a meaning on apertures only (SEG-09). */
static bool is_coherent(struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_segment *segment = segment_of(memory, instance);

	vmm_assert_held(&memory->adapter->paging_lock);
	return segment && segment->aperture && segment->port->flags.CacheCoherent;
}

/*
 * Returns the memory that the CPU accessed while the instance was at SEEN. NULL: it had no access.
 */
static const char *memory_seen(struct vmm_memory *memory, const struct vmm_instance *instance,
			       enum vmm_placement seen) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_segment *segment;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (seen != VMM_PLACEMENT_MEMORY || instance->retained || instance->partial ||
	    vmm_link_copies(instance->allocation) > 1)
		return instance->backing.address;
	segment = vmm_memory_segment(memory, instance->segment);
	return segment->cpu_memory
		       ? segment->cpu_memory->base + segment->cpu_offset + instance->offset
		       : NULL;
}

static void flush(struct vmm_memory *memory, const struct vmm_instance *instance,
		  enum vmm_placement seen, uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *a = instance->allocation;
	const char *bytes = memory_seen(memory, instance, seen);

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_alternate_flush(memory, instance);
	if (!bytes)
		return;
	/*
	 * The size is right in a memory segment, too. Content on several adapters of a link, whose
	 * store may be larger, is not mapped for the CPU there (link.c).
	 */
	vmm_os_cache_flush(memory->adapter->os, bytes, vmm_store_bytes(a));
	vmm_event(memory->adapter->observe, VIDMM_EVENT_FLUSH, a->owner, instance->handle, reason,
		  vmm_store_bytes(a), instance->segment, 0, 0);
}

/*
 * Writes back what the CPU wrote, unless the GPU snoops. Without Cached nothing is flushed.
 * (ALF-14)
 */
void vmm_coherence_to_gpu(struct vmm_memory *memory, struct vmm_instance *instance,
			  enum vmm_placement seen)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (!(instance->allocation->flags & VMM_ALLOCATION_CACHED) || is_coherent(memory, instance))
		return;
	if (instance->cache == VMM_CACHE_CPU)
		flush(memory, instance, seen, VIDMM_FLUSH_TO_GPU);
	/*
	 * In an aperture CPU and GPU may access it at the same time while it is locked (LOCK-37).
	 * The CPU may write again, so the flush is repeated before each use by the GPU.
	 */
	instance->handover = vmm_locks(instance) && instance->place == VMM_PLACEMENT_APERTURE;
	instance->cache = instance->handover ? VMM_CACHE_CPU : VMM_CACHE_GPU;
}

/* Invalidates what the GPU wrote. Any access of the CPU is accepted. (ALF-14, ALF-16) */
void vmm_coherence_to_cpu(struct vmm_memory *memory, struct vmm_instance *instance, bool read_only)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (!(instance->allocation->flags & VMM_ALLOCATION_CACHED))
		return;
	if (instance->cache == VMM_CACHE_GPU) {
		flush(memory, instance, (enum vmm_placement)instance->place, VIDMM_FLUSH_TO_CPU);
		instance->cache = VMM_CACHE_CLEAN;
	}
	if (!read_only) /* a read-only lock leaves nothing to write back (LOCK-06) */
		instance->cache = VMM_CACHE_CPU;
	instance->handover = true;
}

void vmm_coherence_flush_range(struct vmm_memory *memory, const struct vmm_instance *instance,
			       uint64_t offset, uint64_t length)
{
	const struct vmm_allocation *a = instance->allocation;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(offset <= a->size_bytes && length <= a->size_bytes - offset);
	if (!(a->flags & VMM_ALLOCATION_CACHED) || !length ||
	    (instance->segment && is_coherent(memory, instance)))
		return;
	const char *bytes = memory_seen(memory, instance, (enum vmm_placement)instance->place);
	vmm_alternate_flush(memory, instance);
	if (!bytes)
		return;
	vmm_os_cache_flush(memory->adapter->os, bytes + offset, length);
	vmm_event(memory->adapter->observe, VIDMM_EVENT_FLUSH, a->owner, instance->handle,
		  VIDMM_FLUSH_REQUESTED, length, instance->segment, 0, 0);
}
