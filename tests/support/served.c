/* SPDX-License-Identifier: MIT */
#include "support/served.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doors/kmt/kmt_private.h"
#include "client/client_private.h"
#include "os/os_internal.h"
#include "serve/serve_private.h"
#include "serve/view_records.h"

enum { CLIENTS = 4096, SERVERS = 64, INSIDE = 256 };

/* A process of a test, and the connection through which it is called. */
struct served {
	struct vidmm_server *server;
	struct vidmm_connection *connection;
	struct vidmm_process *process; /* NULL: free */
	struct vmm_session *session;
};
static struct served clients[CLIENTS];
static struct vidmm_server *servers[SERVERS];
/* Threads inside the host's part of device_create; their calls are not redirected. */
static struct vmm_os_thread *inside[INSIDE];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool served_wanted(void)
{
	static int wanted = -1;

	if (wanted < 0)
		wanted = getenv("VIDMM_SERVED") != NULL;
	return wanted;
}

static struct served *find(const struct vidmm_process *process)
{
	struct served *found = NULL;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; process && i < CLIENTS && !found; i++)
		if (clients[i].process == process)
			found = &clients[i];
	pthread_mutex_unlock(&lock);
	return found;
}

static struct vidmm_connection *connection_by_viewer(const struct vmm_os_viewer *viewer)
{
	struct vidmm_connection *connection = NULL;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < CLIENTS && !connection; i++)
		if (clients[i].process && &clients[i].session->views.viewer == viewer)
			connection = clients[i].connection;
	pthread_mutex_unlock(&lock);
	return connection;
}

/* ---- the host's side ---- */

/* A real client would see it later; the test reads it at once. */
static void view_sent(void *context, struct vmm_os_viewer *viewer)
{
	struct vidmm_connection *connection = connection_by_viewer(viewer);

	(void)context;
	if (connection && !vmm_client_lost(connection))
		(void)vmm_client_execute_views(connection);
}

static void notification_sent(void *context, struct vmm_os_viewer *viewer)
{
	struct vidmm_connection *connection = connection_by_viewer(viewer);

	(void)context;
	if (connection)
		vmm_client_poll(connection);
}

static struct vidmm_server *server_of(struct vidmm_host *host)
{
	const struct vidmm_server_options options = {
		.struct_size = sizeof(options),
		.limits = {.channels = 100000, .unread_bytes = 1u << 30}};
	const struct vmm_server_hooks hooks = {
		.stepped = true,
		.view_sent = view_sent,
		.notification_sent = notification_sent,
	};
	uint32_t free_one = SERVERS;

	for (uint32_t i = 0; i < SERVERS; i++) {
		if (servers[i] && servers[i]->host == host)
			return servers[i];
		if (!servers[i] && free_one == SERVERS)
			free_one = i;
	}
	vmm_assert(free_one < SERVERS);
	vmm_assert(vmm_ok(vmm_server_create_hooked(host, &options, &hooks, &servers[free_one])));
	return servers[free_one];
}

/* ---- memory that runs out ---- */

/*
 * A test that lets the n-th allocation fail means one of the core, not one of the connection
 * (tests/client and tests/serve let those fail). In a call through a host the count starts where
 * the host begins with the call.
 */
static _Thread_local uint32_t fails_after;

void __real_vmm_calloc_fail_after(uint32_t n);
void __wrap_vmm_calloc_fail_after(uint32_t n);
struct vmm_process *__real_vmm_kmt_step(struct vmm_os *os, struct vmm_process *process);
struct vmm_process *__wrap_vmm_kmt_step(struct vmm_os *os, struct vmm_process *process);
vmm_status __real_vmm_client_call(struct vidmm_connection *connection, uint32_t operation,
				  uint32_t device, void *argument, int32_t *result);
vmm_status __wrap_vmm_client_call(struct vidmm_connection *connection, uint32_t operation,
				  uint32_t device, void *argument, int32_t *result);

static void arm(bool armed)
{
	if (fails_after)
		__real_vmm_calloc_fail_after(armed ? fails_after : 0);
}

