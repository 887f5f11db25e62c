/* SPDX-License-Identifier: MIT */
/*
 * Being a client of a host that is another program (`vidmm serve`). The D3DKMT functions (d3dkmthk.h) go to the connection that the
 * program attached: at load time, when VIDMM_SOCKET names a socket, or by vidmm_connection_attach. What else a client needs
 * of include/vidmm/vidmm.h has its counterpart here.
 *
 * When the host is gone, every call answers as on a removed device: STATUS_DEVICE_REMOVED, D3DDDIERR_DEVICEREMOVED; none
 * hangs; what is locked stays mapped. Any thread may call. A child of fork() has no connection: it makes its own.
 *
 * Memory that an allocation is to lie over (pSystemMem) stays where it is and keeps its content, and is from then on a shared mapping, until the program
 * unmaps it: a child of fork() has the same, not a copy. Stores of other threads meanwhile are not lost. What is mapped shared
 * before, by the program itself, is STATUS_NOT_SUPPORTED, as is any where the kernel allows no userfaultfd and other threads run.
 */
#ifndef VIDMM_CLIENT_H
#define VIDMM_CLIENT_H

#include <vidmm/vidmm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vidmm_connection;
struct vidmm_remote_device;

/* NULL: what VIDMM_SOCKET says, or $XDG_RUNTIME_DIR/vidmm/socket. STATUS_CONNECTION_REFUSED, STATUS_OBJECT_NAME_NOT_FOUND: nobody serves there. */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_connect(const char *path, const char *name,
						      struct vidmm_connection **connection);
/* On a connected SOCK_SEQPACKET socket, whose other end is vidmm_server_connect's; it becomes the connection's. Further channels go over the same
 * server by `more`, which gives a connected socket or -1. */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_connect_fd(int fd, const char *name,
							 int (*more)(void *context), void *context,
							 struct vidmm_connection **connection);
/*
 * The process ends as far as the host is concerned. Calls of its devices that are under way come back first, and those that come later find a
 * dead handle. Threads that use it by vidmm_connection_attach or vidmm_connection_enter must have left.
 */
VIDMM_API void vidmm_disconnect(struct vidmm_connection *connection);
VIDMM_API uint32_t vidmm_connection_process_id(const struct vidmm_connection *connection);

/* As vidmm_d3dkmt_attach and vidmm_d3dkmt_enter, for a connection; they replace each other. */
VIDMM_API void vidmm_connection_attach(struct vidmm_connection *connection);
VIDMM_API struct vidmm_connection *vidmm_connection_enter(struct vidmm_connection *connection);

/* As their namesakes of vidmm.h. `adapter`: its place among those of the host, from 0. */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_remote_device_create(
	struct vidmm_connection *connection, uint32_t adapter, struct vidmm_remote_device **device);
VIDMM_API void vidmm_remote_device_destroy(struct vidmm_remote_device *device);
struct _D3DDDI_DEVICECALLBACKS;
VIDMM_API const struct _D3DDDI_DEVICECALLBACKS *vidmm_remote_device_callbacks(
	struct vidmm_remote_device *device);
VIDMM_API void *vidmm_remote_device_handle(struct vidmm_remote_device *device);
/* The driver's function is called on a thread of the library's, with no lock held. */
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
 * As vidmm_adapter_statistics, of all clients of the host together, since its adapter started; two of them give what happened in between. But peaks are
 * since this connection last asked, at first since the adapter started.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status
vidmm_remote_adapter_statistics(struct vidmm_connection *connection, uint32_t adapter,
				struct vidmm_adapter_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
