/* SPDX-License-Identifier: MIT */
/*
 * fuzz_storm [SECONDS [SEED]]: four processes on softgpu, with every fault that can be injected:
 * packets that hang, interrupts that are lost or doubled, legal and illegal statuses, late
 * patching, preemptions that are never answered, adapters that stop, fail or are removed in use.
 * Every read finds what was written, no thread waits forever (the simulator reports it), and the
 * findings are exactly the injected faults.
 */
#include <support/client.h>
#include <support/softgpu_table.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KIB         1024u
#define ACTORS      4u
#define ALLOCATIONS 6u
#define WORDS       (96u * KIB / 4u)
#define STEPS       400u
#define FAULTS      10000u
#define LATE_MAX    64u

enum fault {
	HANG,
	LOST_INTERRUPT,
	SECOND_INTERRUPT,
	LEGAL_STATUS,
	ILLEGAL_STATUS,
	LATE_PATCH,
	UNANSWERED_PREEMPTION,
	STOP,
	FATAL_STATUS,
	REMOVAL,
	SURPRISE,
	FAULT_COUNT
};
static const char *const fault_names[FAULT_COUNT] = {[HANG] = "hangs",
						     [LOST_INTERRUPT] = "lost interrupts",
						     [SECOND_INTERRUPT] = "second interrupts",
						     [LEGAL_STATUS] = "legal statuses",
						     [ILLEGAL_STATUS] = "illegal statuses",
						     [LATE_PATCH] = "late patches",
						     [UNANSWERED_PREEMPTION] =
							     "unanswered preemptions",
						     [STOP] = "stops",
						     [FATAL_STATUS] = "fatal statuses",
						     [REMOVAL] = "removals",
						     [SURPRISE] = "surprise removals"};

/* One storm at a time. The simulator runs one thread at a time, so no lock is needed. */
static struct {
	uint64_t random;
	uint32_t count[FAULT_COUNT];
	uint32_t broadcasts;
	bool armed; /* between start and end of an epoch */
	bool removed, dying;
	DXGKRNL_INTERFACE services;
	DRIVER_INITIALIZATION_DATA real;
	uint32_t reported[2]; /* newest fence that was reported to the port, by node */
	bool told_any[2];
	DXGKARG_PATCH late[LATE_MAX];
	void *late_memory[LATE_MAX];
	uint32_t late_count;
} storm;

static uint32_t draw(uint32_t below)
{
	storm.random += 0x9E3779B97F4A7C15u;
	uint64_t x = (storm.random ^ storm.random >> 30) * 0xBF58476D1CE4E5B9u;

	return (uint32_t)((x ^ x >> 27) >> 33) % below;
}

/* Returns true once in ONE_IN calls on average, while faults are enabled. */
static bool strikes(enum fault fault, uint32_t one_in)
{
	if (!storm.armed || draw(one_in))
		return false;
	storm.count[fault]++;
	return true;
}

static uint32_t fault_total(void)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < FAULT_COUNT; i++)
		total += storm.count[i];
	return total;
}

/* ---- faults between softgpu and the port ---- */

static VOID notify_interrupt(IN_CONST_HANDLE handle, IN_CONST_PDXGKARGCB_NOTIFY_INTERRUPT_DATA data)
{
	if (data->InterruptType == DXGK_INTERRUPT_DMA_COMPLETED) {
		uint32_t node = data->DmaCompleted.NodeOrdinal;

		if (strikes(LOST_INTERRUPT, 40))
			return;
		storm.reported[node] = data->DmaCompleted.SubmissionFenceId;
		storm.told_any[node] = true;
	}
	storm.services.DxgkCbNotifyInterrupt(handle, data);
	if (data->InterruptType == DXGK_INTERRUPT_DMA_COMPLETED && strikes(SECOND_INTERRUPT, 40))
		storm.services.DxgkCbNotifyInterrupt(handle, data);
}

static NTSTATUS start_device(IN_CONST_PVOID adapter, PDXGK_START_INFO info,
			     PDXGKRNL_INTERFACE services, PULONG sources, PULONG children)
{
	DXGKRNL_INTERFACE mine = {0};

	memcpy(&mine, services, offsetof(DXGKRNL_INTERFACE, DxgkCbMapContextAllocation));
	storm.services = mine;
	mine.DxgkCbNotifyInterrupt = notify_interrupt;
	return storm.real.DxgkDdiStartDevice(adapter, info, &mine, sources, children);
}

