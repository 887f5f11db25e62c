/* SPDX-License-Identifier: MIT */
/*
 * Clients that keep to the protocol: hello, calls and their answers, disconnecting, the list of
 * clients.
 */
#include "raw_client.h"
#include "host/host_private.h"
#include "memory/state/types.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void a_client_connects_calls_and_disconnects(void **state)
{
	struct served served;
	struct raw raw;
	D3DKMT_HANDLE allocation;

	(void)state;
	served_meet(&served, &raw, "one", NULL, NULL);
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

	raw_disconnect(&raw);
	served_await(&served, "disconnected");
	served_await_clients(&served, 0);
	served_stop(&served);
}

/* A failing call returns the status of its function and leaves outputs unchanged, as in-process. */
static void a_call_that_fails_says_why(void **state)
{
	struct served served;
	struct raw raw;

	(void)state;
	served_meet(&served, &raw, "one", NULL, NULL);
	D3DKMT_CREATEDEVICE args = {.hAdapter = 0x12345678};
	assert_int_equal(raw_call(&raw, "D3DKMTCreateDevice", &args), STATUS_INVALID_PARAMETER);
	assert_int_equal(raw.answer.answered, 1);
	assert_int_equal(args.hDevice, 0);
	client_forget(&served.client);
	raw_close(&raw);
	served_await(&served, "disconnected");
	served_stop(&served);
}

/* Each client has a separate table of handles. */
static void clients_do_not_share_handles(void **state)
{
	struct served served;
	struct raw one, two;

	(void)state;
	served_meet(&served, &one, "one", &two, "two");
	D3DKMT_HANDLE device = raw_device(&one);
	D3DKMT_DESTROYDEVICE end = {.hDevice = device};
	assert_int_equal(raw_call(&two, "D3DKMTDestroyDevice", &end), STATUS_INVALID_PARAMETER);
	assert_true(client_found(&served.client, "HND-07"));
	client_forget(&served.client);
	assert_int_equal(raw_call(&one, "D3DKMTDestroyDevice", &end), STATUS_SUCCESS);
	served_part(&served, &one, &two);
}

/* A request and an answer that are larger than a packet. */
static void long_requests_and_answers_go_in_memory(void **state)
{
	enum { COUNT = 4096 };
	struct served served;
	struct raw raw;

	(void)state;
	served_meet(&served, &raw, "one", NULL, NULL);
	D3DKMT_ADAPTERINFO *info = calloc(COUNT, sizeof(*info));
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = COUNT, .pAdapters = info};
	assert_non_null(info);
	assert_int_equal(raw_call(&raw, "D3DKMTEnumAdapters2", &all), STATUS_SUCCESS);
	assert_int_equal(all.NumAdapters, 1);
	assert_true(info->hAdapter);
	assert_true(raw.answer.head.bytes > VMM_PROTOCOL_INLINE_MAX);
	free(info);
	served_part(&served, &raw, NULL);
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

/*
 * A descriptor arrives with an answer, can be sent over any socket, and is accepted in a request of
 * another client.
 */
static void an_nt_handle_is_a_descriptor(void **state)
{
	struct served served;
	struct raw one, two;
	HANDLE handle = NULL;

	(void)state;
	served_meet(&served, &one, "one", &two, "two");
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
	/* A descriptor that is not an NT handle is refused. */
	int other = dup(STDERR_FILENO);
	query.hNtHandle = (HANDLE)(intptr_t)other;
	assert_true(raw_call(&two, "D3DKMTQueryResourceInfoFromNtHandle", &query) < 0);
	client_forget(&served.client);
	close(other);
	raw_disconnect(&one);
	raw_disconnect(&two);
	close(fd);
	served_stop(&served);
}

/* ---- the host checks everything that a client reports about its own memory ---- */

enum { HEAP_BYTES = 8 * 4096 };

