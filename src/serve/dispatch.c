/* SPDX-License-Identifier: MIT */
/* Which function an operation of the wire is. */
#include "serve/serve_private.h"

#include <d3dkmthk.h>
#include "wire_table.h"

#define CALL(number, function, type)             \
	static int32_t do_##function(void *args) \
	{                                        \
		return function((type *)args);   \
	}
VMM_WIRE_OPERATIONS(CALL)
#undef CALL

/* Those that take their values one by one. */

static int32_t do_D3DKMTShareObjects(void *given)
{
	const D3DKMT_SHAREOBJECTS *args = given;

	return D3DKMTShareObjects(args->ObjectCount, args->ObjectHandleArray,
				  args->pObjectAttributes, args->DesiredAccess,
				  args->pSharedNtHandle);
}

static int32_t do_D3DKMTSetProcessSchedulingPriorityClass(void *given)
{
	const struct vmm_wire_priority_class *args = given;

	return D3DKMTSetProcessSchedulingPriorityClass(
		args->process, (D3DKMT_SCHEDULINGPRIORITYCLASS)args->priority_class);
}

static int32_t do_D3DKMTGetProcessSchedulingPriorityClass(void *given)
{
	struct vmm_wire_priority_class *args = given;
	D3DKMT_SCHEDULINGPRIORITYCLASS value = (D3DKMT_SCHEDULINGPRIORITYCLASS)args->priority_class;
	int32_t status = D3DKMTGetProcessSchedulingPriorityClass(args->process, &value);

	args->priority_class = (uint32_t)value;
	return status;
}

vmm_serve_fn *vmm_serve_function(uint32_t operation)
{
#define ROW(number, function, type) [number] = do_##function,
	static vmm_serve_fn *const functions[] = {VMM_WIRE_OPERATIONS(ROW) VMM_WIRE_CARRIED(ROW)};
#undef ROW

	return operation < VMM_ARRAY_LENGTH(functions) ? functions[operation] : NULL;
}
