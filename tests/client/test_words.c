/* SPDX-License-Identifier: MIT */
/*
 * Locks of a client by its lock word, without a message: which locks use the word, what the host
 * learns of them, and clients that write garbage into it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <d3dkmthk.h>
#include <vidmm/client.h>
#include <vidmm/serve.h>

#include "base/lock_word.h"
#include "client/client_private.h"
#include "support/connect.h"
#include "support/client.h"

enum { WRITE_ONLY = 0x2, IGNORE_SYNC = 0x8, LOCK_ENTIRE = 0x10, DISCARD = 0x80 };
enum { NO_EXISTING_REFERENCE = 0x100 };

struct world {
	struct client host;
	struct vidmm_server *server;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char said[512]; /* the last lines of the log, which say why a client was disconnected */
};

struct program {
	struct world *w;
	struct vidmm_connection *connection;
	struct vidmm_remote_device *device;
	const D3DDDI_DEVICECALLBACKS *cb;
	HANDLE handle;
};

static void log_line(void *context, const char *line)
{
	struct world *w = context;

	pthread_mutex_lock(&w->lock);
	if (strstr(line, "cut off")) {
		snprintf(w->said, sizeof(w->said), "%s", line);
		pthread_cond_broadcast(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
}

static void start_with(struct world *w, const struct client_options *adapter)
{
	const struct vidmm_server_options options = {
		.struct_size = sizeof(options), .log = log_line, .log_context = w};

	*w = (struct world){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	client_start(&w->host, adapter);
	assert_int_equal(vidmm_server_create(w->host.host, &options, &w->server), 0);
}

static void start(struct world *w)
{
	start_with(w, &(struct client_options){.kind = VIDMM_HOST_LINUX});
}

static void stop(struct world *w)
{
	vidmm_server_destroy(w->server);
	client_stop(&w->host);
}

static int more(void *context)
{
	struct world *w = context;

	return connect_to(w->server);
}

static void come(struct program *p, struct world *w)
{
	p->w = w;
	assert_int_equal(vidmm_connect_fd(more(w), "program", more, w, &p->connection), 0);
	assert_int_equal(vidmm_remote_device_create(p->connection, 0, &p->device), 0);
	p->cb = vidmm_remote_device_callbacks(p->device);
	p->handle = vidmm_remote_device_handle(p->device);
}

static void go(struct program *p)
{
	vidmm_remote_device_destroy(p->device);
	vidmm_disconnect(p->connection);
}

static D3DKMT_HANDLE allocate(struct program *p, uint64_t bytes)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = bytes};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(p->cb->pfnAllocateCb(p->handle, &args), S_OK);
	return info.hAllocation;
}

static HRESULT deallocate(struct program *p, D3DKMT_HANDLE allocation)
{
	D3DDDICB_DEALLOCATE args = {.NumAllocations = 1, .HandleList = &allocation};

	return p->cb->pfnDeallocateCb(p->handle, &args);
}

static HRESULT try_lock(struct program *p, D3DKMT_HANDLE allocation, uint32_t flags, void **data)
{
	D3DDDICB_LOCK args = {.hAllocation = allocation, .Flags.Value = flags};
	HRESULT result = p->cb->pfnLockCb(p->handle, &args);

	if (data)
		*data = args.pData;
	return result;
}

static uint32_t *lock(struct program *p, D3DKMT_HANDLE allocation)
{
	void *data;

	assert_int_equal(try_lock(p, allocation, 0, &data), S_OK);
	assert_non_null(data);
	return data;
}

/*
 * Starts a host and a client that has locked an allocation once, by a message. From then on its
 * lock word is enabled.
 */
static D3DKMT_HANDLE begin(struct world *w, struct program *p)
{
	start(w);
	come(p, w);
	D3DKMT_HANDLE allocation = allocate(p, 65536);
	(void)lock(p, allocation);
	return allocation;
}

static void end(struct world *w, struct program *p)
{
	go(p);
	stop(w);
}

/* Unlocks the allocation `count` times in one call. More than one goes to the host. */
static HRESULT unlock_times(struct program *p, D3DKMT_HANDLE allocation, uint32_t times)
{
	D3DKMT_HANDLE list[8];
	D3DDDICB_UNLOCK args = {.NumAllocations = times, .phAllocations = list};

	for (uint32_t i = 0; i < times; i++)
		list[i] = allocation;
	return p->cb->pfnUnlockCb(p->handle, &args);
}

static void unlock(struct program *p, D3DKMT_HANDLE allocation)
{
	assert_int_equal(unlock_times(p, allocation, 1), S_OK);
}

/* Returns what the host knows of the only client. */
static uint64_t requests(struct world *w)
{
	struct vidmm_client_info info;

	assert_int_equal(vidmm_server_clients(w->server, &info, 1), 1);
	return info.requests;
}

static struct vmm_lock_word *word_of(struct program *p, D3DKMT_HANDLE allocation)
{
	struct vmm_lock_words *words = atomic_load(&p->connection->words);

	assert_non_null(words);
	return &words->at[vmm_lock_word_index(allocation)];
}

static void await_cut_off(struct world *w, const char *why)
{
	pthread_mutex_lock(&w->lock);
	while (!strstr(w->said, why))
		pthread_cond_wait(&w->changed, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

/* ---- which locks use the word ---- */

/* The first lock is a message; later locks and unlocks send none. */
static void an_idle_allocation_is_locked_without_a_message(void **state)
{
	struct world w;
	struct program p;

	(void)state;
	start(&w);
	come(&p, &w);
	D3DKMT_HANDLE allocation = allocate(&p, 65536);
	uint32_t *first = lock(&p, allocation);
	uint64_t before = requests(&w);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_ptr_equal(lock(&p, allocation), first);
		first[i] = i;
		unlock(&p, allocation);
	}
	unlock(&p, allocation);
	assert_int_equal(requests(&w), before);
	/* One unlock too many goes to the host, which refuses it. (LOCK-28) */
	assert_int_equal(unlock_times(&p, allocation, 1), E_INVALIDARG);
	assert_true(client_found(&w.host, "LOCK-28"));
	assert_int_equal(requests(&w), before + 1);
	client_forget(&w.host);
	end(&w, &p);
}

/*
 * Locks with further flags go to the host, which reads how often the word was locked.
 * (LOCK-27, LOCK-29)
 */
static void the_host_counts_locks_by_the_word(void **state)
{
	struct world w;
	struct program p;

	(void)state;
	D3DKMT_HANDLE allocation = begin(&w, &p);
	(void)lock(&p, allocation);
	(void)lock(&p, allocation);
	uint64_t before = requests(&w);
	assert_int_equal(unlock_times(&p, allocation, 4), E_INVALIDARG);
	assert_true(client_found(&w.host, "LOCK-28"));
	client_forget(&w.host);
	assert_int_equal(unlock_times(&p, allocation, 3), S_OK);
	assert_int_equal(unlock_times(&p, allocation, 1), E_INVALIDARG);
	client_forget(&w.host);
	assert_int_equal(requests(&w), before + 3);
	uint64_t again = requests(&w);
	assert_int_equal(try_lock(&p, allocation, DISCARD, NULL), S_OK);
	assert_int_equal(requests(&w), again + 1);
	end(&w, &p);
}

/*
 * With one instance, Discard with NoExistingReference returns that instance, once it is not locked.
 * While it is locked the host creates a second one, and from then on chooses between them.
 */
static void ren_12_discard_of_a_single_instance_sends_no_message(void **state)
{
	const uint32_t flags = WRITE_ONLY | DISCARD | NO_EXISTING_REFERENCE;
	struct world w;
	struct program p;
	void *again;

	(void)state;
	D3DKMT_HANDLE allocation = begin(&w, &p);
	unlock(&p, allocation);
	void *first = lock(&p, allocation);
	unlock(&p, allocation);
	uint64_t before = requests(&w);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(try_lock(&p, allocation, flags, &again), S_OK);
		assert_ptr_equal(again, first);
		unlock(&p, allocation);
	}
	assert_int_equal(requests(&w), before);
	(void)lock(&p, allocation);
	D3DDDICB_LOCK args = {.hAllocation = allocation, .Flags.Value = flags};
	assert_int_equal(p.cb->pfnLockCb(p.handle, &args), S_OK);
	assert_int_not_equal(args.hAllocation, allocation);
	assert_ptr_not_equal(args.pData, first);
	unlock(&p, args.hAllocation);
	unlock(&p, allocation);
	uint64_t two = requests(&w);
	assert_int_equal(p.cb->pfnLockCb(p.handle, &args), S_OK);
	assert_int_equal(requests(&w), two + 1);
	unlock(&p, args.hAllocation);
	end(&w, &p);
}

static HRESULT try_pages(struct program *p, D3DKMT_HANDLE allocation, uint32_t flags,
			 const UINT *pages, uint32_t count, void **data)
{
	D3DDDICB_LOCK args = {.hAllocation = allocation,
			      .NumPages = count,
			      .pPages = pages,
			      .Flags.Value = flags};
	HRESULT result = p->cb->pfnLockCb(p->handle, &args);

	*data = args.pData;
	return result;
}

/* The address is that of the first listed page. Lists that break a rule go to the host. */
static void lock_18_a_list_of_pages_sends_no_message(void **state)
{
	static const UINT pages[] = {3, 1, 15}, beyond[] = {0, 16}, many[(1 << 20) + 1];
	struct world w;
	struct program p;
	void *data;

	(void)state;
	D3DKMT_HANDLE allocation = begin(&w, &p);
	unlock(&p, allocation);
	char *base = (char *)lock(&p, allocation);
	unlock(&p, allocation);
	uint64_t before = requests(&w);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(try_pages(&p, allocation, WRITE_ONLY, &pages[i], 3 - i, &data),
				 S_OK);
		assert_ptr_equal(data, base + pages[i] * 4096);
		unlock(&p, allocation);
	}
	assert_int_equal(requests(&w), before);
	assert_int_equal(try_pages(&p, allocation, 0, beyond, 2, &data), E_INVALIDARG);
	assert_true(client_found(&w.host, "LOCK-18"));
	client_forget(&w.host);
	assert_int_equal(try_pages(&p, allocation, 0, many, (1 << 20) + 1, &data), E_INVALIDARG);
	assert_int_equal(try_pages(&p, allocation, 0, NULL, 1, &data), E_INVALIDARG);
	assert_true(client_found(&w.host, "LOCK-18"));
	client_forget(&w.host);
	assert_int_equal(try_pages(&p, allocation, LOCK_ENTIRE, pages, 3, &data), E_INVALIDARG);
	assert_true(client_found(&w.host, "LOCK-17"));
	client_forget(&w.host);
	assert_int_equal(requests(&w), before + 4);
	end(&w, &p);
}

