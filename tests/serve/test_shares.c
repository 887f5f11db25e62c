/* SPDX-License-Identifier: MIT */
/* The descriptors of the host: the share of each client, and what a full table costs. */
#include "raw_client.h"

#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <support/folder.h>

/* The host plans with this many descriptors more than the test has open. */
enum { PLANNED = 160, CLIENTS_MAX = 16, FENCES_MAX = 200 };

static rlim_t limit_files(rlim_t files)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	rlim_t before = limit.rlim_cur;
	limit.rlim_cur = files;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return before;
}

/* The clients of the test are in this process: the limit is for the host's plan only. */
static void start_with_few(struct served *served)
{
	rlim_t before = limit_files(folder_count("/proc/self/fd") + PLANNED);

	served_start(served, NULL, 0);
	(void)limit_files(before);
}

static NTSTATUS make_shared(struct raw *raw, D3DKMT_HANDLE device, D3DKMT_HANDLE *fence)
{
	D3DKMT_CREATESYNCHRONIZATIONOBJECT2 create = {
		.hDevice = device,
		.Info = {.Type = D3DDDI_FENCE, .Flags = {.Shared = 1, .NtSecuritySharing = 1}}};
	NTSTATUS status = raw_call(raw, "D3DKMTCreateSynchronizationObject2", &create);

	*fence = create.hSyncObject;
	return status;
}

/* An NT handle costs the host one descriptor until it is closed, and its copy is closed here. */
static NTSTATUS share(struct raw *raw, D3DKMT_HANDLE fence, HANDLE *handle)
{
	D3DKMT_SHAREOBJECTS args = {.ObjectCount = 1,
				    .DesiredAccess = 0x20000,
				    .ObjectHandleArray = &fence,
				    .pSharedNtHandle = handle};

	*handle = NULL;
	return raw_call(raw, "D3DKMTShareObjects", &args);
}

static void q_486_a_client_at_its_limit_is_refused_and_no_other(void **state)
{
	struct served served;
	struct raw greedy, honest;
	D3DKMT_HANDLE fence;
	HANDLE handle[FENCES_MAX];
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t count = 0;

	(void)state;
	start_with_few(&served);
	raw_open(&greedy, &served, "greedy");
	D3DKMT_HANDLE device = raw_device(&greedy);
	assert_int_equal(make_shared(&greedy, device, &fence), STATUS_SUCCESS);
	while (count < FENCES_MAX && NT_SUCCESS(status = share(&greedy, fence, &handle[count])))
		count++;
	assert_true(count >= 8);
	assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
	served_await(&served, "client 1 is refused D3DKMTShareObjects: it has reached its limit");
	/* The share of another client is not touched. */
	raw_open(&honest, &served, "honest");
	D3DKMT_HANDLE other = raw_device(&honest);
	(void)raw_allocate(&honest, other, 64 * KIB);
	assert_int_equal(make_shared(&honest, other, &fence), STATUS_SUCCESS);
	for (uint32_t i = 0; i < 4; i++) {
		HANDLE own;

		assert_int_equal(share(&honest, fence, &own), STATUS_SUCCESS);
		close((int)(intptr_t)own);
	}
	while (count)
		close((int)(intptr_t)handle[--count]);
	served_part(&served, &greedy, &honest);
}

static void q_486_a_client_without_a_share_is_refused_when_it_connects(void **state)
{
	struct served served;
	struct raw raw[CLIENTS_MAX];
	uint32_t count = 0;

	(void)state;
	start_with_few(&served);
	while (count < CLIENTS_MAX && raw_try_open(&raw[count], &served, "one of many"))
		count++;
	assert_in_range(count, 2, CLIENTS_MAX - 1);
	served_await(&served, "descriptors left to set aside for it (Q-486)");
	served_await(&served, "has most descriptors of all clients");
	/* The others have all that they need. */
	for (uint32_t i = 0; i < count; i++)
		(void)raw_allocate(&raw[i], raw_device(&raw[i]), 64 * KIB);
	raw_disconnect(&raw[--count]);
	served_await_clients(&served, count);
	/* The share comes back when all that the client had is released. */
	while (!raw_try_open(&raw[count], &served, "the next"))
		sched_yield();
	count++;
	while (count)
		raw_disconnect(&raw[--count]);
	served_await_clients(&served, 0);
	served_stop(&served);
}

