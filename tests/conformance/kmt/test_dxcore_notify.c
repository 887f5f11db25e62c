/* SPDX-License-Identifier: MIT */
/*
 * Notifications of DXCore: when a callback is called, how often, and when no longer (DXC-24, C-240
 * to C-242). Those of budgets are in wddm2/test_wddm2_dxcore.c.
 */
#include "dxcore_world.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/base.h"

enum {
	STALE = DXCoreNotificationType_AdapterListStale,
	INVALID = DXCoreNotificationType_AdapterNoLongerValid,
	BUDGET = DXCoreNotificationType_AdapterBudgetChange
};

/* A registration, and what its callback has seen. */
struct watcher {
	struct dxcore_world *w;
	struct IUnknown *object;
	uint32_t type, cookie;
	_Atomic uint32_t calls;
	/* what the callback does */
	bool unregisters, blocks;
	_Atomic bool inside, left, go;
	sem_t semaphore; /* on real threads, in place of `go` */
	_Atomic bool unregistered;
};

static void block(struct watcher *at)
{
	struct vidmm_host *host = at->w->kmt.client.host;

	atomic_store(&at->inside, true);
	if (at->w->kmt.client.kind == VIDMM_HOST_LINUX)
		sem_wait(&at->semaphore);
	while (!atomic_load(&at->go))
		vidmm_sleep_until_ns(host, vidmm_now_ns(host) + 1000); /* virtual time */
	atomic_store(&at->left, true);
}

/* A thread on the semaphore never settles. */
static void give_way(struct dxcore_world *w)
{
	if (w->kmt.client.kind == VIDMM_HOST_LINUX)
		sched_yield();
	else
		vidmm_settle(w->kmt.client.host);
}

static void let_go(struct watcher *at)
{
	atomic_store(&at->go, true);
	sem_post(&at->semaphore);
}

static HRESULT unregister(struct watcher *at)
{
	IDXCoreAdapterFactory1 *f = at->w->factory;

	return f->lpVtbl->UnregisterEventNotification(f, at->cookie);
}

static void called(DXCoreNotificationType type, struct IUnknown *object, void *context)
{
	struct watcher *at = context;

	assert_int_equal(type, at->type);
	assert_ptr_equal(object, at->object);
	assert_int_not_equal(at->cookie, 0); /* also before the registration has returned */
	if (at->blocks)
		block(at);
	if (at->unregisters)
		assert_int_equal(unregister(at), S_OK);
	atomic_fetch_add(&at->calls, 1);
}

static void watch(struct dxcore_world *w, struct watcher *at, void *object, uint32_t type)
{
	IDXCoreAdapterFactory1 *f = w->factory;

	at->w = w;
	at->object = object;
	at->type = type;
	sem_init(&at->semaphore, 0, 0);
	assert_int_equal(f->lpVtbl->RegisterEventNotification(
				 f, object, (DXCoreNotificationType)type, called, at, &at->cookie),
			 S_OK);
	assert_int_not_equal(at->cookie, 0);
}

/* Asserts that there have been so many callbacks, and that no other one comes. */
static void expect_calls(struct watcher *at, uint32_t calls)
{
	struct vidmm_host *host = at->w->kmt.client.host;

	do {
		vidmm_settle(host);
	} while (atomic_load(&at->calls) < calls);
	assert_int_equal(atomic_load(&at->calls), calls);
}

static void dxc_24_a_list_calls_back_once_when_it_becomes_stale(void **state)
{
	static const struct vidmm_registry_value npu[] = {{"VidmmHardwareType", 4}};
	struct dxcore_world w;
	struct watcher graphics = {0}, compute = {0}, again = {0};

	dxcore_start(&w, state);
	IDXCoreAdapterList *of_graphics = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapterList *of_compute = dxcore_list(&w, &d3d12_compute);
	watch(&w, &graphics, of_graphics, STALE);
	watch(&w, &compute, of_compute, STALE);
	expect_calls(&graphics, 0);
	expect_calls(&compute, 0);
	/* An adapter arrives that only one of the filters selects. */
	struct vidmm_adapter *second = dxcore_add(&w, NULL, npu, 1);
	expect_calls(&compute, 1);
	expect_calls(&graphics, 0);
	assert_true(of_compute->lpVtbl->IsStale(of_compute));
	/* The transition is one-way. */
	vidmm_adapter_stop(second);
	expect_calls(&compute, 1);
	/* A list that is stale calls back at once. */
	watch(&w, &again, of_compute, STALE);
	expect_calls(&again, 1);
	vidmm_adapter_stop(w.kmt.client.adapter);
	w.kmt.client.adapter = NULL;
	expect_calls(&graphics, 1);
	expect_calls(&compute, 1);
	expect_calls(&again, 1);
	assert_int_equal(unregister(&graphics), S_OK);
	assert_int_equal(unregister(&compute), S_OK);
	assert_int_equal(unregister(&again), S_OK);
	of_graphics->lpVtbl->Release(of_graphics);
	of_compute->lpVtbl->Release(of_compute);
	dxcore_stop(&w);
}

