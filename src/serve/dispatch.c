/* SPDX-License-Identifier: MIT */
/* Maps an operation of the wire to the function that executes it. */
#include "serve/serve_private.h"

#include "wire_table.h"

#define CALL(number, function, type)                                                        \
	static int32_t do_##function(struct vmm_session *session, void *device, void *args) \
	{                                                                                   \
		(void)session;                                                              \
		(void)device;                                                               \
		return function((type *)args);                                              \
	}
VMM_WIRE_OPERATIONS(CALL)
#undef CALL

#define CALL(number, member, type)                                                        \
	static int32_t do_##member(struct vmm_session *session, void *device, void *args) \
	{                                                                                 \
		(void)session;                                                            \
		return vmm_umd_callbacks()->member(device, (type *)args);                 \
	}
VMM_WIRE_CALLBACKS(CALL)
#undef CALL

/* Callbacks that are not built: they report that and do not read the argument. */
#define CALL(number, member, type)                                                        \
	static int32_t do_##member(struct vmm_session *session, void *device, void *args) \
	{                                                                                 \
		(void)session;                                                            \
		(void)args;                                                               \
		return vmm_umd_callbacks()->member(device, (type)0);                      \
	}
VMM_WIRE_UNBUILT(CALL)
#undef CALL

#define CALL(number, name, type)                                                               \
	static int32_t do_##name(struct vmm_session *session, void *device, void *args)        \
	{                                                                                      \
		(void)device;                                                                  \
		return args ? vmm_serve_##name(session, (type *)args) : VMM_INVALID_PARAMETER; \
	}
VMM_WIRE_RUNTIME(CALL)
#undef CALL

/* ---- functions that take their arguments one by one ---- */

static int32_t do_D3DKMTShareObjects(struct vmm_session *session, void *device, void *given)
{
	const D3DKMT_SHAREOBJECTS *args = given;

	(void)session;
	(void)device;
	if (!args)
		return VMM_INVALID_PARAMETER;
	return D3DKMTShareObjects(args->ObjectCount, args->ObjectHandleArray,
				  args->pObjectAttributes, args->DesiredAccess,
				  args->pSharedNtHandle);
}

static int32_t do_D3DKMTSetProcessSchedulingPriorityClass(struct vmm_session *session, void *device,
							  void *given)
{
	const struct vmm_wire_priority_class *args = given;

	(void)session;
	(void)device;
	if (!args)
		return VMM_INVALID_PARAMETER;
	return D3DKMTSetProcessSchedulingPriorityClass(
		args->process, (D3DKMT_SCHEDULINGPRIORITYCLASS)args->priority_class);
}

static int32_t do_D3DKMTGetProcessSchedulingPriorityClass(struct vmm_session *session, void *device,
							  void *given)
{
	struct vmm_wire_priority_class *args = given;
	D3DKMT_SCHEDULINGPRIORITYCLASS value = D3DKMT_SCHEDULINGPRIORITYCLASS_NORMAL;

	(void)session;
	(void)device;
	if (!args)
		return VMM_INVALID_PARAMETER;
	value = (D3DKMT_SCHEDULINGPRIORITYCLASS)args->priority_class;
	int32_t status = D3DKMTGetProcessSchedulingPriorityClass(args->process, &value);

	args->priority_class = (uint32_t)value;
	return status;
}

/* ---- functions that take a function of the client ---- */

static int32_t register_trim(struct vmm_session *session, void *device, void *args)
{
	(void)device;
	return args ? vmm_serve_register_trim(session, args)
		    : do_D3DKMTRegisterTrimNotification(session, NULL, NULL);
}

static int32_t unregister_trim(struct vmm_session *session, void *device, void *args)
{
	(void)device;
	return args ? vmm_serve_unregister_trim(session, args)
		    : do_D3DKMTUnregisterTrimNotification(session, NULL, NULL);
}

vmm_serve_fn *vmm_serve_function(const struct vmm_wire_operation *operation, bool *foreign)
{
#define ROW(number, function, type) [(number) % 1000] = do_##function,
	static vmm_serve_fn *const functions[] = {VMM_WIRE_OPERATIONS(ROW) VMM_WIRE_CARRIED(ROW)};
	static vmm_serve_fn *const callbacks[] = {VMM_WIRE_CALLBACKS(ROW) VMM_WIRE_UNBUILT(ROW)};
	static vmm_serve_fn *const runtime[] = {VMM_WIRE_RUNTIME(ROW)};
#undef ROW
	uint32_t number = operation->number;
	vmm_serve_fn *function = number > 2000   ? runtime[number - 2000]
				 : number > 1000 ? callbacks[number - 1000]
						 : functions[number];

	*foreign = true;
	if (function == do_D3DKMTRegisterTrimNotification)
		return register_trim;
	if (function == do_D3DKMTUnregisterTrimNotification)
		return unregister_trim;
	/*
	 * The core asks the client for an allocation's existing system memory (memory: existing.c).
	 */
	*foreign = function == do_device_set_trim || function == do_pfnAllocateCb ||
		   function == do_D3DKMTCreateAllocation || function == do_D3DKMTCreateAllocation2;
	return function;
}
