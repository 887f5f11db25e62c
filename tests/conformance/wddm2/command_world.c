/* SPDX-License-Identifier: MIT */
#include "command_world.h"

#include <string.h>

void stage_fill(struct stage *s, uint64_t to, uint32_t value)
{
	D3DDDICB_LOCK2 lock = {.hAllocation = s->commands};
	const D3DDDICB_UNLOCK2 unlock = {.hAllocation = s->commands};
	const struct scripted_command command = {.op = SCRIPTED_WRITE,
						 .size_bytes = sizeof(command),
						 .value = value,
						 .destination.address = to};

	assert_int_equal(s->v.w.device.cb->pfnLock2Cb(s->v.w.device.handle, &lock), S_OK);
	memcpy(lock.pData, &command, sizeof(command));
	assert_int_equal(s->v.w.device.cb->pfnUnlock2Cb(s->v.w.device.handle, &unlock), S_OK);
}

HRESULT stage_try_context(struct stage *s, HANDLE *context)
{
	D3DDDICB_CREATECONTEXTVIRTUAL args = {0};
	HRESULT result = s->v.w.device.cb->pfnCreateContextVirtualCb(s->v.w.device.handle, &args);

	*context = args.hContext;
	return result;
}

HANDLE stage_context_on(struct stage *s, UINT node)
{
	D3DDDICB_CREATECONTEXTVIRTUAL args = {.NodeOrdinal = node};

	assert_int_equal(s->v.w.device.cb->pfnCreateContextVirtualCb(s->v.w.device.handle, &args),
			 S_OK);
	return args.hContext;
}

void stage_destroy_context(struct stage *s, HANDLE context)
{
	const D3DDDICB_DESTROYCONTEXT args = {context};

	assert_int_equal(s->v.w.device.cb->pfnDestroyContextCb(s->v.w.device.handle, &args), S_OK);
}

void stage_begin(struct stage *s, void **state, world_setup *setup)
{
	va_begin(&s->v, state, setup);
	assert_int_equal(stage_try_context(s, &s->context), S_OK);
	s->commands = va_allocate(&s->v, 64 * KIB, WORLD_APERTURE);
	s->target = va_allocate(&s->v, 64 * KIB, WORLD_MEMORY | WORLD_APERTURE);
	s->commands_at = va_map(&s->v, s->commands, 64 * KIB);
	s->target_at = va_map(&s->v, s->target, 64 * KIB);
	va_make(&s->v, s->commands);
	va_make(&s->v, s->target);
	stage_fill(s, s->target_at + 64, 0x600D);
}

D3DDDICB_SUBMITCOMMAND stage_command(const struct stage *s)
{
	return (D3DDDICB_SUBMITCOMMAND){.Commands = s->commands_at,
					.CommandLength = sizeof(struct scripted_command),
					.BroadcastContextCount = 1,
					.BroadcastContext = {s->context}};
}

HRESULT stage_submit(struct stage *s, const D3DDDICB_SUBMITCOMMAND *args)
{
	return s->v.w.device.cb->pfnSubmitCommandCb(s->v.w.device.handle, args);
}

void stage_finish(struct stage *s)
{
	stage_destroy_context(s, s->context);
	va_finish(&s->v);
}