/* ---- view instructions that a client does not read ---- */

static NTSTATUS lock_unread(struct raw *raw, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation)
{
	const D3DKMT_LOCK lock = {.hDevice = device, .hAllocation = allocation};

	raw_ask(raw, raw->channel, "D3DKMTLock", &lock);
	return raw_await(raw->channel);
}

/*
 * More instructions than the socket takes, all of which name the client's memory: the queue has one
 * descriptor for them.
 */
static void q_486_queued_view_instructions_share_their_descriptors(void **state)
{
	enum { MAPPED = 500, FEW = 4 };
	struct served served;
	struct raw raw;
	D3DKMT_HANDLE allocation[MAPPED];
	void *data;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&raw, &served, "slow");
	D3DKMT_HANDLE device = raw_device(&raw);
	for (uint32_t i = 0; i < MAPPED; i++)
		allocation[i] = raw_allocate(&raw, device, 4 * KIB);
	assert_int_equal(raw_lock(&raw, device, allocation[0], &data), STATUS_SUCCESS);
	uint32_t before = folder_count("/proc/self/fd");
	for (uint32_t i = 1; i < MAPPED; i++)
		assert_int_equal(lock_unread(&raw, device, allocation[i]), STATUS_SUCCESS);
	assert_in_range(folder_count("/proc/self/fd"), before, before + FEW);
	/* All are executed once the client reads again, and show the memory that was locked. */
	assert_int_equal(raw_lock(&raw, device, allocation[0], &data), STATUS_SUCCESS);
	served_part(&served, &raw, NULL);
}

/* ---- a full table ---- */

static NTSTATUS ask_with_event(struct raw *raw, int event)
{
	struct vmm_message_request request = {.head = {.magic = VMM_PROTOCOL_MAGIC,
						       .kind = VMM_MESSAGE_REQUEST,
						       .descriptors = 1},
					      .operation = 9999, /* none */
					      .tag = 7};

	assert_true(raw_send(raw->channel, &request, sizeof(request), NULL, 0, &event, 1));
	return raw_await(raw->channel);
}

/*
 * The host's table of descriptors is full. A request whose descriptors the host therefore cannot
 * receive is refused, and the client that sent the request goes on.
 */
static void q_487_a_request_whose_descriptor_is_lost_is_refused(void **state)
{
	struct served served;
	struct raw raw;
	int event = eventfd(0, EFD_CLOEXEC);

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&raw, &served, "innocent");
	D3DKMT_HANDLE device = raw_device(&raw);
	NTSTATUS usual = ask_with_event(&raw, event);
	rlim_t before = limit_files(8);
	NTSTATUS status = ask_with_event(&raw, event);
	(void)limit_files(before);
	assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
	served_await(&served, "is refused a call: the host has no descriptors left (Q-487)");
	assert_int_equal(ask_with_event(&raw, event), usual);
	(void)raw_allocate(&raw, device, 64 * KIB);
	close(event);
	served_part(&served, &raw, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(q_486_a_client_at_its_limit_is_refused_and_no_other),
		cmocka_unit_test(q_486_a_client_without_a_share_is_refused_when_it_connects),
		cmocka_unit_test(q_486_queued_view_instructions_share_their_descriptors),
		cmocka_unit_test(q_487_a_request_whose_descriptor_is_lost_is_refused),
	};

	return cmocka_run_group_tests_name("serve: shares", tests, NULL, NULL);
}
