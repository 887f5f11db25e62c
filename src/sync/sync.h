/* SPDX-License-Identifier: MIT */
/*
 * sync: synchronization objects: the types and flags that may be created (flags.c), objects and
 * their openings (object.c), the memory of fence values (page.c), waits (wait.c) and signals
 * (signal.c).
 *
 * An object is the state that several openings share. An opening is what a handle names. It belongs
 * to one process; the opening of a monitored fence belongs to one device, too. The numbers of types
 * and flags are those of the DDI (static asserts in the doors).
 */
#ifndef VMM_SYNC_SYNC_H
#define VMM_SYNC_SYNC_H

#include "base/base.h"
#include "object/nt_handle.h"

enum vmm_sync_type {
	VMM_SYNC_MUTEX = 1,
	VMM_SYNC_SEMAPHORE,
	VMM_SYNC_FENCE,
	VMM_SYNC_CPU_NOTIFICATION,
	VMM_SYNC_MONITORED_FENCE,
	VMM_SYNC_PERIODIC_MONITORED_FENCE,
	VMM_SYNC_TYPE_LIMIT
};

#define VMM_SYNC_SHARED          0x001u
#define VMM_SYNC_NT_SECURITY     0x002u
#define VMM_SYNC_CROSS_ADAPTER   0x004u
#define VMM_SYNC_TOP_OF_PIPELINE 0x008u
#define VMM_SYNC_NO_SIGNAL       0x010u
#define VMM_SYNC_NO_WAIT         0x020u
#define VMM_SYNC_NO_MAX_ON_TDR   0x040u
#define VMM_SYNC_NO_GPU_ACCESS   0x080u
#define VMM_SYNC_SIGNAL_BY_KMD   0x100u
#define VMM_SYNC_UNUSED          0x200u
#define VMM_SYNC_UNWAIT_ON_LAST  0x400u /* UnwaitCpuWaitersOnlyOnDestroy */

/* ---- what may be created (flags.c); pure functions ---- */

/* WDDM versions, as the upper digits of the interface version that a miniport registers. */
#define VMM_SYNC_VERSION(interface_version) ((interface_version) >> 12)
enum {
	VMM_SYNC_WDDM_1_0 = 0x1,
	VMM_SYNC_WDDM_1_1 = 0x2,
	VMM_SYNC_WDDM_1_2 = 0x3,
	VMM_SYNC_WDDM_1_3 = 0x4,
	VMM_SYNC_WDDM_2_0 = 0x5,
	VMM_SYNC_WDDM_2_2 = 0x7,
	VMM_SYNC_WDDM_3_0 = 0xF,
	VMM_SYNC_WDDM_3_1 = 0x10,
	VMM_SYNC_WDDM_3_2 = 0x11
};

struct vmm_sync_object;
struct vmm_sync_refusal {
	const char *rule, *why; /* static */
};
/*
 * Returns whether an object of that type may be created with those flags at that version. The order
 * of the checks is fixed: type, reserved bits, sharing, combinations with the type. false: *refusal
 * has the rule and the reason of the first check that fails. first_form: the call of WDDM 1.0,
 * which has no flags.
 */
bool vmm_sync_may_create(uint32_t version, bool first_form, uint32_t type, uint32_t flags,
			 struct vmm_sync_refusal *refusal) VMM_MUST_CHECK;

/* The same for opening an existing object (SFL-34). */
bool vmm_sync_may_open(uint32_t version, uint32_t type, uint32_t flags,
		       struct vmm_sync_refusal *refusal) VMM_MUST_CHECK;

/* ---- objects of clients (object.c) ---- */