struct missed {
	uint32_t node, fence;
};

static BOOLEAN tell_missed(PVOID context)
{
	const struct missed *m = context;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data = {.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED};

	data.DmaCompleted.SubmissionFenceId = m->fence;
	data.DmaCompleted.NodeOrdinal = m->node;
	storm.services.DxgkCbNotifyInterrupt(storm.services.DeviceHandle, &data);
	storm.services.DxgkCbQueueDpc(storm.services.DeviceHandle);
	return TRUE;
}

/* A node whose interrupt was lost reports its fence when it is queried. (SUB-14) */
static NTSTATUS query_current_fence(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_QUERYCURRENTFENCE args)
{
	NTSTATUS status = storm.real.DxgkDdiQueryCurrentFence(adapter, args);
	struct missed m = {args->NodeOrdinal, args->CurrentFence};
	BOOLEAN result;

	if (status == STATUS_SUCCESS && storm.told_any[m.node] &&
	    (int32_t)(m.fence - storm.reported[m.node]) > 0) {
		storm.reported[m.node] = m.fence;
		storm.services.DxgkCbSynchronizeExecution(storm.services.DeviceHandle, tell_missed,
							  &m, 0, &result);
	}
	return status;
}

static NTSTATUS render(IN_CONST_HANDLE context, INOUT_PDXGKARG_RENDER args)
{
	static const NTSTATUS legal[] = {STATUS_NO_MEMORY,
					 STATUS_PRIVILEGED_INSTRUCTION,
					 STATUS_ILLEGAL_INSTRUCTION,
					 STATUS_INVALID_PARAMETER,
					 STATUS_INVALID_USER_BUFFER,
					 STATUS_INVALID_HANDLE,
					 STATUS_GRAPHICS_DRIVER_MISMATCH};

	if (strikes(LEGAL_STATUS, 12))
		return legal[draw(sizeof(legal) / sizeof(legal[0]))];
	if (strikes(ILLEGAL_STATUS, 60))
		return draw(2) ? STATUS_UNSUCCESSFUL : STATUS_GRAPHICS_ALLOCATION_BUSY;
	if (strikes(LEGAL_STATUS, 400))
		return STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE;
	return storm.real.DxgkDdiRender(context, args);
}

static NTSTATUS create_allocation(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_CREATEALLOCATION args)
{
	return strikes(LEGAL_STATUS, 30) ? STATUS_NO_MEMORY
					 : storm.real.DxgkDdiCreateAllocation(adapter, args);
}

static NTSTATUS open_allocation(IN_CONST_HANDLE device, IN_CONST_PDXGKARG_OPENALLOCATION args)
{
	return strikes(LEGAL_STATUS, 30) ? STATUS_NO_MEMORY
					 : storm.real.DxgkDdiOpenAllocation(device, args);
}

static NTSTATUS create_device(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_CREATEDEVICE args)
{
	return strikes(LEGAL_STATUS, 12) ? STATUS_NO_MEMORY
					 : storm.real.DxgkDdiCreateDevice(adapter, args);
}

static NTSTATUS create_context(IN_CONST_HANDLE device, INOUT_PDXGKARG_CREATECONTEXT args)
{
	return strikes(LEGAL_STATUS, 12) ? STATUS_NO_MEMORY
					 : storm.real.DxgkDdiCreateContext(device, args);
}

/* ---- patching at the last moment ---- */

static void *copy_of(const void *bytes, size_t size, char **room)
{
	void *copy = *room;

	memcpy(copy, bytes, size);
	*room += (size + 15) / 16 * 16;
	return copy;
}

static bool put_off(const DXGKARG_PATCH *args)
{
	size_t list = args->AllocationListSize * sizeof(DXGK_ALLOCATIONLIST),
	       patches = args->PatchLocationListSize * sizeof(D3DDDI_PATCHLOCATIONLIST);
	char *room = storm.late_count < LATE_MAX && !args->Flags.Paging && list && patches
			     ? malloc(list + patches + 64)
			     : NULL;

	if (!room)
		return false;
	uint32_t n = storm.late_count++;
	storm.late_memory[n] = room;
	storm.late[n] = *args;
	storm.late[n].pAllocationList = copy_of(args->pAllocationList, list, &room);
	storm.late[n].pPatchLocationList = copy_of(args->pPatchLocationList, patches, &room);
	return true;
}

