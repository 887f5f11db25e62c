/* SPDX-License-Identifier: MIT */
/*
 * The epoch: a counter that invalidates what out-of-process clients do without a message to the
 * host (docs/adr/0002-locks-without-a-message.md). Until the first client needs it, it is a private
 * word; then it moves to a page that clients map read-only.
 */
#include "object/object.h"

#include "base/lock_word.h"

_Static_assert(VMM_LOCK_HOST_GONE == VMM_OS_WATCHDOG_GONE, "one mark");

/* Runs in the watchdog's thread, because a caller of vmm_world_next_epoch may hold any lock. */
static void wake_sleepers(void *context)
{
	struct vmm_world *world = context;
	struct vmm_list *link;

	vmm_shared_lock(world);
	vmm_list_for_each (link, &world->epoch_sleepers) {
		const struct vmm_epoch_sleepers *sleepers =
			vmm_container_of(link, struct vmm_epoch_sleepers, link);

		atomic_fetch_add(sleepers->turns, 1);
		vmm_os_wake_shared(sleepers->turns);
	}
	vmm_shared_unlock(world);
}

void vmm_world_wake_sleepers(struct vmm_world *world)
{
	vmm_os_watchdog_notify(world->watchdog);
}

void vmm_world_add_sleepers(struct vmm_world *world, struct vmm_epoch_sleepers *sleepers)
{
	vmm_shared_lock(world);
	vmm_assert(world->watchdog);
	vmm_list_push_back(&world->epoch_sleepers, &sleepers->link);
	atomic_fetch_add(&world->epoch_sleeper_count, 1);
	vmm_shared_unlock(world);
}

void vmm_world_remove_sleepers(struct vmm_world *world, struct vmm_epoch_sleepers *sleepers)
{
	vmm_shared_lock(world);
	vmm_list_remove(&sleepers->link);
	atomic_fetch_sub(&world->epoch_sleeper_count, 1);
	vmm_shared_unlock(world);
}

static vmm_status make_page(struct vmm_world *world)
{
	struct vmm_os_watchdog *watchdog;
	struct vmm_os_memory page;
	vmm_status status = vmm_os_memory_create(world->os, "epoch", VMM_PAGE_SIZE, &page);

	if (!vmm_ok(status))
		return status;
	vmm_os_memory_set_shareable(&page);
	struct vmm_lock_epoch *shared = (void *)page.base;
	status = vmm_os_watchdog_start(world->os, &shared->watchdog, wake_sleepers, world,
				       &watchdog);
	if (!vmm_ok(status)) {
		vmm_os_memory_destroy(&page);
		return status;
	}
	vmm_shared_lock(world);
	bool first = !world->epoch_page.base;
	if (first) {
		world->epoch_page = page;
		world->watchdog = watchdog;
		atomic_store(&world->epoch, &shared->epoch);
	}
	vmm_shared_unlock(world);
	if (!first) {
		vmm_os_watchdog_stop(watchdog);
		vmm_os_memory_destroy(&page);
	}
	return VMM_OK;
}

vmm_status vmm_world_share_epoch(struct vmm_world *world, int *fd)
{
	vmm_status status = VMM_OK;

	if (atomic_load(&world->epoch) == &world->own_epoch)
		status = make_page(world);
	return vmm_ok(status) ? vmm_os_memory_read_only(&world->epoch_page, fd) : status;
}

bool vmm_device_may_bypass_host(const struct vmm_device *device, uint32_t event, uint32_t other)
{
	const struct vmm_adapter *adapter = device->adapter;

	return !atomic_load(&adapter->closed) && !atomic_load(&adapter->recovering) &&
	       vmm_ok(vmm_device_answer(device)) && vmm_hazard_is_open(device->hazard) &&
	       !vmm_observe_stamps(adapter->observe, event) &&
	       !vmm_observe_stamps(adapter->observe, other) &&
	       !vmm_observe_stamps(adapter->observe, VIDMM_EVENT_DOOR);
}

void vmm_world_epoch_init(struct vmm_world *world)
{
	atomic_store(&world->own_epoch, 0);
	vmm_list_init(&world->epoch_sleepers);
	atomic_store(&world->epoch, &world->own_epoch);
}

void vmm_world_epoch_finish(struct vmm_world *world)
{
	atomic_store(&world->epoch, &world->own_epoch);
	/* an abandoned world may still have sleepers */
	atomic_store(&world->epoch_sleeper_count, 0);
	if (!world->epoch_page.base)
		return;
	vmm_os_watchdog_stop(world->watchdog);
	vmm_os_memory_destroy(&world->epoch_page);
	world->epoch_page.base = NULL;
}
