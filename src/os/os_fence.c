/* SPDX-License-Identifier: MIT */
/*
 * A fence in all other threads of the process: membarrier(2), private and expedited. A child of fork has its parent's
 * registration; should a system see that otherwise, it is asked for again.
 */
#include "os/os_internal.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic bool vmm_os_fences_others;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool ask_for(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

static void begin(void)
{
	atomic_store(&vmm_os_fences_others, ask_for(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
						    ask_for(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

void vmm_os_fence_begin(void)
{
	pthread_once(&once, begin);
}

void vmm_os_fence_others(void)
{
	if (!atomic_load_explicit(&vmm_os_fences_others, memory_order_relaxed))
		return;
	bool others_are_fenced = ask_for(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
				 (ask_for(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
				  ask_for(MEMBARRIER_CMD_PRIVATE_EXPEDITED));

	vmm_assert(others_are_fenced);
}
