/* SPDX-License-Identifier: MIT */
/* The host, its adapter, and the processes of a run. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vidmm/softgpu.h>

#include "record_write.h"
#include "sim.h"

void sim_wrong(struct sim *sim, const char *rule, const char *format, ...)
{
	struct sim_result *result = sim->result;
	va_list args;

	result->failed = true;
	snprintf(result->rule, sizeof(result->rule), "%s", rule);
	va_start(args, format);
	vsnprintf(result->text, sizeof(result->text), format, args);
	va_end(args);
	/* What is open stays open: it may be in any state. */
	(void)record_finish(sim->record);
	_Exit(1);
}

const char *sim_rule(struct sim *sim, const char *otherwise)
{
	size_t length = strcspn(sim->finding, ":");

	if (!sim->findings || sim->findings_expected || length >= sizeof(sim->rule))
		return otherwise;
	memcpy(sim->rule, sim->finding, length);
	sim->rule[length] = '\0';
	return sim->rule;
}

static bool is_no_memory(HRESULT result)
{
	return result == E_OUTOFMEMORY || result == (HRESULT)STATUS_NO_MEMORY ||
	       result == (HRESULT)STATUS_INSUFFICIENT_RESOURCES;
}

bool sim_expect(struct sim *sim, const char *rule, const char *call, HRESULT result,
		const HRESULT *also)
{
	if (result == S_OK)
		return true;
	for (; also && *also != S_OK; also++)
		if (*also == result)
			return false;
	if (sim->no_memory && is_no_memory(result))
		return false;
	sim_wrong(sim, sim_rule(sim, rule), "%s returned 0x%08" PRIX32 "%s%s", call,
		  (uint32_t)result, sim->findings ? "; " : "", sim->findings ? sim->finding : "");
}

/* A packet that is preempted for ever keeps the step from its end. */
#define RECOVERIES_MAX 1000u

static void note_recovery(struct sim *sim, uint32_t reason)
{
	sim->result->resets +=
		reason == VIDMM_RECOVERY_RESET || reason == VIDMM_RECOVERY_ENGINE_RESET;
	if (++sim->recoveries == RECOVERIES_MAX)
		sim_wrong(sim, "Q-411", "the step does not end: a packet is never complete%s%s",
			  sim->findings ? "; " : "", sim->findings ? sim->finding : "");
}

/* Paging that undoes itself keeps the step from its end. */
static void note_completion(struct sim *sim)
{
	if (++sim->completions - sim->completions_before_step > sim->setup->packets)
		sim_wrong(sim, "Q-497",
			  "the step does not end: more than %llu packets are complete%s%s",
			  (unsigned long long)sim->setup->packets, sim->findings ? "; " : "",
			  sim->findings ? sim->finding : "");
}

static void on_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct sim *sim = context;

	if (event->type == VIDMM_EVENT_FENCE) {
		note_completion(sim);
		return;
	}
	if (event->type == VIDMM_EVENT_RECOVERY) {
		note_recovery(sim, event->reason);
		return;
	}
	if (sim->findings++)
		return;
	if (event->type == VIDMM_EVENT_FATAL)
		snprintf(sim->finding, sizeof(sim->finding), "FATAL: bug check 0x%" PRIX64,
			 event->arg[0]);
	else
		snprintf(sim->finding, sizeof(sim->finding), "%s", text ? text : "");
}

static void on_deadlock(void *context, const char *report)
{
	struct sim *sim = context;
	struct sim_result *result = sim->result;

	/* The caller can never return: its process ends here. */
	(void)record_finish(sim->record);
	result->failed = true;
	snprintf(result->rule, sizeof(result->rule), "DEADLOCK");
	snprintf(result->text, sizeof(result->text), "no thread can run: %.350s", report);
	_Exit(1);
}

/* ---- the adapter ---- */

void sim_start_adapter(struct sim *sim)
{
	const struct sim_setup *s = sim->setup;
	const struct vidmm_registry_value registry[] = {
		{"Model", s->model},
		{"ApertureSize", s->aperture_bytes},
		{"DmaBufferSize", s->dma_bytes},
		{"PagingBufferSize", s->paging_bytes},
		{"PerEngineTdr", s->engine_reset},
		{"PreemptionAware", s->preempts},
	};
	/* No number of resets is fatal, or makes a process lose its right to devices. */
	const struct vidmm_tdr_options tdr = {3, 2000, 5000, 1, VIDMM_TDR_LIMIT_MAX, 2};
	struct vidmm_adapter_options options = {
		.struct_size = sizeof(options),
		.driver_entry = sim->entry,
		.bar_sizes = &s->vram_bytes,
		.bar_count = 1,
		.registry = registry,
		.registry_count = sizeof(registry) / sizeof(registry[0]),
		.first_fence_id = s->first_fence,
		.tdr = &tdr,
	};
	vidmm_status status = vidmm_adapter_start(sim->host, &options, &sim->adapter);

	if (status < 0)
		sim_wrong(sim, "PNP-01", "the adapter did not start: status 0x%08" PRIX32 "; %s",
			  (uint32_t)status, sim->findings ? sim->finding : "no finding");
}

