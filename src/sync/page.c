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

static bool take_locked(struct vmm_device *device, struct vmm_sync_slot *slot)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &device->sync_pages)
		if (take_from(vmm_container_of(link, struct vmm_sync_page, link), slot))
			return true;
	return false;
}

vmm_status vmm_sync_slot_take(struct vmm_device *device, struct vmm_sync_slot *slot)
{
	struct vmm_os_mutex *lock = &device->process->world->sync_lock;

	vmm_os_mutex_lock(lock);
	bool taken = take_locked(device, slot);
	vmm_os_mutex_unlock(lock);
	if (taken)
		return VMM_OK;
	struct vmm_sync_page *page = make_page(device);
	if (!page)
		return VMM_NO_MEMORY;
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
	bool last = !--page->references;
	vmm_os_mutex_unlock(&world->sync_lock);
	if (last)
		free_page(page);
}

void vmm_sync_pages_end(struct vmm_device *device)
{
	struct vmm_os_mutex *lock = &device->process->world->sync_lock;

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
		vmm_os_mutex_lock(lock);
		bool last = !--page->references;
		vmm_os_mutex_unlock(lock);
		if (last)
			free_page(page);
	}
}
