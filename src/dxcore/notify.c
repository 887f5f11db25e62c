/* SPDX-License-Identifier: MIT */
/*
 * Event notifications (DXC-24): a callback of the program is called when a list becomes stale, an
 * adapter becomes invalid, or the budget of the calling process changes.
 *
 * A host in whose processes registrations were made has one thread that calls all their callbacks,
 * one at a time and with no mutex held (C-240). The thread is a thread of the host's world, so on
 * virtual time the order of callbacks follows from the seed. The thread sleeps until the core
 * reports a change. Then it asks each registration's object in the name of the process that
 * registered: with IsStale and IsValid, so that these agree with the callbacks.
 *
 * The mutex of objects.c guards the lists. A registration ends by being taken from the list. While
 * the thread works on the registration, the thread frees it, and the other thread waits for that,
 * with no mutex held. In its own callback a registration ends without waiting.
 */
#include "dxcore/dxcore_private.h"

#include <string.h>

#include "host/kmt_route.h"
#include "object/attach.h"
#include "object/object.h"

struct watch {
	struct vmm_list link; /* in watches */
	struct vmm_world *world;
	struct vmm_os_thread *thread;
	_Atomic bool quit;
	/* guarded by the mutex: */
	struct registration *current; /* the one that the thread works on */
	uint32_t started;             /* number of registrations that the thread began with */
	_Atomic uint32_t finished;    /* wait word: the number that the thread is done with */
};

struct registration {
	struct vmm_list link; /* in registrations */
	/* constant */
	struct watch *watch;
	struct vmm_process *process;
	struct IUnknown *object; /* no reference */
	DXCoreNotificationType type;
	PFN_DXCORE_NOTIFICATION_CALLBACK function;
	void *context;
	uint32_t cookie;
	/* guarded by the mutex */
	bool unchecked; /* since the last change */
	bool ended;     /* the thread frees it */
	/* of the thread */
	bool called;
	uint64_t budget[VMM_DXCORE_GROUPS];
};

static struct vmm_list registrations = {&registrations, &registrations};
static struct vmm_list watches = {&watches, &watches};
static _Atomic uint32_t registration_count;

/* ---- the thread ---- */

/* Compares with the budget before the last callback. (C-242) */
static bool budget_changed(struct registration *r)
{
	uint64_t now[VMM_DXCORE_GROUPS];

	if (!vmm_dxcore_budgets((struct vmm_dxcore_adapter *)r->object, now))
		return !r->called; /* the initial callback always occurs */
	bool changed = !r->called || memcmp(now, r->budget, sizeof(now)) != 0;
	memcpy(r->budget, now, sizeof(now));
	return changed;
}

static bool is_due(struct registration *r)
{
	IDXCoreAdapterList *list = (IDXCoreAdapterList *)r->object;
	IDXCoreAdapter1 *adapter = (IDXCoreAdapter1 *)r->object;

	switch ((uint32_t)r->type) {
	case DXCoreNotificationType_AdapterListStale:
		return !r->called && list->lpVtbl->IsStale(list);
	case DXCoreNotificationType_AdapterNoLongerValid:
		return !r->called && !adapter->lpVtbl->IsValid(adapter);
	default:
		return budget_changed(r);
	}
}

static bool is_ended(const struct registration *r)
{
	vmm_dxcore_lock();
	bool ended = r->ended;
	vmm_dxcore_unlock();
	return ended;
}

/* Calls of D3DKMT functions, also those of the callback, are those of the registering process. */
static void check(struct registration *r)
{
	struct vmm_process *before = vmm_kmt_enter(r->process);

	if (is_due(r) && !is_ended(r)) {
		r->called = true;
		r->function(r->type, r->object, r->context);
	}
	(void)vmm_kmt_enter(before);
}

static void mark_unchecked(const struct watch *watch)
{
	struct vmm_list *at;

	vmm_dxcore_lock();
	vmm_list_for_each (at, &registrations) {
		struct registration *r = vmm_container_of(at, struct registration, link);

		if (r->watch == watch)
			r->unchecked = true;
	}
	vmm_dxcore_unlock();
}

/* Begins with the next unchecked registration. Returns NULL if there is none. */
static struct registration *begin(struct watch *watch)
{
	struct registration *next = NULL;
	struct vmm_list *at;

	vmm_dxcore_lock();
	vmm_list_for_each (at, &registrations) {
		struct registration *r = vmm_container_of(at, struct registration, link);

		if (!next && r->watch == watch && r->unchecked)
			next = r;
	}
	if (next) {
		next->unchecked = false;
		watch->current = next;
		watch->started++;
	}
	vmm_dxcore_unlock();
	return next;
}

static void end_check(struct watch *watch, struct registration *r)
{
	vmm_dxcore_lock();
	watch->current = NULL;
	bool ended = r->ended;
	vmm_dxcore_unlock();
	if (ended)
		vmm_free(r);
	atomic_fetch_add(&watch->finished, 1);
	vmm_os_wake(watch->world->os, &watch->finished, UINT32_MAX);
}