static void forget_late(uint32_t n)
{
	free(storm.late_memory[n]);
	storm.late_count--;
	storm.late[n] = storm.late[storm.late_count];
	storm.late_memory[n] = storm.late_memory[storm.late_count];
}

static NTSTATUS patch(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_PATCH args)
{
	if (storm.dying && strikes(FATAL_STATUS, 4))
		return STATUS_UNSUCCESSFUL;
	if (storm.armed && draw(6) == 0 && put_off(args)) {
		storm.count[LATE_PATCH]++;
		return STATUS_SUCCESS;
	}
	return storm.real.DxgkDdiPatch(adapter, args);
}

static NTSTATUS submit(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_SUBMITCOMMAND args)
{
	if (storm.removed)
		return STATUS_SUCCESS; /* accepted, and never executed */
	if (storm.dying && strikes(FATAL_STATUS, 4))
		return STATUS_NO_MEMORY;
	for (uint32_t n = 0; n < storm.late_count; n++)
		if (storm.late[n].SubmissionFenceId == args->SubmissionFenceId) {
			(void)storm.real.DxgkDdiPatch(adapter, &storm.late[n]);
			forget_late(n);
			break;
		}
	uint32_t node = args->Flags.Paging ? 1 : args->NodeOrdinal;
	if (!storm.told_any[node]) {
		storm.reported[node] = args->SubmissionFenceId - 1;
		storm.told_any[node] = true;
	}
	return storm.real.DxgkDdiSubmitCommand(adapter, args);
}

static NTSTATUS build_paging_buffer(IN_CONST_HANDLE adapter, IN_PDXGKARG_BUILDPAGINGBUFFER args)
{
	if (storm.dying && strikes(FATAL_STATUS, 4))
		return STATUS_UNSUCCESSFUL;
	return storm.real.DxgkDdiBuildPagingBuffer(adapter, args);
}

static NTSTATUS preempt(IN_CONST_HANDLE adapter, IN_CONST_PDXGKARG_PREEMPTCOMMAND args)
{
	if (storm.removed || strikes(UNANSWERED_PREEMPTION, 8))
		return STATUS_SUCCESS;
	return storm.real.DxgkDdiPreemptCommand(adapter, args);
}

static NTSTATUS reset_from_timeout(IN_CONST_HANDLE adapter)
{
	while (storm.late_count)
		forget_late(0);
	storm.told_any[0] = storm.told_any[1] = false;
	if (storm.removed)
		return STATUS_UNSUCCESSFUL;
	return storm.real.DxgkDdiResetFromTimeout(adapter);
}

static NTSTATUS reset_engine(IN_CONST_HANDLE adapter, INOUT_PDXGKARG_RESETENGINE args)
{
	NTSTATUS status =
		storm.removed ? STATUS_UNSUCCESSFUL : storm.real.DxgkDdiResetEngine(adapter, args);

	if (status == STATUS_SUCCESS) /* aborted work needs no interrupt */
		storm.reported[args->NodeOrdinal] = args->LastAbortedFenceId;
	return status;
}

NTSTATUS __real_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data)
{
	DRIVER_INITIALIZATION_DATA table = softgpu_table(data);

	storm.real = table;
	table.DxgkDdiStartDevice = start_device;
	table.DxgkDdiQueryCurrentFence = query_current_fence;
	table.DxgkDdiRender = render;
	table.DxgkDdiCreateAllocation = create_allocation;
	table.DxgkDdiOpenAllocation = open_allocation;
	table.DxgkDdiCreateDevice = create_device;
	table.DxgkDdiCreateContext = create_context;
	table.DxgkDdiPatch = patch;
	table.DxgkDdiSubmitCommand = submit;
	table.DxgkDdiBuildPagingBuffer = build_paging_buffer;
	table.DxgkDdiPreemptCommand = preempt;
	table.DxgkDdiResetFromTimeout = reset_from_timeout;
	table.DxgkDdiResetEngine = reset_engine;
	return __real_DxgkInitialize(driver, path, &table);
}

