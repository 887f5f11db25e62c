/* SPDX-License-Identifier: MIT */
/*
 * Every D3DKMT call and device callback of a program is encoded as a request and decoded, and its
 * answer as well, within this process. The program is linked with --wrap for each function of the
 * table and for the door's table of callbacks. So the conformance suite detects everything that the
 * encoding loses. Client memory and function pointers pass unchanged; a host in another address
 * space must refuse them.
 */
#include <stdlib.h>
#include <string.h>

#include "support/viewer.h"
#include "doors/kmt/kmt_private.h"
#include "doors/umd/umd.h"
#include "sync/packet.h"
#include "wddm/d3dkmthk.h"
#include "wire/wire.h"
#include "wire_table.h"

typedef int32_t (*call_fn)(HANDLE device, void *argument);

#define REAL(number, function, argument)        \
	NTSTATUS __real_##function(argument *); \
	NTSTATUS __wrap_##function(argument *);
VMM_WIRE_OPERATIONS(REAL)
#undef REAL
NTSTATUS __real_D3DKMTShareObjects(UINT count, const D3DKMT_HANDLE *handles,
				   OBJECT_ATTRIBUTES *attributes, DWORD access, HANDLE *handle);
NTSTATUS __wrap_D3DKMTShareObjects(UINT count, const D3DKMT_HANDLE *handles,
				   OBJECT_ATTRIBUTES *attributes, DWORD access, HANDLE *handle);
NTSTATUS __real_D3DKMTSetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS class);
NTSTATUS __wrap_D3DKMTSetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS class);
NTSTATUS __real_D3DKMTGetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS *class);
NTSTATUS __wrap_D3DKMTGetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS *class);

/* A test that lets the n-th allocation fail means one of the library, not one of the encoding. */
static _Thread_local bool on_the_way;
void *__real_vmm_calloc(size_t count, size_t size);
void *__wrap_vmm_calloc(size_t count, size_t size);

/* Host and client are the same process here. */
bool is_out_of_process(const struct vidmm_process *process)
{
	(void)process;
	return false;
}

void *__wrap_vmm_calloc(size_t count, size_t size)
{
	return on_the_way ? calloc(count, size) : __real_vmm_calloc(count, size);
}

/* Copies a message into a block of its exact size, so that a sanitizer detects reads beyond it. */
static bool sent(const struct vmm_wire_bytes *from, struct vmm_wire_bytes *to)
{
	*to = (struct vmm_wire_bytes){
		.data = calloc(1, from->length ? from->length : 1),
		.length = from->length,
		.capacity = from->length,
	};
	if (to->data && from->length)
		memcpy(to->data, from->data, from->length);
	return to->data;
}

/* A host looks up its handle table, a client its list of handles. Here both are in one process. */
static enum vmm_wire_values values_of(void *context, uint32_t handle)
{
	struct vmm_process *process = context;

	return process ? (enum vmm_wire_values)vmm_sync_values_of(process, handle)
		       : VMM_WIRE_VALUES_NONE;
}

struct trip {
	const struct vmm_wire_operation *operation;
	struct vmm_process *process;
	HANDLE device; /* of a callback */
	call_fn call;
};

static int32_t there_and_back(const struct trip *trip, void *argument)
{
	struct vmm_wire_call client = {.values = values_of, .context = trip->process};
	struct vmm_wire_call host = client;
	const struct vmm_wire_operation *operation = trip->operation;
	struct vmm_wire_bytes bytes = {0}, answer = {0}, arrived = {0};
	on_the_way = true;
	NTSTATUS status = vmm_wire_make_request(&client, operation, argument), result = status;

	if (NT_SUCCESS(status) && !sent(&client.request, &bytes))
		status = STATUS_NO_MEMORY;
	memcpy(host.descriptors, client.descriptors, sizeof(host.descriptors));
	host.descriptor_count = client.descriptor_count;
	if (NT_SUCCESS(status))
		status = vmm_wire_read_request(&host, operation, &bytes);
	vmm_free(bytes.data);
	if (NT_SUCCESS(status)) {
		on_the_way = false;
		result = trip->call(trip->device, vmm_wire_argument(&host));
		on_the_way = true;
		status = vmm_wire_make_answer(&host, &answer);
	}
	memcpy(client.descriptors, host.descriptors, sizeof(host.descriptors));
	client.descriptor_count = host.descriptor_count;
	if (NT_SUCCESS(status) && !sent(&answer, &arrived))
		status = STATUS_NO_MEMORY;
	if (NT_SUCCESS(status))
		status = vmm_wire_read_answer(&client, arrived.data, arrived.length, argument);
	vmm_free(arrived.data);
	vmm_free(answer.data);
	vmm_wire_finish(&host);
	vmm_wire_finish(&client);
	on_the_way = false;
	return NT_SUCCESS(status) ? result : status;
}

