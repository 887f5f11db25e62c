/* SPDX-License-Identifier: MIT */
/* The client library: calls, memory, the end of the host, and fork. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <d3dkmthk.h>
#include <vidmm/client.h>
#include <vidmm/serve.h>

#include "client/client_private.h"
#include "support/connect.h"
#include "support/client.h"

struct world {
	struct client host;
	struct vidmm_server *server;
	struct vidmm_connection *connection;
	struct vidmm_remote_device *device;
	const D3DDDI_DEVICECALLBACKS *cb;
	HANDLE handle;
	void (*meanwhile)(struct world *); /* before the next channel exists */
};

static int more(void *context)
{
	struct world *w = context;

	if (w->meanwhile)
		w->meanwhile(w);
	return connect_to(w->server);
}

static void start_with(struct world *w, const struct vidmm_server_options *options)
{
	w->meanwhile = NULL;
	client_start(&w->host, &(struct client_options){.kind = VIDMM_HOST_LINUX});
	assert_int_equal(vidmm_server_create(w->host.host, options, &w->server), 0);
	assert_int_equal(vidmm_connect_fd(more(w), "program", more, w, &w->connection), 0);
	assert_int_equal(vidmm_remote_device_create(w->connection, 0, &w->device), 0);
	w->cb = vidmm_remote_device_callbacks(w->device);
	w->handle = vidmm_remote_device_handle(w->device);
}

static void start(struct world *w)
{
	start_with(w, &(struct vidmm_server_options){.struct_size =
							     sizeof(struct vidmm_server_options)});
}

static void stop(struct world *w)
{
	vidmm_remote_device_destroy(w->device);
	vidmm_disconnect(w->connection);
	vidmm_server_destroy(w->server);
	client_stop(&w->host);
}

static D3DKMT_HANDLE allocate(struct world *w, uint64_t bytes, uint32_t flags)
{
	struct softgpu_allocation spec = {
		.version = SOFTGPU_ALLOCATION_VERSION, .flags = flags, .size_bytes = bytes};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(w->cb->pfnAllocateCb(w->handle, &args), S_OK);
	assert_int_not_equal(info.hAllocation, 0);
	return info.hAllocation;
}

static uint32_t *lock(struct world *w, D3DKMT_HANDLE allocation)
{
	D3DDDICB_LOCK args = {.hAllocation = allocation};

	assert_int_equal(w->cb->pfnLockCb(w->handle, &args), S_OK);
	assert_non_null(args.pData);
	return args.pData;
}

static void unlock(struct world *w, D3DKMT_HANDLE allocation)
{
	D3DDDICB_UNLOCK args = {.NumAllocations = 1, .phAllocations = &allocation};

	assert_int_equal(w->cb->pfnUnlockCb(w->handle, &args), S_OK);
}

/* Stores, an eviction by GPU work, and the same content afterwards. */
static void memory_is_where_the_lock_says(void **state)
{
	enum { COUNT = 24, BYTES = 1 << 20 }; /* more than the 16 MiB of video memory */
	D3DKMT_HANDLE allocations[COUNT];
	struct world w;

	(void)state;
	start(&w);
	for (uint32_t i = 0; i < COUNT; i++) {
		allocations[i] = allocate(&w, BYTES, SOFTGPU_ALLOCATION_CPU_VISIBLE);
		uint32_t *words = lock(&w, allocations[i]);
		for (uint32_t k = 0; k < BYTES / 4; k++)
			words[k] = i * 1000003 + k;
		unlock(&w, allocations[i]);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		const uint32_t *words = lock(&w, allocations[i]);
		for (uint32_t k = 0; k < BYTES / 4; k++)
			assert_int_equal(words[k], i * 1000003 + k);
		unlock(&w, allocations[i]);
	}
	stop(&w);
}

