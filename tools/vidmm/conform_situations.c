/* SPDX-License-Identifier: MIT */
/* The situations of `vidmm conform`, in the order of the report. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conform_stage.h"

#define KIB      1024u
#define LIMIT    ((uint64_t)4 << 20) /* of each memory segment, for pressure */
#define BUFFER   ((uint64_t)512 * KIB)
#define PRESSURE 24u /* buffers: three times the limit */

#define MS           UINT64_C(1000000) /* in ns */
#define SETTLE_STEPS 1000u
#define LOSE_STEPS   10000u
#define STILL_STEPS  300u /* much less than half of TdrDelay, when the miniport is asked */

/* ---- without commands ---- */

static void start_twice(struct conform_stage *stage)
{
	for (unsigned i = 0; i < 2 && stage_start(stage, 0); i++)
		stage_stop(stage);
	stage_say(stage, CONFORM_OK, "started, stopped and unloaded twice");
}

static void report_capabilities(struct conform_stage *stage)
{
	struct vidmm_adapter_statistics s;
	unsigned apertures = 0;
	uint64_t bytes = 0;

	if (!stage_start(stage, 0))
		return;
	s = stage_statistics(stage);
	for (uint32_t i = 0; i < s.segment_count; i++) {
		apertures += s.segment[i].aperture != 0;
		bytes += s.segment[i].aperture ? 0 : s.segment[i].size_bytes;
	}
	stage_say(stage, CONFORM_OK,
		  "WDDM %s, %u segments with %" PRIu64 " KiB of memory, %u of "
		  "them apertures",
		  stage->world.wddm2 ? "2.x" : "1.x", s.segment_count, bytes / KIB, apertures);
}

/* ---- pressure ---- */

static bool create_all(struct conform_stage *stage, uint32_t count, uint64_t size_bytes)
{
	for (uint32_t i = 0; i < count; i++)
		if (!stage_create(stage, size_bytes))
			return false;
	return true;
}

/* Uses the buffers in turn, so that each needs the place of others. */
static bool use_in_turn(struct conform_stage *stage, uint32_t count, unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++)
		for (uint32_t id = 1; id <= count; id++)
			if (!stage_submit(stage, id, 1, (round + id) % 3 != 0))
				return false;
	return true;
}

static bool begin(struct conform_stage *stage, uint64_t limit_bytes)
{
	return stage_start(stage, limit_bytes) && stage_open(stage);
}

static void place_in_each_segment(struct conform_stage *stage)
{
	struct vidmm_adapter_statistics s;
	unsigned used = 0;

	if (!begin(stage, 0))
		return;
	s = stage_statistics(stage);
	for (uint32_t i = 0; i < s.segment_count; i++) {
		stage->world.wished_segment = i + 1;
		if (!create_all(stage, 2, BUFFER) ||
		    !stage_submit(stage, stage->buffers - 1, 1, true) ||
		    !stage_submit(stage, stage->buffers, 1, true))
			return;
	}
	stage->world.wished_segment = 0;
	if (!stage_verify(stage))
		return;
	s = stage_statistics(stage);
	for (uint32_t i = 0; i < s.segment_count; i++)
		used += s.segment[i].peak_resident_bytes != 0;
	stage_say(stage, CONFORM_OK, "%u of %u segments held allocations", used, s.segment_count);
}

static void page_in_and_out(struct conform_stage *stage)
{
	struct vidmm_adapter_statistics s;

	if (!begin(stage, LIMIT) || !create_all(stage, PRESSURE, BUFFER) ||
	    !use_in_turn(stage, PRESSURE, 4) || !stage_verify(stage))
		return;
	s = stage_statistics(stage);
	if (!s.bytes_paged_in || !s.bytes_paged_out)
		stage_say(stage, CONFORM_NOT_EXERCISED,
			  "nothing was paged: the allocations are in no memory segment, or fit");
	else
		stage_say(stage, CONFORM_OK,
			  "%" PRIu64 " KiB paged in, %" PRIu64 " KiB out, %" PRIu64 " evictions",
			  s.bytes_paged_in / KIB, s.bytes_paged_out / KIB, s.evictions);
}

