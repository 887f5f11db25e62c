/* SPDX-License-Identifier: MIT */
/*
 * Refusals of the calls that append to a context's queue (SYN-21 to SYN-33), through D3DKMT
 * functions and callbacks.
 */
#include "queue_world.h"

#include <string.h>

static const D3DKMT_HANDLE dead = 0x40000040;

/* ---- the first two forms ---- */

static NTSTATUS wait_1(const struct lane *lane, uint32_t count, D3DKMT_HANDLE object)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT args = {.hContext = lane->context,
						    .ObjectCount = count};

	for (uint32_t i = 0; i < 32; i++)
		args.ObjectHandleArray[i] = object;
	return D3DKMTWaitForSynchronizationObject(&args);
}

static NTSTATUS wait_2(D3DKMT_HANDLE context, uint32_t count, D3DKMT_HANDLE object, uint64_t value)
{
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 args = {
		.hContext = context, .ObjectCount = count, .Fence.FenceValue = value};

	for (uint32_t i = 0; i < 32; i++)
		args.ObjectHandleArray[i] = object;
	return D3DKMTWaitForSynchronizationObject2(&args);
}

static NTSTATUS signal_1(const struct lane *lane, uint32_t count, D3DKMT_HANDLE object,
			 uint32_t flags)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT args = {
		.hContext = lane->context, .ObjectCount = count, .Flags.Value = flags};

	for (uint32_t i = 0; i < 32; i++)
		args.ObjectHandleArray[i] = object;
	return D3DKMTSignalSynchronizationObject(&args);
}

static NTSTATUS signal_2(D3DKMT_HANDLE context, uint32_t count, D3DKMT_HANDLE object,
			 uint64_t value, uint32_t flags)
{
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 args = {.hContext = context,
						    .ObjectCount = count,
						    .Flags.Value = flags,
						    .Fence.FenceValue = value};

	for (uint32_t i = 0; i < 32; i++)
		args.ObjectHandleArray[i] = object;
	return D3DKMTSignalSynchronizationObject2(&args);
}

#define REFUSED(call, status, rule)             \
	do {                                    \
		assert_int_equal(call, status); \
		queue_found(&p, rule);          \
	} while (0)
#define INVALID(call, rule) REFUSED(call, STATUS_INVALID_PARAMETER, rule)

static void syn_21_syn_22_syn_23_syn_24_v1_and_v2_calls_refuse_invalid_arguments(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	struct queue_fence f = queue_fence(a, 0, 5);
	lane_enter(a);
	INVALID(wait_1(a, 0, f.handle), "SYN-21");
	INVALID(wait_1(a, 33, f.handle), "SYN-21");
	INVALID(wait_2(a->context, 0, f.handle, 1), "SYN-21");
	INVALID(wait_2(a->context, 33, f.handle, 1), "SYN-21");
	INVALID(signal_1(a, 0, f.handle, 0), "SYN-21");
	INVALID(signal_1(a, 33, f.handle, 0), "SYN-21");
	INVALID(signal_2(a->context, 0, f.handle, 1, 0), "SYN-21");
	INVALID(signal_2(a->context, 33, f.handle, 1, 0), "SYN-21");
	/* The first form has no value. */
	INVALID(wait_1(a, 1, f.handle), "FEN-05");
	INVALID(signal_1(a, 1, f.handle, 0), "FEN-05");
	INVALID(signal_1(a, 1, f.handle, 2), "SYN-24");
	INVALID(signal_1(a, 1, f.handle, 4), "SYN-24");
	INVALID(signal_1(a, 1, f.handle, 8), "SYN-24");
	INVALID(signal_2(a->context, 1, f.handle, 9, 8), "SYN-24");
	INVALID(signal_2(a->context, 1, f.handle, 9, 0x80000000), "SYN-24");
	INVALID(wait_2(0, 1, f.handle, 1), "HND-07");
	INVALID(wait_2(a->device, 1, f.handle, 1), "HND-07");
	INVALID(signal_2(f.handle, 1, f.handle, 9, 0), "HND-07");
	INVALID(wait_2(a->context, 1, dead, 1), "SYN-22");
	INVALID(signal_2(a->context, 1, a->device, 1, 0), "SYN-22");
	assert_int_equal(*f.value, 5);
	assert_int_equal(wait_2(a->context, 1, f.handle, 5), STATUS_SUCCESS);
	assert_int_equal(wait_2(a->context, 32, f.handle, 5), STATUS_SUCCESS);
	assert_int_equal(signal_2(a->context, 32, f.handle, 6, 0), STATUS_SUCCESS);
	assert_int_equal(*f.value, 6);
	assert_int_equal(signal_2(a->context, 1, f.handle, 3, 4), STATUS_SUCCESS);
	assert_int_equal(*f.value, 3);
	lane_render(a); /* none of the refused calls has left anything in the queue */
	queue_assert_order(&p, "a");
	INVALID(D3DKMTWaitForSynchronizationObject(NULL), "HND-11");
	INVALID(D3DKMTWaitForSynchronizationObject2(NULL), "HND-11");
	INVALID(D3DKMTSignalSynchronizationObject(NULL), "HND-11");
	INVALID(D3DKMTSignalSynchronizationObject2(NULL), "HND-11");
	priority_stop(&p);
}

