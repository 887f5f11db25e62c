/* SPDX-License-Identifier: MIT */
/*
 * The memory that waits of a client take in the host is charged to the client. tests/serve
 * has the waits of contexts.
 */
#include "fence_world.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sync/packet.h"

static uint64_t memory(struct world *w)
{
	struct vidmm_client_info info[1];

	assert_int_equal(vidmm_server_clients(w->server, info, 1), 1);
	return info->memory_bytes;
}

enum { MANY = 500 };
static NTSTATUS await_many(struct program *p, uint64_t value, int event)
{
	D3DKMT_HANDLE handles[MANY];
	UINT64 values[MANY];

	for (uint32_t i = 0; i < MANY; i++) {
		handles[i] = p->fence;
		values[i] = value;
	}
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = {.hDevice = p->device,
								 .ObjectCount = MANY,
								 .ObjectHandleArray = handles,
								 .FenceValueArray = values,
								 .hAsyncEvent =
									 (HANDLE)(intptr_t)event};

	(void)vidmm_connection_enter(p->connection);
	return D3DKMTWaitForSynchronizationObjectFromCpu(&args);
}

/*
 * Makes waits with an event until the client's limit is reached. Returns their number, and the
 * charge of each.
 */
static uint32_t fill_up(struct world *w, struct program *p, int event, uint32_t most,
			uint64_t *each)
{
	uint64_t before = memory(w);
	uint32_t count = 0;

	while (count < most && await(p, 7, event) == STATUS_SUCCESS)
		count++;
	*each = count ? (memory(w) - before) / count : 0;
	assert_int_equal(memory(w), before + *each * count);
	return count;
}

static void await_memory(struct world *w, uint64_t bytes)
{
	/* The event is signaled before the charge of its wait is refunded. */
	while (memory(w) != bytes)
		sched_yield();
}

static void q_150_waits_with_events_are_charged(void **state)
{
	enum { COUNT = 20, ROOM = 5 };
	const int event = eventfd(0, EFD_CLOEXEC);
	struct program p;
	struct world w;
	uint64_t each, least;

	(void)state;
	assert_true(event >= 0);
	start(&w);
	come(&p, &w);
	make(&p, 0);
	uint64_t before = memory(&w);
	assert_int_equal(fill_up(&w, &p, event, COUNT, &each), COUNT);
	assert_true(each > 0);
	/* A wait for many fences is charged more, and refunded once it is over. */
	assert_int_equal(await_many(&p, 7, event), STATUS_SUCCESS);
	least = memory(&w) - before - COUNT * each;
	assert_true(least > MANY * sizeof(struct vmm_sync_node));
	raise_to(&p, 7);
	await_memory(&w, before);
	/* A wait in the call itself is charged, too, until the call returns. */
	assert_int_equal(await_many(&p, 7, 0), STATUS_SUCCESS);
	assert_int_equal(memory(&w), before);
	go(&p);
	stop(&w);

	start_with(&w, before + ROOM * each + each / 2);
	come(&p, &w);
	make(&p, 0);
	assert_int_equal(memory(&w), before);
	assert_int_equal(fill_up(&w, &p, event, COUNT, &each), ROOM);
	assert_int_equal(await(&p, 7, event), STATUS_INSUFFICIENT_RESOURCES);
	/* This wait would last forever; it is refused at once. */
	assert_int_equal(await_many(&p, 7, 0), STATUS_INSUFFICIENT_RESOURCES);
	assert_int_equal(await_many(&p, 7, event), STATUS_INSUFFICIENT_RESOURCES);
	assert_int_equal(memory(&w), before + ROOM * each);
	raise_to(&p, 7);
	await_memory(&w, before);
	assert_int_equal(fill_up(&w, &p, event, ROOM, &each),
			 ROOM); /* satisfied at once: nothing is charged */
	assert_int_equal(memory(&w), before);
	go(&p);
	stop(&w);
	close(event);
}

/* The fence ends, then the client; the account itself checks that all charges are refunded. */
static void q_150_cancelled_waits_are_refunded(void **state)
{
	const int event = eventfd(0, EFD_CLOEXEC);
	struct program p;
	struct world w;

	(void)state;
	start(&w);
	come(&p, &w);
	uint64_t before = memory(&w);
	make(&p, 0);
	assert_int_equal(await_many(&p, 7, event), STATUS_SUCCESS);
	assert_true(memory(&w) > before + MANY * sizeof(struct vmm_sync_node));
	const D3DKMT_DESTROYSYNCHRONIZATIONOBJECT end = {.hSyncObject = p.fence};
	assert_int_equal(D3DKMTDestroySynchronizationObject(&end), STATUS_SUCCESS);
	await_memory(&w, before);
	make(&p, 0);
	assert_int_equal(await_many(&p, 7, event), STATUS_SUCCESS);
	go(&p);
	stop(&w);
	close(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(q_150_waits_with_events_are_charged),
		cmocka_unit_test(q_150_cancelled_waits_are_refunded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
