/* SPDX-License-Identifier: MIT */
/*
 * vidmm's embedding API: what stands around the DDI. It plays the parts of Windows that a driver or a client does
 * not call by a DDI name: loading a miniport on a device, the runtime that hands a user-mode driver its callbacks,
 * opening and sharing, and looking on.
 *
 * A host is one world: a clock, its threads, any number of adapters and processes. Two kinds: `linux` runs
 * on real threads and real time; `sim` runs everything (clients, GPU engines, DPCs, timers) as coroutines of
 * the calling thread on virtual time, interleaved from a seed: the same seed gives the same run, byte for byte.
 *
 * Threads: on a linux host any thread may call; on a sim host only the thread that created it and threads made
 * by vidmm_thread_create. Errors: NTSTATUS values; on failure outputs are untouched. Hosts share
 * nothing but the numbers of their devices and contexts.
 */
#ifndef VIDMM_VIDMM_H
#define VIDMM_VIDMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vidmm/caps.h>
#include <vidmm/events.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define VIDMM_API        __attribute__((visibility("default")))
#define VIDMM_MUST_CHECK __attribute__((warn_unused_result))
#else
#define VIDMM_API
#define VIDMM_MUST_CHECK
#endif

#define VIDMM_VERSION_MAJOR 0
#define VIDMM_VERSION_MINOR 1
#define VIDMM_VERSION_PATCH 0
VIDMM_API const char *vidmm_version(void);

typedef int32_t vidmm_status; /* an NTSTATUS; >= 0 is success */

struct vidmm_host;
struct vidmm_adapter;
struct vidmm_process;
struct vidmm_device;
struct vidmm_thread;

/* ---- host ---- */
enum vidmm_host_kind { VIDMM_HOST_LINUX = 0, VIDMM_HOST_SIM = 1 };

struct vidmm_host_options {
	uint32_t struct_size; /* sizeof(struct vidmm_host_options) */
	uint32_t kind;        /* enum vidmm_host_kind */
	uint64_t seed;        /* sim */
	uint32_t
		switch_per_1024; /* sim: chance of switching threads at each point where that is possible */
	bool hash_events; /* keep vidmm_event_hash (sim) */
	/* sim: nothing can run any more; the report names each blocked thread and what it waits for. NULL: stderr, abort. */
	void (*deadlock)(void *context, const char *report);
	void *deadlock_context;
	/*
	 * SHR-10: what the access of an NT handle does not allow, an object opened from it refuses with STATUS_ACCESS_DENIED. Off
	 * by default, because clients share with accesses that allow nothing.
	 */
	bool enforce_sharing_rights;
};
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_host_create(const struct vidmm_host_options *options,
							  struct vidmm_host **host);
/* Adapters must be stopped and processes closed. */
VIDMM_API void vidmm_host_destroy(struct vidmm_host *host);

/* ---- time and threads of the host: what a client uses so that it runs on both kinds ---- */
VIDMM_API uint64_t vidmm_now_ns(struct vidmm_host *host);
VIDMM_API void vidmm_sleep_until_ns(struct vidmm_host *host, uint64_t when_ns);
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_thread_create(struct vidmm_host *host,
							    const char *name, void (*fn)(void *),
							    void *arg,
							    struct vidmm_thread **thread);
VIDMM_API void vidmm_thread_join(struct vidmm_thread *thread);
/*
 * Everything that can run now runs: comes back when every thread of the host waits, sleeps or has
 * ended. Linux: threads that the program made itself are not counted, and threads that run and run
 * are waited for until they took a second of processor time, those that wait by other means than the
 * host's for ten seconds.
 */
VIDMM_API void vidmm_settle(struct vidmm_host *host);

/* ---- adapter ---- */
struct _DRIVER_OBJECT;
struct _UNICODE_STRING;
struct _DRIVER_INITIALIZATION_DATA;
typedef int32_t vidmm_driver_entry_fn(struct _DRIVER_OBJECT *driver,
				      struct _UNICODE_STRING *registry_path);

