/* SPDX-License-Identifier: MIT */
/*
 * D3DKMT clients of softgpu with Model wddm2: each is a process with a device, a paging queue, a
 * virtual context on each node, a monitored fence, and memory for commands. The calling thread is
 * attached to the client that it used last.
 */
#ifndef VMM_TESTS_GVA_CLIENT_H
#define VMM_TESTS_GVA_CLIENT_H

#include <support/client.h>

#include <d3dkmthk.h>

#define KIB  1024ull
#define MIB  (1024 * KIB)
#define PAGE (4 * KIB)

extern uint32_t gva_sim, gva_linux;
#define ON_SIM(test)                                      \
	{                                                 \
		"sim: " #test, test, NULL, NULL, &gva_sim \
	}
#define ON_BOTH(test)                                         \
	ON_SIM(test),                                         \
	{                                                     \
		"linux: " #test, test, NULL, NULL, &gva_linux \
	}

struct gva_options {
	uint64_t vram_bytes;   /* 0: 16 MiB */
	uint32_t levels;       /* PageTableLevels; 0: 4 */
	uint32_t page_bytes;   /* VramPageSize; 0: 4096 */
	uint32_t sources;      /* VideoPresentSources */
	uint32_t version;      /* InterfaceVersion; 0: the default */
	uint32_t rate;         /* EngineBytesPerUs; 0: the default */
	uint32_t link_rate;    /* HostLinkBytesPerUs */
	uint32_t paging_bytes; /* PagingBufferSize; 0: the default */
	bool adapter_reset;    /* PerEngineTdr 0 */
	bool preemption;       /* PreemptionAware 1 */
	bool lru;              /* nothing moves inside a segment before an eviction */
	uint32_t hw_queues;    /* HardwareQueues; the host enables hardware scheduling */
};
void gva_start(struct client *host, void **state, const struct gva_options *options);
/* Asserts that there was no finding that the test did not expect. */
void gva_stop(struct client *host);
/* Asserts that there was a finding of that rule, which counts as expected. */
void gva_found(struct client *host, const char *rule);

struct gva_client {
	struct client *host;
	struct vidmm_process *process;
	D3DKMT_HANDLE adapter, device, context[2];
	D3DKMT_CREATEPAGINGQUEUE queue;
	D3DKMT_HANDLE fence;
	uint64_t fence_at; /* GPU virtual address */
	const _Atomic uint64_t *fence_word;
	uint64_t signaled; /* value of the last signal that was submitted */
	D3DKMT_HANDLE commands;
	uint64_t commands_at;
	char *commands_data;
	uint32_t start, used; /* the commands that are being written */
};
void gva_open(struct client *host, struct gva_client *c);
void gva_close(struct gva_client *c);
void gva_enter(struct gva_client *c);

/* ---- memory ---- */
#define GVA_VRAM     0x1u
#define GVA_APERTURE 0x2u
NTSTATUS gva_try_allocate(struct gva_client *c, const struct softgpu_allocation *spec,
			  D3DKMT_HANDLE *allocation);
D3DKMT_HANDLE gva_allocate(struct gva_client *c, uint64_t bytes, uint32_t segment_set);
void gva_destroy(struct gva_client *c, D3DKMT_HANDLE allocation);
void gva_make_resident(struct gva_client *c, D3DKMT_HANDLE allocation);
void gva_evict(struct gva_client *c, D3DKMT_HANDLE allocation);
/* Writable, at `base` or anywhere (0). The page tables are correct when it returns. */
uint64_t gva_map(struct gva_client *c, D3DKMT_HANDLE allocation, uint64_t bytes, uint64_t base);
uint64_t gva_map_args(struct gva_client *c, D3DDDI_MAPGPUVIRTUALADDRESS *args);
uint64_t gva_reserve(struct gva_client *c, uint64_t bytes, uint32_t type);
/* gva_allocate, gva_map and gva_make_resident */
struct gva_memory {
	D3DKMT_HANDLE handle;
	uint64_t bytes, at;
};
struct gva_memory gva_memory(struct gva_client *c, uint64_t bytes, uint32_t segment_set);
void *gva_lock(struct gva_client *c, D3DKMT_HANDLE allocation);
void gva_unlock(struct gva_client *c, D3DKMT_HANDLE allocation);
/* Asserts that every word of a part has the value. */
void gva_expect(struct gva_client *c, D3DKMT_HANDLE allocation, uint64_t offset, uint64_t bytes,
		uint32_t word);

/* ---- commands ---- */
void gva_command(struct gva_client *c, const void *command, uint32_t bytes);
void gva_fill(struct gva_client *c, uint64_t to, uint64_t bytes, uint32_t pattern);
void gva_copy(struct gva_client *c, uint64_t from, uint64_t to, uint64_t bytes);
void gva_stall(struct gva_client *c, uint64_t nanoseconds);
/* WAIT or SIGNAL */
void gva_sync(struct gva_client *c, uint32_t opcode, uint32_t flags, uint64_t at, uint64_t value);
/* Submits what was written since the last submission. */
NTSTATUS gva_try_submit(struct gva_client *c, uint32_t node);
/* Submits, then a signal of the fence at the end of the packet. */
void gva_submit(struct gva_client *c, uint32_t node);
/* Waits on the CPU for the last signal. */
NTSTATUS gva_try_wait(struct gva_client *c);
void gva_wait(struct gva_client *c);
void gva_run(struct gva_client *c, uint32_t node); /* submits and waits */
/* ---- hardware queues ---- */
struct gva_hw {
	struct gva_client *c;
	D3DKMT_HANDLE context, queue, fence;
	uint64_t fence_at; /* GPU virtual address of the progress fence */
	const _Atomic uint64_t *fence_word;
	uint64_t submitted; /* id of the last submission */
};
/* Creates a context and a queue of it; or, with `beside`, a queue of that one's context. */
void gva_hw_open(struct gva_client *c, uint32_t node, const struct gva_hw *beside,
		 struct gva_hw *hw);
NTSTATUS gva_hw_try_submit(struct gva_hw *hw, uint64_t id);
/* Submits what was written since the last submission, with the next id. */
void gva_hw_submit(struct gva_hw *hw);
/* Waits on the CPU for the last submission. */
void gva_hw_wait(struct gva_hw *hw);
void gva_hw_run(struct gva_hw *hw); /* submits and waits */
bool gva_hw_is_done(const struct gva_hw *hw);

D3DKMT_DEVICEEXECUTION_STATE gva_state(struct gva_client *c);

#endif
