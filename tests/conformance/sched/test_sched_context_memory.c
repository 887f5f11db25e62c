/* SPDX-License-Identifier: MIT */
/*
 * Context allocations (PRE-11), and the packet that takes the GPU off a context before its memory
 * moves (SUB-20).
 */
#include "timeout_world.h"

#include <string.h>

enum { UNIT = 16 * KIB, VALUE = 0x5AFE };

/*
 * The context allocations that the miniport creates inside CreateContext or CreateDevice, and the
 * results.
 */
struct maker {
	uint32_t want;   /* allocations still to create */
	uint32_t passes; /* calls to skip first: those of the system device and context get none */
	enum vidmm_ddi in;
	DXGKARGCB_CREATECONTEXTALLOCATION args;
	NTSTATUS status;
	bool destroys; /* when the context is destroyed */
	NTSTATUS destroyed;
};

static void make(struct maker *maker, struct scripted_miniport *m, const struct scripted_call *call)
{
	if (!maker->args.hDevice)
		maker->args.hDevice = maker->in == VIDMM_DDI_CREATE_DEVICE
					      ? call->in.create_device.hDevice
					      : scripted_last(m, VIDMM_DDI_CREATE_DEVICE)
							->in.create_device.hDevice;
	if (!maker->args.hContext && !maker->args.ContextAllocationFlags.SharedAcrossContexts)
		maker->args.hContext = call->in.create_context.hContext;
	maker->args.hAdapter = m->services.DeviceHandle;
	maker->want--;
	maker->status = m->services.DxgkCbCreateContextAllocation(&maker->args);
}

static void hook(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct maker *maker = context;

	if (maker->want && call->ddi == maker->in) {
		if (maker->passes)
			maker->passes--;
		else
			make(maker, m, call);
	}
	if (maker->destroys && call->ddi == VIDMM_DDI_DESTROY_CONTEXT) {
		maker->destroys = false;
		maker->destroyed = m->services.DxgkCbDestroyContextAllocation(
			m->services.DeviceHandle, maker->args.hAllocation);
	}
}

/* 16 units of video memory. */
static void small(struct scripted_miniport *m)
{
	m->settings.segment[0].size_bytes = m->settings.segment[0].commit_limit_bytes = 16 * UNIT;
}

static struct maker maker_of(enum vidmm_ddi in)
{
	return (struct maker){.want = 1,
			      .in = in,
			      .status = STATUS_PENDING,
			      .args = {.hDriverAllocation = &world_sim,
				       .Size = 4 * UNIT,
				       .SupportedSegmentSet = WORLD_MEMORY}};
}

static void start_as(struct world *w, void **state, struct maker *maker, world_setup *setup)
{
	world_start_adapter(w, state, setup);
	w->m->hook_context = maker;
	w->m->hook = hook;
	client_open(&w->client, &w->device);
	client_context(&w->device, 0, &w->context);
}

static void start(struct world *w, void **state, struct maker *maker)
{
	start_as(w, state, maker, small);
}

static void stop(struct world *w)
{
	world_stop(w);
}

static const struct scripted_call *nth_operation(const struct world *w, uint32_t operation,
						 uint32_t n)
{
	const struct scripted_call *call;

	for (uint32_t i = 0; (call = scripted_nth(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, i)) != NULL;
	     i++)
		if ((uint32_t)call->in.paging.Operation == operation && !n--)
			return call;
	return NULL;
}

/* Transfers of the allocation, in or out. */
static const struct scripted_call *transfer(const struct world *w, const struct maker *maker,
					    bool in)
{
	const struct scripted_call *call;

	for (uint32_t i = 0; (call = nth_operation(w, DXGK_OPERATION_TRANSFER, i)) != NULL; i++)
		if (call->in.paging.Transfer.hAllocation == maker->args.hDriverAllocation &&
		    !call->in.paging.Transfer.Source.SegmentId == in)
			return call;
	return NULL;
}

static uint32_t switches(const struct world *w, const struct scripted_call **last)
{
	const struct scripted_call *call;
	uint32_t count = 0;

	for (uint32_t i = 0; (call = scripted_nth(w->m, VIDMM_DDI_SUBMIT_COMMAND, i)) != NULL; i++)
		if (call->in.submit.Flags.ContextSwitch) {
			*last = call;
			count++;
		}
	return count;
}