/* A reclaim enables the word again; while the allocation is offered the host refuses the lock. */
static void ofr_06_a_lock_after_a_reclaim_sends_no_message(void **state)
{
	struct world w;
	struct program p;
	BOOL discarded = TRUE;

	(void)state;
	D3DKMT_HANDLE allocation = begin(&w, &p);
	*lock(&p, allocation) = 77;
	assert_int_equal(unlock_times(&p, allocation, 2), S_OK);
	D3DDDICB_OFFERALLOCATIONS offer = {.HandleList = &allocation,
					   .NumAllocations = 1,
					   .Priority = D3DDDI_OFFER_PRIORITY_LOW};
	D3DDDICB_RECLAIMALLOCATIONS reclaim = {
		.HandleList = &allocation, .NumAllocations = 1, .pDiscarded = &discarded};
	assert_int_equal(p.cb->pfnOfferAllocationsCb(p.handle, &offer), S_OK);
	assert_int_equal(try_lock(&p, allocation, 0, NULL), E_INVALIDARG);
	client_forget(&w.host); /* LOCK-25 */
	assert_int_equal(p.cb->pfnReclaimAllocationsCb(p.handle, &reclaim), S_OK);
	assert_false(discarded);
	uint64_t before = requests(&w);
	assert_int_equal(*lock(&p, allocation), 77);
	unlock(&p, allocation);
	assert_int_equal(requests(&w), before);
	end(&w, &p);
}

