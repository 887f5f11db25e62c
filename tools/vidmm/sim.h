/* SPDX-License-Identifier: MIT */
/*
 * `vidmm sim`: random work of several processes through the public doors, with faults, on the
 * simulated host. A model (sim_model.h) says what each call must return and what memory must
 * contain. The first difference ends the run.
 *
 * A step is self-contained: it names objects by small numbers, and is skipped if they do not exist
 * or are in a state that does not permit it. So any step may be left out of a list of steps, and
 * the others keep their meaning.
 */
#ifndef VIDMM_TOOLS_SIM_H
#define VIDMM_TOOLS_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <d3dumddi.h>
#include <vidmm/vidmm.h>

#include "replay.h"
#include "sim_model.h"

enum sim_op {
	/* work */
	SIM_CREATE,
	SIM_DESTROY,
	SIM_READ,
	SIM_WRITE,
	SIM_HOLD,
	SIM_RELEASE,
	SIM_DISCARD,
	SIM_FILL,
	SIM_COPY,
	SIM_OFFER,
	SIM_RECLAIM,
	SIM_PRIORITY,
	SIM_QUERY,
	SIM_LIST,
	SIM_UNLIST,
	SIM_BUDGET,
	SIM_CONTEXT,
	SIM_DEVICE,
	SIM_FENCE,
	SIM_SIGNAL,
	SIM_GPU_SIGNAL,
	SIM_GPU_WAIT,
	SIM_IDLE,
	SIM_ILLEGAL,
	/* faults */
	SIM_STALL,
	SIM_REPEAT,
	SIM_LOSE,
	SIM_LOSE_ALL,
	SIM_ANSWER,
	SIM_HANG,
	SIM_POWER,
	SIM_DEATH,
	SIM_RESTART,
	SIM_REMOVAL,
	SIM_CLOCK,
	SIM_NO_MEMORY,
	SIM_OPS
};
#define SIM_FIRST_FAULT SIM_STALL

struct sim_step {
	uint32_t op; /* enum sim_op */
	uint32_t process, a, b, c, d;
};

/* What a run is about, beside its steps. */
struct sim_setup {
	uint64_t seed;
	uint32_t processes; /* 1 to MODEL_PROCESSES */
	uint32_t model;     /* enum softgpu_model */
	uint64_t vram_bytes, aperture_bytes;
	uint32_t dma_bytes, paging_bytes; /* of DMA buffers and paging buffers */
	uint32_t first_fence;
	uint32_t engine_reset;    /* 0: a hung engine resets the adapter */
	uint32_t preempts;        /* 1: PreemptionAware */
	uint32_t switch_per_1024; /* of vidmm_host_options */
	uint32_t faults;          /* of the adapter; bit n: enum sim_fault n */
	bool no_contents;
	uint64_t packets; /* most completed packets of a step */
};

/* What a run found; in memory that the processes of the program share. */
struct sim_result {
	bool failed, finished;
	uint64_t step; /* index of the step that failed, or of the last one */
	char rule[16];
	char text[400];
	uint64_t done[SIM_OPS], refused[SIM_OPS], skipped[SIM_OPS];
	uint64_t compared_bytes, hash, evictions, discards, resets;
	double seconds;
	uint64_t run;  /* of a series: the number of the one that failed */
	uint64_t runs; /* of the series */
};

struct sim_allocation {
	D3DKMT_HANDLE handle;
	void *data; /* while the model holds it */
	uint32_t segment_set;
	bool permanent; /* PermanentSysMem */
};

struct sim_process {
	struct vidmm_process *process;
	struct vidmm_device *device;
	const D3DDDI_DEVICECALLBACKS *cb;
	HANDLE handle;
	struct sim_allocation allocation[MODEL_ALLOCATIONS];
	D3DDDICB_CREATECONTEXT context[MODEL_CONTEXTS];
	D3DKMT_HANDLE fence[MODEL_FENCES];
	const uint64_t *fence_word[MODEL_FENCES]; /* monitored fences */
	D3DDDICB_CREATEPAGINGQUEUE queue;
};

