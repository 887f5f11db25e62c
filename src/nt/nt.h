/* SPDX-License-Identifier: MIT */
/*
 * nt: the kernel services that a miniport uses. The services are declared in <ntddk.h> under their
 * own names. This header is for the modules above: create the kernel of an os world, lay out its
 * physical address space, build MDLs, manage the IRQL, and receive violations.
 *
 * Contains no graphics: nt implements threads, memory and interrupts, no DDI. Threads: any thread
 * of the world, and any foreign thread. The services find their world through vmm_os_current(). A
 * thread without a world is served by the kernel that was created last. Locks: internal leaf locks
 * of rank VMM_NT_RANK. Hooks are called with none of them held. Thread slots 0 to 2 belong to nt:
 * IRQL, thread object, identity.
 *
 * Mistakes of a miniport never end the process. They are reported as violations:
 *   NT-01  a service was called at an IRQL above its limit
 *   NT-02  a raise to a lower or a lowering to a higher IRQL, or a routine returned at another IRQL
 *   NT-03  a thread waits at DISPATCH_LEVEL or above
 *   NT-04  a spin lock was taken twice, released by another thread, or used below DISPATCH_LEVEL
 *   NT-05  pool: unknown or twice freed pointer, wrong tag, written out of bounds, invalid flags
 *   NT-06  left behind when the kernel ended: pool, MDL, mapping, thread, handle, timer, DPC
 *   NT-07  an object or handle is unknown, not initialized or of the wrong type
 *   NT-08  a physical range or page that the platform does not have
 *   NT-09  the miniport asked for a bug check
 *   NT-10  an assertion of the miniport failed
 *   NT-11  a service or an argument that is not built (STATUS_NOT_SUPPORTED)
 *   NT-12  contiguous memory or the pages of an MDL: freed or unlocked twice, unknown, locked when
 *          they are already, freed while the adapter uses them, or outside what the MDL describes
 *   NT-14  a lock was taken by the thread that holds it, released by one that does not, released
 *          too often, or used without the region (critical, guarded) that it requires
 *   NT-15  a work item is queued twice or freed while queued; a look-aside list, remove lock or
 *          rundown reference is released too often, or deleted while it is in use
 *   NT-16  bits outside a bit map
 *   NT-17  an I/O request packet (IRP) is unknown, or was completed or freed before
 *   NT-18  an IRP has no stack location left, is freed while a driver has it, or has no routine
 *          that ends it
 *   NT-19  a device object is unknown, attached twice, or deleted while it is in use
 *   NT-20  an exception filter asked for what cannot be done
 *   NT-22  with vmm_nt_verify_drivers: two spin locks are taken in both orders
 */
#ifndef VMM_NT_NT_H
#define VMM_NT_NT_H

#include "base/base.h"
#include "os/os.h"

struct vmm_nt;
struct vmm_nt_frames;
struct _MDL;
struct _DEVICE_OBJECT;

#define VMM_NT_RANK 0xF000u /* every other lock of the process has a smaller rank */

struct vmm_nt_violation {
	const char *rule;    /* "NT-01" */
	const char *service; /* name of the kernel service */
	uint32_t irql;       /* of the calling thread */
	const char *text;    /* what was found, with the values */
};

struct vmm_nt_config {
	/*
	 * Hooks; each may be NULL. Called on the thread concerned, at any IRQL, possibly under the
	 * caller's locks.
	 */
	void (*violation)(void *context, const struct vmm_nt_violation *violation);
	void (*bugcheck)(void *context, uint32_t code, const uint64_t parameter[4]);
	void (*print)(void *context, uint32_t component, uint32_t level, const char *text);
	/*
	 * Writes the name of the routine that a value of slot VMM_NT_SLOT_PLACE stands for. NULL:
	 * the reports of what was left behind do not name routines.
	 */
	void (*place)(uint64_t value, char *name, size_t size);
	void *context;
	uint64_t physical_first; /* lowest address that vmm_nt_phys_reserve returns; 0: 4 GiB */
	/* the folder of all files that the miniport opens, read by vmm_nt_create; NULL: no files */
	const char *file_root;
	/* system time at the world's begin, 100 ns since 1601; 0: a fixed day */
	uint64_t system_time_base;
};

vmm_status vmm_nt_create(struct vmm_os *os, const struct vmm_nt_config *config,
			 struct vmm_nt **nt) VMM_MUST_CHECK;
