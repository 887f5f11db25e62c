/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of nt. There are five leaf locks, never nested: dispatcher (waitable objects
 * and timers), dpc, objects (threads, handles), memory (pool, physical ranges, mappings), registry.
 */
#ifndef VMM_NT_NT_INTERNAL_H
#define VMM_NT_NT_INTERNAL_H

#include <setjmp.h>
#include <stdarg.h>
#include "nt/nt.h"
/* A miniport that is loaded as a shared object must find the services (lib/libvidmm.map). */
#pragma GCC visibility push(default)
#include <ntddk.h>
#pragma GCC visibility pop

enum { SLOT_THREAD = VMM_NT_SLOT_IRQL + 1, SLOT_IDENTITY };

/* Values of DISPATCHER_HEADER.Type. None is 0, so that uninitialized memory is recognized. */
enum {
	OBJECT_NOTIFICATION_EVENT = 0xE1,
	OBJECT_SYNCHRONIZATION_EVENT = 0xE2,
	OBJECT_NOTIFICATION_TIMER = 0xE3,
	OBJECT_SYNCHRONIZATION_TIMER = 0xE4,
	OBJECT_THREAD = 0xE5,
	OBJECT_MUTEX = 0xE6,
	OBJECT_SEMAPHORE = 0xE7,
	OBJECT_KEY = 0xE8, /* cannot be waited for, like those behind it */
	OBJECT_FILE = 0xE9,
	OBJECT_DEVICE = 0xEA,
};
#define DPC_TYPE 0x43504400u

/* The lock classes of the five mutexes (docs/locking.md). */
extern struct vmm_lock_class nt_dispatcher_class, nt_dpc_class, nt_objects_class;
extern struct vmm_lock_class nt_memory_class, nt_registry_class;

enum { NT_POOL_BITS_MIN = 8, NT_KEY_BYTES = 512, NT_WORKERS = 16 };

/* The object of a handle. The header comes first: a thread object is also a waitable object. */
struct nt_object {
	DISPATCHER_HEADER header;
	/* guarded by objects */
	uint32_t references; /* all references; the last one frees the object */
	/* those that the driver took by pointer or handle, a part of `references` */
	uint32_t pointer_references VMM_GUARDED_BY(nt_objects_class);
	struct vmm_list all VMM_GUARDED_BY(nt_objects_class); /* vmm_nt.all_objects */
	/* constant: the pointer that drivers have; what is done before the object is freed, or NULL
	 */
	void *body;
	void (*finish)(struct vmm_nt *nt, struct nt_object *object);
};

struct nt_thread {
	struct nt_object object;
	struct vmm_nt *nt;
	struct vmm_os_thread *os_thread;
	PKSTART_ROUTINE start;
	PVOID start_context;
	jmp_buf exit;
	uint32_t number;
	/* guarded by objects */
	struct vmm_list link;
	bool ended VMM_GUARDED_BY(nt_objects_class);
};

struct nt_key {
	struct nt_object object;
	ACCESS_MASK access;
	char path[NT_KEY_BYTES];
};

struct nt_phys_range {
	uint64_t physical, size_bytes;
	char *pointer;
	/* Pages of memory that exists without the range: a client's, pool, of a locked MDL. */
	bool locked;
	/* What is found by kernel address; pages of pool hold other blocks, too. */
	const char *exact;
	uint64_t exact_bytes;
	const void *owner; /* the MDL of MmProbeAndLockPages, the pool block; NULL: others */
	/* what it refers to; NULL: pages that belong to no memory object */
	const struct vmm_os_memory *memory;
	bool trapped; /* registers of a device: the pointer is inaccessible (nt_register.c) */
};

#define NT_PHYSICAL_END ((uint64_t)1 << 52) /* a processor has no more address bits */

/* The physical addresses that an allocation may have; boundary 0: no boundary. */
struct nt_frames_limits {
	uint64_t lowest, highest, boundary;
};
enum nt_frames_kind { NT_FRAMES_CONTIGUOUS, NT_FRAMES_NON_CACHED, NT_FRAMES_OF_MDL };