/* A handle is valid on its device only, and while that device is valid. */
static void a_handle_of_another_device_goes_to_the_host(void **state)
{
	struct world w;
	struct program p;
	struct vidmm_remote_device *other;

	(void)state;
	start(&w);
	come(&p, &w);
	assert_int_equal(vidmm_remote_device_create(p.connection, 0, &other), 0);
	D3DKMT_HANDLE allocation = allocate(&p, 65536);
	(void)lock(&p, allocation);
	D3DDDICB_LOCK args = {.hAllocation = allocation};
	assert_int_equal(p.cb->pfnLockCb(vidmm_remote_device_handle(other), &args), E_INVALIDARG);
	assert_true(client_found(&w.host, "LOCK-31"));
	client_forget(&w.host);
	assert_int_equal(deallocate(&p, allocation), S_OK);
	assert_int_equal(try_lock(&p, allocation, 0, NULL), E_INVALIDARG);
	client_forget(&w.host);
	vidmm_remote_device_destroy(other);
	end(&w, &p);
}

/* ---- locks with a subscriber for events ---- */

static void count_event(void *context, const struct vidmm_event *event, const char *text)
{
	(void)event;
	(void)text;
	atomic_fetch_add((_Atomic uint32_t *)context, 1);
}

/* */
static void q_110_a_subscriber_gets_an_event_for_each_lock(void **state)
{
	_Atomic uint32_t heard = 0;
	struct world w;
	struct program p;

	(void)state;
	D3DKMT_HANDLE allocation = begin(&w, &p);
	unlock(&p, allocation);
	uint32_t id =
		vidmm_subscribe(w.host.host, 1ull << VIDMM_EVENT_LOCK | 1ull << VIDMM_EVENT_UNLOCK,
				count_event, &heard);
	for (uint32_t i = 0; i < 10; i++) {
		(void)lock(&p, allocation);
		unlock(&p, allocation);
	}
	assert_int_equal(heard, 20);
	vidmm_unsubscribe(w.host.host, id);
	(void)lock(&p, allocation);
	uint64_t before = requests(&w);
	unlock(&p, allocation);
	(void)lock(&p, allocation);
	assert_int_equal(requests(&w), before);
	assert_int_equal(heard, 20);
	end(&w, &p);
}

