/* SPDX-License-Identifier: MIT */
/*
 * The embedding API of vidmm. A driver and a client reach vidmm through the DDI (include/wddm).
 * This header covers what Windows does for them without a DDI function: it loads a miniport on a
 * device, hands a user-mode driver its callbacks, shares and opens resources, and reports events.
 *
 * A host is one simulated system: a clock, threads, any number of adapters and processes. Hosts
 * share only the counters that number their devices and contexts. There are two kinds:
 *   linux  uses real threads and real time.
 *   sim    runs clients, GPU engines, DPCs and timers as coroutines of the calling thread, on
 *          virtual time. A seed decides their order. The same seed gives the same run, byte for
 *          byte.
 *
 * Threading: on a linux host any thread may call. On a sim host only the thread that created the
 * host, and threads that vidmm_thread_create made, may call. A call may block, unless its comment
 * says otherwise. No call may be made from an event function (vidmm_event_fn).
 *
 * Errors: functions return NTSTATUS values (vidmm_status). On failure outputs are unchanged, unless
 * a comment says otherwise. Every function that returns a status returns STATUS_INVALID_PARAMETER
 * for a NULL argument that it needs and for a wrong struct_size, and STATUS_NO_MEMORY if memory
 * runs out; comments list the others. A function that returns no status needs all its pointer
 * arguments, unless its comment names what NULL does; the caller ensures that.
 * A "finding" or a "reason" is an event with a text (events.h).
 *
 * Units: sizes are bytes and times are nanoseconds, unless a name or comment says otherwise.
 */
#ifndef VIDMM_VIDMM_H
#define VIDMM_VIDMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vidmm/caps.h>
#include <vidmm/device.h>
#include <vidmm/events.h>
#include <vidmm/eviction.h>
#include <vidmm/policy.h>
#include <vidmm/statistics.h>

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
#define VIDMM_VERSION_MINOR 2
#define VIDMM_VERSION_PATCH 0
/* Returns the version of the library as "major.minor.patch". The string is static. */
VIDMM_API const char *vidmm_version(void);

typedef int32_t vidmm_status; /* an NTSTATUS; success: >= 0 */

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
	uint64_t seed;        /* sim: random seed of the interleaving, any value */
	/* sim: probability, in 1/1024, of a thread switch at each point that allows one */
	uint32_t switch_per_1024;
	/*
	 * Computes vidmm_event_hash. On a linux host the order of threads, and so the hash, differs
	 * from run to run.
	 */
	bool hash_events;
	/*
	 * sim: called when no thread of the host can ever run again. The report names each blocked
	 * thread and what it waits for. NULL: prints the report to stderr and aborts.
	 */
	void (*deadlock)(void *context, const char *report);
	void *deadlock_context;
	/*
	 * An object that was opened from an NT handle refuses, with STATUS_ACCESS_DENIED, what the
	 * access of that handle does not allow. Off by default, because existing clients share with
	 * access masks that lack the rights which they then use. (SHR-10)
	 */
	bool enforce_sharing_rights;
};
/*
 * Creates a host. STATUS_INVALID_PARAMETER: also an unknown kind. If the environment variable
 * VIDMM_DEBUG is 1, the host prints findings and reasons on the standard error stream.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_host_create(const struct vidmm_host_options *options,
							  struct vidmm_host **host);
/*
 * Destroys a host. All processes of the host must be closed and all its adapters stopped before;
 * the program aborts if an adapter is not stopped. NULL: does nothing.
 */
VIDMM_API void vidmm_host_destroy(struct vidmm_host *host);

/* ---- time and threads of a host, for clients that run on both kinds ---- */
/* Returns the time of the host's clock in ns. On a sim host it is virtual. Does not block. */
VIDMM_API uint64_t vidmm_now_ns(struct vidmm_host *host);
/* Sleeps until the host's clock shows when_ns or later. */
VIDMM_API void vidmm_sleep_until_ns(struct vidmm_host *host, uint64_t when_ns);
/*
 * Starts a thread of the host that runs fn(arg). vidmm_thread_join must follow a success. name is
 * copied and appears in reports of the sim host. Only arg may be NULL.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_thread_create(struct vidmm_host *host,
							    const char *name, void (*fn)(void *),
							    void *arg,
							    struct vidmm_thread **thread);
/* Waits until the thread's function has returned, then frees the thread. NULL: does nothing. */
VIDMM_API void vidmm_thread_join(struct vidmm_thread *thread);
/*
 * Lets all other threads of the host run until each one waits, sleeps or has ended. On a linux host
 * it does not wait for threads that the program made itself. There it also returns when the other
 * threads of the program have used 1 s of processor time since the call, added up over all of them,
 * or after 10 s of real time.
 */
