/* SPDX-License-Identifier: MIT */
/*
 * Signals of and waits for one monitored fence without a message (base/fence_word.h, docs/adr/0003-fences-without-a-message.md), where the host
 * has given its page. A fence is asked for once, and again when the host's epoch is another. Whatever is not plain goes to the host.
 */
#include "client/client_private.h"

#include <limits.h>
#include <linux/futex.h>

#include <d3dkmthk.h>
#include <d3dumddi.h>

#include "base/fence_word.h"

struct vmm_client_fence {
	struct vmm_client_fence *next;
	uint32_t device, handle, adapter;
	uint64_t epoch;              /* for which this is so */
	struct vmm_fence_page *page; /* NULL: it goes by messages */
	uint32_t cancels;            /* when it was asked for: later the opening may have ended */
	uint32_t users;
	bool forgotten; /* nobody finds it; the last user frees it */
};

static long futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
	return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static struct vmm_client_fence **place_of(struct vidmm_connection *connection, uint32_t handle)
{
	return &connection->fences[(handle >> 6 ^ handle) % VMM_CLIENT_FENCES];
}

static void free_fence(struct vmm_client_fence *fence)
{
	if (fence->page)
		munmap(fence->page, VMM_PAGE_SIZE);
	vmm_free(fence);
}

/* ---- the list; fence lock held ---- */

static struct vmm_client_fence **find_locked(struct vidmm_connection *connection, uint32_t handle)
{
	struct vmm_client_fence **at = place_of(connection, handle);

	while (*at && ((*at)->handle != handle || (*at)->forgotten))
		at = &(*at)->next;
	return at;
}

static void unlink_locked(struct vidmm_connection *connection, struct vmm_client_fence *fence)
{
	struct vmm_client_fence **at = place_of(connection, fence->handle);

	while (*at != fence)
		at = &(*at)->next;
	*at = fence->next;
	free_fence(fence);
}

/* Who sleeps there is to be found as long as he does. */
static void forget_locked(struct vidmm_connection *connection, struct vmm_client_fence *fence)
{
	fence->forgotten = true;
	if (!fence->users)
		unlink_locked(connection, fence);
}

static void put(struct vidmm_connection *connection, struct vmm_client_fence *fence)
{
	pthread_mutex_lock(&connection->fence_lock);
	if (--fence->users == 0 && fence->forgotten)
		unlink_locked(connection, fence);
	if (--connection->fence_users == 0 && vmm_client_lost(connection))
		pthread_cond_broadcast(&connection->fences_left);
	pthread_mutex_unlock(&connection->fence_lock);
}

static void forget(struct vidmm_connection *connection, uint32_t handle)
{
	pthread_mutex_lock(&connection->fence_lock);
	struct vmm_client_fence *fence = *find_locked(connection, handle);
	connection->fences_forgot++;
	if (fence)
		forget_locked(connection, fence);
	pthread_mutex_unlock(&connection->fence_lock);
}

static void forget_all_locked(struct vidmm_connection *connection)
{
	struct vmm_client_fence *next;

	connection->fences_forgot++;
	for (uint32_t i = 0; i < VMM_CLIENT_FENCES; i++)
		for (struct vmm_client_fence *fence = connection->fences[i]; fence; fence = next) {
			next = fence->next;
			forget_locked(connection, fence);
		}
}

/* Openings of devices end with those. */
void vmm_client_forget_ended(struct vidmm_connection *connection, uint32_t operation,
			     const void *argument)
{
	switch (operation) {
	case VMM_WIRE_D3DKMTDestroySynchronizationObject:
		if (argument)
			forget(connection, ((const D3DKMT_DESTROYSYNCHRONIZATIONOBJECT *)argument)
						   ->hSyncObject);
		break;
	case VMM_WIRE_pfnDestroySynchronizationObjectCb:
		if (argument)
			forget(connection, ((const D3DDDICB_DESTROYSYNCHRONIZATIONOBJECT *)argument)
						   ->hSyncObject);
		break;
	case VMM_WIRE_D3DKMTDestroyDevice:
	case VMM_WIRE_device_destroy:
		pthread_mutex_lock(&connection->fence_lock);
		forget_all_locked(connection);
		pthread_mutex_unlock(&connection->fence_lock);
		break;
	default:
		break;
	}
}