/*
 * Ends the kernel. Reports what was left behind (NT-06; pool by tag) and frees it. Threads that the
 * miniport did not end get one more second. If one still runs then, nothing is freed and
 * VMM_UNSUCCESSFUL is returned: the os world must be kept.
 */
vmm_status vmm_nt_destroy(struct vmm_nt *nt);
/* Returns the kernel of the calling thread. */
struct vmm_nt *vmm_nt_current(void);
void vmm_nt_set_violation_hook(struct vmm_nt *nt,
			       void (*violation)(void *context,
						 const struct vmm_nt_violation *violation),
			       void *context);

/* What KeBugCheckEx reported on the calling thread. False: it was not called. Async-signal-safe. */
struct vmm_nt_bug_check {
	bool made;
	uint32_t code;
	uint64_t parameters[4];
};
bool vmm_nt_bug_checked(struct vmm_nt_bug_check *check);

/* ---- verification of drivers ---- */

/*
 * From now on blocks of pool end at a page that cannot be accessed, freed blocks stay inaccessible
 * for an interval (the next 256 blocks that are freed), leaks name the routine that allocated, and
 * the order of spin locks is checked (NT-22). Without memory nothing changes. Called by one thread
 * at a time, before drivers run.
 */
void vmm_nt_verify_drivers(struct vmm_nt *nt);
/* A block of pool, or an MDL of the library, that the option has placed before a guard page. */
struct vmm_nt_block {
	uint32_t tag;
	bool is_mdl; /* the tag, the place and the caller are 0 */
	bool freed;
	uint64_t size_bytes;
	int64_t offset; /* of the address, from the begin of the block */
	uint64_t place; /* VMM_NT_SLOT_PLACE of the thread that allocated it */
	const void *caller;
};
/*
 * Finds the block whose pages, or the guard page behind them, contain the address. Only reads
 * memory and takes no lock: for the report of a crash.
 */
bool vmm_nt_guarded_block(const void *address, struct vmm_nt_block *found);

/* ---- IRQL ---- */

enum {
	VMM_NT_PASSIVE = 0,
	VMM_NT_APC = 1,
	VMM_NT_DISPATCH = 2,
	VMM_NT_DEVICE = 5, /* the only device interrupt level */
};

uint32_t vmm_nt_irql(struct vmm_nt *nt);
/* The same from the calling thread's slots (VMM_OS_OWN). */
#define VMM_NT_SLOT_IRQL  0
/* The name of the kernel service in which the thread waits, a static string; 0: in none. */
#define VMM_NT_SLOT_WAIT  7
/* Where the thread is in a driver, as the module above encodes it. */
#define VMM_NT_SLOT_PLACE 3
static inline uint32_t vmm_nt_irql_of(const uint64_t *slots)
{
	return (uint32_t)slots[VMM_NT_SLOT_IRQL];
}
/*
 * Raises the thread's IRQL; returns the previous level. vmm_nt_raise_of does so with the calling
 * thread's slots. Reports NT-02 with the name of the service if the level is lower.
 */
uint32_t vmm_nt_raise(struct vmm_nt *nt, uint32_t irql);
uint32_t vmm_nt_raise_of(struct vmm_nt *nt, uint64_t *slots, const char *service, uint32_t irql);
/*
 * Lowers the thread's IRQL. Runs queued DPCs first if the thread goes below DISPATCH.
 * vmm_nt_lower_of: as vmm_nt_raise_of, NT-02 if the level is higher.
 */
void vmm_nt_lower(struct vmm_nt *nt, uint32_t irql);
void vmm_nt_lower_of(struct vmm_nt *nt, uint64_t *slots, const char *service, uint32_t irql);

/*
 * The lock of a device interrupt; its holder is at VMM_NT_DEVICE. For interrupt routines and
 * SynchronizeExecution. A routine under it must not take spin locks, whose level is lower (NT-02).
 */
struct vmm_nt_interrupt {
	struct vmm_nt *nt;
	struct vmm_os_mutex mutex;
};
void vmm_nt_interrupt_init(struct vmm_nt_interrupt *interrupt, struct vmm_nt *nt, uint32_t rank,
			   const char *name);
void vmm_nt_interrupt_finish(struct vmm_nt_interrupt *interrupt);
/* Returns the previous level. `slots` here and below: those of the calling thread. */
uint32_t vmm_nt_interrupt_enter(struct vmm_nt_interrupt *interrupt, uint64_t *slots);
void vmm_nt_interrupt_leave(struct vmm_nt_interrupt *interrupt, uint64_t *slots, uint32_t irql);

/* ---- physical address space ---- */