VIDMM_API void vidmm_settle(struct vidmm_host *host);

/* ---- adapter ---- */
struct _DRIVER_OBJECT;
struct _UNICODE_STRING;
struct _DRIVER_INITIALIZATION_DATA;
/* A miniport's DriverEntry. Returns an NTSTATUS. */
typedef int32_t vidmm_driver_entry_fn(struct _DRIVER_OBJECT *driver,
				      struct _UNICODE_STRING *registry_path);

struct vidmm_registry_value {
	/* ASCII; the device's software key and the driver's service key both have the value */
	const char *name;
	uint64_t value; /* read as REG_DWORD if it fits, otherwise as REG_QWORD */
};

/*
 * Timeout detection and recovery: the TdrXxx registry values of Windows (page "TDR registry keys").
 * Start from VIDMM_TDR_DEFAULTS. STATUS_INVALID_PARAMETER: a value out of range; a finding says
 * which. (TDR-01)
 */
struct vidmm_tdr_options {
	/* 0: no detection, 1: a timeout is fatal (0x116), 3: the adapter is reset */
	uint32_t level;
	/* TdrDelay in ms, at least 1: how long a node may take to complete a packet */
	uint32_t delay_ms;
	/* TdrDdiDelay in ms, at least 1: how long a reset waits for threads in the miniport */
	uint32_t ddi_delay_ms;
	/*
	 * The adapter survives limit_count resets (at most VIDMM_TDR_LIMIT_MAX) within
	 * limit_time_ms (at least 1). One more is fatal.
	 */
	uint32_t limit_time_ms, limit_count;
	/* 1: timeouts are reported and ignored, 2: handled; 0 and 3: STATUS_NOT_SUPPORTED */
	uint32_t debug_mode;
};
#define VIDMM_TDR_LIMIT_MAX 64u
#define VIDMM_TDR_DEFAULTS                 \
	{                                  \
		3, 2000, 5000, 60000, 5, 2 \
	}

/*
 * How contexts of equal priority share a node, and how long contexts of lower priority wait. Both
 * members are microseconds of node time. A packet uses node time from the end of the packet before
 * it, or from its own submission if that is later, to its own end. (SCH-06)
 */
struct vidmm_scheduling_options {
	/*
	 * A context keeps the node until it has used this much more node time than the waiting
	 * context that has used least; at least 1.
	 */
	uint32_t slice_us;
	/*
	 * One packet of a context runs out of turn when the context has waited while the node
	 * worked this long for contexts of higher priority; at least slice_us.
	 */
	uint32_t patience_us;
};
#define VIDMM_SCHEDULING_DEFAULTS \
	{                         \
		10000, 100000     \
	}