/* ---- those of WDDM 2.0 ---- */

static NTSTATUS wait_gpu(D3DKMT_HANDLE context, const D3DKMT_HANDLE *objects, uint32_t count,
			 const UINT64 *values)
{
	const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU args = {.hContext = context,
								 .ObjectCount = count,
								 .ObjectHandleArray = objects,
								 .MonitoredFenceValueArray =
									 values};

	return D3DKMTWaitForSynchronizationObjectFromGpu(&args);
}

static NTSTATUS signal_gpu(D3DKMT_HANDLE context, const D3DKMT_HANDLE *objects, uint32_t count,
			   const UINT64 *values)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU args = {.hContext = context,
								.ObjectCount = count,
								.ObjectHandleArray = objects,
								.MonitoredFenceValueArray = values};

	return D3DKMTSignalSynchronizationObjectFromGpu(&args);
}

static NTSTATUS signal_gpu_2(const D3DKMT_HANDLE *contexts, uint32_t context_count,
			     const D3DKMT_HANDLE *objects, uint32_t count, const UINT64 *values,
			     uint32_t flags)
{
	const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 args = {
		.ObjectCount = count,
		.ObjectHandleArray = objects,
		.Flags.Value = flags,
		.BroadcastContextCount = context_count,
		.BroadcastContextArray = contexts,
		.MonitoredFenceValueArray = values};

	return D3DKMTSignalSynchronizationObjectFromGpu2(&args);
}

enum { MANY = 100 };

static void syn_22_syn_23_syn_31_syn_33_gpu_calls_refuse_invalid_arguments(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a'), *b = queue_lane(&p, 1, 'b');
	b = queue_lane(&p, 1, 'c'); /* the number is not a context of the first process */
	struct queue_fence f = queue_fence(a, 0, 5), g = queue_fence(a, 0, 0);
	UINT64 values[MANY];
	D3DKMT_HANDLE objects[MANY];
	for (uint32_t i = 0; i < MANY; i++) {
		objects[i] = i % 2 ? f.handle : g.handle;
		values[i] = 100 + i;
	}
	lane_enter(a);
	INVALID(wait_gpu(a->context, objects, 0, values), "SYN-31");
	INVALID(signal_gpu(a->context, objects, 0, values), "SYN-31");
	INVALID(signal_gpu_2(&a->context, 1, objects, 0, values, 0), "SYN-31");
	INVALID(signal_gpu_2(&a->context, 0, objects, 1, values, 0), "SYN-31");
	INVALID(signal_gpu_2(&a->context, 1, objects, 1, values, 8), "SYN-24");
	INVALID(wait_gpu(a->context, NULL, 1, values), "SYN-33");
	INVALID(wait_gpu(a->context, objects, 1, NULL), "SYN-33");
	INVALID(signal_gpu(a->context, NULL, 1, values), "SYN-33");
	INVALID(signal_gpu(a->context, objects, 1, NULL), "SYN-33");
	INVALID(signal_gpu_2(NULL, 1, objects, 1, values, 0), "SYN-33");
	INVALID(wait_gpu(b->context, objects, 1, values), "HND-07"); /* of another process */
	D3DKMT_HANDLE contexts[2] = {a->context, b->context};
	INVALID(signal_gpu_2(contexts, 2, objects, 1, values, 0), "HND-07");
	objects[1] = dead;
	INVALID(wait_gpu(a->context, objects, 3, values), "SYN-22");
	INVALID(signal_gpu(a->context, objects, 3, values), "SYN-22");
	INVALID(signal_gpu_2(contexts, 1, objects, 3, values, 0), "SYN-22");
	objects[1] = f.handle;
	assert_int_equal(*g.value, 0);
	/* No limit of 32 (SYN-31). */
	assert_int_equal(signal_gpu(a->context, objects, MANY, values), STATUS_SUCCESS);
	assert_int_equal(*f.value, 199);
	assert_int_equal(signal_gpu_2(contexts, 1, objects, MANY, values, 0), STATUS_SUCCESS);
	assert_int_equal(wait_gpu(a->context, objects, MANY, values), STATUS_SUCCESS);
	lane_render(a);
	queue_assert_order(&p, "a");
	values[57] = 1000; /* one of a hundred blocks it */
	assert_int_equal(wait_gpu(a->context, objects, MANY, values), STATUS_SUCCESS);
	lane_render(a);
	queue_assert_order(&p, "");
	assert_int_equal(queue_cpu_signal(a, f.handle, 1000), STATUS_SUCCESS);
	queue_assert_order(&p, "a");
	INVALID(D3DKMTWaitForSynchronizationObjectFromGpu(NULL), "HND-11");
	INVALID(D3DKMTSignalSynchronizationObjectFromGpu(NULL), "HND-11");
	INVALID(D3DKMTSignalSynchronizationObjectFromGpu2(NULL), "HND-11");
	priority_stop(&p);
}

