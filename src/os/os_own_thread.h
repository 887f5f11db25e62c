/* SPDX-License-Identifier: MIT */
/* Threads of the system's that the library makes for itself: of the linux back end, and of whoever serves other processes. */
#ifndef VMM_OS_OWN_THREAD_H
#define VMM_OS_OWN_THREAD_H

#include <pthread.h>

#include "base/base.h"

/* The application's signals are its own threads' business; faults stay deliverable. `name`: at most 15 characters; NULL: it names itself. */
bool vmm_os_start_own_thread(pthread_t *thread, void *(*run)(void *argument), void *argument,
			     const char *name) VMM_MUST_CHECK;

#endif
