/* SPDX-License-Identifier: MIT */
/* The route of the D3DKMT calls of this program (kmt_route.c): attaching and entering processes. */
#ifndef VMM_HOST_KMT_ROUTE_H
#define VMM_HOST_KMT_ROUTE_H

#include <stdbool.h>

/* A process of this program, or none, is attached; this detaches the connection. */
void vmm_kmt_route_attach_here(void);
/* The calling thread has entered a process of this program, or left it. */
void vmm_kmt_route_enter_here(bool process);

#endif
