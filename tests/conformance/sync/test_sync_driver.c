/* SPDX-License-Identifier: MIT */
/*
 * CPU notifications that the miniport signals: their objects, the signals, calls that are refused
 * to clients, and the usage escape (CPN).
 */
#include "sync_world.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#define BY_KMD 0x100u

static NTSTATUS try_make(struct sync_world *s, int event, D3DKMT_HANDLE *handle)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 args = {.hSyncObject = 0xdead};

	args.Info.CPUNotification.Event = (HANDLE)(uintptr_t)event;
	NTSTATUS status = sync_try_create(s, D3DDDI_CPU_NOTIFICATION, BY_KMD, &args);
	*handle = args.hSyncObject;
	return status;
}

static D3DKMT_HANDLE make(struct sync_world *s, int event)
{
	D3DKMT_HANDLE handle;

	assert_int_equal(try_make(s, event, &handle), STATUS_SUCCESS);
	return handle;
}

/* The handle that the miniport got for the n-th event. */
static HANDLE given(const struct sync_world *s, uint32_t n)
{
	return scripted_nth(s->w.m, VIDMM_DDI_CREATE_CPU_EVENT, n)->in.cpu_event.hDxgCpuEvent;
}

static NTSTATUS signal_as(const struct sync_world *s, HANDLE process, HANDLE event, UINT flags)
{
	const DXGKARGCB_SIGNALEVENT args = {
		.hDxgkProcess = process, .hEvent = event, .Flags = flags};

	return s->w.m->services.DxgkCbSignalEvent(&args);
}

static void at_2_5(struct scripted_miniport *m)
{
	sync_2_0(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_5);
}

static void at_2_9(struct scripted_miniport *m)
{
	sync_2_0(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_9);
}

/* DxgkCbSignalEvent is older (2.5), but its CpuEventObject and the DDIs of the event are not. */
static void sfl_32_signal_by_kmd_exists_from_wddm_3_0_on(void **state)
{
	world_setup *const earlier[] = {at_2_5, at_2_9};
	struct sync_world s;
	D3DKMT_HANDLE handle;

	for (size_t i = 0; i < 2; i++) {
		sync_start(&s, state, earlier[i]);
		int event = sync_event();
		assert_int_equal(try_make(&s, event, &handle), STATUS_INVALID_PARAMETER);
		assert_non_null(strstr(s.w.client.finding[0],
				       "SignalByKmd exists from WDDM 3.0 (0xF000) on"));
		sync_found(&s, "SFL-32");
		close(event);
		sync_stop(&s);
	}
	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	(void)make(&s, event);
	close(event);
	sync_stop(&s);
}

static void cpn_07_sfl_24_each_miniport_signal_sets_the_event_once(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event(), other = sync_event();
	D3DKMT_HANDLE handle = make(&s, event);
	D3DKMT_HANDLE second = make(&s, other);
	const struct scripted_call *call = scripted_nth(s.w.m, VIDMM_DDI_CREATE_CPU_EVENT, 0);
	assert_int_equal(call->irql, 0);
	assert_int_equal(call->in.cpu_event.Flags.Value, 0);
	assert_non_null(call->in.cpu_event.hDxgCpuEvent);
	assert_non_null(call->in.cpu_event.hKmdDevice);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(signal_as(&s, NULL, given(&s, 0), 1), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 3);
	assert_int_equal(sync_events(other), 0);
	assert_int_equal(signal_as(&s, NULL, given(&s, 1), 1), STATUS_SUCCESS);
	assert_int_equal(sync_events(event), 0);
	assert_int_equal(sync_events(other), 1);
	assert_int_equal(sync_destroy(handle), STATUS_SUCCESS);
	assert_int_equal(sync_destroy(second), STATUS_SUCCESS);
	close(event);
	close(other);
	sync_stop(&s);
}

