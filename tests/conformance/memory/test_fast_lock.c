/* SPDX-License-Identifier: MIT */
/*
 * Locks on the fast path (docs/locking.md), which only count in a lock word: which mutexes they do
 * not take, which system calls they do not make, and that they do not allocate. Their results are
 * the same as those of other locks.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall, RUSAGE_THREAD */
#endif
#include "world.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <d3dkmthk.h>

#include "host/host_private.h"
#include "object/object.h"
#include "support/served.h"

enum { TIMES = 1000, FAULTS_MAX = 16 };

/* ---- the calls that must be cheap ---- */

struct locks {
	struct world w;
	D3DKMT_HANDLE idle, busy, renamed, device;
};

static void note_device(void *context, const struct vidmm_event *event, const char *text)
{
	(void)text;
	if (event->reason == VIDMM_DOOR_CREATE_DEVICE)
		*(D3DKMT_HANDLE *)context = event->object;
}

/* The device again, so that the D3DKMT functions know its handle as well. */
static void locks_start(struct locks *l, void **state)
{
	struct client_device *device = &l->w.device;
	struct world *w = &l->w;

	world_start(w, state, NULL);
	client_context_end(&w->context);
	vidmm_device_destroy(device->device);
	uint32_t subscription =
		vidmm_subscribe(w->client.host, 1ull << VIDMM_EVENT_DOOR, note_device, &l->device);
	assert_int_equal(vidmm_device_create(device->process, w->client.adapter, &device->device),
			 0);
	vidmm_unsubscribe(w->client.host, subscription);
	device->handle = vidmm_device_handle(device->device);
	client_context(device, 0, &w->context);
	w->gate = allocate_in(device, PAGE, CPU, APERTURE);
	w->gate_word = client_lock(device, w->gate, 0);
	use_now(w, w->gate, false);
	vidmm_d3dkmt_attach(device->process);

	l->idle = allocate_in(device, 64 * KIB, CPU, 0);
	l->busy = allocate_in(device, 64 * KIB, CPU, VRAM);
	l->renamed = allocate_in(device, 64 * KIB, CPU, VRAM);
	use_now(w, l->idle, true);
	use_now(w, l->busy, true);
	use_now(w, l->renamed, true);
	/* Two instances, of which the GPU used one last; both have had a CPU mapping. */
	assert_int_equal(client_try_lock(device, &l->renamed, DISCARD, NULL), S_OK);
	assert_int_equal(client_unlock(device, l->renamed), S_OK);
	use_now(w, l->renamed, true);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(
			client_try_lock(device, &l->renamed, DISCARD | NO_EXISTING_REFERENCE, NULL),
			S_OK);
		assert_int_equal(client_unlock(device, l->renamed), S_OK);
	}
	client_lock(device, l->idle, 0);
	assert_int_equal(client_unlock(device, l->idle), S_OK);
	gate_close(w);
	client_reference(&w->context, l->busy, true);
	client_submit(&w->context);
}

static void locks_stop(struct locks *l)
{
	gate_open(&l->w);
	assert_int_equal(l->w.client.findings, 0);
	world_stop(&l->w);
}

/*
 * Raw calls, because the test's helpers would be measured too. Returns the number of wrong
 * results.
 */
static unsigned plain(const struct locks *l, uint32_t flags)
{
	const struct client_device *device = &l->w.device;
	D3DDDICB_LOCK lock = {.hAllocation = l->idle, .Flags.Value = flags};
	const D3DDDICB_UNLOCK unlock = {.NumAllocations = 1, .phAllocations = &l->idle};

	return (device->cb->pfnLockCb(device->handle, &lock) != S_OK || !lock.pData) +
	       (device->cb->pfnUnlockCb(device->handle, &unlock) != S_OK);
}

static unsigned thunked(const struct locks *l)
{
	D3DKMT_LOCK lock = {.hDevice = l->device, .hAllocation = l->idle};
	const D3DKMT_UNLOCK unlock = {
		.hDevice = l->device, .NumAllocations = 1, .phAllocations = &l->idle};

	return (D3DKMTLock(&lock) != STATUS_SUCCESS || !lock.pData) +
	       (D3DKMTUnlock(&unlock) != STATUS_SUCCESS);
}