static int heap_memfd(uint64_t bytes, int seals)
{
	int fd = memfd_create("heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/*
 * Requests an allocation over memory of the client. ADOPT gets the host's question about that
 * memory.
 */
static void ask_for_heap(struct raw *raw, D3DKMT_HANDLE device, struct vmm_message_adopt *adopt)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE |
						   SOFTGPU_ALLOCATION_EXISTING_SYSTEM,
					  .size_bytes = HEAP_BYTES};
	D3DDDI_ALLOCATIONINFO info = {.pPrivateDriverData = &spec,
				      .PrivateDriverDataSize = sizeof(spec)};
	D3DKMT_CREATEALLOCATION args = {
		.hDevice = device, .NumAllocations = 1, .pAllocationInfo = &info};
	uint32_t count;
	int fds[9];

	info.pSystemMem =
		(void *)(uintptr_t)0x10000000; /* the host does not interpret the address */
	raw_ask(raw, raw->channel, "D3DKMTCreateAllocation", &args);
	assert_int_equal(raw_receive(raw->view, adopt, sizeof(*adopt), fds, &count),
			 sizeof(*adopt));
	assert_int_equal(adopt->head.kind, VMM_MESSAGE_ADOPT);
	assert_int_equal(adopt->number, ++raw->views);
	assert_int_equal(adopt->address, 0x10000000);
	assert_int_equal(adopt->length, HEAP_BYTES);
}

static void answer_for_heap(struct raw *raw, const struct vmm_message_adopted *how, int fd)
{
	struct vmm_message_adopted adopted = *how;

	adopted.head = (struct vmm_message_head){
		.magic = VMM_PROTOCOL_MAGIC, .kind = VMM_MESSAGE_ADOPTED, .descriptors = fd >= 0};
	assert_true(raw_send(raw->view, &adopted, sizeof(adopted), NULL, 0, fd < 0 ? NULL : &fd,
			     fd >= 0));
}

static void alf_11_memory_of_a_client_is_checked(void **state)
{
	const int sealed = F_SEAL_SHRINK | F_SEAL_GROW;
	const struct {
		int fd;
		uint64_t offset;
		int32_t status;
		NTSTATUS result;
	} cases[] = {
		{heap_memfd(HEAP_BYTES, sealed), 0, 0, STATUS_SUCCESS},
		{heap_memfd(2 * HEAP_BYTES, sealed), HEAP_BYTES, 0, STATUS_SUCCESS},
		{heap_memfd(HEAP_BYTES, 0), 0, 0, STATUS_INVALID_PARAMETER},
		{heap_memfd(HEAP_BYTES - 4096, sealed), 0, 0, STATUS_INVALID_PARAMETER},
		{heap_memfd(HEAP_BYTES, sealed), 4096, 0, STATUS_INVALID_PARAMETER},
		{heap_memfd(HEAP_BYTES, sealed), 1, 0, STATUS_NOT_SUPPORTED},
		{heap_memfd(HEAP_BYTES, sealed), UINT64_MAX - 4095, 0, STATUS_NOT_SUPPORTED},
		{open("/dev/null", O_RDWR | O_CLOEXEC), 0, 0, STATUS_INVALID_PARAMETER},
		{-1, 0, STATUS_INVALID_PARAMETER, STATUS_INVALID_PARAMETER},
		{-1, 0, STATUS_NOT_SUPPORTED, STATUS_NOT_SUPPORTED},
		{-1, 0, (int32_t)0xC0000236, STATUS_NOT_SUPPORTED},
	};
	struct vmm_message_adopt adopt;
	struct served served;
	struct raw raw;

	(void)state;
	served_meet(&served, &raw, "one", NULL, NULL);
	D3DKMT_HANDLE device = raw_device(&raw);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ask_for_heap(&raw, device, &adopt);
		answer_for_heap(&raw,
				&(struct vmm_message_adopted){.number = adopt.number,
							      .status = cases[i].status,
							      .offset = cases[i].offset},
				cases[i].fd);
		assert_int_equal(raw_await(raw.channel), cases[i].result);
		if (cases[i].fd >= 0)
			close(cases[i].fd);
	}
	client_forget(&served.client);
	served_part(&served, &raw, NULL);
}

