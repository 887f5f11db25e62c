/* SPDX-License-Identifier: MIT */
/* Keyed mutexes (KMX): handles, keys, waits, time limits, and abandoned holders. */
#include "sync_world.h"

#include <string.h>

static D3DKMT_CREATEKEYEDMUTEX create(uint64_t key)
{
	D3DKMT_CREATEKEYEDMUTEX args = {.InitialValue = key};

	assert_int_equal(D3DKMTCreateKeyedMutex(&args), STATUS_SUCCESS);
	return args;
}

static NTSTATUS open_global(D3DKMT_HANDLE global, D3DKMT_HANDLE *handle)
{
	D3DKMT_OPENKEYEDMUTEX args = {.hSharedHandle = global, .hKeyedMutex = 0xdead};
	NTSTATUS status = D3DKMTOpenKeyedMutex(&args);

	assert_true(!status || args.hKeyedMutex == 0xdead);
	*handle = args.hKeyedMutex;
	return status;
}

static NTSTATUS destroy(D3DKMT_HANDLE handle)
{
	const D3DKMT_DESTROYKEYEDMUTEX args = {.hKeyedMutex = handle};

	return D3DKMTDestroyKeyedMutex(&args);
}

/* `timeout` NULL: no limit. */
static NTSTATUS acquire(D3DKMT_HANDLE handle, uint64_t key, const int64_t *timeout, uint64_t *fence)
{
	LARGE_INTEGER limit = {.QuadPart = timeout ? *timeout : 0};
	D3DKMT_ACQUIREKEYEDMUTEX args = {.hKeyedMutex = handle,
					 .Key = key,
					 .pTimeout = timeout ? &limit : NULL,
					 .FenceValue = 0xbeef};
	NTSTATUS status = D3DKMTAcquireKeyedMutex(&args);

	if (status == STATUS_TIMEOUT || status == STATUS_ABANDONED) /* KMX-15, KMX-19 */
		assert_int_equal(args.FenceValue, 0);
	else if (status != STATUS_SUCCESS)
		assert_int_equal(args.FenceValue, 0xbeef);
	if (fence)
		*fence = args.FenceValue;
	return status;
}

static const int64_t at_once = 0;

static NTSTATUS try_acquire(D3DKMT_HANDLE handle, uint64_t key)
{
	return acquire(handle, key, &at_once, NULL);
}

static NTSTATUS release(D3DKMT_HANDLE handle, uint64_t key, uint64_t fence)
{
	D3DKMT_RELEASEKEYEDMUTEX args = {.hKeyedMutex = handle, .Key = key, .FenceValue = fence};

	return D3DKMTReleaseKeyedMutex(&args);
}

struct waiter {
	struct vidmm_process *process;
	D3DKMT_HANDLE handle;
	uint64_t key;
	NTSTATUS result;
	_Atomic uint32_t done;
	struct vidmm_thread *thread;
};

static void wait_in_thread(void *argument)
{
	struct waiter *v = argument;

	vidmm_d3dkmt_enter(v->process);
	v->result = acquire(v->handle, v->key, NULL, NULL);
	atomic_store(&v->done, 1);
	vidmm_d3dkmt_enter(NULL);
}

static void start_waiter(struct sync_world *s, struct waiter *v, D3DKMT_HANDLE handle, uint64_t key)
{
	*v = (struct waiter){.process = s->process, .handle = handle, .key = key};
	assert_int_equal(vidmm_thread_create(s->w.client.host, "waits for a key", wait_in_thread, v,
					     &v->thread),
			 0);
	vidmm_settle(s->w.client.host);
	assert_int_equal(v->done, 0);
}

static NTSTATUS join(struct waiter *v)
{
	vidmm_thread_join(v->thread);
	return v->result;
}