static unsigned donotwait_refused(const struct locks *l)
{
	const struct client_device *device = &l->w.device;
	D3DDDICB_LOCK lock = {.hAllocation = l->busy, .Flags.Value = DONOT_WAIT};

	return device->cb->pfnLockCb(device->handle, &lock) != D3DERR_WASSTILLDRAWING;
}

static unsigned discarded(struct locks *l)
{
	const struct client_device *device = &l->w.device;
	D3DDDICB_LOCK lock = {.hAllocation = l->renamed,
			      .Flags.Value = DISCARD | NO_EXISTING_REFERENCE};
	HRESULT result = device->cb->pfnLockCb(device->handle, &lock);
	const D3DDDICB_UNLOCK unlock = {.NumAllocations = 1, .phAllocations = &lock.hAllocation};
	unsigned wrong = result != S_OK || !lock.pData || lock.hAllocation == l->renamed;

	l->renamed = lock.hAllocation;
	return wrong + (device->cb->pfnUnlockCb(device->handle, &unlock) != S_OK);
}

/*
 * `messages`: also locks for which an out-of-process client needs a message
 * (docs/adr/0002-locks-without-a-message.md).
 */
static unsigned some_of_them(struct locks *l, unsigned times, bool messages)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < times; i++) {
		wrong += plain(l, i % 2 ? READ_ONLY : WRITE_ONLY | DONOT_WAIT) + thunked(l);
		if (messages)
			wrong += donotwait_refused(l) + discarded(l);
	}
	return wrong;
}

static unsigned all_of_them(struct locks *l, unsigned times)
{
	return some_of_them(l, times, true);
}

/* ---- what they do not use ---- */

static struct vmm_device *device_of(const struct locks *l)
{
	struct vmm_process *process = vidmm_core_process(l->w.device.process);
	struct vmm_device *found = NULL;
	struct vmm_list *link;

	vmm_os_mutex_lock(&process->lock);
	vmm_list_for_each (link, &process->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, process_link);

		if (device->handle == l->device)
			found = device;
	}
	vmm_os_mutex_unlock(&process->lock);
	assert_non_null(found);
	return found;
}

/* A thread that holds every mutex. */
struct holder {
	struct vmm_device *device;
	struct vidmm_thread *thread; /* NULL: the test's own thread */
	_Atomic uint32_t state;      /* 1: holds them, 2: may release them */
};

static void lock_all_mutexes(const struct vmm_device *device)
{
	vmm_os_mutex_lock(&device->adapter->submit_lock);
	vmm_os_mutex_lock(&device->adapter->paging_lock);
	vmm_os_mutex_lock(&device->process->lock);
	vmm_os_mutex_lock(&device->adapter->state_lock);
	vmm_os_mutex_lock(&device->process->world->shared_lock);
}

static void unlock_all_mutexes(const struct vmm_device *device)
{
	vmm_os_mutex_unlock(&device->process->world->shared_lock);
	vmm_os_mutex_unlock(&device->adapter->state_lock);
	vmm_os_mutex_unlock(&device->process->lock);
	vmm_os_mutex_unlock(&device->adapter->paging_lock);
	vmm_os_mutex_unlock(&device->adapter->submit_lock);
}

static void holder_main(void *argument)
{
	struct holder *h = argument;
	struct vmm_os *os = h->device->adapter->os;

	lock_all_mutexes(h->device);
	atomic_store(&h->state, 1);
	vmm_os_wake(os, &h->state, UINT32_MAX);
	while (atomic_load(&h->state) == 1)
		(void)!vmm_os_wait(os, &h->state, 1, VMM_OS_FOREVER, "the test", 0);
	unlock_all_mutexes(h->device);
}

/*
 * Taking one of the mutexes again, or one of a lower rank, would assert. A message of an
 * out-of-process client takes server mutexes before it becomes a call. For such a client another
 * thread holds the mutexes, so a call that needs one would not return.
 */
static void start_holder(struct holder *h, struct locks *l)
{
	struct vmm_os *os;

	*h = (struct holder){.device = device_of(l)};
	os = h->device->adapter->os;
	if (!served_wanted()) {
		lock_all_mutexes(h->device);
		return;
	}
	assert_int_equal(
		vidmm_thread_create(l->w.client.host, "holder", holder_main, h, &h->thread), 0);
	while (!atomic_load(&h->state))
		(void)!vmm_os_wait(os, &h->state, 0, VMM_OS_FOREVER, "the holder", 0);
}

