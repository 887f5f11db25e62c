/* SPDX-License-Identifier: MIT */
/*
 * Fixture of the submission and scheduling tests: a host, an adapter on the scripted miniport, a
 * process, a device and a context of node 0. By default nothing completes until the test calls
 * world_run.
 *
 * Every test runs on both back ends; `state` points to the kind of host.
 */
#ifndef VMM_TESTS_SCHED_WORLD_H
#define VMM_TESTS_SCHED_WORLD_H

#include <support/client.h>
#include <support/scripted_miniport.h>

#define KIB        1024u
#define MIB        (1024u * 1024u)
#define PAGE_BYTES 4096u

/* The two ways of running a test function. */
extern uint32_t world_sim, world_linux;
#define ON_SIM(test)                                        \
	{                                                   \
		"sim: " #test, test, NULL, NULL, &world_sim \
	}
#define ON_LINUX(test)                                          \
	{                                                       \
		"linux: " #test, test, NULL, NULL, &world_linux \
	}
#define ON_BOTH(test) ON_SIM(test), ON_LINUX(test)

/* DXGK_ALLOCATIONINFOFLAGS */
#define WORLD_CPU_VISIBLE 0x1u
/* Segment sets. */
#define WORLD_MEMORY      0x1u
#define WORLD_APERTURE    0x2u

struct world {
	uint32_t kind;
	struct scripted_miniport *m;
	struct client client;
	struct client_device device;
	struct client_context context;
	uint64_t fatal[4]; /* code and parameters of the first VIDMM_EVENT_FATAL */
	uint32_t fatals;
	uint32_t expected_fatals, expected_faults;
};

/* Changes the settings of the miniport before it starts; NULL: defaults. */
typedef void world_setup(struct scripted_miniport *m);
void world_start(struct world *w, void **state, world_setup *setup);
/* The policy lru, which evicts until a range is free: nothing moves inside a segment. */
void world_start_lru(struct world *w, void **state, world_setup *setup);
/* Starts host and adapter only; with other options; then opens the device and its context. */
void world_start_adapter(struct world *w, void **state, world_setup *setup);
void world_start_with(struct world *w, void **state, world_setup *setup,
		      const struct client_options *options);
void world_open(struct world *w);
/*
 * Finishes all work and closes everything. Asserts that no finding is left unread and that the
 * miniport has leaked nothing.
 */
void world_stop(struct world *w);
void world_stop_adapter(struct world *w);
/* Asserts that the one finding the test has provoked is of the rule, and forgets it. */
void world_expect_finding(struct world *w, const char *rule);

/* An allocation that may be in any segment and is CPU-visible; or one as specified. */
D3DKMT_HANDLE world_allocate(struct world *w, uint64_t bytes, uint32_t segment_set);
D3DKMT_HANDLE world_allocate_as(struct client_device *device,
				const struct scripted_allocation *spec);

/* Appends a command: USE or WRITE of an allocation at an offset. */
void world_use(struct client_context *context, D3DKMT_HANDLE allocation);
void world_write(struct client_context *context, D3DKMT_HANDLE allocation, uint64_t offset,
		 uint32_t value);
void world_command(struct client_context *context, const struct scripted_command *command);
/*
 * The arguments of pfnRenderCb for the commands appended so far; then the call, after which the
 * buffer is empty again.
 */
D3DDDICB_RENDER world_render_args(const struct client_context *context);
HRESULT world_render(struct client_context *context, D3DDDICB_RENDER *args);
/* One submission that uses the allocation. */
void world_submit_use(struct client_context *context, D3DKMT_HANDLE allocation);
void world_submit_write(struct client_context *context, D3DKMT_HANDLE allocation, uint64_t offset,
			uint32_t value);
/* as the CPU sees it */
uint32_t world_word(struct world *w, D3DKMT_HANDLE allocation, uint64_t offset);
/*
 * The word that the GPU finds at that offset of the first allocation of the last submission, at its
 * patched address.
 */
uint32_t world_gpu_word(struct world *w, uint64_t offset);

/* The GPU works until everything submitted so far is complete. */
void world_run(struct world *w);
/* Lets other threads run until the miniport has seen `count` calls of the DDI. */
void world_await(struct world *w, enum vidmm_ddi ddi, uint32_t count);
/* The number of render packets among the recorded submissions. */
uint32_t world_render_submits(const struct world *w);
const struct scripted_call *world_nth_of(const struct world *w, enum vidmm_ddi ddi, bool paging,
					 uint32_t n);
/* SUB-01 and DMA-31: asserts that the fence ids of all packets patched so far are consecutive. */
void world_assert_fences(const struct world *w);

#endif
