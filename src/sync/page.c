/* SPDX-License-Identifier: MIT */
/*
 * The memory of fence values: memory objects, which the client maps read-only (MFN-03). The
 * client's view ends with the device. The memory ends with the last fence in it, which others may
 * still use (MFN-33).
 */
#include "sync/sync_private.h"

static void free_page(struct vmm_sync_page *page)
{
	vmm_os_view_release(&page->view);
	if (page->memory.base)
		vmm_os_memory_destroy(&page->memory);
	vmm_free(page);
}

/* Makes a page of fences, which the client maps read-only. (MFN-03) */
static struct vmm_sync_page *make_page(const struct vmm_device *device)
{
	struct vmm_os *os = device->adapter->os;
	struct vmm_sync_page *page = vmm_calloc(1, sizeof(*page));

	if (!page)
		return NULL;
	page->references = 1;
	vmm_status status = vmm_os_memory_create(os, "fences", VMM_SYNC_PAGE_BYTES, &page->memory);
	if (vmm_ok(status)) {
		/* The page contains only fences of this device. */
		vmm_os_memory_set_shareable(&page->memory);
		status = vmm_os_view_reserve_for(os, device->process->viewer, VMM_SYNC_PAGE_BYTES,
						 &page->view);
	}
	if (vmm_ok(status))
		status = vmm_os_view_map_read_only(&page->view, &page->memory);
	if (!vmm_ok(status)) {
		free_page(page);
		return NULL;
	}
	return page;
}

vmm_status vmm_sync_slot_take_own(struct vmm_os *os, struct vmm_sync_slot *slot)
{
	struct vmm_sync_page *page = vmm_calloc(1, sizeof(*page));

	if (!page)
		return VMM_NO_MEMORY;
	vmm_list_init(&page->link);
	vmm_status status = vmm_os_memory_create(os, "shared fence", VMM_PAGE_SIZE, &page->memory);
	if (!vmm_ok(status)) {
		vmm_free(page);
		return status;
	}
	vmm_os_memory_set_shareable(&page->memory);
	page->references = 1;
	*slot = (struct vmm_sync_slot){.page = page};
	return VMM_OK;
}

static bool take_from(struct vmm_sync_page *page, struct vmm_sync_slot *slot)
{
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(page->used); i++) {
		if (page->used[i] == UINT64_MAX)
			continue;
		uint32_t bit = (uint32_t)__builtin_ctzll(~page->used[i]);

		page->used[i] |= (uint64_t)1 << bit;
		page->references++;
		slot->page = page;
		slot->offset = (i * 64 + bit) * VMM_SYNC_SLOT_BYTES;
		return true;
	}
	return false;
}

/* Fences without GPU access are on other pages than those that a GPU may store to (MFN-35). */
static bool take_locked(struct vmm_device *device, bool for_gpu, struct vmm_sync_slot *slot)
	VMM_REQUIRES(vmm_sync_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&device->process->world->sync_lock);
	vmm_list_for_each (link, &device->sync_pages) {
		struct vmm_sync_page *page = vmm_container_of(link, struct vmm_sync_page, link);

		if ((page->gpu_address != 0) == for_gpu && take_from(page, slot))
			return true;
	}
	return false;
}

struct window {
	struct vmm_list link; /* in device->sync_windows; guarded by the sync lock */
	struct vmm_sync_page *page;
	void *mapped; /* returned by map_pages */
};

vmm_status vmm_sync_page_show(struct vmm_device *device, struct vmm_sync_page *page,
			      uint64_t size_bytes, uint64_t *address)
{
	vmm_assert(vmm_device_is_valid(device) && device->va && page->memory.base);
	struct window *window = vmm_calloc(1, sizeof(*window));
	if (!window)
		return VMM_NO_MEMORY;
	vmm_status status = device->adapter->sync_driver->map_pages(
		device, &page->memory, size_bytes, &window->mapped, address);
	if (!vmm_ok(status)) {
		vmm_free(window);
		return status;
	}
	window->page = page;
	vmm_sync_lock(device->process->world);
	page->references++;
	vmm_list_push_back(&device->sync_windows, &window->link);
	vmm_sync_unlock(device->process->world);
	return VMM_OK;
}

/* Ends the page with its last reference. Queued waits and signals have references, too. (MFN-33) */
static void put_page(struct vmm_world *world, struct vmm_sync_page *page)
{
	vmm_sync_lock(world);
	vmm_assert(page->references > 0);
	bool last = !--page->references;
	vmm_sync_unlock(world);
	if (last)
		free_page(page);
}

static void end_windows(struct vmm_device *device)
{
	struct vmm_world *world = device->process->world;

	/* no call is inside the device, so no lock is needed */
	while (!vmm_list_empty(&device->sync_windows)) {
		struct window *window =
			vmm_container_of(device->sync_windows.next, struct window, link);

		vmm_list_remove(&window->link);
		device->adapter->sync_driver->unmap_pages(device, window->mapped);
		put_page(world, window->page);
		vmm_free(window);
	}
}

vmm_status vmm_sync_slot_take(struct vmm_device *device, bool for_gpu, struct vmm_sync_slot *slot)
{
	vmm_sync_lock(device->process->world);
	bool taken = take_locked(device, for_gpu, slot);
	vmm_sync_unlock(device->process->world);
	if (taken)
		return VMM_OK;
	struct vmm_sync_page *page = make_page(device);
	if (!page)
		return VMM_NO_MEMORY;
	if (for_gpu) {
		vmm_status status =
			vmm_sync_page_show(device, page, VMM_SYNC_PAGE_BYTES, &page->gpu_address);
		if (!vmm_ok(status)) {
			free_page(page);
			return status;
		}
	}
	vmm_sync_lock(device->process->world);
	vmm_list_push_back(&device->sync_pages, &page->link);
	taken = take_from(page, slot); /* no other thread has seen the page */
	vmm_sync_unlock(device->process->world);
	vmm_assert(taken);
	return VMM_OK;
}

void vmm_sync_slot_give(struct vmm_world *world, const struct vmm_sync_slot *slot)
{
	struct vmm_sync_page *page = slot->page;
	uint32_t index = slot->offset / VMM_SYNC_SLOT_BYTES;

	if (!page)
		return;
	vmm_assert(vmm_sync_slot_is_valid(slot));
	*(uint64_t *)(void *)(page->memory.base + slot->offset) = 0;
	vmm_sync_lock(world);
	page->used[index / 64] &= ~((uint64_t)1 << index % 64);
	vmm_sync_unlock(world);
	put_page(world, page);
}

void vmm_sync_pages_end(struct vmm_device *device)
{
	end_windows(device);
	for (;;) {
		struct vmm_sync_page *page = NULL;

		vmm_sync_lock(device->process->world);
		if (!vmm_list_empty(&device->sync_pages)) {
			page = vmm_container_of(device->sync_pages.next, struct vmm_sync_page,
						link);
			vmm_list_remove(&page->link);
		}
		vmm_sync_unlock(device->process->world);
		if (!page)
			return;
		vmm_os_view_release(&page->view);
		put_page(device->process->world, page);
	}
}