struct sim {
	const struct sim_setup *setup;
	struct sim_result *result;
	vidmm_driver_entry_fn *entry;
	struct vidmm_host *host;
	struct vidmm_adapter *adapter;
	struct sim_process process[MODEL_PROCESSES];
	struct model model;
	const struct sim_step *step;
	uint64_t completions; /* events of fences */
	uint64_t completions_before_step;
	uint64_t findings;   /* since the step began */
	char finding[320];   /* the first of them */
	char rule[16];       /* of sim_rule */
	uint32_t recoveries; /* from timeouts, since the step began */
	/* The step's findings are its purpose. */
	bool findings_expected;
	bool no_memory; /* an allocation of the library fails during the step */
	bool wddm2;
	struct record_writer *record; /* NULL: none */
};

/* ---- sim_step.c ---- */
extern const char *const sim_op_names[SIM_OPS];
/* Draws step number INDEX of a seed: the same for each run. */
struct sim_step sim_draw(uint64_t seed, uint64_t index, uint32_t processes,
			 const uint32_t weights[SIM_OPS]);
extern const uint32_t sim_weights[SIM_OPS];
/* Draws what the seed decides about the adapter; FAULTS: bit n is fault n of sim_faults. */
void sim_draw_setup(struct sim_setup *setup, uint32_t faults);
/* The faults of --faults. Those that are operations have the operation's name. */
enum sim_fault {
	SIM_FAULT_MEMORY,
	SIM_FAULT_APERTURE,
	SIM_FAULT_BUFFERS,
	SIM_FAULT_WRAP,
	SIM_FAULTS_OF_SETUP
};
extern const char *const sim_fault_names[SIM_FAULTS_OF_SETUP];

/* ---- sim_pick.c ---- */
/* Replaces the allocations of a step by the next ones that the operation can work on. */
void sim_pick(const struct sim *sim, struct sim_step *step);