static void kmx_01_kmx_03_kmx_04_kmx_05_kmx_24_handles_are_created_opened_and_ended(void **state)
{
	struct sync_world s;
	D3DKMT_HANDLE second, third, none;

	sync_start(&s, state, sync_3_0);
	assert_int_equal(D3DKMTCreateKeyedMutex(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	D3DKMT_HANDLE fence = sync_fence(&s, 0, 0).handle;
	D3DKMT_CREATEKEYEDMUTEX m = create(1);
	assert_int_equal(m.hKeyedMutex, fence + 0x40); /* KMX-24 */
	assert_int_equal(m.hSharedHandle & 0x3F, 2);
	const D3DKMT_HANDLE bad[] = {0, m.hKeyedMutex, m.hSharedHandle + 0x40, fence};
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(open_global(bad[i], &none), STATUS_INVALID_PARAMETER);
		sync_found(&s, "KMX-03");
	}
	assert_int_equal(open_global(m.hSharedHandle, &second), STATUS_SUCCESS);
	assert_int_not_equal(second, m.hKeyedMutex);
	vidmm_d3dkmt_enter(s.other);
	assert_int_equal(open_global(m.hSharedHandle, &third), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(destroy(m.hKeyedMutex), STATUS_SUCCESS);
	const D3DKMT_HANDLE dead[] = {0, m.hKeyedMutex, m.hSharedHandle, fence};
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(destroy(dead[i]), STATUS_INVALID_PARAMETER);
		sync_found(&s, "KMX-04");
	}
	assert_int_equal(destroy(second), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(s.other);
	assert_int_equal(open_global(m.hSharedHandle, &second), STATUS_SUCCESS);
	assert_int_equal(destroy(second), STATUS_SUCCESS);
	assert_int_equal(destroy(third), STATUS_SUCCESS); /* KMX-05: the last local handle */
	vidmm_d3dkmt_enter(NULL);
	assert_int_equal(open_global(m.hSharedHandle, &none), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-03");
	sync_stop(&s);
}

static void kmx_06_kmx_07_kmx_08_kmx_09_private_data_sizes_are_checked(void **state)
{
	D3DKMT_OPENKEYEDMUTEX2 open = {0};
	char data[8] = "secret", seen[8] = "before";
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	D3DKMT_CREATEKEYEDMUTEX2 args = {.Flags.Value = 1, .hSharedHandle = 0xdead};
	assert_int_equal(D3DKMTCreateKeyedMutex2(&args), STATUS_SUCCESS);
	assert_int_equal(args.hSharedHandle, 0); /* KMX-06 */
	args.Flags.Value = 2;
	assert_int_equal(D3DKMTCreateKeyedMutex2(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-06");
	args = (D3DKMT_CREATEKEYEDMUTEX2){.PrivateRuntimeDataSize = 6};
	assert_int_equal(D3DKMTCreateKeyedMutex2(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-07");
	args.pPrivateRuntimeData = data;
	assert_int_equal(D3DKMTCreateKeyedMutex2(&args), STATUS_SUCCESS);
	memset(data, 'x', sizeof(data)); /* KMX-07: it was copied */
	open.hSharedHandle = args.hSharedHandle;
	open.pPrivateRuntimeData = seen;
	for (uint32_t bytes = 0; bytes < 8; bytes++) {
		open.PrivateRuntimeDataSize = bytes;
		NTSTATUS status = D3DKMTOpenKeyedMutex2(&open);

		assert_int_equal(status, bytes == 0 || bytes == 6 ? STATUS_SUCCESS
								  : STATUS_INVALID_PARAMETER);
		if (status)
			sync_found(&s, "KMX-08");
		assert_int_equal(open.PrivateRuntimeDataSize, bytes);
		assert_string_equal(seen, "before");
	}
	open.pPrivateRuntimeData = NULL;
	open.PrivateRuntimeDataSize = 64;
	assert_int_equal(D3DKMTOpenKeyedMutex2(&open), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-09");
	D3DKMT_CREATEKEYEDMUTEX plain = create(0);
	open = (D3DKMT_OPENKEYEDMUTEX2){.hSharedHandle = plain.hSharedHandle,
					.pPrivateRuntimeData = seen,
					.PrivateRuntimeDataSize = 3};
	assert_int_equal(D3DKMTOpenKeyedMutex2(&open), STATUS_SUCCESS);
	sync_stop(&s);
}

static void kmx_20_acquire_copies_and_release_replaces_private_data(void **state)
{
	char data[8] = "secret", seen[8] = "before";
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	D3DKMT_CREATEKEYEDMUTEX2 m = {.pPrivateRuntimeData = data, .PrivateRuntimeDataSize = 6};
	assert_int_equal(D3DKMTCreateKeyedMutex2(&m), STATUS_SUCCESS);
	D3DKMT_ACQUIREKEYEDMUTEX2 take = {.hKeyedMutex = m.hKeyedMutex,
					  .pPrivateRuntimeData = seen,
					  .PrivateRuntimeDataSize = 7};
	assert_int_equal(D3DKMTAcquireKeyedMutex2(&take), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-20");
	take.PrivateRuntimeDataSize = 6;
	assert_int_equal(D3DKMTAcquireKeyedMutex2(&take), STATUS_SUCCESS);
	assert_string_equal(seen, "secret");
	D3DKMT_RELEASEKEYEDMUTEX2 give = {.hKeyedMutex = m.hKeyedMutex,
					  .pPrivateRuntimeData = data,
					  .PrivateRuntimeDataSize = 7};
	memcpy(data, "public", 6);
	assert_int_equal(D3DKMTReleaseKeyedMutex2(&give), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-20");
	give.PrivateRuntimeDataSize = 6;
	assert_int_equal(D3DKMTReleaseKeyedMutex2(&give), STATUS_SUCCESS);
	assert_int_equal(D3DKMTAcquireKeyedMutex2(&take), STATUS_SUCCESS);
	assert_string_equal(seen, "public");
	give.pPrivateRuntimeData = NULL;
	assert_int_equal(D3DKMTReleaseKeyedMutex2(&give), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-20");
	sync_stop(&s);
}

static void kmx_02_kmx_12_kmx_15_kmx_17_kmx_18_kmx_25_acquire_needs_the_released_key(void **state)
{
	struct sync_world s;
	D3DKMT_HANDLE second;
	uint64_t fence;

	sync_start(&s, state, sync_3_0);
	D3DKMT_CREATEKEYEDMUTEX m = create(5);
	assert_int_equal(open_global(m.hSharedHandle, &second), STATUS_SUCCESS);
	assert_int_equal(release(m.hKeyedMutex, 1, 1), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-17");
	assert_int_equal(try_acquire(m.hKeyedMutex, 4), STATUS_TIMEOUT);
	assert_int_equal(acquire(m.hKeyedMutex, 5, &at_once, &fence), STATUS_SUCCESS);
	assert_int_equal(fence, 0);
	assert_int_equal(try_acquire(m.hKeyedMutex, 5), 0x102); /* KMX-15, KMX-18 */
	assert_int_equal(try_acquire(second, 5), STATUS_TIMEOUT);
	assert_int_equal(release(second, 6, 1), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-17");
	assert_int_equal(release(m.hKeyedMutex, UINT64_MAX, UINT64_MAX), STATUS_SUCCESS);
	assert_int_equal(release(m.hKeyedMutex, 6, 1), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-17");
	assert_int_equal(try_acquire(second, 5), STATUS_TIMEOUT);
	assert_int_equal(try_acquire(second, UINT32_MAX), STATUS_TIMEOUT); /* all 64 bits count */
	assert_int_equal(acquire(second, UINT64_MAX, NULL, &fence), STATUS_SUCCESS);
	assert_true(fence == UINT64_MAX);
	assert_int_equal(release(second, 5, 77), STATUS_SUCCESS);
	assert_int_equal(acquire(m.hKeyedMutex, 5, NULL, &fence), STATUS_SUCCESS);
	assert_int_equal(fence, 77);
	for (uint32_t i = 0; i < 2; i++) { /* KMX-21 */
		assert_int_equal(try_acquire(i ? s.device : 0, 5), STATUS_INVALID_PARAMETER);
		sync_found(&s, "KMX-21");
		assert_int_equal(release(i ? s.device : 0, 5, 0), STATUS_INVALID_PARAMETER);
		sync_found(&s, "KMX-21");
	}
	sync_stop(&s);
}

/* As acquire(), through D3DKMTAcquireKeyedMutex2. */
static NTSTATUS acquire_2(D3DKMT_HANDLE handle, uint64_t key, uint64_t *fence)
{
	LARGE_INTEGER none = {.QuadPart = 0};
	D3DKMT_ACQUIREKEYEDMUTEX2 args = {
		.hKeyedMutex = handle, .Key = key, .pTimeout = &none, .FenceValue = 0xbeef};
	NTSTATUS status = D3DKMTAcquireKeyedMutex2(&args);

	*fence = args.FenceValue;
	return status;
}

static void kmx_15_kmx_19_acquire_sets_the_fence_value_to_0_without_ownership(void **state)
{
	struct sync_world s;
	D3DKMT_HANDLE second;
	uint64_t fence;

	sync_start(&s, state, sync_3_0);
	D3DKMT_CREATEKEYEDMUTEX m = create(5);
	assert_int_equal(open_global(m.hSharedHandle, &second), STATUS_SUCCESS);
	assert_int_equal(try_acquire(m.hKeyedMutex, 5), STATUS_SUCCESS);
	assert_int_equal(release(m.hKeyedMutex, 6, 77), STATUS_SUCCESS);
	assert_int_equal(acquire(m.hKeyedMutex, 5, &at_once, &fence), STATUS_TIMEOUT);
	assert_int_equal(fence, 0);
	assert_int_equal(acquire_2(m.hKeyedMutex, 5, &fence), STATUS_TIMEOUT);
	assert_int_equal(fence, 0);
	assert_int_equal(acquire_2(m.hKeyedMutex, 6, &fence), STATUS_SUCCESS);
	assert_int_equal(fence, 77);
	assert_int_equal(destroy(m.hKeyedMutex), STATUS_SUCCESS); /* abandons it */
	assert_int_equal(acquire(second, 6, &at_once, &fence), STATUS_ABANDONED);
	assert_int_equal(fence, 0);
	assert_int_equal(acquire_2(second, 6, &fence), STATUS_ABANDONED);
	assert_int_equal(fence, 0);
	/* A refused call leaves it as it was. */
	assert_int_equal(acquire_2(m.hKeyedMutex, 6, &fence), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-21");
	assert_int_equal(fence, 0xbeef);
	sync_stop(&s);
}

static void kmx_14_acquire_time_limits_are_relative_or_absolute(void **state)
{
	const int64_t ten_ms = -100000, long_ago = 1;
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	D3DKMT_CREATEKEYEDMUTEX m = create(1);
	uint64_t began = vidmm_now_ns(s.w.client.host);
	assert_int_equal(acquire(m.hKeyedMutex, 2, &ten_ms, NULL), STATUS_TIMEOUT);
	uint64_t took = vidmm_now_ns(s.w.client.host) - began;
	assert_true(took >= 10000000);
	if (s.w.kind == VIDMM_HOST_SIM) {
		/*
		 * In this world system time starts in 1601 with the world; the limit is 5 ms from
		 * now.
		 */
		const int64_t when = (int64_t)((began + took) / 100) + 50000;

		assert_int_equal(took, 10000000);
		assert_int_equal(acquire(m.hKeyedMutex, 2, &when, NULL), STATUS_TIMEOUT);
		assert_int_equal(vidmm_now_ns(s.w.client.host) / 100, when);
	}
	assert_int_equal(acquire(m.hKeyedMutex, 2, &long_ago, NULL), STATUS_TIMEOUT);
	assert_int_equal(acquire(m.hKeyedMutex, 1, &long_ago, NULL), STATUS_SUCCESS);
	sync_stop(&s);
}

static void kmx_13_kmx_16_exactly_one_waiter_of_the_released_key_acquires(void **state)
{
	struct waiter v[4], other;
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	D3DKMT_CREATEKEYEDMUTEX m = create(0);
	assert_int_equal(try_acquire(m.hKeyedMutex, 0), STATUS_SUCCESS);
	start_waiter(&s, &other, m.hKeyedMutex, 1);
	for (uint32_t i = 0; i < 4; i++)
		start_waiter(&s, &v[i], m.hKeyedMutex, 3);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(release(m.hKeyedMutex, 3, i), STATUS_SUCCESS);
		assert_int_equal(join(&v[i]), STATUS_SUCCESS); /* in the order of their calls */
		vidmm_settle(s.w.client.host);
		for (uint32_t k = i + 1; k < 4; k++)
			assert_int_equal(v[k].done, 0);
		assert_int_equal(other.done, 0);                                 /* KMX-13 */
		assert_int_equal(try_acquire(m.hKeyedMutex, 3), STATUS_TIMEOUT); /* it is held */
	}
	assert_int_equal(release(m.hKeyedMutex, 1, 9), STATUS_SUCCESS);
	assert_int_equal(join(&other), STATUS_SUCCESS);
	sync_stop(&s);
}

static void kmx_19_the_end_of_the_holder_abandons_the_mutex(void **state)
{
	struct waiter v;
	struct sync_world s;
	D3DKMT_HANDLE theirs;

	sync_start(&s, state, sync_3_0);
	D3DKMT_CREATEKEYEDMUTEX m = create(0);
	vidmm_d3dkmt_enter(s.other);
	assert_int_equal(open_global(m.hSharedHandle, &theirs), STATUS_SUCCESS);
	assert_int_equal(try_acquire(theirs, 0), STATUS_SUCCESS);
	vidmm_d3dkmt_enter(NULL);
	start_waiter(&s, &v, m.hKeyedMutex, 1);
	vidmm_process_close(s.other);
	assert_int_equal(vidmm_process_open(s.w.client.host, "three", &s.other), 0);
	assert_int_equal(join(&v), STATUS_ABANDONED);
	for (uint64_t key = 0; key < 3; key++)
		assert_int_equal(try_acquire(m.hKeyedMutex, key), STATUS_ABANDONED);
	assert_int_equal(release(m.hKeyedMutex, 0, 0), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-17");
	/* A mutex that was released before its holder ended is not abandoned. */
	m = create(0);
	assert_int_equal(open_global(m.hSharedHandle, &theirs), STATUS_SUCCESS);
	assert_int_equal(try_acquire(theirs, 0), STATUS_SUCCESS);
	assert_int_equal(release(theirs, 4, 0), STATUS_SUCCESS);
	assert_int_equal(destroy(theirs), STATUS_SUCCESS);
	assert_int_equal(try_acquire(m.hKeyedMutex, 4), STATUS_SUCCESS);
	sync_stop(&s);
}

static void kmx_22_destroying_a_handle_ends_acquires_that_wait_through_it(void **state)
{
	struct waiter v, through_second;
	struct sync_world s;
	D3DKMT_HANDLE second;

	sync_start(&s, state, sync_3_0);
	D3DKMT_CREATEKEYEDMUTEX m = create(0);
	assert_int_equal(open_global(m.hSharedHandle, &second), STATUS_SUCCESS);
	start_waiter(&s, &v, m.hKeyedMutex, 1);
	start_waiter(&s, &through_second, second, 1);
	assert_int_equal(destroy(m.hKeyedMutex), STATUS_SUCCESS);
	assert_int_equal(join(&v), STATUS_CANCELLED);
	vidmm_settle(s.w.client.host);
	assert_int_equal(through_second.done, 0);
	assert_int_equal(try_acquire(second, 0), STATUS_SUCCESS);
	assert_int_equal(release(second, 1, 0), STATUS_SUCCESS);
	assert_int_equal(join(&through_second), STATUS_SUCCESS);
	sync_stop(&s);
}

static void kmx_11_a_keyed_mutex_cannot_be_shared_alone(void **state)
{
	struct sync_world s;
	HANDLE nt;

	sync_start(&s, state, sync_3_0);
	D3DKMT_CREATEKEYEDMUTEX m = create(0);
	D3DKMT_CREATEKEYEDMUTEX2 secure = {.Flags.Value = 1};
	assert_int_equal(D3DKMTCreateKeyedMutex2(&secure), STATUS_SUCCESS);
	const D3DKMT_HANDLE handles[] = {m.hKeyedMutex, m.hSharedHandle, secure.hKeyedMutex};
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(D3DKMTShareObjects(1, &handles[i], NULL, 1, &nt),
				 STATUS_INVALID_PARAMETER);
		sync_found(&s, "SHR-06");
	}
	sync_stop(&s);
}

/* Eight threads pass it on by their keys; a lost wake-up is a hang. */
enum { PLAYERS = 8, ROUNDS = 300 };
struct player {
	D3DKMT_HANDLE handle;
	uint64_t key;
	_Atomic uint64_t *turn;
	uint32_t failures;
	struct vidmm_thread *thread;
};

static void play(void *argument)
{
	struct player *p = argument;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t fence;

		p->failures += acquire(p->handle, p->key, NULL, &fence) != STATUS_SUCCESS;
		p->failures += fence != round * PLAYERS + p->key || *p->turn != fence;
		atomic_fetch_add(p->turn, 1);
		p->failures += release(p->handle, (p->key + 1) % PLAYERS, fence + 1) != 0;
	}
}

static void kmx_12_kmx_16_no_hand_over_is_lost(void **state)
{
	struct player players[PLAYERS];
	_Atomic uint64_t turn = 0;
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	D3DKMT_CREATEKEYEDMUTEX m = create(0);
	for (uint64_t i = 0; i < PLAYERS; i++) {
		players[i] = (struct player){.key = i, .turn = &turn};
		assert_int_equal(open_global(m.hSharedHandle, &players[i].handle), 0);
		assert_int_equal(vidmm_thread_create(s.w.client.host, "plays", play, &players[i],
						     &players[i].thread),
				 0);
	}
	for (uint32_t i = 0; i < PLAYERS; i++) {
		vidmm_thread_join(players[i].thread);
		assert_int_equal(players[i].failures, 0);
	}
	assert_int_equal(turn, PLAYERS * ROUNDS);
	sync_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(kmx_01_kmx_03_kmx_04_kmx_05_kmx_24_handles_are_created_opened_and_ended),
		ON_BOTH(kmx_06_kmx_07_kmx_08_kmx_09_private_data_sizes_are_checked),
		ON_BOTH(kmx_20_acquire_copies_and_release_replaces_private_data),
		ON_BOTH(kmx_02_kmx_12_kmx_15_kmx_17_kmx_18_kmx_25_acquire_needs_the_released_key),
		ON_BOTH(kmx_15_kmx_19_acquire_sets_the_fence_value_to_0_without_ownership),
		ON_BOTH(kmx_14_acquire_time_limits_are_relative_or_absolute),
		ON_BOTH(kmx_13_kmx_16_exactly_one_waiter_of_the_released_key_acquires),
		ON_BOTH(kmx_19_the_end_of_the_holder_abandons_the_mutex),
		ON_BOTH(kmx_22_destroying_a_handle_ends_acquires_that_wait_through_it),
		ON_BOTH(kmx_11_a_keyed_mutex_cannot_be_shared_alone),
		ON_BOTH(kmx_12_kmx_16_no_hand_over_is_lost),
	};

	return cmocka_run_group_tests_name("sync keyed", tests, NULL, NULL);
}