struct vidmm_adapter_options {
	uint32_t struct_size; /* sizeof(struct vidmm_adapter_options) */
	/*
	 * The miniport: exactly one of the two is set. driver_entry is its DriverEntry, which
	 * calls DxgkInitialize (dispmprt.h). initialization_data is the table itself; only the
	 * members that its Version defines are read.
	 */
	vidmm_driver_entry_fn *driver_entry;
	const struct _DRIVER_INITIALIZATION_DATA *initialization_data;
	/*
	 * The sizes of the device's memory BARs in bytes, which the miniport gets as translated
	 * resources. Up to VIDMM_REPORT_BARS_MAX; each a multiple of 4096, not 0, below 2^40.
	 */
	const uint64_t *bar_sizes;
	uint32_t bar_count;
	/*
	 * The memory of each BAR: the descriptor of a regular file or memfd of at least its size,
	 * which the program may map, too, and a device model in another process. -1: zeroed memory
	 * of the library. The library keeps no descriptor of the caller. The file must not shrink
	 * while the adapter runs. NULL: -1 for all. STATUS_INVALID_HANDLE: not a descriptor.
	 * STATUS_INVALID_PARAMETER: not a file that can be read and written, or too small. Only for
	 * one physical adapter; otherwise STATUS_NOT_SUPPORTED.
	 */
	const int *bar_memory;
	uint32_t registry_count;
	/*
	 * The device's registry values, for the miniport. Those whose names begin with "Vidmm" are
	 * settings of the library: what clients are told of the device (DXC-26), and the order of
	 * eviction. Another such name, or a value out of range: STATUS_INVALID_PARAMETER with a
	 * reason.
	 * VidmmVendorId, VidmmDeviceId, VidmmSubsystemVendorId, VidmmSubsystemId, VidmmRevisionId:
	 *	its PCI ids, which the miniport reads in the configuration space, too. A vendor of 0
	 *	stands for the default, a vendor and a device that no hardware has.
	 * VidmmDriverVersion: of both drivers, four 16-bit words, the highest first. Default: the
	 *	version of the library.
	 * VidmmHardware, VidmmIntegrated, VidmmDetachable: 1 or 0: whether clients are told that
	 *	the device is hardware, part of the processor, removable. Default: 0.
	 * VidmmHardwareType: 1 GPU (the default), 2 compute accelerator, 4 NPU, 8 media
	 *	accelerator.
	 * VidmmAttributes: the sum of 1 Direct3D 11 graphics, 2 Direct3D 12 graphics, 4 Direct3D 12
	 *	compute, 8 machine learning, 16 media. Default: 7 for a GPU, 16 for a media
	 *	accelerator, 4 for the others.
	 * VidmmEvictionPolicy: the order in which allocations of one eviction class lose their
	 *	video memory: 0 lru, 1 clock, 2 mru, 3 predicted (docs/policies.md). Default:
	 *	VIDMM_EVICTION_POLICY_DEFAULT.
	 * VidmmVerifyDriver: 1: the host also checks its drivers for what is expensive to find
	 *	(docs/caps.md): accesses behind blocks of pool and to freed ones fault, and findings
	 *	name deep stacks, spin locks in both orders, writes behind buffers, references that
	 *	are never released and completions that are reported again. Default: 0. (NT-21 to
	 *	NT-24, Q-430)
	 */
	const struct vidmm_registry_value *registry;
	/* limit of backing stores and DMA buffers together, in bytes; 0: 64 GiB */
	uint64_t system_memory_bytes;
	/* first fence id; 0: 0xFFFFFF00, so that every run passes the 32-bit wrap */
	uint32_t first_fence_id;
	/*
	 * Receives what the miniport reports (caps.h), also if the start fails. It stays unchanged
	 * only if an argument is NULL, a struct_size is wrong, or not exactly one of driver_entry
	 * and initialization_data is set. The caller sets its struct_size. NULL: no report.
	 */
	struct vidmm_adapter_report *report;
	const struct vidmm_tdr_options *tdr; /* NULL: VIDMM_TDR_DEFAULTS */
	/*
	 * 1: also makes checks that take time in proportion to the lists of each submission. Their
	 * results are findings. (PAT-10)
	 */
	uint32_t verify;
	/*
	 * What D3DKMT clients read. description: the driver's, up to 128 printable ASCII
	 * characters without %, because some clients print it as a format; NULL: "vidmm adapter".
	 * driver_store: the folder of its user-mode driver, an absolute path of up to 259
	 * printable ASCII characters; NULL: /usr/lib/wsl/drivers. (QAI-06, REG-04)
	 */
	const char *description, *driver_store;
	/*
	 * Number of physical adapters, 1 to 4; 0: 1. Each has the BARs of bar_sizes. More than one
	 * make a link: clients see one adapter. The miniport must agree in DxgkDdiLinkDevice, and
	 * its interface version must be below 2.0 (rules LNK).
	 */
	uint32_t physical_adapters;
	/*
	 * The features that DxgkCbIsFeatureEnabled and DxgkCbQueryFeatureSupport report as
	 * enabled: bit n is DXGK_FEATURE_ID n. The library implements
	 * VIDMM_FEATURE_SHARE_BACKING_STORE and VIDMM_FEATURE_HWSCH. Another bit:
	 * STATUS_NOT_SUPPORTED. 0: none.
	 */
	uint32_t features;
	const struct vidmm_scheduling_options *scheduling; /* NULL: VIDMM_SCHEDULING_DEFAULTS */
	/*
	 * The order of eviction as a function of the embedder; NULL: VidmmEvictionPolicy. Both
	 * together: STATUS_INVALID_PARAMETER.
	 */
	vidmm_eviction_rank_fn *eviction_rank;
	void *eviction_context;
	/*
	 * The order of eviction as three functions (policy.h), which are copied; NULL: one of the
	 * above. STATUS_INVALID_PARAMETER with a reason: its description is not valid, or
	 * VidmmEvictionPolicy or eviction_rank is also set.
	 */
	const struct vidmm_policy *eviction_policy;
	/*
	 * The device as a model (device.h), which is copied; NULL: BARs of bar_sizes. With a model
	 * there are no bar_sizes and no bar_memory, and one physical adapter. Its ids are those
	 * of VidmmVendorId ..., if these are set. STATUS_INVALID_PARAMETER with a reason: its
	 * description is not valid. STATUS_NOT_SUPPORTED: more physical adapters.
	 */
	const struct vidmm_device_model *device_model;
	/*
	 * The most bytes of each memory segment that are used, whatever size the miniport reports:
	 * a segment has the smaller of both, in whole pages of the segment. Apertures have no such
	 * limit. The miniport does not learn of it, and vidmm_adapter_report has the sizes that it
	 * reported. 0: no limit; below 65536: STATUS_INVALID_PARAMETER with a reason.
	 */
	uint64_t memory_limit_bytes;
};
enum vidmm_eviction_policy {
	VIDMM_EVICTION_LRU = 0,
	VIDMM_EVICTION_CLOCK = 1,
	VIDMM_EVICTION_MRU = 2,
	VIDMM_EVICTION_PREDICTED = 3
};
#define VIDMM_EVICTION_POLICY_DEFAULT     VIDMM_EVICTION_PREDICTED
#define VIDMM_FEATURE_HWSCH               0x01u /* hardware scheduling and queues (SCH-10) */
#define VIDMM_FEATURE_SHARE_BACKING_STORE 0x20u /* shared backing stores (ALF-30) */
/*
 * Loads the miniport and starts the adapter: DriverEntry, AddDevice, StartDevice, QueryAdapterInfo.
 * vidmm_adapter_stop must follow a success. If the miniport fails a call, the status is the
 * miniport's. If it breaks a rule, the status is that of the rule (docs/rules). A finding or a
 * reason says why. STATUS_NOT_SUPPORTED: also an unknown bit of features.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status
vidmm_adapter_start(struct vidmm_host *host, const struct vidmm_adapter_options *options,
		    struct vidmm_adapter **adapter);
/*
 * Stops the adapter and frees it: returns it to D0 if it is in D1, D2 or D3, waits for the GPU,
 * evicts every segment, ends the remaining devices, then calls StopDevice, RemoveDevice and Unload.
 * From then on calls on those devices return STATUS_DEVICE_REMOVED or D3DDDIERR_DEVICEREMOVED. The
 * client still destroys each such device, or closes its process. NULL: does nothing. (PNP-02,
 * PNP-03)
 */
