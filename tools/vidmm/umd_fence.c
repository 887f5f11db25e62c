/* SPDX-License-Identifier: MIT */
/*
 * Monitored fences. The memory manager of WDDM 2.x orders nothing, so the driver does: a context
 * waits on the GPU for other contexts of its process, and the CPU waits for the work of other
 * processes, whose fences this process cannot name.
 */
#include "umd_wddm2.h"

enum replay_status umd_fence_create(struct umd *umd, struct umd_context *context)
{
	D3DDDICB_CREATESYNCHRONIZATIONOBJECT2 create = {.Info.Type = D3DDDI_MONITORED_FENCE};
	HRESULT hr = umd->callbacks->pfnCreateSynchronizationObject2Cb(umd->handle, &create);

	if (FAILED(hr))
		return umd_failed(umd, "pfnCreateSynchronizationObject2Cb", NULL, hr);
	context->fence = create.hSyncObject;
	context->fence_word = create.Info.MonitoredFence.FenceValueCPUVirtualAddress;
	context->fence_address = create.Info.MonitoredFence.FenceValueGPUVirtualAddress;
	return REPLAY_CLEAN;
}

bool umd_use_is_done(const struct umd_use *use)
{
	const struct umd_context *context = use->context;

	return !context || context->ended ||
	       __atomic_load_n(context->fence_word, __ATOMIC_ACQUIRE) >= use->value;
}

HRESULT umd_use_wait(struct umd *umd, const struct umd_use *use)
{
	struct world *world = umd->world;
	struct umd *other = use->context->umd;
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMCPU wait = {
		.ObjectCount = 1,
		.ObjectHandleArray = &use->context->fence,
		.FenceValueArray = &use->value,
	};
	uint64_t began_ns = world->ops->now_ns(world);
	HRESULT hr =
		other->callbacks->pfnWaitForSynchronizationObjectFromCpuCb(other->handle, &wait);

	world->result->driver.waits++;
	world->result->driver.wait_ns += world->ops->now_ns(world) - began_ns;
	return hr;
}

static enum replay_status wait_on_gpu(struct umd *umd, const struct umd_context *context,
				      D3DKMT_HANDLE fence, uint64_t value)
{
	const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU wait = {
		.hContext = context->handle,
		.ObjectCount = 1,
		.ObjectHandleArray = &fence,
		.MonitoredFenceValueArray = &value,
	};
	HRESULT hr = umd->callbacks->pfnWaitForSynchronizationObjectFromGpuCb(umd->handle, &wait);

	return FAILED(hr) ? umd_failed(umd, "pfnWaitForSynchronizationObjectFromGpuCb", NULL, hr)
			  : REPLAY_CLEAN;
}

static enum replay_status wait_for_paging(struct umd *umd, struct umd_context *context)
{
	struct umd_wddm2 *wddm2 = umd->wddm2;
	const uint64_t *word = wddm2->queue.FenceValueCPUVirtualAddress;

	if (context->paging_waited >= wddm2->paging_value ||
	    __atomic_load_n(word, __ATOMIC_ACQUIRE) >= wddm2->paging_value)
		return REPLAY_CLEAN;
	context->paging_waited = wddm2->paging_value;
	return wait_on_gpu(umd, context, wddm2->queue.hSyncObject, wddm2->paging_value);
}

/* Notes the largest value of each context of this process in context->wanted. */
static enum replay_status collect(struct umd *umd, const struct umd_context *context,
				  const struct umd_use *use)
{
	HRESULT hr;

	if (use->context == context || umd_use_is_done(use))
		return REPLAY_CLEAN;
	if (use->context->umd == umd) {
		if (use->value > use->context->wanted)
			use->context->wanted = use->value;
		return REPLAY_CLEAN;
	}
	hr = umd_use_wait(umd, use);
	return FAILED(hr) ? umd_failed(umd, "pfnWaitForSynchronizationObjectFromCpuCb", NULL, hr)
			  : REPLAY_CLEAN;
}

enum replay_status umd_wait_before(struct umd *umd, struct umd_context *context,
				   const struct umd_slot *slots, uint32_t count)
{
	enum replay_status status = wait_for_paging(umd, context);
	uint32_t i;

	/* The uses of an allocation are a chain: each waits for the one before it. */
	for (i = 0; i < count && status == REPLAY_CLEAN; i++)
		status = collect(umd, context, &slots[i].memory->uses->last);
	for (i = 0; i < umd->context_count && status == REPLAY_CLEAN; i++) {
		struct umd_context *other = umd->contexts[i];

		if (other->wanted)
			status = wait_on_gpu(umd, context, other->fence, other->wanted);
		other->wanted = 0;
	}
	return status;
}