struct vmm_sync_request {
	uint32_t type, flags;
	bool first_form;
	bool owned;                /* mutexes: created held (MTX-01) */
	uint32_t max_count, count; /* semaphores */
	uint64_t value;            /* fences: the initial value */
	uint64_t event;            /* CPU notification: the client's handle */
	uint32_t affinity;         /* fences: mask of physical adapters; 0: all */
	/*
	 * Periodic fences: the handle of the adapter whose display they follow, the target, and how
	 * long before its vertical sync they rise.
	 */
	uint32_t adapter, target;
	uint64_t time_100ns;
	/* out */
	uint32_t handle;
	uint32_t global_handle; /* 0: none (SFL-02, SFL-06) */
	void *cpu_address;      /* monitored fences: where the client reads the value */
	uint64_t gpu_address;   /* GPU address of the value (MFN-04); 0: none */
};
/*
 * Creates an object and an opening of the device, and fills the out members. Returns
 * VMM_INVALID_PARAMETER with a finding; VMM_NO_MEMORY; VMM_INVALID_HANDLE: not an event (CPN-02);
 * VMM_NOT_SUPPORTED: a periodic fence of an adapter without display targets, or of another adapter
 * than the device's. The caller is inside the device.
 */
vmm_status vmm_sync_create(struct vmm_device *device,
			   struct vmm_sync_request *request) VMM_MUST_CHECK;
/*
 * Destroys the opening. Returns VMM_INVALID_PARAMETER with a finding if the process may not destroy
 * that handle (SYN-12, MFN-35); VMM_DEVICE_REMOVED if the opening has ended with a device whose
 * adapter has stopped (PNP-03). inside: the device that the caller is inside, or NULL. A
 * notification that the miniport signals can be destroyed only inside its device (CPN-06).
 */
vmm_status vmm_sync_destroy(struct vmm_process *process, const struct vmm_device *inside,
			    uint32_t handle) VMM_MUST_CHECK;
/*
 * Returns the hazard handle of the device of a notification that the miniport signals. NULL: the
 * handle is not one.
 */
void *vmm_sync_driver_device(struct vmm_process *process, uint32_t handle);
/*
 * Passes a record of the client about such a notification to the miniport, and returns its answer.
 * VMM_INVALID_PARAMETER with a finding: the handle is not such a notification of the device that
 * the caller is inside. (CPN-10)
 */
vmm_status vmm_sync_pass_record(struct vmm_device *inside, uint32_t handle, uint32_t flags,
				void *record) VMM_MUST_CHECK;

struct vmm_sync_periodic_source;
/*
 * Calls from sync to the miniport, implemented by the module that owns the port. Called with no
 * lock held. A failure of `create_event` is returned to the client as it is.
 */
struct vmm_sync_driver {
	vmm_status (*create_event)(struct vmm_device *device, int event, void **result);
	void (*destroy_event)(struct vmm_adapter *adapter, void *event);
	vmm_status (*pass_record)(struct vmm_device *device, void *event, uint32_t flags,
				  void *record);
	/*
	 * Maps the pages at a GPU virtual address of the device, if it has those (MFN-04). After
	 * unmap_pages has returned no GPU accesses them.
	 */
	vmm_status (*map_pages)(struct vmm_device *device, const struct vmm_os_memory *pages,
				uint64_t size_bytes, void **window, uint64_t *address);
	void (*unmap_pages)(struct vmm_device *device, void *window);
	/* Number of video present targets; 0: the adapter has no display (PMF-06). */
	uint32_t (*target_count)(const struct vmm_adapter *adapter);
	/*
	 * Starts the periodic notifications of a target (PMF-03). VMM_INVALID_PARAMETER: the time
	 * does not fit the frames of the target.
	 */
	vmm_status (*begin_periodic)(struct vmm_adapter *adapter, uint32_t target,
				     uint64_t time_100ns, struct vmm_sync_periodic_source **source);
};

/* ---- periodic fences (periodic.c) ---- */

/*
 * The source of a periodic fence: the miniport's notifications that raise it. Its owner allocates
 * it and sets `ended`. From the return of `begin_periodic` on it belongs to sync, until `ended` is
 * called (with the sync lock held) or vmm_sync_end_periodic_source returns.
 */
struct vmm_sync_periodic_source {
	/* NULL: the fence has ended. */
	struct vmm_sync_object *object VMM_GUARDED_BY(vmm_sync_lock_class);
	void (*ended)(struct vmm_sync_periodic_source *source);
};
/*
 * Raises the fence by `count`, the number of vertical syncs that are due. The caller may hold the
 * state lock or an outer one.
 */
