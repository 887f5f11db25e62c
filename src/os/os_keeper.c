/* SPDX-License-Identifier: MIT */
/*
 * A word that says whether this process lives, for others who see it and ask the kernel nothing. A thread holds it as robust
 * futexes are held: when the thread ends, however it does, the kernel marks the word, before anybody hears that the process is gone.
 */
#include "os/os_internal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(VMM_OS_KEEPER_GONE == FUTEX_OWNER_DIED, "the kernel's mark");

struct vmm_os_keeper {
	struct vmm_os *os;
	struct vmm_os_thread *thread;
	_Atomic uint32_t *word;
	_Atomic uint32_t started, stop, turn; /* turn: raised by both of its callers */
	void (*told)(void *context);
	void *context;
	struct robust_list_head head;
	struct robust_list entry;
};

static void keep(void *argument)
{
	struct vmm_os_keeper *keeper = argument;
	struct robust_list_head *before;
	size_t length;

	keeper->entry.next = &keeper->head.list;
	keeper->head.list.next = &keeper->entry;
	keeper->head.futex_offset = (char *)keeper->word - (char *)&keeper->entry;
	vmm_assert(syscall(SYS_get_robust_list, 0, &before, &length) == 0);
	vmm_assert(syscall(SYS_set_robust_list, &keeper->head, sizeof(keeper->head)) == 0);
	atomic_store(keeper->word, (uint32_t)syscall(SYS_gettid));
	atomic_store(&keeper->started, 1);
	vmm_os_wake(keeper->os, &keeper->started, UINT32_MAX);
	while (!atomic_load(&keeper->stop)) {
		uint32_t turn = atomic_load(&keeper->turn);

		keeper->told(keeper->context);
		if (!atomic_load(&keeper->stop))
			(void)!vmm_os_wait(keeper->os, &keeper->turn, turn, VMM_OS_FOREVER,
					   "end of the process", 0);
	}
	atomic_store(keeper->word, VMM_OS_KEEPER_GONE);
	vmm_assert(syscall(SYS_set_robust_list, before, length) == 0);
}

vmm_status vmm_os_keeper_start(struct vmm_os *os, _Atomic uint32_t *word,
			       void (*told)(void *context), void *context,
			       struct vmm_os_keeper **result)
{
	struct vmm_os_keeper *keeper = vmm_calloc(1, sizeof(*keeper));

	vmm_assert(vmm_os_kind(os) == VMM_OS_LINUX);
	if (!keeper)
		return VMM_NO_MEMORY;
	keeper->os = os;
	keeper->word = word;
	keeper->told = told;
	keeper->context = context;
	vmm_status status = vmm_os_thread_create(os, "keeper", keep, keeper, &keeper->thread);
	if (!vmm_ok(status)) {
		vmm_free(keeper);
		return status;
	}
	while (!atomic_load(&keeper->started))
		(void)!vmm_os_wait(os, &keeper->started, 0, VMM_OS_FOREVER, "keeper", 0);
	*result = keeper;
	return VMM_OK;
}

void vmm_os_keeper_tell(struct vmm_os_keeper *keeper)
{
	atomic_fetch_add(&keeper->turn, 1);
	vmm_os_wake(keeper->os, &keeper->turn, UINT32_MAX);
}

void vmm_os_keeper_stop(struct vmm_os_keeper *keeper)
{
	atomic_store(&keeper->stop, 1);
	vmm_os_keeper_tell(keeper);
	vmm_os_thread_join(keeper->thread);
	vmm_free(keeper);
}