static void sfl_15_sfl_16_nosignal_and_nowait_deny_queued_signals_and_waits(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	struct queue_fence mute = queue_fence(a, 0x10, 5), hasty = queue_fence(a, 0x20, 5);
	const UINT64 value = 5;
	lane_enter(a);
	REFUSED(signal_gpu(a->context, &mute.handle, 1, &value), STATUS_ACCESS_DENIED, "SFL-15");
	REFUSED(signal_gpu_2(&a->context, 1, &mute.handle, 1, &value, 0), STATUS_ACCESS_DENIED,
		"SFL-15");
	REFUSED(signal_2(a->context, 1, mute.handle, 9, 0), STATUS_ACCESS_DENIED, "SFL-15");
	REFUSED(wait_gpu(a->context, &hasty.handle, 1, &value), STATUS_ACCESS_DENIED, "SFL-16");
	REFUSED(wait_2(a->context, 1, hasty.handle, 5), STATUS_ACCESS_DENIED, "SFL-16");
	assert_int_equal(*mute.value, 5);
	assert_int_equal(wait_gpu(a->context, &mute.handle, 1, &value), STATUS_SUCCESS);
	assert_int_equal(signal_gpu(a->context, &hasty.handle, 1, &value), STATUS_SUCCESS);
	priority_stop(&p);
}

/* the scalar of the second form is the value for every monitored fence in the array. */
static void syn_32_v2_calls_use_one_value_for_all_fences(void **state)
{
	struct priority_world p;

	queue_start(&p, state);
	struct lane *a = queue_lane(&p, 0, 'a');
	struct queue_fence f = queue_fence(a, 0, 0), g = queue_fence(a, 0, 0);
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 args = {.hContext = a->context,
						    .ObjectCount = 2,
						    .ObjectHandleArray = {f.handle, g.handle},
						    .Fence.FenceValue = 7};
	lane_enter(a);
	assert_int_equal(D3DKMTSignalSynchronizationObject2(&args), STATUS_SUCCESS);
	assert_int_equal(*f.value, 7);
	assert_int_equal(*g.value, 7);
	priority_stop(&p);
}

/* ---- the callbacks ---- */

static void umd_3_0(struct scripted_miniport *m)
{
	queue_3_0(m);
	m->settings.complete_at_once = true;
}

static D3DKMT_HANDLE fence_of(struct client_device *device, const volatile uint64_t **value)
{
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 args = {.Info.Type = D3DDDI_MONITORED_FENCE};

	assert_int_equal(device->cb->pfnCreateSynchronizationObject2Cb(device->handle, &args),
			 S_OK);
	*value = args.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	return args.hSyncObject;
}