/*
 * The host waits for a client for a limited time, and only the call of that client waits so long.
 * (Q-95)
 */
static void a_client_that_does_not_answer_about_its_memory_is_disconnected(void **state)
{
	struct vmm_message_adopt adopt;
	struct served served;
	struct raw raw, other;

	(void)state;
	served_start_with(&served, NULL, 0, 1);
	raw_open(&other, &served, "other");
	raw_open(&raw, &served, "silent");
	ask_for_heap(&raw, raw_device(&raw), &adopt);
	served_await(&served, "is cut off: it did not answer a request for its memory");
	raw_expect_end(raw.channel);
	served_await_clients(&served, 1);
	(void)raw_device(&other);
	raw_close(&raw);
	served_part(&served, &other, NULL);
}

static void a_client_that_answers_another_question_is_disconnected(void **state)
{
	struct vmm_message_adopt adopt;
	struct served served;
	struct raw raw;

	(void)state;
	served_start(&served, NULL, 0);
	for (uint32_t i = 0; i < 4; i++) {
		raw_open(&raw, &served, "one");
		ask_for_heap(&raw, raw_device(&raw), &adopt);
		struct vmm_message_adopted adopted = {.number = adopt.number + (i == 0),
						      .status = i == 1 ? STATUS_NO_MEMORY : 0};
		if (i == 3) { /* disconnects instead of answering */
			raw_close(&raw);
			served_await_clients(&served, 0);
			continue;
		}
		int fd = i == 2 ? -1 : heap_memfd(HEAP_BYTES, F_SEAL_SHRINK);
		answer_for_heap(&raw, &adopted, fd);
		raw_expect_end(raw.channel);
		served_await(&served, "its answer to a request for its memory is malformed");
		if (fd >= 0)
			close(fd);
		raw_close(&raw);
		served_await_clients(&served, 0);
	}
	served_stop(&served);
}

/* ---- adapter statistics ---- */

static struct vidmm_adapter_statistics figures_of(struct raw *raw)
{
	struct vmm_wire_adapter_statistics args = {0};

	assert_int_equal(raw_call(raw, "adapter_statistics", &args), STATUS_SUCCESS);
	assert_int_equal(args.statistics.struct_size, sizeof(args.statistics));
	return args.statistics;
}

/*
 * Counts cover all clients of the adapter. Peaks cover the time since the same client last asked.
 * (Q-151)
 */
static void q_151_counts_cover_all_clients_and_peaks_the_callers_interval(void **state)
{
	struct served served;
	struct raw one, two;
	struct vidmm_adapter_statistics here = {.struct_size = sizeof(here)};

	(void)state;
	served_meet(&served, &one, "one", &two, "two");
	D3DKMT_HANDLE device = raw_device(&two);
	uint64_t before = figures_of(&one).system_bytes;
	assert_int_equal(figures_of(&two).system_bytes, before);

	D3DKMT_HANDLE allocation = raw_allocate(&two, device, 4 * MIB);
	void *data;
	assert_int_equal(raw_lock(&two, device, allocation, &data), STATUS_SUCCESS);
	assert_int_equal(raw_unlock(&two, device, allocation), STATUS_SUCCESS);
	assert_int_equal(figures_of(&two).allocations, 1);
	D3DKMT_DESTROYALLOCATION end = {
		.hDevice = device, .phAllocationList = &allocation, .AllocationCount = 1};
	assert_int_equal(raw_call(&two, "D3DKMTDestroyAllocation", &end), STATUS_SUCCESS);

	/* Client two has asked meanwhile, so its peak is the present value. Client one has not. */
	struct vidmm_adapter_statistics mine = figures_of(&two), others = figures_of(&one);
	assert_int_equal(mine.peak_system_bytes, before + 4 * MIB);
	assert_int_equal(others.peak_system_bytes, before + 4 * MIB);
	mine = figures_of(&two);
	assert_int_equal(mine.peak_system_bytes, before);
	assert_int_equal(figures_of(&one).peak_system_bytes, before);
	/*
	 * In-process callers get the peaks since the start of the adapter, whatever clients have
	 * asked.
	 */
	vidmm_adapter_statistics(served.client.adapter, &here);
	assert_int_equal(here.peak_system_bytes, before + 4 * MIB);
	/* Except for peaks, all callers get the same statistics. */
	here.peak_system_bytes = mine.peak_system_bytes;
	here.peak_resident_bytes = mine.peak_resident_bytes;
	for (uint32_t i = 0; i < VIDMM_SEGMENTS_MAX; i++)
		here.segment[i].peak_resident_bytes = mine.segment[i].peak_resident_bytes;
	assert_memory_equal(&here, &mine, sizeof(here));
	served_part(&served, &one, &two);
}

