/* SPDX-License-Identifier: MIT */
/*
 * Changes of a world that a module above the core watches: adapters that arrive and end, and
 * budgets. A change increments a word and wakes the threads that wait for that word. The threads
 * find out for themselves what has changed. Without a watcher a change costs one load.
 */
#include "object/object.h"

void vmm_world_watch(struct vmm_world *world, const struct vmm_world_watcher *watcher)
{
	atomic_store(&world->watcher, watcher);
}

void vmm_world_changed(struct vmm_world *world)
{
	if (vmm_likely(!atomic_load(&world->watcher)))
		return;
	atomic_fetch_add(&world->changes, 1);
	vmm_os_wake(world->os, &world->changes, UINT32_MAX);
}

void vmm_world_process_ends(struct vmm_world *world, struct vmm_process *process)
{
	const struct vmm_world_watcher *watcher = atomic_load(&world->watcher);

	if (vmm_unlikely(watcher))
		watcher->process_ends(world, process);
}

void vmm_world_ends(struct vmm_world *world)
{
	const struct vmm_world_watcher *watcher = atomic_load(&world->watcher);

	if (vmm_unlikely(watcher))
		watcher->world_ends(world);
	atomic_store(&world->watcher, NULL);
}