/* Invalid signals of the miniport, from inside a DDI, so that findings name the adapter. */
struct mistakes {
	struct sync_world *s;
	NTSTATUS status[5];
	HANDLE dead;
};

static void make_mistakes(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct mistakes *x = context;
	HANDLE good = given(x->s, 1);

	(void)m;
	if (call->ddi != VIDMM_DDI_ESCAPE)
		return;
	x->status[0] = signal_as(x->s, x->s, good, 1);    /* a process handle */
	x->status[1] = signal_as(x->s, NULL, good, 3);    /* a reserved bit */
	x->status[2] = signal_as(x->s, NULL, x->dead, 1); /* it was destroyed */
	x->status[3] = signal_as(x->s, NULL, x, 1);       /* never existed */
	x->status[4] = signal_as(x->s, NULL, good, 0);    /* of a virtual machine */
}

static NTSTATUS escape_as(struct sync_world *s, D3DKMT_ESCAPE *args,
			  D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE *record)
{
	args->hAdapter = s->adapter;
	args->Type = D3DKMT_ESCAPE_DRIVERPRIVATE;
	args->Flags.DriverKnownEscape = 1;
	args->pPrivateDriverData = record;
	args->PrivateDriverDataSize = sizeof(*record);
	return D3DKMTEscape(args);
}

static NTSTATUS escape(struct sync_world *s, D3DKMT_HANDLE handle)
{
	D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE record = {
		.EscapeType = D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE, .hSyncObject = handle};
	D3DKMT_ESCAPE args = {0};

	return escape_as(s, &args, &record);
}

static void cpn_07_invalid_miniport_signals_are_refused(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	D3DKMT_HANDLE dead = make(&s, event), handle = make(&s, event);
	assert_int_equal(sync_destroy(dead), STATUS_SUCCESS);
	struct mistakes x = {.s = &s, .dead = given(&s, 0)};
	s.w.m->hook = make_mistakes;
	s.w.m->hook_context = &x;
	assert_int_equal(escape(&s, handle), STATUS_SUCCESS);
	s.w.m->hook = NULL;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(x.status[i], STATUS_INVALID_PARAMETER);
	assert_int_equal(x.status[4], STATUS_NOT_SUPPORTED);
	assert_int_equal(s.w.client.findings, 4);
	assert_true(client_found(&s.w.client, "CPN-07"));
	client_forget(&s.w.client);
	assert_int_equal(sync_events(event), 0);
	close(event);
	sync_stop(&s);
}

static void cpn_05_client_waits_and_signals_are_refused(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	D3DKMT_HANDLE handle = make(&s, event);
	assert_int_equal(sync_wait(s.device, handle, 0), STATUS_INVALID_PARAMETER);
	sync_found(&s, "CPN-05");
	assert_int_equal(sync_wait_event(s.device, handle, 0, event), STATUS_INVALID_PARAMETER);
	sync_found(&s, "CPN-05");
	assert_int_equal(sync_signal(s.device, handle, 1), STATUS_INVALID_PARAMETER);
	sync_found(&s, "CPN-05");
	assert_int_equal(sync_events(event), 0);
	close(event);
	sync_stop(&s);
}

static void cpn_06_destroycpuevent_is_called_at_handle_device_or_process_end(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	D3DKMT_HANDLE first = s.device, one = make(&s, event);
	assert_int_equal(sync_destroy(one), STATUS_SUCCESS);
	const struct scripted_call *end = scripted_nth(s.w.m, VIDMM_DDI_DESTROY_CPU_EVENT, 0);
	assert_ptr_equal(end->handle, scripted_nth(s.w.m, VIDMM_DDI_CREATE_CPU_EVENT, 0)->handle);
	assert_int_equal(end->irql, 0);
	s.device = sync_open_device(&s);
	D3DKMT_HANDLE two = make(&s, event);
	const D3DKMT_DESTROYDEVICE close_it = {.hDevice = s.device};
	assert_int_equal(D3DKMTDestroyDevice(&close_it), STATUS_SUCCESS);
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_DESTROY_CPU_EVENT), 2);
	assert_int_equal(s.w.m->live_events, 0);
	assert_int_equal(sync_destroy(two), STATUS_INVALID_PARAMETER);
	sync_found(&s, "SYN-12");
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_DESTROY_CPU_EVENT), 2);
	s.device = first;
	D3DKMT_HANDLE three = make(&s, event); /* left for the end of the process */
	assert_int_not_equal(three, 0);
	close(event); /* CPN-01 */
	assert_int_equal(signal_as(&s, NULL, given(&s, 2), 1), STATUS_SUCCESS);
	vidmm_process_close(s.process);
	s.process = NULL;
	assert_int_equal(s.w.m->live_events, 0);
	sync_stop(&s);
}

