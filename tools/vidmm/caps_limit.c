/* SPDX-License-Identifier: MIT */
/*
 * A driver that loops or waits for ever does not return, so it runs on another thread. When the
 * time is over, a signal handler on that thread records where it is.
 */
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "caps_limit.h"
#include "code_address.h"
#include "crash.h"

#define FRAMES_MAX   64
#define ANSWER_S     10u /* for the handler, which no driver can hold up for long */
#define ROUTINE_TEXT (VIDMM_PLACE_BYTES + 32)

struct limited {
	void (*run)(void *context);
	void *context;
	sem_t ended;
};

/* What the handler recorded. */
static struct {
	struct vidmm_driver_place place;
	void *frames[FRAMES_MAX];
	int count;
	sem_t recorded;
} stop;

static void *run_it(void *argument)
{
	static char stack[CRASH_STACK_BYTES];
	struct limited *limited = argument;

	crash_use_stack(stack, sizeof(stack));
	limited->run(limited->context);
	(void)sem_post(&limited->ended);
	return NULL;
}

static void record_place(int number)
{
	(void)number;
	(void)vidmm_driver_place(&stop.place);
	stop.count = backtrace(stop.frames, FRAMES_MAX);
	(void)sem_post(&stop.recorded);
}

/* Returns false after `seconds`; 0: waits for ever. */
static bool wait_until(sem_t *semaphore, unsigned seconds)
{
	struct timespec until;
	int result;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	do {
		result = seconds ? sem_timedwait(semaphore, &until) : sem_wait(semaphore);
	} while (result != 0 && errno == EINTR);
	return result == 0;
}

static bool ask_place(pthread_t thread)
{
	struct sigaction action = {.sa_handler = record_place, .sa_flags = SA_RESTART};

	(void)backtrace(stop.frames, 1); /* loads what it needs now, not in the handler */
	(void)sem_init(&stop.recorded, 0, 0);
	sigemptyset(&action.sa_mask);
	return sigaction(SIGRTMIN, &action, NULL) == 0 && pthread_kill(thread, SIGRTMIN) == 0 &&
	       wait_until(&stop.recorded, ANSWER_S);
}

static void describe(unsigned limit_s, const void *entry, char *text, size_t size)
{
	unsigned count = stop.count > 0 ? (unsigned)stop.count : 0,
		 at = code_address_find(stop.frames, count, entry);
	const bool waits = stop.place.waits_in != NULL;
	char routine[ROUTINE_TEXT], function[320] = "";

	crash_routine(&stop.place, routine, sizeof(routine));
	if (at < count)
		code_address_describe(stop.frames[at], true, function, sizeof(function));
	snprintf(text, size,
		 "Q-440: hang: after %u s the driver has not returned from %s: it %s%s%s%s",
		 limit_s, routine, waits ? "waits in " : "runs", waits ? stop.place.waits_in : "",
		 !function[0] ? ""
		 : waits      ? ", called by "
			      : " in ",
		 function);
}

bool caps_run_limited(unsigned limit_s, void (*run)(void *context), void *context,
		      vidmm_driver_entry_fn *entry, char *text, size_t size)
{
	static struct limited limited; /* the thread may outlive this function */
	const void *code;
	pthread_t thread;

	limited = (struct limited){.run = run, .context = context};
	memcpy(&code, &entry, sizeof(code));
	if (sem_init(&limited.ended, 0, 0) != 0 ||
	    pthread_create(&thread, NULL, run_it, &limited) != 0) {
		run(context); /* without a limit */
		return true;
	}
	if (wait_until(&limited.ended, limit_s)) {
		(void)pthread_join(thread, NULL);
		return true;
	}
	/* Another thread may be the one that is in the driver. */
	if (ask_place(thread) && stop.place.routine[0])
		describe(limit_s, code, text, size);
	else
		snprintf(text, size, "Q-440: hang: after %u s the driver has not finished",
			 limit_s);
	return false;
}
