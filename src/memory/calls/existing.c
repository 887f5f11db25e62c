/* SPDX-License-Identifier: MIT */
/*
 * Existing memory: memory of a process (ExistingSysMem) or of a miniport (ExistingKernelSysMem)
 * that becomes the backing store of an allocation (ALF-11 to ALF-13). vidmm cannot extend its
 * lifetime, so its owner must not free it before the allocation is deallocated, through all of its
 * handles if it is shared (ALF-40). When that call returns, the GPU does not use the memory any
 * more, and all that the GPU wrote is in it.
 */
#include "memory/calls/creation.h"
#include "memory/image/image.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/store/store.h"

enum { KERNEL = 0x20 };

static bool overlaps(const char *a, uint64_t a_bytes, const char *b, uint64_t b_bytes)
{
	return a && b && a < b + b_bytes && b < a + a_bytes;
}

/*
 * Returns true if the range overlaps a CPU mapping of another allocation of the device. The pages
 * behind such an address change (LOCK-04) or end with a section, so they cannot be a backing store.
 */
static bool is_in_a_view(struct vmm_device *device, const char *pointer, uint64_t size_bytes)
{
	const struct vmm_list *link;
	bool found = false;

	vmm_paging_lock(device->adapter);
	vmm_process_lock(device->process);
	vmm_list_for_each (link, &device->refs) {
		const struct vmm_instance *i =
			vmm_container_of(link, struct vmm_ref, device_link)->instance;

		found |= overlaps(pointer, size_bytes, i->view.address, i->view.size_bytes);
		/*
		 * A section's address is the host's; it has no meaning in an out-of-process client.
		 */
		if (i->backing.section && !device->process->viewer)
			found |= overlaps(pointer, size_bytes, i->backing.address,
					  i->backing.size_bytes);
	}
	vmm_process_unlock(device->process);
	vmm_paging_commit(device->adapter);
	return found;
}

/* Returns what is wrong with the range, or NULL. */
static const char *complaint(struct vmm_device *device, const char *pointer,
			     const DXGK_ALLOCATIONINFO *info)
{
	struct vmm_nt *nt = device->adapter->world->nt;

	if (!pointer || (uintptr_t)pointer % VMM_PAGE_SIZE)
		return "the address is not page-aligned";
	if (info->Size % VMM_PAGE_SIZE)
		return "the size is not a multiple of the page size";
	if (device->process->viewer && (info->Flags.Value & KERNEL)) /* */
		return "the address of an out-of-process client is not kernel memory";
	if (device->process->viewer) /* the client is asked for the rest in vmm_existing_adopt */
		return is_in_a_view(device, pointer, info->Size)
			       ? "it overlaps the CPU mapping of another allocation"
			       : NULL;
	if (info->Flags.Value & KERNEL)
		return vmm_nt_is_kernel_range(nt, pointer, info->Size)
			       ? NULL
			       : "it is not completely inside memory that the kernel allocated";
	if (vmm_nt_overlaps_kernel(nt, pointer, info->Size))
		return "it overlaps kernel memory";
	if (!vmm_os_probe_writable(pointer, info->Size))
		return "not all of it is memory that the process can read and write";
	if (is_in_a_view(device, pointer, info->Size))
		return "it overlaps the CPU mapping of another allocation";
	return NULL;
}

static NTSTATUS refuse_existing(const struct vmm_device *device,
				const struct vmm_allocate_item *item,
				const DXGK_ALLOCATIONINFO *info, const char *what)
{
	bool kernel = info->Flags.Value & KERNEL;

	return vmm_refuse_rule(device->adapter->observe, STATUS_INVALID_PARAMETER,
			       kernel ? "ALF-12" : "ALF-11", device->process->id, 0,
			       "create refused: %s with pSystemMem %p and Size %llu: %s",
			       kernel ? "ExistingKernelSysMem" : "ExistingSysMem",
			       item->system_memory, (unsigned long long)info->Size, what);
}

NTSTATUS vmm_existing_check(struct vmm_device *device, const struct vmm_allocate_item *item,
			    const DXGK_ALLOCATIONINFO *info)
{
	const char *what = complaint(device, item->system_memory, info);

	return what ? refuse_existing(device, item, info, what) : STATUS_SUCCESS;
}

