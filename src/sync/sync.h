/* SPDX-License-Identifier: MIT */
/*
 * sync: synchronization objects. What they are and may be created as (flags.c), who holds them (object.c), where the values
 * of fences lie (page.c), who waits for them (wait.c) and who signals them (signal.c).
 *
 * An object is what several openings have in common; an opening is what a handle names: one process's, and with fences
 * one device's. Numbers of types and flags are those of the DDI; the doors check that they are.
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

/* ---- what may be created (flags.c); pure ---- */

/* Interface versions as the upper digits of the number that a miniport registers count them. */
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
 * May an object of that type be created with those flags at that version? The checks come in one order: the type, reserved
 * bits, sharing, what fits the type. False: *refusal says which rule the first that fails is. first_form: by the call of
 * WDDM 1.0, which has no flags.
 */
bool vmm_sync_may_create(uint32_t version, bool first_form, uint32_t type, uint32_t flags,
			 struct vmm_sync_refusal *refusal) VMM_MUST_CHECK;

/* The same for an opening of an object that exists (SFL-34). */
bool vmm_sync_may_open(uint32_t version, uint32_t type, uint32_t flags,
		       struct vmm_sync_refusal *refusal) VMM_MUST_CHECK;

/* ---- objects of clients (object.c) ---- */

struct vmm_sync_request {
	uint32_t type, flags;
	bool first_form;
	bool owned;                /* mutexes: from the beginning (MTX-01) */
	uint32_t max_count, count; /* semaphores */
	uint64_t value;            /* fences: the initial one */
	uint64_t event;            /* CPU notification: the client's handle */
	uint32_t affinity;         /* fences: of physical adapters; 0: all */
	/* Periodic fences: the handle of the adapter whose display they follow, which target, how long before its sync. */
	uint32_t adapter, target;
	uint64_t time_100ns;
	/* out */
	uint32_t handle;
	uint32_t global_handle; /* 0: it has none (SFL-02, SFL-06) */
	void *cpu_address;      /* monitored fences: where the client reads the value */
	uint64_t gpu_address;   /* and where its GPU finds it (MFN-04); 0: nowhere */
};
/*
 * VMM_INVALID_PARAMETER and a finding; VMM_NO_MEMORY; VMM_INVALID_HANDLE: the event (CPN-02); VMM_NOT_SUPPORTED: everything
 * about it is right and the type is not built. The device is alive.
 */
vmm_status vmm_sync_create(struct vmm_device *device,
			   struct vmm_sync_request *request) VMM_MUST_CHECK;
/*
 * VMM_INVALID_PARAMETER and a finding: not a handle that the process may destroy (SYN-12, MFN-35). inside: the device that the
 * caller is inside, or NULL; what the miniport signals ends inside its own only (CPN-06).
 */
vmm_status vmm_sync_destroy(struct vmm_process *process, const struct vmm_device *inside,
			    uint32_t handle) VMM_MUST_CHECK;
/* What live.h knows the device by of a notification that the miniport signals; NULL: it is none. */
void *vmm_sync_driver_device(struct vmm_process *process, uint32_t handle);
/*
 * CPN-10: a record of our caller's about such a notification of the device that it is inside. VMM_INVALID_PARAMETER and a
 * finding: the handle is not one; otherwise what the miniport says.
 */
vmm_status vmm_sync_tell_driver(struct vmm_device *inside, uint32_t handle, uint32_t flags,
				void *record) VMM_MUST_CHECK;

/*
 * What the miniport has to do with them, from whoever knows the port. No lock held. Of `create_event` any failure is the
 * client's to see.
 */
struct vmm_sync_beat;
struct vmm_sync_driver {
	vmm_status (*create_event)(struct vmm_device *device, int event, void **result);
	void (*destroy_event)(struct vmm_adapter *adapter, void *event);
	vmm_status (*tell_event)(struct vmm_device *device, void *event, uint32_t flags,
				 void *record);
	/* MFN-04, where the device has GPU virtual addresses. No GPU reaches them once unmap_pages has come back. */
	vmm_status (*map_pages)(struct vmm_device *device, const struct vmm_os_memory *pages,
				uint64_t size_bytes, void **window, uint64_t *address);
	void (*unmap_pages)(struct vmm_device *device, void *window);
	/* Of video present, 0: it has no display (PMF-06). */
	uint32_t (*target_count)(const struct vmm_adapter *adapter);
	/* PMF-03. VMM_INVALID_PARAMETER: the time does not fit the target's frames. */
	vmm_status (*begin_beat)(struct vmm_adapter *adapter, uint32_t target, uint64_t time_100ns,
				 struct vmm_sync_beat **beat);
};

/* ---- periodic fences (periodic.c) ---- */

/*
 * What makes a periodic fence rise; its owner's memory, which it fills with `ended`. `begin_beat` gives it away: until `ended`
 * has been called, with the sync lock held, or vmm_sync_end_beat has come back.
 */