/* Buffers of different sizes come and go: the free bytes are scattered. */
static void move_inside_a_segment(struct conform_stage *stage)
{
	struct vidmm_adapter_statistics s;

	if (!begin(stage, LIMIT))
		return;
	for (uint32_t i = 0; i < 60; i++) {
		if (!stage_create(stage, (uint64_t)(1 + i * 7 % 12) * 64 * KIB) ||
		    !stage_submit(stage, stage->buffers, 1, true))
			return;
	}
	for (uint32_t id = 1; id <= stage->buffers; id += 3)
		if (!stage_destroy(stage, id))
			return;
	for (uint32_t round = 0; round < 6; round++)
		for (uint32_t id = 2 + round % 2; id <= stage->buffers; id += 3)
			if (!stage_submit(stage, id, 1, round % 2))
				return;
	if (!stage_create(stage, LIMIT / 4 * 3) || !stage_submit(stage, stage->buffers, 1, true) ||
	    !stage_verify(stage))
		return;
	s = stage_statistics(stage);
	if (s.bytes_moved)
		stage_say(stage, CONFORM_OK, "%" PRIu64 " KiB moved inside a segment",
			  s.bytes_moved / KIB);
	else
		stage_say(stage, CONFORM_NOT_EXERCISED, "no content was moved inside a segment");
}

static void map_the_aperture(struct conform_stage *stage)
{
	struct vidmm_adapter_statistics s;
	uint32_t aperture = 0;

	if (!begin(stage, LIMIT))
		return;
	s = stage_statistics(stage);
	for (uint32_t i = 0; i < s.segment_count; i++)
		if (s.segment[i].aperture)
			aperture = i + 1;
	if (!aperture) {
		stage_say(stage, CONFORM_NOT_EXERCISED, "the adapter has no aperture segment");
		return;
	}
	stage->world.wished_segment = aperture;
	if (!create_all(stage, PRESSURE, BUFFER) || !use_in_turn(stage, PRESSURE, 2) ||
	    !stage_verify(stage))
		return;
	for (uint32_t id = 1; id <= PRESSURE; id++)
		if (!stage_destroy(stage, id))
			return;
	s = stage_statistics(stage);
	if (s.segment[aperture - 1].peak_resident_bytes)
		stage_say(stage, CONFORM_OK, "segment %u held %" PRIu64 " KiB", aperture,
			  s.segment[aperture - 1].peak_resident_bytes / KIB);
	else
		stage_say(stage, CONFORM_NOT_EXERCISED,
			  "the driver placed nothing in segment %u, its aperture", aperture);
}

static void access_by_cpu(struct conform_stage *stage)
{
	if (!begin(stage, LIMIT) || !create_all(stage, PRESSURE, BUFFER))
		return;
	for (unsigned round = 0; round < 3; round++) {
		for (uint32_t id = 1; id <= PRESSURE; id++) {
			bool gpu = (round + id) % 2;

			if (!(gpu ? stage_submit(stage, id, 1, true) : stage_cpu_write(stage, id)))
				return;
			if (!(gpu ? stage_cpu_read(stage, id) : stage_submit(stage, id, 1, false)))
				return;
		}
	}
	if (stage_verify(stage))
		stage_say(stage, CONFORM_OK, "GPU and CPU read what the other one wrote");
}

/*
 * A command buffer whose allocations exceed the memory together. A driver need not be able to split
 * one: then the device is lost (SPL-12), and the driver has broken no rule.
 */
