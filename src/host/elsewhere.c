/* SPDX-License-Identifier: MIT */
/*
 * The D3DKMT functions as programs link them: here, or in another program. Who never connects pays one load and a branch for that.
 *
 * Where a call goes: to the connection or process that its thread entered; else to what the program attached last; else to the host
 * that VIDMM_SOCKET names, which is connected to by the first call that gets there.
 */
#include <stdlib.h>

#include <vidmm/client.h>
#include <d3dkmthk.h>
#include "client/client.h"
#include "doors/kmt/attach.h"
#include "host/elsewhere.h"
#include "wire_table.h"

#define EXPORT __attribute__((visibility("default")))

/* Of the same functions in this process: src/doors/kmt. */
#define HERE(number, function, argument) NTSTATUS APIENTRY vmm_here_##function(argument *args);
VMM_WIRE_OPERATIONS(HERE)
#undef HERE
NTSTATUS APIENTRY vmm_here_D3DKMTShareObjects(UINT count, const D3DKMT_HANDLE *handles,
					      OBJECT_ATTRIBUTES *attributes, DWORD access,
					      HANDLE *handle);
NTSTATUS APIENTRY vmm_here_D3DKMTSetProcessSchedulingPriorityClass(
	HANDLE process, D3DKMT_SCHEDULINGPRIORITYCLASS value);
NTSTATUS APIENTRY vmm_here_D3DKMTGetProcessSchedulingPriorityClass(
	HANDLE process, D3DKMT_SCHEDULINGPRIORITYCLASS *value);

/* ---- where ---- */

static _Atomic bool maybe;         /* some call may go elsewhere */
static _Atomic bool attached_here; /* a process is, or was: the environment has no say any more */
static _Thread_local struct vidmm_connection *entered;
static _Thread_local bool entered_here;

static _Atomic bool named; /* by VIDMM_SOCKET */

__attribute__((constructor)) static void look_at_environment(void)
{
	if (!secure_getenv("VIDMM_SOCKET"))
		return;
	atomic_store(&named, true);
	atomic_store(&maybe, true);
}

void vmm_elsewhere_attach_here(void)
{
	atomic_store(&attached_here, true);
	atomic_store(&vmm_client_attached, NULL);
}

void vidmm_connection_attach(struct vidmm_connection *connection)
{
	if (!connection) {
		vmm_elsewhere_attach_here();
		vmm_kmt_attach(NULL);
		return;
	}
	atomic_store(&vmm_client_attached, connection);
	atomic_store(&maybe, true);
}

void vmm_elsewhere_enter_here(bool process)
{
	entered = NULL;
	entered_here = process;
}

struct vidmm_connection *vidmm_connection_enter(struct vidmm_connection *connection)
{
	struct vidmm_connection *before = entered;

	(void)vmm_kmt_enter(NULL);
	entered = connection;
	entered_here = false;
	if (connection)
		atomic_store(&maybe, true);
	return before;
}

/* False: the call is one of this process. Otherwise *status is what it gave. */
VMM_NOINLINE static bool goes_elsewhere(uint32_t number, void *args, NTSTATUS *status)
{
	struct vidmm_connection *connection = entered;

	*status = STATUS_SUCCESS;
	if (!connection && !entered_here) {
		connection = atomic_load(&vmm_client_attached);
		if (!connection && atomic_load(&named) && !atomic_load(&attached_here))
			*status = vmm_client_attach_named(&connection);
	}
	if (!NT_SUCCESS(*status))
		return true;
	if (!connection)
		return false;
	*status = vmm_client_d3dkmt(connection, number, args);
	return true;
}

static inline bool may_go_elsewhere(void)
{
	return vmm_unlikely(atomic_load_explicit(&maybe, memory_order_relaxed));
}

/* ---- the functions ---- */

#define FUNCTION(number, function, argument)                                  \
	EXPORT NTSTATUS APIENTRY function(argument *args)                     \
	{                                                                     \
		NTSTATUS status;                                              \
                                                                              \
		if (may_go_elsewhere() &&                                     \
		    goes_elsewhere(number, (void *)(uintptr_t)args, &status)) \
			return status;                                        \
		return vmm_here_##function(args);                             \
	}
VMM_WIRE_OPERATIONS(FUNCTION)

EXPORT NTSTATUS APIENTRY D3DKMTShareObjects(UINT count, const D3DKMT_HANDLE *handles,
					    OBJECT_ATTRIBUTES *attributes, DWORD access,
					    HANDLE *handle)
{
	D3DKMT_SHAREOBJECTS args = {.ObjectCount = count};
	NTSTATUS status;

	args.ObjectHandleArray = handles;
	args.pObjectAttributes = attributes;
	args.DesiredAccess = access;
	args.pSharedNtHandle = handle;
	if (may_go_elsewhere() && goes_elsewhere(VMM_WIRE_D3DKMTShareObjects, &args, &status))
		return status;
	return vmm_here_D3DKMTShareObjects(count, handles, attributes, access, handle);
}

EXPORT NTSTATUS APIENTRY
D3DKMTSetProcessSchedulingPriorityClass(HANDLE process, D3DKMT_SCHEDULINGPRIORITYCLASS value)
{
	struct vmm_wire_priority_class args = {process, (uint32_t)value};
	NTSTATUS status;

	if (may_go_elsewhere() &&
	    goes_elsewhere(VMM_WIRE_D3DKMTSetProcessSchedulingPriorityClass, &args, &status))
		return status;
	return vmm_here_D3DKMTSetProcessSchedulingPriorityClass(process, value);
}

EXPORT NTSTATUS APIENTRY
D3DKMTGetProcessSchedulingPriorityClass(HANDLE process, D3DKMT_SCHEDULINGPRIORITYCLASS *value)
{
	struct vmm_wire_priority_class args = {process, value ? (uint32_t)*value : 0};
	NTSTATUS status;

	/* Of a request without an argument the host says what this function says of NULL. */
	if (!may_go_elsewhere() || !goes_elsewhere(VMM_WIRE_D3DKMTGetProcessSchedulingPriorityClass,
						   value ? &args : NULL, &status))
		return vmm_here_D3DKMTGetProcessSchedulingPriorityClass(process, value);
	if (value)
		*value = (D3DKMT_SCHEDULINGPRIORITYCLASS)args.priority_class;
	return status;
}
