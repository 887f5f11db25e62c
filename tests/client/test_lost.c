/* SPDX-License-Identifier: MIT */
/*
 * Locks of a device when it is lost to a page fault (TDR-19) or in a reset (TDR-07, TDR-10). The
 * result must be the same for locks by a lock word and locks by a message
 * (docs/adr/0002-locks-without-a-message.md). Each case runs twice, the second time with a
 * subscriber for lock events, which makes each lock a message. What the client sees must be equal,
 * word by word.
 */
#include <support/test.h>

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <d3dkmthk.h>
#include <support/scripted_miniport.h>
#include <vidmm/client.h>
#include <vidmm/serve.h>
#include <vidmm/softgpu.h>
#include "support/connect.h"

enum { BYTES = 65536, LOCKS = 3, ALLOCATIONS = 2, PATTERN = 0x1F2E3D00 };
enum { VISIBLE_AND_PHYSICAL = 0x8001 };

/* The cause of the loss. */
enum how { PAGE_FAULT, PAGE_FAULT_RESETS_ADAPTER, ENGINE_HANGS, ADAPTER_HANGS };

/* What a client sees of one allocation that it has locked. */
struct seen {
	int32_t lock_before[LOCKS], lock_after, unlock[LOCKS + 1], deallocate;
	uint32_t words[2], stored; /* the first and the last word; and what a store leaves there */
	bool moved;                /* its address has changed */
	uint32_t findings;
};

struct world {
	enum how how;
	struct scripted_miniport *miniport; /* NULL: the adapter is softgpu */
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct vidmm_server *server;
	_Atomic uint32_t findings;
	/* The client. */
	struct vidmm_connection *connection;
	D3DKMT_HANDLE device, context, allocations[ALLOCATIONS], other;
	D3DKMT_HANDLE adapter_handle;
	void *commands;
	D3DDDI_ALLOCATIONLIST *list;
	uint32_t *words[ALLOCATIONS];
};

static void on_finding(void *context, const struct vidmm_event *event, const char *text)
{
	(void)event;
	(void)text;
	atomic_fetch_add((_Atomic uint32_t *)context, 1);
}

static void on_lock(void *context, const struct vidmm_event *event, const char *text)
{
	(void)context;
	(void)event;
	(void)text;
}

/* ---- the host ---- */

static bool is_scripted(const struct world *w)
{
	return w->how == PAGE_FAULT || w->how == PAGE_FAULT_RESETS_ADAPTER;
}

static void start(struct world *w, enum how how, bool by_messages)
{
	static const uint64_t bars[] = {SCRIPTED_BAR_BYTES};
	const struct vidmm_registry_value registry[] = {
		{"PerEngineTdr", how == ENGINE_HANGS ? 1 : 0}};
	/* On softgpu only the packet that hangs is submitted; on the scripted miniport none is. */
	const struct vidmm_tdr_options tdr = {3,     is_scripted(w) ? 60000 : 100, 60000,
					      60000, VIDMM_TDR_LIMIT_MAX,          2};
	const struct vidmm_host_options host = {.struct_size = sizeof(host),
						.kind = VIDMM_HOST_LINUX};
	const struct vidmm_server_options server = {.struct_size = sizeof(server)};
	struct vidmm_adapter_options adapter = {.struct_size = sizeof(adapter),
						.driver_entry = softgpu_driver_entry,
						.bar_sizes = bars,
						.bar_count = 1,
						.registry = registry,
						.registry_count = 1,
						.tdr = &tdr};

	if (is_scripted(w)) {
		w->miniport = scripted_create();
		scripted_set_version(w->miniport, DXGKDDI_INTERFACE_VERSION_WDDM3_0);
		w->miniport->settings.caps.WDDMVersion = DXGKDDI_WDDMv2;
		adapter.driver_entry = NULL;
		adapter.initialization_data = scripted_table(w->miniport);
	}
	assert_int_equal(vidmm_host_create(&host, &w->host), 0);
	(void)vidmm_subscribe(w->host, 1ull << VIDMM_EVENT_FINDING, on_finding, &w->findings);
	if (by_messages)
		(void)vidmm_subscribe(w->host,
				      1ull << VIDMM_EVENT_LOCK | 1ull << VIDMM_EVENT_UNLOCK,
				      on_lock, NULL);
	assert_int_equal(vidmm_adapter_start(w->host, &adapter, &w->adapter), 0);
	assert_int_equal(vidmm_server_create(w->host, &server, &w->server), 0);
}