static NTSTATUS kmt_trip(const struct vmm_wire_operation *operation, void *argument, call_fn call)
{
	const struct trip trip = {operation, vmm_kmt_process(), NULL, call};

	return there_and_back(&trip, argument);
}

#define LOOP(number, function, argument)                                              \
	static NTSTATUS do_##function(HANDLE device, void *given)                     \
	{                                                                             \
		(void)device;                                                         \
		return __real_##function(given);                                      \
	}                                                                             \
	NTSTATUS __wrap_##function(argument *given)                                   \
	{                                                                             \
		return kmt_trip(vmm_wire_operation(number), (void *)(uintptr_t)given, \
				do_##function);                                       \
	}
VMM_WIRE_OPERATIONS(LOOP)

static NTSTATUS do_share(HANDLE device, void *given)
{
	D3DKMT_SHAREOBJECTS *args = given;

	(void)device;
	return __real_D3DKMTShareObjects(args->ObjectCount, args->ObjectHandleArray,
					 args->pObjectAttributes, args->DesiredAccess,
					 args->pSharedNtHandle);
}

NTSTATUS __wrap_D3DKMTShareObjects(UINT count, const D3DKMT_HANDLE *handles,
				   OBJECT_ATTRIBUTES *attributes, DWORD access, HANDLE *handle)
{
	D3DKMT_SHAREOBJECTS args;

	memset(&args, 0, sizeof(args));
	args.ObjectCount = count;
	args.ObjectHandleArray = handles;
	args.pObjectAttributes = attributes;
	args.DesiredAccess = access;
	args.pSharedNtHandle = handle;
	return kmt_trip(vmm_wire_operation_named("D3DKMTShareObjects"), &args, do_share);
}

static NTSTATUS do_set_class(HANDLE device, void *given)
{
	struct vmm_wire_priority_class *args = given;

	(void)device;
	return __real_D3DKMTSetProcessSchedulingPriorityClass(
		args->process, (D3DKMT_SCHEDULINGPRIORITYCLASS)args->priority_class);
}

NTSTATUS __wrap_D3DKMTSetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS class)
{
	struct vmm_wire_priority_class args = {process, (uint32_t) class};

	return kmt_trip(vmm_wire_operation_named("D3DKMTSetProcessSchedulingPriorityClass"), &args,
			do_set_class);
}

static NTSTATUS do_get_class(HANDLE device, void *given)
{
	struct vmm_wire_priority_class *args = given;
	D3DKMT_SCHEDULINGPRIORITYCLASS class = (D3DKMT_SCHEDULINGPRIORITYCLASS)args->priority_class;
	(void)device;
	NTSTATUS status = __real_D3DKMTGetProcessSchedulingPriorityClass(args->process, &class);

	args->priority_class = (uint32_t) class;
	return status;
}

NTSTATUS __wrap_D3DKMTGetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS *class)
{
	if (!class)
		return __real_D3DKMTGetProcessSchedulingPriorityClass(process, class);
	struct vmm_wire_priority_class args = {process, (uint32_t) * class};
	NTSTATUS status =
		kmt_trip(vmm_wire_operation_named("D3DKMTGetProcessSchedulingPriorityClass"), &args,
			 do_get_class);

	*class = (D3DKMT_SCHEDULINGPRIORITYCLASS)args.priority_class;
	return status;
}

/* ---- the device callbacks ---- */

const D3DDDI_DEVICECALLBACKS *__real_vmm_umd_callbacks(void);
const D3DDDI_DEVICECALLBACKS *__wrap_vmm_umd_callbacks(void);

/* An invalid handle, or one on which the call is impossible, is reported by the call itself. */
static int32_t callback_trip(const struct vmm_wire_operation *operation, HANDLE handle,
			     void *argument, call_fn call)
{
	struct vmm_hazard_guard visit;
	struct vmm_device *device = vmm_hazard_enter(&visit, VMM_HAZARD_DEVICE, handle);
	const struct trip trip = {operation, device ? device->process : NULL, handle, call};

	if (device)
		vmm_hazard_leave(&visit);
	return there_and_back(&trip, argument);
}

#define LOOP_CALLBACK(number, member, argument)                                                    \
	static int32_t do_##member(HANDLE device, void *given)                                     \
	{                                                                                          \
		return __real_vmm_umd_callbacks()->member(device, given);                          \
	}                                                                                          \
	static HRESULT APIENTRY loop_##member(HANDLE device, argument *given)                      \
	{                                                                                          \
		return callback_trip(vmm_wire_operation(number), device, (void *)(uintptr_t)given, \
				     do_##member);                                                 \
	}
VMM_WIRE_CALLBACKS(LOOP_CALLBACK)

const D3DDDI_DEVICECALLBACKS *__wrap_vmm_umd_callbacks(void)
{
	static D3DDDI_DEVICECALLBACKS table;

	table = *__real_vmm_umd_callbacks();
#define FILL(number, member, argument) table.member = loop_##member;
	VMM_WIRE_CALLBACKS(FILL)
	return &table;
}