void __wrap_vmm_calloc_fail_after(uint32_t n)
{
	fails_after = n;
	__real_vmm_calloc_fail_after(n);
}

vmm_status __wrap_vmm_client_call(struct vidmm_connection *connection, uint32_t operation,
				  uint32_t device, void *argument, int32_t *result)
{
	arm(false);
	vmm_status status = __real_vmm_client_call(connection, operation, device, argument, result);
	arm(true);
	return status;
}

/* Wraps what the host does for a client. */
struct vmm_process *__wrap_vmm_kmt_step(struct vmm_os *os, struct vmm_process *process)
{
	arm(process != NULL);
	return __real_vmm_kmt_step(os, process);
}

/*
 * ---- address space that runs out: a window is reserved once, so its mappings are counted against
 * the limit ----
 */

static _Atomic uint64_t views_left = UINT64_MAX;
static const struct vmm_os_viewer_ops *host_ops;

int __real_setrlimit64(int resource, const struct rlimit *limit);
int __wrap_setrlimit64(int resource, const struct rlimit *limit);

int __wrap_setrlimit64(int resource, const struct rlimit *limit)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%lu", &pages) != 1)
		abort();
	fclose(file);
	if (resource == RLIMIT_AS)
		atomic_store(&views_left, limit->rlim_cur == RLIM_INFINITY
						  ? UINT64_MAX
						  : limit->rlim_cur - pages * VMM_PAGE_SIZE);
	return __real_setrlimit64(resource, limit);
}

static vmm_status reserve_limited(struct vmm_os_viewer *viewer, uint64_t size_bytes, char **address)
{
	return size_bytes > atomic_load(&views_left)
		       ? VMM_NO_MEMORY
		       : host_ops->reserve(viewer, size_bytes, address);
}

static void limit_views(struct vmm_os_viewer *viewer)
{
	static struct vmm_os_viewer_ops ops;

	pthread_mutex_lock(&lock);
	if (!host_ops) {
		host_ops = viewer->ops;
		ops = *host_ops;
		ops.reserve = reserve_limited;
	}
	pthread_mutex_unlock(&lock);
	viewer->ops = &ops;
}

bool served_is_free(const void *address)
{
	uint64_t at = (uint64_t)(uintptr_t)address;
	bool is_free = false;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < CLIENTS && !is_free; i++) {
		struct vmm_views *views = clients[i].process ? &clients[i].session->views : NULL;

		if (!views || at - views->config.window_address >= views->config.window_bytes)
			continue;
		vmm_views_lock(views);
		is_free = !vmm_view_records_find(views->records, at);
		vmm_views_unlock(views);
	}
	pthread_mutex_unlock(&lock);
	return is_free;
}

/* The host's end of a channel, found by the client's end. */
static _Atomic int other_end[1 << 16];

static int more(void *context)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	vmm_assert(pair[0] < 1 << 16);
	atomic_store(&other_end[pair[0]], pair[1]);
	if (vmm_ok(vidmm_server_connect(context, pair[1])))
		return pair[0];
	close(pair[0]);
	return -1;
}

/* Both ends are in one address space; kernel memory is not accessible to a client. */
static bool owns(void *context, uint64_t address, uint64_t length)
{
	const struct vidmm_server *server = context;

	return !vmm_nt_overlaps_kernel(server->host->world.nt, (const void *)(uintptr_t)address,
				       length);
}

static void sent(void *context, int fd)
{
	vmm_server_step(context, atomic_load(&other_end[fd]));
}

/* ---- processes ---- */

static struct vmm_session *session_of(struct vidmm_server *server, uint32_t process_id)
{
	struct vmm_session *found = NULL;
	struct vmm_list *pos;

	vmm_server_lock(server);
	vmm_list_for_each (pos, &server->sessions) {
		struct vmm_session *session = vmm_container_of(pos, struct vmm_session, link);

		if (session->process_id == process_id)
			found = session;
	}
	vmm_server_unlock(server);
	return found;
}

