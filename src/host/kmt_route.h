/* SPDX-License-Identifier: MIT */
/* The route of the D3DKMT calls of this program (kmt_route.c): attaching and entering processes. */
#ifndef VMM_HOST_KMT_ROUTE_H
#define VMM_HOST_KMT_ROUTE_H

#include <stdbool.h>

#include "base/base.h"

struct vmm_process;
struct vmm_report;

/* A process of this program, or none, is attached; this detaches the connection. */
void vmm_kmt_route_attach_here(void);
/* The calling thread has entered a process of this program, or left it. */
void vmm_kmt_route_enter_here(bool process);
/*
 * Returns the process of this program for which the calling thread's next call is executed. NULL:
 * the call is sent to another process, or there is none.
 */
struct vmm_process *vmm_kmt_route_process(void);
/*
 * Identifies the host that the calling thread's calls reach: the address of its world or of the
 * connection to it. NULL: none, or the program has not connected yet.
 */
const void *vmm_kmt_route_system(void);

/*
 * The program has created a host or selected a connection. Its calls look for no host at the
 * default path of the socket.
 */
void vmm_kmt_route_host_here(void);

/* Where calls get an adapter for which the program has no code (src/program). */
struct vmm_kmt_provider {
	/*
	 * Attaches a process of this program, or returns why it cannot. Called by each call that
	 * has no other route, also by several threads at once.
	 */
	vmm_status (*attach)(void);
	void (*ended)(void); /* after each call, if calls are reported */
};
/* The provider must exist until the process ends. */
void vmm_kmt_route_provide(const struct vmm_kmt_provider *provider);

/* Returns the report to which the calls are added; NULL: none. */
struct vmm_report *vmm_kmt_route_report(void);
/* Returns whether calls are reported and no thread is inside one. */
bool vmm_kmt_route_idle(void);
/*
 * Says why a call finds no adapter: in the report, and the first time on the standard error stream.
 */
void vmm_kmt_route_complain(vmm_status status, const char *text);

#endif