/* A lock word of before the removal locks nothing. (LOCK-33, PNP-08) */
static void a_removed_adapter_is_not_locked(void **state)
{
	struct world w;
	struct program p;

	(void)state;
	D3DKMT_HANDLE allocation = begin(&w, &p);
	assert_int_equal(vidmm_adapter_remove(w.host.adapter, VIDMM_REMOVAL_PNP), 0);
	assert_int_equal(try_lock(&p, allocation, 0, NULL), D3DDDIERR_DEVICEREMOVED);
	unlock(&p, allocation);
	end(&w, &p);
}

/* ---- while other threads work ---- */

struct locker {
	pthread_t thread;
	struct program *p;
	D3DKMT_HANDLE *allocations;
	uint32_t count, rounds;
};

static void *lock_them(void *argument)
{
	const struct locker *l = argument;

	for (uint32_t i = 0; i < l->rounds; i++) {
		D3DKMT_HANDLE allocation = l->allocations[i % l->count];
		volatile uint32_t *data = lock(l->p, allocation);

		if (i % 3)
			(void)data[i % 1024];
		unlock(l->p, allocation);
	}
	return NULL;
}

/* Locks with flags and evictions keep disabling the words. At the end nothing is locked. */
static void threads_lock_while_words_are_disabled(void **state)
{
	enum {
		THREADS = 3,
		COUNT = 20,
		BYTES = 1 << 20
	}; /* more than the 16 MiB of video memory */
	D3DKMT_HANDLE allocations[COUNT];
	struct locker locker[THREADS];
	struct world w;
	struct program p;

	(void)state;
	start(&w);
	come(&p, &w);
	for (uint32_t i = 0; i < COUNT; i++)
		allocations[i] = allocate(&p, BYTES);
	for (uint32_t i = 0; i < THREADS; i++) {
		locker[i] = (struct locker){
			.p = &p, .allocations = allocations, .count = COUNT, .rounds = 4000};
		assert_int_equal(pthread_create(&locker[i].thread, NULL, lock_them, &locker[i]), 0);
	}
	for (uint32_t i = 0; i < 2000; i++) {
		D3DKMT_HANDLE allocation = allocations[i % COUNT];

		assert_int_equal(try_lock(&p, allocation, 0, NULL), S_OK);
		assert_int_equal(try_lock(&p, allocation, 0, NULL), S_OK);
		assert_int_equal(unlock_times(&p, allocation, 2), S_OK);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(locker[i].thread, NULL);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(unlock_times(&p, allocations[i], 1), E_INVALIDARG);
	client_forget(&w.host);
	end(&w, &p);
}

/* Only the parent has the lock words. */
static void a_child_does_not_lock(void **state)
{
	struct world w;
	struct program p;
	int status;

	(void)state;
	D3DKMT_HANDLE allocation = begin(&w, &p);
	uint64_t before = atomic_load(&word_of(&p, allocation)->word);
	pid_t child = fork();
	if (child == 0)
		_exit(try_lock(&p, allocation, 0, NULL) == D3DDDIERR_DEVICEREMOVED ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(atomic_load(&word_of(&p, allocation)->word) == before);
	unlock(&p, allocation);
	end(&w, &p);
}

/* ---- events that invalidate words in use ---- */

/*
 * A thread that locks by the word repeatedly and counts in the locked memory, until a lock fails or
 * the test stops the thread.
 */
struct counter {
	pthread_t thread;
	struct program *p;
	D3DKMT_HANDLE allocation;
	_Atomic bool stop;
	_Atomic uint32_t rounds;
	HRESULT ended; /* status of the call that failed */
	bool torn;     /* its last value was not there */
	bool blind;    /* it locks without accessing memory: the mapping ends with the device */
};

static void *count_in_it(void *argument)
{
	struct counter *c = argument;
	void *data;

	while (!atomic_load(&c->stop) && c->ended == S_OK) {
		c->ended = try_lock(c->p, c->allocation, 0, &data);
		if (c->ended != S_OK)
			break;
		volatile uint32_t *number = data;
		if (!c->blind) {
			c->torn |= *number != atomic_load(&c->rounds);
			*number = atomic_load(&c->rounds) + 1;
		}
		atomic_fetch_add(&c->rounds, 1);
		c->ended = unlock_times(c->p, c->allocation, 1);
	}
	return NULL;
}

static void count_begin(struct counter *c, struct program *p, bool blind)
{
	*c = (struct counter){.p = p, .allocation = allocate(p, 65536), .blind = blind};
	assert_int_equal(pthread_create(&c->thread, NULL, count_in_it, c), 0);
	while (atomic_load(&c->rounds) < 100)
		sched_yield();
}

/* Checks that the thread makes progress, stops it, and returns its last status. */
static HRESULT count_end(struct counter *c, bool by_itself)
{
	uint32_t seen = atomic_load(&c->rounds);

	while (!by_itself && atomic_load(&c->rounds) == seen)
		sched_yield();
	atomic_store(&c->stop, !by_itself);
	pthread_join(c->thread, NULL);
	assert_false(c->torn);
	return c->ended;
}

static bool is_of_now(struct program *p, D3DKMT_HANDLE allocation)
{
	return atomic_load(&word_of(p, allocation)->epoch) ==
	       atomic_load(&p->connection->epoch->epoch);
}

static void *lock_and_count(void *argument)
{
	struct counter *c = argument;

	c->ended = try_lock(c->p, c->allocation, 0, NULL);
	return NULL;
}

/* Returns whether a call is waiting in the host. */
static void await_inside(struct world *w)
{
	struct vidmm_client_info info;

	do {
		assert_int_equal(vidmm_server_clients(w->server, &info, 1), 1);
		sched_yield();
	} while (info.requests_in_flight == 0);
}

/*
 * A lock word from before the power change is invalid. A thread that locks waits for power, and
 * finds its bytes. (PAG-28)
 */
static void nothing_is_locked_without_power(void **state)
{
	struct world w;
	struct program p;
	struct counter waiting = {.p = &p, .ended = -1};

	(void)state;
	waiting.allocation = begin(&w, &p);
	lock(&p, waiting.allocation)[0] = 4711;
	unlock(&p, waiting.allocation);
	unlock(&p, waiting.allocation);
	assert_true(is_of_now(&p, waiting.allocation));
	assert_int_equal(
		vidmm_adapter_set_power(w.host.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY), 0);
	assert_false(is_of_now(&p, waiting.allocation));
	assert_int_equal(pthread_create(&waiting.thread, NULL, lock_and_count, &waiting), 0);
	await_inside(&w);
	assert_int_equal(vidmm_adapter_set_power(w.host.adapter, VIDMM_POWER_D0, 0), 0);
	pthread_join(waiting.thread, NULL);
	assert_int_equal(waiting.ended, S_OK);
	uint64_t before = requests(&w);
	assert_int_equal(lock(&p, waiting.allocation)[0], 4711);
	assert_int_equal(requests(&w), before);
	end(&w, &p);
}

static void power_is_cut_while_words_are_locked(void **state)
{
	struct world w;
	struct program p;
	struct counter c;

	(void)state;
	start(&w);
	come(&p, &w);
	count_begin(&c, &p, false);
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t sleep = i % 2 ? VIDMM_SLEEP_STANDBY : VIDMM_SLEEP_HIBERNATE;

		assert_int_equal(vidmm_adapter_set_power(w.host.adapter, VIDMM_POWER_D3, sleep), 0);
		assert_int_equal(vidmm_adapter_set_power(w.host.adapter, VIDMM_POWER_D0, 0), 0);
	}
	assert_int_equal(count_end(&c, false), S_OK);
	end(&w, &p);
}

/* The engine never finishes it. */
static void hang(struct program *p)
{
	const struct softgpu_command command = {SOFTGPU_HANG, 0, sizeof(command)};
	struct client_device device = {.cb = p->cb, .handle = p->handle};
	struct client_context context;

	client_context(&device, 0, &context);
	client_command(&context, &command, sizeof(command));
	client_submit(&context);
}

/*
 * An engine reset loses only the device that hangs; an adapter reset loses every device. No lock
 * word bypasses that. (TDR-07, TDR-10)
 */
static void a_reset_ends_words(bool whole)
{
	const struct vidmm_registry_value registry[] = {{"PerEngineTdr", whole ? 0 : 1}};
	/* Only the packet that hangs is submitted. */
	const struct vidmm_tdr_options tdr = {3, 100, 60000, 60000, VIDMM_TDR_LIMIT_MAX, 2};
	struct world w;
	struct program bad, other;
	struct counter c, beside;

	start_with(&w, &(struct client_options){.kind = VIDMM_HOST_LINUX,
						.tdr = &tdr,
						.registry = registry,
						.registry_count = 1});
	come(&bad, &w);
	come(&other, &w);
	count_begin(&c, &bad, false);
	count_begin(&beside, &other, false);
	hang(&bad);
	assert_int_equal(count_end(&c, true), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(count_end(&beside, whole), whole ? D3DDDIERR_DEVICEREMOVED : S_OK);
	/* The next device gets valid lock words. */
	vidmm_remote_device_destroy(bad.device);
	vidmm_status status;
	do /* during the reset of the adapter the miniport creates no device */
		status = vidmm_remote_device_create(bad.connection, 0, &bad.device);
	while (status == VMM_DEVICE_REMOVED);
	assert_int_equal(status, 0);
	bad.handle = vidmm_remote_device_handle(bad.device);
	D3DKMT_HANDLE again = allocate(&bad, 65536);
	(void)lock(&bad, again);
	assert_true(is_of_now(&bad, again));
	client_forget(&w.host);
	go(&bad);
	go(&other);
	stop(&w);
}

static void a_reset_of_an_engine_ends_words(void **state)
{
	(void)state;
	a_reset_ends_words(false);
}

static void a_reset_of_the_adapter_ends_words(void **state)
{
	(void)state;
	a_reset_ends_words(true);
}

struct kmt_counter {
	pthread_t thread;
	struct program *p;
	D3DKMT_HANDLE device, allocation;
	_Atomic uint32_t rounds;
	NTSTATUS ended;
};

static void *count_through_kmt(void *argument)
{
	struct kmt_counter *c = argument;
	D3DKMT_LOCK lock = {.hDevice = c->device, .hAllocation = c->allocation};
	const D3DKMT_UNLOCK unlock = {
		.hDevice = c->device, .NumAllocations = 1, .phAllocations = &c->allocation};

	(void)vidmm_connection_enter(c->p->connection);
	while ((c->ended = D3DKMTLock(&lock)) == STATUS_SUCCESS) {
		atomic_fetch_add(&c->rounds, 1);
		if (!NT_SUCCESS(D3DKMTUnlock(&unlock)))
			break;
	}
	(void)vidmm_connection_enter(NULL);
	return NULL;
}

static void kmt_begin(struct kmt_counter *c, struct program *p)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 65536};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_ADAPTERINFO adapter;
	D3DKMT_ENUMADAPTERS2 list = {.NumAdapters = 1, .pAdapters = &adapter};

	*c = (struct kmt_counter){.p = p};
	assert_int_equal(D3DKMTEnumAdapters2(&list), STATUS_SUCCESS);
	D3DKMT_CREATEDEVICE device = {.hAdapter = adapter.hAdapter};
	assert_int_equal(D3DKMTCreateDevice(&device), STATUS_SUCCESS);
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = device.hDevice, .NumAllocations = 1, .pAllocationInfo = &info};
	assert_int_equal(D3DKMTCreateAllocation(&create), STATUS_SUCCESS);
	c->device = device.hDevice;
	c->allocation = info.hAllocation;
	assert_int_equal(pthread_create(&c->thread, NULL, count_through_kmt, c), 0);
	while (atomic_load(&c->rounds) < 100)
		sched_yield();
}

