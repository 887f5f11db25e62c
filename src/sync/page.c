/* SPDX-License-Identifier: MIT */
/*
 * The memory in which the values of fences lie: memory objects, of which the client has a view that it can only read (MFN-03).
 * The view ends with the device, the memory with the last fence that is still in use by somebody else (MFN-33).
 */
#include "sync/sync_private.h"

static void free_page(struct vmm_sync_page *page)
{
	vmm_os_view_release(&page->view);
	if (page->memory.base)
		vmm_os_memory_destroy(&page->memory);
	vmm_free(page);
}

static struct vmm_sync_page *make_page(const struct vmm_device *device)
{
	struct vmm_os *os = device->adapter->os;
	struct vmm_sync_page *page = vmm_calloc(1, sizeof(*page));

	if (!page)
		return NULL;
	page->references = 1;
	vmm_status status = vmm_os_memory_create(os, "fences", VMM_SYNC_PAGE_BYTES, &page->memory);
	if (vmm_ok(status)) {
		vmm_os_memory_set_whole(
			&page->memory); /* there are only fences of the device in it */
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
	vmm_os_memory_set_whole(&page->memory);
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

/* What no GPU is to see lies on other pages than what one may store to (MFN-35). */
static bool take_locked(struct vmm_device *device, bool for_gpu, struct vmm_sync_slot *slot)
{
	struct vmm_list *link;

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
	void *mapped; /* the driver's */
};

vmm_status vmm_sync_page_show(struct vmm_device *device, struct vmm_sync_page *page,
			      uint64_t size_bytes, uint64_t *address)
{
	struct vmm_os_mutex *lock = &device->process->world->sync_lock;
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
	vmm_os_mutex_lock(lock);
	page->references++;
	vmm_list_push_back(&device->sync_windows, &window->link);
	vmm_os_mutex_unlock(lock);
	return VMM_OK;
}

static void drop(struct vmm_world *world, struct vmm_sync_page *page)
{
	vmm_os_mutex_lock(&world->sync_lock);
	bool last = !--page->references;
	vmm_os_mutex_unlock(&world->sync_lock);
	if (last)
		free_page(page);
}

static void end_windows(struct vmm_device *device)
{
	struct vmm_world *world = device->process->world;

	while (!vmm_list_empty(&device->sync_windows)) { /* nobody is inside the device */
		struct window *window =
			vmm_container_of(device->sync_windows.next, struct window, link);

		vmm_list_remove(&window->link);
		device->adapter->sync_driver->unmap_pages(device, window->mapped);
		drop(world, window->page);
		vmm_free(window);
	}
}

vmm_status vmm_sync_slot_take(struct vmm_device *device, bool for_gpu, struct vmm_sync_slot *slot)
{
	struct vmm_os_mutex *lock = &device->process->world->sync_lock;

	vmm_os_mutex_lock(lock);
	bool taken = take_locked(device, for_gpu, slot);
	vmm_os_mutex_unlock(lock);
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
	vmm_os_mutex_lock(lock);
	vmm_list_push_back(&device->sync_pages, &page->link);
	taken = take_from(page, slot); /* nobody knew it */
	vmm_os_mutex_unlock(lock);
	vmm_assert(taken);
	return VMM_OK;
}

void vmm_sync_slot_give(struct vmm_world *world, const struct vmm_sync_slot *slot)
{
	struct vmm_sync_page *page = slot->page;
	uint32_t index = slot->offset / VMM_SYNC_SLOT_BYTES;

	if (!page)
		return;
	*(uint64_t *)(void *)(page->memory.base + slot->offset) = 0;
	vmm_os_mutex_lock(&world->sync_lock);
	page->used[index / 64] &= ~((uint64_t)1 << index % 64);
	vmm_os_mutex_unlock(&world->sync_lock);
	drop(world, page);
}

void vmm_sync_pages_end(struct vmm_device *device)
{
	struct vmm_os_mutex *lock = &device->process->world->sync_lock;

	end_windows(device);
	for (;;) {
		struct vmm_sync_page *page = NULL;

		vmm_os_mutex_lock(lock);
		if (!vmm_list_empty(&device->sync_pages)) {
			page = vmm_container_of(device->sync_pages.next, struct vmm_sync_page,
						link);
			vmm_list_remove(&page->link);
		}
		vmm_os_mutex_unlock(lock);
		if (!page)
			return;
		vmm_os_view_release(&page->view);
		drop(device->process->world, page);
	}
}