static void stop_holder(struct holder *h)
{
	if (!h->thread) {
		unlock_all_mutexes(h->device);
		return;
	}
	atomic_store(&h->state, 2);
	vmm_os_wake(h->device->adapter->os, &h->state, UINT32_MAX);
	vidmm_thread_join(h->thread);
}

static void fast_path_locks_take_no_mutex(void **state)
{
	struct holder holder;
	struct locks l = {0};

	locks_start(&l, state);
	assert_int_equal(all_of_them(&l, 1),
			 0); /* from here on one lock word says that its instance is busy */
	start_holder(&holder, &l);
	unsigned wrong = 0;
	for (unsigned i = 0; i < TIMES; i++)
		wrong += plain(&l, 0) + thunked(&l) + donotwait_refused(&l) +
			 plain(&l, WRITE_ONLY | DISCARD | NO_EXISTING_REFERENCE);
	stop_holder(&holder);
	assert_int_equal(wrong, 0);
	locks_stop(&l);
}

/* The next allocation would fail, and none is made. */
static void fast_path_locks_allocate_nothing(void **state)
{
	struct locks l = {0};

	locks_start(&l, state);
	assert_int_equal(all_of_them(&l, 1), 0);
	vmm_calloc_fail_after(1);
	unsigned wrong = all_of_them(&l, TIMES);
	void *next = vmm_calloc(1, 1);
	vmm_calloc_fail_after(0);
	assert_int_equal(wrong, 0);
	assert_null(next);
	locks_stop(&l);
}

/* ---- system calls: each one raises SIGSYS while `selector` is set ---- */

/* AddressSanitizer gives variables their own pages. */
#if defined(__SANITIZE_ADDRESS__)
#define OWN_PAGES_ALONE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OWN_PAGES_ALONE 0
#endif
#endif
#ifndef OWN_PAGES_ALONE
#define OWN_PAGES_ALONE 1
#endif

#if OWN_PAGES_ALONE

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static volatile char selector; /* 0: let pass, 1: signal */
static volatile sig_atomic_t system_calls;

static void on_system_call(int number)
{
	(void)number;
	selector = 0; /* or the return from here would be intercepted next */
	system_calls++;
}

static bool watch_system_calls(void)
{
	const struct sigaction action = {.sa_handler = on_system_call};

	assert_int_equal(sigaction(SIGSYS, &action, NULL), 0);
	return prctl(PR_SET_SYSCALL_USER_DISPATCH, 1L, 0L, 0L, &selector) == 0;
}

static void stop_watching(void)
{
	assert_int_equal(prctl(PR_SET_SYSCALL_USER_DISPATCH, 0L, 0L, 0L, 0L), 0);
	assert_ptr_not_equal(signal(SIGSYS, SIG_DFL), SIG_ERR);
}

static uint64_t page_faults(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return (uint64_t)(usage.ru_minflt + usage.ru_majflt);
}

/*
 * A lock makes no system call; for an out-of-process client it makes no call other than a message.
 */
static uint64_t faults_of_locks(struct locks *l)
{
	assert_true(watch_system_calls());
	uint64_t faults = page_faults();
	system_calls = 0;
	selector = 1;
	unsigned wrong = some_of_them(l, TIMES, !served_wanted());
	selector = 0;
	faults = page_faults() - faults;
	stop_watching();
	assert_int_equal(wrong, 0);
	assert_int_equal(system_calls, 0);
	return faults;
}

static void fast_path_locks_make_no_system_call_and_take_no_page_fault(void **state)
{
	struct locks l = {0};

	if (!watch_system_calls())
		skip();
	system_calls = 0;
	selector = 1;
	syscall(SYS_getppid);
	selector = 0;
	stop_watching();
	assert_int_equal(system_calls, 1); /* so a system call would be counted */

	locks_start(&l, state);
	assert_int_equal(all_of_them(&l, 4), 0);
	/*
	 * The system may reclaim pages of the process at any time, but hardly three times in a
	 * row.
	 */
	uint64_t faults = UINT64_MAX;
	for (uint32_t attempt = 0; attempt < 3 && faults >= FAULTS_MAX; attempt++)
		faults = faults_of_locks(&l);
	assert_true(faults <
		    /* page faults of the process itself; one fault per lock would be thousands */
		    FAULTS_MAX);
	locks_stop(&l);
}