/* TDRS-15 */
static void a_device_marked_as_in_error_is_not_locked(void **state)
{
	struct world w;
	struct program p;
	struct kmt_counter c;

	(void)state;
	start(&w);
	come(&p, &w);
	(void)vidmm_connection_enter(p.connection);
	kmt_begin(&c, &p);
	D3DKMT_MARKDEVICEASERROR mark = {.hDevice = c.device,
					 .Reason = D3DKMT_DEVICE_ERROR_REASON_GENERIC};
	assert_int_equal(D3DKMTMarkDeviceAsError(&mark), STATUS_SUCCESS);
	pthread_join(c.thread, NULL);
	assert_int_equal(c.ended, STATUS_DEVICE_REMOVED);
	(void)vidmm_connection_enter(NULL);
	end(&w, &p);
}

/* PNP-08 */
static void a_removal_ends_words(void **state)
{
	struct world w;
	struct program p;
	struct counter c;

	(void)state;
	start(&w);
	come(&p, &w);
	count_begin(&c, &p, false);
	assert_int_equal(vidmm_adapter_remove(w.host.adapter, VIDMM_REMOVAL_PNP), 0);
	assert_int_equal(count_end(&c, true), D3DDDIERR_DEVICEREMOVED);
	end(&w, &p);
}

