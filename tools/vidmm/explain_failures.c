/* SPDX-License-Identifier: MIT */
#include "explain_failures.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json_text.h"
#include "status_names.h"
#include "units.h"

enum { TEXT = 64, FATAL_TIMEOUT = 0x116 };

/* ---- the groups ---- */

/* Texts of one rule differ in their values only; without a rule they are compared. */
static bool is_same(const struct failure_group *g, uint32_t status, const struct cause *cause)
{
	const struct cause *c = &g->cause;

	if (g->status != status || c->kind != cause->kind)
		return false;
	if (c->kind == CAUSE_LOST)
		return c->loss.number == cause->loss.number;
	return strcmp(c->rule, cause->rule) == 0 && strcmp(c->ddi, cause->ddi) == 0 &&
	       (*c->rule || strcmp(c->text, cause->text) == 0);
}

static struct failure_group *group_of(struct failures *f, uint32_t status,
				      const struct cause *cause)
{
	for (unsigned i = 0; i < f->count; i++)
		if (is_same(&f->group[i], status, cause))
			return &f->group[i];
	if ((f->count & (f->count - 1)) == 0) { /* room for a power of two */
		struct failure_group *more =
			realloc(f->group, (f->count ? 2 * f->count : 1) * sizeof(*more));

		if (!more)
			return NULL;
		f->group = more;
	}
	struct failure_group *g = &f->group[f->count++];
	*g = (struct failure_group){.status = status, .cause = *cause};
	return g;
}

bool failures_add(struct failures *f, const struct logged_event *door, const struct cause *cause)
{
	struct failure_group *g = group_of(f, (uint32_t)logged_value(door, "status"), cause);
	unsigned i = 0;

	if (!g)
		return false;
	if (!g->count++)
		g->first = door->number;
	g->last = door->number;
	while (i < g->doors && strcmp(g->door[i].name, door->reason) != 0)
		i++;
	if (i == FAILURE_DOORS)
		return true;
	if (i == g->doors) {
		snprintf(g->door[i].name, sizeof(g->door[i].name), "%s", door->reason);
		g->doors++;
	}
	g->door[i].count++;
	return true;
}

static uint64_t root_of(const struct failure_group *g)
{
	return g->cause.number ? g->cause.number : g->first;
}