/* Spurious to everybody else who sleeps there. */
void vmm_client_wake_fences(struct vidmm_connection *connection)
{
	pthread_mutex_lock(&connection->fence_lock);
	for (uint32_t i = 0; i < VMM_CLIENT_FENCES; i++)
		for (struct vmm_client_fence *fence = connection->fences[i]; fence;
		     fence = fence->next) {
			if (!fence->page)
				continue;
			atomic_fetch_add(&fence->page->turns, 1);
			futex(&fence->page->turns, FUTEX_WAKE, INT_MAX);
		}
	pthread_mutex_unlock(&connection->fence_lock);
}

void vmm_client_finish_fences(struct vidmm_connection *connection)
{
	/* In a child of fork() the lock may be a thread's that is not there. */
	if (!connection->forked) {
		pthread_mutex_lock(&connection->fence_lock);
		while (connection->fence_users)
			pthread_cond_wait(&connection->fences_left, &connection->fence_lock);
		pthread_mutex_unlock(&connection->fence_lock);
	} else {
		for (uint32_t i = 0; i < VMM_CLIENT_FENCES; i++)
			for (struct vmm_client_fence *f = connection->fences[i]; f; f = f->next)
				f->users = 0;
	}
	forget_all_locked(connection);
}

/* ---- asking for one ---- */