static uint32_t word_at(struct world *w, const LARGE_INTEGER *address, const uint32_t *write)
{
	uint32_t value = write ? *write : 0;

	assert_true(scripted_gpu_access(w->m, 1, (uint64_t)address->QuadPart, &value, sizeof(value),
					write != NULL));
	return value;
}

static void submit(struct world *w, struct client_context *context, D3DKMT_HANDLE allocation)
{
	world_submit_use(context, allocation);
	world_run(w);
}

/* Uses the whole segment for another context, on the other node. */
static void fill_segment(struct world *w, struct client_context *context)
{
	submit(w, context, world_allocate(w, 16 * UNIT, WORLD_MEMORY));
}

static void pre_11_initialized_once_before_the_first_packet(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	struct world w;

	start(&w, state, &maker);
	assert_int_equal(maker.status, STATUS_SUCCESS);
	assert_non_null(maker.args.hAllocation);
	assert_null(nth_operation(&w, DXGK_OPERATION_INIT_CONTEXT_RESOURCE, 0));
	D3DKMT_HANDLE a = world_allocate(&w, UNIT, WORLD_MEMORY);
	world_submit_use(&w.context, a);
	const struct scripted_call *init =
		nth_operation(&w, DXGK_OPERATION_INIT_CONTEXT_RESOURCE, 0);
	assert_non_null(init);
	assert_ptr_equal(init->in.paging.InitContextResource.hAllocation, &world_sim);
	assert_int_equal(init->in.paging.InitContextResource.Destination.SegmentId, 1);
	assert_null(init->in.paging.InitContextResource.Destination.VirtualAddress);
	/* The miniport gets the packet only after the paging is complete. */
	assert_int_equal(world_render_submits(&w), 0);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 1);
	assert_int_equal(
		word_at(&w, &init->in.paging.InitContextResource.Destination.SegmentAddress, NULL),
		SCRIPTED_INIT_WORD);
	submit(&w, &w.context, a);
	assert_null(nth_operation(&w, DXGK_OPERATION_INIT_CONTEXT_RESOURCE, 1));
	stop(&w);
}

static void pre_11_content_survives_eviction_and_page_in(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	const uint32_t value = VALUE;
	struct client_context other;
	struct world w;

	start(&w, state, &maker);
	client_context(&w.device, 1, &other);
	D3DKMT_HANDLE a = world_allocate(&w, UNIT, WORLD_MEMORY);
	submit(&w, &w.context, a);
	const struct scripted_call *init =
		nth_operation(&w, DXGK_OPERATION_INIT_CONTEXT_RESOURCE, 0);
	(void)word_at(&w, &init->in.paging.InitContextResource.Destination.SegmentAddress, &value);
	fill_segment(&w, &other);
	assert_non_null(transfer(&w, &maker, false));
	assert_null(transfer(&w, &maker, true));
	submit(&w, &w.context, a);
	const struct scripted_call *back = transfer(&w, &maker, true);
	assert_non_null(back);
	assert_int_equal(word_at(&w, &back->in.paging.Transfer.Destination.SegmentAddress, NULL),
			 VALUE);
	assert_null(nth_operation(&w, DXGK_OPERATION_INIT_CONTEXT_RESOURCE, 1));
	stop(&w);
}

/* It is not evicted for another packet while a packet of its context is prepared. */
static void pre_11_context_memory_stays_resident_while_its_packet_runs(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	struct client_context other;
	struct world w;

	start(&w, state, &maker);
	client_context(&w.device, 1, &other);
	D3DKMT_HANDLE a = world_allocate(&w, UNIT, WORLD_APERTURE);
	D3DKMT_HANDLE all = world_allocate(&w, 16 * UNIT, WORLD_MEMORY);
	submit(&w, &w.context, a);
	world_submit_use(&w.context, a); /* not complete */
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	world_submit_use(&other, all);
	assert_null(transfer(&w, &maker, false));
	world_run(&w);
	assert_non_null(transfer(&w, &maker, false));
	stop(&w);
}