/* Devices end with the adapter. (PNP-02) */
static void a_stop_ends_words(void **state)
{
	struct world w;
	struct program p;
	struct counter c;

	(void)state;
	start(&w);
	come(&p, &w);
	count_begin(&c, &p, true);
	uint64_t before = atomic_load(&p.connection->epoch->epoch);
	vidmm_adapter_stop(w.host.adapter);
	w.host.adapter = NULL;
	assert_true(atomic_load(&p.connection->epoch->epoch) > before);
	HRESULT ended = count_end(&c, true);
	assert_int_equal(ended, D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(try_lock(&p, c.allocation, 0, NULL), D3DDDIERR_DEVICEREMOVED);
	end(&w, &p);
}

/* ---- clients that write garbage into words ---- */

/*
 * The word says one lock more than there is. The client may be disconnected already when the host
 * finds out.
 */
static void await_finding(struct world *w)
{
	while (!client_found(&w->host, "LOCK-28"))
		sched_yield();
	client_forget(&w->host);
}

/* Makes the host read the count of the word. */
static HRESULT have_it_looked_at(struct program *p, D3DKMT_HANDLE allocation)
{
	return unlock_times(p, allocation, 2);
}

static void garbage_ends_its_client_alone(void **state)
{
	static const uint64_t lies[] = {0, UINT64_MAX, 1, 0x5555555500010001};
	struct world w;
	struct program good;

	(void)state;
	start(&w);
	come(&good, &w);
	D3DKMT_HANDLE kept = allocate(&good, 65536);
	uint32_t *data = lock(&good, kept);
	data[0] = 4711;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct program bad;

		w.said[0] = 0;
		come(&bad, &w);
		D3DKMT_HANDLE allocation = allocate(&bad, 65536);
		(void)lock(&bad, allocation);
		assert_true(vmm_lock_word_is_enabled_for(
			atomic_load(&word_of(&bad, allocation)->word), allocation));
		atomic_store(&word_of(&bad, allocation)->word, lies[i]);
		(void)have_it_looked_at(&bad, allocation);
		await_cut_off(&w, "lock word");
		await_finding(&w);
		go(&bad);
	}
	assert_int_equal(data[0], 4711);
	(void)lock(&good, kept);
	unlock(&good, kept);
	unlock(&good, kept);
	go(&good);
	stop(&w);
}

