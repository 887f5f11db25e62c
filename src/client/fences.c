/* SPDX-License-Identifier: MIT */
/*
 * Signals of and waits for one monitored fence without a message (base/fence_word.h,
 * docs/adr/0003-fences-without-a-message.md), if the host has given out the fence's page. The page
 * is requested once, and again after the epoch has advanced. Every other signal or wait is sent to
 * the host.
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
	uint64_t epoch;              /* epoch in which the other members are valid */
	struct vmm_fence_page *page; /* NULL: the host signals and waits by messages */
	/* page->cancels when the page was requested; if it has risen, the opening may have ended */
	uint32_t cancels;
	uint32_t users;
	bool forgotten; /* not found any more; the last user frees it */
};

static long futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
	return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static struct vmm_client_fence **bucket_of(struct vidmm_connection *connection, uint32_t handle)
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
	VMM_REQUIRES(vmm_client_fence_class)
{
	struct vmm_client_fence **at = bucket_of(connection, handle);

	vmm_assert_owned(&connection->fence_lock.owner);
	while (*at && ((*at)->handle != handle || (*at)->forgotten))
		at = &(*at)->next;
	return at;
}

static void unlink_locked(struct vidmm_connection *connection, struct vmm_client_fence *fence)
	VMM_REQUIRES(vmm_client_fence_class)
{
	struct vmm_client_fence **at = bucket_of(connection, fence->handle);

	vmm_assert_owned(&connection->fence_lock.owner);
	while (*at != fence)
		at = &(*at)->next;
	*at = fence->next;
	free_fence(fence);
}

/* Threads may still sleep in the page, so it stays in the table until the last user has left. */
static void forget_locked(struct vidmm_connection *connection, struct vmm_client_fence *fence)
	VMM_REQUIRES(vmm_client_fence_class)
{
	vmm_assert_owned(&connection->fence_lock.owner);
	fence->forgotten = true;
	if (!fence->users)
		unlink_locked(connection, fence);
}

static void put(struct vidmm_connection *connection, struct vmm_client_fence *fence)
{
	vmm_client_fence_lock(connection);
	if (--fence->users == 0 && fence->forgotten)
		unlink_locked(connection, fence);
	if (--connection->fence_users == 0 && vmm_client_lost(connection))
		pthread_cond_broadcast(&connection->fence_users_gone);
	vmm_client_fence_unlock(connection);
}

static void forget(struct vidmm_connection *connection, uint32_t handle)
{
	vmm_client_fence_lock(connection);
	struct vmm_client_fence *fence = *find_locked(connection, handle);
	connection->fence_forgets++;
	if (fence)
		forget_locked(connection, fence);
	vmm_client_fence_unlock(connection);
}

static void forget_all_locked(struct vidmm_connection *connection)
	VMM_REQUIRES(vmm_client_fence_class)
{
	struct vmm_client_fence *next;

	vmm_assert_owned(&connection->fence_lock.owner);
	connection->fence_forgets++;
	for (uint32_t i = 0; i < VMM_CLIENT_FENCES; i++)
		for (struct vmm_client_fence *fence = connection->fences[i]; fence; fence = next) {
			next = fence->next;
			forget_locked(connection, fence);
		}
}

/* The openings of a device end with the device. */
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
		vmm_client_fence_lock(connection);
		forget_all_locked(connection);
		vmm_client_fence_unlock(connection);
		break;
	default:
		break;
	}
}

/* Threads that sleep in the same page in other processes wake too; they check and sleep again. */
void vmm_client_wake_fences(struct vidmm_connection *connection)
{
	vmm_client_fence_lock(connection);
	for (uint32_t i = 0; i < VMM_CLIENT_FENCES; i++)
		for (struct vmm_client_fence *fence = connection->fences[i]; fence;
		     fence = fence->next) {
			if (!fence->page)
				continue;
			atomic_fetch_add(&fence->page->turns, 1);
			futex(&fence->page->turns, FUTEX_WAKE, INT_MAX);
		}
	vmm_client_fence_unlock(connection);
}

void vmm_client_finish_fences(struct vidmm_connection *connection)
{
	struct vmm_client_fence *next;

	/* In a child of fork() the lock may be held by a thread that does not exist. */
	if (!connection->forked) {
		vmm_client_fence_lock(connection);
		while (connection->fence_users)
			vmm_client_mutex_wait(&connection->fence_lock,
					      &connection->fence_users_gone);
		vmm_client_fence_unlock(connection);
	}
	/* No thread uses a fence any more. */
	for (uint32_t i = 0; i < VMM_CLIENT_FENCES; i++)
		for (struct vmm_client_fence *fence = connection->fences[i]; fence; fence = next) {
			next = fence->next;
			free_fence(fence);
		}
}

/* ---- requesting a page ---- */

