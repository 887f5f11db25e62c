/* SPDX-License-Identifier: MIT */
/*
 * Finds causes from the events before and during a call.
 *
 * Of the events of a call a finding comes first, then a DDI that failed, then a reason: the reason
 * of a refusal often repeats what a finding or DDI says. For a call that answers that its device
 * is lost, the cause is what lost it: the last trouble before the loss was reported.
 */
#include "explain_cause.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_REMOVED       0xC00002B6u
#define STATUS_GPU_EXCEPTION 0xC01E0200u

/* A finding or failed DDI this many events before a fatal violation belongs to it. */
#define NEAR 8u

struct lost_device {
	uint32_t process, device;
	struct loss loss;
};

struct explain_causes {
	struct loss trouble; /* the last one */
	bool recovering;     /* a timeout was reported, and the recovery has not ended */
	struct loss adapter; /* LOSS_FATAL or LOSS_REMOVAL: all devices are lost */
	struct lost_device *lost;
	unsigned lost_count, lost_room;
	/* The last DDI that failed, and the last finding. */
	struct {
		uint64_t number;
		uint32_t status;
		char name[LOGGED_REASON_CHARS];
	} ddi;
	struct {
		uint64_t number;
		char text[CAUSE_TEXT_CHARS];
	} finding;
};

static bool begins(const struct logged_event *event, const char *text)
{
	return event->text && strncmp(event->text, text, strlen(text)) == 0;
}

struct explain_causes *explain_causes_create(void)
{
	return calloc(1, sizeof(struct explain_causes));
}

void explain_causes_destroy(struct explain_causes *c)
{
	if (!c)
		return;
	free(c->lost);
	free(c);
}

/* ---- losses ---- */

static struct loss loss_of(enum loss_kind kind, const struct logged_event *event)
{
	struct loss loss = {.kind = kind,
			    .number = event->number,
			    .time_ns = event->time_ns,
			    .process = event->process,
			    .object = event->object,
			    .node = logged_value(event, "node"),
			    .fence = logged_value(event, "fence"),
			    .code = logged_value(event, "code")};

	snprintf(loss.text, sizeof(loss.text), "%s", event->text ? event->text : "");
	return loss;
}

static struct loss fatal_loss(const struct explain_causes *c, const struct logged_event *event)
{
	struct loss loss = loss_of(LOSS_FATAL, event);

	if (c->recovering) {
		loss = c->trouble; /* the reset failed, or was not allowed */
		loss.code = logged_value(event, "code");
	}
	if (c->ddi.number && c->ddi.number + NEAR >= event->number) {
		snprintf(loss.ddi, sizeof(loss.ddi), "%s", c->ddi.name);
		loss.ddi_status = c->ddi.status;
	}
	if (c->finding.number && c->finding.number + NEAR >= event->number)
		snprintf(loss.text, sizeof(loss.text), "%s", c->finding.text);
	return loss;
}

static bool add_lost(struct explain_causes *c, const struct logged_event *event,
		     const struct loss *loss)
{
	if (c->lost_count == c->lost_room) {
		unsigned room = c->lost_room ? 2 * c->lost_room : 16;
		struct lost_device *more = realloc(c->lost, room * sizeof(*more));

		if (!more)
			return false;
		c->lost = more;
		c->lost_room = room;
	}
	c->lost[c->lost_count++] = (struct lost_device){event->process, event->object, *loss};
	return true;
}

static void note_failure(struct explain_causes *c, const struct logged_event *event)
{
	if (logged_is(event, "ddi", NULL) && logged_failed(event)) {
		c->ddi.number = event->number;
		c->ddi.status = (uint32_t)logged_value(event, "status");
		snprintf(c->ddi.name, sizeof(c->ddi.name), "%s", event->reason);
	} else if (logged_is(event, "finding", NULL) && event->text) {
		c->finding.number = event->number;
		snprintf(c->finding.text, sizeof(c->finding.text), "%s", event->text);
	}
}

bool explain_causes_add(struct explain_causes *c, const struct logged_event *event)
{
	note_failure(c, event);
	if (logged_is(event, "recovery", "restarted") || logged_is(event, "recovery", "ignored") ||
	    logged_is(event, "recovery", "engine_reset") || logged_is(event, "recovery", "missed"))
		c->recovering = false;
	if (logged_is(event, "recovery", "timeout")) {
		c->recovering = true;
		c->trouble = loss_of(LOSS_HANG, event);
	} else if (logged_is(event, "reason", NULL) && begins(event, "TDR-19: page fault")) {
		c->trouble = loss_of(LOSS_PAGE_FAULT, event);
	} else if (logged_is(event, "reason", NULL) && begins(event, "TDRS-15")) {
		const struct loss marked = loss_of(LOSS_MARKED, event);
		return add_lost(c, event, &marked);
	} else if (logged_is(event, "reason", NULL) && event->text &&
		   strstr(event->text, "ERROR_OUTOFMEMORY")) {
		const struct loss memory = loss_of(LOSS_MEMORY, event);
		return add_lost(c, event, &memory);
	} else if (logged_is(event, "fatal", NULL) && !c->adapter.kind) {
		c->adapter = fatal_loss(c, event);
	} else if ((logged_is(event, "ddi", "notify_surprise_removal") ||
		    (logged_is(event, "reason", NULL) && begins(event, "PNP-08"))) &&
		   !c->adapter.kind) {
		c->adapter = loss_of(LOSS_REMOVAL, event);
	} else if (logged_is(event, "recovery", "device_lost")) {
		return add_lost(c, event, &c->trouble);
	}
	return true;
}