VIDMM_API void vidmm_adapter_stop(struct vidmm_adapter *adapter);
enum vidmm_power { /* the values of DEVICE_POWER_STATE */
		   VIDMM_POWER_D0 = 1,
		   VIDMM_POWER_D1 = 2,
		   VIDMM_POWER_D2 = 3,
		   VIDMM_POWER_D3 = 4
};
enum vidmm_sleep { /* the values of POWER_ACTION */
		   VIDMM_SLEEP_STANDBY = 2,
		   VIDMM_SLEEP_HIBERNATE = 3 /* and hybrid sleep */
};
/*
 * Changes the power state, as the power manager of Windows does (page DxgkDdiSetPowerState).
 *
 * From D0 to D1, D2 or D3: calls in progress end and the GPU completes the packets that it has.
 * Queued packets wait. Every segment that does not preserve its content is evicted. Then
 * DxgkDdiSetPowerState is called. Outside D0, every call on a device of the adapter waits, and so
 * do the creation and destruction of devices. Back to D0: DxgkDdiSetPowerState is called, then the
 * waiting calls continue. No device and no content is lost. D1, D2 and D3 can only be left for D0.
 * An error of the miniport is a finding and does not stop the change. (PNP-05, PNP-07)
 *
 * state is an enum vidmm_power; sleep is an enum vidmm_sleep, ignored on the way to D0. Any thread
 * may call, except from a DDI function of the miniport.
 *
 * STATUS_INVALID_PARAMETER: an unknown state or sleep. STATUS_DEVICE_REMOVED: the adapter has been
 * removed. STATUS_INVALID_DEVICE_STATE: it is in that state already, neither the present nor the
 * new state is D0, or another thread is changing the state. Any other failure: memory could not be
 * evicted; a reason says why. After a failure the adapter keeps its state.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_adapter_set_power(struct vidmm_adapter *adapter,
								uint32_t state, uint32_t sleep);
enum vidmm_removal {
	/* The values of DXGK_SURPRISE_REMOVAL_TYPE. */
	VIDMM_REMOVAL_HIBERNATION = 0, /* in D1, D2 and D3 */
	VIDMM_REMOVAL_PNP = 1          /* in D0, and while the power state is being changed */
};
/*
 * Surprise removal: the device is unplugged, or is missing when the system wakes up (page
 * DxgkDdiNotifySurpriseRemoval). That DDI function is called even while other threads run DDI
 * functions of the miniport. From then on every call on the adapter's devices returns
 * STATUS_DEVICE_REMOVED or D3DDDIERR_DEVICEREMOVED, queued packets never run, and threads that wait
 * for them return. The miniport is only called to end its objects and for vidmm_adapter_stop, which
 * must still follow. (PNP-08)
 *
 * removal is an enum vidmm_removal. Any thread may call at PASSIVE_LEVEL, except from a DDI
 * function of the miniport, and not after vidmm_adapter_stop.
 *
 * With STATUS_INVALID_PARAMETER (an unknown value of removal) and STATUS_INVALID_DEVICE_STATE (the
 * type does not fit the power state, or the adapter has been removed before) nothing has changed.
 * With every other status the adapter is removed:
 * - Success: the miniport was notified. It may have failed the notification if the type is
 *   VIDMM_REMOVAL_HIBERNATION and the miniport has SupportSurpriseRemoval; a finding says so.
 * - STATUS_NOT_SUPPORTED: the miniport does not support the notification. It gets no further calls,
 *   except those that stop and unload it.
 * - STATUS_DEVICE_REMOVED: the miniport failed the notification, which is a fatal violation, or an
 *   earlier fatal violation had already ended all calls of the miniport.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_adapter_remove(struct vidmm_adapter *adapter,
							     uint32_t removal);
/*
 * Waits until every packet that has been submitted to the adapter is complete, except those that
 * are queued behind an unsatisfied wait of their context: they stay queued. If this function cannot
 * go on waiting, because the adapter is removed or no thread can run any more, it abandons the
 * adapter:
 * queued packets are dropped, and every later call on the adapter's devices returns
 * STATUS_DEVICE_REMOVED or D3DDDIERR_DEVICEREMOVED.
 */