/* All are destroyed before StopDevice. */
static void count_at_stop(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	(void)context;
	if (call->ddi == VIDMM_DDI_STOP_DEVICE)
		assert_int_equal(m->live_events, 0);
}

/* The adapter stops while the device exists. */
static void cpn_06_destroycpuevent_is_called_at_adapter_stop(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	(void)make(&s, event);
	assert_int_equal(s.w.m->live_events, 1);
	s.w.m->hook = count_at_stop;
	vidmm_adapter_stop(s.w.client.adapter);
	s.w.client.adapter = NULL;
	assert_int_equal(s.w.m->live_events, 0);
	assert_int_equal(s.w.m->live_devices, 0);
	close(event);
	vidmm_process_close(s.process);
	vidmm_process_close(s.other);
	vidmm_process_close(s.w.device.process);
	client_stop(&s.w.client);
	scripted_destroy(s.w.m);
}

static void cpn_08_a_failed_createcpuevent_fails_the_creation(void **state)
{
	static const NTSTATUS failures[] = {STATUS_NO_MEMORY, STATUS_UNSUCCESSFUL,
					    STATUS_INVALID_PARAMETER};
	struct sync_world s;
	D3DKMT_HANDLE handle;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	for (uint32_t i = 0; i < 3; i++) {
		scripted_fail(s.w.m, VIDMM_DDI_CREATE_CPU_EVENT, failures[i], 1);
		assert_int_equal(try_make(&s, event, &handle), failures[i]);
		assert_int_equal(handle, 0xdead);
	}
	scripted_fail(s.w.m, VIDMM_DDI_CREATE_CPU_EVENT, STATUS_PENDING, 1);
	assert_int_equal(try_make(&s, event, &handle), STATUS_INVALID_PARAMETER);
	sync_found(&s, "CPN-08");
	assert_int_equal(scripted_count(s.w.m, VIDMM_DDI_DESTROY_CPU_EVENT), 0);
	(void)make(&s, event);
	close(event);
	sync_stop(&s);
}

static void without_events(struct scripted_miniport *m)
{
	sync_3_0(m);
	m->settings.table.DxgkDdiCreateCpuEvent = NULL;
}

static void cpn_08_signal_by_kmd_needs_the_event_ddis(void **state)
{
	struct sync_world s;
	D3DKMT_HANDLE handle;

	sync_start(&s, state, without_events);
	int event = sync_event();
	assert_int_equal(try_make(&s, event, &handle), STATUS_NOT_SUPPORTED);
	assert_int_equal(handle, 0xdead);
	close(event);
	sync_stop(&s);
}