void vmm_sync_signal_periodic(struct vmm_world *world, struct vmm_sync_periodic_source *source,
			      uint32_t count);
/* Detaches the source when its adapter stops: the fence keeps its value. `ended` is not called. */
void vmm_sync_end_periodic_source(struct vmm_world *world, struct vmm_sync_periodic_source *source);

/*
 * Begin and end the synchronization state of a device. At the end no call is inside the device.
 * (SYN-14)
 */
void vmm_sync_begin_device(struct vmm_device *device);
void vmm_sync_end_device(struct vmm_device *device);
/* Makes calls of the process that wait for a keyed mutex give up: the client has gone. */
void vmm_keyed_disturb(struct vmm_process *process);
/* Ends all synchronization objects of the process. (SYN-15) */
void vmm_sync_end_process(struct vmm_process *process);
/*
 * Frees the mutexes that contexts of the lost device hold. The caller may hold the paging and state
 * locks. (TDRS-13)
 */
void vmm_sync_lose_owners(struct vmm_device *device);
/*
 * Raises the fences of the lost device to their largest value. The caller may hold the paging and
 * state locks. (TDRS-01)
 */
void vmm_sync_lose_device(struct vmm_device *device);

/* ---- sharing (share.c) ---- */

#define VMM_SYNC_ACCESS_WAIT   0x1u /* access rights of an NT handle (SHR-10) */
#define VMM_SYNC_ACCESS_SIGNAL 0x2u
/*
 * Fills the target for an NT handle of the object, with a reference that the caller puts. Returns
 * VMM_INVALID_PARAMETER with a finding if the object may not be shared (SHR-06); VMM_DEVICE_REMOVED
 * if the opening has ended with a device whose adapter has stopped (PNP-03).
 */
vmm_status vmm_sync_target(struct vmm_process *process, uint32_t handle,
			   struct vmm_nt_target *target) VMM_MUST_CHECK;
/*
 * Returns a reference to an object that is to be part of a bundle (SHR-07). NULL with a finding: it
 * may not be shared.
 */
struct vmm_sync_object;
struct vmm_sync_object *vmm_sync_hold(struct vmm_process *process, uint32_t handle) VMM_MUST_CHECK;
void vmm_sync_put(struct vmm_sync_object *object);
/* Opens the object for the device's process, and for the device if it is a fence. */
vmm_status vmm_sync_open_held(struct vmm_device *device, struct vmm_sync_object *object,
			      uint32_t *handle) VMM_MUST_CHECK;
struct vmm_sync_open {
	uint64_t nt_handle;
	/* NULL: the call of WDDM 1.0, which has no flags and returns no addresses */
	struct vmm_device *device;
	uint32_t flags, affinity;
	/* out */
	uint32_t handle;
	void *cpu_address;    /* NULL: none */
	uint64_t gpu_address; /* 0: none */
};
/*
 * Opens an object by its global handle, which any process may use (SHR-31). Returns
 * VMM_INVALID_PARAMETER with a finding: not a global handle (SHR-02); VMM_NO_MEMORY.
 */
vmm_status vmm_sync_open_global(struct vmm_process *process, uint32_t global,
				uint32_t *handle) VMM_MUST_CHECK;
/*
 * Opens an object by its NT handle. Returns, with a finding each: VMM_INVALID_HANDLE: not an NT
 * handle (SHR-13); VMM_OBJECT_TYPE_MISMATCH: not one of a synchronization object (SHR-15).
 */
vmm_status vmm_sync_open_shared(struct vmm_process *process,
				struct vmm_sync_open *open) VMM_MUST_CHECK;

/* ---- signals and waits of the CPU ---- */

#define VMM_SYNC_SIGNALS_MAX       32u /* MFN-20 */
#define VMM_SYNC_ENQUEUE_CPU_EVENT 0x2u
#define VMM_SYNC_ALLOW_REWIND      0x4u
#define VMM_SYNC_WAIT_ANY          0x1u

struct vmm_sync_list {
	const uint32_t *handles; /* copied from the caller */
	const uint64_t *values;
	uint32_t count, flags;
};

