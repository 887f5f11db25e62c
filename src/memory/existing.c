/* SPDX-License-Identifier: MIT */
/*
 * Memory that somebody else has: a program's (ExistingSysMem) or a miniport's (ExistingKernelSysMem). It is the backing
 * store itself (ALF-13). Nothing here can hold on to it, so its owner keeps it until the allocation is deallocated; by
 * the time that call returns the GPU has let go of it, and what the GPU wrote is in it.
 */
#include "memory/memory_private.h"

#include <string.h>

enum { KERNEL = 0x20 };
#define EXISTING_ARENA UINT32_MAX

static bool overlaps(const char *a, uint64_t a_bytes, const char *b, uint64_t b_bytes)
{
	return a && b && a < b + b_bytes && b < a + a_bytes;
}

/* What a lock shows is exchanged under its address (LOCK-04), or goes with a section: nothing to build on. */
static bool is_in_a_view(struct vmm_device *device, const char *pointer, uint64_t size_bytes)
{
	const struct vmm_list *link;
	bool found = false;

	vmm_os_mutex_lock(&device->adapter->paging_lock);
	vmm_os_mutex_lock(&device->process->lock);
	vmm_list_for_each (link, &device->refs) {
		const struct vmm_instance *i =
			vmm_container_of(link, struct vmm_ref, device_link)->instance;

		found |= overlaps(pointer, size_bytes, i->view.address, i->view.size_bytes);
		/* A section's address is ours, and no address of a process apart. */
		if (i->backing.section && !device->process->viewer)
			found |= overlaps(pointer, size_bytes, i->backing.address,
					  i->backing.size_bytes);
	}
	vmm_os_mutex_unlock(&device->process->lock);
	vmm_paging_unlock(device->adapter);
	return found;
}

/* What is wrong with the range; NULL: nothing. */
static const char *complaint(struct vmm_device *device, const char *pointer,
			     const DXGK_ALLOCATIONINFO *info)
{
	struct vmm_nt *nt = device->adapter->world->nt;

	if (!pointer || (uintptr_t)pointer % VMM_PAGE_SIZE)
		return "the address is not that of a page";
	if (info->Size % VMM_PAGE_SIZE)
		return "the size is not a multiple of pages";
	if (device->process->viewer && (info->Flags.Value & KERNEL)) /* */
		return "an address in another address space is none of the kernel's";
	if (device->process->viewer) /* it is asked when all else is well: vmm_existing_adopt */
		return is_in_a_view(device, pointer, info->Size)
			       ? "a lock of another allocation shows it"
			       : NULL;
	if (info->Flags.Value & KERNEL)
		return vmm_nt_is_kernel_range(nt, pointer, info->Size)
			       ? NULL
			       : "not wholly inside memory that the kernel gave out";
	if (vmm_nt_meets_kernel(nt, pointer, info->Size))
		return "it reaches into kernel memory";
	if (!vmm_os_probe_writable(pointer, info->Size))
		return "not all of it is memory that the process can read and write";
	if (is_in_a_view(device, pointer, info->Size))
		return "a lock of another allocation shows it";
	return NULL;
}

static NTSTATUS refuse(const struct vmm_device *device, const struct vmm_allocate_item *item,
		       const DXGK_ALLOCATIONINFO *info, const char *what)
{
	bool kernel = info->Flags.Value & KERNEL;

	vmm_finding(device->adapter->observe, kernel ? "ALF-12" : "ALF-11", device->process->id, 0,
		    "create refused: %s with pSystemMem %p and Size %llu: %s",
		    kernel ? "ExistingKernelSysMem" : "ExistingSysMem", item->system_memory,
		    (unsigned long long)info->Size, what);
	return STATUS_INVALID_PARAMETER;
}

NTSTATUS vmm_existing_check(struct vmm_device *device, const struct vmm_allocate_item *item,
			    const DXGK_ALLOCATIONINFO *info)
{
	const char *what = complaint(device, item->system_memory, info);

	return what ? refuse(device, item, info, what) : STATUS_SUCCESS;
}

