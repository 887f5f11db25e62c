/* SPDX-License-Identifier: MIT */
/*
 * A user-mode driver of softgpu for tests, which uses the public doors only: a host, an adapter on
 * softgpu, processes, devices, contexts, allocations, locks, command buffers. Every helper asserts
 * success; tests of failures call the raw callbacks.
 */
#ifndef VMM_TESTS_SUPPORT_CLIENT_H
#define VMM_TESTS_SUPPORT_CLIENT_H

#include <support/test.h>

#include <pthread.h>
#include <d3dumddi.h>
#include <vidmm/softgpu.h>
#include <vidmm/vidmm.h>

struct client_options {
	uint32_t kind; /* enum vidmm_host_kind */
	uint64_t seed;
	uint32_t switch_per_1024;
	uint64_t vram_bytes, aperture_bytes; /* 0: 16 MiB, 64 MiB */
	uint32_t swizzling_ranges;           /* UINT32_MAX: default */
	uint32_t first_fence_id;
	uint64_t system_memory_bytes;
	uint32_t verify;
	uint64_t monitor_bytes;                      /* BAR 1; 0: no such BAR */
	const struct vidmm_registry_value *registry; /* additional values */
	uint32_t registry_count;
	vidmm_driver_entry_fn *driver_entry; /* NULL: softgpu */
	uint32_t physical_adapters;          /* of a link; 0: one adapter */
	uint32_t features;                   /* vidmm_adapter_options.features */
	/*
	 * NULL: on the simulator the defaults. On real threads no timeouts, because a busy machine
	 * may stop a thread, and with it a software GPU, for any time.
	 */
	const struct vidmm_tdr_options *tdr;
	const struct vidmm_scheduling_options *scheduling; /* NULL: the defaults */
	vidmm_eviction_rank_fn *eviction_rank;             /* of vidmm_adapter_options */
	void *eviction_context;
	const struct vidmm_policy *eviction_policy; /* of vidmm_adapter_options */
	bool enforce_sharing_rights;
	uint64_t memory_limit_bytes; /* of vidmm_adapter_options */
};

/* No timeouts. */
extern const struct vidmm_tdr_options client_no_tdr;

/* The last findings, newest last, as text: "LOCK-07: ..." */
#define CLIENT_FINDINGS 16u
struct client {
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	uint32_t findings;
	char finding[CLIENT_FINDINGS][320];
	uint32_t fatals;
	uint32_t reasons; /* since client_told */
	char reason[320]; /* the last: status and text */
	uint32_t kind;
	pthread_t owner;
	bool racing; /* submissions do not settle */
};

struct client_device {
	struct client *client;
	struct vidmm_process *process;
	struct vidmm_device *device;
	const D3DDDI_DEVICECALLBACKS *cb;
	HANDLE handle;
};

/* A context with the command buffer that is being filled. */
struct client_context {
	struct client_device *device;
	D3DDDICB_CREATECONTEXT c;
	uint32_t command_bytes, allocations, patches;
};

void client_start(struct client *client, const struct client_options *options);
/* Returns whether the adapter started; client_stop ends it either way. */
vidmm_status client_try_start(struct client *client, const struct client_options *options);
void client_stop(struct client *client);
/* Returns whether one of the findings since client_forget has this rule id. */
bool client_found(const struct client *client, const char *rule);
void client_forget(struct client *client);
/*
 * Are the test's processes out-of-process clients? Their views are mapped in their own memory, and
 * their system memory is one file, so other requests can be refused; memory by its address is a
 * section.
 */
bool client_is_out_of_process(void);
/*
 * Returns whether there was a reason since the last call, the last has the status and its text
 * contains TEXT.
 */
bool client_told(struct client *client, uint32_t status, const char *text);

void client_open(struct client *client, struct client_device *device); /* process and device */
void client_close(struct client_device *device);

/* One allocation of softgpu's; private data as given. */
HRESULT client_try_allocate(struct client_device *device, const struct softgpu_allocation *spec,
			    HANDLE resource, D3DKMT_HANDLE *allocation, D3DKMT_HANDLE *km_resource);
D3DKMT_HANDLE client_allocate(struct client_device *device, uint64_t bytes, uint32_t softgpu_flags);
HRESULT client_deallocate(struct client_device *device, D3DKMT_HANDLE allocation);

HRESULT client_try_lock(struct client_device *device, D3DKMT_HANDLE *allocation, uint32_t flags,
			void **data);
void *client_lock(struct client_device *device, D3DKMT_HANDLE allocation, uint32_t flags);
HRESULT client_unlock(struct client_device *device, D3DKMT_HANDLE allocation);
/* Locks, fills or compares every 32-bit word with pattern + index, unlocks. */
void client_write(struct client_device *device, D3DKMT_HANDLE allocation, uint64_t bytes,
		  uint32_t pattern);
void client_expect(struct client_device *device, D3DKMT_HANDLE allocation, uint64_t bytes,
		   uint32_t pattern);

void client_context(struct client_device *device, uint32_t node, struct client_context *context);
void client_context_end(struct client_context *context);
/* Adds (or finds) an allocation in the allocation list being built. Returns its index. */
uint32_t client_use(struct client_context *context, D3DKMT_HANDLE allocation, bool write);
void client_command(struct client_context *context, const void *command, uint32_t bytes);
void client_reference(struct client_context *context, D3DKMT_HANDLE allocation, bool write);
void client_copy(struct client_context *context, D3DKMT_HANDLE from, D3DKMT_HANDLE to,
		 uint64_t bytes);
void client_fill(struct client_context *context, D3DKMT_HANDLE to, uint64_t bytes,
		 uint32_t pattern);
void client_stall(struct client_context *context, uint64_t nanoseconds);
HRESULT client_try_submit(
	struct client_context *context); /* starts a new buffer whatever the result */
void client_submit(struct client_context *context);
/*
 * On real threads, for the thread that started the client: returns when its calls have had their
 * effect on other threads. Submissions end with it, because the worker may take over what the
 * caller queued. Threads that the test started are not waited for.
 */
void client_settle(struct client *client);
void client_idle(struct client *client);

uint32_t client_residency(struct client_device *device,
			  D3DKMT_HANDLE allocation); /* 1, 2 or 3 (PRI-04) */
uint64_t client_events(const struct client *client, uint32_t type);

#endif