#define MDL_ANY_PAGES      (MDL_PAGES_LOCKED | MDL_SOURCE_IS_NONPAGED_POOL | MDL_PARTIAL)
/* Flags that a partial MDL takes over. Its pages are locked by the source. */
#define MDL_SHARED_BY_PART (MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL)

struct vmm_nt {
	/* constant after creation */
	struct vmm_os *os;
	struct vmm_nt_config config;
	struct vmm_os_thread *timer_thread;

	struct vmm_os_mutex dispatcher;
	LIST_ENTRY timers;         /* by due time */
	struct vmm_list resources; /* owner tables of ERESOURCE (nt_resource.c) */
	bool timers_stop VMM_GUARDED_BY(nt_dispatcher_class);
	_Atomic uint32_t timers_changed;

	_Alignas(VMM_CACHE_LINE) struct vmm_os_mutex dpc;
	LIST_ENTRY dpc_queue;
	_Atomic uint32_t dpc_queued; /* at 0, lowering the IRQL takes no lock */
	_Atomic uint32_t dpc_finished;
	/* struct runner, on the stacks of the threads that run a DPC */
	struct vmm_list dpc_running;
	_Atomic uint32_t dpc_waiters; /* threads that wait for dpc_finished, or are about to */

	struct vmm_os_mutex objects;
	struct vmm_list threads;
	struct vmm_list all_objects; /* struct nt_object, by creation */
	struct nt_object **handles;  /* NULL: free */
	uint32_t handle_count;
	uint32_t thread_number VMM_GUARDED_BY(nt_objects_class);
	LIST_ENTRY work_queue; /* WORK_QUEUE_ITEM */
	struct vmm_os_thread *workers[NT_WORKERS];
	uint32_t worker_slots; /* a bit for each index of `workers` that is taken */
	uint32_t worker_count, work_running;
	bool work_stop VMM_GUARDED_BY(nt_objects_class);
	_Atomic uint32_t work_changed;

	int file_root;        /* constant: the folder of all files; -1: none */
	DEVICE_OBJECT volume; /* of all file objects */
	struct vmm_list irps; /* struct nt_irp, guarded by objects */

	struct vmm_os_mutex memory;
	/*
	 * Hash table of blocks by address: 2^pool_bits chains, grown when there are more blocks
	 * (nt_pool.c).
	 */
	struct nt_pool_block **pool;
	struct nt_pool_block *pool_first[1 << NT_POOL_BITS_MIN];
	uint32_t pool_bits;
	size_t pool_count;
	/* verification of drivers (nt_verify.h); NULL: off. Set once, with lock_order first */
	struct nt_guarded *guarded;
	struct nt_lock_order *lock_order;
	struct vmm_list mappings;
	struct vmm_list frames;       /* vmm_nt_frames: contiguous memory, pages of MDLs */
	struct nt_phys_range *ranges; /* by address */
	uint32_t range_count;
	uint32_t range_capacity VMM_GUARDED_BY(nt_memory_class);
	uint64_t physical_next;
	/* of vmm_nt_registers: those in the physical address space, and ports */
	struct vmm_list registers, ports;
	_Atomic uint32_t register_count; /* at 0, an access of a register takes no lock */
	_Atomic uint32_t mdl_count;      /* number of MDLs of vmm_nt_mdl_create */

	struct vmm_os_mutex registry;
	struct vmm_list keys;    /* struct nt_registry_key, by creation */
	struct vmm_list devices; /* struct nt_device */

	_Atomic uint32_t last_identity;
	const uint64_t *virtual_ns; /* constant: the time of a sim world; NULL on linux */
	uint64_t poll_time_ns; /* sim: instant of virtual time in which poll_count polls happened */
	uint32_t poll_count;
};

/* The only functions that take and release the locks. */
VMM_LOCK_PAIR(nt_dispatcher_lock, nt_dispatcher_unlock, nt_dispatcher_class, vmm_os_mutex,
	      struct vmm_nt, dispatcher);