/*
 * Reserves an address range that overlaps no other one, 2 MiB aligned with a gap behind it. It is
 * never returned again. Returns 0, which vmm_nt_phys_add refuses, if no addresses are left.
 */
uint64_t vmm_nt_phys_reserve(struct vmm_nt *nt, uint64_t size_bytes);
/*
 * Makes the range refer to memory[offset, +size_bytes). All are page multiples. Returns
 * VMM_INVALID_PARAMETER if it overlaps another range.
 */
vmm_status vmm_nt_phys_add(struct vmm_nt *nt, uint64_t physical, const struct vmm_os_memory *memory,
			   uint64_t offset, uint64_t size_bytes) VMM_MUST_CHECK;
/* Removes the range that was added with this base. */
void vmm_nt_phys_remove(struct vmm_nt *nt, uint64_t physical);
/*
 * Returns the kernel address of [physical, +size_bytes); NULL if it is not wholly inside one range.
 */
void *vmm_nt_phys_lookup(struct vmm_nt *nt, uint64_t physical, uint64_t size_bytes);
/*
 * Returns the memory object that [physical, +size_bytes) is in, and where in it. NULL: the range is
 * not wholly inside one that refers to a memory object: of vmm_nt_phys_add, of vmm_nt_phys_place,
 * or memory that a driver has allocated contiguously.
 */
const struct vmm_os_memory *vmm_nt_phys_memory(struct vmm_nt *nt, uint64_t physical,
					       uint64_t size_bytes, uint64_t *offset);
/*
 * Keeps the block at `physical` that a driver has allocated (MmAllocateContiguousMemory, an MDL's
 * pages): if the driver frees it, that is NT-12, and the block goes when it is unpinned. NULL: no
 * such block is there.
 */
struct vmm_nt_frames *vmm_nt_frames_pin(struct vmm_nt *nt, uint64_t physical);
void vmm_nt_frames_unpin(struct vmm_nt *nt, struct vmm_nt_frames *frames);
/* The reverse of vmm_nt_phys_lookup. Returns false if the pointer is in no range. */
bool vmm_nt_phys_of(struct vmm_nt *nt, const void *pointer, uint64_t *physical);

/*
 * Copies between a buffer and the physical range as a device does (DMA). The range may lie in
 * several ranges of the platform that are adjacent. Returns false, and copies nothing, if part of
 * it is no memory: then *bad is the first address that is none. If memory is removed during the
 * call, the bytes before it have been copied. 2, 4 or 8 bytes at a multiple of their number are
 * copied in one step, with release (write) and acquire (read) order.
 */
bool vmm_nt_phys_read(struct vmm_nt *nt, uint64_t physical, void *buffer, uint64_t length,
		      uint64_t *bad);
bool vmm_nt_phys_write(struct vmm_nt *nt, uint64_t physical, const void *buffer, uint64_t length,
		       uint64_t *bad);

/* ---- registers and ports of a device ---- */

/*
 * The functions behind a range of registers or ports. Called at any IRQL, with no lock of nt held,
 * for naturally aligned accesses inside the range. The structure is the caller's, and stays until
 * the range is removed; no access may be in progress or begin then.
 */
struct vmm_nt_registers {
	/* set by the caller */
	uint64_t (*read)(void *context, uint64_t offset, uint32_t width);
	void (*write)(void *context, uint64_t offset, uint32_t width, uint64_t value);
	void *context;
	uint64_t size_bytes;
	/* set by nt: the physical address, or the number of the first port */
	uint64_t address;
	/* of nt */
	uint64_t first; /* the value of a pointer to the first register; of a port, its number */
	struct vmm_list link;
};
/*
 * Adds registers whose size is a power of two and a page multiple, at a multiple of their size.
 * `window`: an inaccessible range of that size, which is what drivers map. `low`: below 4 GiB.
 * VMM_INSUFFICIENT_RESOURCES: the platform has no such address left.
 */
vmm_status vmm_nt_registers_add(struct vmm_nt *nt, struct vmm_nt_registers *registers,
				const struct vmm_os_view *window, bool low) VMM_MUST_CHECK;
void vmm_nt_registers_remove(struct vmm_nt *nt, struct vmm_nt_registers *registers);
/* The same for ports; the size is a power of two up to 256. */
vmm_status vmm_nt_ports_add(struct vmm_nt *nt, struct vmm_nt_registers *ports) VMM_MUST_CHECK;
void vmm_nt_ports_remove(struct vmm_nt *nt, struct vmm_nt_registers *ports);
/*
 * Adds the whole memory object at a multiple of its size, a power of two; *physical is its address.
 */