static void pre_11_device_level_memory_is_resident_for_all_its_contexts(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_DEVICE);
	struct client_context other;
	struct world w;

	maker.args.ContextAllocationFlags.SharedAcrossContexts = 1;
	start(&w, state, &maker);
	assert_int_equal(maker.status, STATUS_SUCCESS);
	client_context(&w.device, 1, &other);
	D3DKMT_HANDLE a = world_allocate(&w, UNIT, WORLD_APERTURE);
	submit(&w, &other, a);
	assert_non_null(nth_operation(&w, DXGK_OPERATION_INIT_CONTEXT_RESOURCE, 0));
	submit(&w, &w.context, a);
	assert_null(nth_operation(&w, DXGK_OPERATION_INIT_CONTEXT_RESOURCE, 1));
	stop(&w);
}

static void pre_11_created_only_for_the_object_under_creation(void **state)
{
	static const char *const what[] = {"hDevice", "hContext", "shared"};
	struct world w;

	for (uint32_t i = 0; i < 3; i++) {
		struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);

		if (i == 0)
			maker.args.hDevice = &w;
		else
			maker.args.hContext = &w;
		maker.args.ContextAllocationFlags.SharedAcrossContexts = i == 2;
		start(&w, state, &maker);
		if (maker.status != STATUS_INVALID_PARAMETER)
			fail_msg("%s: 0x%08x", what[i], (unsigned)maker.status);
		assert_null(maker.args.hAllocation);
		world_expect_finding(&w, "PRE-11");
		/* And outside of both calls. */
		maker.args.hContext = NULL;
		assert_int_equal(w.m->services.DxgkCbCreateContextAllocation(&maker.args),
				 STATUS_INVALID_PARAMETER);
		world_expect_finding(&w, "PRE-11");
		assert_int_equal(w.m->services.DxgkCbDestroyContextAllocation(
					 w.m->services.DeviceHandle, &w),
				 STATUS_INVALID_HANDLE);
		world_expect_finding(&w, "PRE-11");
		stop(&w);
	}
}

static void pre_11_gpu_virtual_addresses_are_not_supported(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	struct world w;

	maker.args.ContextAllocationFlags.MapGpuVirtualAddress = 1;
	start(&w, state, &maker);
	assert_int_equal(maker.status, STATUS_NOT_SUPPORTED);
	assert_null(maker.args.hAllocation);
	stop(&w);
}

/* A flag that does nothing here is refused, not ignored. */
static void pre_11_an_allocation_flag_that_is_not_built_is_refused(void **state)
{
	const DXGK_ALLOCATIONINFOFLAGS built = {.CpuVisible = 1,
						.Cached = 1,
						.Protected = 1,
						.FromEndOfSegment = 1,
						.AccessedPhysically = 1};
	uint32_t refused = 0;

	for (uint32_t bit = 0; bit < 32; bit++) {
		struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
		struct world w;

		if (built.Value & 1u << bit)
			continue;
		maker.args.Flags.Value = 1u << bit;
		start(&w, state, &maker);
		assert_true(maker.status < 0);
		assert_null(maker.args.hAllocation);
		refused += maker.status == STATUS_NOT_SUPPORTED;
		client_forget(&w.client);
		stop(&w);
	}
	assert_true(refused > 0);
}

static void pre_11_the_miniport_destroys_its_context_allocations(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	struct client_context other;
	struct world w;

	start(&w, state, &maker);
	client_context(&w.device, 0, &other);
	submit(&w, &w.context, world_allocate(&w, UNIT, WORLD_APERTURE));
	maker.destroys = true;
	maker.destroyed = STATUS_PENDING;
	w.m->settings.complete_at_once = true;
	stop(&w);
	assert_int_equal(maker.destroyed, STATUS_SUCCESS);
}