/* its pages become a sealed object under its hands, which is the backing store for as long as the allocation lives. */
NTSTATUS vmm_existing_adopt(struct vmm_device *device, struct vmm_allocate_item *item,
			    const DXGK_ALLOCATIONINFO *info)
{
	struct vmm_os_viewer *viewer = device->process->viewer;
	uint64_t offset;
	int fd;
	vmm_status status = viewer->ops->adopt(viewer, (char *)(uintptr_t)item->system_memory,
					       info->Size, &fd, &offset);

	if (status == VMM_INVALID_PARAMETER)
		return refuse(device, item, info,
			      "not all of it is memory that the process can read and write");
	if (!vmm_ok(status)) {
		vmm_reason(
			device->adapter->observe, status, device->process->id, 0,
			"Q-95: create refused: the program could not share its memory at %p (%llu "
			"bytes) with the host",
			item->system_memory, (unsigned long long)info->Size);
		return status;
	}
	status = vmm_section_open(device->adapter->os, fd, offset + info->Size, true,
				  &item->adopted);
	vmm_os_descriptor_close(fd);
	if (status == VMM_INVALID_PARAMETER)
		return refuse(
			device, item, info,
			"what the program gave for it is no memory of that size that is sealed "
			"against shrinking");
	if (!vmm_ok(status))
		return status;
	item->adopted->offset = offset;
	return STATUS_SUCCESS;
}

bool vmm_backing_is_existing(const struct vmm_backing *backing)
{
	return backing->arena == EXISTING_ARENA;
}

vmm_status vmm_existing_lock(struct vmm_memory *memory, const void *pointer, uint64_t size_bytes,
			     struct vmm_backing *backing)
{
	char *address = (char *)(uintptr_t)pointer;
	struct _MDL *mdl;
	vmm_status status =
		vmm_nt_pages_lock(memory->adapter->world->nt, address, size_bytes, &mdl);

	if (!vmm_ok(status))
		return status;
	*backing = (struct vmm_backing){
		.size_bytes = size_bytes, .arena = EXISTING_ARENA, .address = address, .mdl = mdl};
	return VMM_OK;
}

void vmm_existing_unlock(struct vmm_memory *memory, struct vmm_backing *backing)
{
	vmm_nt_pages_unlock(memory->adapter->world->nt, backing->mdl);
	vmm_section_put(backing->section);
	memset(backing, 0, sizeof(*backing));
}

void vmm_existing_depart(struct vmm_allocation *allocation, struct vmm_list *departing)
{
	/* What is shared is a section's, never leaves it, and stays as long as anybody has it (standard.c). */
	if (!vmm_is_existing(allocation) || allocation->shared)
		return;
	allocation->references++; /* of the list: whoever reaps the handle leaves the end to us */
	vmm_list_push_back(departing, &allocation->first.kept->waiting);
}

static vmm_status wait_until_idle(struct vmm_adapter *adapter, const struct vmm_instance *instance)
{
	uint32_t timeline;
	uint64_t sequence;

	while (vmm_instance_busy(instance, VMM_USE_ANY, &timeline, &sequence)) {
		vmm_status status =
			vmm_wait_timeline(adapter, timeline, sequence, VIDMM_WAIT_DESTROY, NULL);
		if (!vmm_ok(status))
			return status;
	}
	return VMM_OK;
}

/* Out of its segment, with what the GPU wrote; then nothing of the machine knows the memory any more. */
static void detach(struct vmm_memory *memory, struct vmm_instance *instance, bool alive)
{
	struct vmm_adapter *adapter = memory->adapter;

	if (alive && instance->place == VMM_PLACE_MEMORY && instance->gpu_wrote)
		(void)!vmm_kept_bring_back(memory,
					   instance); /* no eviction: it needs no aperture */
	vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DESTROYED);
	/* The command that takes it out of the aperture counts as no use of the instance: all paging there is. */
	uint64_t last = vmm_memory_flush_locked(adapter);
	(void)!memory->engine->wait_locked(adapter, adapter->paging_timeline, last,
					   VIDMM_WAIT_DESTROY);
	vmm_coherence_to_cpu(memory, instance, true);
	vmm_backing_destroy(memory, &instance->backing);
	instance->place = VMM_PLACE_LOST;
}

void vmm_existing_let_go(struct vmm_memory *memory, struct vmm_list *departing)
{
	struct vmm_adapter *adapter = memory->adapter;

	while (!vmm_list_empty(departing)) {
		struct vmm_kept *kept = vmm_container_of(departing->next, struct vmm_kept, waiting);
		struct vmm_instance *instance = kept->instance;

		vmm_list_remove(&kept->waiting);
		bool alive = vmm_ok(wait_until_idle(adapter, instance));
		vmm_paging_lock(adapter);
		detach(memory, instance, alive);
		vmm_paging_unlock(adapter);
		vmm_allocation_put(memory, instance->allocation);
	}
}
