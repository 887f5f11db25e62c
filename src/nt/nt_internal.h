/* SPDX-License-Identifier: MIT */
/*
 * What the files of nt share. Five leaf locks, never taken one inside the other: dispatcher
 * (waitable objects and timers), dpc, objects (threads, handles), memory (pool, physical ranges,
 * mappings), registry.
 */
#ifndef VMM_NT_NT_INTERNAL_H
#define VMM_NT_NT_INTERNAL_H

#include <setjmp.h>
#include <stdarg.h>
#include "nt/nt.h"
/* What a miniport calls must be found by one that is loaded as a shared object (lib/libvidmm.map). */
#pragma GCC visibility push(default)
#include <ntddk.h>
#pragma GCC visibility pop

enum { SLOT_IRQL, SLOT_THREAD, SLOT_IDENTITY };

/*
 * Values of DISPATCHER_HEADER.Type. None is 0, so that memory nobody initialised is told from an
 * object.
 */
enum {
	OBJECT_NOTIFICATION_EVENT = 0xE1,
	OBJECT_SYNCHRONIZATION_EVENT = 0xE2,
	OBJECT_NOTIFICATION_TIMER = 0xE3,
	OBJECT_SYNCHRONIZATION_TIMER = 0xE4,
	OBJECT_THREAD = 0xE5,
	OBJECT_KEY = 0xE6, /* cannot be waited for */
};
#define DPC_TYPE 0x43504400u

enum { NT_POOL_BITS_MIN = 8, NT_KEY_BYTES = 512 };

/* What a handle can name. The header comes first: a thread object is also a waitable object. */
struct nt_object {
	DISPATCHER_HEADER header;
	/* guarded by objects */
	uint32_t references;         /* all of them; the last one frees */
	uint32_t pointer_references; /* those of ObReferenceObjectByHandle among them */
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
	bool ended;
};

struct nt_key {
	struct nt_object object;
	char path[NT_KEY_BYTES];
};

struct nt_phys_range {
	uint64_t physical, size_bytes;
	char *pointer;
	bool locked; /* pages that belong to somebody else (vmm_nt_pages_lock) */
};

struct vmm_nt {
	/* constant after creation */
	struct vmm_os *os;
	struct vmm_nt_config config;
	struct vmm_os_thread *timer_thread;

	struct vmm_os_mutex dispatcher;
	LIST_ENTRY timers; /* by due time */
	bool timers_stop;
	_Atomic uint32_t timers_changed;

	struct vmm_os_mutex dpc;
	LIST_ENTRY dpc_queue;
	struct vmm_list dpc_running; /* runners on the stacks of their threads */
	_Atomic uint32_t dpc_queued; /* lowering the IRQL takes no lock when it is 0 */
	_Atomic uint32_t dpc_finished;

	struct vmm_os_mutex objects;
	struct vmm_list threads;
	struct nt_object **handles; /* NULL: free */
	uint32_t handle_count;
	uint32_t thread_number;

	struct vmm_os_mutex memory;
	/* Blocks by address: 2^pool_bits chains, as many as there are blocks or more (nt_pool.c). */
	struct nt_pool_block **pool;
	struct nt_pool_block *pool_first[1 << NT_POOL_BITS_MIN];
	uint32_t pool_bits;
	size_t pool_count;
	struct vmm_list mappings;
	struct nt_phys_range *ranges; /* by address */
	uint32_t range_count, range_capacity;
	uint64_t physical_next;
	_Atomic uint32_t mdl_count; /* those of vmm_nt_mdl_create */

	struct vmm_os_mutex registry;
	struct vmm_list values;

	_Atomic uint32_t last_identity;
	uint64_t poll_time_ns; /* sim: polls at one instant of virtual time */
	uint32_t poll_count;
};

/* ---- nt_world.c ---- */
void nt_violation(struct vmm_nt *nt, const char *rule, const char *service, const char *format, ...)
	VMM_PRINTF(4, 5) VMM_COLD;