static void dxc_24_an_adapter_calls_back_once_when_it_becomes_invalid(void **state)
{
	struct dxcore_world w;
	struct watcher of_stopped = {0}, of_removed = {0}, again = {0};

	dxcore_start(&w, state);
	struct vidmm_adapter *second = dxcore_add(&w, NULL, NULL, 0);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *stopped = dxcore_adapter(list, 1), *removed = dxcore_adapter(list, 0);

	list->lpVtbl->Release(list);
	watch(&w, &of_stopped, stopped, INVALID);
	watch(&w, &of_removed, removed, INVALID);
	expect_calls(&of_stopped, 0);
	vidmm_adapter_stop(second);
	expect_calls(&of_stopped, 1);
	expect_calls(&of_removed, 0);
	(void)!vidmm_adapter_remove(w.kmt.client.adapter, VIDMM_REMOVAL_PNP);
	expect_calls(&of_removed, 1);
	expect_calls(&of_stopped, 1);
	assert_false(removed->lpVtbl->IsValid(removed));
	watch(&w, &again, stopped, INVALID);
	expect_calls(&again, 1);
	assert_int_equal(unregister(&of_stopped), S_OK);
	assert_int_equal(unregister(&of_removed), S_OK);
	assert_int_equal(unregister(&again), S_OK);
	stopped->lpVtbl->Release(stopped);
	removed->lpVtbl->Release(removed);
	dxcore_stop(&w);
}

static void dxc_24_an_ended_registration_is_not_called_back(void **state)
{
	struct dxcore_world w;
	struct watcher ended = {0}, kept = {0};

	dxcore_start(&w, state);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);

	watch(&w, &ended, list, STALE);
	watch(&w, &kept, list, STALE);
	assert_int_equal(unregister(&ended), S_OK);
	struct vidmm_adapter *second = dxcore_add(&w, NULL, NULL, 0);
	expect_calls(&kept, 1);
	expect_calls(&ended, 0);
	dxcore_found(&w, unregister(&ended), E_INVALIDARG, "DXC-24");
	assert_int_equal(unregister(&kept), S_OK);
	list->lpVtbl->Release(list);
	vidmm_adapter_stop(second);
	dxcore_stop(&w);
}

static void end_registration(void *argument)
{
	struct watcher *at = argument;

	vidmm_d3dkmt_enter(at->w->kmt.process);
	assert_int_equal(unregister(at), S_OK);
	assert_true(atomic_load(&at->left));
	vidmm_d3dkmt_enter(NULL);
	atomic_store(&at->unregistered, true);
}

static void dxc_24_unregister_waits_for_the_callback(void **state)
{
	struct dxcore_world w;
	struct watcher slow = {.blocks = true};
	struct vidmm_thread *thread;

	dxcore_start(&w, state);
	struct vidmm_host *host = w.kmt.client.host;
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	watch(&w, &slow, list, STALE);
	struct vidmm_adapter *second = dxcore_add(&w, NULL, NULL, 0);
	while (!atomic_load(&slow.inside))
		give_way(&w);
	assert_int_equal(vidmm_thread_create(host, "unregister", end_registration, &slow, &thread),
			 0);
	give_way(&w);
	assert_false(atomic_load(&slow.unregistered));
	let_go(&slow);
	vidmm_thread_join(thread);
	assert_true(atomic_load(&slow.unregistered));
	expect_calls(&slow, 1);
	list->lpVtbl->Release(list);
	vidmm_adapter_stop(second);
	dxcore_stop(&w);
}

