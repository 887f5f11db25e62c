/* SPDX-License-Identifier: MIT */
/* One submission of commands at a GPU virtual address to several contexts (SUB-26, Q-190). */
#include "command_world.h"

#include <string.h>

/* Contexts 0 and 2 are on node 0, context 1 on node 1; context 0 is that of the stage. */
enum { CONTEXTS = 3, EXTRA = 16 };

struct several {
	struct stage s;
	HANDLE context[CONTEXTS];
};

static void on_request(struct scripted_miniport *m)
{
	va_memory(m);
	m->settings.complete_at_once = false;
	m->settings.context.DmaBufferPrivateDataSize = 16;
}

static void with_validation(struct scripted_miniport *m)
{
	on_request(m);
	scripted_set_version(m, DXGKDDI_INTERFACE_VERSION_WDDM2_5);
	scripted_validate_commands(m);
}

static void begin(struct several *b, void **state, world_setup *setup)
{
	stage_begin(&b->s, state, setup);
	b->context[0] = b->s.context;
	b->context[1] = stage_context_on(&b->s, 1);
	b->context[2] = stage_context_on(&b->s, 0);
	wddm2_run(&b->s.v.w);
}

static void finish(struct several *b)
{
	wddm2_run(&b->s.v.w);
	for (uint32_t i = 1; i < CONTEXTS; i++)
		stage_destroy_context(&b->s, b->context[i]);
	stage_finish(&b->s);
}

static D3DDDICB_SUBMITCOMMAND broadcast(const struct several *b)
{
	D3DDDICB_SUBMITCOMMAND args = stage_command(&b->s);

	args.BroadcastContextCount = CONTEXTS;
	memcpy(args.BroadcastContext, b->context, sizeof(b->context));
	return args;
}

static uint32_t submitted(const struct several *b)
{
	return scripted_count(b->s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL);
}

static const DXGKARG_SUBMITCOMMANDVIRTUAL *packet(const struct several *b, uint32_t n)
{
	return &scripted_nth(b->s.v.w.m, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL, n)->in.submit_virtual;
}

static void sub_26_each_context_of_a_broadcast_gets_a_packet_with_a_fence(void **state)
{
	struct several b;

	begin(&b, state, on_request);
	D3DDDICB_SUBMITCOMMAND args = broadcast(&b);
	assert_int_equal(stage_submit(&b.s, &args), S_OK);
	assert_int_equal(submitted(&b), CONTEXTS);
	assert_int_equal(scripted_outstanding(b.s.v.w.m, 0), 2);
	assert_int_equal(scripted_outstanding(b.s.v.w.m, 1), 1);
	for (uint32_t i = 0; i < CONTEXTS; i++) {
		assert_int_equal(packet(&b, i)->DmaBufferVirtualAddress, b.s.commands_at);
		assert_int_equal(packet(&b, i)->DmaBufferSize, args.CommandLength);
		for (uint32_t j = 0; j < i; j++) {
			assert_ptr_not_equal(packet(&b, i)->hContext, packet(&b, j)->hContext);
			assert_int_not_equal(packet(&b, i)->SubmissionFenceId,
					     packet(&b, j)->SubmissionFenceId);
		}
	}
	/* Each node reports the fences of its packets. */
	assert_int_equal(scripted_complete(b.s.v.w.m, 1, 1), 1);
	assert_int_equal(va_word(&b.s.v, b.s.target_at + 64), 0x600D);
	va_store(&b.s.v, b.s.target_at + 64, 0);
	assert_int_equal(scripted_complete(b.s.v.w.m, 0, 1), 1);
	assert_int_equal(va_word(&b.s.v, b.s.target_at + 64), 0x600D);
	assert_int_equal(scripted_outstanding(b.s.v.w.m, 0), 1);
	finish(&b);
}

static void sub_26_each_packet_has_the_private_data_as_validated_once(void **state)
{
	struct several b;
	uint64_t data = 0x7766554433221100;

	begin(&b, state, with_validation);
	D3DDDICB_SUBMITCOMMAND args = broadcast(&b);
	args.pPrivateDriverData = &data;
	args.PrivateDriverDataSize = sizeof(data);
	assert_int_equal(stage_submit(&b.s, &args), S_OK);
	assert_int_equal(scripted_count(b.s.v.w.m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND), 1);
	const DXGKARG_VALIDATESUBMITCOMMAND *asked =
		&scripted_last(b.s.v.w.m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND)->in.validate_command;
	assert_int_equal(asked->ContextCount, CONTEXTS);
	assert_int_equal(asked->PrivateDriverDataSize, 16);
	assert_int_equal(submitted(&b), CONTEXTS);
	for (uint32_t i = 0; i < CONTEXTS; i++) {
		const DXGKARG_SUBMITCOMMANDVIRTUAL *got = packet(&b, i);
		const unsigned char *sent = got->pDmaBufferPrivateData;

		assert_int_equal(got->DmaBufferUmdPrivateDataSize, sizeof(data));
		assert_memory_equal(sent, &data, sizeof(data));
		assert_int_equal(sent[sizeof(data)], SCRIPTED_VALIDATED);
		for (uint32_t j = 0; j < i; j++) /* the miniport may change its block */
			assert_ptr_not_equal(sent, packet(&b, j)->pDmaBufferPrivateData);
	}
	for (uint32_t i = 0; i < CONTEXTS; i++) {
		bool found = false;

		for (uint32_t j = 0; j < CONTEXTS; j++)
			found |= packet(&b, j)->hContext == asked->Context[i];
		assert_true(found);
	}
	finish(&b);
}