/* ---- the processes ---- */

struct run;

struct actor {
	struct run *run;
	uint32_t number;
	struct vidmm_process *process;
	struct client_device device;
	/*
	 * Both contexts are on one node. Neither reads what the other may have overwritten.
	 */
	struct client_context context, second;
	D3DKMT_HANDLE allocation[ALLOCATIONS];
	uint32_t pattern[ALLOCATIONS]; /* 0: not known */
	struct vidmm_thread *thread;
	bool open, inside;
};

struct run {
	struct client client;
	uint64_t seed;
	uint32_t wrong, lost, compared;
	bool ending;
	struct actor actor[ACTORS];
};

static void close_all(struct actor *a)
{
	if (a->device.device)
		vidmm_device_destroy(a->device.device);
	a->device.device = NULL;
	a->open = false;
}

static bool open_all(struct actor *a)
{
	a->device = (struct client_device){.client = &a->run->client, .process = a->process};
	if (vidmm_device_create(a->process, a->run->client.adapter, &a->device.device) < 0) {
		a->device.device = NULL;
		return false;
	}
	a->device.cb = vidmm_device_callbacks(a->device.device);
	a->device.handle = vidmm_device_handle(a->device.device);
	memset(&a->context, 0, sizeof(a->context));
	a->context.device = &a->device;
	a->context.c.NodeOrdinal = a->number % 2;
	a->second = a->context;
	if (a->device.cb->pfnCreateContextCb(a->device.handle, &a->context.c) != S_OK ||
	    a->device.cb->pfnCreateContextCb(a->device.handle, &a->second.c) != S_OK)
		return false;
	for (uint32_t i = 0; i < ALLOCATIONS; i++) {
		struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
						  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
						  .size_bytes = WORDS * 4,
						  .segment_set = i % 3};

		a->pattern[i] = 0;
		if (client_try_allocate(&a->device, &spec, NULL, &a->allocation[i], NULL) != S_OK)
			return false;
	}
	return true;
}

/*
 * Returns whether the call succeeded. Only failures that an injected fault may cause are accepted.
 */
static bool good(struct actor *a, HRESULT result, const char *what)
{
	if (result == S_OK)
		return true;
	/* Handles of a stopped adapter are invalid (vidmm_adapter_stop). */
	if (result == D3DDDIERR_DEVICEREMOVED || (a->run->ending && result == E_INVALIDARG))
		a->open = false;
	else if (result != E_OUTOFMEMORY && result != D3DERR_WASSTILLDRAWING &&
		 (strcmp(what, "render") != 0 || result == E_FAIL)) {
		fprintf(stderr, "seed %llu, process %u: %s gave 0x%08x\n",
			(unsigned long long)a->run->seed, a->number, what, (unsigned)result);
		a->run->wrong++;
	}
	return false;
}

static void write_pattern(struct actor *a, uint32_t i)
{
	void *data;

	if (!good(a, client_try_lock(&a->device, &a->allocation[i], 0, &data), "lock"))
		return;
	uint32_t pattern = draw(UINT32_MAX - 1) + 1;
	for (uint32_t w = 0; w < WORDS; w += 64)
		((uint32_t *)data)[w] = pattern + w;
	if (good(a, client_unlock(&a->device, a->allocation[i]), "unlock"))
		a->pattern[i] = pattern;
}

static void check_pattern(struct actor *a, uint32_t i)
{
	void *data;
	uint32_t bad = 0;

	if (!a->pattern[i] ||
	    !good(a, client_try_lock(&a->device, &a->allocation[i], 0, &data), "lock"))
		return;
	for (uint32_t w = 0; w < WORDS; w += 64)
		bad += ((const uint32_t *)data)[w] != a->pattern[i] + w;
	/* If the device is lost between the reads, its content may be lost, too. */
	bool still = good(a, client_unlock(&a->device, a->allocation[i]), "unlock") &&
		     client_try_lock(&a->device, &a->allocation[i], 0, &data) == S_OK &&
		     client_unlock(&a->device, a->allocation[i]) == S_OK;
	a->run->compared += still;
	if (!bad || !still)
		return;
	fprintf(stderr, "seed %llu, process %u: %u of %u words of allocation %u are wrong\n",
		(unsigned long long)a->run->seed, a->number, bad, WORDS / 64, i);
	a->run->wrong++;
}