/* The valid calls were tested above; each of these has one error. */
static void refuse_callbacks(struct world *w, HANDLE context, D3DKMT_HANDLE g)
{
	const D3DDDI_DEVICECALLBACKS *cb = w->device.cb;
	HANDLE device = w->device.handle, two[2] = {context, w};
	UINT64 value = 9;
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT none = {.hContext = context};
	assert_int_equal(cb->pfnWaitForSynchronizationObjectCb(device, &none), E_INVALIDARG);
	world_expect_finding(w, "SYN-21");
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT first = {
		.hContext = context, .ObjectCount = 1, .ObjectHandleArray = {g}};
	assert_int_equal(cb->pfnSignalSynchronizationObjectCb(device, &first), E_INVALIDARG);
	world_expect_finding(w, "FEN-05");
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 several = {.ObjectCount = 1,
								.ObjectHandleArray = &g,
								.BroadcastContextArray = two,
								.MonitoredFenceValueArray = &value};
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromGpu2Cb(device, &several),
			 E_INVALIDARG);
	world_expect_finding(w, "SYN-31");
	several.BroadcastContextCount = 2;
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromGpu2Cb(device, &several),
			 E_INVALIDARG);
	world_expect_finding(w, "SYN-23");
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {.hContext = w,
								   .ObjectCount = 1,
								   .ObjectHandleArray = &g,
								   .MonitoredFenceValueArray =
									   &value};
	assert_int_equal(cb->pfnWaitForSynchronizationObjectFromGpuCb(device, &wait), E_INVALIDARG);
	world_expect_finding(w, "SYN-23");
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {
		.hContext = context, .ObjectCount = 1, .MonitoredFenceValueArray = &value};
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromGpuCb(device, &signal),
			 E_INVALIDARG);
	world_expect_finding(w, "SYN-33");
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT2 many = {.hContext = context,
							    .ObjectCount = 1,
							    .ObjectHandleArray = {g},
							    .BroadcastContextCount = 65};
	assert_int_equal(cb->pfnSignalSynchronizationObject2Cb(device, &many), E_INVALIDARG);
	world_expect_finding(w, "SYN-29");
	assert_int_equal(cb->pfnWaitForSynchronizationObject2Cb(device, NULL), E_INVALIDARG);
	world_expect_finding(w, "HND-11");
}

static void syn_25_syn_31_mfn_28_mfn_29_device_callbacks_behave_as_d3dkmt_calls(void **state)
{
	const volatile uint64_t *f_value, *g_value;
	struct world w;

	world_start(&w, state, umd_3_0);
	const D3DDDI_DEVICECALLBACKS *cb = w.device.cb;
	HANDLE device = w.device.handle, context = w.context.c.hContext;
	D3DKMT_HANDLE f = fence_of(&w.device, &f_value), g = fence_of(&w.device, &g_value);
	UINT64 value = 1;
	D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {.hContext = context,
							     .ObjectCount = 1,
							     .ObjectHandleArray = &f,
							     .MonitoredFenceValueArray = &value};
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {.hContext = context,
							      .ObjectCount = 1,
							      .ObjectHandleArray = &g,
							      .MonitoredFenceValueArray = &value};
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 signal2 = {.ObjectCount = 1,
								.ObjectHandleArray = &g,
								.BroadcastContextCount = 1,
								.BroadcastContextArray = &context,
								.MonitoredFenceValueArray = &value};
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU cpu = {
		.ObjectCount = 1, .ObjectHandleArray = &f, .FenceValueArray = &value};

	assert_int_equal(cb->pfnWaitForSynchronizationObjectFromGpuCb(device, &wait), S_OK);
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromGpuCb(device, &signal), S_OK);
	assert_int_equal(*g_value, 0);
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromCpuCb(device, &cpu), S_OK);
	while (*g_value != 1)
		vidmm_settle(w.client.host);
	value = 2;
	assert_int_equal(cb->pfnSignalSynchronizationObjectFromGpu2Cb(device, &signal2), S_OK);
	assert_int_equal(*g_value, 2);
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT2 second = {
		.hContext = context, .ObjectCount = 1, .ObjectHandleArray = {g}, .FenceValue = 3};
	assert_int_equal(cb->pfnSignalSynchronizationObject2Cb(device, &second), S_OK);
	assert_int_equal(*g_value, 3);
	D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT2 second_wait = {
		.hContext = context, .ObjectCount = 1, .ObjectHandleArray = {g}, .FenceValue = 3};
	assert_int_equal(cb->pfnWaitForSynchronizationObject2Cb(device, &second_wait), S_OK);
	refuse_callbacks(&w, context, g);
	assert_int_equal(*g_value, 3);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(syn_21_syn_22_syn_23_syn_24_v1_and_v2_calls_refuse_invalid_arguments),
		ON_BOTH(syn_22_syn_23_syn_31_syn_33_gpu_calls_refuse_invalid_arguments),
		ON_BOTH(sfl_15_sfl_16_nosignal_and_nowait_deny_queued_signals_and_waits),
		ON_BOTH(syn_32_v2_calls_use_one_value_for_all_fences),
		ON_BOTH(syn_25_syn_31_mfn_28_mfn_29_device_callbacks_behave_as_d3dkmt_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
