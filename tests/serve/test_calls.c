/* SPDX-License-Identifier: MIT */
/* What a client that means well gets: hello, calls and their answers, farewell, the list of clients. */
#include "raw_client.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void a_client_comes_calls_and_goes(void **state)
{
	struct served served;
	struct raw raw;
	D3DKMT_HANDLE allocation;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&raw, &served, "one");
	assert_true(raw.welcome.channels_max == 64 && raw.welcome.process_id);
	D3DKMT_HANDLE device = raw_device(&raw);
	assert_int_equal(raw_try_allocate(&raw, device, 64 * KIB, &allocation), STATUS_SUCCESS);

	struct vidmm_client_info info;
	assert_int_equal(vidmm_server_clients(served.server, &info, 1), 1);
	assert_string_equal(info.name, "one");
	assert_int_equal(info.pid, getpid());
	assert_int_equal(info.uid, getuid());
	assert_int_equal(info.process_id, raw.welcome.process_id);
	assert_int_equal(info.channels, 1);
	assert_int_equal(info.devices, 1);
	assert_int_equal(info.handles, 3);
	assert_int_equal(info.requests, 3);

	raw_farewell(&raw);
	served_await(&served, "has gone");
	served_await_clients(&served, 0);
	served_stop(&served);
}

/* The status is the call's own, and outputs are untouched, as within one process. */
static void a_call_that_fails_says_why(void **state)
{
	struct served served;
	struct raw raw;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&raw, &served, "one");
	D3DKMT_CREATEDEVICE args = {.hAdapter = 0x12345678};
	assert_int_equal(raw_call(&raw, "D3DKMTCreateDevice", &args), STATUS_INVALID_PARAMETER);
	assert_int_equal(raw.answer.answered, 1);
	assert_int_equal(args.hDevice, 0);
	client_forget(&served.client);
	raw_close(&raw);
	served_await(&served, "has gone");
	served_stop(&served);
}

/* Two clients have handles of their own. */
static void clients_do_not_share_handles(void **state)
{
	struct served served;
	struct raw one, two;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&one, &served, "one");
	raw_open(&two, &served, "two");
	D3DKMT_HANDLE device = raw_device(&one);
	D3DKMT_DESTROYDEVICE end = {.hDevice = device};
	assert_int_equal(raw_call(&two, "D3DKMTDestroyDevice", &end), STATUS_INVALID_PARAMETER);
	assert_true(client_found(&served.client, "HND-07"));
	client_forget(&served.client);
	assert_int_equal(raw_call(&one, "D3DKMTDestroyDevice", &end), STATUS_SUCCESS);
	raw_farewell(&one);
	raw_farewell(&two);
	served_stop(&served);
}

/* More than a packet holds, both ways. */
static void long_requests_and_answers_go_in_memory(void **state)
{
	enum { COUNT = 4096 };
	struct served served;
	struct raw raw;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&raw, &served, "one");
	D3DKMT_ADAPTERINFO *info = calloc(COUNT, sizeof(*info));
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = COUNT, .pAdapters = info};
	assert_non_null(info);
	assert_int_equal(raw_call(&raw, "D3DKMTEnumAdapters2", &all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 1);
	assert_true(info->hAdapter);
	assert_true(raw.answer.head.bytes > VMM_PROTOCOL_INLINE_MAX);
	free(info);
	raw_farewell(&raw);
	served_stop(&served);
}

static D3DKMT_HANDLE share(struct raw *raw, D3DKMT_HANDLE device)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = 64 * KIB};
	D3DDDI_ALLOCATIONINFO2 info = {.pPrivateDriverData = &spec,
				       .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = device, .NumAllocations = 1, .pAllocationInfo2 = &info};

	args.Flags.CreateResource = args.Flags.CreateShared = args.Flags.NtSecuritySharing = 1;
	assert_int_equal(raw_call(raw, "D3DKMTCreateAllocation", &args), STATUS_SUCCESS);
	return args.hResource;
}

/* A descriptor comes with an answer, travels as any other, and goes with a request of another client. */
static void an_nt_handle_is_a_descriptor(void **state)
{
	struct served served;
	struct raw one, two;
	HANDLE handle = NULL;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&one, &served, "one");
	raw_open(&two, &served, "two");
	D3DKMT_HANDLE resource = share(&one, raw_device(&one));
	D3DKMT_SHAREOBJECTS share_it = {.ObjectCount = 1, .DesiredAccess = 0x20000};
	share_it.ObjectHandleArray = &resource;
	share_it.pSharedNtHandle = &handle;
	assert_int_equal(raw_call(&one, "D3DKMTShareObjects", &share_it), STATUS_SUCCESS);
	int fd = (int)(intptr_t)handle;
	assert_true(fd >= 3 && fcntl(fd, F_GETFD) == FD_CLOEXEC);

	D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE query = {.hDevice = raw_device(&two)};
	query.hNtHandle = handle;
	assert_int_equal(raw_call(&two, "D3DKMTQueryResourceInfoFromNtHandle", &query),
			 STATUS_SUCCESS);
	assert_int_equal(query.NumAllocations, 1);
	/* Another descriptor is not what it looks like. */
	int other = dup(STDERR_FILENO);
	query.hNtHandle = (HANDLE)(intptr_t)other;
	assert_true(raw_call(&two, "D3DKMTQueryResourceInfoFromNtHandle", &query) < 0);
	client_forget(&served.client);
	close(other);
	raw_farewell(&one);
	raw_farewell(&two);
	close(fd);
	served_stop(&served);
}

static _Atomic uint32_t reasons;

static void note_reason(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context;
	(void)event;
	if (strstr(text, "memory of a client in another process"))
		atomic_fetch_add(&reasons, 1);
}

/* An address of the client's is a number here, of which nothing is made. */
static void memory_of_the_clients_is_refused_and_said_so(void **state)
{
	struct served served;
	struct raw raw;

	(void)state;
	served_start(&served, NULL, 0);
	uint32_t subscription =
		vidmm_subscribe(served.client.host, 1ull << VIDMM_EVENT_REASON, note_reason, NULL);
	raw_open(&raw, &served, "one");
	D3DDDI_ALLOCATIONINFO info = {.pSystemMem = raw.window};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = raw_device(&raw), .NumAllocations = 1, .pAllocationInfo = &info};
	assert_int_equal(raw_call(&raw, "D3DKMTCreateAllocation", &args), STATUS_NOT_SUPPORTED);
	assert_int_equal(raw.answer.answered, 0);
	assert_int_equal(atomic_load(&reasons), 1);
	vidmm_unsubscribe(served.client.host, subscription);
	raw_farewell(&raw);
	served_stop(&served);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_comes_calls_and_goes),
		cmocka_unit_test(a_call_that_fails_says_why),
		cmocka_unit_test(clients_do_not_share_handles),
		cmocka_unit_test(long_requests_and_answers_go_in_memory),
		cmocka_unit_test(an_nt_handle_is_a_descriptor),
		cmocka_unit_test(memory_of_the_clients_is_refused_and_said_so),
	};

	return cmocka_run_group_tests_name("serve: calls", tests, NULL, NULL);
}
