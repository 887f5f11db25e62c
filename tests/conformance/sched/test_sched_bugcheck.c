/* SPDX-License-Identifier: MIT */
/*
 * Violations for which Windows stops the machine. For each: the stop code with its parameters, and
 * the finding that gives the reason. The adapter is stopped; the process lives and can start
 * another one. The parameters of timeouts and preemption are in the tests of those.
 */
#include "sched_world.h"

#include <string.h>

enum {
	UNKNOWN_FENCE,
	FAILED_SUBMIT,
	FAILED_PATCH,
	FAULTED_PAGING,
	PAGING_STATUS,
	COMMANDS_OVERFLOW,
	PRIVATE_OVERFLOW,
	LIST_OVERFLOW,
	BROKEN_CONTRACT,
	VIOLATIONS
};

struct scene {
	struct world w;
	uint32_t what;
	D3DKMT_HANDLE a;
	uint64_t expected[4];
	const char *rule;
};

static void contract(struct scripted_miniport *m)
{
	m->settings.context.PatchLocationListSize = 1;
	m->settings.device.Flags.GuaranteedDmaBufferContract = 1;
}

static void overflow(void *context, struct scripted_miniport *m, struct scripted_call *call)
{
	struct scene *s = context;
	DXGKARG_RENDER *out = call->args;
	const DXGKARG_RENDER *in = &call->in.render;

	(void)m;
	if (call->ddi != VIDMM_DDI_RENDER)
		return;
	if (s->what == COMMANDS_OVERFLOW) {
		out->pDmaBuffer = (char *)in->pDmaBuffer + in->DmaSize + 16;
		memcpy(&s->expected[1], (const uint64_t[]){0x12, in->DmaSize + 16u, in->DmaSize},
		       3 * sizeof(uint64_t));
	} else if (s->what == PRIVATE_OVERFLOW) {
		out->pDmaBufferPrivateData =
			(char *)in->pDmaBufferPrivateData + in->DmaBufferPrivateDataSize + 8;
		memcpy(&s->expected[1],
		       (const uint64_t[]){0x13, in->DmaBufferPrivateDataSize + 8u,
					  in->DmaBufferPrivateDataSize},
		       3 * sizeof(uint64_t));
	} else {
		out->pPatchLocationListOut =
			in->pPatchLocationListOut + in->PatchLocationListOutSize + 1;
		memcpy(&s->expected[1],
		       (const uint64_t[]){0x1000 + VIDMM_DDI_RENDER,
					  (uintptr_t)out->pDmaBuffer - (uintptr_t)in->pDmaBuffer,
					  in->DmaSize},
		       3 * sizeof(uint64_t));
	}
}

struct fault {
	struct scripted_miniport *m;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data;
};

static BOOLEAN fault_at_device_irql(PVOID context)
{
	const struct fault *f = context;

	f->m->services.DxgkCbNotifyInterrupt(f->m->services.DeviceHandle, &f->data);
	return f->m->services.DxgkCbQueueDpc(f->m->services.DeviceHandle);
}

static uint32_t fault_paging(struct world *w)
{
	struct fault f = {.m = w->m};
	uint32_t n = scripted_count(w->m, VIDMM_DDI_SUBMIT_COMMAND);
	const DXGKARG_SUBMITCOMMAND *paging = NULL;
	BOOLEAN result;

	while (n-- && !paging) {
		const DXGKARG_SUBMITCOMMAND *s =
			&scripted_nth(w->m, VIDMM_DDI_SUBMIT_COMMAND, n)->in.submit;
		paging = s->Flags.Paging ? s : NULL;
	}
	assert_non_null(paging);
	memset(&f.data, 0, sizeof(f.data));
	f.data.InterruptType = DXGK_INTERRUPT_DMA_FAULTED;
	f.data.DmaFaulted.FaultedFenceId = paging->SubmissionFenceId;
	f.data.DmaFaulted.Status = STATUS_ACCESS_VIOLATION;
	f.data.DmaFaulted.NodeOrdinal = 1;
	w->m->services.DxgkCbSynchronizeExecution(w->m->services.DeviceHandle, fault_at_device_irql,
						  &f, 0, &result);
	return paging->SubmissionFenceId;
}

static void expect(struct scene *s, const char *rule, uint64_t code, uint64_t p1, uint64_t p2,
		   uint64_t p3)
{
	s->rule = rule;
	memcpy(s->expected, (const uint64_t[]){code, p1, p2, p3}, sizeof(s->expected));
}

static uint32_t last_fence(struct world *w)
{
	return scripted_last(w->m, VIDMM_DDI_PATCH)->in.patch.SubmissionFenceId;
}