#endif

/* ---- results are the same as on the slow path ---- */

struct event_counts {
	D3DKMT_HANDLE handle;
	uint32_t locks, unlocks, doors, wrong;
};

static void count_events(void *context, const struct vidmm_event *event, const char *text)
{
	struct event_counts *event_counts = context;

	(void)text;
	switch (event->type) {
	case VIDMM_EVENT_LOCK:
		event_counts->locks++;
		event_counts->wrong += event->object != event_counts->handle ||
				       event->arg[0] != READ_ONLY || event->arg[1] != 0 ||
				       event->arg[2] != 64 * KIB ||
				       event->arg[3] != event_counts->handle ||
				       event_counts->locks != event_counts->unlocks + 1;
		break;
	case VIDMM_EVENT_UNLOCK:
		event_counts->unlocks++;
		event_counts->wrong += event->object != event_counts->handle ||
				       event_counts->locks != event_counts->unlocks;
		break;
	default:
		event_counts->doors++;
		event_counts->wrong += event->object != event_counts->handle || event->arg[0] != 0;
		break;
	}
}

static void a_subscriber_gets_an_event_for_every_lock(void **state)
{
	const uint64_t mask =
		1ull << VIDMM_EVENT_LOCK | 1ull << VIDMM_EVENT_UNLOCK | 1ull << VIDMM_EVENT_DOOR;
	struct vidmm_counter before, after;
	struct locks l = {0};

	locks_start(&l, state);
	struct event_counts event_counts = {.handle = l.idle};
	uint32_t subscription = vidmm_subscribe(l.w.client.host, mask, count_events, &event_counts);
	assert_int_not_equal(subscription, 0);
	for (unsigned i = 0; i < TIMES; i++)
		assert_int_equal(plain(&l, READ_ONLY), 0);
	vidmm_unsubscribe(l.w.client.host, subscription);
	assert_int_equal(event_counts.locks, TIMES);
	assert_int_equal(event_counts.unlocks, TIMES);
	assert_int_equal(event_counts.doors, 2 * TIMES);
	assert_int_equal(event_counts.wrong, 0);
	/* Locks without a subscriber are counted all the same. */
	vidmm_event_counter(l.w.client.host, VIDMM_EVENT_LOCK, &before);
	for (unsigned i = 0; i < TIMES; i++)
		assert_int_equal(plain(&l, READ_ONLY), 0);
	vidmm_event_counter(l.w.client.host, VIDMM_EVENT_LOCK, &after);
	uint64_t counted = after.count - before.count;
	/*
	 * except locks that never reach the host, which follow one that announces them to
	 * the client.
	 */
	assert_int_equal(counted, served_wanted() && l.w.kind == VIDMM_HOST_LINUX ? 1 : TIMES);
	assert_int_equal(after.sum[0] - before.sum[0], counted * READ_ONLY);
	assert_int_equal(after.sum[2] - before.sum[2], counted * 64 * KIB);
	locks_stop(&l);
}

static HRESULT offer(struct locks *l)
{
	const D3DDDICB_OFFERALLOCATIONS args = {
		.HandleList = &l->idle, .NumAllocations = 1, .Priority = D3DDDI_OFFER_PRIORITY_LOW};

	return l->w.device.cb->pfnOfferAllocationsCb(l->w.device.handle, &args);
}

static void expect_finding(struct locks *l, const char *rule, const char *words)
{
	struct client *client = &l->w.client;

	assert_int_equal(client->findings, 1);
	if (!client_found(client, rule) || !strstr(client->finding[0], words))
		fail_msg("\"%s\" is not %s with \"%s\"", client->finding[0], rule, words);
	client_forget(client);
}

/*
 * Three locks are counted in the lock word when another caller needs the count, and the count is
 * three afterwards.
 */