static void requests_longer_than_a_packet_arrive(void **state)
{
	enum { COUNT = 40000 };
	struct world w;
	D3DKMT_HANDLE *handles = calloc(COUNT, sizeof(*handles));

	(void)state;
	start(&w);
	D3DKMT_HANDLE allocation = allocate(&w, 4096, SOFTGPU_ALLOCATION_CPU_VISIBLE);
	D3DDDICB_UNLOCK args = {.NumAllocations = COUNT, .phAllocations = handles};
	for (uint32_t i = 0; i < COUNT; i++)
		handles[i] = allocation;
	/* No allocation is locked this many times. */
	assert_int_equal(w.cb->pfnUnlockCb(w.handle, &args), E_INVALIDARG);
	D3DDDI_RESIDENCYSTATUS *answers = calloc(COUNT, sizeof(*answers));
	D3DDDICB_QUERYRESIDENCY query = {
		.NumAllocations = COUNT, .HandleList = handles, .pResidencyStatus = answers};
	assert_int_equal(w.cb->pfnQueryResidencyCb(w.handle, &query), S_OK);
	assert_int_not_equal(answers[COUNT - 1], 0);
	free(answers);
	free(handles);
	stop(&w);
}

/* The statistics that `vidmm replay` requests from a host. */
static void statistics_come_from_the_host(void **state)
{
	struct vidmm_adapter_statistics here = {.struct_size = sizeof(here)};
	struct vidmm_adapter_statistics there = {.struct_size = sizeof(there)}, untouched = there;
	struct world w;

	(void)state;
	start(&w);
	(void)allocate(&w, 1 << 20, SOFTGPU_ALLOCATION_CPU_VISIBLE);
	/* In the first answer peaks cover the time since the adapter started. */
	assert_int_equal(vidmm_remote_adapter_statistics(w.connection, 0, &there), STATUS_SUCCESS);
	vidmm_adapter_statistics(w.host.adapter, &here);
	assert_int_equal(here.allocations, 1);
	assert_memory_equal(&here, &there, sizeof(here));

	there = untouched;
	assert_int_equal(vidmm_remote_adapter_statistics(w.connection, 1, &there),
			 STATUS_INVALID_PARAMETER);
	assert_memory_equal(&there, &untouched, sizeof(there));
	/* The structure of an older program ends before the last member. */
	there.struct_size = offsetof(struct vidmm_adapter_statistics, handles_destroyed_locked);
	there.handles_destroyed_locked = 77;
	assert_int_equal(vidmm_remote_adapter_statistics(w.connection, 0, &there), STATUS_SUCCESS);
	assert_int_equal(there.allocations, 1);
	assert_int_equal(there.handles_destroyed_locked, 77);
	there.struct_size = 0; /* the member is not written */
	assert_int_equal(vidmm_remote_adapter_statistics(w.connection, 0, &there),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(vidmm_remote_adapter_statistics(NULL, 0, &untouched),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(vidmm_remote_adapter_statistics(w.connection, 0, NULL),
			 STATUS_INVALID_PARAMETER);
	stop(&w);
}

/* ---- allocations over memory of the client (Q-95) ---- */

enum { WORDS = 1 << 18, WRITERS = 3 };

static HRESULT wrap(struct world *w, void *memory, uint64_t bytes, D3DKMT_HANDLE *allocation)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE |
						   SOFTGPU_ALLOCATION_EXISTING_SYSTEM,
					  .size_bytes = bytes};
	D3DDDI_ALLOCATIONINFO info = {.pSystemMem = memory,
				      .pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DDDICB_ALLOCATE args = {.NumAllocations = 1, .pAllocationInfo = &info};
	HRESULT result = w->cb->pfnAllocateCb(w->handle, &args);

	*allocation = info.hAllocation;
	return result;
}

static void deallocate(struct world *w, D3DKMT_HANDLE allocation)
{
	D3DDDICB_DEALLOCATE args = {.NumAllocations = 1, .HandleList = &allocation};

	assert_int_equal(w->cb->pfnDeallocateCb(w->handle, &args), S_OK);
}

static uint32_t *map_words(int flags)
{
	uint32_t *words = mmap(NULL, WORDS * sizeof(*words), PROT_READ | PROT_WRITE,
			       MAP_ANONYMOUS | flags, -1, 0);

	assert_true(words != MAP_FAILED);
	return words;
}

struct writer {
	uint32_t *words;
	uint32_t first;
	_Atomic uint32_t rounds, enough;
	pthread_t thread;
};

/* Each word is incremented once a round, so a lost store leaves one behind. */
static void *write_on(void *argument)
{
	struct writer *writer = argument;

	while (!atomic_load(&writer->enough)) {
		for (uint32_t i = writer->first; i < WORDS; i += WRITERS * 64)
			writer->words[i]++;
		atomic_fetch_add(&writer->rounds, 1);
	}
	return NULL;
}

static void await_round(struct writer *writers)
{
	for (uint32_t i = 0; i < WRITERS; i++) {
		uint32_t before = atomic_load(&writers[i].rounds);

		while (atomic_load(&writers[i].rounds) == before)
			sched_yield();
	}
}

static void alf_13_no_store_is_lost_while_memory_is_shared_with_the_host(void **state)
{
	struct writer writers[WRITERS];
	D3DKMT_HANDLE allocation;
	struct world w;

	(void)state;
	start(&w);
	if (w.connection->userfault < 0)
		skip(); /* the kernel does not allow this user to write-protect memory */
	for (uint32_t round = 0; round < 20; round++) {
		uint32_t *words = map_words(MAP_PRIVATE);

		for (uint32_t i = 0; i < WRITERS; i++) {
			writers[i] = (struct writer){.words = words, .first = i * 64};
			assert_int_equal(
				pthread_create(&writers[i].thread, NULL, write_on, &writers[i]), 0);
		}
		await_round(writers);
		assert_int_equal(wrap(&w, words, WORDS * sizeof(*words), &allocation), S_OK);
		await_round(writers);
		for (uint32_t i = 0; i < WRITERS; i++) {
			atomic_store(&writers[i].enough, 1);
			pthread_join(writers[i].thread, NULL);
		}
		assert_ptr_equal(lock(&w, allocation), words);
		for (uint32_t i = 0; i < WORDS; i += 64)
			assert_int_equal(words[i], writers[i / 64 % WRITERS].rounds);
		unlock(&w, allocation);
		deallocate(&w, allocation);
		assert_int_equal(words[0], writers[0].rounds);
		munmap(words, WORDS * sizeof(*words));
	}
	stop(&w);
}

static void alf_11_memory_that_cannot_be_shared_is_refused_and_unchanged(void **state)
{
	enum { BYTES = WORDS * sizeof(uint32_t) };
	D3DKMT_HANDLE allocation, whole;
	struct world w;

	(void)state;
	start(&w);
	uint32_t *shared = map_words(MAP_SHARED), *words = map_words(MAP_PRIVATE);
	assert_int_equal(wrap(&w, shared, BYTES, &allocation), E_NOTIMPL);
	assert_int_equal(wrap(&w, w.connection->window, BYTES, &allocation), E_INVALIDARG);
	words[0] = 1;
	assert_int_equal(wrap(&w, words, BYTES / 2, &allocation), S_OK);
	/* The host shares one half already: both halves would need two memory objects. */
	assert_int_equal(wrap(&w, words, BYTES, &whole), E_NOTIMPL);
	assert_int_equal(whole, 0);
	deallocate(&w, allocation);
	assert_int_equal(wrap(&w, words, BYTES / 2, &allocation), S_OK);
	deallocate(&w, allocation);
	/* The pages at the address are others now. */
	assert_true(mmap(words, BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == words);
	assert_int_equal(wrap(&w, words, BYTES, &whole), S_OK);
	assert_int_equal(lock(&w, whole)[0], 0);
	unlock(&w, whole);
	deallocate(&w, whole);
	munmap(words, BYTES);
	munmap(shared, BYTES);
	stop(&w);
}

static void an_invalid_device_is_refused(void **state)
{
	struct world w;
	D3DDDICB_LOCK args = {0};

	(void)state;
	start(&w);
	assert_int_equal(w.cb->pfnLockCb(NULL, &args), E_INVALIDARG);
	assert_int_equal(w.cb->pfnLockCb((HANDLE)(uintptr_t)0x1234567, &args), E_INVALIDARG);
	assert_int_equal(w.cb->pfnLockCb(w.handle, NULL), E_INVALIDARG);
	assert_int_equal(w.cb->pfnEscapeCb(w.handle, NULL), E_NOTIMPL);
	struct vidmm_remote_device *other;
	assert_int_equal(vidmm_remote_device_create(w.connection, 1, &other),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(vidmm_remote_device_create(w.connection, 0, &other), 0);
	vidmm_remote_device_destroy(other);
	vidmm_remote_device_destroy(other);
	assert_int_equal(w.cb->pfnLockCb(other, &args), E_INVALIDARG);
	stop(&w);
}

/* ---- many threads ---- */

enum { THREADS = 12, ROUNDS = 200 };

static void *lock_and_unlock(void *argument)
{
	struct world *w = argument;
	D3DKMT_HANDLE allocation = allocate(w, 65536, SOFTGPU_ALLOCATION_CPU_VISIBLE);

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t *words = lock(w, allocation);

		words[i] = i;
		unlock(w, allocation);
	}
	return NULL;
}

static void each_thread_has_a_channel(void **state)
{
	pthread_t threads[THREADS];
	struct world w;

	(void)state;
	start(&w);
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, lock_and_unlock, &w), 0);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_in_range(w.connection->channel_count, 1, THREADS + 1);
	stop(&w);
}