vmm_status vmm_nt_phys_place(struct vmm_nt *nt, const struct vmm_os_memory *memory, bool low,
			     uint64_t *physical) VMM_MUST_CHECK;

/* ---- MDLs over backing-store pages ---- */

/*
 * Creates an MDL whose pages are locked and mapped. Its system address is memory->base + offset, so
 * a request for it costs nothing; its page frames are those from `physical` on. It has 48 bytes and
 * 8 per page. Offset and physical are page-aligned; length is at most UINT32_MAX bytes.
 */
vmm_status vmm_nt_mdl_create(struct vmm_nt *nt, const struct vmm_os_memory *memory, uint64_t offset,
			     uint64_t length, uint64_t physical, struct _MDL **mdl) VMM_MUST_CHECK;
void vmm_nt_mdl_destroy(struct vmm_nt *nt, struct _MDL *mdl);
/*
 * Like vmm_nt_mdl_create, in storage of the caller: vmm_nt_mdl_bytes(length) bytes, aligned to 8.
 * It need not be destroyed.
 */
size_t vmm_nt_mdl_bytes(uint64_t length);
void vmm_nt_mdl_init(void *storage, const struct vmm_os_memory *memory, uint64_t offset,
		     uint64_t length, uint64_t physical);

/* ---- pages that a client or a driver owns ---- */

/*
 * Creates an MDL over memory of a client or over a driver's pool: whole pages, which must stay
 * mapped until they are unlocked. They get physical addresses, so the MDL is like any other.
 */
vmm_status vmm_nt_pages_lock(struct vmm_nt *nt, void *pointer, uint64_t length,
			     struct _MDL **mdl) VMM_MUST_CHECK;
void vmm_nt_pages_unlock(struct vmm_nt *nt, struct _MDL *mdl);
/* Returns whether the range is wholly inside one pool block or one range of the platform. */
bool vmm_nt_is_kernel_range(struct vmm_nt *nt, const void *pointer, uint64_t length);
/* Returns whether any part of the range is in a pool block or a range of the platform. */
bool vmm_nt_overlaps_kernel(struct vmm_nt *nt, const void *pointer, uint64_t length);

/* ---- registry ---- */

/* Makes the key and those above it. `key` is a full name (\Registry\Machine\...). */
vmm_status vmm_nt_registry_add_key(struct vmm_nt *nt, const char *key) VMM_MUST_CHECK;
/* Sets or replaces one value; the data is copied. The key is made if it does not exist. */
vmm_status vmm_nt_registry_set(struct vmm_nt *nt, const char *key, const char *name, uint32_t type,
			       const void *data, uint32_t size_bytes) VMM_MUST_CHECK;
/* Sets a REG_DWORD if the value fits in 32 bits, else a REG_QWORD. */
vmm_status vmm_nt_registry_set_number(struct vmm_nt *nt, const char *key, const char *name,
				      uint64_t value) VMM_MUST_CHECK;
/* Sets a REG_SZ from ASCII text. */
vmm_status vmm_nt_registry_set_string(struct vmm_nt *nt, const char *key, const char *name,
				      const char *value) VMM_MUST_CHECK;
/* Removes the key with its subkeys. */
void vmm_nt_registry_remove_key(struct vmm_nt *nt, const char *key);

/* ---- devices ---- */

/*
 * Adds a physical device object with its hardware and software key, which are made if they do not
 * exist (IoOpenDeviceRegistryKey).
 */
vmm_status vmm_nt_device_add(struct vmm_nt *nt, const struct _DEVICE_OBJECT *object,
			     const char *hardware_key, const char *software_key) VMM_MUST_CHECK;
/* Removes the device and its keys. */
void vmm_nt_device_remove(struct vmm_nt *nt, const struct _DEVICE_OBJECT *object);
/* Sets a property that IoGetDeviceProperty returns (DEVICE_REGISTRY_PROPERTY). */
vmm_status vmm_nt_device_set(struct vmm_nt *nt, const struct _DEVICE_OBJECT *object,
			     uint32_t property, const void *data,
			     uint32_t size_bytes) VMM_MUST_CHECK;
/* The same with ASCII text, which becomes UTF-16 with a terminator behind it. */
vmm_status vmm_nt_device_set_text(struct vmm_nt *nt, const struct _DEVICE_OBJECT *object,
				  uint32_t property, const char *text,
				  size_t length) VMM_MUST_CHECK;

#endif