struct vmm_sync_beat {
	struct vmm_sync_object *object; /* NULL: nobody has it any more; guarded by the sync lock */
	void (*ended)(struct vmm_sync_beat *beat);
};
/* So many vertical syncs are due. The state lock held at most. */
void vmm_sync_give_beat(struct vmm_world *world, struct vmm_sync_beat *beat, uint32_t count);
/* Its adapter stops: the fence stays as it is. `ended` is not called. */
void vmm_sync_end_beat(struct vmm_world *world, struct vmm_sync_beat *beat);

/* SYN-14: nobody is inside the device any more. */
void vmm_sync_begin_device(struct vmm_device *device);
void vmm_sync_end_device(struct vmm_device *device);
/* vmm_process_disturb, for those of its calls that wait for a keyed mutex. */
void vmm_keyed_disturb(struct vmm_process *process);
/* SYN-15 */
void vmm_sync_end_process(struct vmm_process *process);
/* TDRS-13: the mutexes that its contexts hold are free; paging and state locks held at most. */
void vmm_sync_lose_owners(struct vmm_device *device);
/* TDRS-01: its fences have their largest value; paging and state locks held at most. */
void vmm_sync_lose_device(struct vmm_device *device);

/* ---- sharing (share.c) ---- */

#define VMM_SYNC_ACCESS_WAIT   0x1u /* of an NT handle (SHR-10) */
#define VMM_SYNC_ACCESS_SIGNAL 0x2u
/*
 * What an NT handle of it would name, with a reference that the caller puts. VMM_INVALID_PARAMETER and a finding: not an
 * object that may be shared (SHR-06).
 */
vmm_status vmm_sync_target(struct vmm_process *process, uint32_t handle,
			   struct vmm_nt_target *target) VMM_MUST_CHECK;
/* For what keeps an object with others (SHR-07): a reference to one that may be shared; NULL and a finding: it may not. */
struct vmm_sync_object;
struct vmm_sync_object *vmm_sync_hold(struct vmm_process *process, uint32_t handle) VMM_MUST_CHECK;
void vmm_sync_put(struct vmm_sync_object *object);
/* A handle of the process for it; fences are the device's. */
vmm_status vmm_sync_open_held(struct vmm_process *process, struct vmm_device *device,
			      struct vmm_sync_object *object, uint32_t *handle) VMM_MUST_CHECK;
struct vmm_sync_open {
	uint64_t nt_handle;
	struct vmm_device
		*device; /* NULL: the first form, which has no flags and gives no addresses */
	uint32_t flags, affinity;
	/* out */
	uint32_t handle;
	void *cpu_address;    /* NULL: it has none */
	uint64_t gpu_address; /* 0: likewise */
};
/* By its global handle, which anybody may use (SHR-31). VMM_INVALID_PARAMETER and a finding: it is none (SHR-02); VMM_NO_MEMORY. */
vmm_status vmm_sync_open_global(struct vmm_process *process, uint32_t global,
				uint32_t *handle) VMM_MUST_CHECK;
/* With a finding: VMM_INVALID_HANDLE, VMM_OBJECT_TYPE_MISMATCH: not an NT handle of a synchronization object (SHR-13, SHR-15). */
vmm_status vmm_sync_open_shared(struct vmm_process *process,
				struct vmm_sync_open *open) VMM_MUST_CHECK;

/* ---- signals and waits of the CPU ---- */

#define VMM_SYNC_SIGNALS_MAX       32u /* MFN-20 */
#define VMM_SYNC_ENQUEUE_CPU_EVENT 0x2u
#define VMM_SYNC_ALLOW_REWIND      0x4u
#define VMM_SYNC_WAIT_ANY          0x1u

struct vmm_sync_list {
	const uint32_t *handles; /* our copies */
	const uint64_t *values;
	uint32_t count, flags;
};

/*
 * The device that a call names: one that the caller is inside, or (device NULL) by its handle, whose look-up then shares the
 * process's lock with that of the objects. VMM_PENDING in that case: the device is paused, and must be entered first.
 */
struct vmm_sync_caller {
	struct vmm_process *process;
	struct vmm_device *device;
	uint32_t device_handle;
};
/*
 * One fence and value, and its device, without a lock. VMM_OK: that was all of it. VMM_PENDING: nothing has changed, and it
 * takes vmm_sync_signal, or vmm_sync_poll, to say what is to be done. Allocates nothing.
 */
struct vmm_sync_one {
	uint32_t device, handle;
	uint64_t value;
};
vmm_status vmm_sync_signal_one(const struct vmm_process *process,
			       const struct vmm_sync_one *one) VMM_MUST_CHECK;
vmm_status vmm_sync_poll_one(const struct vmm_process *process,
			     const struct vmm_sync_one *one) VMM_MUST_CHECK;
/* MFN-20. All of it or, for whatever is wrong with one entry, nothing. Allocates nothing. */
vmm_status vmm_sync_signal(const struct vmm_sync_caller *caller,
			   const struct vmm_sync_list *list) VMM_MUST_CHECK;
