/* SPDX-License-Identifier: MIT */
/*
 * Text of a deadlock report: every blocked thread, what it waits for and since when; for a mutex
 * also its holder. It is written when the deadlock is found, before main's own wait is ended to
 * deliver it.
 */
#include "os/os_internal.h"

#include <stdio.h>

#define LINE_BYTES 256 /* more than any one line below needs */

static int describe_wait(const struct vmm_os_thread *thread, char *line)
{
	const struct vmm_os_sim_thread *wait = &thread->sim;
	const struct vmm_os_thread *owner;

	if (wait->state == SIM_SLEEPING)
		return snprintf(line, LINE_BYTES, "sleeps for ever");
	if (wait->joining)
		return snprintf(line, LINE_BYTES, "waits for the end of thread \"%s\"",
				wait->joining->name);
	if (!wait->mutex)
		return snprintf(line, LINE_BYTES, "waits for %.120s %llu", wait->why,
				(unsigned long long)wait->detail);
	owner = atomic_load_explicit(&wait->mutex->owner, memory_order_relaxed);
	return snprintf(line, LINE_BYTES, "waits for mutex \"%.80s\" (rank %u) held by \"%s\"",
			wait->mutex->name, wait->mutex->rank, owner ? owner->name : "no thread");
}

static int describe_thread(const struct vmm_os_thread *thread, char *text)
{
	char what[LINE_BYTES];

	describe_wait(thread, what);
	return sprintf(text, "  \"%s\" %s since %llu ns\n", thread->name, what,
		       (unsigned long long)thread->sim.since_ns);
}

/* An idle service thread waits for work from other threads, so it is not part of a deadlock. */
static bool is_blocked(const struct vmm_os_thread *thread)
{
	const struct vmm_os_sim_thread *sim = &thread->sim;

	return sim->state != SIM_ENDED && (sim->state != SIM_WAITING || sim->why);
}

char *vmm_os_sim_describe(struct vmm_os *os)
{
	struct vmm_list *pos;
	uint32_t blocked = 0;
	char *text = vmm_calloc(os->sim.thread_count + 1, LINE_BYTES + VMM_OS_NAME_BYTES + 64);
	char *end = text;

	if (!text)
		return NULL;
	vmm_list_for_each (pos, &os->threads)
		blocked += is_blocked(vmm_container_of(pos, struct vmm_os_thread, link));
	end += sprintf(
		end,
		"deadlock at %llu ns: %u thread%s blocked, none can run, no timer is pending\n",
		(unsigned long long)os->sim.now_ns, blocked, blocked == 1 ? "" : "s");
	vmm_list_for_each (pos, &os->threads) {
		struct vmm_os_thread *thread = vmm_container_of(pos, struct vmm_os_thread, link);

		if (is_blocked(thread))
			end += describe_thread(thread, end);
	}
	return text;
}