/* The adapter is dead: no thread waits for a packet that would take the GPU off the context. */
static void sub_20_no_switch_on_a_dead_adapter(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	struct world w;

	start(&w, state, &maker);
	D3DKMT_HANDLE a = world_allocate(&w, UNIT, WORLD_APERTURE);
	submit(&w, &w.context, a);
	scripted_fail(w.m, VIDMM_DDI_PATCH, STATUS_UNSUCCESSFUL, 1);
	world_use(&w.context, a);
	D3DDDICB_RENDER args = world_render_args(&w.context);
	(void)world_render(&w.context, &args);
	world_expect_finding(&w, "PAT-18");
	w.expected_fatals = 1;
	stop(&w);
}

static void two_zero(struct scripted_miniport *m)
{
	small(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_0);
}

/* A residency list does not matter: no client can name a context allocation. */
static void pre_11_resident_also_for_packets_with_a_residency_list(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	struct world w;

	start_as(&w, state, &maker, two_zero);
	assert_int_equal(maker.status, STATUS_SUCCESS);
	D3DDDICB_RENDER args = world_render_args(&w.context);
	assert_int_equal(world_render(&w.context, &args), S_OK);
	const struct scripted_call *init =
		nth_operation(&w, DXGK_OPERATION_INIT_CONTEXT_RESOURCE, 0);
	assert_non_null(init);
	assert_int_equal(world_render_submits(&w), 0);
	world_run(&w);
	assert_int_equal(world_render_submits(&w), 1);
	assert_int_equal(
		word_at(&w, &init->in.paging.InitContextResource.Destination.SegmentAddress, NULL),
		SCRIPTED_INIT_WORD);
	stop(&w);
}

static void sub_20_a_context_switch_packet_precedes_eviction_of_context_memory(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	const struct scripted_call *last = NULL;
	struct client_context other;
	struct world w;

	start(&w, state, &maker);
	client_context(&w.device, 1, &other);
	submit(&w, &w.context, world_allocate(&w, UNIT, WORLD_APERTURE));
	HANDLE context = world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit.hContext;
	assert_int_equal(switches(&w, &last), 0);
	world_submit_use(&other, world_allocate(&w, 16 * UNIT, WORLD_MEMORY));
	assert_int_equal(switches(&w, &last), 1);
	const DXGKARG_SUBMITCOMMAND *s = &last->in.submit;
	assert_int_equal(s->Flags.Value, 0x40);
	assert_ptr_equal(s->hContext, context);
	assert_int_equal(s->NodeOrdinal, 0);
	assert_int_equal(s->DmaBufferSubmissionStartOffset, s->DmaBufferSubmissionEndOffset);
	assert_int_not_equal(s->SubmissionFenceId, 0);
	/* Nothing pages it until the GPU has left the context; then it is evicted. */
	assert_int_equal(scripted_outstanding(w.m, 0), 1);
	assert_int_equal(scripted_outstanding(w.m, 1), 0);
	assert_int_equal(scripted_complete(w.m, 0, 1), 1);
	assert_true(scripted_outstanding(w.m, 1) >= 1);
	world_run(&w);
	assert_int_equal(switches(&w, &last), 1);
	stop(&w);
}

static void sub_20_no_switch_once_another_context_was_submitted(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	const struct scripted_call *last = NULL;
	struct client_context other;
	struct world w;

	start(&w, state, &maker);
	client_context(&w.device, 0, &other);
	D3DKMT_HANDLE a = world_allocate(&w, UNIT, WORLD_APERTURE);
	submit(&w, &w.context, a);
	submit(&w, &other, a);
	fill_segment(&w, &other);
	assert_non_null(transfer(&w, &maker, false));
	assert_int_equal(switches(&w, &last), 0);
	stop(&w);
}

/* A switch for the context that the GPU is on, before DestroyContext; none for another context. */
static void sub_20_a_context_switch_packet_precedes_destruction_of_the_context(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	const struct scripted_call *last = NULL;
	struct client_context other;
	struct world w;

	start(&w, state, &maker);
	w.m->settings.complete_at_once = true;
	client_context(&w.device, 1, &other);
	submit(&w, &w.context, world_allocate(&w, UNIT, WORLD_APERTURE));
	HANDLE context = world_nth_of(&w, VIDMM_DDI_SUBMIT_COMMAND, false, 0)->in.submit.hContext;
	client_context_end(&other);
	assert_int_equal(switches(&w, &last), 0);
	client_context_end(&w.context);
	assert_int_equal(switches(&w, &last), 1);
	assert_ptr_equal(last->in.submit.hContext, context);
	const struct scripted_call *call;
	bool ended = false;
	for (uint32_t i = 0; (call = scripted_at(w.m, i)) != last; i++)
		ended |= call->ddi == VIDMM_DDI_DESTROY_CONTEXT && call->handle == context;
	assert_false(ended);
	stop(&w);
}