void sim_stop_adapter(struct sim *sim)
{
	vidmm_adapter_stop(sim->adapter);
	sim->adapter = NULL;
}

/* ---- processes ---- */

void sim_open_context(struct sim *sim, uint32_t process, uint32_t context)
{
	struct sim_process *p = &sim->process[process];
	D3DDDICB_CREATECONTEXT args = {.NodeOrdinal = context % 2};

	if (!sim_expect(sim, "PNP-01", "pfnCreateContextCb",
			p->cb->pfnCreateContextCb(p->handle, &args), NULL))
		return;
	p->context[context] = args;
	sim->model.process[process].context[context].exists = true;
}

void sim_open_device(struct sim *sim, uint32_t process)
{
	struct sim_process *p = &sim->process[process];
	vidmm_status status = vidmm_device_create(p->process, sim->adapter, &p->device);

	if (status < 0)
		sim_wrong(sim, "PNP-01", "vidmm_device_create returned 0x%08" PRIX32,
			  (uint32_t)status);
	p->cb = vidmm_device_callbacks(p->device);
	p->handle = vidmm_device_handle(p->device);
	for (uint32_t i = 0; i < MODEL_CONTEXTS; i++)
		sim_open_context(sim, process, i);
	if (sim->wddm2)
		sim_expect(sim, "RES-04", "pfnCreatePagingQueueCb",
			   p->cb->pfnCreatePagingQueueCb(p->handle, &p->queue), NULL);
}

/* The fences of 1.x belong to the process, and outlive its device. (SYN-14) */
void sim_open_device_again(struct sim *sim, uint32_t process)
{
	struct sim_process *p = &sim->process[process];
	const struct sim_process before = *p;
	uint64_t budget_bytes = sim->model.process[process].budget_bytes;

	vidmm_device_destroy(p->device);
	model_end_process(&sim->model, process);
	sim->model.process[process].budget_bytes = budget_bytes;
	memset(p, 0, sizeof(*p));
	p->process = before.process;
	sim_open_device(sim, process);
	if (!sim->wddm2)
		sim_end_fences(sim, process, before.fence);
}

void sim_open_process(struct sim *sim, uint32_t process)
{
	char name[16];

	snprintf(name, sizeof(name), "sim %" PRIu32, process);
	memset(&sim->process[process], 0, sizeof(sim->process[process]));
	vidmm_status status = vidmm_process_open(sim->host, name, &sim->process[process].process);
	if (status < 0)
		sim_wrong(sim, "PNP-01", "vidmm_process_open returned 0x%08" PRIX32,
			  (uint32_t)status);
	sim->model.process[process].budget_bytes = sim->setup->vram_bytes;
	sim_open_device(sim, process);
}

void sim_close_process(struct sim *sim, uint32_t process)
{
	struct sim_process *p = &sim->process[process];

	vidmm_process_close(p->process);
	memset(p, 0, sizeof(*p));
	model_end_process(&sim->model, process);
}

void sim_idle(struct sim *sim)
{
	uint64_t before;

	/*
	 * What waits for a fence that has just been signaled becomes work first. A signal of the
	 * GPU may release what was behind a wait when the adapter's wait began.
	 */
	do {
		before = sim->completions;
		vidmm_settle(sim->host);
		vidmm_adapter_wait_idle(sim->adapter);
		vidmm_settle(sim->host);
	} while (sim->completions != before);
	model_idle(&sim->model);
}

/* ---- start and end ---- */

bool sim_create_host(struct sim *sim)
{
	const struct vidmm_host_options options = {
		.struct_size = sizeof(options),
		.kind = VIDMM_HOST_SIM,
		.seed = sim->setup->seed,
		.switch_per_1024 = sim->setup->switch_per_1024,
		.hash_events = true,
		.deadlock = on_deadlock,
		.deadlock_context = sim,
	};
	const uint64_t events = 1ull << VIDMM_EVENT_FINDING | 1ull << VIDMM_EVENT_FATAL |
				1ull << VIDMM_EVENT_RECOVERY | 1ull << VIDMM_EVENT_FENCE;

	if (vidmm_host_create(&options, &sim->host) >= 0 &&
	    vidmm_subscribe(sim->host, events, on_event, sim))
		return true;
	fputs("vidmm sim: there is no host\n", stderr);
	return false;
}

void sim_start(struct sim *sim)
{
	sim->wddm2 = sim->setup->model == SOFTGPU_MODEL_WDDM2;
	sim->model.contents = !sim->setup->no_contents;
	sim_start_adapter(sim);
	for (uint32_t i = 0; i < sim->setup->processes; i++)
		sim_open_process(sim, i);
}

void sim_stop(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->setup->processes; i++)
		sim_close_process(sim, i);
	sim_stop_adapter(sim);
}
