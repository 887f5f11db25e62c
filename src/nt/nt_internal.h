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
	OBJECT_KEY = 0xE6, /* cannot be waited for */
};
#define DPC_TYPE 0x43504400u

/* The lock classes of the five mutexes (docs/locking.md). */
extern struct vmm_lock_class nt_dispatcher_class, nt_dpc_class, nt_objects_class;
extern struct vmm_lock_class nt_memory_class, nt_registry_class;

enum { NT_POOL_BITS_MIN = 8, NT_KEY_BYTES = 512 };

/* The object of a handle. The header comes first: a thread object is also a waitable object. */
struct nt_object {
	DISPATCHER_HEADER header;
	/* guarded by objects */
	uint32_t references; /* all references; the last one frees the object */
	/* those of ObReferenceObjectByHandle, a part of `references` */
	uint32_t pointer_references VMM_GUARDED_BY(nt_objects_class);
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
	char path[NT_KEY_BYTES];
};

struct nt_phys_range {
	uint64_t physical, size_bytes;
	char *pointer;
	bool locked; /* pages of a client or of a driver's pool (vmm_nt_pages_lock) */
};

struct vmm_nt {
	/* constant after creation */
	struct vmm_os *os;
	struct vmm_nt_config config;
	struct vmm_os_thread *timer_thread;

	struct vmm_os_mutex dispatcher;
	LIST_ENTRY timers; /* by due time */
	bool timers_stop VMM_GUARDED_BY(nt_dispatcher_class);
	_Atomic uint32_t timers_changed;

	struct vmm_os_mutex dpc;
	LIST_ENTRY dpc_queue;
	/* struct runner, on the stacks of the threads that run a DPC */
	struct vmm_list dpc_running;
	_Atomic uint32_t dpc_queued; /* at 0, lowering the IRQL takes no lock */
	_Atomic uint32_t dpc_finished;

	struct vmm_os_mutex objects;
	struct vmm_list threads;
	struct nt_object **handles; /* NULL: free */
	uint32_t handle_count;
	uint32_t thread_number VMM_GUARDED_BY(nt_objects_class);

	struct vmm_os_mutex memory;
	/*
	 * Hash table of blocks by address: 2^pool_bits chains, grown when there are more blocks
	 * (nt_pool.c).
	 */
	struct nt_pool_block **pool;
	struct nt_pool_block *pool_first[1 << NT_POOL_BITS_MIN];
	uint32_t pool_bits;
	size_t pool_count;
	struct vmm_list mappings;
	struct nt_phys_range *ranges; /* by address */
	uint32_t range_count;
	uint32_t range_capacity VMM_GUARDED_BY(nt_memory_class);
	uint64_t physical_next;
	_Atomic uint32_t mdl_count; /* number of MDLs of vmm_nt_mdl_create */

	struct vmm_os_mutex registry;
	struct vmm_list values;

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
/* vmm_nt_current for a service that needs the slots of the calling thread as well. */
struct vmm_nt *nt_caller(uint64_t **slots);
/*
 * Returns a number of the calling thread, which has the slots; never 0. Numbers follow the order
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
uint64_t nt_deadline_ns(struct vmm_nt *nt, const LARGE_INTEGER *timeout);

/* ---- nt_timer.c ---- */
vmm_status nt_timer_init(struct vmm_nt *nt);
void nt_timer_finish(struct vmm_nt *nt);

/* ---- nt_object.c, nt_thread.c ---- */
void nt_object_init(struct vmm_nt *nt);
void nt_object_finish(struct vmm_nt *nt);
NTSTATUS nt_handle_open(struct vmm_nt *nt, struct nt_object *object, HANDLE *handle);
/* Adds a reference. Returns NULL if the handle does not name an object of that type. */
struct nt_object *nt_handle_get(struct vmm_nt *nt, HANDLE handle, uint8_t type);
void nt_object_put(struct vmm_nt *nt, struct nt_object *object);
void nt_thread_reap(struct vmm_nt *nt);
/* Returns false if a thread still runs. */
bool nt_thread_finish(struct vmm_nt *nt);

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
vmm_status nt_phys_add_range(struct vmm_nt *nt, struct nt_phys_range range);
void nt_phys_init(struct vmm_nt *nt);
void nt_phys_finish(struct vmm_nt *nt);
void nt_registry_init(struct vmm_nt *nt);
void nt_registry_finish(struct vmm_nt *nt);

/* ---- nt_print.c ---- */
/*
 * printf for format strings of kernel drivers: ULONG is %lu, wide and counted strings are %ws and
 * %wZ.
 */
void nt_format(char *text, size_t size, const char *format, va_list arguments);

#endif
