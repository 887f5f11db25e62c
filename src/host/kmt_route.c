/* SPDX-License-Identifier: MIT */
/*
 * The D3DKMT functions as programs link them. Each call is executed in this process or sent to a
 * host in another one. A program that never connects pays one load and one branch for that.
 *
 * The route of a call, in this order:
 *   the connection or process that its thread entered;
 *   what the program attached last;
 *   the host that VIDMM_SOCKET names, to which the first such call connects;
 *   the adapter that VIDMM_ADAPTER names, which the first such call starts (src/program);
 *   the host at the default path of the socket, in a program that has neither created a host nor
 *   selected a connection.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <vidmm/client.h>
#include <d3dkmthk.h>
#include "client/client.h"
#include "object/attach.h"
#include "host/kmt_route.h"
#include "object/object.h"
#include "report/report.h"
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

/* What a call has to look at before it is executed in this process. 0: nothing. */
enum {
	ROUTE_CONNECTED = 1, /* a connection was attached or entered */
	ROUTE_NAMED = 2,     /* VIDMM_SOCKET names a host */
	ROUTE_PROVIDED = 4,  /* VIDMM_ADAPTER names an adapter */
	ROUTE_DEFAULT = 8,   /* no code of the program chose a host: the default path is tried */
	ROUTE_OBSERVED = 16  /* calls are counted in a report */
};
static _Atomic uint32_t routes;
static _Thread_local struct vidmm_connection *entered;
static _Thread_local bool entered_local;

static _Atomic(const struct vmm_kmt_provider *) provider;
static struct vmm_report *report; /* constant after the constructor */
static _Atomic uint32_t inside;   /* threads inside calls, if ROUTE_OBSERVED */

static void open_report(void)
{
	const char *path = secure_getenv(VMM_REPORT_VARIABLE);

	report = path ? vmm_report_attach(path) : NULL;
	if (!report)
		return;
	atomic_fetch_add(&report->loaded, 1);
	atomic_fetch_or(&routes, ROUTE_OBSERVED);
}

__attribute__((constructor)) static void read_environment(void)
{
	atomic_fetch_or(&routes, secure_getenv("VIDMM_SOCKET") ? ROUTE_NAMED : ROUTE_DEFAULT);
	open_report();
}

void vmm_kmt_route_provide(const struct vmm_kmt_provider *given)
{
	atomic_store(&provider, given);
	atomic_fetch_or(&routes, ROUTE_PROVIDED);
}

struct vmm_report *vmm_kmt_route_report(void)
{
	return report;
}

bool vmm_kmt_route_idle(void)
{
	return report && atomic_load(&inside) == 0;
}

void vmm_kmt_route_complain(vmm_status status, const char *text)
{
	static _Atomic bool printed;

	if (report)
		vmm_report_text(report, VIDMM_EVENT_REASON, (uint32_t)status, text);
	if (!atomic_exchange(&printed, true))
		fprintf(stderr, "vidmm: %s (status 0x%08x)\n", text, (unsigned)status);
}

void vmm_kmt_route_host_here(void)
{
	atomic_fetch_and(&routes, ~(uint32_t)ROUTE_DEFAULT);
}

void vmm_kmt_route_attach_here(void)
{
	atomic_fetch_and(&routes, ~(uint32_t)(ROUTE_NAMED | ROUTE_PROVIDED | ROUTE_DEFAULT));
	atomic_store(&vmm_client_attached, NULL);
}

void vidmm_connection_attach(struct vidmm_connection *connection)
{
	if (!connection) {
		vmm_kmt_route_attach_here();
		vmm_kmt_attach(NULL);
		return;
	}
	vmm_kmt_route_host_here();
	atomic_store(&vmm_client_attached, connection);
	atomic_fetch_or(&routes, ROUTE_CONNECTED);
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
	if (connection) {
		vmm_kmt_route_host_here();
		atomic_fetch_or(&routes, ROUTE_CONNECTED);
	}
	return before;
}

/* Names the connection in the report: the host counts its memory by the number of its process. */
static void connected(const struct vidmm_connection *connection)
{
	if (report)
		vmm_report_process(report, 0, vidmm_connection_process_id(connection),
				   program_invocation_short_name);
}

/* Connects to the host at the path of VIDMM_SOCKET, or at the default path. */
static vmm_status connect_to_host(uint32_t route, struct vidmm_connection **connection)
{
	const char *named = secure_getenv("VIDMM_SOCKET"),
		   *folder = secure_getenv("XDG_RUNTIME_DIR");
	char text[512];
	vmm_status status = vmm_client_attach_named(connection);

	if (vmm_ok(status)) {
		connected(*connection);
		return status;
	}
	if (route & ROUTE_NAMED)
		snprintf(text, sizeof(text),
			 "no host can be reached at VIDMM_SOCKET=%.256s: start it with `vidmm "
			 "serve` (Q-170)",
			 named ? named : "");
	else
		snprintf(text, sizeof(text),
			 "there is no adapter: neither VIDMM_SOCKET nor VIDMM_ADAPTER is set, and "
			 "no host can be reached at %.256s/vidmm/socket: start the program with "
			 "`vidmm run -- PROGRAM`, or `vidmm serve` before it (Q-171)",
			 folder ? folder : "$XDG_RUNTIME_DIR");
	vmm_kmt_route_complain(route & ROUTE_NAMED ? status : VMM_UNSUCCESSFUL, text);
	return status;
}

