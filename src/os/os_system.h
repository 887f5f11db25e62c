/* SPDX-License-Identifier: MIT */
/*
 * System calls that the kernel may refuse, each with its failure point (base/failure.h). Files of
 * this module make these calls here only.
 */
#ifndef VMM_OS_OS_SYSTEM_H
#define VMM_OS_OS_SYSTEM_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/failure.h"

/* mmap; MAP_FAILED if the kernel or a test refuses. */
static inline void *vmm_os_mmap(void *address, size_t length, int access, int flags)
{
	return vmm_fails(VMM_FAIL_MAPPING) ? MAP_FAILED
					   : mmap(address, length, access, flags, -1, 0);
}

/* mprotect that grants access, which may split the kernel's record of the mapping. */
static inline bool vmm_os_grant(void *address, size_t length)
{
	return !vmm_fails(VMM_FAIL_MAPPING) &&
	       mprotect(address, length, PROT_READ | PROT_WRITE) == 0;
}

static inline int vmm_os_memfd(const char *name, unsigned flags)
{
	return vmm_fails(VMM_FAIL_DESCRIPTOR) ? -1 : memfd_create(name, flags);
}

/* A descriptor above the standard three. */
static inline int vmm_os_duplicate(int fd)
{
	return vmm_fails(VMM_FAIL_DESCRIPTOR) ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static inline int vmm_os_open(const char *path, int how)
{
	return vmm_fails(VMM_FAIL_DESCRIPTOR) ? -1 : open(path, how | O_CLOEXEC);
}

/*
 * Removes a mapping. A kernel that has no memory to split its record of a mapping refuses; the
 * range then loses its access, and its addresses stay in use until the process ends.
 */
void vmm_os_munmap(void *address, size_t length);

#endif