/*
 * The device of a call. Either the caller is inside it, or `device` is NULL and device_handle names
 * it; then the device is looked up under the same hold of the process lock as the objects. The
 * calls return VMM_PENDING if that device is paused: the caller must enter it first.
 */
struct vmm_sync_caller {
	struct vmm_process *process;
	struct vmm_device *device;
	uint32_t device_handle;
};
/*
 * Fast path of a signal or wait on one fence: allocates nothing, and takes no lock, except that a
 * signal takes the sync lock if a thread waits for the fence. VMM_OK: done. VMM_PENDING: nothing
 * has changed, and the caller continues with vmm_sync_signal or vmm_sync_poll.
 */
struct vmm_sync_one {
	uint32_t device, handle;
	uint64_t value;
};
vmm_status vmm_sync_signal_one(const struct vmm_process *process,
			       const struct vmm_sync_one *one) VMM_MUST_CHECK;
vmm_status vmm_sync_poll_one(const struct vmm_process *process,
			     const struct vmm_sync_one *one) VMM_MUST_CHECK;
/*
 * Signals every entry of the list, or none if one of them is invalid. Allocates nothing. (MFN-20)
 */
vmm_status vmm_sync_signal(const struct vmm_sync_caller *caller,
			   const struct vmm_sync_list *list) VMM_MUST_CHECK;
/*
 * Checks a wait without sleeping. Returns VMM_OK: satisfied; VMM_PENDING: not satisfied, or the
 * device is paused; or an error. Allocates nothing.
 */
vmm_status vmm_sync_poll(const struct vmm_sync_caller *caller,
			 const struct vmm_sync_list *list) VMM_MUST_CHECK;
/*
 * Sleeps until the wait is satisfied (MFN-11). The call leaves the device while that is paused
 * (PNP-05) and then enters it again; *device is NULL if the device has ended meanwhile.
 *
 * VMM_OK: satisfied. VMM_CANCELLED: a fence or the device has ended (MFN-17). VMM_DEVICE_REMOVED:
 * the device or its adapter is lost (LOCK-33, TDRS-06). VMM_INVALID_PARAMETER (MFN-08, MFN-14,
 * SYN-22) or VMM_ACCESS_DENIED (SHR-10, SFL-16), with a finding each. VMM_NO_MEMORY: also over the
 * limit of the process. VMM_UNSUCCESSFUL: no thread can run any more.
 */
vmm_status vmm_sync_wait(struct vmm_device **device, struct vmm_hazard_guard *visit,
			 const struct vmm_sync_list *list) VMM_MUST_CHECK;
/*
 * Starts a wait that sets the event when it ends, and returns at once. VMM_INVALID_HANDLE: not an
 * event (MFN-13). (MFN-12)
 */
vmm_status vmm_sync_wait_event(struct vmm_device *device, const struct vmm_sync_list *list,
			       uint64_t event) VMM_MUST_CHECK;

/* ---- keyed mutexes (keyed.c) ---- */

struct vmm_keyed_request {
	uint64_t key;
	const void *data; /* copied from the caller, for openings */
	uint32_t data_bytes;
	bool nt_security; /* it gets no global handle (KMX-06) */
	/* out */
	uint32_t handle, global_handle;
};
vmm_status vmm_keyed_create(struct vmm_process *process,
			    struct vmm_keyed_request *request) VMM_MUST_CHECK;
struct vmm_keyed_open {
	uint32_t global;     /* its global handle */
	bool with_data;      /* the caller has a buffer for private data, ... */
	uint32_t data_bytes; /* ... and this is its size (KMX-08) */
	uint32_t handle;     /* out */
};
/*
 * Opens a keyed mutex by its global handle. VMM_INVALID_PARAMETER with a finding (KMX-03, KMX-08);
 * VMM_NO_MEMORY.
 */
vmm_status vmm_keyed_open(struct vmm_process *process, struct vmm_keyed_open *open) VMM_MUST_CHECK;
/*
 * Returns a reference to a keyed mutex that is to be part of a bundle (SHR-07). NULL with a
 * finding: it was not made with NtSecuritySharing. The opening becomes tied to the device whose
 * resource is in the bundle: once that is lost, acquires through it fail (KMX-23).
 */