VMM_LOCK_PAIR(nt_dpc_lock, nt_dpc_unlock, nt_dpc_class, vmm_os_mutex, struct vmm_nt, dpc);
VMM_LOCK_PAIR(nt_objects_lock, nt_objects_unlock, nt_objects_class, vmm_os_mutex, struct vmm_nt,
	      objects);
VMM_LOCK_PAIR(nt_memory_lock, nt_memory_unlock, nt_memory_class, vmm_os_mutex, struct vmm_nt,
	      memory);
VMM_LOCK_PAIR(nt_registry_lock, nt_registry_unlock, nt_registry_class, vmm_os_mutex, struct vmm_nt,
	      registry);
/*
 * The word is that of nt_signal_locked. clang does not analyze the body: a lock class has no state,
 * the mutex has.
 */
static inline void nt_dispatcher_unlock_and_wake(struct vmm_nt *nt, _Atomic uint32_t *word)
	VMM_RELEASES(nt_dispatcher_class) VMM_NO_THREAD_SAFETY_ANALYSIS
{
	vmm_os_mutex_unlock_and_wake(&nt->dispatcher, word);
}

/* ---- nt_world.c ---- */
void nt_violation(struct vmm_nt *nt, const char *rule, const char *service, const char *format, ...)
	VMM_PRINTF(4, 5) VMM_COLD;
void nt_above_limit(struct vmm_nt *nt, const char *service, uint32_t limit) VMM_COLD;
/* Reports NT-11 with WHAT, a plural that "are not built" follows. Returns STATUS_NOT_SUPPORTED. */
NTSTATUS nt_not_supported(struct vmm_nt *nt, const char *service, const char *what) VMM_COLD;
/* vmm_nt_current, but NULL if there is no kernel. */
struct vmm_nt *nt_of_thread(void);
/* vmm_nt_current for a service that needs the slots of the calling thread as well. */
struct vmm_nt *nt_caller(uint64_t **slots);
/*
 * Returns a number of the calling thread, which has the slots; never 0. It is the lower half of a
 * slot, whose upper half are counts of nt_region.c. Numbers follow the order
 * of first use, so sim runs agree.
 */
uint32_t nt_identity(struct vmm_nt *nt, uint64_t *slots);
/*
 * Counts one poll of a state by the calling thread. On sim virtual time advances only when all
 * threads wait, so a polling loop would never see it advance. After 256 polls at one instant the
 * caller therefore sleeps a microsecond.
 */
void nt_polled(struct vmm_nt *nt);

/* Reports NT-01 if the caller is above `limit`. */
static inline void nt_limit(struct vmm_nt *nt, const char *service, uint32_t limit)
{
	if (vmm_unlikely(VMM_OS_OWN(nt->os)->slot[VMM_NT_SLOT_IRQL] > limit))
		nt_above_limit(nt, service, limit);
}

/* ---- nt_dpc.c ---- */
void nt_dpc_init(struct vmm_nt *nt);
void nt_dpc_finish(struct vmm_nt *nt);
/* Runs one DPC at DISPATCH_LEVEL. Returns false if none can run now. SLOTS: the caller's. */
bool nt_dpc_run_next(struct vmm_nt *nt, uint64_t *slots);

/* ---- nt_exception.c ---- */
/* Whether the calling thread is in a __try block, so that a service may raise. */
bool nt_try_is_active(void);

/* ---- nt_wait.c ---- */
void nt_header_init(PDISPATCHER_HEADER header, uint8_t type, bool signaled);
bool nt_header_valid(struct vmm_nt *nt, const char *service, const DISPATCHER_HEADER *header,
		     uint8_t first, uint8_t last);
/*
 * Signals the object and ends the waits that this satisfies. The object may be freed by its waiter
 * then. Caller holds the dispatcher lock. Returns the word to wake (nt_dispatcher_unlock_and_wake),
 * or NULL.
 */