struct waiter {
	struct world *w;
	D3DKMT_HANDLE mutex;
	pthread_t thread;
	NTSTATUS status;
};

static void *acquire(void *argument)
{
	struct waiter *waiter = argument;
	D3DKMT_ACQUIREKEYEDMUTEX args = {.hKeyedMutex = waiter->mutex, .Key = 1};

	waiter->status =
		vmm_client_d3dkmt(waiter->w->connection, VMM_WIRE_D3DKMTAcquireKeyedMutex, &args);
	return NULL;
}

/* A thread that waits inside a call for a value that is never signaled. */
static void start_waiting(struct world *w, struct waiter *waiter)
{
	D3DKMT_CREATEKEYEDMUTEX args = {.InitialValue = 0};

	assert_int_equal(vmm_client_d3dkmt(w->connection, VMM_WIRE_D3DKMTCreateKeyedMutex, &args),
			 STATUS_SUCCESS);
	*waiter = (struct waiter){.w = w, .mutex = args.hKeyedMutex};
	assert_int_equal(pthread_create(&waiter->thread, NULL, acquire, waiter), 0);
}

static void await_in_flight(struct world *w, uint32_t count)
{
	struct vidmm_client_info info = {0};

	while (info.requests_in_flight < count)
		assert_int_equal(vidmm_server_clients(w->server, &info, 1), 1);
}