VIDMM_API void vidmm_adapter_wait_idle(struct vidmm_adapter *adapter);

/* ---- processes and devices ---- */
/*
 * Opens a process: the owner of devices and of D3DKMT handles. name (may be NULL) appears in
 * reports and is copied.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_process_open(struct vidmm_host *host,
							   const char *name,
							   struct vidmm_process **process);
/* Destroys the devices of the process, then the process and its objects. NULL: does nothing. */
VIDMM_API void vidmm_process_close(struct vidmm_process *process);
/*
 * Sets the budget of the process in one segment group of an adapter: how many bytes its residency
 * lists may hold there. group: 0 local, 1 non-local (DXGK_MEMORY_SEGMENT_GROUP). bytes: any value,
 * also 0 or one below the present usage. Before the first call the budget is the size of the
 * group's segments. Reservations of other processes reduce it; the process's own reservation is its
 * minimum.
 *
 * The new budget holds for later MakeResident calls. Nothing is evicted: if the usage exceeds the
 * new budget by more than it exceeded the old one, the trim functions of the process's devices are
 * called with TrimToBudget and the number of bytes. The call itself emits no event. (RES-10,
 * PRI-13)
 *
 * STATUS_INVALID_PARAMETER: also an unknown group, with a finding. STATUS_NOT_SUPPORTED: the
 * miniport is of WDDM 1.x. STATUS_DEVICE_REMOVED: the adapter is stopping or has been removed.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_process_set_budget(struct vidmm_process *process,
								 struct vidmm_adapter *adapter,
								 uint32_t group, uint64_t bytes);
/*
 * Gives the process the privilege to increase priorities (SE_INC_BASE_PRIORITY_NAME on Windows), or
 * takes it away. The real-time levels of D3DKMTSetContextSchedulingPriority need it. A new process
 * does not have it. Taking it away does not change levels that are set. Does not block. (SCH-02)
 */
VIDMM_API void vidmm_process_set_may_raise_priority(struct vidmm_process *process, bool may);
/* Returns the number of the process in events: 1, 2, 3 ... in order of opening. Does not block. */
VIDMM_API uint32_t vidmm_process_id(const struct vidmm_process *process);

/*
 * Creates a device of the process on an adapter. Waits while the adapter is not in D0.
 * STATUS_DEVICE_REMOVED: the adapter is stopping or has been removed, or the process has hung
 * engines so often that it may create no more devices (TDR-20); a reason says so. Other failures:
 * the miniport's, from DxgkDdiCreateDevice.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_device_create(struct vidmm_process *process,
							    struct vidmm_adapter *adapter,
							    struct vidmm_device **device);
/*
 * Waits for the calls that other threads are making on the device, then destroys it. Later calls on
 * it return E_INVALIDARG or STATUS_INVALID_PARAMETER; a second vidmm_device_destroy does nothing.
 * `device` is a number that is never reused, not an address, so such a call is safe. NULL: does
 * nothing.
 */
VIDMM_API void vidmm_device_destroy(struct vidmm_device *device);

/*
 * What the runtime gives a user-mode driver in CreateDevice (d3dumddi.h). vidmm_device_callbacks
 * returns the callback table, which is static. vidmm_device_handle returns the handle that is the
 * first argument of every callback. Callbacks that the library does not implement are not NULL and
 * return E_NOTIMPL. Neither function blocks.
 */