_Atomic uint32_t *nt_signal_locked(struct vmm_nt *nt, PDISPATCHER_HEADER header)
	VMM_REQUIRES(nt_dispatcher_class);
/* Ends the waits that the state of the object satisfies; otherwise like nt_signal_locked. */
_Atomic uint32_t *nt_satisfy_locked(struct vmm_nt *nt, PDISPATCHER_HEADER header)
	VMM_REQUIRES(nt_dispatcher_class);
uint64_t nt_deadline_ns(struct vmm_nt *nt, const LARGE_INTEGER *timeout);

/* ---- nt_spin.c: without the rules for the IRQL ---- */
void nt_spin_acquire(struct vmm_nt *nt, uint64_t *slots, const char *service, PKSPIN_LOCK lock);
void nt_spin_release(struct vmm_nt *nt, uint64_t *slots, const char *service, PKSPIN_LOCK lock);

/* ---- nt_work.c ---- */
void nt_work_init(struct vmm_nt *nt);
/* Waits for all work items, at most a second; false: one still runs. Then ends the threads. */
bool nt_work_finish(struct vmm_nt *nt);

/* ---- nt_fast_mutex.c ---- */
/* Reports NT-14 if the caller is neither at APC_LEVEL nor in a critical or guarded region. */
void nt_require_apcs_disabled(struct vmm_nt *nt, const char *service);

/* ---- nt_resource.c ---- */
/* Reports resources that were never deleted (NT-06). */
void nt_resource_finish(struct vmm_nt *nt);

/* ---- nt_timer.c ---- */
vmm_status nt_timer_init(struct vmm_nt *nt);
void nt_timer_finish(struct vmm_nt *nt);

/* ---- nt_object.c, nt_thread.c ---- */
void nt_object_init(struct vmm_nt *nt);
void nt_object_finish(struct vmm_nt *nt);
/* Initializes an object without references; the next function adds it to the world. */
void nt_object_prepare(struct nt_object *object, uint8_t type, void *body);
void nt_object_add(struct vmm_nt *nt, struct nt_object *object);
/*
 * Finds the object whose body is at this address, which is only compared, and adds a reference.
 * Type 0: any. NULL: there is none.
 */
struct nt_object *nt_object_get(struct vmm_nt *nt, const void *body, uint8_t type);
/* Adds a reference for the handle, which is the first one of a new object. */
NTSTATUS nt_handle_open(struct vmm_nt *nt, struct nt_object *object, HANDLE *handle);
/* Adds a reference. Returns NULL if the handle does not name an object of that type (0: any). */
struct nt_object *nt_handle_get(struct vmm_nt *nt, HANDLE handle, uint8_t type);
void nt_object_put(struct vmm_nt *nt, struct nt_object *object);
void nt_thread_reap(struct vmm_nt *nt);
/* Returns false if a thread still runs. */
bool nt_thread_finish(struct vmm_nt *nt);

/* ---- nt_file.c, nt_irp.c ---- */
void nt_file_init(struct vmm_nt *nt);
void nt_file_end(struct vmm_nt *nt);
void nt_irp_init(struct vmm_nt *nt);
/* Reports packets that were never freed (NT-06), and frees them. */
void nt_irp_finish(struct vmm_nt *nt);
/* Reports NT-17 if there is no such packet. */
bool nt_irp_exists(struct vmm_nt *nt, const char *service, const IRP *irp);

/* ---- nt_pool.c, nt_phys.c, nt_registry.c ---- */
void nt_pool_init(struct vmm_nt *nt);
void nt_pool_finish(struct vmm_nt *nt);
/*
 * Returns whether [here, +size_bytes) overlaps [pointer, +length); with `whole`, whether it
 * contains it.
 */
static inline bool nt_range_overlaps(const char *here, uint64_t size_bytes, const char *pointer,
				     uint64_t length, bool whole)
{
	uint64_t a = (uint64_t)(uintptr_t)here, b = (uint64_t)(uintptr_t)pointer;

	if (whole)
		return b >= a && b - a <= size_bytes && length <= size_bytes - (b - a);
	return b >= a ? b - a < size_bytes : a - b < length;
}
/*
 * Returns whether a pool block overlaps the range; with `whole`, whether one contains it. Caller
 * holds the memory lock.
 */
