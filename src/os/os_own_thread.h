/* SPDX-License-Identifier: MIT */
/*
 * System threads that the library creates: for the linux back end and for the server of
 * out-of-process clients.
 */
#ifndef VMM_OS_OWN_THREAD_H
#define VMM_OS_OWN_THREAD_H

#include <pthread.h>

#include "base/base.h"

/*
 * Starts a thread that blocks all signals except faults, SIGABRT and SIGPROF: other signals are for
 * the application's threads. `name`: at most 15 characters; NULL: the thread names itself. The
 * thread brings what it needs to be known to a world. Returns false if there is no memory for that,
 * or no thread could be created.
 */
bool vmm_os_start_own_thread(pthread_t *thread, void *(*run)(void *argument), void *argument,
			     const char *name) VMM_MUST_CHECK;

#endif