struct _D3DDDI_DEVICECALLBACKS;
VIDMM_API const struct _D3DDDI_DEVICECALLBACKS *vidmm_device_callbacks(struct vidmm_device *device);
VIDMM_API void *vidmm_device_handle(struct vidmm_device *device);
/*
 * Return the handle by which D3DKMT functions and events name a device, and one of its contexts.
 * context is an hContext of pfnCreateContextCb. Return 0 if there is no such device or context, or
 * the adapter has stopped. Do not block. (HND-01)
 */
VIDMM_API uint32_t vidmm_device_d3dkmt_handle(struct vidmm_device *device);
VIDMM_API uint32_t vidmm_context_d3dkmt_handle(struct vidmm_device *device, void *context);
/*
 * Sets the driver's pfnTrimResidencySet (d3dumddi.h), which the runtime on Windows finds in the
 * driver's function table. It replaces the function that was set before. umd_device is the driver's
 * handle of the device and the function's first argument. A NULL function removes the one that is
 * set. (RES-09)
 *
 * The function is called on a thread of the adapter that holds no mutex, one call at a time. It may
 * make every call on every device, but not call vidmm_adapter_stop. When a replacement, a removal
 * or vidmm_device_destroy returns, no call of the earlier function is in progress, unless the
 * caller is that function. Only one thread at a time may set the function of a device.
 *
 * After a failure the earlier function is still set. STATUS_INVALID_PARAMETER: the device does not
 * exist, or another thread destroyed it during the call. STATUS_NOT_SUPPORTED: the miniport is of
 * WDDM 1.x. STATUS_DEVICE_REMOVED: the adapter is stopping or has been removed.
 */
struct D3DDDIARG_TRIMRESIDENCYSET;
typedef int32_t vidmm_trim_residency_set_fn(void *umd_device,
					    const struct D3DDDIARG_TRIMRESIDENCYSET *args);
VIDMM_API VIDMM_MUST_CHECK vidmm_status
vidmm_device_set_trim(struct vidmm_device *device, void *umd_device,
		      vidmm_trim_residency_set_fn *trim_residency_set);

/* ---- D3DKMT clients (d3dkmthk.h) ----
 * The D3DKMT functions are plain symbols without a process argument. On Windows they act for the
 * calling process. Here they act for the process that the calling thread has selected
 * (vidmm_d3dkmt_enter), otherwise for the process of the whole program (vidmm_d3dkmt_attach). With
 * neither they return STATUS_UNSUCCESSFUL, unless the environment names a host or an adapter: the
 * variables VIDMM_SOCKET and VIDMM_ADAPTER, or the default path of a host's socket if the
 * program has created no host. Functions that the library does not implement are not
 * defined.
 *
 * Closing a process detaches it from the program. A thread that has selected a process must
 * select another, or NULL, before that process is closed. Threads of the same program may select
 * processes of different hosts.
 *
 * HANDLEs on Linux: where a D3DKMT function or a device callback takes a HANDLE of an event, the
 * value is the descriptor of an eventfd, which the library signals by adding 1. An NT handle that
 * a function returns (D3DKMTShareObjects, D3DKMTCreateSyncFile and others) is a file descriptor of
 * the calling program; close() ends it.
 */
/* Selects the process of the whole program. NULL: none. */
VIDMM_API void vidmm_d3dkmt_attach(struct vidmm_process *process);
/*
 * Selects a process for the calling thread, also while the program has none. NULL: none, so that
 * the process of the program applies again. Returns the process that the thread had selected
 * before, or NULL.
 */
VIDMM_API struct vidmm_process *vidmm_d3dkmt_enter(struct vidmm_process *process);

/*
 * Copies the name under which an NT handle was shared, as it was given, without a terminator.
 * handle is a file descriptor of the calling program. *units counts UTF-16 code units: in, the
 * capacity of `name`, which may be NULL if that is 0; out, the length of the name, 0 if it has
 * none. (SHR-25)
 *
 * STATUS_INVALID_PARAMETER: also a negative handle. STATUS_INVALID_HANDLE: not an NT handle of this
 * host. STATUS_BUFFER_TOO_SMALL: *units is set to the length that is needed and nothing is copied.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_nt_handle_name(struct vidmm_host *host, int handle,
							     uint16_t *name, uint32_t *units);

/* ---- sharing: the runtime's part ----
 * On Windows the runtime knows which resources are to be shared and tells the kernel. The driver
 * only calls pfnAllocateCb with the runtime's hResource.
 *
 * Each of the three functions returns STATUS_INVALID_PARAMETER also for a device or handle that
 * does not exist, and STATUS_DEVICE_REMOVED if the adapter is stopping or has been removed.
 */