struct vidmm_registry_value {
	const char *name; /* ASCII; under the device's software key and the driver's service key */
	uint64_t value;   /* read as REG_QWORD, or REG_DWORD when it fits */
};

/* TDR-01: what the TdrXxx values of the registry are on Windows. Take VIDMM_TDR_DEFAULTS and change some. */
struct vidmm_tdr_options {
	uint32_t
		level; /* 0: no detection, 1: a timeout is fatal (0x116), 3: the adapter is reset */
	uint32_t delay_ms; /* TdrDelay: how long a node may owe its answer */
	uint32_t
		ddi_delay_ms; /* TdrDdiDelay: until when every thread has left the miniport before a reset */
	uint32_t limit_time_ms,
		limit_count; /* so many resets in that time are survived; at most VIDMM_TDR_LIMIT_MAX */
	uint32_t debug_mode; /* 1: timeouts are reported and ignored, 2: handled */
};
#define VIDMM_TDR_LIMIT_MAX 64u
#define VIDMM_TDR_DEFAULTS                 \
	{                                  \
		3, 2000, 5000, 60000, 5, 2 \
	}

/*
 * SCH-06: how contexts of equal priority share a node, and how long those of lower priority wait. Both are of the node's time,
 * in microseconds: what its packets take from the end of the one before, or from their submission, to their own end.
 */
struct vidmm_scheduling_options {
	uint32_t slice_us; /* a context goes on until it has had so much more than another; not 0 */
	uint32_t
		patience_us; /* after so much for others a waiting context gets one packet; at least a slice */
};
#define VIDMM_SCHEDULING_DEFAULTS \
	{                         \
		10000, 100000     \
	}

struct vidmm_adapter_options {
	uint32_t struct_size;
	/*
	 * The miniport: its DriverEntry, which calls DxgkInitialize (dispmprt.h), or, where both would be a detour,
	 * its initialization table itself; of the table only the members that its Version has are read.
	 */
	vidmm_driver_entry_fn *driver_entry;
	const struct _DRIVER_INITIALIZATION_DATA *initialization_data;
	/* The device: its memory BARs in bytes (page multiples), reported as translated resources, and its registry values. */
	const uint64_t *bar_sizes;
	uint32_t bar_count;
	uint32_t registry_count;
	const struct vidmm_registry_value *registry;
	uint64_t
		system_memory_bytes; /* what backing stores and DMA buffers may take together; 0: 64 GiB */
	uint32_t
		first_fence_id; /* 0: 0xFFFFFF00, so that the 32-bit wrap is always passed (tests choose) */
	/*
	 * Filled during the start with what the miniport reports (caps.h), also when the start is refused. Its
	 * struct_size is set by the caller. NULL: nobody wants it.
	 */
	struct vidmm_adapter_report *report;
	const struct vidmm_tdr_options *tdr; /* NULL: VIDMM_TDR_DEFAULTS */
	/* 1: findings also for what takes time to find, in proportion to the lists of each submission (PAT-10). */
	uint32_t verify;
	/*
	 * What D3DKMT clients are told. The driver's description: up to 128 printable ASCII characters without %, because some
	 * clients print it as a format; NULL: "vidmm adapter". The folder of its user-mode driver, an absolute path of up to 259
	 * characters; NULL: /usr/lib/wsl/drivers.
	 */
	const char *description, *driver_store;
	/*
	 * How many physical adapters the device has, each with these BARs: more than one (up to 4) are a link, one adapter to
	 * clients, which the miniport must agree to in DxgkDdiLinkDevice (rules LNK; before 2.0 only). 0: one.
	 */
	uint32_t physical_adapters;
	/*
	 * What a miniport is told that the system enables when it asks (DxgkCbIsFeatureEnabled, DxgkCbQueryFeatureSupport): bit
	 * n is DXGK_FEATURE_ID n. Two are built, VIDMM_FEATURE_SHARE_BACKING_STORE and VIDMM_FEATURE_HWSCH; others are
	 * STATUS_NOT_SUPPORTED. 0: none.
	 */
	uint32_t features;
	const struct vidmm_scheduling_options *scheduling; /* NULL: VIDMM_SCHEDULING_DEFAULTS */
};
#define VIDMM_FEATURE_HWSCH               0x01u /* hardware scheduling and hardware queues: rule SCH-10 */
#define VIDMM_FEATURE_SHARE_BACKING_STORE 0x20u /* rule ALF-30 */
/* Loads and starts: AddDevice, StartDevice, QueryAdapterInfo. The reason of a refusal is a finding or a reason event. */
VIDMM_API VIDMM_MUST_CHECK vidmm_status
vidmm_adapter_start(struct vidmm_host *host, const struct vidmm_adapter_options *options,
		    struct vidmm_adapter **adapter);