static void dxc_24_c_240_a_callback_may_unregister(void **state)
{
	struct dxcore_world w;
	struct watcher own = {.unregisters = true}, other = {0};

	dxcore_start(&w, state);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);

	watch(&w, &own, list, STALE);
	watch(&w, &other, list, STALE);
	struct vidmm_adapter *second = dxcore_add(&w, NULL, NULL, 0);
	expect_calls(&own, 1);
	expect_calls(&other, 1); /* the same thread calls it, afterwards */
	dxcore_found(&w, unregister(&own), E_INVALIDARG, "DXC-24");
	assert_int_equal(unregister(&other), S_OK);
	list->lpVtbl->Release(list);
	vidmm_adapter_stop(second);
	dxcore_stop(&w);
}

static void c_241_the_end_of_an_object_ends_its_registrations(void **state)
{
	struct dxcore_world w;
	struct watcher of_list = {0}, of_adapter = {0};

	dxcore_start(&w, state);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *adapter = dxcore_adapter(list, 0);

	watch(&w, &of_list, list, STALE);
	watch(&w, &of_adapter, adapter, INVALID);
	dxcore_found(&w, (HRESULT)list->lpVtbl->Release(list), 0, "C-241");
	dxcore_found(&w, (HRESULT)adapter->lpVtbl->Release(adapter), 0, "C-241");
	struct vidmm_adapter *second = dxcore_add(&w, NULL, NULL, 0);
	expect_calls(&of_list, 0);
	dxcore_found(&w, unregister(&of_list), E_INVALIDARG, "DXC-24");
	dxcore_found(&w, unregister(&of_adapter), E_INVALIDARG, "DXC-24");
	vidmm_adapter_stop(second);
	dxcore_stop(&w);
}

static void c_241_the_end_of_a_process_ends_its_registrations(void **state)
{
	struct dxcore_world w;
	struct watcher of_other = {0}, own = {0};

	dxcore_start(&w, state);
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);

	watch(&w, &own, list, STALE);
	vidmm_d3dkmt_enter(w.kmt.other);
	watch(&w, &of_other, list, STALE);
	vidmm_d3dkmt_enter(NULL);
	vidmm_process_close(w.kmt.other);
	w.kmt.other = NULL;
	struct vidmm_adapter *second = dxcore_add(&w, NULL, NULL, 0);
	expect_calls(&own, 1);
	expect_calls(&of_other, 0);
	dxcore_found(&w, unregister(&of_other), E_INVALIDARG, "DXC-24");
	assert_int_equal(unregister(&own), S_OK);
	list->lpVtbl->Release(list);
	vidmm_adapter_stop(second);
	dxcore_stop(&w);
}

static void dxc_24_without_budgets_only_the_initial_callback_occurs(void **state)
{
	struct dxcore_world w;
	struct watcher budget = {0};

	dxcore_start(&w, state);
	IDXCoreAdapter1 *adapter = dxcore_first(&w);

	watch(&w, &budget, adapter, BUDGET);
	expect_calls(&budget, 1);
	struct vidmm_adapter *second = dxcore_add(&w, NULL, NULL, 0);
	expect_calls(&budget, 1);
	assert_int_equal(unregister(&budget), S_OK);
	adapter->lpVtbl->Release(adapter);
	vidmm_adapter_stop(second);
	dxcore_stop(&w);
}

static void dxc_24_bad_arguments_are_refused(void **state)
{
	struct dxcore_world w;
	uint32_t cookie = 5;

	dxcore_start(&w, state);
	IDXCoreAdapterFactory1 *f = w.factory;
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	IDXCoreAdapter1 *first = dxcore_adapter(list, 0);
	struct IUnknown *object = (struct IUnknown *)list, *adapter = (struct IUnknown *)first;

	for (uint32_t type = 0; type < 6; type++)
		assert_int_equal(
			f->lpVtbl->IsNotificationTypeSupported(f, (DXCoreNotificationType)type),
			type < 3);
#define REGISTER(object, type, function, cookie)                                                  \
	f->lpVtbl->RegisterEventNotification(f, object, (DXCoreNotificationType)(type), function, \
					     &w, cookie)
	dxcore_told(&w, REGISTER(adapter, 3, called, &cookie), DXGI_ERROR_INVALID_CALL, "DXC-24");
	assert_int_equal(cookie, 0);
	dxcore_told(&w, REGISTER(object, 4, called, &cookie), DXGI_ERROR_INVALID_CALL, "DXC-24");
	for (uint32_t type = 1; type < 4; type++)
		dxcore_found(&w, REGISTER(object, type, called, &cookie), E_INVALIDARG, "DXC-24");
	dxcore_found(&w, REGISTER(adapter, 0, called, &cookie), E_INVALIDARG, "DXC-24");
	dxcore_found(&w, REGISTER(NULL, 0, called, &cookie), E_INVALIDARG, "DXC-24");
	dxcore_found(&w, REGISTER(object, 0, NULL, &cookie), E_POINTER, "DXC-24");
	dxcore_found(&w, REGISTER(object, 0, called, NULL), E_POINTER, "DXC-24");
	vidmm_d3dkmt_attach(NULL);
	assert_false(f->lpVtbl->IsNotificationTypeSupported(f, (DXCoreNotificationType)0));
	assert_int_equal(REGISTER(object, 0, called, &cookie), DXGI_ERROR_INVALID_CALL);
	vidmm_d3dkmt_attach(w.kmt.process);
#undef REGISTER
	dxcore_found(&w, f->lpVtbl->UnregisterEventNotification(f, 0), E_INVALIDARG, "DXC-24");
	dxcore_found(&w, f->lpVtbl->UnregisterEventNotification(f, 77), E_INVALIDARG, "DXC-24");
	first->lpVtbl->Release(first);
	list->lpVtbl->Release(list);
	dxcore_stop(&w);
}