/* Returns the number of clients for which the adapter stores peaks. */
static uint32_t count_lookers(struct served *served)
{
	struct vmm_adapter *adapter = &served->client.adapter->core;
	const struct vmm_list *at;
	uint32_t count = 0;

	vmm_os_mutex_lock(&adapter->paging_lock);
	vmm_list_for_each (at, &adapter->memory->peaks.readers)
		count++;
	vmm_os_mutex_unlock(&adapter->paging_lock);
	return count;
}

/* Repeated requests with any contents leave nothing behind. A call that fails writes nothing. */
static void repeated_requests_for_statistics_leave_nothing_behind(void **state)
{
	enum { OFTEN = 1000 };
	struct served served;
	struct raw raw;
	struct vmm_wire_adapter_statistics args, said;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open(&raw, &served, "one");
	for (uint32_t i = 0; i < OFTEN; i++)
		(void)figures_of(&raw);
	assert_int_equal(count_lookers(&served), 1);
	memset(&said, 0xa5, sizeof(said));
	for (uint32_t i = 0; i < 32; i++) {
		said.adapter = i < 31 ? 1u << i : UINT32_MAX;
		args = said;
		assert_int_equal(raw_call(&raw, "adapter_statistics", &args),
				 STATUS_INVALID_PARAMETER);
		assert_memory_equal(&args, &said, sizeof(args));
	}
	/* The host ignores what the request contains at the place of the answer. */
	said.adapter = 0;
	assert_int_equal(raw_call(&raw, "adapter_statistics", &said), STATUS_SUCCESS);
	assert_int_equal(said.statistics.struct_size, sizeof(said.statistics));
	assert_int_equal(said.statistics.segment[VIDMM_SEGMENTS_MAX - 1].size_bytes, 0);
	assert_int_equal(raw_call(&raw, "adapter_statistics", NULL), STATUS_INVALID_PARAMETER);
	raw_close(&raw);
	while (count_lookers(&served))
		sched_yield();
	served_stop(&served);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_connects_calls_and_disconnects),
		cmocka_unit_test(a_call_that_fails_says_why),
		cmocka_unit_test(clients_do_not_share_handles),
		cmocka_unit_test(long_requests_and_answers_go_in_memory),
		cmocka_unit_test(an_nt_handle_is_a_descriptor),
		cmocka_unit_test(alf_11_memory_of_a_client_is_checked),
		cmocka_unit_test(a_client_that_does_not_answer_about_its_memory_is_disconnected),
		cmocka_unit_test(a_client_that_answers_another_question_is_disconnected),
		cmocka_unit_test(q_151_counts_cover_all_clients_and_peaks_the_callers_interval),
		cmocka_unit_test(repeated_requests_for_statistics_leave_nothing_behind),
	};

	return cmocka_run_group_tests_name("serve: calls", tests, NULL, NULL);
}