static void watch_thread(void *argument)
{
	struct watch *watch = argument;
	struct vmm_world *world = watch->world;
	struct registration *r;

	/* On sim all threads share one route, which is that of the thread that called last. */
	if (vmm_os_kind(world->os) == VMM_OS_LINUX)
		vmm_kmt_route_enter_here(true);
	while (!atomic_load(&watch->quit)) {
		uint32_t seen = atomic_load(&world->changes);

		mark_unchecked(watch);
		while (!atomic_load(&watch->quit) && (r = begin(watch)) != NULL) {
			check(r);
			end_check(watch, r);
		}
		if (!atomic_load(&watch->quit) &&
		    vmm_os_wait(world->os, &world->changes, seen, VMM_OS_FOREVER, NULL, 0) ==
			    VMM_UNSUCCESSFUL)
			return;
	}
}

static void stop(struct watch *watch)
{
	atomic_store(&watch->quit, true);
	vmm_world_changed(watch->world);
	vmm_os_thread_join(watch->thread);
	vmm_free(watch);
}

/* ---- ends of registrations ---- */

/* Members that are not 0 select registrations. */
struct selection {
	uint32_t cookie;
	const void *object;
	const struct vmm_process *process;
};

static bool is_selected(const struct selection *by, const struct registration *r)
{
	return (!by->cookie || r->cookie == by->cookie) &&
	       (!by->object || r->object == by->object) &&
	       (!by->process || r->process == by->process);
}

static struct registration *find_locked(const struct selection *by) VMM_REQUIRES(vmm_dxcore_class)
{
	struct vmm_list *at;

	vmm_assert_owned(&vmm_dxcore_objects.owner);
	vmm_list_for_each (at, &registrations) {
		struct registration *r = vmm_container_of(at, struct registration, link);

		if (is_selected(by, r))
			return r;
	}
	return NULL;
}

static void await_callback(struct watch *watch, uint32_t number)
{
	struct vmm_os *os = watch->world->os;
	uint32_t seen;

	if (vmm_os_thread_self(os) == watch->thread)
		return; /* in the callback itself */
	while ((seen = atomic_load(&watch->finished), (int32_t)(seen - number) < 0))
		if (vmm_os_wait(os, &watch->finished, seen, VMM_OS_FOREVER,
				"the end of DXCore callback", number) == VMM_UNSUCCESSFUL)
			return;
}

/* Ends one registration and waits for its callback. Returns false if none is selected. */
static bool end_one(const struct selection *by)
{
	struct watch *busy = NULL;
	uint32_t number = 0;

	vmm_dxcore_lock();
	struct registration *r = find_locked(by);
	if (r) {
		vmm_list_remove(&r->link);
		atomic_fetch_sub(&registration_count, 1);
		if (r->watch->current == r) {
			r->ended = true;
			busy = r->watch;
			number = busy->started;
		}
	}
	vmm_dxcore_unlock();
	if (busy)
		await_callback(busy, number);
	else
		vmm_free(r);
	return r != NULL;
}

void vmm_dxcore_object_ends(const void *object)
{
	const struct selection by = {.object = object};

	if (vmm_likely(!atomic_load(&registration_count)))
		return;
	/* The documented answer is a fatal exception. (C-241) */
	while (end_one(&by))
		(void)vmm_dxcore_refuse_rule(
			S_OK, "C-241",
			"Release: the last reference to an object with a registration for "
			"notifications: UnregisterEventNotification must come first");
}

static void process_ends(struct vmm_world *world, struct vmm_process *process)
{
	const struct selection by = {.process = process};

	(void)world;
	while (end_one(&by))
		;
}

static struct watch *find_watch_locked(const struct vmm_world *world) VMM_REQUIRES(vmm_dxcore_class)
{
	struct vmm_list *at;

	vmm_assert_owned(&vmm_dxcore_objects.owner);
	vmm_list_for_each (at, &watches) {
		struct watch *watch = vmm_container_of(at, struct watch, link);

		if (watch->world == world)
			return watch;
	}
	return NULL;
}

/* All processes of the world have ended, and with them their registrations. */
static void world_ends(struct vmm_world *world)
{
	vmm_dxcore_lock();
	struct watch *watch = find_watch_locked(world);
	if (watch)
		vmm_list_remove(&watch->link);
	vmm_dxcore_unlock();
	if (watch)
		stop(watch);
}

/* ---- registrations ---- */

/* Returns the watch of a world, which is started if there is none; NULL: no memory. */
static struct watch *watch_of(struct vmm_world *world)
{
	static const struct vmm_world_watcher watcher = {process_ends, world_ends};
	struct watch *made;

	vmm_dxcore_lock();
	struct watch *found = find_watch_locked(world);
	vmm_dxcore_unlock();
	if (found)
		return found;
	made = vmm_calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	made->world = world;
	vmm_world_watch(world, &watcher);
	if (!vmm_ok(vmm_os_thread_create(world->os, "vidmm dxcore", watch_thread, made,
					 &made->thread))) {
		vmm_free(made);
		return NULL;
	}
	vmm_dxcore_lock();
	found = find_watch_locked(world);
	if (!found)
		vmm_list_push_back(&watches, &made->link);
	vmm_dxcore_unlock();
	if (!found)
		return made;
	stop(made); /* another thread was faster */
	return found;
}