struct vmm_keyed;
struct vmm_keyed *vmm_keyed_hold(struct vmm_device *device, uint32_t handle) VMM_MUST_CHECK;
void vmm_keyed_put(struct vmm_keyed *keyed);
/*
 * vmm_keyed_open for a keyed mutex of a bundle, in the process of the device. The opening is tied
 * to the device.
 */
vmm_status vmm_keyed_open_held(struct vmm_device *device, struct vmm_keyed *keyed,
			       struct vmm_keyed_open *open) VMM_MUST_CHECK;
vmm_status vmm_keyed_destroy(struct vmm_process *process, uint32_t handle) VMM_MUST_CHECK;
struct vmm_keyed_access {
	uint64_t key, fence;  /* fence: out of an acquire, into a release */
	uint64_t deadline_ns; /* acquire: time on the world's clock, or VMM_OS_FOREVER */
	/* the library's buffer; data_bytes are copied out of or into the mutex */
	void *data;
	uint32_t data_bytes;
};
/*
 * Acquires through an opening. VMM_OK: the opening holds the mutex. VMM_TIMEOUT: the deadline
 * passed (KMX-14, KMX-15, KMX-18). VMM_ABANDONED: a holder ended without releasing it (KMX-19).
 * VMM_CANCELLED: the handle was destroyed meanwhile (KMX-22), or the client has gone.
 * VMM_DEVICE_REMOVED: the device that the opening is tied to, or its adapter, is lost (KMX-23).
 * VMM_INVALID_PARAMETER, with a finding: not a live handle (KMX-21), or too many data_bytes
 * (KMX-20). VMM_UNSUCCESSFUL: no thread can run any more.
 */
vmm_status vmm_keyed_acquire(struct vmm_process *process, uint32_t handle,
			     struct vmm_keyed_access *access) VMM_MUST_CHECK;
/*
 * Releases through an opening. VMM_OK: the oldest waiter for the new key has the mutex, or no
 * opening has it. VMM_INVALID_PARAMETER, with a finding: not a live handle (KMX-21), too many
 * data_bytes (KMX-20), or the opening does not hold the mutex (KMX-17).
 */
vmm_status vmm_keyed_release(struct vmm_process *process, uint32_t handle,
			     const struct vmm_keyed_access *access) VMM_MUST_CHECK;

/* ---- fences of the library, which clients can only wait for (MFN-35) ---- */

struct vmm_sync;
/* for_gpu: commands of the device may store the value, if it has GPU virtual addresses. */
vmm_status vmm_sync_make_owned(struct vmm_device *device, bool for_gpu,
			       struct vmm_sync **sync) VMM_MUST_CHECK;
/*
 * Creates a handle in the device's process, whose lock the caller holds. Returns 0 without memory.
 */
uint32_t vmm_sync_publish_owned_locked(struct vmm_sync *sync) VMM_MUST_CHECK
	VMM_REQUIRES(vmm_process_lock_class);
void *vmm_sync_address(const struct vmm_sync *sync); /* in the client, read only */
/* For the GPU, in the device's address space; 0: none. */
uint64_t vmm_sync_gpu_address(const struct vmm_sync *sync);
void vmm_sync_set(struct vmm_sync *sync, uint64_t value);
/*
 * For a fence whose value the GPU stores: its value, the word for the miniport to store into, and
 * notification of the waiters that the word changed. vmm_sync_owned_notify takes over the reference
 * of vmm_sync_owned_get; no sync or state lock held.
 */
struct vmm_sync_object;
uint64_t vmm_sync_owned_value(const struct vmm_sync *sync);
void *vmm_sync_owned_word(const struct vmm_sync *sync);
struct vmm_sync_object *vmm_sync_owned_get(const struct vmm_sync *sync);
void vmm_sync_owned_notify(struct vmm_sync_object *object);
void vmm_sync_end_owned(struct vmm_sync *sync); /* ends all waits for it */

#endif