/*
 * More threads than channels: a thread that finds no free channel fails at once. A thread that
 * waits returns when its wait ends.
 */
static void more_threads_than_channels(void **state)
{
	const struct vidmm_server_options options = {.struct_size = sizeof(options),
						     .limits = {.channels = 2}};
	struct world w;
	D3DDDICB_LOCK none = {0};

	(void)state;
	start_with(&w, &options);
	struct vmm_channel_to_host *taken[2];
	assert_int_equal(vmm_client_take_channel(w.connection, &taken[0]), VMM_OK);
	assert_int_equal(vmm_client_take_channel(w.connection, &taken[1]), VMM_OK);
	assert_int_equal(w.cb->pfnLockCb(w.handle, &none), E_OUTOFMEMORY);
	vmm_client_put_channel(w.connection, taken[0]);
	assert_int_equal(w.cb->pfnLockCb(w.handle, &none), E_INVALIDARG);
	vmm_client_put_channel(w.connection, taken[1]);
	stop(&w);
}

/* ---- the end of the host ---- */

static void without_a_host_calls_say_removed(void **state)
{
	struct world w;
	D3DDDICB_LOCK args = {0};
	D3DKMT_ENUMADAPTERS adapters = {0};

	(void)state;
	start(&w);
	D3DKMT_HANDLE allocation = allocate(&w, 4096, SOFTGPU_ALLOCATION_CPU_VISIBLE);
	uint32_t *words = lock(&w, allocation);
	words[0] = 17;
	vidmm_server_destroy(w.server);
	args.hAllocation = allocation;
	assert_int_equal(w.cb->pfnLockCb(w.handle, &args), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(vmm_client_d3dkmt(w.connection, VMM_WIRE_D3DKMTEnumAdapters, &adapters),
			 STATUS_DEVICE_REMOVED);
	assert_int_equal(words[0], 17); /* mappings remain valid */
	words[0] = 18;
	struct vidmm_remote_device *other;
	assert_int_equal(vidmm_remote_device_create(w.connection, 0, &other),
			 STATUS_DEVICE_REMOVED);
	vidmm_remote_device_destroy(w.device);
	vidmm_disconnect(w.connection);
	client_stop(&w.host);
}

static void cut(struct world *w)
{
	struct vidmm_client_info info;

	shutdown(w->connection->first->fd, SHUT_RDWR);
	while (vidmm_server_clients(w->server, &info, 1))
		sched_yield();
}

static void cut_and_leave(struct world *w)
{
	cut(w);
	vmm_client_begin_disconnect(w->connection);
}

/*
 * The first call of a thread needs a new channel. Here the session has ended, and the client has
 * not noticed yet.
 */
static HRESULT call_without_a_session(void (*meanwhile)(struct world *))
{
	struct world w;
	struct vmm_channel_to_host *taken;
	D3DDDICB_LOCK none = {0};

	start(&w);
	assert_int_equal(vmm_client_take_channel(w.connection, &taken), VMM_OK);
	w.meanwhile = meanwhile;
	HRESULT result = w.cb->pfnLockCb(w.handle, &none);
	vmm_client_put_channel(w.connection, taken);
	stop(&w);
	return result;
}

static void without_a_session_calls_say_removed(void **state)
{
	(void)state;
	/* Often the library's thread of the connection notifications first. */
	for (uint32_t i = 0; i < 50; i++) {
		assert_int_equal(call_without_a_session(cut), D3DDDIERR_DEVICEREMOVED);
		/* The program disconnected: its handles are invalid. */
		assert_int_equal(call_without_a_session(cut_and_leave), E_INVALIDARG);
	}
}

/* A thread that waits inside a call returns when the host ends. */
static void a_waiting_call_returns_when_the_host_ends(void **state)
{
	struct world w;
	struct waiter waiter;

	(void)state;
	start(&w);
	start_waiting(&w, &waiter);
	await_in_flight(&w, 1);
	vidmm_server_destroy(w.server);
	pthread_join(waiter.thread, NULL);
	assert_int_equal(waiter.status, STATUS_DEVICE_REMOVED);
	vidmm_remote_device_destroy(w.device);
	vidmm_disconnect(w.connection);
	client_stop(&w.host);
}

/* While one thread waits, others continue. */
static void a_waiting_thread_does_not_delay_other_threads(void **state)
{
	struct world w;
	struct waiter waiter;

	(void)state;
	start(&w);
	start_waiting(&w, &waiter);
	await_in_flight(&w, 1);
	(void)lock_and_unlock(&w);
	D3DKMT_RELEASEKEYEDMUTEX release = {.hKeyedMutex = waiter.mutex, .Key = 1};
	D3DKMT_ACQUIREKEYEDMUTEX mine = {.hKeyedMutex = waiter.mutex, .Key = 0};
	assert_int_equal(vmm_client_d3dkmt(w.connection, VMM_WIRE_D3DKMTAcquireKeyedMutex, &mine),
			 STATUS_SUCCESS);
	assert_int_equal(
		vmm_client_d3dkmt(w.connection, VMM_WIRE_D3DKMTReleaseKeyedMutex, &release),
		STATUS_SUCCESS);
	pthread_join(waiter.thread, NULL);
	assert_int_equal(waiter.status, STATUS_SUCCESS);
	stop(&w);
}

/* ---- the host ends the client's process while its threads run ---- */

struct user {
	struct world *w;
	D3DKMT_HANDLE allocation;
	_Atomic uint32_t calls;
	HRESULT last;
	pthread_t thread;
};

static void *use_until_dead(void *argument)
{
	struct user *user = argument;
	D3DDDICB_LOCK args = {.hAllocation = user->allocation};
	D3DDDICB_UNLOCK undo = {.NumAllocations = 1, .phAllocations = &user->allocation};

	do {
		user->last = user->w->cb->pfnLockCb(user->w->handle, &args);
		if (user->last == S_OK)
			user->last = user->w->cb->pfnUnlockCb(user->w->handle, &undo);
		atomic_fetch_add(&user->calls, 1);
	} while (user->last == S_OK);
	return NULL;
}

static void a_call_after_the_disconnect_finds_an_invalid_handle(void **state)
{
	enum { USERS = 3 };
	struct world w;

	(void)state;
	start(&w);
	for (uint32_t round = 0; round < 20; round++) {
		struct user users[USERS];

		for (uint32_t i = 0; i < USERS; i++) {
			users[i] = (struct user){.w = &w};
			users[i].allocation = allocate(&w, 4096, SOFTGPU_ALLOCATION_CPU_VISIBLE);
			assert_int_equal(
				pthread_create(&users[i].thread, NULL, use_until_dead, &users[i]),
				0);
		}
		for (uint32_t i = 0; i < USERS; i++)
			while (atomic_load(&users[i].calls) < 3)
				sched_yield();
		vidmm_disconnect(w.connection);
		for (uint32_t i = 0; i < USERS; i++) {
			pthread_join(users[i].thread, NULL);
			assert_int_equal(users[i].last, E_INVALIDARG);
		}
		client_forget(&w.host);
		assert_int_equal(vidmm_connect_fd(more(&w), "program", more, &w, &w.connection), 0);
		assert_int_equal(vidmm_remote_device_create(w.connection, 0, &w.device), 0);
		w.handle = vidmm_remote_device_handle(w.device);
	}
	stop(&w);
}

/* ---- fork ---- */

static void a_child_has_no_connection(void **state)
{
	struct world w;
	D3DDDICB_LOCK args = {0};
	int status;

	(void)state;
	start(&w);
	D3DKMT_HANDLE allocation = allocate(&w, 4096, SOFTGPU_ALLOCATION_CPU_VISIBLE);
	uint32_t *words = lock(&w, allocation);
	words[0] = 1;
	pid_t child = fork();
	assert_true(child >= 0);
	if (!child) {
		args.hAllocation = allocation;
		bool good = w.cb->pfnLockCb(w.handle, &args) == D3DDDIERR_DEVICEREMOVED;
		vidmm_remote_device_destroy(w.device);
		vidmm_disconnect(w.connection);
		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	/* The parent's connection still works. */
	unlock(&w, allocation);
	words = lock(&w, allocation);
	assert_int_equal(words[0], 1);
	unlock(&w, allocation);
	stop(&w);
}

/* ---- which process the D3DKMT functions act for ---- */

static uint32_t adapters_seen(void)
{
	D3DKMT_ENUMADAPTERS args = {0};

	return NT_SUCCESS(D3DKMTEnumAdapters(&args)) ? args.NumAdapters : 0;
}

static void *in_a_thread(void *argument)
{
	struct world *w = argument;

	assert_null(vidmm_connection_enter(w->connection));
	assert_int_equal(adapters_seen(), 1);
	assert_ptr_equal(vidmm_connection_enter(NULL), w->connection);
	return NULL;
}

/*
 * D3DKMT functions act for the process or connection that was attached last. On a thread that
 * entered one, they act for that one.
 */
static void d3dkmt_functions_act_for_the_attached_process(void **state)
{
	struct world w;
	struct vidmm_process *process;
	pthread_t thread;

	(void)state;
	start(&w);
	assert_int_equal(vidmm_process_open(w.host.host, "local", &process), 0);
	assert_int_equal(adapters_seen(), 0); /* no thread is attached */
	vidmm_connection_attach(w.connection);
	assert_int_equal(adapters_seen(), 1);
	struct vidmm_client_info info;
	assert_int_equal(vidmm_server_clients(w.server, &info, 1), 1);
	uint64_t requests = info.requests;
	vidmm_d3dkmt_attach(process);
	assert_int_equal(adapters_seen(), 1);
	assert_int_equal(vidmm_server_clients(w.server, &info, 1), 1);
	assert_int_equal(info.requests, requests); /* the call was made in-process */
	assert_int_equal(pthread_create(&thread, NULL, in_a_thread, &w), 0);
	pthread_join(thread, NULL);
	assert_int_equal(vidmm_server_clients(w.server, &info, 1), 1);
	assert_int_equal(info.requests, requests + 1);
	vidmm_connection_attach(w.connection);
	assert_null(vidmm_d3dkmt_enter(process));
	assert_int_equal(adapters_seen(), 1);
	assert_int_equal(vidmm_server_clients(w.server, &info, 1), 1);
	assert_int_equal(info.requests, requests + 1);
	(void)vidmm_d3dkmt_enter(NULL);
	assert_int_equal(adapters_seen(), 1);
	assert_int_equal(vidmm_server_clients(w.server, &info, 1), 1);
	assert_int_equal(info.requests, requests + 2);
	vidmm_connection_attach(NULL);
	assert_int_equal(adapters_seen(), 0);
	vidmm_connection_attach(w.connection);
	vidmm_process_close(process);
	stop(&w);
	assert_int_equal(adapters_seen(), 0); /* the attachment ended with the connection */
}

/* ---- no host at the path ---- */

static void connecting_without_a_server_fails(void **state)
{
	struct vidmm_connection *connection;
	char folder[] = "/tmp/vidmm-XXXXXX", path[64], longer[256];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	assert_int_equal(vidmm_connect(path, NULL, &connection), STATUS_OBJECT_NAME_NOT_FOUND);
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	assert_int_equal(vidmm_connect(longer, NULL, &connection), STATUS_OBJECT_NAME_INVALID);
	unsetenv("VIDMM_SOCKET");
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(vidmm_connect(NULL, NULL, &connection), STATUS_OBJECT_NAME_NOT_FOUND);
	assert_int_equal(vidmm_connect_fd(-1, NULL, NULL, NULL, &connection),
			 STATUS_INVALID_PARAMETER);
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	close(fd);
	assert_int_equal(vidmm_connect(path, NULL, &connection), (NTSTATUS)0xC0000236);
	unlink(path);
	rmdir(folder);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Whatever is no connected SOCK_SEQPACKET socket is refused and stays the caller's. */
static void a_refused_descriptor_is_still_the_callers(void **state)
{
	struct vidmm_connection *connection = NULL;
	struct world w;
	int fds[5], pair[2];

	(void)state;
	start(&w);
	fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	fds[1] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	fds[2] = pair[0];
	fds[3] = pair[1];
	fds[4] = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (uint32_t i = 0; i < 5; i++) {
		assert_true(fds[i] >= 0);
		assert_int_equal(vidmm_connect_fd(fds[i], NULL, NULL, NULL, &connection),
				 STATUS_INVALID_PARAMETER);
		assert_int_equal(vidmm_server_connect(w.server, fds[i]), STATUS_INVALID_PARAMETER);
		assert_int_equal(vidmm_server_listen(w.server, fds[i]), STATUS_INVALID_PARAMETER);
		assert_true(is_open(fds[i]));
		assert_int_equal(close(fds[i]), 0);
	}
	assert_null(connection);
	assert_int_equal(vidmm_server_connect(w.server, -1), STATUS_INVALID_PARAMETER);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(vidmm_server_connect(NULL, pair[0]), STATUS_INVALID_PARAMETER);
	assert_int_equal(vidmm_connect_fd(pair[0], NULL, NULL, NULL, NULL),
			 STATUS_INVALID_PARAMETER);
	assert_true(is_open(pair[0]));
	close(pair[0]);
	close(pair[1]);
	stop(&w);
}

/*
 * A server accepts from a socket once. The second call on it fails, and changes nothing for the
 * first.
 */
static void a_socket_that_the_server_has_is_refused(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t bytes = sizeof(address.sun_family); /* an unused name */
	struct vidmm_connection *connection;
	struct world w;

	(void)state;
	start(&w);
	int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(listening, 1), 0);
	bytes = sizeof(address);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &bytes), 0);
	assert_int_equal(vidmm_server_listen(w.server, listening), STATUS_SUCCESS);
	assert_int_equal(vidmm_server_listen(w.server, listening), STATUS_INSUFFICIENT_RESOURCES);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(vidmm_connect_fd(fd, NULL, NULL, NULL, &connection), STATUS_SUCCESS);
	vidmm_disconnect(connection);
	stop(&w);
}