static void stop(struct world *w)
{
	(void)vidmm_connection_enter(NULL);
	vidmm_disconnect(w->connection);
	vidmm_server_destroy(w->server);
	vidmm_adapter_stop(w->adapter);
	vidmm_host_destroy(w->host);
	if (w->miniport)
		scripted_destroy(w->miniport);
}

static int more(void *context)
{
	const struct world *w = context;

	return connect_to(w->server);
}

static uint64_t requests(struct world *w)
{
	struct vidmm_client_info info;

	assert_int_equal(vidmm_server_clients(w->server, &info, 1), 1);
	return info.requests;
}

/* ---- the client ---- */

/* During the reset of the adapter the miniport creates no device. */
static D3DKMT_HANDLE make_device(struct world *w)
{
	D3DKMT_CREATEDEVICE device = {.hAdapter = w->adapter_handle};
	NTSTATUS status;

	while ((status = D3DKMTCreateDevice(&device)) == STATUS_DEVICE_REMOVED)
		sched_yield();
	assert_int_equal(status, STATUS_SUCCESS);
	return device.hDevice;
}

static D3DKMT_HANDLE allocate(struct world *w, D3DKMT_HANDLE device)
{
	struct softgpu_allocation soft = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = BYTES};
	struct scripted_allocation scripted = {
		.size_bytes = BYTES, .flags = VISIBLE_AND_PHYSICAL, .read_set = 1, .write_set = 1};
	D3DDDI_ALLOCATIONINFO info = {
		.pPrivateDriverData = is_scripted(w) ? (void *)&scripted : &soft,
		.PrivateDriverDataSize = is_scripted(w) ? sizeof(scripted) : sizeof(soft)};
	D3DKMT_CREATEALLOCATION create = {
		.hDevice = device, .NumAllocations = 1, .pAllocationInfo = &info};

	assert_int_equal(D3DKMTCreateAllocation(&create), STATUS_SUCCESS);
	return info.hAllocation;
}

/* Submits a GPU write to the allocation. */
static void fill(struct world *w)
{
	const struct softgpu_fill fill = {
		.command = {SOFTGPU_FILL, 0, sizeof(fill)}, .length = BYTES, .pattern = PATTERN};
	D3DKMT_RENDER args = {
		.hContext = w->context, .CommandLength = sizeof(fill), .AllocationCount = 1};

	memcpy(w->commands, &fill, sizeof(fill));
	w->list[0] = (D3DDDI_ALLOCATIONLIST){.hAllocation = w->allocations[0], .WriteOperation = 1};
	assert_int_equal(D3DKMTRender(&args), STATUS_SUCCESS);
	w->commands = args.pNewCommandBuffer;
}

/* The first allocation is in video memory, the second has never been placed. */
static void bring_in(struct world *w)
{
	D3DKMT_CREATEPAGINGQUEUE queue = {.hDevice = w->device};
	D3DDDI_MAKERESIDENT make = {.NumAllocations = 1, .AllocationList = &w->allocations[0]};

	if (!is_scripted(w)) {
		fill(w);
		return;
	}
	assert_int_equal(D3DKMTCreatePagingQueue(&queue), STATUS_SUCCESS);
	make.hPagingQueue = queue.hPagingQueue;
	NTSTATUS status = D3DKMTMakeResident(&make);
	assert_true(status == STATUS_SUCCESS || status == STATUS_PENDING);
	while (atomic_load((_Atomic uint64_t *)queue.FenceValueCPUVirtualAddress) <
	       make.PagingFenceValue)
		sched_yield();
}

static void come(struct world *w)
{
	D3DKMT_ADAPTERINFO info = {0};
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = 1, .pAdapters = &info};

	assert_int_equal(vidmm_connect_fd(more(w), "program", more, w, &w->connection), 0);
	(void)vidmm_connection_enter(w->connection);
	assert_int_equal(D3DKMTEnumAdapters2(&all), 0);
	w->adapter_handle = info.hAdapter;
	w->device = make_device(w);
	D3DKMT_CREATECONTEXT context = {.hDevice = w->device};
	assert_int_equal(D3DKMTCreateContext(&context), STATUS_SUCCESS);
	w->context = context.hContext;
	w->commands = context.pCommandBuffer;
	w->list = context.pAllocationList;
	for (uint32_t i = 0; i < ALLOCATIONS; i++)
		w->allocations[i] = allocate(w, w->device);
	w->other = allocate(w, w->device);
	bring_in(w);
}