static void split_a_buffer(struct conform_stage *stage)
{
	struct vidmm_adapter_statistics s;

	if (!begin(stage, LIMIT) || !create_all(stage, PRESSURE, BUFFER))
		return;
	stage->world.undivided = true;
	if (!stage_submit(stage, 1, PRESSURE, true) || !stage_submit(stage, 1, PRESSURE, false) ||
	    !stage_verify(stage)) {
		if (stage->result.finding_count || stage->result.verify_errors)
			return;
		stage->outcome->state = CONFORM_NOT_EXERCISED;
		stage_say(stage, CONFORM_NOT_EXERCISED,
			  "the driver's commands cannot be split: %.300s", stage->message);
		return;
	}
	s = stage_statistics(stage);
	if (s.splits)
		stage_say(stage, CONFORM_OK, "%" PRIu64 " splits", s.splits);
	else
		stage_say(stage, CONFORM_NOT_EXERCISED,
			  "no buffer was split: other segments, or more buffers, held its "
			  "allocations");
}

/* ---- timeouts ---- */

static uint64_t ddis(const struct conform_stage *stage, enum vidmm_ddi ddi)
{
	return stage->ddis[ddi];
}

static void pass(struct conform_stage *stage, uint64_t ns)
{
	struct world *world = &stage->world;

	world->ops->wait_until_ns(world, world->ops->now_ns(world) + ns);
}

/* lets time pass, until the packets without an interrupt are done or given up. */
static bool wait_for_recovery(struct conform_stage *stage)
{
	for (unsigned i = 0; i < 100; i++) {
		pass(stage, 200 * MS);
		pthread_mutex_lock(&stage->lock);
		bool done = stage->recoveries[VIDMM_RECOVERY_MISSED] ||
			    stage->recoveries[VIDMM_RECOVERY_PREEMPTED] ||
			    stage->recoveries[VIDMM_RECOVERY_RESTARTED] ||
			    stage->recoveries[VIDMM_RECOVERY_ENGINE_RESET];
		pthread_mutex_unlock(&stage->lock);
		if (done)
			return true;
	}
	return false;
}

/* After a reset a new device must work. */
static bool works_again(struct conform_stage *stage)
{
	return stage_open(stage) && create_all(stage, PRESSURE, BUFFER) &&
	       use_in_turn(stage, PRESSURE, 2) && stage_verify(stage);
}

static void say_recovery(struct conform_stage *stage)
{
	stage_say(stage, CONFORM_OK,
		  "%" PRIu64 " queries of the fence, %" PRIu64 " preemptions, %" PRIu64
		  " engine resets, %" PRIu64 " resets and %" PRIu64
		  " restarts of the adapter; a new device works",
		  ddis(stage, VIDMM_DDI_QUERY_CURRENT_FENCE),
		  ddis(stage, VIDMM_DDI_PREEMPT_COMMAND), ddis(stage, VIDMM_DDI_RESET_ENGINE),
		  ddis(stage, VIDMM_DDI_RESET_FROM_TIMEOUT),
		  ddis(stage, VIDMM_DDI_RESTART_FROM_TIMEOUT));
}

enum loss {
	LOSE_ONCE,  /* what the driver repeats arrives */
	LOSE_ALL,   /* until the packet is done or given up */
	LOSE_IN_TDR /* the same, and its node times out at once */
};

/* Lets the GPU finish what it got. Waiting for idle skips submissions that wait for a fence. */
static void settle(struct conform_stage *stage)
{
	for (unsigned i = 0; i < SETTLE_STEPS; i++) {
		struct stage_work work = stage_work(stage);

		if (work.renders >= work.submissions && work.retired >= work.packets)
			return;
		pass(stage, MS);
	}
}

/*
 * Loses completions until each packet has lost that of itself, because a later completion would
 * report the earlier packets, too. A driver may report several packets by one interrupt, or wait
 * for a packet before it: then nothing changes any more.
 */