/* A peer that is no host, or refuses the message: never INVALID_PARAMETER, and fd is closed. */
static void a_peer_without_the_protocol_is_not_supported(void **state)
{
	const struct vmm_message_refused refused = {
		.head = {.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_REFUSED},
		.status = STATUS_INVALID_PARAMETER,
	};
	const struct vmm_message_head other = {.magic = VMM_PROTOCOL_MAGIC,
					       .kind = VMM_MESSAGE_LIST};
	struct vidmm_connection *connection = NULL;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		if (i)
			assert_int_equal(write(pair[1], &refused, sizeof(refused)),
					 sizeof(refused));
		else
			assert_int_equal(write(pair[1], &other, sizeof(other)), sizeof(other));
		assert_int_equal(vidmm_connect_fd(pair[0], NULL, NULL, NULL, &connection),
				 STATUS_NOT_SUPPORTED);
		assert_null(connection);
		assert_false(is_open(pair[0]));
		close(pair[1]);
	}
}

static void leave(int number)
{
	(void)number;
	exit(0);
}

/* A host that has not answered the hello hears nothing of the exit. */
static void an_exit_while_connecting_says_nothing(void **state)
{
	struct vidmm_connection *connection = NULL;
	char hello[4096];
	int pair[2], status = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid_t child = fork();

	if (child == 0) {
		close(pair[1]);
		signal(SIGUSR1, leave);
		status = vidmm_connect_fd(pair[0], "early", NULL, NULL, &connection);
		_exit(status ? 1 : 2);
	}
	assert_true(child > 0);
	close(pair[0]);
	assert_true(recv(pair[1], hello, sizeof(hello), 0) > 0);
	assert_int_equal(kill(child, SIGUSR1), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(recv(pair[1], hello, sizeof(hello), 0), 0);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_where_the_lock_says),
		cmocka_unit_test(requests_longer_than_a_packet_arrive),
		cmocka_unit_test(statistics_come_from_the_host),
		cmocka_unit_test(alf_13_no_store_is_lost_while_memory_is_shared_with_the_host),
		cmocka_unit_test(alf_11_memory_that_cannot_be_shared_is_refused_and_unchanged),
		cmocka_unit_test(an_invalid_device_is_refused),
		cmocka_unit_test(each_thread_has_a_channel),
		cmocka_unit_test(more_threads_than_channels),
		cmocka_unit_test(without_a_host_calls_say_removed),
		cmocka_unit_test(without_a_session_calls_say_removed),
		cmocka_unit_test(a_waiting_call_returns_when_the_host_ends),
		cmocka_unit_test(a_waiting_thread_does_not_delay_other_threads),
		cmocka_unit_test(a_call_after_the_disconnect_finds_an_invalid_handle),
		cmocka_unit_test(a_child_has_no_connection),
		cmocka_unit_test(d3dkmt_functions_act_for_the_attached_process),
		cmocka_unit_test(connecting_without_a_server_fails),
		cmocka_unit_test(a_refused_descriptor_is_still_the_callers),
		cmocka_unit_test(a_socket_that_the_server_has_is_refused),
		cmocka_unit_test(a_peer_without_the_protocol_is_not_supported),
		cmocka_unit_test(an_exit_while_connecting_says_nothing),
	};

	return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