/*
 * Marks a resource as shared, before pfnAllocateCb creates it. runtime_resource is the hResource of
 * that call. STATUS_INVALID_PARAMETER: also a resource that exists, with a finding. (ALF-35)
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_resource_set_shared(struct vidmm_device *device,
								  void *runtime_resource);
/*
 * Stores the global handle of a shared resource. km_resource is the hKMResource that pfnAllocateCb
 * returned.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_resource_share(struct vidmm_device *device,
							     uint32_t km_resource,
							     uint32_t *global_handle);
/*
 * Opens a shared resource on a device of the same or of another process. Stores the local handle of
 * the resource and those of its allocations. *allocation_count: in, the capacity of `allocations`;
 * out, their number. STATUS_BUFFER_TOO_SMALL: the capacity is below that number. Other failures:
 * the miniport's, from DxgkDdiOpenAllocation. (ROP-05)
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_resource_open(struct vidmm_device *device,
							    uint32_t global_handle,
							    uint32_t *km_resource,
							    uint32_t *allocations,
							    uint32_t *allocation_count);

/* ---- events and statistics ---- */
/* Receives an event. text is valid during the call only, and NULL for events that have none. */
typedef void vidmm_event_fn(void *context, const struct vidmm_event *event, const char *text);
/*
 * Subscribes to events: bit n of mask selects enum vidmm_event_type n; bits without a type are
 * ignored. The function is called on the thread that emits the event, which may hold mutexes of the
 * library, so it must not call vidmm. Returns the number of the subscription. Returns 0 if the host
 * has 64 subscriptions already, or host or fn is NULL.
 */
VIDMM_API uint32_t vidmm_subscribe(struct vidmm_host *host, uint64_t mask, vidmm_event_fn *fn,
				   void *context);
/*
 * Ends a subscription. On return no call of its function is in progress. Must not be called from
 * its function. Does nothing if there is no such subscription, or no more.
 */
VIDMM_API void vidmm_unsubscribe(struct vidmm_host *host, uint32_t subscription);
/* Returns a hash of all events so far; 0 if the host was created without hash_events. */
VIDMM_API uint64_t vidmm_event_hash(struct vidmm_host *host);
struct vidmm_counter {
	uint64_t count, sum[4]; /* events of one type, and the sums of their arguments */
};
/*
 * Reads the counter of one enum vidmm_event_type, since the host was created. An unknown type: all
 * members are 0. Does not block.
 */
VIDMM_API void vidmm_event_counter(struct vidmm_host *host, uint32_t event_type,
				   struct vidmm_counter *counter);
/*
 * Formats an event as one line of text, which stays the same between versions. text is that of the
 * event, or NULL. size is the capacity of buffer in bytes. Returns the length of the whole line, as
 * snprintf does.
 */
VIDMM_API int vidmm_event_format(const struct vidmm_event *event, const char *text, char *buffer,
				 size_t size);

/*
 * Returns the memory of a BAR of the device, of the lead one in a link, and stores its size in
 * bytes. Returns NULL if there is no such BAR. The caller only reads the memory, which changes as
 * the device and its driver write it. It is valid until the adapter stops. Does not block.
 */
VIDMM_API const void *vidmm_adapter_bar(struct vidmm_adapter *adapter, uint32_t index,
					uint64_t *size_bytes);
/*
 * Fills the statistics (statistics.h). The caller sets struct_size to the size that it was
 * compiled with and gets that many bytes. A smaller structure gets the members that it has; a
 * larger one gets zeros after the members that this library knows. With a struct_size below 4
 * nothing is written.
 */
VIDMM_API void vidmm_adapter_statistics(struct vidmm_adapter *adapter,
					struct vidmm_adapter_statistics *statistics);
/*
 * For tests: lets a node time out now, as if its first packet had run for TdrDelay; what follows is
 * the recovery that vidmm_tdr_options describe. node: NodeOrdinal + nodes of one adapter * the
 * index of the physical adapter. A completion that the adapter's watchdog thread sees first cancels
 * it. (TDR-02)
 *
 * STATUS_INVALID_PARAMETER: also no such node, with a finding. STATUS_INVALID_DEVICE_STATE, with a
 * reason: the GPU has no packet of the node (packets of hardware queues do not count), or the level
 * of the options is 0. STATUS_DEVICE_REMOVED: the adapter has been removed. Any thread may call.
 */
VIDMM_API VIDMM_MUST_CHECK vidmm_status vidmm_adapter_time_out(struct vidmm_adapter *adapter,
							       uint32_t node);
