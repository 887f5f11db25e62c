/* SPDX-License-Identifier: MIT */
#include "time_options.h"

#include <stdlib.h>
#include <string.h>

#include "units.h"

/* With more, long submissions would reach the timeout of the GPU (TDR-02). */
#define PASSES_MAX 16u

void time_options_table(struct time_raw *raw, struct poptOption *table)
{
	const struct poptOption rows[TIME_OPTIONS] = {
		{"pace", 0, POPT_ARG_STRING, &raw->pace, 0,
		 "time of events: recorded (default) or flat-out (as fast as the GPU allows)",
		 "HOW"},
		{"link", 0, POPT_ARG_STRING, &raw->link, 0,
		 "link to system memory: none or pcieGxN (default " LINK_DEFAULT ")", "NAME"},
		{"link-passes", 0, POPT_ARG_STRING, &raw->link_passes, 0,
		 "how often a submission moves each byte that it uses in the aperture over the "
		 "link (default 2)",
		 "N"},
		{"paging-engine", 0, POPT_ARG_STRING, &raw->paging_engine, 0,
		 "engine of the paging: own (default) or shared with the submissions", "WHICH"},
		{"cpu-costs", 0, POPT_ARG_STRING, &raw->cpu_costs, 0,
		 "time of the CPU for submissions and paging: model (default with a link), none, "
		 "or values in us (submit=3.5,map=20)",
		 "LIST"},
		{"content", 0, POPT_ARG_STRING, &raw->content, 0,
		 "bytes of the buffers: real (default), or none for a faster run with the same "
		 "figures",
		 "HOW"},
		POPT_TABLEEND};

	memcpy(table, rows, sizeof(rows));
}

static bool has_link(const struct replay_options *replay)
{
	return replay->gpu_time && !replay->connect && replay->link.bytes_per_us != 0;
}

static bool apply_link(const struct time_raw *raw, struct replay_options *replay)
{
	uint64_t passes;

	if (!link_parse(raw->link ? raw->link : LINK_DEFAULT, &replay->link))
		return options_usage(
			"--link \"%s\" is not valid: expected none, or a name such as pcie3x16 "
			"or pcie4x8",
			raw->link);
	if (!replay->gpu_time && (raw->link || raw->pace))
		return options_usage(
			"--gpu-time none has no time: --link and --pace do not apply%s", "");
	if (replay->connect)
		replay->link = (struct link_model){0};
	if (!raw->link_passes)
		return true;
	if (!has_link(replay))
		return options_usage("--link-passes needs the model of a link%s", "");
	if (!units_parse_u64(raw->link_passes, &passes) || passes > PASSES_MAX)
		return options_usage(
			"--link-passes \"%s\" is not valid: expected a number up to 16",
			raw->link_passes);
	replay->link.passes = (uint32_t)passes;
	return true;
}

/* On real threads the CPU takes its real time. */
static bool apply_costs(const char *text, struct replay_options *replay)
{
	bool applies = replay->gpu_time && !replay->connect && replay->host_kind == VIDMM_HOST_SIM;

	if (!text)
		text = applies && has_link(replay) ? "model" : "none";
	if (!cost_model_parse(text, &replay->costs))
		return options_usage("--cpu-costs \"%s\" is not valid: expected model, none, or "
				     "names with a time in us, as submit=3.5,map=20",
				     text);
	if (!applies && !cost_model_is_none(&replay->costs))
		return options_usage("--cpu-costs %s needs simulated time", text);
	return true;
}

/* Without content there is nothing that verification or a reader of events could check. */
static bool apply_content(const char *text, bool has_events, struct replay_options *replay)
{
	static const char *const contents[] = {"real", "none", NULL};
	int content = options_choose(text, contents);

	if (content < 0)
		return options_usage("--content \"%s\" is not valid: expected real or none", text);
	if (content == 1 && (replay->verify != REPLAY_VERIFY_NONE || has_events || replay->wddm2 ||
			     replay->connect))
		return options_usage("--content none cannot be combined with --verify, --events, "
				     "--record, --connect or --model wddm2%s",
				     "");
	replay->no_content = content == 1;
	return true;
}

bool time_options_apply(const struct time_raw *raw, bool has_events, struct options *options)
{
	static const char *const engines[] = {"own", "shared", NULL};
	static const char *const paces[] = {"recorded", "flat-out", NULL};
	int engine = options_choose(raw->paging_engine, engines);
	int pace = options_choose(raw->pace, paces);
	struct replay_options *replay = &options->replay;

	if (engine < 0)
		return options_usage("--paging-engine \"%s\" is not valid: expected own or shared",
				     raw->paging_engine);
	if (pace < 0)
		return options_usage("--pace \"%s\" is not valid: expected recorded or flat-out",
				     raw->pace);
	replay->shared_paging = engine == 1;
	replay->recorded_pace = replay->gpu_time && pace == 0;
	return apply_link(raw, replay) && apply_costs(raw->cpu_costs, replay) &&
	       apply_content(raw->content, has_events, replay);
}

void time_options_free(struct time_raw *raw)
{
	free(raw->pace);
	free(raw->link);
	free(raw->link_passes);
	free(raw->paging_engine);
	free(raw->cpu_costs);
	free(raw->content);
}