static void lock_27_fast_path_locks_are_counted_for_all_callers(void **state)
{
	struct client_device *device;
	struct locks l = {0};

	locks_start(&l, state);
	device = &l.w.device;
	void *first = client_lock(device, l.idle, 0);
	for (unsigned i = 0; i < 2; i++)
		assert_ptr_equal(client_lock(device, l.idle, 0), first);
	assert_int_equal(offer(&l), E_INVALIDARG);
	expect_finding(&l, "OFR-08", "offer of a locked allocation");
	expect_lock_refused(&l.w, l.idle, ACQUIRE_APERTURE | LOCK_ENTIRE, E_INVALIDARG, "SWZ-14");
	client_forget(&l.w.client);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(client_unlock(device, l.idle), S_OK);
	assert_int_equal(client_unlock(device, l.idle), E_INVALIDARG);
	expect_finding(&l, "LOCK-28", "locked 0 times");
	/* Two locks on the fast path, one of which is unlocked there. */
	client_lock(device, l.idle, 0);
	client_lock(device, l.idle, 0);
	assert_int_equal(client_unlock(device, l.idle), S_OK);
	const D3DKMT_HANDLE twice[] = {l.idle, l.idle};
	assert_int_equal(unlock_many(device, twice, 2), E_INVALIDARG);
	expect_finding(&l, "LOCK-28", "locked 1 times, but occurs 2 times in the list");
	assert_int_equal(client_unlock(device, l.idle), S_OK);
	assert_int_equal(offer(&l), S_OK);
	/* LOCK-25: the fast path, which was enabled, is disabled. */
	expect_lock_refused(&l.w, l.idle, 0, E_INVALIDARG, "LOCK-25");
	client_forget(&l.w.client);
	locks_stop(&l);
}

/*
 * LOCK-30, LOCK-31: the allocation is destroyed with three fast-path locks; the slot's next owner
 * has another handle.
 */
static void lock_31_a_destroyed_handle_finds_no_lock_word(void **state)
{
	struct client_device *device;
	struct locks l = {0};

	locks_start(&l, state);
	device = &l.w.device;
	for (unsigned i = 0; i < 3; i++)
		client_lock(device, l.idle, 0);
	D3DKMT_HANDLE dead = l.idle;
	assert_int_equal(client_deallocate(device, dead), S_OK);
	l.idle = allocate_in(device, 64 * KIB, CPU, VRAM);
	client_lock(device, l.idle, 0);
	assert_int_equal(client_unlock(device, l.idle), S_OK);
	expect_lock_refused(&l.w, dead, 0, E_INVALIDARG, "LOCK-31");
	client_forget(&l.w.client);
	assert_int_equal(client_unlock(device, dead), E_INVALIDARG);
	expect_finding(&l, "LOCK-29", "unlock");
	locks_stop(&l);
}

static void expect_no_device(struct locks *l, D3DKMT_HANDLE device, const char *rule)
{
	D3DKMT_LOCK lock = {.hDevice = device, .hAllocation = l->idle};

	assert_int_equal(D3DKMTLock(&lock), STATUS_INVALID_PARAMETER);
	assert_int_equal(l->w.client.findings, 1);
	assert_true(client_found(&l->w.client, rule));
	client_forget(&l->w.client);
}

/* A device found by the lock-free lookup is not found after it has been destroyed. */
static void hnd_07_a_destroyed_device_is_not_found_by_lock_free_lookup(void **state)
{
	D3DKMT_ENUMADAPTERS adapters = {0};
	D3DKMT_CREATEDEVICE create = {0};
	struct locks l = {0};

	locks_start(&l, state);
	assert_int_equal(D3DKMTEnumAdapters(&adapters), STATUS_SUCCESS);
	create.hAdapter = adapters.Adapters[0].hAdapter;
	assert_int_equal(D3DKMTCreateDevice(&create), STATUS_SUCCESS);
	for (unsigned i = 0; i < 2; i++) /* looked up, then found in the thread's cache */
		expect_no_device(&l, create.hDevice, "LOCK-31");
	const D3DKMT_DESTROYDEVICE destroy = {.hDevice = create.hDevice};
	assert_int_equal(D3DKMTDestroyDevice(&destroy), STATUS_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		expect_no_device(&l, create.hDevice, "HND-07");
	expect_no_device(&l, 0, "HND-07");
	locks_stop(&l);
}

/* LOCK-05, LOCK-08: the second of two locks notices a submission between them. */
static void lock_08_a_submission_disables_the_fast_path(void **state)
{
	struct client_device *device;
	struct locks l = {0};

	locks_start(&l, state);
	device = &l.w.device;
	D3DKMT_HANDLE handle = l.idle;
	assert_int_equal(plain(&l, 0), 0);
	client_reference(&l.w.context, l.idle, true); /* behind the closed gate of the GPU */
	client_submit(&l.w.context);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(client_try_lock(device, &handle, DONOT_WAIT, NULL),
				 D3DERR_WASSTILLDRAWING);
		assert_int_equal(donotwait_refused(&l), 0);
	}
	gate_open(&l.w);
	client_idle(&l.w.client);
	assert_int_equal(plain(&l, DONOT_WAIT), 0);
	assert_int_equal(client_try_lock(device, &l.busy, DONOT_WAIT, NULL), S_OK);
	assert_int_equal(client_unlock(device, l.busy), S_OK);
	/* LOCK-25: an offered allocation is refused as offered, not as busy. */
	gate_close(&l.w);
	client_reference(&l.w.context, l.idle, true);
	client_submit(&l.w.context);
	assert_int_equal(client_try_lock(device, &handle, DONOT_WAIT, NULL),
			 D3DERR_WASSTILLDRAWING);
	assert_int_equal(offer(&l), S_OK);
	expect_lock_refused(&l.w, l.idle, DONOT_WAIT, E_INVALIDARG, "LOCK-25");
	client_forget(&l.w.client);
	locks_stop(&l);
}

