/* SPDX-License-Identifier: MIT */
/*
 * Work that waits for an unlock. From WDDM 2.0 on an instance that the CPU has locked stays
 * in its segment if it could be accessed nowhere else (LOCK-48). What does not fit beside it fits
 * after the unlock. So a command of a hardware queue and an operation of a paging queue wait, if
 * another process holds the lock.
 *
 * The own process's locks are no reason to wait: the thread that would unlock may be waiting for
 * that work.
 *
 * Work that waits has a ticket. It tries again once per event that may have made space, not once
 * per wake-up of the worker: else two waiting devices could evict each other in turn, for as long
 * as the lock is held.
 */
#include "memory/state/state.h"

void vmm_unlock_wait_for(struct vmm_memory *memory, uint32_t process)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	memory->unlock_wait.process = process;
	memory->unlock_wait.helps = false;
}

void vmm_unlock_wait_for_none(struct vmm_memory *memory)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	memory->unlock_wait.process = 0; /* `helps` is still read */
}

bool vmm_unlock_is_awaitable(const struct vmm_memory *memory, const struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return memory->unlock_wait.process && instance->locked_by &&
	       instance->locked_by != memory->unlock_wait.process;
}

void vmm_unlock_note_search(struct vmm_memory *memory, bool locked)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	memory->unlock_wait.helps = locked;
}

bool vmm_unlock_would_help(const struct vmm_adapter *adapter)
{
	vmm_assert_held(&adapter->paging_lock);
	return adapter->memory->unlock_wait.helps;
}

uint64_t vmm_unlock_await(struct vmm_adapter *adapter)
{
	struct vmm_unlock_wait *wait = &adapter->memory->unlock_wait;

	vmm_assert_held(&adapter->paging_lock);
	wait->pending = true;
	/* A thread that ends the waiting work does not wait with it. */
	vmm_progress_signal(adapter);
	return wait->releases + 1;
}

bool vmm_unlock_is_awaited(const struct vmm_adapter *adapter, uint64_t ticket)
{
	vmm_assert_held(&adapter->paging_lock);
	return ticket == adapter->memory->unlock_wait.releases + 1;
}

void vmm_unlock_released(struct vmm_memory *memory)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	memory->unlock_wait.releases++;
	if (vmm_likely(!memory->unlock_wait.pending))
		return;
	memory->unlock_wait.pending = false;
	memory->engine->wake(memory->adapter);
	vmm_progress_signal(memory->adapter);
}