static bool lose_each(struct conform_stage *stage, uint64_t packets_before)
{
	uint32_t lost = 0;
	unsigned still = 0;

	for (unsigned i = 0; i < LOSE_STEPS; i++) {
		uint32_t now = vidmm_adapter_lose_completions(stage->world.adapter, true);
		struct stage_work work = stage_work(stage);

		still = now == lost ? still + 1 : 0;
		lost = now;
		if (lost && (still == STILL_STEPS || (work.renders >= work.submissions &&
						      lost >= work.packets - packets_before)))
			return true;
		pass(stage, MS);
	}
	return false;
}

static bool lose_first(struct conform_stage *stage)
{
	for (unsigned i = 0; i < LOSE_STEPS; i++) {
		if (vidmm_adapter_lose_completions(stage->world.adapter, true))
			return true;
		pass(stage, MS);
	}
	return false;
}

/* Waits until interrupts are lost. */
static bool wait_for_loss(struct conform_stage *stage, enum loss loss, uint64_t packets_before)
{
	struct world *world = &stage->world;
	bool lost = loss == LOSE_ONCE ? lose_each(stage, packets_before) : lose_first(stage);

	if (!lost)
		stage_say(stage, CONFORM_BROKE, "no completion was reported for a submission");
	if (loss == LOSE_ONCE)
		vidmm_adapter_lose_completions(world->adapter, false);
	/* Without a packet the node cannot time out: then time passes instead. */
	if (lost && loss == LOSE_IN_TDR)
		(void)!vidmm_adapter_time_out(world->adapter, world->commands->node);
	return lost;
}

/* The interrupts of a submission are lost. */
static void lose(struct conform_stage *stage, enum loss loss)
{
	struct stage_work before;

	/* Half of the memory: content is in the segment when it is lost. */
	if (!begin(stage, LIMIT) || !create_all(stage, 4, BUFFER) || !use_in_turn(stage, 4, 1))
		return;
	settle(stage);
	before = stage_work(stage);
	vidmm_adapter_lose_completions(stage->world.adapter, true);
	if (!stage_submit(stage, 1, 1, true))
		return;
	if (!wait_for_loss(stage, loss, before.packets))
		return;
	if (!wait_for_recovery(stage)) {
		if (stage_work(stage).retired > before.retired)
			stage_say(stage, CONFORM_NOT_EXERCISED,
				  "a later completion reported the packet without an interrupt");
		else
			stage_say(stage, CONFORM_BROKE,
				  "the packet without an interrupt never ended");
		return;
	}
	vidmm_adapter_lose_completions(stage->world.adapter, false);
	if (works_again(stage))
		say_recovery(stage);
}

static void lose_an_interrupt(struct conform_stage *stage)
{
	lose(stage, LOSE_ONCE);
}

static void time_out(struct conform_stage *stage)
{
	lose(stage, LOSE_IN_TDR);
	if (stage->outcome->state == CONFORM_OK && !ddis(stage, VIDMM_DDI_RESET_FROM_TIMEOUT) &&
	    !ddis(stage, VIDMM_DDI_RESET_ENGINE))
		stage_say(stage, CONFORM_NOT_EXERCISED, "nothing was reset");
}

static void preempt(struct conform_stage *stage)
{
	lose(stage, LOSE_ALL);
	if (stage->outcome->state != CONFORM_OK)
		return;
	if (!ddis(stage, VIDMM_DDI_PREEMPT_COMMAND))
		stage_say(stage, CONFORM_NOT_EXERCISED,
			  "DxgkDdiPreemptCommand was not called for a packet that runs long");
	else
		stage_say(stage, CONFORM_OK, "%" PRIu64 " calls of DxgkDdiPreemptCommand",
			  ddis(stage, VIDMM_DDI_PREEMPT_COMMAND));
}

/* ---- power and removal ---- */

