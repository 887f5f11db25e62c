/* SPDX-License-Identifier: MIT */
/*
 * The fixture of every test of this folder: an adapter, a process with a device, a 3D context, and
 * a gate. The gate is a word that the GPU waits for. A submission behind a closed gate is busy
 * until the test opens it, on real threads and on virtual time.
 */
#ifndef VMM_TESTS_CONFORMANCE_WORLD_H
#define VMM_TESTS_CONFORMANCE_WORLD_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <support/client.h>

#include "probe.h"

#define PAGE 4096u
#define KIB  1024u
#define MIB  (1024u * 1024u)
#define CPU  SOFTGPU_ALLOCATION_CPU_VISIBLE

enum {
	READ_ONLY = 0x001,
	WRITE_ONLY = 0x002,
	DONOT_WAIT = 0x004,
	IGNORE_SYNC = 0x008,
	LOCK_ENTIRE = 0x010,
	DONOT_EVICT = 0x020,
	ACQUIRE_APERTURE = 0x040,
	DISCARD = 0x080,
	NO_EXISTING_REFERENCE = 0x100,
	USE_ALTERNATE_VA = 0x200,
	IGNORE_READ_SYNC = 0x400
};

enum { VRAM = 0x1, APERTURE = 0x2 };                /* segment sets */
enum { IN_VRAM = 1, IN_APERTURE = 2, EVICTED = 3 }; /* residency */

struct world {
	uint32_t kind; /* enum vidmm_host_kind */
	struct client client;
	struct client_device device;
	struct client_context context; /* node 0 */
	D3DKMT_HANDLE gate;
	_Atomic uint64_t *gate_word;
	uint64_t gate_value;
	bool expect_fatal;     /* the test breaks the adapter on purpose */
	uint64_t system_bytes; /* the adapter's own use after the start */
};

/* cmocka's state is the kind of host. NULL options: 16 MiB of video memory, 64 MiB of aperture. */
void world_start(struct world *w, void **state, const struct client_options *options);
/*
 * Asserts that nothing is left: no finding since the last client_forget, no fatal, no allocation,
 * no backing store.
 */
void world_stop(struct world *w);

/*
 * The next buffer of the context begins by waiting for the gate. Everything behind it is busy
 * until gate_open.
 */
void gate_close(struct world *w);
void gate_open(struct world *w);

/* Creates one allocation in the given segments (0: both), optionally with further properties. */
D3DKMT_HANDLE allocate_in(struct client_device *device, uint64_t bytes, uint32_t flags,
			  uint32_t segment_set);
D3DKMT_HANDLE allocate_wish(struct client_device *device, const struct softgpu_allocation *wish);
/* Creates COUNT allocations of 1 MiB in video memory, which the CPU may lock. */
void allocate_all(struct world *w, D3DKMT_HANDLE *a, uint32_t count);
struct softgpu_allocation wish_of(uint64_t bytes, uint32_t flags, uint32_t segment_set);
/* Returns which are resident in video memory: bit n is a[n]. COUNT is at most 32. */
uint32_t in_vram(struct world *w, const D3DKMT_HANDLE *a, uint32_t count);
/* By pfnSetPriorityCb, which must succeed. */
void set_priority(struct world *w, D3DKMT_HANDLE allocation, UINT priority);
/* Submits a reference to the allocation and waits until it completes. */
void use_now(struct world *w, D3DKMT_HANDLE allocation, bool write);
/*
 * Evicts the allocation from every segment, by pressure and by destroying an allocation. Asserts
 * residency 3. Video memory only.
 */
void evict_by_pressure(struct world *w, D3DKMT_HANDLE allocation);

/*
 * A probe.edit_allocation: a surface whose linear form is that of every other allocation. softgpu
 * gives it a range.
 */
void flag_swizzled(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index);
/*
 * Memory of the miniport: that many bytes at the end of the BAR, outside the first segment.
 * Returns the segment's CpuTranslatedAddress.
 */
uint64_t keep_window(DXGK_QUERYSEGMENTOUT3 *out, uint64_t bytes);

struct vidmm_adapter_statistics world_statistics(const struct world *w);

/* Asserts that the call fails with that finding, and with no other. */
void expect_lock_refused(struct world *w, D3DKMT_HANDLE allocation, uint32_t flags, HRESULT result,
			 const char *rule);
/*
 * Asserts that a lock with these flags and DonotWait fails because the GPU uses the allocation. It
 * emits one event (VIDMM_WAIT_DECLINED) and no finding. No other thread may wait at that moment.
 * (LOCK-08)
 */
void expect_lock_declined(struct world *w, D3DKMT_HANDLE allocation, uint32_t flags);
HRESULT lock_pages(struct client_device *device, D3DKMT_HANDLE *allocation, uint32_t flags,
		   const UINT *pages, UINT count, void **data);
HRESULT unlock_many(struct client_device *device, const D3DKMT_HANDLE *handles, UINT count);

/* A second thread of the client. */
struct helper {
	struct world *world;
	struct vidmm_thread *thread;
	D3DKMT_HANDLE allocation; /* input and output of the lock */
	uint32_t flags;
	HRESULT result;
	void *data;
	bool gate_was_open;     /* when the call returned */
	_Atomic uint32_t state; /* 1: about to call, 2: returned */
};
/* Starts a lock on another thread and returns when that thread is blocked in it or done. */
void lock_on_thread(struct helper *helper, struct world *w, D3DKMT_HANDLE allocation,
		    uint32_t flags);
void helper_join(struct helper *helper);

/* Both back ends: simulator and real threads. */
extern uint32_t on_sim, on_linux;
int world_prepare(void **state); /* before each test: the probe changes no answer */
#define BOTH(test)                                                    \
	{"sim: " #test, test, world_prepare, NULL, &on_sim},          \
	{                                                             \
		"linux: " #test, test, world_prepare, NULL, &on_linux \
	}
/* A refused request is one of the calling thread: all are on the simulator. */
#define ON_SIM(test)                                              \
	{                                                         \
		"sim: " #test, test, world_prepare, NULL, &on_sim \
	}
#define ON_LINUX(test)                                                \
	{                                                             \
		"linux: " #test, test, world_prepare, NULL, &on_linux \
	}

/*
 * Locks new allocations of that many bytes until there is no system memory for the next one.
 * Returns the last one that is locked.
 */
D3DKMT_HANDLE lock_all_system_memory(struct world *w, uint64_t bytes);

#endif
