/* SPDX-License-Identifier: MIT */
/*
 * host_ops: how the user-mode drivers of a replay reach the memory manager. host_local: in this
 * process; a host and an adapter are started for the replay, and a driver calls the callbacks of
 * its device. host_remote: a connection to `vidmm serve`, on the first adapter of that host. The
 * drivers use the table and do not know which one it is.
 */
#ifndef VIDMM_TOOLS_HOST_OPS_H
#define VIDMM_TOOLS_HOST_OPS_H

#include <vidmm/vidmm.h>

#include "replay.h"

struct world;
struct host_ops;

/* One process of the replay with one device. */
struct host_device {
	const struct host_ops *ops;
	const struct _D3DDDI_DEVICECALLBACKS *callbacks;
	void *device;        /* first argument of every callback */
	uint32_t process_id; /* the process number in events */
};

/*
 * Sizes of the adapter that the drivers depend on; softgpu reports them (struct
 * softgpu_adapter_info).
 */
struct host_adapter_sizes {
	/* aperture_bytes 0: the adapter has no aperture segment */
	uint64_t vram_bytes, aperture_bytes;
};

struct host_ops {
	/*
	 * Makes everything that the first device needs and fills ADAPTER. A failure has been
	 * reported when it returns. `stop` follows in any case, after all devices are closed.
	 */
	enum replay_status (*start)(struct world *world, struct host_adapter_sizes *adapter);
	void (*stop)(struct world *world);
	vidmm_status (*open)(struct world *world, const char *name, struct host_device **device);
	void (*close)(struct host_device *device); /* closes the process */
	/* The clock of the host, and a sleep until an absolute time of that clock. */
	uint64_t (*now_ns)(struct world *world);
	void (*wait_until_ns)(struct world *world, uint64_t when_ns);
	/*
	 * wait_idle waits until the GPU has finished all work. collect then stores the statistics
	 * of the adapter in the result.
	 */
	enum replay_status (*wait_idle)(struct world *world);
	void (*collect)(struct world *world);
	/* Bytes that all buffers take of the memory of this machine; 0: it is that of the host. */
	uint64_t (*used_bytes)(struct world *world);
	uint64_t (*event_hash)(struct world *world); /* of all events so far; 0: not kept */
	/* As vidmm_resource_set_shared, vidmm_resource_share and vidmm_resource_open of vidmm.h. */
	vidmm_status (*set_shared)(struct host_device *device, void *runtime_resource);
	vidmm_status (*share)(struct host_device *device, uint32_t km_resource,
			      uint32_t *global_handle);
	vidmm_status (*open_shared)(struct host_device *device, uint32_t global_handle,
				    uint32_t *allocation);
};

extern const struct host_ops host_local, host_remote;

#endif
