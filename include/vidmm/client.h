/* SPDX-License-Identifier: MIT */
/*
 * The API of an out-of-process client: a program that uses a host in another program
 * (`vidmm serve`, serve.h). docs/serve.md describes the whole.
 *
 * The D3DKMT functions (d3dkmthk.h) use the connection that the calling thread or the program has
 * selected (vidmm_connection_enter, vidmm_connection_attach). If neither has selected one and
 * VIDMM_SOCKET names a socket, the first such call connects to that socket; Q-170 has the other
 * routes of a call. The functions below are the counterparts of those in vidmm.h.
 *
 * Threading: any thread may call. A child of fork() has no connection and makes its own.
 *
 * Errors and units: as in vidmm.h. When the host is gone, every call returns STATUS_DEVICE_REMOVED
 * or D3DDDIERR_DEVICEREMOVED, as for a removed device; no call hangs. Locked allocations stay
 * mapped.
 *
 * An allocation over memory of the program (pSystemMem): the memory keeps its address and content
 * and becomes a shared mapping until the program unmaps it. A child of fork() therefore shares it
 * and gets no copy. Concurrent stores of other threads are not lost. The call returns
 * STATUS_NOT_SUPPORTED if the program had mapped the memory as shared before, or if other threads
 * run and the kernel does not allow userfaultfd. (ALF-13)
 */
#ifndef VIDMM_CLIENT_H
#define VIDMM_CLIENT_H

#include <vidmm/vidmm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vidmm_connection;
struct vidmm_remote_device;

/*
 * Connects to the host that listens on a socket. path NULL: the value of VIDMM_SOCKET, or, if it is
 * not set, $XDG_RUNTIME_DIR/vidmm/socket. name is the name of the client's process at the host;
 * NULL: that of the program. vidmm_disconnect must follow a success.
 *
 * STATUS_CONNECTION_REFUSED: no host listens on the socket. STATUS_OBJECT_NAME_NOT_FOUND: the path
 * does not exist, or the environment names none. STATUS_ACCESS_DENIED: no permission for the path,
 * or the host serves only its own user. STATUS_OBJECT_NAME_INVALID: the path is too long or not a
 * SOCK_SEQPACKET socket. STATUS_INSUFFICIENT_RESOURCES: no descriptors are left, the host serves as
 * many clients as it may, or another error of the system. STATUS_NOT_SUPPORTED: the peer is no
 * vidmm host, or of another version of the protocol. STATUS_DEVICE_REMOVED: the host ended, or cut
 * the client off, before it answered.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_connect(const char *path, const char *name,
						      struct vidmm_connection **connection);
/*
 * Connects over a connected SOCK_SEQPACKET socket whose other end was given to
 * vidmm_server_connect. `more` is called with `context` when a call needs another socket, on the
 * thread of that call. It returns a socket that is connected to the same server, or -1 if there is
 * none. NULL: there is none.
 *
 * STATUS_INVALID_PARAMETER: fd is no such socket; the caller still owns fd. With every other
 * status the library owns fd: a failure closes it. The other failures are those of vidmm_connect
 * that do not concern a path.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_connect_fd(int fd, const char *name,
							 int (*more)(void *context), void *context,
							 struct vidmm_connection **connection);
/*
 * Ends the client's process at the host and frees the connection. Waits for calls in progress on
 * the connection's devices; later calls on those devices return STATUS_INVALID_PARAMETER or
 * E_INVALIDARG. No thread may use the connection through vidmm_connection_attach or
 * vidmm_connection_enter any more. NULL: does nothing.
 */
VIDMM_API void vidmm_disconnect(struct vidmm_connection *connection);
/* Returns the number of the client's process at the host, as in events. Does not block. */
VIDMM_API uint32_t vidmm_connection_process_id(const struct vidmm_connection *connection);

/*
 * vidmm_d3dkmt_attach and vidmm_d3dkmt_enter for a connection: select it for the program, or for
 * the calling thread. A selected connection replaces a selected process, and the reverse. NULL:
 * none.
 */
VIDMM_API void vidmm_connection_attach(struct vidmm_connection *connection);
VIDMM_API struct vidmm_connection *vidmm_connection_enter(struct vidmm_connection *connection);

/*
 * Each function does what the function of vidmm.h with the same name, less "remote_", does. adapter
 * is the index of the adapter at the host, from 0. STATUS_INSUFFICIENT_RESOURCES: also when the
 * client's limit is reached (serve.h).
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_remote_device_create(
	struct vidmm_connection *connection, uint32_t adapter, struct vidmm_remote_device **device);
VIDMM_API void vidmm_remote_device_destroy(struct vidmm_remote_device *device);
struct _D3DDDI_DEVICECALLBACKS;
VIDMM_API const struct _D3DDDI_DEVICECALLBACKS *vidmm_remote_device_callbacks(
	struct vidmm_remote_device *device);
VIDMM_API void *vidmm_remote_device_handle(struct vidmm_remote_device *device);
/* The driver's function is called on a thread of the library that holds no mutex. (RES-09) */
VIDMM_API VIDMM_MUST_CHECK vidmm_status
vidmm_remote_device_set_trim(struct vidmm_remote_device *device, void *umd_device,
			     vidmm_trim_residency_set_fn *trim_residency_set);
VIDMM_API VIDMM_MUST_CHECK vidmm_status
vidmm_remote_resource_set_shared(struct vidmm_remote_device *device, void *runtime_resource);
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_remote_resource_share(
	struct vidmm_remote_device *device, uint32_t km_resource, uint32_t *global_handle);
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_remote_resource_open(
	struct vidmm_remote_device *device, uint32_t global_handle, uint32_t *km_resource,
	uint32_t *allocations, uint32_t *allocation_count);
/*
 * vidmm_adapter_statistics of the host's adapter: counters of all its clients since it started;
 * subtract two samples to measure an interval. Peaks are since the last call on this connection, or
 * since the adapter started.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status
vidmm_remote_adapter_statistics(struct vidmm_connection *connection, uint32_t adapter,
				struct vidmm_adapter_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