/* The cookie is set before the callback can be called. */
static void add(struct registration *r, uint32_t *cookie)
{
	static uint32_t last; /* guarded by the mutex */
	struct selection by;

	vmm_dxcore_lock();
	do {
		by = (struct selection){.cookie = ++last};
	} while (!last || find_locked(&by));
	r->cookie = *cookie = last;
	r->unchecked = true;
	vmm_list_push_back(&registrations, &r->link);
	atomic_fetch_add(&registration_count, 1);
	vmm_dxcore_unlock();
	vmm_world_changed(r->watch->world);
}

/*
 * Returns the process whose registrations are called back; NULL: the calls of the thread are
 * executed in another process, or nowhere. (C-243)
 */
static struct vmm_process *watched_process(void)
{
	struct vmm_dxcore_adapters adapters;

	/* The call may attach a process or connect the program. */
	if (FAILED(vmm_dxcore_open(&adapters)))
		return NULL;
	vmm_dxcore_close(&adapters);
	return vmm_kmt_route_process();
}

/* No content protection is built, so none is torn down. */
static bool is_built(uint32_t type)
{
	return type <= DXCoreNotificationType_AdapterBudgetChange;
}

bool vmm_dxcore_notifies(IDXCoreAdapterFactory1 *self, DXCoreNotificationType type)
{
	(void)self;
	return is_built((uint32_t)type) && watched_process();
}

static const char name[] = "IDXCoreAdapterFactory::RegisterEventNotification";

static HRESULT check_object(const struct IUnknown *object, uint32_t type)
{
	bool of_list = type == DXCoreNotificationType_AdapterListStale;

	if (!object)
		return vmm_dxcore_refuse_rule(E_INVALIDARG, "DXC-24", "%s: dxCoreObject is NULL",
					      name);
	if (type > DXCoreNotificationType_AdapterHardwareContentProtectionTeardown ||
	    (of_list ? vmm_dxcore_is_list(object) : vmm_dxcore_is_adapter(object)))
		return S_OK;
	return vmm_dxcore_refuse_rule(
		E_INVALIDARG, "DXC-24",
		"%s: notification type %u needs %s, the object is another one", name, type,
		of_list ? "a list" : "an adapter");
}

static HRESULT check_process(const struct IUnknown *object, uint32_t type,
			     const struct vmm_process *process)
{
	if (!is_built(type))
		return vmm_dxcore_refuse_reason(DXGI_ERROR_INVALID_CALL, "DXC-24",
						"%s: notification type %u is not supported", name,
						type);
	if (!process)
		return vmm_dxcore_refuse_reason(
			DXGI_ERROR_INVALID_CALL, "C-243",
			"%s: the adapters are those of a host in another process, whose changes "
			"are not reported to this one: call IsStale and IsValid instead",
			name);
	const void *system = vmm_dxcore_is_list(object)
				     ? vmm_dxcore_list_system(object)
				     : ((const struct vmm_dxcore_adapter *)object)->system;
	if (system != process->world)
		return vmm_dxcore_refuse_reason(E_FAIL, "DXC-27",
						"%s: the object belongs to another host", name);
	return S_OK;
}

HRESULT vmm_dxcore_register(IDXCoreAdapterFactory1 *self, struct IUnknown *object,
			    DXCoreNotificationType type, PFN_DXCORE_NOTIFICATION_CALLBACK function,
			    void *context, uint32_t *cookie)
{
	(void)self;
	if (cookie)
		*cookie = 0;
	if (!cookie || !function)
		return vmm_dxcore_refuse_rule(E_POINTER, "DXC-24", "%s: %s is NULL", name,
					      cookie ? "callbackFunction" : "eventCookie");
	HRESULT result = check_object(object, (uint32_t)type);
	if (FAILED(result))
		return result;
	struct vmm_process *process = is_built((uint32_t)type) ? watched_process() : NULL;
	result = check_process(object, (uint32_t)type, process);
	if (FAILED(result))
		return result;
	struct registration *r = vmm_calloc(1, sizeof(*r));
	struct watch *watch = r ? watch_of(process->world) : NULL;
	if (!watch) {
		vmm_free(r);
		return E_OUTOFMEMORY;
	}
	*r = (struct registration){.watch = watch,
				   .process = process,
				   .object = object,
				   .type = type,
				   .function = function,
				   .context = context};
	add(r, cookie);
	return S_OK;
}

HRESULT vmm_dxcore_unregister(IDXCoreAdapterFactory1 *self, uint32_t cookie)
{
	const struct selection by = {.cookie = cookie};

	(void)self;
	if (cookie && end_one(&by))
		return S_OK;
	return vmm_dxcore_refuse_rule(
		E_INVALIDARG, "DXC-24",
		"IDXCoreAdapterFactory::UnregisterEventNotification: %u is not the cookie of a "
		"registration",
		cookie);
}