/* The table is the client's memory: the client can unmap its pages or replace them. */
static void an_unmapped_table_ends_its_client(void **state)
{
	struct world w;
	struct program p;

	(void)state;
	D3DKMT_HANDLE allocation = begin(&w, &p);
	assert_int_equal(madvise(atomic_load(&p.connection->words), sizeof(struct vmm_lock_words),
				 MADV_REMOVE),
			 0);
	(void)have_it_looked_at(&p, allocation);
	await_cut_off(&w, "lock word");
	await_finding(&w);
	end(&w, &p);
}

/* Any count is accepted: it affects only the client's allocation. */
static void a_wrong_count_affects_no_other_client(void **state)
{
	struct world w;
	struct program p;

	(void)state;
	D3DKMT_HANDLE allocation = begin(&w, &p);
	atomic_fetch_or(&word_of(&p, allocation)->word, VMM_LOCK_WORD_LOCKS_MAX);
	/* The count of the word is at its maximum: the host counts the next lock. */
	assert_int_equal(try_lock(&p, allocation, 0, NULL), S_OK);
	assert_int_equal(have_it_looked_at(&p, allocation), S_OK);
	assert_int_equal(deallocate(&p, allocation), S_OK);
	end(&w, &p);
}

/*
 * The fields beside the word are read by the client alone. Executed instructions affect the memory
 * of that client only.
 */
