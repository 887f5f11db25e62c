/* SPDX-License-Identifier: MIT */
/*
 * ALF-14, ALF-15: the caches of the CPU. A GPU that does not look into them sees what was written back, and writes behind
 * their back; so whenever a Cached allocation passes between CPU and GPU in such a place, its lines are flushed. Without
 * the flag nothing is (C-34), nor does anybody ask whether it suits the CPU's use (ALF-16), and in a cache-coherent aperture nothing needs to be.
 */
#include "memory/memory_private.h"

/* The segment by which the GPU finds it. In system memory without AccessedPhysically that is the aperture (PAG-24). */
static const struct vmm_segment *segment_of(struct vmm_memory *memory,
					    const struct vmm_instance *instance)
{
	uint32_t i = 0;

	if (instance->place == VMM_PLACE_MEMORY || instance->place == VMM_PLACE_APERTURE)
		return vmm_memory_segment(memory, instance->segment);
	while (!memory->segment[i].aperture) /* nothing else is resident outside of segments */
		i++;
	return &memory->segment[i];
}

/* SEG-09: the flag means something on apertures only. */
static bool is_coherent(struct vmm_memory *memory, const struct vmm_instance *instance)
{
	const struct vmm_segment *segment = segment_of(memory, instance);

	return segment->aperture && segment->port->flags.CacheCoherent;
}

/* Where the CPU's accesses went; NULL: it could not get there. */
static const char *memory_seen(struct vmm_memory *memory, const struct vmm_instance *instance,
			       enum vmm_place seen)
{
	const struct vmm_segment *segment;

	if (seen != VMM_PLACE_MEMORY || instance->kept || instance->partial ||
	    vmm_link_copies(instance->allocation) > 1)
		return instance->backing.address;
	segment = vmm_memory_segment(memory, instance->segment);
	return segment->cpu_memory
		       ? segment->cpu_memory->base + segment->cpu_offset + instance->offset
		       : NULL;
}

static void flush(struct vmm_memory *memory, const struct vmm_instance *instance,
		  enum vmm_place seen, uint32_t reason)
{
	const struct vmm_allocation *a = instance->allocation;
	const char *bytes = memory_seen(memory, instance, seen);

	vmm_alternate_flush(memory, instance);
	if (!bytes)
		return;
	/* In a memory segment it saw no copy of a link's (link.c), so there the two are the same. */
	vmm_os_cache_flush(memory->adapter->os, bytes, vmm_store_bytes(a));
	vmm_event(memory->adapter->observe, VIDMM_EVENT_FLUSH, a->owner, instance->handle, reason,
		  vmm_store_bytes(a), instance->segment, 0, 0);
}

void vmm_coherence_to_gpu(struct vmm_memory *memory, struct vmm_instance *instance,
			  enum vmm_place seen)
{
	if (!(instance->allocation->flags & VMM_ALLOCATION_CACHED) || is_coherent(memory, instance))
		return;
	if (instance->cache == VMM_CACHE_CPU)
		flush(memory, instance, seen, VIDMM_FLUSH_TO_GPU);
	/* Locked in an aperture both have it (LOCK-37), and before each use the CPU may have written again. */
	instance->handover = vmm_locks(instance) && instance->place == VMM_PLACE_APERTURE;
	instance->cache = instance->handover ? VMM_CACHE_CPU : VMM_CACHE_GPU;
}

void vmm_coherence_to_cpu(struct vmm_memory *memory, struct vmm_instance *instance, bool read_only)
{
	if (!(instance->allocation->flags & VMM_ALLOCATION_CACHED))
		return;
	if (instance->cache == VMM_CACHE_GPU) {
		flush(memory, instance, (enum vmm_place)instance->place, VIDMM_FLUSH_TO_CPU);
		instance->cache = VMM_CACHE_CLEAN;
	}
	if (!read_only) /* LOCK-06: what is only read leaves nothing to write back */
		instance->cache = VMM_CACHE_CPU;
	instance->handover = true;
}