/* The loss of the adapter, or the last one of a device of that process. NULL: none is known. */
static const struct loss *find_loss(const struct explain_causes *c, uint32_t process)
{
	if (c->adapter.kind)
		return &c->adapter;
	for (unsigned i = c->lost_count; i > 0; i--)
		if (c->lost[i - 1].process == process)
			return &c->lost[i - 1].loss;
	return NULL;
}

/* ---- the call ---- */

struct search {
	const struct logged_event *door;
	struct cause *cause;
	bool own_rule; /* the call itself broke a rule */
};

static void take(struct cause *cause, enum cause_kind kind, const struct logged_event *event)
{
	size_t length = 0;

	cause->kind = kind;
	cause->number = event->number;
	cause->time_ns = event->time_ns;
	if (!event->text)
		return;
	snprintf(cause->text, sizeof(cause->text), "%s", event->text);
	while (isupper((unsigned char)event->text[length]) ||
	       isdigit((unsigned char)event->text[length]) || event->text[length] == '-')
		length++;
	if (length && length < sizeof(cause->rule) && event->text[length] == ':')
		snprintf(cause->rule, sizeof(cause->rule), "%.*s", (int)length, event->text);
}

static void take_ddi(struct cause *cause, const struct logged_event *event)
{
	take(cause, CAUSE_MINIPORT, event);
	snprintf(cause->ddi, sizeof(cause->ddi), "%s", event->reason);
	cause->ddi_status = (uint32_t)logged_value(event, "status");
}

/* The reason of a refusal that follows the failure of a DDI explains it further. */
static void take_reason(struct cause *cause, const struct logged_event *event)
{
	const struct cause before = *cause;

	if (cause->kind == CAUSE_RULE)
		return;
	take(cause, CAUSE_REASON, event);
	if (before.kind != CAUSE_MINIPORT)
		return;
	cause->kind = CAUSE_MINIPORT;
	cause->number = before.number;
	cause->time_ns = before.time_ns;
}

static void look_at(void *context, const struct logged_event *event)
{
	struct search *search = context;
	struct cause *cause = search->cause;
	bool own = event->process == search->door->process;

	if (!own && event->process)
		return;
	if (logged_is(event, "finding", NULL)) {
		search->own_rule |= own;
		if (cause->kind != CAUSE_RULE)
			take(cause, CAUSE_RULE, event);
	} else if (logged_is(event, "ddi", NULL) && cause->kind < CAUSE_RULE &&
		   logged_failed(event)) {
		take_ddi(cause, event);
	} else if (logged_is(event, "reason", NULL)) {
		take_reason(cause, event);
	} else if (own && logged_is(event, "wait", "declined") && cause->kind == CAUSE_UNKNOWN) {
		take(cause, CAUSE_BUSY, event);
	}
}

void explain_cause_of(const struct explain_causes *causes, const struct explain_history *history,
		      const struct logged_event *door, struct cause *cause)
{
	struct search search = {.door = door, .cause = cause};
	uint32_t status = (uint32_t)logged_value(door, "status");

	*cause = (struct cause){0};
	explain_history_of(history, door, look_at, &search);
	if ((status != STATUS_REMOVED && status != STATUS_GPU_EXCEPTION) || search.own_rule)
		return;
	const struct loss *loss = find_loss(causes, door->process);
	if (!loss)
		return;
	/* A call during which the device was lost reports the loss as well. */
	*cause = (struct cause){.kind = CAUSE_LOST,
				.number = loss->number,
				.time_ns = loss->time_ns,
				.loss = *loss};
}

const char *cause_kind_name(enum cause_kind kind)
{
	static const char *const names[] = {
		[CAUSE_UNKNOWN] = "unknown", [CAUSE_RULE] = "rule", [CAUSE_MINIPORT] = "miniport",
		[CAUSE_REASON] = "reason",   [CAUSE_BUSY] = "busy", [CAUSE_LOST] = "lost"};

	return names[kind];
}

const char *loss_kind_name(enum loss_kind kind)
{
	static const char *const names[] = {
		[LOSS_UNKNOWN] = "unknown",       [LOSS_HANG] = "hang",
		[LOSS_PAGE_FAULT] = "page fault", [LOSS_MARKED] = "marked",
		[LOSS_MEMORY] = "out of memory",  [LOSS_FATAL] = "fatal",
		[LOSS_REMOVAL] = "removal"};

	return names[kind];
}