static void dxc_24_without_memory_nothing_is_registered(void **state)
{
	struct dxcore_world w;
	struct watcher at = {0};
	uint32_t failures = 0;

	dxcore_start(&w, state);
	IDXCoreAdapterFactory1 *f = w.factory;
	IDXCoreAdapterList *list = dxcore_list(&w, &d3d12_graphics);
	HRESULT result;

	at.w = &w;
	at.object = (struct IUnknown *)list;
	do {
		at.cookie = 5;
		vmm_calloc_fail_after(failures + 1);
		result = f->lpVtbl->RegisterEventNotification(
			f, at.object, (DXCoreNotificationType)STALE, called, &at, &at.cookie);
		vmm_calloc_fail_after(0);
		assert_int_equal(at.cookie != 0, result == S_OK);
		failures += FAILED(result);
	} while (FAILED(result));
	assert_in_range(failures, 1, 100);
	struct vidmm_adapter *second = dxcore_add(&w, NULL, NULL, 0);
	expect_calls(&at, 1);
	assert_int_equal(unregister(&at), S_OK);
	list->lpVtbl->Release(list);
	vidmm_adapter_stop(second);
	dxcore_stop(&w);
}

enum { THREADS = 3, ROUNDS = 20 };

static void come_and_go(void *argument)
{
	struct dxcore_world *w = argument;

	vidmm_d3dkmt_enter(w->kmt.process);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		IDXCoreAdapterList *list = dxcore_list(w, &d3d12_compute);
		struct watcher stale = {0};

		watch(w, &stale, list, STALE);
		assert_int_equal(unregister(&stale), S_OK);
		assert_in_range(atomic_load(&stale.calls), 0, 1);
		list->lpVtbl->Release(list);
	}
	vidmm_d3dkmt_enter(NULL);
}

static void dxc_24_threads_register_while_adapters_come_and_go(void **state)
{
	struct dxcore_world w;
	struct vidmm_thread *thread[THREADS];

	dxcore_start(&w, state);
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(vidmm_thread_create(w.kmt.client.host, "registers", come_and_go,
						     &w, &thread[i]),
				 0);
	for (uint32_t i = 0; i < ROUNDS / 4; i++)
		vidmm_adapter_stop(dxcore_add(&w, NULL, NULL, 0));
	for (uint32_t i = 0; i < THREADS; i++)
		vidmm_thread_join(thread[i]);
	dxcore_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(dxc_24_a_list_calls_back_once_when_it_becomes_stale),
		ON_BOTH(dxc_24_an_adapter_calls_back_once_when_it_becomes_invalid),
		ON_BOTH(dxc_24_an_ended_registration_is_not_called_back),
		ON_BOTH(dxc_24_unregister_waits_for_the_callback),
		ON_BOTH(dxc_24_c_240_a_callback_may_unregister),
		ON_BOTH(c_241_the_end_of_an_object_ends_its_registrations),
		ON_BOTH(c_241_the_end_of_a_process_ends_its_registrations),
		ON_BOTH(dxc_24_without_budgets_only_the_initial_callback_occurs),
		ON_BOTH(dxc_24_bad_arguments_are_refused),
		ON_BOTH(dxc_24_without_memory_nothing_is_registered),
		ON_BOTH(dxc_24_threads_register_while_adapters_come_and_go),
	};

	return cmocka_run_group_tests_name("dxcore_notify", tests, NULL, NULL);
}