void nt_above_limit(struct vmm_nt *nt, const char *service, uint32_t limit) VMM_COLD;
/* A number of the calling thread, never 0; in the order of first use, so that sim runs agree. */
uint32_t nt_identity(struct vmm_nt *nt);
/*
 * Somebody looks whether something has happened yet. Virtual time moves only when everybody waits,
 * so a loop that polls would never see it move: after many polls at one instant the caller sleeps a
 * microsecond.
 */
void nt_polled(struct vmm_nt *nt);

static inline uint64_t *nt_slot(struct vmm_nt *nt, unsigned index)
{
	return vmm_os_own_slots(nt->os) + index;
}

/* NT-01 when the caller is above `limit`. */
static inline void nt_limit(struct vmm_nt *nt, const char *service, uint32_t limit)
{
	if (vmm_unlikely(*nt_slot(nt, SLOT_IRQL) > limit))
		nt_above_limit(nt, service, limit);
}

/* ---- nt_dpc.c ---- */
void nt_dpc_init(struct vmm_nt *nt);
void nt_dpc_finish(struct vmm_nt *nt);
void nt_dpc_drain(struct vmm_nt *nt);

/* ---- nt_wait.c ---- */
void nt_header_init(PDISPATCHER_HEADER header, uint8_t type, bool signaled);
bool nt_header_valid(struct vmm_nt *nt, const char *service, const DISPATCHER_HEADER *header,
		     uint8_t first, uint8_t last);
/*
 * Signals the object and ends the waits that this satisfies; the object may be gone then.
 * Dispatcher lock held; returns whom to wake (vmm_os_mutex_unlock_and_wake), or NULL.
 */
_Atomic uint32_t *nt_signal_locked(struct vmm_nt *nt, PDISPATCHER_HEADER header);
uint64_t nt_deadline_ns(struct vmm_nt *nt, const LARGE_INTEGER *timeout);

/* ---- nt_timer.c ---- */
vmm_status nt_timer_init(struct vmm_nt *nt);
void nt_timer_finish(struct vmm_nt *nt);

/* ---- nt_object.c, nt_thread.c ---- */
void nt_object_init(struct vmm_nt *nt);
void nt_object_finish(struct vmm_nt *nt);
NTSTATUS nt_handle_open(struct vmm_nt *nt, struct nt_object *object, HANDLE *handle);
/* Adds a reference; NULL when the handle is not of that type. */
struct nt_object *nt_handle_get(struct vmm_nt *nt, HANDLE handle, uint8_t type);
void nt_object_put(struct vmm_nt *nt, struct nt_object *object);
void nt_thread_reap(struct vmm_nt *nt);
/* False when one still runs. */
bool nt_thread_finish(struct vmm_nt *nt);

/* ---- nt_pool.c, nt_phys.c, nt_registry.c ---- */
void nt_pool_init(struct vmm_nt *nt);
void nt_pool_finish(struct vmm_nt *nt);
/* Does [here, +size) overlap [pointer, +length); `whole`: contain it? */
static inline bool nt_range_meets(const char *here, uint64_t size_bytes, const char *pointer,
				  uint64_t length, bool whole)
{
	uint64_t a = (uint64_t)(uintptr_t)here, b = (uint64_t)(uintptr_t)pointer;

	if (whole)
		return b >= a && b - a <= size_bytes && length <= size_bytes - (b - a);
	return b >= a ? b - a < size_bytes : a - b < length;
}
/* Does a pool block overlap the range; `whole`: does one contain it? Memory lock held. */
bool nt_pool_has_locked(struct vmm_nt *nt, const char *pointer, uint64_t length, bool whole);
vmm_status nt_phys_add_range(struct vmm_nt *nt, struct nt_phys_range range);
void nt_phys_init(struct vmm_nt *nt);
void nt_phys_finish(struct vmm_nt *nt);
void nt_registry_init(struct vmm_nt *nt);
void nt_registry_finish(struct vmm_nt *nt);

/* ---- nt_print.c ---- */
/* printf as kernel drivers know it: ULONG is %lu, wide and counted strings are %ws and %wZ. */
void nt_format(char *text, size_t size, const char *format, va_list arguments);

#endif
