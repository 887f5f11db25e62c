/* SPDX-License-Identifier: MIT */
#include "costs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "comma_list.h"

#define COST_US_MAX 1000000.0

const char *const cost_names[COST_COUNT] = {
	[COST_SUBMIT] = "submit", [COST_TRANSFER] = "transfer", [COST_FILL] = "fill",
	[COST_MAP] = "map",       [COST_UNMAP] = "unmap",       [COST_TABLE] = "table",
	[COST_FLUSH] = "flush",   [COST_RANGE] = "range",
};

/* docs/link-costs.md has the measurements, docs/replay.md says which one each value is. */
static const struct cost_model measured = {{
	[COST_SUBMIT] = 3500,
	[COST_TRANSFER] = 3500,
	[COST_FILL] = 3500,
	[COST_MAP] = 20000,
	[COST_UNMAP] = 14000,
	[COST_TABLE] = 20000,
	[COST_FLUSH] = 3500,
	[COST_RANGE] = 20000,
}};

static bool parse_one(void *context, char *text)
{
	struct cost_model *model = context;

	for (size_t i = 0; i < COST_COUNT; i++) {
		size_t name = strlen(cost_names[i]);
		char *end;
		double us;

		if (strncmp(text, cost_names[i], name) != 0 || text[name] != '=' ||
		    !(text[name + 1] >= '0' && text[name + 1] <= '9'))
			continue;
		us = strtod(text + name + 1, &end);
		if (*end || !(us >= 0 && us <= COST_US_MAX))
			return false;
		model->ns[i] = (uint64_t)(us * 1000 + 0.5);
		return true;
	}
	return false;
}

bool cost_model_parse(const char *text, struct cost_model *model)
{
	*model = (struct cost_model){0};
	if (strcmp(text, "none") == 0)
		return true;
	*model = measured;
	if (strcmp(text, "model") == 0)
		return true;
	return comma_list_each(text, parse_one, model);
}

bool cost_model_is_none(const struct cost_model *model)
{
	for (size_t i = 0; i < COST_COUNT; i++)
		if (model->ns[i] != 0)
			return false;
	return true;
}

/* ---- */

struct costs {
	struct vidmm_host *host;
	uint32_t subscription;
	struct cost_model model;
	/* Events may come from the threads of the host. */
	_Atomic uint64_t due_ns;
	_Atomic uint32_t last; /* enum cost_kind of the last event */
};

static enum cost_kind cost_of_paging(uint16_t operation)
{
	switch (operation) {
	case VIDMM_PAGING_TRANSFER:
	case VIDMM_PAGING_SPECIAL_LOCK_TRANSFER:
	case VIDMM_PAGING_VIRTUAL_TRANSFER:
		return COST_TRANSFER;
	case VIDMM_PAGING_FILL:
	case VIDMM_PAGING_VIRTUAL_FILL:
		return COST_FILL;
	case VIDMM_PAGING_MAP_APERTURE:
		return COST_MAP;
	case VIDMM_PAGING_UNMAP_APERTURE:
		return COST_UNMAP;
	case VIDMM_PAGING_UPDATE_PAGE_TABLE:
		return COST_TABLE;
	case VIDMM_PAGING_FLUSH_TLB:
		return COST_FLUSH;
	default:
		return COST_COUNT; /* no work of the CPU that was measured */
	}
}

static enum cost_kind cost_of(const struct vidmm_event *event)
{
	if (event->type == VIDMM_EVENT_SUBMIT)
		return COST_SUBMIT;
	if (event->type == VIDMM_EVENT_PAGING)
		return cost_of_paging(event->reason);
	return event->reason == VIDMM_RANGE_ACQUIRED ? COST_RANGE : COST_COUNT;
}

static void on_event(void *opaque, const struct vidmm_event *event, const char *text)
{
	struct costs *costs = opaque;
	enum cost_kind cost = cost_of(event);

	(void)text;
	/* One call updates the tables of many ranges, and was measured as a whole. */
	if (atomic_exchange(&costs->last, cost) == COST_TABLE && cost == COST_TABLE)
		return;
	if (cost != COST_COUNT)
		atomic_fetch_add(&costs->due_ns, costs->model.ns[cost]);
}

struct costs *costs_create(struct vidmm_host *host, const struct cost_model *model)
{
	struct costs *costs = calloc(1, sizeof(*costs));

	if (!costs)
		return NULL;
	costs->host = host;
	costs->model = *model;
	costs->last = COST_COUNT;
	costs->subscription = vidmm_subscribe(host,
					      (uint64_t)1 << VIDMM_EVENT_SUBMIT |
						      (uint64_t)1 << VIDMM_EVENT_PAGING |
						      (uint64_t)1 << VIDMM_EVENT_RANGE,
					      on_event, costs);
	if (costs->subscription != 0)
		return costs;
	free(costs);
	return NULL;
}

void costs_destroy(struct costs *costs)
{
	if (!costs)
		return;
	vidmm_unsubscribe(costs->host, costs->subscription);
	free(costs);
}

uint64_t costs_take(struct costs *costs)
{
	atomic_store(&costs->last, COST_COUNT);
	return atomic_exchange(&costs->due_ns, 0);
}