/* PAG-16: an allocation locked on the fast path and evicted keeps its address. */
static void lock_04_a_fast_path_lock_keeps_its_address_through_eviction(void **state)
{
	struct client_device *device;
	struct locks l = {0};

	locks_start(&l, state);
	device = &l.w.device;
	client_write(device, l.idle, 64 * KIB, 0x1000);
	uint32_t *words = client_lock(device, l.idle, 0);
	gate_open(&l.w);
	/* LKR-01: it is evicted because the CPU has it locked */
	client_reference(&l.w.context, l.idle, false);
	client_submit(&l.w.context);
	client_idle(&l.w.client);
	for (uint32_t i = 0; i < 64 * KIB / 4; i++)
		assert_int_equal(words[i], 0x1000 + i);
	assert_int_equal(client_unlock(device, l.idle), S_OK);
	client_expect(device, l.idle, 64 * KIB, 0x1000);
	gate_close(&l.w);
	locks_stop(&l);
}

/* More allocations than a device has lock words initially; each is locked again and again. */
static void lock_words_are_found_for_many_allocations(void **state)
{
	enum { MANY = 300 };
	D3DKMT_HANDLE *many = calloc(MANY, sizeof(*many));
	struct client_device *device;
	struct locks l = {0};

	assert_non_null(many);
	locks_start(&l, state);
	device = &l.w.device;
	for (unsigned i = 0; i < MANY; i++)
		many[i] = allocate_in(device, PAGE, CPU, APERTURE);
	for (unsigned round = 0; round < 4; round++)
		for (unsigned i = 0; i < MANY; i++) {
			uint32_t *word = client_lock(device, many[i], 0);

			assert_int_equal(*word, round ? i + round - 1 : 0);
			*word = i + round;
			assert_ptr_equal(client_lock(device, many[i], 0), word);
			assert_int_equal(client_unlock(device, many[i]), S_OK);
			assert_int_equal(client_unlock(device, many[i]), S_OK);
		}
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(client_deallocate(device, many[i]), S_OK);
	free(many);
	locks_stop(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(fast_path_locks_take_no_mutex),
		BOTH(fast_path_locks_allocate_nothing),
#if OWN_PAGES_ALONE
		ON_LINUX(fast_path_locks_make_no_system_call_and_take_no_page_fault),
#endif
		BOTH(a_subscriber_gets_an_event_for_every_lock),
		BOTH(lock_27_fast_path_locks_are_counted_for_all_callers),
		BOTH(lock_31_a_destroyed_handle_finds_no_lock_word),
		BOTH(hnd_07_a_destroyed_device_is_not_found_by_lock_free_lookup),
		BOTH(lock_08_a_submission_disables_the_fast_path),
		BOTH(lock_04_a_fast_path_lock_keeps_its_address_through_eviction),
		BOTH(lock_words_are_found_for_many_allocations),
	};

	return cmocka_run_group_tests_name("memory_lock_gate", tests, NULL, NULL);
}