static struct vmm_fence_page *map_page(const struct vmm_wire_sync_words *words)
{
	if (words->words != VMM_WIRE_WORDS_GIVEN)
		return NULL;
	int fd = (int)(intptr_t)words->page;
	void *page = mmap(NULL, VMM_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return page == MAP_FAILED ? NULL : page;
}

/*
 * Adds the fence to the table, unless a fence was forgotten meanwhile: then this one may belong to
 * an opening that has ended.
 */
static void insert(struct vidmm_connection *connection, struct vmm_client_fence *fence,
		   uint64_t forgot)
{
	vmm_client_fence_lock(connection);
	if (connection->fence_forgets == forgot && !vmm_client_lost(connection)) {
		struct vmm_client_fence **at = find_locked(connection, fence->handle);

		if (*at)
			forget_locked(connection, *at);
		at = bucket_of(connection, fence->handle);
		fence->next = *at;
		*at = fence;
		fence = NULL;
	}
	vmm_client_fence_unlock(connection);
	if (fence)
		free_fence(fence);
}

static void request_page(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
			 uint64_t forgot)
{
	struct vmm_wire_sync_words words = {.device = device, .handle = handle};
	struct vmm_client_fence *fence;
	int32_t result;

	if (!vmm_ok(vmm_client_call(connection, VMM_WIRE_sync_words, 0, &words, &result)))
		return;
	if (!vmm_ok(result) || words.words == VMM_WIRE_WORDS_NEVER || !connection->epoch) {
		atomic_store(&connection->fence_pages_refused, true);
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
	insert(connection, fence, forgot);
}

/*
 * Returns the fence, with a use that the caller ends by `put`, or NULL: the host has to be called.
 * *known: the result is final; otherwise the page has to be requested first.
 */
static struct vmm_client_fence *look_up(struct vidmm_connection *connection, uint32_t device,
					uint32_t handle, bool *known, uint64_t *forgot)
{
	vmm_client_fence_lock(connection);
	struct vmm_client_fence *fence = *find_locked(connection, handle);
	*forgot = connection->fence_forgets;
	*known = fence && fence->device == device &&
		 vmm_client_is_epoch(connection, fence->epoch) &&
		 (!fence->page || atomic_load(&fence->page->cancels) == fence->cancels);
	if (!*known || !fence->page || vmm_client_lost(connection)) {
		fence = NULL;
	} else {
		fence->users++;
		connection->fence_users++;
	}
	vmm_client_fence_unlock(connection);
	return fence;
}

/* As look_up; requests the page first if necessary. */
static struct vmm_client_fence *get(struct vidmm_connection *connection, uint32_t device,
				    uint32_t handle)
{
	uint64_t forgot;
	bool known;

	if (vmm_client_lost(connection) || atomic_load(&connection->fence_pages_refused))
		return NULL;
	struct vmm_client_fence *fence = look_up(connection, device, handle, &known, &forgot);
	if (!known) {
		request_page(connection, device, handle, forgot);
		fence = look_up(connection, device, handle, &known, &forgot);
	}
	if (fence && atomic_load(&fence->page->shut)) {
		put(connection, fence);
		fence = NULL;
	}
	return fence;
}

/* ---- signals ---- */

/*
 * Raises the value; the same value changes nothing. Returns false for a lower one, which the host
 * has to refuse. (MFN-23)
 */
static bool raise_value(struct vmm_fence_page *page, uint64_t value, bool *raised)
{
	uint64_t now = atomic_load_explicit(&page->value, memory_order_relaxed);

	*raised = false;
	while (now < value)
		if (atomic_compare_exchange_weak(&page->value, &now, value)) {
			*raised = true;
			return true;
		}
	return now == value;
}

bool vmm_client_signal(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
		       uint64_t value, int32_t *result)
{
	struct vmm_client_fence *fence = get(connection, device, handle);
	bool notify_host = false, raised;

	if (!fence)
		return false;
	struct vmm_fence_page *page = fence->page;
	if (!raise_value(page, value, &raised)) {
		put(connection, fence);
		return false;
	}
	if (raised) {
		notify_host = atomic_load(&page->awaited);
		if (atomic_load(&page->sleepers)) {
			atomic_fetch_add(&page->turns, 1);
			futex(&page->turns, FUTEX_WAKE, INT_MAX);
		}
	}
	put(connection, fence);
	*result = VMM_OK;
	if (notify_host) {
		struct vmm_wire_sync_signaled signaled = {.handle = handle};
		vmm_status status =
			vmm_client_call(connection, VMM_WIRE_sync_signaled, 0, &signaled, result);

		if (!vmm_ok(status))
			*result = status;
	}
	return true;
}

/* ---- waits ---- */

/*
 * Status of a wait whose opening has ended: with its adapter or alone (SFL-27), or because the host
 * ended the session. If the host ends, all sessions end, and that of this client may be noticed
 * later.
 */
static int32_t cancelled(const struct vidmm_connection *connection,
			 const struct vmm_client_fence *fence)
{
	return atomic_load(&fence->page->removed) == fence->adapter ||
			       vmm_client_host_is_gone(connection)
		       ? VMM_DEVICE_REMOVED
		       : VMM_CANCELLED;
}

/*
 * Returns whether the thread must stop sleeping. *result is then the status of the wait, or
 * VMM_PENDING: the host has to be called.
 */
static bool must_wake(struct vidmm_connection *connection, const struct vmm_client_fence *fence,
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
		/* before the value is read, so that a signal sees this thread (Dekker pattern) */
		atomic_fetch_add(&page->sleepers, 1);
		for (;;) {
			uint32_t turn = atomic_load(&page->turns);

			if (must_wake(connection, fence, value, result))
				break;
			futex(&page->turns, FUTEX_WAIT, turn);
		}
		atomic_fetch_sub(&page->sleepers, 1);
	}
	put(connection, fence);
	return *result != VMM_PENDING;
}