bool nt_pool_has_locked(struct vmm_nt *nt, const char *pointer, uint64_t length, bool whole)
	VMM_REQUIRES(nt_memory_class);
/* Whether a block of pool begins there. */
bool nt_pool_is_block(struct vmm_nt *nt, const void *pointer);
/* Gives physical pages to the pool block that contains the pointer. */
vmm_status nt_pool_add_range(struct vmm_nt *nt, const void *pointer);
/* Whether the pointer is in a block of paged pool. */
bool nt_pool_is_paged(struct vmm_nt *nt, const void *pointer);
vmm_status nt_phys_add_range(struct vmm_nt *nt, struct nt_phys_range range);
vmm_status nt_phys_add_range_locked(struct vmm_nt *nt, struct nt_phys_range range)
	VMM_REQUIRES(nt_memory_class);
/* Removes the range at this address if it has this owner. */
bool nt_phys_remove_owned(struct vmm_nt *nt, uint64_t physical, const void *owner);
/* Removes the range of a pool block, if it has one. */
void nt_phys_remove_pool(struct vmm_nt *nt, const char *block);
/* Returns the index of the first range that ends after `physical`. */
uint32_t nt_phys_find_locked(const struct vmm_nt *nt, uint64_t physical)
	VMM_REQUIRES(nt_memory_class);
/*
 * Returns the first free address of that alignment, between the ranges that exist and within the
 * limits; 0: none.
 */
uint64_t nt_phys_find_free_locked(const struct vmm_nt *nt, const struct nt_frames_limits *limits,
				  uint64_t size_bytes, uint64_t alignment)
	VMM_REQUIRES(nt_memory_class);
/*
 * Adds the range at a multiple of its size, a power of two, and stores the address in it. `low`:
 * below 4 GiB.
 */
vmm_status nt_phys_place_range(struct vmm_nt *nt, struct nt_phys_range *range, bool low);
void nt_phys_init(struct vmm_nt *nt);
void nt_phys_finish(struct vmm_nt *nt);
vmm_status nt_registry_init(struct vmm_nt *nt);
void nt_registry_finish(struct vmm_nt *nt);

/* ---- nt_frames.c, nt_mdl.c ---- */
/* Finds a free physical address for the range and adds it. */
vmm_status nt_frames_add_range(struct vmm_nt *nt, const struct nt_frames_limits *limits,
			       struct nt_phys_range *range);
/* Allocates zeroed pages with adjacent physical addresses; NULL: no memory or no address. */
void *nt_frames_allocate(struct vmm_nt *nt, enum nt_frames_kind kind, uint64_t size_bytes,
			 const struct nt_frames_limits *limits, uint64_t *physical);
/*
 * Returns false if no block of the kind begins here. A pinned block stays, and that is reported
 * (NT-12).
 */
bool nt_frames_free(struct vmm_nt *nt, const char *service, enum nt_frames_kind kind,
		    const void *pointer, uint64_t *size_bytes);
/* Reports blocks that were never freed (NT-06), and frees them. */
void nt_frames_finish(struct vmm_nt *nt);
/* A pool block with an MDL of the buffer, as IoAllocateMdl and ExFreePool handle it. */
MDL *nt_mdl_allocate(void *va, ULONG length);

/* ---- nt_print.c ---- */
/*
 * printf for format strings of kernel drivers: ULONG is %lu, wide and counted strings are %ws and
 * %wZ. SIZE is in characters and not 0. Returns false if the text was cut.
 */
/* Prints through the hook of the calling thread's kernel. */
void nt_print(uint32_t component, uint32_t level, const char *format, va_list arguments);
bool nt_format(char *text, size_t size, const char *format, va_list arguments);
bool nt_format_wide(WCHAR *text, size_t size, const WCHAR *format, va_list arguments);

#endif