/*
 * Waits for the GPU, evicts everything, ends the devices that are left (their handles are dead then; their processes remain
 * to be closed), StopDevice, RemoveDevice, Unload. One that is not in D0 returns there first.
 */
VIDMM_API void vidmm_adapter_stop(struct vidmm_adapter *adapter);
/*
 * What the power manager does on Windows. From D0 to a lower state: calls that are under way end; what the GPU has is
 * finished, what is still queued waits; memory leaves every segment that is not marked as preserved; then
 * DxgkDdiSetPowerState. As long as the adapter is not in D0, every call on a device of it, its creation and its end wait.
 * Back to D0: DxgkDdiSetPowerState, then everything goes on; no device is lost and no content. From one lower state to
 * another there is no way but through D0. A miniport's failure is a finding and changes nothing (PNP-07).
 *
 * STATUS_INVALID_DEVICE_STATE: it is there already, or another thread is changing it. Any other failure: what is locked cannot
 * be moved without losing stores, or system memory does not suffice (a reason says which); the adapter stays in D0.
 * Not from inside a miniport's DDI.
 */
enum vidmm_power { /* the values of DEVICE_POWER_STATE */
		   VIDMM_POWER_D0 = 1,
		   VIDMM_POWER_D1 = 2,
		   VIDMM_POWER_D2 = 3,
		   VIDMM_POWER_D3 = 4
};
enum vidmm_sleep { /* the values of POWER_ACTION; ignored on the way to D0 */
		   VIDMM_SLEEP_STANDBY = 2,
		   VIDMM_SLEEP_HIBERNATE = 3 /* and hybrid sleep */
};
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_adapter_set_power(struct vidmm_adapter *adapter,
								uint32_t state, uint32_t sleep);
/*
 * The device is pulled out, or found missing when the machine wakes up (PNP-08). DxgkDdiNotifySurpriseRemoval, whoever is
 * inside the miniport; from then on every call on the adapter's devices answers device removed, nothing of what was queued runs,
 * and who waits for it comes back. The miniport only hears of the end of its objects, and of vidmm_adapter_stop, which is
 * still to be called. Any thread, PASSIVE_LEVEL, not from inside a miniport's DDI, and not once vidmm_adapter_stop has been called.
 *
 * STATUS_NOT_SUPPORTED: the miniport has not said that it can be told, so it is not called any more; STATUS_DEVICE_REMOVED: it
 * failed, which is a fatal violation; removed it is in both cases. STATUS_INVALID_DEVICE_STATE, and nothing has changed: HIBERNATION of
 * an adapter in D0, PNP of one that sleeps, or it was removed before.
 */
enum vidmm_removal {                                /* the values of DXGK_SURPRISE_REMOVAL_TYPE */
		     VIDMM_REMOVAL_HIBERNATION = 0, /* it sleeps: vidmm_adapter_set_power */
		     VIDMM_REMOVAL_PNP = 1          /* it runs */
};
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_adapter_remove(struct vidmm_adapter *adapter,
							     uint32_t removal);
/* Blocks until everything submitted so far has completed. */
VIDMM_API void vidmm_adapter_wait_idle(struct vidmm_adapter *adapter);

/* ---- processes and devices ---- */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_process_open(struct vidmm_host *host,
							   const char *name,
							   struct vidmm_process **process);