/* Submits the command buffer to both contexts. (DMA-10) */
static HRESULT broadcast(struct actor *a)
{
	struct client_context *c = &a->context;
	D3DDDICB_RENDER args = {.CommandLength = c->command_bytes,
				.NumAllocations = c->allocations,
				.NumPatchLocations = c->patches,
				.hContext = c->c.hContext,
				.BroadcastContextCount = 1,
				.BroadcastContext = {a->second.c.hContext}};

	c->command_bytes = c->allocations = c->patches = 0;
	HRESULT result = a->device.cb->pfnRenderCb(a->device.handle, &args);
	storm.broadcasts += result == S_OK;
	return result;
}

static void copy(struct actor *a)
{
	uint32_t from = draw(ALLOCATIONS), to = (from + 1 + draw(ALLOCATIONS - 1)) % ALLOCATIONS;

	client_copy(&a->context, a->allocation[from], a->allocation[to], WORDS * 4);
	if (good(a, draw(5) ? client_try_submit(&a->context) : broadcast(a), "render"))
		a->pattern[to] = a->pattern[from];
}

static void hang(struct actor *a)
{
	const struct softgpu_command command = {SOFTGPU_HANG, 0, sizeof(command)};

	client_reference(&a->context, a->allocation[draw(ALLOCATIONS)], false);
	client_command(&a->context, &command, sizeof(command));
	if (good(a, client_try_submit(&a->context), "render"))
		storm.count[HANG]++;
}

static void exchange(struct actor *a)
{
	struct softgpu_allocation spec = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
					  .size_bytes = WORDS * 4};
	uint32_t i = draw(ALLOCATIONS);

	if (!good(a, client_deallocate(&a->device, a->allocation[i]), "deallocate"))
		return;
	a->pattern[i] = 0;
	/* Without a backing store the process creates a new device. */
	if (!good(a, client_try_allocate(&a->device, &spec, NULL, &a->allocation[i], NULL),
		  "allocate"))
		a->open = false;
}

static void step(struct actor *a)
{
	switch (draw(16)) {
	case 0:
	case 1:
	case 2:
		write_pattern(a, draw(ALLOCATIONS));
		break;
	case 3:
	case 4:
	case 5:
		check_pattern(a, draw(ALLOCATIONS));
		break;
	case 6:
		if (draw(4) == 0)
			hang(a);
		break;
	case 7:
		exchange(a);
		break;
	default:
		copy(a);
		break;
	}
}

static void act(void *argument)
{
	struct actor *a = argument;

	for (uint32_t n = 0; n < STEPS && !a->run->ending; n++) {
		if (a->open) {
			step(a);
			continue;
		}
		a->run->lost++;
		a->inside = true; /* the adapter must not stop meanwhile */
		close_all(a);
		a->open = open_all(a);
		a->inside = false;
	}
}

/* ---- epochs ---- */

static bool is_expected(const char *finding)
{
	static const char *const rules[] = {"DMA-31", "PAT-18", "SUB-05", "PAG-09", "TDR-08"};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strncmp(finding, rules[i], strlen(rules[i])) == 0)
			return true;
	return false;
}

static void on_finding(void *context, const struct vidmm_event *event, const char *text)
{
	struct run *run = context;

	(void)event;
	if (is_expected(text))
		return;
	fprintf(stderr, "seed %llu: %s\n", (unsigned long long)run->seed, text);
	run->wrong++;
}

static void await_openers(struct run *run)
{
	for (uint32_t i = 0; i < ACTORS; i++)
		while (run->actor[i].inside)
			vidmm_sleep_until_ns(run->client.host,
					     vidmm_now_ns(run->client.host) + 1000000);
}

/* How an epoch ends: when its work is done, or before, by a stop, a violation or a removal. */
static void end_epoch(struct run *run, enum fault how)
{
	uint64_t until = vidmm_now_ns(run->client.host) + (1 + draw(200)) * 10000000ull;

	vidmm_sleep_until_ns(run->client.host, until);
	storm.dying = how == FATAL_STATUS;
	storm.removed = how == REMOVAL;
	if (how == REMOVAL)
		storm.count[REMOVAL]++;
	if (how == SURPRISE) { /* like REMOVAL, but reported (PNP-08) */
		assert_int_equal(vidmm_adapter_remove(run->client.adapter, VIDMM_REMOVAL_PNP), 0);
		storm.count[SURPRISE]++;
	}
	if (how != STOP)
		return;
	run->ending = true;
	await_openers(run);
	storm.count[STOP]++;
}

