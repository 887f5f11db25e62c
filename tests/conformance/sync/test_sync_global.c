/* SPDX-License-Identifier: MIT */
/*
 * Synchronization objects with global handles: opening and lifetime (SHR-01 to SHR-05, SHR-31,
 * SFL-02, SFL-07).
 */
#include "sync_bundle.h"

#include <string.h>
#include <unistd.h>

static const uint32_t types[] = {D3DDDI_SYNCHRONIZATION_MUTEX, D3DDDI_SEMAPHORE, D3DDDI_FENCE,
				 D3DDDI_CPU_NOTIFICATION};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

struct object {
	D3DKMT_HANDLE handle, global;
};

static struct object create(struct sync_world *s, uint32_t type, uint32_t flags, int event)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.Info.SharedHandle = 0xbeef};

	if (type == D3DDDI_CPU_NOTIFICATION)
		args.Info.CPUNotification.Event = (HANDLE)(intptr_t)event;
	assert_int_equal(sync_try_create(s, type, flags, &args), STATUS_SUCCESS);
	return (struct object){args.hSyncObject, args.Info.SharedHandle};
}

static NTSTATUS open_global(D3DKMT_HANDLE global, D3DKMT_HANDLE *handle)
{
	D3DKMT_OPENSYNCHRONIZATIONOBJECT args = {.hSharedHandle = global, .hSyncObject = 0xdead};
	NTSTATUS status = D3DKMTOpenSynchronizationObject(&args);

	assert_true(!status || args.hSyncObject == 0xdead);
	*handle = args.hSyncObject;
	return status;
}

static D3DKMT_HANDLE opened(D3DKMT_HANDLE global)
{
	D3DKMT_HANDLE handle;

	assert_int_equal(open_global(global, &handle), STATUS_SUCCESS);
	return handle;
}

static void is_invalid(struct sync_world *s, D3DKMT_HANDLE global)
{
	D3DKMT_HANDLE none;

	assert_int_equal(open_global(global, &none), STATUS_INVALID_PARAMETER);
	sync_found(s, "SHR-02");
}

static void shr_01_shr_05_shr_31_sfl_02_fen_08_any_process_opens_a_global_handle(void **state)
{
	int event = sync_event();
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	for (uint32_t i = 0; i < TYPES; i++) {
		struct object o = create(&s, types[i], 1, event);

		assert_int_equal(o.global & 0x3F, 2);
		assert_int_not_equal(o.global >> 30, 0);
		D3DKMT_HANDLE one = opened(o.global), two = opened(o.global);
		assert_true(one != two && one != o.handle && !(one & 0x3F));
		/* SHR-31: a process that knows only the number. */
		vidmm_d3dkmt_enter(s.other);
		D3DKMT_HANDLE theirs = opened(o.global);
		assert_int_equal(sync_destroy(theirs), STATUS_SUCCESS);
		D3DKMT_HANDLE again = opened(o.global); /* SHR-05 */
		assert_int_not_equal(again, theirs);
		vidmm_d3dkmt_enter(NULL);
		assert_int_equal(sync_destroy(one), STATUS_SUCCESS);
		assert_int_equal(sync_destroy(one), STATUS_INVALID_PARAMETER);
		sync_found(&s, "SYN-12");
		assert_int_equal(sync_destroy(o.global), STATUS_INVALID_PARAMETER);
		sync_found(&s, "SYN-12");
	}
	close(event);
	sync_stop(&s); /* while both processes still have it open */
}