vidmm_status served_open(struct vidmm_host *host, const char *name, struct vidmm_process **process)
{
	struct vidmm_server *server = server_of(host);
	struct vmm_client_options options = {
		.name = name, .fd = more(server), .more = more, .more_context = server};
	struct vidmm_connection *connection;

	if (options.fd < 0)
		return VMM_NO_MEMORY;
	options.sent = sent;
	options.sent_context = server;
	options.owns = owns;
	vmm_status status = vmm_client_connect(&options, &connection);
	if (!vmm_ok(status))
		return status;
	struct vmm_session *session = session_of(server, connection->process_id);
	vmm_assert(session);
	limit_views(&session->views.viewer);
	pthread_mutex_lock(&lock);
	uint32_t i = 0;
	while (i < CLIENTS && clients[i].process)
		i++;
	vmm_assert(i < CLIENTS);
	clients[i] = (struct served){server, connection, session->process, session};
	pthread_mutex_unlock(&lock);
	*process = session->process;
	return status;
}

bool served_close(struct vidmm_process *process)
{
	struct served *served = find(process);
	struct served gone;

	if (!served)
		return false;
	gone = *served;
	uint32_t id = gone.session->process_id;
	uint64_t number = gone.session->number;
	pthread_mutex_lock(&lock);
	*served = (struct served){0};
	pthread_mutex_unlock(&lock);
	/* In another program the host sees the end of a channel and ends the session. */
	vmm_client_begin_disconnect(gone.connection);
	if (vmm_client_has_callers(gone.connection))
		vmm_session_cut(gone.server, number, "disconnected inside a call");
	while (vmm_client_has_callers(gone.connection))
		vidmm_sleep_until_ns(gone.server->host, vidmm_now_ns(gone.server->host) + 100);
	vidmm_disconnect(gone.connection);
	vmm_server_step_end(gone.server, id);
	vmm_assert(!session_of(gone.server, id));
	return true;
}

void __real_vidmm_host_destroy(struct vidmm_host *host);
void __wrap_vidmm_host_destroy(struct vidmm_host *host);

void __wrap_vidmm_host_destroy(struct vidmm_host *host)
{
	for (uint32_t i = 0; i < SERVERS; i++)
		if (servers[i] && servers[i]->host == host) {
			vidmm_server_destroy(servers[i]);
			servers[i] = NULL;
		}
	__real_vidmm_host_destroy(host);
}

/* ---- devices ---- */

static void set_inside(const struct vidmm_server *server, bool in)
{
	struct vmm_os_thread *self = vmm_os_thread_self(vmm_serve_os(server));
	struct vmm_os_thread *from = in ? NULL : self, *to = in ? self : NULL;
	uint32_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < INSIDE && inside[i] != from)
		i++;
	vmm_assert(i < INSIDE);
	inside[i] = to;
	pthread_mutex_unlock(&lock);
}

static bool is_inside(const struct vidmm_server *server)
{
	const struct vmm_os_thread *self = vmm_os_thread_self(vmm_serve_os(server));
	bool found = false;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < INSIDE; i++)
		found |= inside[i] == self;
	pthread_mutex_unlock(&lock);
	return found;
}

int32_t __real_vmm_serve_device_create(struct vmm_session *session,
				       struct vmm_wire_device_create *args);
int32_t __wrap_vmm_serve_device_create(struct vmm_session *session,
				       struct vmm_wire_device_create *args);

int32_t __wrap_vmm_serve_device_create(struct vmm_session *session,
				       struct vmm_wire_device_create *args)
{
	set_inside(session->server, true);
	int32_t status = __real_vmm_serve_device_create(session, args);
	set_inside(session->server, false);
	return status;
}

vidmm_status __real_vidmm_device_create(struct vidmm_process *process,
					struct vidmm_adapter *adapter,
					struct vidmm_device **device);
vidmm_status __wrap_vidmm_device_create(struct vidmm_process *process,
					struct vidmm_adapter *adapter,
					struct vidmm_device **device);

