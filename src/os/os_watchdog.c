/* SPDX-License-Identifier: MIT */
/*
 * Watchdog of the process: a word in shared memory that tells other processes, without a system
 * call, whether this process lives. A thread holds the word as a robust futex. When the thread ends
 * in any way, the kernel sets FUTEX_OWNER_DIED in it, before any other process can learn that this
 * one has ended.
 */
#include "os/os_internal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(VMM_OS_WATCHDOG_GONE == FUTEX_OWNER_DIED, "the kernel's mark");

struct vmm_os_watchdog {
	struct vmm_os *os;
	struct vmm_os_thread *thread;
	_Atomic uint32_t *word;
	_Atomic uint32_t started, stop, turn; /* turn: incremented by notify and stop */
	void (*notify)(void *context);
	void *context;
	struct robust_list_head head;
	struct robust_list entry;
};

static void watch(void *argument)
{
	struct vmm_os_watchdog *watchdog = argument;
	struct robust_list_head *before;
	size_t length;

	watchdog->entry.next = &watchdog->head.list;
	watchdog->head.list.next = &watchdog->entry;
	watchdog->head.futex_offset = (char *)watchdog->word - (char *)&watchdog->entry;
	vmm_assert(syscall(SYS_get_robust_list, 0, &before, &length) == 0);
	vmm_assert(syscall(SYS_set_robust_list, &watchdog->head, sizeof(watchdog->head)) == 0);
	atomic_store(watchdog->word, (uint32_t)syscall(SYS_gettid));
	atomic_store(&watchdog->started, 1);
	vmm_os_wake(watchdog->os, &watchdog->started, UINT32_MAX);
	while (!atomic_load(&watchdog->stop)) {
		uint32_t turn = atomic_load(&watchdog->turn);

		watchdog->notify(watchdog->context);
		if (!atomic_load(&watchdog->stop))
			(void)!vmm_os_wait(watchdog->os, &watchdog->turn, turn, VMM_OS_FOREVER,
					   "end of the process", 0);
	}
	atomic_store(watchdog->word, VMM_OS_WATCHDOG_GONE);
	vmm_assert(syscall(SYS_set_robust_list, before, length) == 0);
}

vmm_status vmm_os_watchdog_start(struct vmm_os *os, _Atomic uint32_t *word,
				 void (*notify)(void *context), void *context,
				 struct vmm_os_watchdog **result)
{
	struct vmm_os_watchdog *watchdog = vmm_calloc(1, sizeof(*watchdog));

	vmm_assert(vmm_os_kind(os) == VMM_OS_LINUX);
	if (!watchdog)
		return VMM_NO_MEMORY;
	watchdog->os = os;
	watchdog->word = word;
	watchdog->notify = notify;
	watchdog->context = context;
	vmm_status status =
		vmm_os_thread_create(os, "watchdog", watch, watchdog, &watchdog->thread);
	if (!vmm_ok(status)) {
		vmm_free(watchdog);
		return status;
	}
	while (!atomic_load(&watchdog->started))
		(void)!vmm_os_wait(os, &watchdog->started, 0, VMM_OS_FOREVER,
				   "start of the watchdog", 0);
	*result = watchdog;
	return VMM_OK;
}

void vmm_os_watchdog_notify(struct vmm_os_watchdog *watchdog)
{
	atomic_fetch_add(&watchdog->turn, 1);
	vmm_os_wake(watchdog->os, &watchdog->turn, UINT32_MAX);
}

void vmm_os_watchdog_stop(struct vmm_os_watchdog *watchdog)
{
	atomic_store(&watchdog->stop, 1);
	vmm_os_watchdog_notify(watchdog);
	vmm_os_thread_join(watchdog->thread);
	vmm_free(watchdog);
}