/* Submits a broadcast that must be refused: no context gets a packet. */
static void must_be_refused(struct several *b, const D3DDDICB_SUBMITCOMMAND *args, const char *rule)
{
	assert_int_equal(stage_submit(&b->s, args), E_INVALIDARG);
	world_expect_finding(&b->s.v.w, rule);
	assert_int_equal(submitted(b), 0);
}

static void sub_26_a_broadcast_that_is_refused_reaches_no_context(void **state)
{
	struct several b;
	uint64_t data[3] = {1};

	begin(&b, state, with_validation);
	D3DDDICB_SUBMITCOMMAND args = broadcast(&b);
	args.BroadcastContext[2] = b.context[1]; /* named twice */
	must_be_refused(&b, &args, "SUB-26");
	args.BroadcastContext[2] = b.context[0];
	must_be_refused(&b, &args, "SUB-26");
	args.BroadcastContext[2] = (HANDLE)0x1234;
	must_be_refused(&b, &args, "SUB-26");
	args.BroadcastContext[2] = b.s.v.w.context.c.hContext; /* it uses patching */
	must_be_refused(&b, &args, "SUB-23");
	args = broadcast(&b);
	args.pPrivateDriverData = data;
	args.PrivateDriverDataSize = 17;
	must_be_refused(&b, &args, "SUB-24");
	args.PrivateDriverDataSize = sizeof(data[0]);
	scripted_fail(b.s.v.w.m, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND, STATUS_INVALID_USER_BUFFER, 1);
	assert_int_equal(stage_submit(&b.s, &args), D3DDDIERR_INVALIDUSERBUFFER);
	world_expect_finding(&b.s.v.w, "SUB-25");
	assert_int_equal(submitted(&b), 0);
	assert_int_equal(stage_submit(&b.s, &args), S_OK);
	assert_int_equal(submitted(&b), CONTEXTS);
	finish(&b);
}

static void sub_26_a_context_of_another_device_is_refused(void **state)
{
	struct several b;
	struct client_device other;
	D3DDDICB_CREATECONTEXTVIRTUAL create = {0};

	begin(&b, state, va_memory);
	client_open(&b.s.v.w.client, &other);
	assert_int_equal(other.cb->pfnCreateContextVirtualCb(other.handle, &create), S_OK);
	D3DDDICB_SUBMITCOMMAND args = broadcast(&b);
	args.BroadcastContext[1] = create.hContext;
	must_be_refused(&b, &args, "SUB-26");
	const D3DDDICB_DESTROYCONTEXT destroy = {create.hContext};
	assert_int_equal(other.cb->pfnDestroyContextCb(other.handle, &destroy), S_OK);
	client_close(&other);
	finish(&b);
}

static void sub_26_sixty_four_contexts_get_a_packet_each(void **state)
{
	struct several b;
	HANDLE more[64 - CONTEXTS];

	begin(&b, state, on_request);
	D3DDDICB_SUBMITCOMMAND args = broadcast(&b);
	for (uint32_t i = 0; i < 64 - CONTEXTS; i++) {
		more[i] = stage_context_on(&b.s, i & 1);
		args.BroadcastContext[CONTEXTS + i] = more[i];
	}
	args.BroadcastContextCount = 64;
	assert_int_equal(stage_submit(&b.s, &args), S_OK);
	assert_int_equal(scripted_outstanding(b.s.v.w.m, 0) + scripted_outstanding(b.s.v.w.m, 1) +
				 submitted(&b),
			 2 * submitted(&b));
	wddm2_run(&b.s.v.w);
	assert_int_equal(submitted(&b), 64);
	for (uint32_t i = 0; i < 64 - CONTEXTS; i++)
		stage_destroy_context(&b.s, more[i]);
	finish(&b);
}