/* Its index among the existing ones; one that no longer exists has the index behind the last. */
static uint32_t place_of(const struct vidmm_server *server, const struct vidmm_adapter *adapter)
{
	struct vmm_adapter *nth;
	uint32_t i = 0;

	while ((nth = vmm_adapter_nth(&server->host->world, i)) != NULL) {
		vmm_adapter_put(nth);
		if (nth == &adapter->core)
			break;
		i++;
	}
	return i;
}

vidmm_status __wrap_vidmm_device_create(struct vidmm_process *process,
					struct vidmm_adapter *adapter, struct vidmm_device **device)
{
	const struct served *served = find(process);

	if (!served || !adapter || !device || is_inside(served->server))
		return __real_vidmm_device_create(process, adapter, device);
	return vidmm_remote_device_create(served->connection, place_of(served->server, adapter),
					  (struct vidmm_remote_device **)device);
}

static struct vidmm_remote_device *remote(struct vidmm_device *device)
{
	return (uint64_t)(uintptr_t)device >> 62 == 1 ? (struct vidmm_remote_device *)device : NULL;
}

#define WRAP(type, name, parameters, arguments, there) \
	type __real_##name parameters;                 \
	type __wrap_##name parameters;                 \
	type __wrap_##name parameters                  \
	{                                              \
		if (remote(device))                    \
			return there;                  \
		return __real_##name arguments;        \
	}
WRAP(void, vidmm_device_destroy, (struct vidmm_device * device), (device),
     vidmm_remote_device_destroy(remote(device)))
WRAP(const D3DDDI_DEVICECALLBACKS *, vidmm_device_callbacks, (struct vidmm_device * device),
     (device), vidmm_remote_device_callbacks(remote(device)))
WRAP(void *, vidmm_device_handle, (struct vidmm_device * device), (device),
     vidmm_remote_device_handle(remote(device)))
WRAP(vidmm_status, vidmm_device_set_trim,
     (struct vidmm_device * device, void *umd_device, vidmm_trim_residency_set_fn *function),
     (device, umd_device, function),
     vidmm_remote_device_set_trim(remote(device), umd_device, function))
WRAP(vidmm_status, vidmm_resource_set_shared, (struct vidmm_device * device, void *resource),
     (device, resource), vidmm_remote_resource_set_shared(remote(device), resource))
WRAP(vidmm_status, vidmm_resource_share,
     (struct vidmm_device * device, uint32_t km_resource, uint32_t *global_handle),
     (device, km_resource, global_handle),
     vidmm_remote_resource_share(remote(device), km_resource, global_handle))
WRAP(vidmm_status, vidmm_resource_open,
     (struct vidmm_device * device, uint32_t global_handle, uint32_t *km_resource,
      uint32_t *allocations, uint32_t *allocation_count),
     (device, global_handle, km_resource, allocations, allocation_count),
     vidmm_remote_resource_open(remote(device), global_handle, km_resource, allocations,
				allocation_count))

/*
 * ---- D3DKMT functions: the world determines the process for which a thread calls, as without a
 * host ----
 */

static struct vidmm_connection *caller(void)
{
	const struct served *served =
		served_wanted() ? find((const struct vidmm_process *)vmm_kmt_process()) : NULL;

	return served ? served->connection : NULL;
}

/*
 * A client waits for a fence in its own memory, by a futex that the world does not know. In another
 * program that thread would be none of the world's, so vidmm_settle must not wait for it while it
 * sleeps: then it is counted as idle.
 */
static _Thread_local struct vmm_os_thread *fence_waiter; /* inside vmm_client_wait */

bool __real_vmm_client_wait(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
			    uint64_t value, int32_t *result);
bool __wrap_vmm_client_wait(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
			    uint64_t value, int32_t *result);