/*
 * For tests: while lose is true, DMA_COMPLETED interrupts of the miniport are lost, as if a line of
 * the device were broken. The miniport does not learn of it; the timeout detection then asks it for
 * its current fence (SUB-14) and may reset it. Returns how many the adapter has lost so far. Does
 * not block.
 */
VIDMM_API uint32_t vidmm_adapter_lose_completions(struct vidmm_adapter *adapter, bool lose);
/*
 * For tests: the n-th allocation of memory that the library makes from now on, on the calling
 * thread, fails once; 1: the next one. 0: none fails any more. The call in which it fails returns
 * STATUS_NO_MEMORY or the status that its page names, and changes nothing.
 */
VIDMM_API void vidmm_fail_allocation(uint32_t n);
/* What the system may refuse the library, for the two functions below. */
enum vidmm_failure {
	VIDMM_FAIL_ALLOCATION, /* heap memory */
	VIDMM_FAIL_MAPPING,    /* addresses, and memory objects in them */
	VIDMM_FAIL_UNMAPPING,  /* removing a mapping, for which the kernel may need memory */
	VIDMM_FAIL_DESCRIPTOR,
	VIDMM_FAIL_THREAD
};
/*
 * For tests: the n-th request of the kind that the library makes from now on, on the calling
 * thread, is refused once; 1: the next one. 0: none is refused any more. On the simulator all
 * threads of a host are one thread. The call to which a request belongs fails as for want of
 * memory (STATUS_NO_MEMORY or the status that its page names) and changes nothing, or succeeds
 * without what was refused. A mapping that cannot be removed stays until the process ends, with a
 * message on the standard error stream.
 *
 * Returns what was left of the countdown of the last call: 0 if its request was refused. n is not
 * checked; an unknown kind is ignored, and gives 0.
 */
VIDMM_API uint32_t vidmm_fail_nth(uint32_t failure, uint32_t n);
/*
 * For tests: each request of the kinds (bit n: kind n) that the library makes from now on, on the
 * calling thread, is refused once in `one_in` times on average, as the seed decides. 0: none is
 * refused any more. Ends what vidmm_fail_nth and vidmm_fail_allocation have begun, and the other
 * way around.
 */
VIDMM_API void vidmm_fail_by_seed(uint32_t failures, uint64_t seed, uint32_t one_in);
/*
 * For tests: checks every invariant of the memory manager (placements, lists, sums, arenas).
 * Aborts the program with a message at the first that does not hold, which is a bug of vidmm.
 * Takes time in proportion to the number of allocations and free ranges.
 */
VIDMM_API void vidmm_adapter_check(struct vidmm_adapter *adapter);

/* Where a thread is in a miniport, for reports about a crash or a hang of a driver. */
#define VIDMM_PLACE_BYTES 64
struct vidmm_driver_place {
	/* "DriverEntry", "DxgkDdiStartDevice", ...; "": the thread is in none of these */
	char routine[VIDMM_PLACE_BYTES];
	/* with DxgkDdiQueryAdapterInfo: the DXGK_QUERYADAPTERINFOTYPE; else -1 */
	int32_t query_type;
	const char *waits_in; /* the kernel service that the thread waits in; NULL: none */
};
/*
 * Describes the calling thread. False: it is not in a miniport, as far as the library knows; a
 * thread that a driver has created is known only while it waits. Async-signal-safe.
 */
VIDMM_API bool vidmm_driver_place(struct vidmm_driver_place *place);

/* The bug check that a miniport has asked for by KeBugCheckEx. It ends the process by SIGABRT. */
struct vidmm_driver_bug_check {
	uint32_t code;
	uint64_t parameters[4];
};
/*
 * Stores the bug check that the calling thread has asked for. False: none. For a handler of
 * SIGABRT; async-signal-safe. (NT-09)
 */
VIDMM_API bool vidmm_driver_bug_check(struct vidmm_driver_bug_check *check);

/*
 * A block of pool of a miniport with VidmmVerifyDriver, or an MDL that a DDI got, for reports about
 * a crash of the driver.
 */
struct vidmm_driver_block {
	char tag[5];
	bool is_mdl; /* an MDL (NT-25); the tag, caller and allocated say nothing */
	bool freed;
	uint64_t size_bytes;
	int64_t offset;     /* of the address, from the begin of the block */
	const void *caller; /* the return address of the service that allocated it */
	struct vidmm_driver_place allocated; /* where the thread was then; no waits_in */
};
/*
 * Finds the block to which an address belongs that the calling thread of a driver has used. False:
 * none, or without VidmmVerifyDriver. Reads memory that other threads may change: the caller is
 * about to end, and may crash here.
 */
VIDMM_API bool vidmm_driver_block(const void *address, struct vidmm_driver_block *block);

#ifdef __cplusplus
}
#endif
#endif