static void lose_power(struct conform_stage *stage)
{
	bool used = stage->conform->describe != NULL;

	if (!stage_start(stage, LIMIT) ||
	    (used && (!stage_open(stage) || !create_all(stage, PRESSURE, BUFFER) ||
		      !use_in_turn(stage, PRESSURE, 1))))
		return;
	for (unsigned i = 0; i < 2; i++) {
		uint32_t sleep = i ? VIDMM_SLEEP_HIBERNATE : VIDMM_SLEEP_STANDBY;
		vidmm_status status =
			vidmm_adapter_set_power(stage->world.adapter, VIDMM_POWER_D3, sleep);

		if (status >= 0)
			status = vidmm_adapter_set_power(stage->world.adapter, VIDMM_POWER_D0, 0);
		if (status < 0) {
			stage_say(stage, CONFORM_BROKE, "the power change failed: 0x%08x",
				  (unsigned)status);
			return;
		}
		if (used && (!stage_verify(stage) || !use_in_turn(stage, PRESSURE, 1)))
			return;
	}
	if (!used || stage_verify(stage))
		stage_say(stage, CONFORM_OK, "D3 and back, for standby and for hibernation%s",
			  used ? "; all content survived" : "");
}

static void remove_by_surprise(struct conform_stage *stage)
{
	bool used = stage->conform->describe != NULL;
	vidmm_status status;

	if (!stage_start(stage, LIMIT) ||
	    (used && (!stage_open(stage) || !create_all(stage, PRESSURE, BUFFER) ||
		      !use_in_turn(stage, PRESSURE, 1))))
		return;
	status = vidmm_adapter_remove(stage->world.adapter, VIDMM_REMOVAL_PNP);
	if (status >= 0)
		stage_say(stage, CONFORM_OK, "removed while it had work, then unloaded");
	else if ((uint32_t)status == 0xC00000BBu) /* STATUS_NOT_SUPPORTED */
		stage_say(stage, CONFORM_NOT_EXERCISED,
			  "the driver has no DxgkDdiNotifySurpriseRemoval; it was unloaded");
	else
		stage_say(stage, CONFORM_BROKE, "the removal failed: 0x%08x", (unsigned)status);
}

static void unload_with_objects(struct conform_stage *stage)
{
	if (!begin(stage, LIMIT) || !create_all(stage, PRESSURE, BUFFER) ||
	    !use_in_turn(stage, PRESSURE, 1))
		return;
	stage_say(stage, CONFORM_OK, "stopped with %u allocations and a context; nothing leaked",
		  PRESSURE);
}

/* ---- the table ---- */

/* The situation "start" is the first one: the others do not report again what it found. */
const struct conform_situation conform_situations[] = {
	{"start", "start, stop and start again", false, start_twice},
	{"capabilities", "capabilities and segments", false, report_capabilities},
	{"segments", "allocations in each segment", true, place_in_each_segment},
	{"paging", "paging in and out, evictions under pressure", true, page_in_and_out},
	{"moves", "moves inside a segment", true, move_inside_a_segment},
	{"aperture", "an aperture, mapped and unmapped", true, map_the_aperture},
	{"cpu_access", "accesses of the CPU between those of the GPU", true, access_by_cpu},
	{"split", "a DMA buffer that exceeds the memory", true, split_a_buffer},
	{"lost_interrupt", "a lost completion interrupt", true, lose_an_interrupt},
	{"preemption", "preemption of a long packet", true, preempt},
	{"timeout", "a packet that times out, and a reset", true, time_out},
	{"power", "D3 and D0", false, lose_power},
	{"removal", "surprise removal", false, remove_by_surprise},
	{"unload", "unload with objects", true, unload_with_objects},
};
const unsigned conform_situation_count = sizeof(conform_situations) / sizeof(conform_situations[0]);

void conform_run(const struct conform_options *options, const struct conform_situation *situation,
		 struct conform_outcome *outcome)
{
	static struct conform_stage stage;

	memset(&stage, 0, sizeof(stage));
	stage.conform = options;
	stage.outcome = outcome;
	stage.is_start = situation == &conform_situations[0];
	pthread_mutex_init(&stage.lock, NULL);
	situation->run(&stage);
	stage_stop(&stage);
	pthread_mutex_destroy(&stage.lock);
}