static int32_t lock(struct world *w, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation,
		    uint32_t **words)
{
	D3DKMT_LOCK lock = {.hDevice = device, .hAllocation = allocation};
	D3DKMT_LOCK2 lock2 = {.hDevice = device, .hAllocation = allocation};
	NTSTATUS status = is_scripted(w) ? D3DKMTLock2(&lock2) : D3DKMTLock(&lock);

	if (NT_SUCCESS(status) && words)
		*words = is_scripted(w) ? lock2.pData : lock.pData;
	return status;
}

static int32_t unlock(struct world *w, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation)
{
	const D3DKMT_UNLOCK unlock = {
		.hDevice = device, .NumAllocations = 1, .phAllocations = &allocation};
	const D3DKMT_UNLOCK2 unlock2 = {.hDevice = device, .hAllocation = allocation};

	return is_scripted(w) ? D3DKMTUnlock2(&unlock2) : D3DKMTUnlock(&unlock);
}

static void lock_all(struct world *w, struct seen seen[ALLOCATIONS])
{
	for (uint32_t i = 0; i < ALLOCATIONS; i++) {
		for (uint32_t k = 0; k < LOCKS; k++)
			seen[i].lock_before[k] =
				lock(w, w->device, w->allocations[i], &w->words[i]);
		for (uint32_t k = 0; k < BYTES / 4; k++)
			w->words[i][k] = PATTERN + k;
	}
}

/* The packet faults, or hangs. */
static void submit(struct world *w)
{
	const struct softgpu_command hang = {SOFTGPU_HANG, 0, sizeof(hang)};
	D3DKMT_RENDER args = {.hContext = w->context};

	if (is_scripted(w)) {
		w->miniport->settings.complete_at_once = false;
	} else {
		memcpy(w->commands, &hang, sizeof(hang));
		args.CommandLength = sizeof(hang);
	}
	assert_int_equal(D3DKMTRender(&args), STATUS_SUCCESS);
}

static void lose(struct world *w)
{
	uint32_t before = w->miniport ? scripted_count(w->miniport, VIDMM_DDI_SUBMIT_COMMAND) : 0;

	submit(w);
	if (is_scripted(w)) {
		while (scripted_count(w->miniport, VIDMM_DDI_SUBMIT_COMMAND) == before)
			sched_yield();
		const struct scripted_call *last =
			scripted_last(w->miniport, VIDMM_DDI_SUBMIT_COMMAND);
		scripted_page_fault(w->miniport, 0, last->in.submit.SubmissionFenceId,
				    w->how == PAGE_FAULT
					    ? DXGK_PAGE_FAULT_WRITE
					    : DXGK_PAGE_FAULT_WRITE |
						      DXGK_PAGE_FAULT_ADAPTER_RESET_REQUIRED);
		if (w->how == PAGE_FAULT_RESETS_ADAPTER)
			while (!scripted_count(w->miniport, VIDMM_DDI_RESTART_FROM_TIMEOUT))
				sched_yield();
		w->miniport->settings.complete_at_once = true;
	}
	while (NT_SUCCESS(lock(w, w->device, w->other, NULL)))
		assert_true(NT_SUCCESS(unlock(w, w->device, w->other)));
	/* The loss has been processed when another device can work. */
	D3DKMT_HANDLE device = make_device(w), allocation = allocate(w, device);
	assert_int_equal(lock(w, device, allocation, NULL), STATUS_SUCCESS);
	assert_int_equal(unlock(w, device, allocation), STATUS_SUCCESS);
}

static void look(struct world *w, struct seen seen[ALLOCATIONS])
{
	for (uint32_t i = 0; i < ALLOCATIONS; i++) {
		D3DKMT_HANDLE allocation = w->allocations[i];
		const uint32_t *before = w->words[i];
		uint32_t findings = atomic_load(&w->findings);

		seen[i].words[0] = w->words[i][0];
		seen[i].words[1] = w->words[i][BYTES / 4 - 1];
		((volatile uint32_t *)w->words[i])[7] = 4711;
		seen[i].stored = ((volatile uint32_t *)w->words[i])[7];
		seen[i].lock_after = lock(w, w->device, allocation, &w->words[i]);
		seen[i].moved = w->words[i] != before;
		for (uint32_t k = 0; k <= LOCKS; k++)
			seen[i].unlock[k] = unlock(w, w->device, allocation);
		const D3DKMT_DESTROYALLOCATION destroy = {.hDevice = w->device,
							  .phAllocationList = &allocation,
							  .AllocationCount = 1};
		seen[i].deallocate = D3DKMTDestroyAllocation(&destroy);
		seen[i].findings = atomic_load(&w->findings) - findings;
	}
}

