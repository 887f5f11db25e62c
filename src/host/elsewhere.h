/* SPDX-License-Identifier: MIT */
/* Where the D3DKMT functions of this program go (elsewhere.c): what is said of processes in it. */
#ifndef VMM_HOST_ELSEWHERE_H
#define VMM_HOST_ELSEWHERE_H

#include <stdbool.h>

/* A process of this program, or none, is attached: no connection is any more. */
void vmm_elsewhere_attach_here(void);
/* The calling thread has entered a process of this program, or left it. */
void vmm_elsewhere_enter_here(bool process);

#endif