static int compare(const void *a, const void *b)
{
	const struct failure_group *x = a, *y = b;

	if (root_of(x) != root_of(y))
		return root_of(x) < root_of(y) ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static void sort(struct failures *f)
{
	if (f->count)
		qsort(f->group, f->count, sizeof(f->group[0]), compare);
}

/* ---- text ---- */

/* Writes the name of a DDI as the documentation spells it: DxgkDdiCreateAllocation. */
static const char *ddi_name(const char *ddi, char *name, size_t size)
{
	size_t length = (size_t)snprintf(name, size, "DxgkDdi");
	bool first = true;

	for (; *ddi && length + 1 < size; ddi++) {
		if (*ddi != '_')
			name[length++] = (char)(first ? toupper((unsigned char)*ddi) : *ddi);
		first = *ddi == '_';
	}
	name[length] = '\0';
	return name;
}

static const char *status_text(uint32_t status, char *text)
{
	const char *name = status_name(status);

	snprintf(text, TEXT, "0x%08" PRIx32, status);
	return name ? name : text;
}

static void print_event(FILE *out, uint64_t number, uint64_t time_ns)
{
	char at[TEXT];

	if (number)
		fprintf(out, " (event %" PRIu64 ", at %s)", number,
			units_time(time_ns, at, sizeof(at)));
}

static void print_packet(FILE *out, const struct loss *l, const char *what, const char *name)
{
	if (l->process)
		fprintf(out, "a packet of process %" PRIu32 "%s%s%s", l->process, *name ? " (" : "",
			name, *name ? ")" : "");
	else
		fputs("a paging packet", out);
	if (l->object)
		fprintf(out, ", context 0x%08" PRIx32 ",", l->object);
	fprintf(out, " %s: node %" PRIu64 ", fence %" PRIu64, what, l->node, l->fence);
}

static void print_ddi_of(FILE *out, const struct loss *l)
{
	char name[TEXT], status[TEXT];

	if (*l->ddi)
		fprintf(out, ", after %s had failed with %s", ddi_name(l->ddi, name, sizeof(name)),
			status_text(l->ddi_status, status));
	else if (*l->text)
		fprintf(out, ": %s", l->text);
}

static void print_loss(FILE *out, const struct loss *l, const char *name)
{
	switch (l->kind) {
	case LOSS_HANG:
		fputs("the device was lost, because ", out);
		print_packet(out, l, "did not complete in time", name);
		if (l->code == FATAL_TIMEOUT)
			fprintf(out, "; the adapter stopped with code 0x%" PRIx64, l->code);
		print_ddi_of(out, l);
		break;
	case LOSS_PAGE_FAULT:
		fprintf(out, "the device was lost in a page fault: %s", l->text);
		break;
	case LOSS_MARKED:
		fprintf(out, "the client marked the device as in error: %s", l->text);
		break;
	case LOSS_MEMORY:
		fprintf(out, "the device ran out of memory: %s", l->text);
		break;
	case LOSS_FATAL:
		fprintf(out, "the adapter stopped with code 0x%" PRIx64, l->code);
		print_ddi_of(out, l);
		break;
	case LOSS_REMOVAL:
		fputs("the adapter was removed by surprise", out);
		break;
	case LOSS_UNKNOWN:
		fputs("the device was lost before the known part of the stream, or without a "
		      "report",
		      out);
		break;
	}
	print_event(out, l->number, l->time_ns);
}

static void print_cause(FILE *out, const struct cause *c, const char *name)
{
	char ddi[TEXT], status[TEXT];

	switch (c->kind) {
	case CAUSE_RULE:
	case CAUSE_REASON:
		fputs(c->text, out);
		break;
	case CAUSE_MINIPORT:
		fprintf(out, "%s of the miniport failed with %s",
			ddi_name(c->ddi, ddi, sizeof(ddi)), status_text(c->ddi_status, status));
		if (*c->text)
			fprintf(out, ": %s", c->text);
		break;
	case CAUSE_BUSY:
		fputs("the GPU still used the allocation, and DonotWait was set (LOCK-08)", out);
		break;
	case CAUSE_LOST:
		print_loss(out, &c->loss, name);
		return;
	case CAUSE_UNKNOWN:
		fputs("no event says why", out);
		break;
	}
	print_event(out, c->number, c->time_ns);
}

static void print_group(FILE *out, const struct failure_group *g, const char *name)
{
	uint64_t named = 0;
	char status[TEXT], count[TEXT];

	fprintf(out, "    - %s of %s (", units_count(g->count, count, sizeof(count)),
		status_text(g->status, status));
	for (unsigned i = 0; i < g->doors; i++) {
		fprintf(out, "%s%s", i ? ", " : "", g->door[i].name);
		if (g->door[i].count > 1)
			fprintf(out, " %s", units_count(g->door[i].count, count, sizeof(count)));
		named += g->door[i].count;
	}
	if (named < g->count)
		fprintf(out, ", others %s", units_count(g->count - named, count, sizeof(count)));
	fputs("): ", out);
	print_cause(out, &g->cause, name);
	fputc('\n', out);
}

void failures_print(struct failures *f, FILE *out, failures_name_fn *name, void *context)
{
	if (!f->count)
		return;
	sort(f);
	fputs("  why calls failed:\n", out);
	for (unsigned i = 0; i < f->count; i++)
		print_group(out, &f->group[i], name(context, f->group[i].cause.loss.process));
}

/* ---- JSON ---- */

static json_t *loss_json(const struct loss *l)
{
	json_t *object = json_pack("{s:s, s:I, s:I, s:I}", "kind", loss_kind_name(l->kind), "event",
				   (json_int_t)l->number, "process", (json_int_t)l->process,
				   "object", (json_int_t)l->object);

	if (l->kind == LOSS_HANG || l->kind == LOSS_PAGE_FAULT) {
		json_object_set_new(object, "node", json_integer((json_int_t)l->node));
		json_object_set_new(object, "fence", json_integer((json_int_t)l->fence));
	}
	if (l->code)
		json_object_set_new(object, "code", json_integer((json_int_t)l->code));
	if (*l->ddi)
		json_object_set_new(object, "ddi", json_string(l->ddi));
	if (*l->text)
		json_object_set_new(object, "text", json_text(l->text));
	return object;
}

static json_t *group_json(const struct failure_group *g)
{
	const struct cause *c = &g->cause;
	json_t *object = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "cause",
				   cause_kind_name(c->kind), "status", (json_int_t)g->status,
				   "count", (json_int_t)g->count, "first", (json_int_t)g->first,
				   "last", (json_int_t)g->last, "event", (json_int_t)c->number);
	json_t *calls = json_object();

	for (unsigned i = 0; i < g->doors; i++)
		json_object_set_new(calls, g->door[i].name,
				    json_integer((json_int_t)g->door[i].count));
	json_object_set_new(object, "calls", calls);
	if (*c->rule)
		json_object_set_new(object, "rule", json_string(c->rule));
	if (*c->ddi) {
		json_object_set_new(object, "ddi", json_string(c->ddi));
		json_object_set_new(object, "ddi_status", json_integer(c->ddi_status));
	}
	if (*c->text)
		json_object_set_new(object, "text", json_text(c->text));
	if (c->kind == CAUSE_LOST)
		json_object_set_new(object, "loss", loss_json(&c->loss));
	return object;
}

json_t *failures_json(struct failures *f)
{
	json_t *array = json_array();

	sort(f);
	for (unsigned i = 0; i < f->count; i++)
		json_array_append_new(array, group_json(&f->group[i]));
	return array;
}