static void cpn_10_the_usage_escape_reaches_the_miniport(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	D3DKMT_HANDLE handle = make(&s, event);
	D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE record = {.EscapeType =
							    D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE,
						    .hSyncObject = handle,
						    .hKmdCpuEvent = 0xdead,
						    .Usage = {1, 2, 3, 4, 5, 6, 7, 8}};
	D3DKMT_ESCAPE args = {.Flags.NoAdapterSynchronization = 1};
	const struct scripted_call *made = scripted_nth(s.w.m, VIDMM_DDI_CREATE_CPU_EVENT, 0);
	assert_int_equal(escape_as(&s, &args, &record), STATUS_SUCCESS);
	const struct scripted_call *call = scripted_last(s.w.m, VIDMM_DDI_ESCAPE);
	assert_int_equal(call->irql, 0);
	assert_ptr_equal(call->in.escape.hDevice, made->in.cpu_event.hKmdDevice);
	assert_null(call->in.escape.hContext);
	assert_int_equal(call->in.escape.Flags.Value, 0x48);
	assert_int_equal(call->in.escape.PrivateDriverDataSize, 48);
	assert_int_equal(call->usage.EscapeType, 2);
	assert_int_equal(call->usage.hSyncObject, handle);
	assert_int_equal(call->usage.hKmdCpuEvent, (uintptr_t)made->handle);
	assert_memory_equal(call->usage.Usage, record.Usage, sizeof(record.Usage));
	assert_int_equal(record.hKmdCpuEvent, (uintptr_t)made->handle);
	close(event);
	sync_stop(&s);
}

static void cpn_10_a_malformed_usage_escape_is_refused(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	D3DKMT_HANDLE handle = make(&s, event), fence = sync_fence(&s, 0, 0).handle;
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 plain = {0};
	plain.Info.CPUNotification.Event = (HANDLE)(uintptr_t)event;
	assert_int_equal(sync_try_create(&s, D3DDDI_CPU_NOTIFICATION, 0, &plain), STATUS_SUCCESS);
	const D3DKMT_HANDLE bad[] = {0, fence, plain.hSyncObject, s.device, handle + 0x400};
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(escape(&s, bad[i]), STATUS_INVALID_PARAMETER);
		sync_found(&s, "CPN-10");
	}
	D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE record = {.EscapeType =
							    D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE,
						    .hSyncObject = handle,
						    .hKmdCpuEvent = 0xdead};
	D3DKMT_ESCAPE args = {.hDevice = s.device + 0x400};
	assert_int_equal(escape_as(&s, &args, &record), STATUS_INVALID_PARAMETER);
	sync_found(&s, "CPN-10");
	args.hDevice = s.device;
	scripted_fail(s.w.m, VIDMM_DDI_ESCAPE, STATUS_INVALID_PARAMETER, 1);
	assert_int_equal(escape_as(&s, &args, &record), STATUS_INVALID_PARAMETER);
	assert_int_equal(record.hKmdCpuEvent, 0xdead);
	args.PrivateDriverDataSize = 40;
	assert_int_equal(D3DKMTEscape(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "CPN-10");
	args.pPrivateDriverData = NULL;
	assert_int_equal(D3DKMTEscape(&args), STATUS_INVALID_PARAMETER);
	sync_found(&s, "CPN-10");
	record.EscapeType = D3DDDI_DRIVERESCAPETYPE_TRANSLATEALLOCATIONHANDLE;
	assert_int_equal(escape_as(&s, &args, &record), STATUS_NOT_SUPPORTED);
	args.Type = D3DKMT_ESCAPE_VIDMM;
	assert_int_equal(D3DKMTEscape(&args), STATUS_NOT_SUPPORTED);
	assert_int_equal(D3DKMTEscape(NULL), STATUS_INVALID_PARAMETER);
	sync_found(&s, "HND-11");
	close(event);
	sync_stop(&s);
}