/*
 * The client replaces its pages, at the same address, by a sealed memory object with their content,
 * and sends a descriptor of it. That object is the backing store as long as the allocation lives
 * (Q-95).
 */
NTSTATUS vmm_existing_adopt(struct vmm_device *device, struct vmm_allocate_item *item,
			    const DXGK_ALLOCATIONINFO *info)
{
	struct vmm_os_viewer *viewer = device->process->viewer;
	uint64_t offset;
	int fd;
	vmm_status status = viewer->ops->adopt(viewer, (char *)(uintptr_t)item->system_memory,
					       info->Size, &fd, &offset);

	if (status == VMM_INVALID_PARAMETER)
		return refuse_existing(
			device, item, info,
			"not all of it is memory that the process can read and write");
	if (!vmm_ok(status))
		return vmm_refuse_reason(
			device->adapter->observe, status, device->process->id, 0,
			"Q-95: create refused: the client could not share its memory at %p (%llu "
			"bytes) with the host",
			item->system_memory, (unsigned long long)info->Size);
	status = vmm_section_open(device->adapter->os, fd, offset + info->Size, true,
				  &item->adopted);
	vmm_os_descriptor_close(fd);
	if (status == VMM_INVALID_PARAMETER)
		return refuse_existing(
			device, item, info,
			"the client's descriptor is not a memory object of that size that is "
			"sealed against shrinking");
	if (!vmm_ok(status))
		return status;
	item->adopted->offset = offset;
	return STATUS_SUCCESS;
}

bool vmm_existing_open_locked(struct vmm_allocation *allocation)
{
	vmm_assert_held(&allocation->adapter->paging_lock);
	vmm_assert(allocation->shared);
	if (!vmm_is_existing(allocation) || allocation->first.backing.section)
		return true;
	allocation->open_handles += allocation->open_handles != 0;
	return allocation->open_handles != 0;
}

void vmm_existing_queue_release(struct vmm_allocation *allocation, struct vmm_list *departing)
{
	vmm_assert_held(&allocation->adapter->paging_lock);
	if (!vmm_is_existing(allocation))
		return;
	/* A section is reference counted (section.c). Nothing to release. */
	if (allocation->shared && (allocation->first.backing.section || --allocation->open_handles))
		return;
	allocation->references++; /* the list's, so that the reaper does not end the allocation */
	vmm_list_push_back(departing, &allocation->first.retained->waiting);
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

/*
 * Copies back what the GPU wrote (unless the adapter is removed: ALIVE is false), then removes the
 * memory from its segment and from all paging. Afterwards nothing refers to the memory. Caller
 * holds the paging lock.
 */
static void detach(struct vmm_memory *memory, struct vmm_instance *instance, bool alive)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = memory->adapter;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (alive && instance->place == VMM_PLACEMENT_MEMORY && instance->gpu_wrote)
		(void)!vmm_retained_restore(memory,
					    instance); /* needs no aperture, unlike an eviction */
	vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DESTROYED);
	/*
	 * The unmap from the aperture is not recorded as a use of the instance, so wait for all
	 * paging so far.
	 */
	uint64_t last = vmm_memory_flush_locked(adapter);
	(void)!memory->engine->wait_locked(adapter, adapter->paging_timeline, last,
					   VIDMM_WAIT_DESTROY);
	vmm_coherence_to_cpu(memory, instance, true);
	vmm_backing_destroy(memory, &instance->backing);
	instance->place = VMM_PLACEMENT_LOST;
}

struct vmm_allocation *vmm_existing_release_next(struct vmm_memory *memory,
						 struct vmm_list *departing)
{
	struct vmm_adapter *adapter = memory->adapter;

	if (vmm_list_empty(departing))
		return NULL;
	struct vmm_retained_copy *retained =
		vmm_container_of(departing->next, struct vmm_retained_copy, waiting);
	struct vmm_instance *instance = retained->instance;

	vmm_list_remove(&retained->waiting);
	bool alive = vmm_ok(wait_until_idle(adapter, instance));
	vmm_paging_lock(adapter);
	detach(memory, instance, alive);
	vmm_paging_commit(adapter);
	return instance->allocation;
}