static struct maker in_timeout;

static void small_with_maker(struct scripted_miniport *m)
{
	small(m);
	m->hook_context = &in_timeout;
	m->hook = hook;
}

static void sub_20_no_switch_after_an_adapter_reset(void **state)
{
	const struct scripted_call *last = NULL;
	struct timeout_world t;

	in_timeout = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	in_timeout.passes = 1;
	timeout_start(&t, state, small_with_maker, NULL);
	assert_int_equal(in_timeout.status, STATUS_SUCCESS);
	timeout_hang(&t);
	world_submit_use(&t.w.context, t.a);
	timeout_await(&t, VIDMM_RECOVERY_RESTARTED, 1);
	timeout_work(&t);
	assert_true(timeout_is_lost(&t.w.device, t.a));
	timeout_reopen(&t);
	assert_int_equal(switches(&t.w, &last), 0);
	timeout_stop(&t);
}

static void forget_at_d3(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	if (call->ddi == VIDMM_DDI_SET_POWER_STATE && call->in.power.state != PowerDeviceD0)
		memset(m->bar, 0xDD, m->settings.segment[0].size_bytes);
	hook(context, m, call);
}

/* Once: its content is restored. */
static void pre_11_content_survives_power_down(void **state)
{
	struct maker maker = maker_of(VIDMM_DDI_CREATE_CONTEXT);
	const uint32_t value = VALUE;
	struct world w;

	start(&w, state, &maker);
	w.m->hook = forget_at_d3;
	w.m->settings.complete_at_once = true;
	D3DKMT_HANDLE a = world_allocate(&w, UNIT, WORLD_MEMORY);
	submit(&w, &w.context, a);
	const struct scripted_call *init =
		nth_operation(&w, DXGK_OPERATION_INIT_CONTEXT_RESOURCE, 0);
	(void)word_at(&w, &init->in.paging.InitContextResource.Destination.SegmentAddress, &value);
	assert_int_equal(
		vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY), 0);
	assert_int_equal(vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D0, 0), 0);
	submit(&w, &w.context, a);
	const struct scripted_call *back = transfer(&w, &maker, true);
	assert_non_null(back);
	assert_int_equal(word_at(&w, &back->in.paging.Transfer.Destination.SegmentAddress, NULL),
			 VALUE);
	assert_null(nth_operation(&w, DXGK_OPERATION_INIT_CONTEXT_RESOURCE, 1));
	stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(pre_11_initialized_once_before_the_first_packet),
		ON_BOTH(pre_11_content_survives_eviction_and_page_in),
		ON_SIM(pre_11_context_memory_stays_resident_while_its_packet_runs),
		ON_BOTH(pre_11_device_level_memory_is_resident_for_all_its_contexts),
		ON_BOTH(pre_11_created_only_for_the_object_under_creation),
		ON_BOTH(pre_11_gpu_virtual_addresses_are_not_supported),
		ON_BOTH(pre_11_the_miniport_destroys_its_context_allocations),
		ON_SIM(pre_11_an_allocation_flag_that_is_not_built_is_refused),
		ON_SIM(sub_20_a_context_switch_packet_precedes_eviction_of_context_memory),
		ON_BOTH(pre_11_resident_also_for_packets_with_a_residency_list),
		ON_SIM(sub_20_no_switch_on_a_dead_adapter),
		ON_BOTH(pre_11_content_survives_power_down),
		ON_BOTH(sub_20_a_context_switch_packet_precedes_destruction_of_the_context),
		ON_BOTH(sub_20_no_switch_after_an_adapter_reset),
		ON_BOTH(sub_20_no_switch_once_another_context_was_submitted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