/* The callback of another device cannot destroy an object of this one. */
static void cpn_06_only_the_own_devices_callback_destroys_it(void **state)
{
	struct sync_world s;

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	const D3DDDI_DEVICECALLBACKS *cb = s.w.device.cb;
	HANDLE device = s.w.device.handle;
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 args = {
		.Info = {.Type = D3DDDI_CPU_NOTIFICATION, .Flags.Value = BY_KMD}};
	args.Info.CPUNotification.Event = (HANDLE)(uintptr_t)event;
	assert_int_equal(cb->pfnCreateSynchronizationObject2Cb(device, &args), S_OK);
	D3DDDICB_DESTROYSYNCHRONIZATIONOBJECT end = {.hSyncObject = args.hSyncObject};
	struct client_device second;
	second = s.w.device;
	assert_int_equal(
		vidmm_device_create(s.w.device.process, s.w.client.adapter, &second.device), 0);
	second.handle = vidmm_device_handle(second.device);
	assert_int_equal(cb->pfnDestroySynchronizationObjectCb(second.handle, &end), E_INVALIDARG);
	sync_found(&s, "CPN-06");
	assert_int_equal(s.w.m->live_events, 1);
	assert_int_equal(cb->pfnDestroySynchronizationObjectCb(device, &end), S_OK);
	assert_int_equal(s.w.m->live_events, 0);
	vidmm_device_destroy(second.device);
	close(event);
	sync_stop(&s);
}

/* ---- a miniport thread that signals events which may be destroyed by now ---- */

enum { EVENTS = 400 };
struct signaller {
	struct sync_world *s;
	_Atomic uintptr_t event; /* the event to signal; 0: the thread ends */
	_Atomic uint64_t set;
};

static void signal_main(void *argument)
{
	struct signaller *x = argument;
	uintptr_t event;

	while ((event = atomic_load(&x->event)) != 0)
		if (signal_as(x->s, NULL, (HANDLE)event, 1) == STATUS_SUCCESS)
			atomic_fetch_add(&x->set, 1);
}

static void cpn_06_cpn_07_miniport_signals_race_with_destruction(void **state)
{
	struct vidmm_thread *thread;
	struct sync_world s;
	struct signaller x = {.s = &s};

	sync_start(&s, state, sync_3_0);
	int event = sync_event();
	D3DKMT_HANDLE handle = make(&s, event);
	x.event = (uintptr_t)given(&s, 0);
	assert_int_equal(vidmm_thread_create(s.w.client.host, "signals", signal_main, &x, &thread),
			 0);
	for (uint32_t i = 1; i <= EVENTS; i++) {
		assert_int_equal(sync_destroy(handle), STATUS_SUCCESS);
		handle = make(&s, event);
		atomic_store(&x.event, (uintptr_t)given(&s, i));
		if (i % 16 == 0) { /* some have been signalled by then */
			struct pollfd set = {.fd = event, .events = POLLIN};

			assert_int_equal(poll(&set, 1, -1), 1);
			(void)sync_events(event);
		}
	}
	atomic_store(&x.event, 0);
	vidmm_thread_join(thread);
	assert_true(x.set >= EVENTS / 16);
	assert_int_equal(s.w.m->live_events, 1);
	close(event);
	sync_stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sfl_32_signal_by_kmd_exists_from_wddm_3_0_on),
		ON_BOTH(cpn_07_sfl_24_each_miniport_signal_sets_the_event_once),
		ON_BOTH(cpn_07_invalid_miniport_signals_are_refused),
		ON_BOTH(cpn_05_client_waits_and_signals_are_refused),
		ON_BOTH(cpn_06_destroycpuevent_is_called_at_handle_device_or_process_end),
		ON_BOTH(cpn_06_destroycpuevent_is_called_at_adapter_stop),
		ON_BOTH(cpn_08_a_failed_createcpuevent_fails_the_creation),
		ON_BOTH(cpn_08_signal_by_kmd_needs_the_event_ddis),
		ON_BOTH(cpn_10_the_usage_escape_reaches_the_miniport),
		ON_BOTH(cpn_10_a_malformed_usage_escape_is_refused),
		ON_BOTH(cpn_06_only_the_own_devices_callback_destroys_it),
		ON_LINUX(cpn_06_cpn_07_miniport_signals_race_with_destruction),
	};

	return cmocka_run_group_tests_name("sync driver", tests, NULL, NULL);
}
