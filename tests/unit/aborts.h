/* SPDX-License-Identifier: MIT */
/* Runs a call that must abort: for the asserts that detect internal errors of the library. */
#ifndef VMM_TESTS_UNIT_ABORTS_H
#define VMM_TESTS_UNIT_ABORTS_H

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

static inline bool aborts(void (*fn)(void *arg), void *arg)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		/* The assertion's message is expected; it would only disturb the test's own output.
		 */
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		fn(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