/* VMM_OK: the wait is satisfied, or failed; VMM_PENDING: it is not, or the device is paused. Allocates nothing. */
vmm_status vmm_sync_poll(const struct vmm_sync_caller *caller,
			 const struct vmm_sync_list *list) VMM_MUST_CHECK;
/*
 * Blocks until it is satisfied (MFN-11). Comes out of the device while that is paused (PNP-05), and goes in again; *device
 * NULL: it has ended meanwhile. VMM_CANCELLED: the end of a fence, or of the device (MFN-17).
 */
vmm_status vmm_sync_wait(struct vmm_device **device, struct vmm_visit *visit,
			 const struct vmm_sync_list *list) VMM_MUST_CHECK;
/* MFN-12: returns at once; the event is set when the wait ends. VMM_INVALID_HANDLE: no event (MFN-13). */
vmm_status vmm_sync_wait_event(struct vmm_device *device, const struct vmm_sync_list *list,
			       uint64_t event) VMM_MUST_CHECK;

/* ---- keyed mutexes (keyed.c) ---- */

struct vmm_keyed_request {
	uint64_t key;
	const void *data; /* our copy, for whoever opens it */
	uint32_t data_bytes;
	bool nt_security; /* no global handle (KMX-06) */
	/* out */
	uint32_t handle, global_handle;
};
vmm_status vmm_keyed_create(struct vmm_process *process,
			    struct vmm_keyed_request *request) VMM_MUST_CHECK;
struct vmm_keyed_open {
	uint32_t global;     /* its global handle */
	bool with_data;      /* the caller has a buffer for private data, ... */
	uint32_t data_bytes; /* ... and says that it is so large (KMX-08) */
	uint32_t handle;     /* out */
};
/* VMM_INVALID_PARAMETER and a finding (KMX-03, KMX-08); VMM_NO_MEMORY. */
vmm_status vmm_keyed_open(struct vmm_process *process, struct vmm_keyed_open *open) VMM_MUST_CHECK;
/*
 * For what keeps one with others (SHR-07): a reference to one made with NtSecuritySharing; NULL and a finding: it is none. The
 * handle is tied to the device, of whose resource it goes into a bundle: with that one, acquires fail (KMX-23).
 */
struct vmm_keyed;
struct vmm_keyed *vmm_keyed_hold(struct vmm_device *device, uint32_t handle) VMM_MUST_CHECK;
void vmm_keyed_put(struct vmm_keyed *keyed);
/* The same as vmm_keyed_open without a global handle. device: NULL: tied to none. */
vmm_status vmm_keyed_open_held(struct vmm_process *process, struct vmm_device *device,
			       struct vmm_keyed *keyed, struct vmm_keyed_open *open) VMM_MUST_CHECK;
vmm_status vmm_keyed_destroy(struct vmm_process *process, uint32_t handle) VMM_MUST_CHECK;
struct vmm_keyed_access {
	uint64_t key, fence;  /* fence: out of an acquire, into a release */
	uint64_t deadline_ns; /* acquire: of the world's clock; VMM_OS_FOREVER */
	void *data;           /* ours; as many bytes go out of or into the mutex */
	uint32_t data_bytes;
};
/*
 * VMM_OK; VMM_TIMEOUT; VMM_ABANDONED: its holder ended without releasing it; VMM_CANCELLED: the handle was destroyed meanwhile;
 * VMM_DEVICE_REMOVED: the device, or the adapter, of its bundle's resource is lost (KMX-23);
 * VMM_INVALID_PARAMETER and a finding.
 */
vmm_status vmm_keyed_acquire(struct vmm_process *process, uint32_t handle,
			     struct vmm_keyed_access *access) VMM_MUST_CHECK;
vmm_status vmm_keyed_release(struct vmm_process *process, uint32_t handle,
			     const struct vmm_keyed_access *access) VMM_MUST_CHECK;

/* ---- fences of our own, which clients can only wait for (MFN-35) ---- */

struct vmm_sync;
vmm_status vmm_sync_make_owned(struct vmm_device *device, struct vmm_sync **sync) VMM_MUST_CHECK;
/* A handle of the device's process, whose lock is held; 0: no memory. */
uint32_t vmm_sync_publish_owned_locked(struct vmm_sync *sync) VMM_MUST_CHECK;
void *vmm_sync_address(const struct vmm_sync *sync); /* in the client, read only */
void vmm_sync_set(struct vmm_sync *sync, uint64_t value);
/*
 * One whose value the GPU stores: what it is, the word for the miniport to store into, and telling who waits that it moved (with
 * no sync or state lock held; the object by a reference, which goes).
 */
struct vmm_sync_object;
uint64_t vmm_sync_owned_value(const struct vmm_sync *sync);
void *vmm_sync_owned_word(const struct vmm_sync *sync);
struct vmm_sync_object *vmm_sync_owned_get(const struct vmm_sync *sync);
void vmm_sync_owned_tell(struct vmm_sync_object *object);
void vmm_sync_end_owned(struct vmm_sync *sync); /* frees who waits */

#endif