/*
 * Finds the route of a call that neither its thread nor the program has selected. *connection is
 * NULL if the call is to be executed in this process. Returns why it cannot be executed.
 */
static vmm_status find_route(struct vidmm_connection **connection)
{
	uint32_t route = atomic_load(&routes);

	*connection = atomic_load(&vmm_client_attached);
	if (*connection || entered_local)
		return VMM_OK;
	if (route & ROUTE_NAMED)
		return connect_to_host(route, connection);
	if (route & ROUTE_PROVIDED)
		return atomic_load(&provider)->attach();
	/* With no host there, the functions of this process say that none is attached. */
	if ((route & ROUTE_DEFAULT) && !vmm_ok(connect_to_host(route, connection)))
		*connection = NULL;
	return VMM_OK;
}

/*
 * Sends the call to the connected host, if that is its route; *status is then its result. Returns
 * false if the call is to be executed in this process.
 */
VMM_NOINLINE static bool sent_to_host(uint32_t number, void *args, NTSTATUS *status)
{
	struct vidmm_connection *connection = entered;

	if (report)
		atomic_fetch_add(&inside, 1);
	*status = connection || entered_local ? VMM_OK : find_route(&connection);
	if (!NT_SUCCESS(*status))
		return true;
	if (!connection)
		return false;
	*status = vmm_client_d3dkmt(connection, number, args);
	return true;
}

/* The connection to which a call of this thread is sent; does not connect. */
static struct vidmm_connection *present_connection(void)
{
	return entered_local ? NULL : entered ? entered : atomic_load(&vmm_client_attached);
}

struct vmm_process *vmm_kmt_route_process(void)
{
	return present_connection() ? NULL : vmm_kmt_process();
}

const void *vmm_kmt_route_system(void)
{
	const struct vidmm_connection *connection = present_connection();
	const struct vmm_process *process = vmm_kmt_route_process();

	return connection ? (const void *)connection : process ? process->world : NULL;
}

/* Ends a call that sent_to_host began. */
VMM_NOINLINE static NTSTATUS call_ended(uint32_t number, NTSTATUS status)
{
	const struct vmm_kmt_provider *known;

	if (!report)
		return status;
	known = atomic_load(&provider);
	vmm_report_call(report, number, status);
	if (known)
		known->ended();
	atomic_fetch_sub(&inside, 1);
	return status;
}

static inline bool is_routed(void)
{
	return vmm_unlikely(atomic_load_explicit(&routes, memory_order_relaxed));
}

/* ---- the exported functions ---- */

#define FUNCTION(number, function, argument)                                 \
	EXPORT NTSTATUS APIENTRY function(argument *args)                    \
	{                                                                    \
		NTSTATUS status;                                             \
                                                                             \
		if (!is_routed())                                            \
			return vmm_local_##function(args);                   \
		if (!sent_to_host(number, (void *)(uintptr_t)args, &status)) \
			status = vmm_local_##function(args);                 \
		return call_ended(number, status);                           \
	}
VMM_WIRE_OPERATIONS(FUNCTION)

EXPORT NTSTATUS APIENTRY D3DKMTShareObjects(UINT count, const D3DKMT_HANDLE *handles,
					    OBJECT_ATTRIBUTES *attributes, DWORD access,
					    HANDLE *handle)
{
	D3DKMT_SHAREOBJECTS args = {.ObjectCount = count};
	NTSTATUS status;

	if (!is_routed())
		return vmm_local_D3DKMTShareObjects(count, handles, attributes, access, handle);
	args.ObjectHandleArray = handles;
	args.pObjectAttributes = attributes;
	args.DesiredAccess = access;
	args.pSharedNtHandle = handle;
	if (!sent_to_host(VMM_WIRE_D3DKMTShareObjects, &args, &status))
		status = vmm_local_D3DKMTShareObjects(count, handles, attributes, access, handle);
	return call_ended(VMM_WIRE_D3DKMTShareObjects, status);
}

EXPORT NTSTATUS APIENTRY
D3DKMTSetProcessSchedulingPriorityClass(HANDLE process, D3DKMT_SCHEDULINGPRIORITYCLASS value)
{
	const uint32_t number = VMM_WIRE_D3DKMTSetProcessSchedulingPriorityClass;
	struct vmm_wire_priority_class args = {process, (uint32_t)value};
	NTSTATUS status;

	if (!is_routed())
		return vmm_local_D3DKMTSetProcessSchedulingPriorityClass(process, value);
	if (!sent_to_host(number, &args, &status))
		status = vmm_local_D3DKMTSetProcessSchedulingPriorityClass(process, value);
	return call_ended(number, status);
}

EXPORT NTSTATUS APIENTRY
D3DKMTGetProcessSchedulingPriorityClass(HANDLE process, D3DKMT_SCHEDULINGPRIORITYCLASS *value)
{
	const uint32_t number = VMM_WIRE_D3DKMTGetProcessSchedulingPriorityClass;
	struct vmm_wire_priority_class args = {process, value ? (uint32_t)*value : 0};
	NTSTATUS status;

	if (!is_routed())
		return vmm_local_D3DKMTGetProcessSchedulingPriorityClass(process, value);
	/*
	 * For NULL the request has no argument, and the host returns the same status as this
	 * function does.
	 */
	if (!sent_to_host(number, value ? &args : NULL, &status))
		status = vmm_local_D3DKMTGetProcessSchedulingPriorityClass(process, value);
	else if (value)
		*value = (D3DKMT_SCHEDULINGPRIORITYCLASS)args.priority_class;
	return call_ended(number, status);
}