static void play(enum how how, bool by_messages, struct seen seen[ALLOCATIONS])
{
	struct world w = {.how = how};

	memset(seen, 0, ALLOCATIONS * sizeof(*seen));
	start(&w, how, by_messages);
	come(&w);
	uint64_t before = requests(&w);
	lock_all(&w, seen);
	/* The precondition: without a subscriber some locks used the word; with one, none. */
	uint64_t messages = requests(&w) - before;
	if (by_messages)
		assert_int_equal(messages, ALLOCATIONS * LOCKS);
	else
		assert_true(messages <= ALLOCATIONS * (LOCKS - 1));
	lose(&w);
	look(&w, seen);
	stop(&w);
}

/*
 * Content in video memory is lost with the adapter, other content stays. Addresses stay valid, and
 * locked allocations stay locked. (TDR-11)
 */
static void check(enum how how, uint32_t index, const struct seen *seen)
{
	bool gone = !index && (how == PAGE_FAULT_RESETS_ADAPTER || how == ADAPTER_HANGS);

	assert_int_equal(seen->words[0], gone ? 0 : PATTERN);
	assert_int_equal(seen->words[1], gone ? 0 : PATTERN + BYTES / 4 - 1);
	assert_int_equal(seen->stored, 4711);
	assert_int_equal(seen->lock_after, how == PAGE_FAULT
						   ? STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE
						   : STATUS_DEVICE_REMOVED);
	for (uint32_t k = 0; k < LOCKS; k++)
		assert_int_equal(seen->unlock[k], STATUS_SUCCESS);
	assert_int_equal(seen->unlock[LOCKS], STATUS_INVALID_PARAMETER); /* LOCK-28 */
	assert_int_equal(seen->findings, 1);
}

static void compare(enum how how)
{
	struct seen word[ALLOCATIONS], message[ALLOCATIONS];

	play(how, true, message);
	play(how, false, word);
	for (uint32_t i = 0; i < ALLOCATIONS; i++) {
		const struct seen *a = &word[i], *b = &message[i];

		for (uint32_t k = 0; k < LOCKS; k++) {
			assert_int_equal(a->lock_before[k], STATUS_SUCCESS);
			assert_int_equal(b->lock_before[k], STATUS_SUCCESS);
			assert_int_equal(a->unlock[k], b->unlock[k]);
		}
		assert_int_equal(a->unlock[LOCKS], b->unlock[LOCKS]);
		assert_int_equal(a->lock_after, b->lock_after);
		assert_int_equal(a->deallocate, b->deallocate);
		assert_int_equal(a->words[0], b->words[0]);
		assert_int_equal(a->words[1], b->words[1]);
		assert_int_equal(a->stored, b->stored);
		assert_int_equal(a->moved, b->moved);
		assert_int_equal(a->findings, b->findings);
		check(how, i, a);
	}
}

static void tdr_19_locks_at_a_page_fault(void **state)
{
	(void)state;
	compare(PAGE_FAULT);
}

static void tdr_19_locks_at_a_page_fault_that_resets_the_adapter(void **state)
{
	(void)state;
	compare(PAGE_FAULT_RESETS_ADAPTER);
}

static void tdr_07_locks_when_an_engine_is_reset(void **state)
{
	(void)state;
	compare(ENGINE_HANGS);
}

static void tdr_10_locks_when_the_adapter_is_reset(void **state)
{
	(void)state;
	compare(ADAPTER_HANGS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tdr_19_locks_at_a_page_fault),
		cmocka_unit_test(tdr_19_locks_at_a_page_fault_that_resets_the_adapter),
		cmocka_unit_test(tdr_07_locks_when_an_engine_is_reset),
		cmocka_unit_test(tdr_10_locks_when_the_adapter_is_reset),
	};

	return cmocka_run_group_tests_name("lost", tests, NULL, NULL);
}