static void fields_beside_the_word_are_not_read_by_the_host(void **state)
{
	struct world w;
	struct program p;

	(void)state;
	D3DKMT_HANDLE allocation = begin(&w, &p);
	struct vmm_lock_words *words = atomic_load(&p.connection->words);
	struct vmm_lock_word *word = word_of(&p, allocation);
	atomic_store(&word->epoch, UINT64_MAX);
	atomic_store(&word->address, UINT64_MAX);
	atomic_store(&word->views, UINT64_MAX);
	atomic_store(&word->device, UINT32_MAX);
	atomic_store(&words->executed, UINT64_MAX);
	for (uint32_t i = 0; i < VMM_LOCK_WORDS; i++)
		if (&words->at[i] != word)
			atomic_store(&words->at[i].word, UINT64_MAX);
	assert_int_equal(have_it_looked_at(&p, allocation), E_INVALIDARG);
	client_forget(&w.host);
	/* The host initializes a free word before it enables it. */
	D3DKMT_HANDLE another = allocate(&p, 65536);
	(void)lock(&p, another);
	uint64_t before = requests(&w);
	(void)lock(&p, another);
	unlock(&p, another);
	assert_int_equal(requests(&w), before);
	unlock(&p, another);
	unlock(&p, allocation);
	end(&w, &p);
}

/*
 * A client that dies with locks in its lock words leaves nothing locked: all its allocations are
 * freed.
 */
static void a_client_that_dies_leaves_nothing_locked(void **state)
{
	struct world w;
	struct program p;

	(void)state;
	start(&w);
	come(&p, &w);
	D3DKMT_HANDLE allocation = allocate(&p, 65536);
	for (uint32_t i = 0; i < 5; i++)
		(void)lock(&p, allocation);
	vidmm_disconnect(p.connection);
	struct vidmm_client_info info;
	while (vidmm_server_clients(w.server, &info, 1))
		;
	stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_allocation_is_locked_without_a_message),
		cmocka_unit_test(the_host_counts_locks_by_the_word),
		cmocka_unit_test(ren_12_discard_of_a_single_instance_sends_no_message),
		cmocka_unit_test(lock_18_a_list_of_pages_sends_no_message),
		cmocka_unit_test(ofr_06_a_lock_after_a_reclaim_sends_no_message),
		cmocka_unit_test(a_handle_of_another_device_goes_to_the_host),
		cmocka_unit_test(q_110_a_subscriber_gets_an_event_for_each_lock),
		cmocka_unit_test(a_removed_adapter_is_not_locked),
		cmocka_unit_test(threads_lock_while_words_are_disabled),
		cmocka_unit_test(a_child_does_not_lock),
		cmocka_unit_test(nothing_is_locked_without_power),
		cmocka_unit_test(power_is_cut_while_words_are_locked),
		cmocka_unit_test(a_reset_of_an_engine_ends_words),
		cmocka_unit_test(a_reset_of_the_adapter_ends_words),
		cmocka_unit_test(a_device_marked_as_in_error_is_not_locked),
		cmocka_unit_test(a_removal_ends_words),
		cmocka_unit_test(a_stop_ends_words),
		cmocka_unit_test(garbage_ends_its_client_alone),
		cmocka_unit_test(an_unmapped_table_ends_its_client),
		cmocka_unit_test(a_wrong_count_affects_no_other_client),
		cmocka_unit_test(fields_beside_the_word_are_not_read_by_the_host),
		cmocka_unit_test(a_client_that_dies_leaves_nothing_locked),
	};

	return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