VIDMM_API void vidmm_process_close(struct vidmm_process *process); /* destroys its devices */
/*
 * What the process may keep resident on an adapter whose miniport is of WDDM 2.x, in the segments of a budget group: 0
 * local, 1 non-local. Until it is set, all that the group has. May be less than is resident already.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_process_set_budget(struct vidmm_process *process,
								 struct vidmm_adapter *adapter,
								 uint32_t group, uint64_t bytes);
/*
 * Does the process hold the increase-priority privilege (SE_INC_BASE_PRIORITY_NAME on Windows), which real-time levels of
 * D3DKMTSetContextSchedulingPriority need (SCH-02)? Not before it is said here; taking it away changes no level that is set.
 */
VIDMM_API void vidmm_process_set_may_raise_priority(struct vidmm_process *process, bool may);
VIDMM_API uint32_t
vidmm_process_id(const struct vidmm_process *process); /* as in events: 1, 2, 3 ... */

VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_device_create(struct vidmm_process *process,
							    struct vidmm_adapter *adapter,
							    struct vidmm_device **device);
/*
 * Waits for the calls that other threads are making on the device; whoever comes later, here too, finds a dead handle
 * (E_INVALIDARG). The pointer is a number, not an address.
 */
VIDMM_API void vidmm_device_destroy(struct vidmm_device *device);

/*
 * What the runtime gives a user-mode driver in CreateDevice: the callback table (d3dumddi.h) and the handle that is
 * every callback's first argument. Entries that are not built are present and return E_NOTIMPL.
 */
struct _D3DDDI_DEVICECALLBACKS;
VIDMM_API const struct _D3DDDI_DEVICECALLBACKS *vidmm_device_callbacks(struct vidmm_device *device);
VIDMM_API void *vidmm_device_handle(struct vidmm_device *device);
/*
 * The driver's pfnTrimResidencySet (d3dumddi.h), which the runtime on Windows finds in its function table, and the driver's
 * handle of the device, with which it is called: on a thread of the adapter's, with no lock held, one call at a time. From
 * inside it every call on any device may be made, but not vidmm_adapter_stop. NULL: no more; when that returns, or
 * vidmm_device_destroy does, no call is under way, unless it was made from inside one. Set it from one thread at a time.
 * STATUS_NOT_SUPPORTED: the miniport is of WDDM 1.x. Rule RES-09.
 */
struct D3DDDIARG_TRIMRESIDENCYSET;
typedef int32_t vidmm_trim_residency_set_fn(void *umd_device,
					    const struct D3DDDIARG_TRIMRESIDENCYSET *args);
VIDMM_API VIDMM_MUST_CHECK vidmm_status
vidmm_device_set_trim(struct vidmm_device *device, void *umd_device,
		      vidmm_trim_residency_set_fn *trim_residency_set);

/* ---- D3DKMT clients (d3dkmthk.h) ----
 * The D3DKMT functions are plain symbols and do not say for whom they are called: on Windows that is the calling process.
 * Here it is the process that the program attached last (NULL: none, every function then answers STATUS_UNSUCCESSFUL), or,
 * on a thread that entered another process of the same host, that one (NULL: the attached one again). A process is
 * detached when it is closed; a thread must not stay in one that is closed. Functions that are not built do not exist.
 */
VIDMM_API void vidmm_d3dkmt_attach(struct vidmm_process *process);
/* Returns the process that the thread had entered before, or NULL. */
VIDMM_API struct vidmm_process *vidmm_d3dkmt_enter(struct vidmm_process *process);

/*
 * SHR-25: the name by which an NT handle (a descriptor of the calling program) was shared, as it was given: *units of
 * UTF-16, which is the room in `name` before and the length after, 0 for one without a name. STATUS_INVALID_HANDLE: no NT
 * handle of an object of this host; STATUS_BUFFER_TOO_SMALL: *units says how much is needed. Any thread.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_nt_handle_name(struct vidmm_host *host, int handle,
							     uint16_t *name, uint32_t *units);

/* ---- sharing: the runtime's side ----
 * On Windows the runtime knows that a resource is to be shared and tells the kernel so while the driver only calls
 * pfnAllocateCb with the runtime's hResource. Say it here, before that call.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_resource_set_shared(struct vidmm_device *device,
								  void *runtime_resource);
/* The global handle of a shared resource (hKMResource as returned by pfnAllocateCb). */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_resource_share(struct vidmm_device *device,
							     uint32_t km_resource,
							     uint32_t *global_handle);