static void shr_02_sfl_07_sfl_03_opens_of_invalid_global_handles_are_refused(void **state)
{
	int event = sync_event();
	struct sync_world s;
	D3DKMT_HANDLE none;

	sync_start(&s, state, sync_3_0);
	D3DKMT_CREATEKEYEDMUTEX keyed = {0};
	assert_int_equal(D3DKMTCreateKeyedMutex(&keyed), STATUS_SUCCESS);
	struct object o = create(&s, D3DDDI_FENCE, 1, event);
	const D3DKMT_HANDLE bad[] = {0,
				     o.handle,
				     o.global + 0x40,
				     o.global ^ 2,
				     o.global + 1,
				     keyed.hSharedHandle,
				     keyed.hKeyedMutex,
				     s.device,
				     UINT32_MAX};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_invalid(&s, bad[i]);
	/* A global handle of a keyed mutex is refused too. */
	D3DKMT_OPENKEYEDMUTEX open = {.hSharedHandle = o.global};
	assert_int_equal(D3DKMTOpenKeyedMutex(&open), STATUS_INVALID_PARAMETER);
	sync_found(&s, "KMX-03");
	assert_int_equal(sync_destroy(o.handle), STATUS_SUCCESS);
	/* SFL-07: objects shared by NT handles have no global handle, whatever number is tried. */
	for (uint32_t i = 0; i < TYPES; i++) {
		struct object nt = create(&s, types[i], 3, event);

		assert_int_equal(nt.global, 0); /* SFL-06 */
		for (uint32_t n = 0; n < 256; n++)
			is_invalid(&s, n % 4 << 30 | n / 4 << 6 | 2);
	}
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 monitored = {0}; /* SFL-03 */
	assert_int_equal(sync_try_create(&s, D3DDDI_MONITORED_FENCE, 1, &monitored),
			 STATUS_INVALID_PARAMETER);
	sync_found(&s, "SFL-03");
	assert_int_equal(D3DKMTOpenSynchronizationObject(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	assert_int_equal(open_global(0, &none), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SHR-02");
	close(event);
	sync_stop(&s);
}

/* SFL-04: no NT handle either. SYN-19: objects of the first form can be shared in neither way. */
static void sfl_04_syn_19_shr_06_globally_shared_objects_get_no_nt_handle(void **state)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT first = {0};
	int event = sync_event(), nt;
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	for (uint32_t i = 0; i < TYPES; i++) {
		struct object o = create(&s, types[i], 1, event);
		const D3DKMT_HANDLE either[2] = {o.handle, o.global};

		for (uint32_t n = 0; n < 2; n++) {
			assert_int_equal(bundle_share_as(&either[n], 1, NULL, 1, &nt),
					 STATUS_INVALID_PARAMETER);
			sync_found(&s, "SHR-06");
		}
	}
	first.hDevice = s.device;
	first.Info.Type = D3DDDI_SYNCHRONIZATION_MUTEX;
	assert_int_equal(D3DKMTCreateSynchronizationObject(&first), STATUS_SUCCESS);
	assert_int_equal(bundle_share_as(&first.hSyncObject, 1, NULL, 1, &nt),
			 STATUS_INVALID_PARAMETER);
	sync_found(&s, "SHR-06");
	close(event);
	sync_stop(&s);
}

/*
 * The object lives as long as a handle of any process, whichever is destroyed last; then the global
 * handle is invalid.
 */
static void shr_03_shr_04_the_global_handle_ends_with_the_last_local_handle(void **state)
{
	static const uint8_t order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	int event = sync_event();
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	for (uint32_t i = 0; i < TYPES * 6; i++) {
		struct object o = create(&s, types[i / 6], 1, event);
		D3DKMT_HANDLE handle[3] = {o.handle, opened(o.global), 0}, more;

		vidmm_d3dkmt_enter(s.other);
		handle[2] = opened(o.global);
		for (uint32_t n = 0; n < 3; n++) {
			uint32_t which = order[i % 6][n];

			vidmm_d3dkmt_enter(which == 2 ? s.other : NULL);
			assert_int_equal(sync_destroy(handle[which]), STATUS_SUCCESS);
			if (n == 2)
				break;
			assert_int_equal(open_global(o.global, &more), STATUS_SUCCESS);
			assert_int_equal(sync_destroy(more), STATUS_SUCCESS);
		}
		is_invalid(&s, o.global);
		vidmm_d3dkmt_enter(NULL);
	}
	close(event);
	sync_stop(&s);
}

/* SYN-15: as if its handles had been destroyed, the creator's included. */
static void shr_04_syn_15_shr_33_process_end_drops_its_references(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	struct object kept = create(&s, D3DDDI_FENCE, 1, -1),
		      gone = create(&s, D3DDDI_FENCE, 1, -1);
	(void)opened(gone.global);
	vidmm_d3dkmt_enter(s.other);
	D3DKMT_HANDLE theirs = opened(kept.global);
	vidmm_process_close(s.process);
	assert_int_equal(vidmm_process_open(s.w.client.host, "three", &s.process), 0);
	vidmm_d3dkmt_attach(s.process);
	is_invalid(&s, gone.global);
	assert_int_equal(sync_destroy(opened(kept.global)), STATUS_SUCCESS);
	assert_int_equal(sync_destroy(theirs), STATUS_SUCCESS);
	is_invalid(&s, kept.global);
	vidmm_d3dkmt_enter(NULL);
	sync_stop(&s);
}

/*
 * FEN-08: by an NT handle, and as the third object of a bundle; the same for mutexes and
 * semaphores.
 */
static void fen_08_shr_28_each_legacy_type_can_be_the_third_object_of_a_bundle(void **state)
{
	struct sync_world s;
	struct bundle b;

	sync_start(&s, state, sync_3_0);
	bundle_make(&s, &b);
	for (uint32_t i = 0; i < TYPES - 1; i++) {
		D3DKMT_OPENSYNCOBJECTFROMNTHANDLE plain = {0};

		b.sync = create(&s, types[i], 3, -1).handle;
		int nt = bundle_share(&b), alone = bundle_share_one(b.sync);
		assert_int_equal(sync_destroy(b.sync), STATUS_SUCCESS);
		vidmm_d3dkmt_enter(s.other);
		struct bundle o = bundle_open(s.other_device, nt);
		close(bundle_share_one(o.sync)); /* SHR-19 */
		plain.hNtHandle = (HANDLE)(intptr_t)alone;
		assert_int_equal(D3DKMTOpenSyncObjectFromNtHandle(&plain), STATUS_SUCCESS);
		assert_int_equal(sync_destroy(plain.hSyncObject), STATUS_SUCCESS);
		assert_int_equal(sync_destroy(o.sync), STATUS_SUCCESS);
		vidmm_d3dkmt_enter(NULL);
		close(nt);
		close(alone);
	}
	sync_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(shr_01_shr_05_shr_31_sfl_02_fen_08_any_process_opens_a_global_handle),
		ON_BOTH(shr_02_sfl_07_sfl_03_opens_of_invalid_global_handles_are_refused),
		ON_BOTH(sfl_04_syn_19_shr_06_globally_shared_objects_get_no_nt_handle),
		ON_BOTH(shr_03_shr_04_the_global_handle_ends_with_the_last_local_handle),
		ON_BOTH(shr_04_syn_15_shr_33_process_end_drops_its_references),
		ON_BOTH(fen_08_shr_28_each_legacy_type_can_be_the_third_object_of_a_bundle),
	};

	return cmocka_run_group_tests_name("sync global", tests, NULL, NULL);
}