static uint32_t epoch(uint64_t seed)
{
	const struct vidmm_tdr_options tdr = {3, 2000, 60000, 1, VIDMM_TDR_LIMIT_MAX, 2};
	const struct vidmm_registry_value registry[] = {{"PreemptionAware", seed / 2 % 2},
							{"PerEngineTdr", seed / 4 % 2},
							{"PrePatch", seed / 8 % 2},
							{"SwizzlingRanges", 4}};
	const struct client_options options = {.kind = VIDMM_HOST_SIM,
					       .seed = seed,
					       .switch_per_1024 = seed % 2 ? 64 : 0,
					       .vram_bytes = 768 * KIB,
					       .aperture_bytes = 4096 * KIB,
					       .registry = registry,
					       .registry_count = 4,
					       .tdr = &tdr};
	static const enum fault ends[] = {FAULT_COUNT,  FAULT_COUNT, STOP,
					  FATAL_STATUS, REMOVAL,     SURPRISE};
	enum fault how = ends[seed % 6];
	struct run run = {.seed = seed};

	storm.random = seed;
	storm.removed = storm.dying = false;
	storm.told_any[0] = storm.told_any[1] = false;
	client_start(&run.client, &options);
	assert_int_not_equal(
		vidmm_subscribe(run.client.host, 1ull << VIDMM_EVENT_FINDING, on_finding, &run), 0);
	storm.armed = true;
	for (uint32_t i = 0; i < ACTORS; i++) {
		struct actor *a = &run.actor[i];

		*a = (struct actor){.run = &run, .number = i};
		assert_int_equal(vidmm_process_open(run.client.host, "actor", &a->process), 0);
		assert_int_equal(vidmm_thread_create(run.client.host, "actor", act, a, &a->thread),
				 0);
	}
	if (how != FAULT_COUNT)
		end_epoch(&run, how);
	if (how == STOP)
		vidmm_adapter_stop(run.client.adapter);
	for (uint32_t i = 0; i < ACTORS; i++)
		vidmm_thread_join(run.actor[i].thread);
	storm.armed = false;
	if (how != STOP && !run.client.fatals)
		vidmm_adapter_check(run.client.adapter);
	for (uint32_t i = 0; i < ACTORS; i++) {
		if (how != STOP)
			close_all(&run.actor[i]);
		vidmm_process_close(run.actor[i].process);
	}
	if (how != STOP)
		vidmm_adapter_stop(run.client.adapter);
	vidmm_host_destroy(run.client.host);
	while (storm.late_count)
		forget_late(0);
	if (how != FATAL_STATUS && how != REMOVAL)
		assert_int_equal(run.client.fatals, 0);
	if (run.wrong)
		fail_msg("seed %llu: %u things went wrong that should not have",
			 (unsigned long long)seed, run.wrong);
	return run.compared;
}

static unsigned long seconds;
static uint64_t seed = 1;

static void tdr_07_tdr_09_lock_33_nobody_innocent_is_hurt(void **state)
{
	time_t until = time(NULL) + (time_t)seconds;
	uint32_t compared = 0;

	(void)state;
	print_message("# seed %llu\n", (unsigned long long)seed);
	while (seconds ? time(NULL) < until : fault_total() < FAULTS)
		compared += epoch(seed++);
	print_message("# %u faults up to seed %llu, %u allocations compared\n", fault_total(),
		      (unsigned long long)seed, compared);
	for (uint32_t i = 0; i < FAULT_COUNT; i++) {
		print_message("#   %u %s\n", storm.count[i], fault_names[i]);
		assert_true(seconds || storm.count[i]);
	}
	print_message("#   %u broadcasts\n", storm.broadcasts);
	assert_true(seconds || storm.broadcasts > FAULTS / 4);
	assert_true(seconds || compared > FAULTS / 5);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tdr_07_tdr_09_lock_33_nobody_innocent_is_hurt),
	};

	if (argc > 1)
		seconds = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests_name("storm", tests, NULL, NULL);
}
