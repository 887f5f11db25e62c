/* SPDX-License-Identifier: MIT */
/*
 * Accounts: the host memory and events charged to a process, and their limits. An account is
 * reference-counted, because objects made for the process can outlive it.
 */
#include "object/object.h"

struct vmm_account *vmm_account_create(uint64_t limit_bytes)
{
	struct vmm_account *account = vmm_calloc(1, sizeof(*account));

	if (!account)
		return NULL;
	atomic_store(&account->references, 1);
	account->limit_bytes = limit_bytes;
	return account;
}

struct vmm_account *vmm_account_get(struct vmm_account *account)
{
	if (account)
		atomic_fetch_add(&account->references, 1);
	return account;
}

void vmm_account_put(struct vmm_account *account)
{
	if (!account || atomic_fetch_sub(&account->references, 1) != 1)
		return;
	/* Every charge holds a reference or has been refunded. */
	vmm_assert(!atomic_load(&account->bytes) && !atomic_load(&account->events));
	vmm_free(account);
}

bool vmm_account_charge(struct vmm_account *account, uint64_t bytes)
{
	if (!account)
		return true;
	uint64_t before = atomic_fetch_add(&account->bytes, bytes);

	if (!account->limit_bytes ||
	    (before < account->limit_bytes && bytes <= account->limit_bytes - before))
		return true;
	atomic_fetch_sub(&account->bytes, bytes);
	atomic_fetch_add(&account->refused, 1);
	return false;
}

bool vmm_process_charge_queued(const struct vmm_process *process, uint32_t handle, const char *what,
			       uint64_t bytes)
{
	if (vmm_likely(vmm_account_charge(process->account, bytes)))
		return true;
	vmm_reason(process->world->observe, VMM_NO_MEMORY, process->id, handle,
		   "Q-150: %s keeps %llu bytes: process %u has as much system memory as it may",
		   what, (unsigned long long)bytes, process->id);
	return false;
}

void vmm_account_refund(struct vmm_account *account, uint64_t bytes)
{
	if (account)
		vmm_assert(atomic_fetch_sub(&account->bytes, bytes) >= bytes);
}

bool vmm_account_take_event(struct vmm_account *account)
{
	if (!account)
		return true;
	uint32_t before = atomic_fetch_add(&account->events, 1);

	if (!account->events_limit || before < account->events_limit) {
		(void)vmm_account_get(account);
		return true;
	}
	atomic_fetch_sub(&account->events, 1);
	atomic_fetch_add(&account->refused, 1);
	return false;
}

void vmm_account_put_event(struct vmm_account *account)
{
	if (!account)
		return;
	vmm_assert(atomic_fetch_sub(&account->events, 1) > 0);
	vmm_account_put(account);
}