/* SUB-28: the context blocks alone. */
static void sub_26_a_context_behind_a_wait_delays_no_other(void **state)
{
	struct several b;
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 fence = {.Info.Type = D3DDDI_MONITORED_FENCE};
	uint64_t value = 1;

	begin(&b, state, on_request);
	const D3DDDI_DEVICECALLBACKS *cb = b.s.v.w.device.cb;
	HANDLE device = b.s.v.w.device.handle;
	b.s.v.w.m->settings.complete_at_once = true; /* the fence's page is mapped */
	assert_int_equal(cb->pfnCreateSynchronizationObject2Cb(device, &fence), S_OK);
	b.s.v.w.m->settings.complete_at_once = false;
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {
		.hContext = b.context[1],
		.ObjectCount = 1,
		.ObjectHandleArray = &fence.hSyncObject,
		.MonitoredFenceValueArray = &value};
	assert_int_equal(cb->pfnWaitForSynchronizationObjectFromGpuCb(device, &wait), S_OK);
	D3DDDICB_SUBMITCOMMAND args = broadcast(&b);
	assert_int_equal(stage_submit(&b.s, &args), S_OK);
	assert_int_equal(submitted(&b), CONTEXTS - 1);
	assert_int_equal(scripted_outstanding(b.s.v.w.m, 1), 0);
	wddm2_run(&b.s.v.w);
	assert_int_equal(submitted(&b), CONTEXTS - 1);
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU signal = {.ObjectCount = 1,
								    .ObjectHandleArray =
									    &fence.hSyncObject,
								    .FenceValueArray = &value};
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromCpuCb(device, &signal), S_OK);
	while (submitted(&b) < CONTEXTS)
		vidmm_settle(b.s.v.w.client.host);
	finish(&b);
}

/* SUB-29: a written primary is destroyed after the last packet that writes it. */
static void sub_26_a_primary_is_busy_until_the_last_context_has_completed(void **state)
{
	struct several b;

	begin(&b, state, on_request);
	D3DDDICB_SUBMITCOMMAND args = broadcast(&b);
	D3DKMT_HANDLE primary = va_allocate(&b.s.v, 64 * KIB, WORLD_MEMORY);
	va_make(&b.s.v, primary);
	uint32_t before = scripted_count(b.s.v.w.m, VIDMM_DDI_DESTROY_ALLOCATION);
	args.NumPrimaries = 1;
	args.WrittenPrimaries[0] = primary;
	assert_int_equal(stage_submit(&b.s, &args), S_OK);
	const D3DDDICB_DEALLOCATE end = {.NumAllocations = 1, .HandleList = &primary};
	assert_int_equal(b.s.v.w.device.cb->pfnDeallocateCb(b.s.v.w.device.handle, &end), S_OK);
	while (scripted_outstanding(b.s.v.w.m, 0))
		scripted_complete(b.s.v.w.m, 0, 1);
	vidmm_settle(b.s.v.w.client.host);
	assert_int_equal(scripted_outstanding(b.s.v.w.m, 1), 1);
	assert_int_equal(scripted_count(b.s.v.w.m, VIDMM_DDI_DESTROY_ALLOCATION), before);
	wddm2_run(&b.s.v.w);
	vidmm_settle(b.s.v.w.client.host);
	assert_int_equal(scripted_count(b.s.v.w.m, VIDMM_DDI_DESTROY_ALLOCATION), before + 1);
	finish(&b);
}

struct submitting {
	struct several *b;
	D3DDDICB_SUBMITCOMMAND args;
	_Atomic uint32_t *done;
};

static void submit_many(void *argument)
{
	struct submitting *t = argument;

	for (uint32_t i = 0; i < 2 * EXTRA; i++) {
		assert_int_equal(stage_submit(&t->b->s, &t->args), S_OK);
		atomic_fetch_add(t->done, 1);
	}
}

/* Both need a buffer of each context, and name the contexts in opposite orders. */
static void sub_26_threads_that_broadcast_to_the_same_contexts_all_finish(void **state)
{
	struct several b;
	struct vidmm_thread *thread[2];
	_Atomic uint32_t done = 0;

	begin(&b, state, on_request);
	struct submitting t[2] = {{.b = &b, .args = broadcast(&b), .done = &done},
				  {.b = &b, .args = broadcast(&b), .done = &done}};
	for (uint32_t i = 0; i < CONTEXTS; i++)
		t[1].args.BroadcastContext[i] = b.context[CONTEXTS - 1 - i];
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(vidmm_thread_create(b.s.v.w.client.host, "broadcasts", submit_many,
						     &t[i], &thread[i]),
				 0);
	while (atomic_load(&done) < 4 * EXTRA) {
		scripted_complete_all(b.s.v.w.m);
		vidmm_settle(b.s.v.w.client.host);
	}
	for (uint32_t i = 0; i < 2; i++)
		vidmm_thread_join(thread[i]);
	wddm2_run(&b.s.v.w);
	assert_int_equal(submitted(&b), 4 * EXTRA * CONTEXTS);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_26_each_context_of_a_broadcast_gets_a_packet_with_a_fence),
		ON_BOTH(sub_26_each_packet_has_the_private_data_as_validated_once),
		ON_SIM(sub_26_a_broadcast_that_is_refused_reaches_no_context),
		ON_SIM(sub_26_a_context_of_another_device_is_refused),
		ON_SIM(sub_26_sixty_four_contexts_get_a_packet_each),
		ON_BOTH(sub_26_a_context_behind_a_wait_delays_no_other),
		ON_BOTH(sub_26_a_primary_is_busy_until_the_last_context_has_completed),
		ON_BOTH(sub_26_threads_that_broadcast_to_the_same_contexts_all_finish),
	};

	return cmocka_run_group_tests_name("wddm2_broadcast", tests, NULL, NULL);
}