/* ---- sim_world.c ---- */
bool sim_create_host(struct sim *sim); /* false: after a message */
/* Starts the adapter and the processes. */
void sim_start(struct sim *sim);
void sim_stop(struct sim *sim);
void sim_start_adapter(struct sim *sim);
void sim_stop_adapter(struct sim *sim);
void sim_open_process(struct sim *sim, uint32_t process);
/* All objects of the process end, in any state. */
void sim_close_process(struct sim *sim, uint32_t process);
void sim_open_device(struct sim *sim, uint32_t process);
void sim_open_context(struct sim *sim, uint32_t process, uint32_t context);
/* Ends the device, lost or not, with all that belongs to it, and creates another one. */
void sim_open_device_again(struct sim *sim, uint32_t process);
/* Waits until the work that can run has run. */
void sim_idle(struct sim *sim);
/* Ends the process of the run: RULE is broken. */
void sim_wrong(struct sim *sim, const char *rule, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
/* The rule of the step's first finding; OTHERWISE if there is none that matters. */
const char *sim_rule(struct sim *sim, const char *otherwise);
/*
 * Returns true for S_OK, false for one of ALSO (which ends with S_OK; NULL: none), or for a lack of
 * memory that the step has caused. Another result ends the run.
 */
bool sim_expect(struct sim *sim, const char *rule, const char *call, HRESULT result,
		const HRESULT *also);
static inline void sim_done(struct sim *sim)
{
	sim->result->done[sim->step->op]++;
}
static inline void sim_refused(struct sim *sim)
{
	sim->result->refused[sim->step->op]++;
}
static inline void sim_skip(struct sim *sim)
{
	sim->result->skipped[sim->step->op]++;
}

/* ---- what steps do ---- */
typedef void sim_act_fn(struct sim *sim, const struct sim_step *step);
/* sim_memory.c */
sim_act_fn sim_create, sim_destroy, sim_read, sim_write, sim_hold, sim_release, sim_discard;
/* Locks and compares all of an allocation that no GPU work uses. */
void sim_verify(struct sim *sim, uint32_t process, uint32_t allocation);
/* Returns whether the step's process has the allocation, and no call or work is in its way. */
bool sim_is_free(const struct sim *sim, uint32_t process, uint32_t allocation);
bool sim_may_hold(const struct sim *sim, uint32_t process, uint32_t allocation);
/* sim_residency.c */
sim_act_fn sim_offer, sim_reclaim, sim_priority, sim_query, sim_list, sim_unlist, sim_budget;
/* sim_work.c */
sim_act_fn sim_fill, sim_copy, sim_context, sim_device, sim_stall, sim_repeat, sim_lose;
sim_act_fn sim_lose_all, sim_answer, sim_hang;
/* The context of a step, and whether its work may use the allocation. */
uint32_t sim_context_of(const struct sim_step *step);
bool sim_may_use(const struct sim *sim, uint32_t process, uint32_t context, uint32_t allocation);
/* sim_fence.c */
sim_act_fn sim_fence, sim_signal, sim_gpu_signal, sim_gpu_wait;
void sim_check_fences(struct sim *sim, uint32_t process);
/* Destroys fences that have outlived the device of the process. */
void sim_end_fences(struct sim *sim, uint32_t process, const D3DKMT_HANDLE *fences);
/* sim_illegal.c */
sim_act_fn sim_illegal;
/* sim_faults.c */
sim_act_fn sim_idle_step, sim_power, sim_death, sim_restart, sim_removal, sim_clock, sim_no_memory;
/*
 * After a timeout of work of the process HUNG: checks which devices are lost, and opens them again.
 * POSSIBLE: it depends on the miniport whether there was a timeout. (SUB-14)
 */
enum sim_loss { SIM_LOSS_POSSIBLE, SIM_LOSS_CERTAIN };
void sim_recover(struct sim *sim, enum sim_loss loss, uint32_t hung);

/* ---- sim_run.c ---- */
/* What the operations do. */
extern sim_act_fn *const sim_acts[SIM_OPS];
/* Where the steps of a run come from: STEPS, or if that is NULL the seed. */
struct sim_plan {
	struct sim_setup setup;
	const struct sim_step *steps;
	uint64_t count;
	const uint32_t *weights;
	vidmm_driver_entry_fn *entry;
	const char *record; /* NULL: no recording */
	bool quiet;         /* the run writes nothing on stderr */
	/* NULL, or shared memory for `count` steps: those that sim_pick made; SIM_OPS: skipped. */
	struct sim_step *picked;
};
/* Memory that the program shares with the processes of its runs. NULL: there is none. */
void *sim_share(size_t size_bytes);
void sim_unshare(void *memory, size_t size_bytes);
/*
 * Runs it in a process, so that a difference, a crash and a deadlock each end the run alone. RESULT
 * is shared memory. Returns false, after a message, if there is no process.
 */
bool sim_run(const struct sim_plan *plan, struct sim_result *result);
/* Makes run INDEX of a series in *plan. SIM_NO_RUN: there is nothing to run with this number. */
enum sim_next { SIM_NO_RUN, SIM_RUN, SIM_LAST };
typedef enum sim_next sim_next_fn(void *context, uint64_t index, struct sim_plan *plan);
/*
 * Does the same with runs FIRST, FIRST + 1 and so on, one after the other in one process, until one
 * fails: result->run is its number.
 */
bool sim_run_series(sim_next_fn *next, void *context, uint64_t first, struct sim_result *result);

/* ---- sim_script.c ---- */
/* Returns false if FILE cannot be written. */
bool sim_script_write(FILE *file, const struct sim_setup *setup, const struct sim_step *steps,
		      uint64_t count);
/* Reads a script. The caller frees *STEPS. Messages have been written after a failure. */
enum replay_status sim_script_read(const char *path, struct sim_setup *setup,
				   struct sim_step **steps, uint64_t *count);

/* ---- sim_minimise.c ---- */
/*
 * Shortens a run that fails: leaves out steps and simplifies the numbers of the others, as long as
 * the run breaks the same rule. On entry STEPS has the *COUNT steps of the run, on return those of
 * the short run, with its *setup. Returns false, after a message, if the system refuses memory or
 * a process.
 */
bool sim_minimise(const struct sim_plan *plan, const struct sim_result *failure,
		  struct sim_setup *setup, struct sim_step *steps, uint64_t *count, uint64_t *runs);

int sim_main(int argc, const char **argv);

#endif
