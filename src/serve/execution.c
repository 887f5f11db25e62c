/* SPDX-License-Identifier: MIT */
/*
 * Whether a client has executed a mapping. Memory that is not mapped yet cannot be write-protected,
 * but a store of the client may follow at any time. So the host waits until the client has executed
 * the mapping. A client executes instructions on a thread for them, which waits for no answer.
 */
#include "serve/serve_private.h"

#include <time.h>

#include "base/lock_word.h"
#include "serve/view_records.h"
#include "serve/write_protector.h"

enum { PAUSE_MIN_NS = 20000, PAUSE_MAX_NS = 1000000 };

/*
 * A client has executed the instructions that an answer named before it sends its next request on
 * that channel. A client with lock words also stores the number in shared memory. If it lies, only
 * its own stores are lost.
 */
bool vmm_views_is_executed_locked(const struct vmm_views *views, uint64_t address)
{
	const struct vmm_view_record *record;
	uint64_t executed;

	vmm_assert_held(&views->lock);
	record = vmm_view_records_find(views->records, address);
	executed = atomic_load(&views->executed);
	if (views->words)
		executed = vmm_max_u64(executed, atomic_load(&views->words->executed));
	return record && (views->config.view_sent || record->mapped <= executed);
}

/* Waiting is needless if the mapping is executed, and useless if nothing can be protected. */
static bool is_settled(struct vmm_views *views, uint64_t address)
{
	vmm_views_lock(views);
	bool settled = views->dead || views->late || views->config.single_threaded ||
		       views->config.userfault < 0 || vmm_views_is_executed_locked(views, address);
	vmm_views_unlock(views);
	return settled;
}

static bool is_past(const struct timespec *deadline)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec != deadline->tv_sec ? now.tv_sec > deadline->tv_sec
					      : now.tv_nsec >= deadline->tv_nsec;
}

static void note_late(struct vmm_views *views)
{
	vmm_views_lock(views);
	views->late = true;
	vmm_views_unlock(views);
	atomic_fetch_add(views->config.late, 1);
}

void vmm_views_await_execution(struct vmm_views *views, uint64_t address)
{
	struct timespec pause = {.tv_nsec = PAUSE_MIN_NS}, deadline;

	if (is_settled(views, address))
		return;
	deadline = vmm_write_protector_deadline(atomic_load(views->config.late));
	while (!is_settled(views, address)) {
		if (is_past(&deadline)) {
			note_late(views);
			return;
		}
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		if (pause.tv_nsec < PAUSE_MAX_NS)
			pause.tv_nsec *= 2;
	}
}