static struct vmm_fence_page *map_page(const struct vmm_wire_sync_words *words)
{
	if (words->words != VMM_WIRE_WORDS_GIVEN)
		return NULL;
	int fd = (int)(intptr_t)words->page;
	void *page = mmap(NULL, VMM_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return page == MAP_FAILED ? NULL : page;
}

/* Unless something ended meanwhile: then it may be of an opening that is no more. */
static void keep(struct vidmm_connection *connection, struct vmm_client_fence *fence,
		 uint64_t forgot)
{
	pthread_mutex_lock(&connection->fence_lock);
	if (connection->fences_forgot == forgot && !vmm_client_lost(connection)) {
		struct vmm_client_fence **at = find_locked(connection, fence->handle);

		if (*at)
			forget_locked(connection, *at);
		at = place_of(connection, fence->handle);
		fence->next = *at;
		*at = fence;
		fence = NULL;
	}
	pthread_mutex_unlock(&connection->fence_lock);
	if (fence)
		free_fence(fence);
}

static void ask(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
		uint64_t forgot)
{
	struct vmm_wire_sync_words words = {.device = device, .handle = handle};
	struct vmm_client_fence *fence;
	int32_t result;

	if (!vmm_ok(vmm_client_call(connection, VMM_WIRE_sync_words, 0, &words, &result)))
		return;
	if (!vmm_ok(result) || words.words == VMM_WIRE_WORDS_NEVER || !connection->epoch) {
		atomic_store(&connection->no_fences, true);
		return;
	}
	fence = vmm_calloc(1, sizeof(*fence));
	struct vmm_fence_page *page = map_page(&words);
	if (!fence) {
		if (page)
			munmap(page, VMM_PAGE_SIZE);
		return;
	}
	fence->device = device;
	fence->handle = handle;
	fence->adapter = words.adapter;
	fence->epoch = words.epoch;
	fence->page = page;
	fence->cancels = page ? atomic_load(&page->cancels) : 0;
	keep(connection, fence, forgot);
}

/* NULL: it goes by a message; *known: that is settled. Otherwise the caller's to put. */
static struct vmm_client_fence *look(struct vidmm_connection *connection, uint32_t device,
				     uint32_t handle, bool *known, uint64_t *forgot)
{
	pthread_mutex_lock(&connection->fence_lock);
	struct vmm_client_fence *fence = *find_locked(connection, handle);
	*forgot = connection->fences_forgot;
	*known = fence && fence->device == device &&
		 vmm_client_is_epoch(connection, fence->epoch) &&
		 (!fence->page || atomic_load(&fence->page->cancels) == fence->cancels);
	if (!*known || !fence->page || vmm_client_lost(connection)) {
		fence = NULL;
	} else {
		fence->users++;
		connection->fence_users++;
	}
	pthread_mutex_unlock(&connection->fence_lock);
	return fence;
}

/* NULL: by a message. */
static struct vmm_client_fence *get(struct vidmm_connection *connection, uint32_t device,
				    uint32_t handle)
{
	uint64_t forgot;
	bool known;

	if (vmm_client_lost(connection) || atomic_load(&connection->no_fences))
		return NULL;
	struct vmm_client_fence *fence = look(connection, device, handle, &known, &forgot);
	if (!known) {
		ask(connection, device, handle, forgot);
		fence = look(connection, device, handle, &known, &forgot);
	}
	if (fence && atomic_load(&fence->page->shut)) {
		put(connection, fence);
		fence = NULL;
	}
	return fence;
}

/* ---- signals ---- */

/* MFN-23: what is not higher changes nothing. */
static bool raise_value(struct vmm_fence_page *page, uint64_t value)
{
	uint64_t now = atomic_load_explicit(&page->value, memory_order_relaxed);

	while (now < value)
		if (atomic_compare_exchange_weak(&page->value, &now, value))
			return true;
	return false;
}

bool vmm_client_signal(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
		       uint64_t value, int32_t *result)
{
	struct vmm_client_fence *fence = get(connection, device, handle);
	bool tell = false;

	if (!fence)
		return false;
	struct vmm_fence_page *page = fence->page;
	if (raise_value(page, value)) {
		tell = atomic_load(&page->awaited);
		if (atomic_load(&page->sleepers)) {
			atomic_fetch_add(&page->turns, 1);
			futex(&page->turns, FUTEX_WAKE, INT_MAX);
		}
	}
	put(connection, fence);
	*result = VMM_OK;
	if (tell) {
		struct vmm_wire_sync_told told = {.handle = handle};
		vmm_status status =
			vmm_client_call(connection, VMM_WIRE_sync_told, 0, &told, result);

		if (!vmm_ok(status))
			*result = status;
	}
	return true;
}

/* ---- waits ---- */

/* An opening has ended, with an adapter or by itself (SFL-27); or because its session did, as all do with the host, which has ended this one before. */
static int32_t cancelled(const struct vidmm_connection *connection,
			 const struct vmm_client_fence *fence)
{
	return atomic_load(&fence->page->removed) == fence->adapter || vmm_client_is_cut(connection)
		       ? VMM_DEVICE_REMOVED
		       : VMM_CANCELLED;
}

/* What the thread may not sleep any longer for; true: *result, unless that is VMM_PENDING: the host is to be asked. */
static bool is_over(struct vidmm_connection *connection, const struct vmm_client_fence *fence,
		    uint64_t value, int32_t *result)
{
	const struct vmm_fence_page *page = fence->page;

	*result = VMM_PENDING;
	if (atomic_load(&page->value) >= value)
		*result = VMM_OK;
	else if (atomic_load(&connection->ending))
		*result = VMM_INVALID_PARAMETER;
	else if (vmm_client_lost(connection))
		*result = VMM_DEVICE_REMOVED;
	else if (atomic_load(&page->cancels) != fence->cancels)
		*result = cancelled(connection, fence);
	else
		return atomic_load(&page->shut) || !vmm_client_is_epoch(connection, fence->epoch);
	return true;
}

bool vmm_client_wait(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
		     uint64_t value, int32_t *result)
{
	struct vmm_client_fence *fence = get(connection, device, handle);

	if (!fence)
		return false;
	struct vmm_fence_page *page = fence->page;
	*result = VMM_OK;
	if (atomic_load(&page->value) < value) {
		/* From before the look at the value on. */
		atomic_fetch_add(&page->sleepers, 1);
		for (;;) {
			uint32_t turn = atomic_load(&page->turns);

			if (is_over(connection, fence, value, result))
				break;
			futex(&page->turns, FUTEX_WAIT, turn);
		}
		atomic_fetch_sub(&page->sleepers, 1);
	}
	put(connection, fence);
	return *result != VMM_PENDING;
}
