/* SPDX-License-Identifier: MIT */
/*
 * The D3DKMT functions as programs link them. Each call is executed in this process or sent to a
 * host in another one. A program that never connects pays one load and one branch for that.
 *
 * The route of a call: the connection or process that its thread entered; else what the program
 * attached last; else the host that VIDMM_SOCKET names. The first call that takes the last route
 * connects.
 */
#include <stdlib.h>

#include <vidmm/client.h>
#include <d3dkmthk.h>
#include "client/client.h"
#include "doors/kmt/attach.h"
#include "host/kmt_route.h"
#include "wire_table.h"

#define EXPORT __attribute__((visibility("default")))

/* Declares the functions that execute in this process (src/doors/kmt). */
#define DECLARE_LOCAL(number, function, argument) \
	NTSTATUS APIENTRY vmm_local_##function(argument *args);
VMM_WIRE_OPERATIONS(DECLARE_LOCAL)
#undef DECLARE_LOCAL
NTSTATUS APIENTRY vmm_local_D3DKMTShareObjects(UINT count, const D3DKMT_HANDLE *handles,
					       OBJECT_ATTRIBUTES *attributes, DWORD access,
					       HANDLE *handle);
NTSTATUS APIENTRY vmm_local_D3DKMTSetProcessSchedulingPriorityClass(
	HANDLE process, D3DKMT_SCHEDULINGPRIORITYCLASS value);
NTSTATUS APIENTRY vmm_local_D3DKMTGetProcessSchedulingPriorityClass(
	HANDLE process, D3DKMT_SCHEDULINGPRIORITYCLASS *value);

/* ---- the route ---- */

static _Atomic bool remote_possible; /* some call may be sent to another process */
/* a process of this program is or was attached: VIDMM_SOCKET is ignored from then on */
static _Atomic bool attached_local;
static _Thread_local struct vidmm_connection *entered;
static _Thread_local bool entered_local;

static _Atomic bool host_named; /* VIDMM_SOCKET names a host */

__attribute__((constructor)) static void read_environment(void)
{
	if (!secure_getenv("VIDMM_SOCKET"))
		return;
	atomic_store(&host_named, true);
	atomic_store(&remote_possible, true);
}

void vmm_kmt_route_attach_here(void)
{
	atomic_store(&attached_local, true);
	atomic_store(&vmm_client_attached, NULL);
}

void vidmm_connection_attach(struct vidmm_connection *connection)
{
	if (!connection) {
		vmm_kmt_route_attach_here();
		vmm_kmt_attach(NULL);
		return;
	}
	atomic_store(&vmm_client_attached, connection);
	atomic_store(&remote_possible, true);
}

void vmm_kmt_route_enter_here(bool process)
{
	entered = NULL;
	entered_local = process;
}

struct vidmm_connection *vidmm_connection_enter(struct vidmm_connection *connection)
{
	struct vidmm_connection *before = entered;

	(void)vmm_kmt_enter(NULL);
	entered = connection;
	entered_local = false;
	if (connection)
		atomic_store(&remote_possible, true);
	return before;
}

/*
 * Sends the call to the connected host, if that is its route; *status is then its result. Returns
 * false if the call is to be executed in this process.
 */
VMM_NOINLINE static bool sent_to_host(uint32_t number, void *args, NTSTATUS *status)
{
	struct vidmm_connection *connection = entered;

	*status = STATUS_SUCCESS;
	if (!connection && !entered_local) {
		connection = atomic_load(&vmm_client_attached);
		if (!connection && atomic_load(&host_named) && !atomic_load(&attached_local))
			*status = vmm_client_attach_named(&connection);
	}
	if (!NT_SUCCESS(*status))
		return true;
	if (!connection)
		return false;
	*status = vmm_client_d3dkmt(connection, number, args);
	return true;
}

static inline bool may_be_remote(void)
{
	return vmm_unlikely(atomic_load_explicit(&remote_possible, memory_order_relaxed));
}

/* ---- the exported functions ---- */

#define FUNCTION(number, function, argument)                                                   \
	EXPORT NTSTATUS APIENTRY function(argument *args)                                      \
	{                                                                                      \
		NTSTATUS status;                                                               \
                                                                                               \
		if (may_be_remote() && sent_to_host(number, (void *)(uintptr_t)args, &status)) \
			return status;                                                         \
		return vmm_local_##function(args);                                             \
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
	if (may_be_remote() && sent_to_host(VMM_WIRE_D3DKMTShareObjects, &args, &status))
		return status;
	return vmm_local_D3DKMTShareObjects(count, handles, attributes, access, handle);
}

EXPORT NTSTATUS APIENTRY
D3DKMTSetProcessSchedulingPriorityClass(HANDLE process, D3DKMT_SCHEDULINGPRIORITYCLASS value)
{
	struct vmm_wire_priority_class args = {process, (uint32_t)value};
	NTSTATUS status;

	if (may_be_remote() &&
	    sent_to_host(VMM_WIRE_D3DKMTSetProcessSchedulingPriorityClass, &args, &status))
		return status;
	return vmm_local_D3DKMTSetProcessSchedulingPriorityClass(process, value);
}

EXPORT NTSTATUS APIENTRY
D3DKMTGetProcessSchedulingPriorityClass(HANDLE process, D3DKMT_SCHEDULINGPRIORITYCLASS *value)
{
	struct vmm_wire_priority_class args = {process, value ? (uint32_t)*value : 0};
	NTSTATUS status;

	/*
	 * For NULL the request has no argument, and the host returns the same status as this
	 * function does.
	 */
	if (!may_be_remote() || !sent_to_host(VMM_WIRE_D3DKMTGetProcessSchedulingPriorityClass,
					      value ? &args : NULL, &status))
		return vmm_local_D3DKMTGetProcessSchedulingPriorityClass(process, value);
	if (value)
		*value = (D3DKMT_SCHEDULINGPRIORITYCLASS)args.priority_class;
	return status;
}
