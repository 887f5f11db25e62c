/* SPDX-License-Identifier: MIT */
/*
 * What every test of this folder starts from: an adapter, a process with a device, a 3D context, and a gate. The
 * gate is a word that the GPU waits for: what is submitted behind a closed gate is busy until the test opens it, on
 * real threads and on virtual time alike.
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
	uint64_t system_bytes; /* after the start: what the adapter itself holds */
};

/* cmocka's state is the kind of host. NULL options: 16 MiB of video memory, 64 MiB of aperture. */
void world_start(struct world *w, void **state, const struct client_options *options);
/* Nothing may be left: no finding since the last client_forget, no fatal, no allocation, no backing store. */
void world_stop(struct world *w);

/* The next buffer of the context begins by waiting; everything behind it is busy until gate_open. */
void gate_close(struct world *w);
void gate_open(struct world *w);

/* One allocation in the given segments (0: both), optionally with further wishes. */
D3DKMT_HANDLE allocate_in(struct client_device *device, uint64_t bytes, uint32_t flags,
			  uint32_t segment_set);
D3DKMT_HANDLE allocate_wish(struct client_device *device, const struct softgpu_allocation *wish);
struct softgpu_allocation wish_of(uint64_t bytes, uint32_t flags, uint32_t segment_set);
/* A submission that references it; waits for its end. */
void use_now(struct world *w, D3DKMT_HANDLE allocation, bool write);
/* Puts it out of every segment, by pressure or destruction of nothing: asserts residency 3. Video memory only. */
void evict_by_pressure(struct world *w, D3DKMT_HANDLE allocation);

/* probe.edit_allocation. A surface whose linear form is that of every other allocation: softgpu gives it a range. */
void flag_swizzled(void *context, DXGK_ALLOCATIONINFO *info, uint32_t index);
/* A miniport's own: so many bytes at the end of the BAR, out of the first segment. Its CpuTranslatedAddress. */
uint64_t keep_window(DXGK_QUERYSEGMENTOUT3 *out, uint64_t bytes);

struct vidmm_adapter_statistics world_statistics(const struct world *w);

/* The call fails with that finding, and with nothing else. */
void expect_lock_refused(struct world *w, D3DKMT_HANDLE allocation, uint32_t flags, HRESULT result,
			 const char *rule);
HRESULT lock_pages(struct client_device *device, D3DKMT_HANDLE *allocation, uint32_t flags,
		   const UINT *pages, UINT count, void **data);
HRESULT unlock_many(struct client_device *device, const D3DKMT_HANDLE *handles, UINT count);

/* A second thread of the client's. */
struct helper {
	struct world *world;
	struct vidmm_thread *thread;
	D3DKMT_HANDLE allocation; /* in and out of the lock */
	uint32_t flags;
	HRESULT result;
	void *data;
	bool gate_was_open;     /* when the call returned */
	_Atomic uint32_t state; /* 1: about to call, 2: returned */
};
/* Locks on another thread, which is left where the lock blocks. */
void lock_elsewhere(struct helper *helper, struct world *w, D3DKMT_HANDLE allocation,
		    uint32_t flags);
void helper_join(struct helper *helper);

/* Both back ends. */
extern uint32_t on_sim, on_linux;
int world_prepare(void **state); /* before each test: the probe changes nothing */
#define BOTH(test)                                                    \
	{"sim: " #test, test, world_prepare, NULL, &on_sim},          \
	{                                                             \
		"linux: " #test, test, world_prepare, NULL, &on_linux \
	}
#define ON_LINUX(test)                                                \
	{                                                             \
		"linux: " #test, test, world_prepare, NULL, &on_linux \
	}

#endif
