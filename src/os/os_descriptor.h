/* SPDX-License-Identifier: MIT */
/* What a descriptor of a client refers to. */
#ifndef VMM_OS_DESCRIPTOR_H
#define VMM_OS_DESCRIPTOR_H

#include <stdbool.h>

/*
 * Returns whether the descriptor refers to the anonymous file of that name, such as "[eventfd]".
 * Only the name in /proc distinguishes it from other descriptors.
 */
bool vmm_os_is_anonymous_file(int fd, const char *name);

#endif