bool __wrap_vmm_client_wait(struct vidmm_connection *connection, uint32_t device, uint32_t handle,
			    uint64_t value, int32_t *result)
{
	const struct served *served = find((const struct vidmm_process *)vmm_kmt_process());
	struct vmm_os *os = served ? vmm_serve_os(served->server) : NULL;

	if (os && vmm_os_kind(os) == VMM_OS_LINUX)
		fence_waiter = vmm_os_thread_self(os);
	bool done = __real_vmm_client_wait(connection, device, handle, value, result);
	fence_waiter = NULL;
	return done;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
/*
 * Reads six arguments, as the C library's function does, also if the caller gives fewer: then the
 * rest comes from the caller's stack, where the address sanitizer may have poisoned it.
 */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
	struct vmm_os_thread *waiter = number == SYS_futex ? fence_waiter : NULL;
	long argument[6];
	va_list list;

	va_start(list, number);
	for (uint32_t i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	if (waiter)
		vmm_os_linux_becomes_idle(waiter);
	long result = __real_syscall(number, argument[0], argument[1], argument[2], argument[3],
				     argument[4], argument[5]);
	int error = errno;
	if (waiter)
		vmm_os_linux_becomes_busy(waiter);
	errno = error;
	return result;
}

#define FUNCTION(number, function, argument)                                                       \
	NTSTATUS __real_##function(argument *);                                                    \
	NTSTATUS __wrap_##function(argument *);                                                    \
	NTSTATUS __wrap_##function(argument *args)                                                 \
	{                                                                                          \
		struct vidmm_connection *connection = caller();                                    \
                                                                                                   \
		return connection ? vmm_client_d3dkmt(connection, number, (void *)(uintptr_t)args) \
				  : __real_##function(args);                                       \
	}
VMM_WIRE_OPERATIONS(FUNCTION)

/* Functions that take values, by way of the library's own functions. */
NTSTATUS __real_D3DKMTShareObjects(UINT count, const D3DKMT_HANDLE *handles,
				   OBJECT_ATTRIBUTES *attributes, DWORD access, HANDLE *handle);
NTSTATUS __wrap_D3DKMTShareObjects(UINT count, const D3DKMT_HANDLE *handles,
				   OBJECT_ATTRIBUTES *attributes, DWORD access, HANDLE *handle);
NTSTATUS __wrap_D3DKMTShareObjects(UINT count, const D3DKMT_HANDLE *handles,
				   OBJECT_ATTRIBUTES *attributes, DWORD access, HANDLE *handle)
{
	struct vidmm_connection *connection = caller();
	D3DKMT_SHAREOBJECTS args = {.ObjectCount = count};

	args.ObjectHandleArray = handles;
	args.pObjectAttributes = attributes;
	args.DesiredAccess = access;
	args.pSharedNtHandle = handle;
	return connection ? vmm_client_d3dkmt(connection, VMM_WIRE_D3DKMTShareObjects, &args)
			  : __real_D3DKMTShareObjects(count, handles, attributes, access, handle);
}

NTSTATUS __real_D3DKMTSetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS value);
NTSTATUS __wrap_D3DKMTSetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS value);
NTSTATUS __wrap_D3DKMTSetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS value)
{
	struct vidmm_connection *connection = caller();
	struct vmm_wire_priority_class args = {process, (uint32_t)value};

	return connection
		       ? vmm_client_d3dkmt(connection,
					   VMM_WIRE_D3DKMTSetProcessSchedulingPriorityClass, &args)
		       : __real_D3DKMTSetProcessSchedulingPriorityClass(process, value);
}

NTSTATUS __real_D3DKMTGetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS *value);
NTSTATUS __wrap_D3DKMTGetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS *value);
NTSTATUS __wrap_D3DKMTGetProcessSchedulingPriorityClass(HANDLE process,
							D3DKMT_SCHEDULINGPRIORITYCLASS *value)
{
	struct vidmm_connection *connection = caller();
	struct vmm_wire_priority_class args = {process, value ? (uint32_t)*value : 0};

	if (!connection)
		return __real_D3DKMTGetProcessSchedulingPriorityClass(process, value);
	NTSTATUS status = vmm_client_d3dkmt(
		connection, VMM_WIRE_D3DKMTGetProcessSchedulingPriorityClass, value ? &args : NULL);
	if (value)
		*value = (D3DKMT_SCHEDULINGPRIORITYCLASS)args.priority_class;
	return status;
}
