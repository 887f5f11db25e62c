/* SPDX-License-Identifier: MIT */
/*
 * A full memory barrier in all other running threads of the process: membarrier(2), private
 * expedited. It is the rare side of the asymmetric barrier of hazard pointers. A child of fork
 * inherits its parent's registration; should a kernel not do so, vmm_os_fence_others registers
 * again.
 */
#include "os/os_internal.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic bool vmm_os_has_membarrier;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool membarrier_succeeds(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

static void begin(void)
{
	atomic_store(&vmm_os_has_membarrier,
		     membarrier_succeeds(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
			     membarrier_succeeds(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

void vmm_os_fence_begin(void)
{
	pthread_once(&once, begin);
}

void vmm_os_fence_others(void)
{
	if (!atomic_load_explicit(&vmm_os_has_membarrier, memory_order_relaxed))
		return;
	bool others_are_fenced = membarrier_succeeds(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
				 (membarrier_succeeds(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
				  membarrier_succeeds(MEMBARRIER_CMD_PRIVATE_EXPEDITED));

	vmm_assert(others_are_fenced);
}
