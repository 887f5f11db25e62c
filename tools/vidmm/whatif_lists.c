/* SPDX-License-Identifier: MIT */
/* The lists of sizes, policies, links and models, from the command line or from a file of cells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comma_list.h"
#include "options.h"
#include "policy.h"
#include "whatif.h"

static bool add_one_policy(struct whatif_options *options, enum replay_policy policy)
{
	for (unsigned i = 0; i < options->policy_count; i++)
		if (options->policies[i] == policy)
			return false;
	options->policies[options->policy_count++] = policy;
	return true;
}

/*
 * Each function adds what an element names, and returns false if it names nothing, or again.
 * `reference` reads the recording ahead, which no adapter can, so `all` leaves it out.
 */
static bool add_policy(void *context, char *text)
{
	struct whatif_options *options = context;
	bool all = strcmp(text, "all") == 0 || strcmp(text, "all+reference") == 0;
	enum replay_policy policy = REPLAY_POLICY_FIRST;

	if (!all) {
		enum replay_status status = policy_parse(text, &policy);

		options->bad_policy_file |= status == REPLAY_BAD_INPUT;
		return status == REPLAY_CLEAN && add_one_policy(options, policy);
	}
	for (; policy < REPLAY_POLICY_REFERENCE; policy++)
		if (!add_one_policy(options, policy))
			return false;
	return strcmp(text, "all") == 0 || add_one_policy(options, REPLAY_POLICY_REFERENCE);
}

static bool add_link(void *context, char *text)
{
	struct whatif_options *options = context;
	struct whatif_link *link = &options->links[options->link_count];

	for (unsigned i = 0; i < options->link_count; i++)
		if (strcmp(options->links[i].name, text) == 0)
			return false;
	/* All names that can be parsed fit, and there are no more of them than elements. */
	if (options->link_count == WHATIF_LINKS_MAX || !link_parse(text, &link->model))
		return false;
	snprintf(link->name, sizeof(link->name), "%s", text);
	options->link_count++;
	/* The defaults of `vidmm replay`. */
	return cost_model_parse(link->model.bytes_per_us ? "model" : "none", &link->costs);
}

static bool add_model(void *context, char *text)
{
	struct whatif_options *options = context;
	int model = options_choose(text, replay_models);

	for (unsigned i = 0; i < options->model_count; i++)
		if (options->wddm2[i] == (model == 1))
			return false;
	if (model < 0)
		return false;
	options->wddm2[options->model_count++] = model == 1;
	return true;
}

bool whatif_lists_parse(struct whatif_options *options, struct whatif_list_error *error)
{
	const struct whatif_lists *lists = &options->lists;

	*error = (struct whatif_list_error){
		"vram", lists->vram,
		"up to 64 sizes of 4K to below 1T or percentages, or a range such as "
		"64M..8G:geometric"};
	if (!size_list_parse(lists->vram, &options->sizes))
		return false;
	*error = (struct whatif_list_error){
		"policy", lists->policy, "all, all+reference, or each once of " POLICY_ARGUMENTS};
	if (!comma_list_each(lists->policy, add_policy, options))
		return false;
	*error = (struct whatif_list_error){"link", lists->link,
					    "each once: none, or names such as pcie3x16"};
	if (!comma_list_each(lists->link, add_link, options))
		return false;
	*error = (struct whatif_list_error){"model", lists->model, "wddm1, wddm2 or both"};
	return comma_list_each(lists->model, add_model, options);
}

void whatif_lists_finish(struct whatif_lists *lists)
{
	free(lists->vram);
	free(lists->policy);
	free(lists->link);
	free(lists->model);
}