/* Provokes the violation; the stop code and finding that it expects. */
static void violate(struct scene *s)
{
	struct world *w = &s->w;

	switch (s->what) {
	case UNKNOWN_FENCE:
		world_submit_use(&w->context, s->a);
		world_run(w);
		scripted_report(w->m, 0, last_fence(w) + 7);
		expect(s, "SUB-12", 0x119, 0x1, last_fence(w) + 7u, last_fence(w));
		break;
	case FAILED_SUBMIT:
		scripted_fail(w->m, VIDMM_DDI_SUBMIT_COMMAND, STATUS_NO_MEMORY, 1);
		world_submit_use(&w->context, s->a);
		world_run(w);
		expect(s, "SUB-05", 0x119, 0x2, (uint32_t)STATUS_NO_MEMORY,
		       scripted_last(w->m, VIDMM_DDI_SUBMIT_COMMAND)->in.submit.SubmissionFenceId);
		break;
	case FAILED_PATCH:
		scripted_fail(w->m, VIDMM_DDI_PATCH, STATUS_INVALID_PARAMETER, 1);
		world_submit_use(&w->context, s->a);
		world_run(w);
		expect(s, "PAT-18", 0x119, 0x3, (uint32_t)STATUS_INVALID_PARAMETER, last_fence(w));
		break;
	case FAULTED_PAGING:
		world_submit_use(&w->context, s->a);
		vidmm_settle(w->client.host);
		expect(s, NULL, 0x119, 0x5, fault_paging(w), (uint32_t)STATUS_ACCESS_VIOLATION);
		break;
	case PAGING_STATUS:
		scripted_fail(w->m, VIDMM_DDI_BUILD_PAGING_BUFFER, STATUS_UNSUCCESSFUL, 1);
		world_submit_use(&w->context, s->a);
		world_run(w);
		expect(s, "PAG-09", 0x10E, 0xB, (uint64_t)VIDMM_PAGING_FILL,
		       (uint32_t)STATUS_UNSUCCESSFUL);
		break;
	case BROKEN_CONTRACT: {
		world_use(&w->context, s->a);
		world_use(&w->context, s->a);
		D3DDDICB_RENDER args = world_render_args(&w->context);
		assert_int_equal(world_render(&w->context, &args), D3DDDIERR_DEVICEREMOVED);
		const DXGKARG_RENDER *in = &scripted_last(w->m, VIDMM_DDI_RENDER)->in.render;
		expect(s, "DMA-30", 0x10E, 0x16, sizeof(struct scripted_command), in->DmaSize);
		break;
	}
	default: {
		expect(s, "DMA-28", 0x10E, 0, 0, 0); /* the hook sets the rest */
		w->m->hook_context = s;
		w->m->hook = overflow;
		world_use(&w->context, s->a);
		D3DDDICB_RENDER args = world_render_args(&w->context);
		assert_int_equal(world_render(&w->context, &args), D3DDDIERR_DEVICEREMOVED);
		w->m->hook = NULL;
		break;
	}
	}
}

/* The adapter is dead and refuses new calls; all objects can be closed. */
static void expect_stopped(struct scene *s)
{
	struct world *w = &s->w;
	uint32_t calls = w->m->call_count;
	D3DKMT_HANDLE a = s->a;

	assert_int_equal(w->fatals, 1);
	assert_memory_equal(w->fatal, s->expected, sizeof(s->expected));
	if (s->rule)
		world_expect_finding(w, s->rule);
	world_use(&w->context, s->a);
	D3DDDICB_RENDER args = world_render_args(&w->context);
	assert_int_equal(world_render(&w->context, &args), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(client_try_lock(&w->device, &a, 0, NULL), D3DDDIERR_DEVICEREMOVED);
	assert_int_equal(client_deallocate(&w->device, a), S_OK);
	assert_int_equal(w->m->call_count, calls);
	w->expected_fatals = 1;
}

static void a_stop_code(void **state, uint32_t what)
{
	struct scene s = {.what = what};

	world_start(&s.w, state, what == BROKEN_CONTRACT ? contract : NULL);
	s.a = world_allocate(&s.w, 64 * KIB, what == PAGING_STATUS ? WORLD_MEMORY : 0);
	violate(&s);
	vidmm_settle(s.w.client.host);
	expect_stopped(&s);
	world_stop(&s.w);
	/* The process can use another adapter. */
	world_start(&s.w, state, NULL);
	s.a = world_allocate(&s.w, 64 * KIB, 0);
	world_submit_use(&s.w.context, s.a);
	world_stop(&s.w);
}

#define STOP_CODE(name, what)             \
	static void name(void **state)    \
	{                                 \
		a_stop_code(state, what); \
	}

STOP_CODE(sub_12_stop_119_1_a_fence_that_was_never_submitted, UNKNOWN_FENCE)
STOP_CODE(sub_05_stop_119_2_submit_fails, FAILED_SUBMIT)
STOP_CODE(pat_18_stop_119_3_patch_fails, FAILED_PATCH)
STOP_CODE(stop_119_5_paging_faults, FAULTED_PAGING)
STOP_CODE(pag_09_stop_10e_b_a_paging_buffer_with_another_status, PAGING_STATUS)
STOP_CODE(dma_28_stop_10e_12_beyond_the_dma_buffer, COMMANDS_OVERFLOW)
STOP_CODE(dma_28_stop_10e_13_beyond_the_private_data, PRIVATE_OVERFLOW)
STOP_CODE(dma_28_stop_10e_beyond_the_patch_list, LIST_OVERFLOW)
STOP_CODE(dma_30_stop_10e_16_the_contract_is_broken, BROKEN_CONTRACT)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(sub_12_stop_119_1_a_fence_that_was_never_submitted),
		ON_BOTH(sub_05_stop_119_2_submit_fails),
		ON_BOTH(pat_18_stop_119_3_patch_fails),
		ON_BOTH(stop_119_5_paging_faults),
		ON_BOTH(pag_09_stop_10e_b_a_paging_buffer_with_another_status),
		ON_BOTH(dma_28_stop_10e_12_beyond_the_dma_buffer),
		ON_BOTH(dma_28_stop_10e_13_beyond_the_private_data),
		ON_BOTH(dma_28_stop_10e_beyond_the_patch_list),
		ON_BOTH(dma_30_stop_10e_16_the_contract_is_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