/* Opens it in another (or the same) process's device; gives the local resource and its allocations' local handles. */
VIDMM_API VIDMM_MUST_CHECK vidmm_status
vidmm_resource_open(struct vidmm_device *device, uint32_t global_handle, uint32_t *km_resource,
		    uint32_t *allocations, uint32_t *allocation_count /* in: room, out: count */);

/* ---- looking on ---- */
typedef void vidmm_event_fn(void *context, const struct vidmm_event *event, const char *text);
/* `mask` bit n: events of type n. Called on the emitting thread; must not call vidmm. 0 when out of memory. */
VIDMM_API uint32_t vidmm_subscribe(struct vidmm_host *host, uint64_t mask, vidmm_event_fn *fn,
				   void *context);
VIDMM_API void vidmm_unsubscribe(struct vidmm_host *host, uint32_t subscription);
VIDMM_API uint64_t vidmm_event_hash(struct vidmm_host *host);
struct vidmm_counter {
	uint64_t count, sum[4]; /* events of one type, and the sums of their arguments */
};
VIDMM_API void vidmm_event_counter(struct vidmm_host *host, uint32_t event_type,
				   struct vidmm_counter *counter);
/* One stable line of text for an event; returns its length as snprintf does. */
VIDMM_API int vidmm_event_format(const struct vidmm_event *event, const char *text, char *buffer,
				 size_t size);

#define VIDMM_SEGMENTS_MAX 32
struct vidmm_segment_statistics {
	uint64_t size_bytes, resident_bytes, peak_resident_bytes;
	uint32_t aperture; /* 1: aperture segment */
	uint32_t allocations;
};
struct vidmm_adapter_statistics {
	uint32_t struct_size;
	uint32_t segment_count;
	struct vidmm_segment_statistics segment[VIDMM_SEGMENTS_MAX]; /* [0]: segment id 1 */
	uint64_t peak_resident_bytes;                                /* of all segments together */
	uint64_t system_bytes, peak_system_bytes;                    /* backing stores */
	uint64_t allocations, instances;
	uint64_t bytes_paged_in, bytes_paged_out, bytes_filled, bytes_discarded;
	uint64_t evictions, renames, lock_waits, splits;
	/*
	 * What the adapter has: memory segments, without and with PopulatedFromSystemMemory, and the system memory that its
	 * apertures may map at once. mapped_bytes: what they map now, DMA and paging buffers included.
	 */
	uint64_t dedicated_video_bytes, dedicated_system_bytes, shared_system_bytes, mapped_bytes;
	uint64_t bytes_moved; /* inside memory segments, for room in one piece */
	uint64_t patches;     /* patch locations of accepted submissions */
	uint64_t
		waits_avoided; /* renames while the GPU had not finished with what the allocation was */
	uint64_t lock_wait_ns; /* of locks that waited and succeeded */
	/* Swizzling ranges: given out, taken from another allocation for it, and locks for which there was none. */
	uint64_t ranges_acquired, ranges_reclaimed, range_fallbacks;
};
/*
 * A BAR of the (leading) device, as a probe on its bus sees it: its bytes, which change as the device and its driver write them,
 * until the adapter stops. NULL: there is no such BAR.
 */
VIDMM_API const void *vidmm_adapter_bar(struct vidmm_adapter *adapter, uint32_t index,
					uint64_t *size_bytes);
VIDMM_API void vidmm_adapter_statistics(struct vidmm_adapter *adapter,
					struct vidmm_adapter_statistics *statistics);
/*
 * Walks every invariant of the memory manager (places, lists, sums, arenas) and ends the program with a message at the first
 * that does not hold: that is a bug of vidmm. For tests; takes time in proportion to the number of allocations and holes.
 */
VIDMM_API void vidmm_adapter_check(struct vidmm_adapter *adapter);

#ifdef __cplusplus
}
#endif
#endif
