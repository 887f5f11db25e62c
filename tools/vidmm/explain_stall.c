/* SPDX-License-Identifier: MIT */
#include "explain_stall.h"

#include <inttypes.h>
#include <string.h>

#include "units.h"

enum { DISCARD = 0x80, TEXT = 32 };

/* ---- packets ---- */

/* Prints the packet that a wait waited for: its process and context, and when it was accepted. */
static void print_packet(const struct explain_stall *t, FILE *out, const struct logged_event *wait)
{
	uint64_t node = logged_value(wait, "node"), number = logged_value(wait, "number");
	const struct explain_submission *s = explain_history_submission(t->history, node, number);
	char ago[TEXT];

	if (!number) {
		fputs("work of the GPU that the event does not name", out);
		return;
	}
	if (!s && explain_history_is_paging(t->history, node)) {
		fprintf(out, "paging packet %" PRIu64, number);
		return;
	}
	if (!s) {
		fprintf(out,
			"packet %" PRIu64 " of node %" PRIu64
			" (a paging packet, one of a hardware queue, or one whose submission is "
			"not in the known part of the stream)",
			number, node);
		return;
	}
	fprintf(out,
		"submission %" PRIu64 " on node %" PRIu64 " (process %" PRIu32
		", context 0x%08" PRIx32 ", %" PRIu64 " references, accepted %s before)",
		number, node, s->process, s->context, s->references,
		units_time(wait->time_ns - s->time_ns, ago, sizeof(ago)));
	if (logged_is(wait, "wait", "lock") && t->door->object &&
	    strcmp(t->door->reason, "lock") == 0 && !(logged_value(t->door, "flags") & DISCARD))
		fprintf(out, ", which uses 0x%08" PRIx32, t->door->object);
}

/*
 * Says when the last packet of the submission that a wait waited for went to its node and
 * completed. A DMA buffer has several packets if it is split or queued again after a preemption.
 */
static void print_way(const struct explain_stall *t, struct sentences *sentences,
		      const struct logged_event *wait)
{
	uint64_t node = logged_value(wait, "node"), number = logged_value(wait, "number");
	uint64_t began_ns = wait->time_ns - logged_value(wait, "ns");
	const struct explain_submission *s = explain_history_submission(t->history, node, number);
	const struct explain_packet *p = explain_history_packet(t->history, node, number);
	char first[TEXT], second[TEXT];
	FILE *out;

	if (!s || !p || p->process != s->process || p->context != s->context ||
	    p->done_ns > wait->time_ns)
		return;
	out = sentence_begin(sentences);
	if (p->queued_ns > began_ns)
		fprintf(out,
			"the last packet of submission %" PRIu64 " went to node %" PRIu64
			" %s after the wait began%s; the DPC read its fence (%" PRIu64
			") %s later\n",
			number, node, units_time(p->queued_ns - began_ns, first, sizeof(first)),
			p->ahead ? ", behind other packets" : "", p->fence,
			units_time(p->done_ns - p->queued_ns, second, sizeof(second)));
	else
		fprintf(out,
			"the last packet of submission %" PRIu64 " was on node %" PRIu64
			"%s when the wait began; the DPC read its fence (%" PRIu64 ") %s later\n",
			number, node, p->ahead ? ", queued behind other packets," : "", p->fence,
			units_time(p->done_ns > began_ns ? p->done_ns - began_ns : 0, first,
				   sizeof(first)));
}

/* ---- waits ---- */

/* What a wait waits for besides a packet. NULL: only for a packet. */
static const char *text_of(const char *reason)
{
	static const struct {
		const char *reason, *text;
	} reasons[] = {
		{"space",
		 "for an allocation in video memory to become idle, so that it can be evicted"},
		{"paging_buffer", "for a paging buffer: all of them were in flight"},
		{"dma_buffer", "for a DMA buffer: all of those of the context were in flight"},
		{"destroy", "for the GPU to complete its use of what the call destroys"},
		{"stop", "for the GPU to complete its work before the adapter stops"},
		{"power", "for the adapter to be powered up"},
		{"present", "because too many presents were queued or flips pending (SUB-17)"},
		{"heap", "for moves inside the heap that were under way (CCH-03)"},
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reason, reasons[i].reason) == 0)
			return reasons[i].text;
	return NULL;
}

/* A wait for a fence ends when a thread, a context or the GPU signals it. */
static void print_fence_wait(const struct explain_stall *t, struct sentences *sentences,
			     const struct logged_event *wait)
{
	const struct logged_event *fence = &t->fence, *signal = &t->signal;
	uint64_t node = logged_value(fence, "node"), complete = logged_value(fence, "complete");
	const struct explain_submission *s = explain_history_submission(t->history, node, complete);

	if (wait->object)
		fprintf(sentences->out, "for fence 0x%08" PRIx32 " to be signaled\n", wait->object);
	else
		fputs("for a fence to be signaled\n", sentences->out);
	if (signal->time_ns == wait->time_ns && signal->process == wait->process &&
	    logged_value(signal, "handle") == wait->object)
		fprintf(sentence_begin(sentences),
			"context 0x%08" PRIx32 " signaled it with %" PRIu64 " when the wait "
			"ended\n",
			signal->object, logged_value(signal, "value"));
	if (!fence->time_ns || fence->time_ns != wait->time_ns)
		return;
	FILE *out = sentence_begin(sentences);

	fprintf(out,
		"when the wait ended, the DPC had just read fence %" PRIu64 " of node %" PRIu64,
		logged_value(fence, "fence"), node);
	if (s)
		fprintf(out,
			", which completes submission %" PRIu64 " (process %" PRIu32
			", context 0x%08" PRIx32 ")",
			complete, s->process, s->context);
	fputc('\n', out);
}

static void print_wait(struct explain_stall *t, struct sentences *sentences,
		       const struct logged_event *event)
{
	const char *text = text_of(event->reason);
	uint64_t ns = logged_value(event, "ns");
	FILE *out;
	char time[TEXT];

	out = sentence_begin(sentences);
	t->waited = t->waited || event->process;
	t->waited_ns += ns;
	t->several_threads = t->several_threads || event->time_ns - ns < t->last_wait_ns;
	t->last_wait_ns = event->time_ns;
	if (logged_is(event, "wait", "declined")) {
		fputs("DonotWait (LOCK-08, LOCK-16; without Discard, the hint to rename: REN-14, "
		      "REN-21): the lock would have waited for ",
		      out);
		print_packet(t, out, event);
		fputc('\n', out);
		return;
	}
	fprintf(out, "%s %s ",
		event->process ? "waited" : "a wait without a process took all of the call:",
		units_time(ns, time, sizeof(time)));
	if (logged_is(event, "wait", "fence")) {
		print_fence_wait(t, sentences, event);
		return;
	}
	fputs(text ? text : "for ", out);
	if (text && logged_value(event, "number"))
		fputs("; it waited for ", out);
	if (!text || logged_value(event, "number"))
		print_packet(t, out, event);
	fputc('\n', out);
	print_way(t, sentences, event);
}

/* Adds the part of the wait that is in the call. DURING_NS: from the call's beginning on. */
static void count_thread_wait(struct explain_stall *t, const struct logged_event *event,
			      uint64_t during_ns)
{
	struct stall_thread_waits *waits = t->thread;
	uint64_t ns = logged_value(event, "ns");

	while (waits < t->thread + t->thread_count && strcmp(waits->reason, event->reason) != 0)
		waits++;
	if (waits == t->thread + t->thread_count) {
		if (t->thread_count == STALL_REASONS_MAX)
			return;
		t->thread_count++;
		*waits = (struct stall_thread_waits){.count = 0};
		snprintf(waits->reason, sizeof(waits->reason), "%s", event->reason);
	}
	waits->count++;
	waits->ns += ns < during_ns ? ns : during_ns;
}

/*
 * A wait that began before the call is another thread's. The destruction of an object waits
 * without a process: such a wait belongs to the call if both begin and end together.
 */
static void add_wait(struct explain_stall *t, struct sentences *sentences,
		     const struct logged_event *event)
{
	uint64_t call_ns = logged_value(t->door, "ns"), ns = logged_value(event, "ns");
	uint64_t during_ns = event->time_ns - (t->door->time_ns - call_ns);

	if (event->process == t->door->process
		    ? ns <= during_ns
		    : logged_is(event, "wait", "destroy") && !event->process && ns &&
			      ns == call_ns && event->time_ns == t->door->time_ns)
		print_wait(t, sentences, event);
	else if (!event->process)
		count_thread_wait(t, event, during_ns);
}

/* ---- recoveries ---- */

static void print_recovery(struct sentences *sentences, const struct logged_event *event)
{
	static const struct {
		const char *reason, *text;
		bool packet; /* the event names a packet */
	} steps[] = {
		{"missed", "a completion interrupt was lost", true},
		{"timeout", "a packet did not complete in time", true},
		{"engine_reset", "an engine was reset", true},
		{"reset", "the adapter was reset", false},
		{"restarted", "the adapter was started again after its reset", false},
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (strcmp(event->reason, steps[i].reason) != 0)
			continue;
		FILE *out = sentence_begin(sentences);

		fputs(steps[i].text, out);
		if (steps[i].packet)
			fprintf(out, ": node %" PRIu64 ", fence %" PRIu64,
				logged_value(event, "node"), logged_value(event, "fence"));
		if (steps[i].packet && event->process)
			fprintf(out, ", process %" PRIu32 ", context 0x%08" PRIx32, event->process,
				event->object);
		fputc('\n', out);
	}
}

/* ---- the call ---- */

void explain_stall_add(struct explain_stall *t, struct sentences *sentences,
		       const struct logged_event *event)
{
	if (logged_is(event, "fence", NULL))
		t->fence = *event;
	else if (logged_is(event, "sync", "signaled"))
		t->signal = *event;
	else if (logged_is(event, "recovery", NULL))
		print_recovery(sentences, event);
	else if (logged_is(event, "wait", NULL))
		add_wait(t, sentences, event);
}

void explain_stall_print(const struct explain_stall *t, struct sentences *sentences)
{
	uint64_t ns = logged_value(t->door, "ns"), end_ns = t->door->time_ns;
	uint64_t paging_ns = explain_history_paging_ns(t->history, end_ns - ns, end_ns);
	char time[TEXT], of[TEXT];

	for (const struct stall_thread_waits *w = t->thread; w < t->thread + t->thread_count; w++) {
		const char *text = strcmp(w->reason, "destroy") == 0
					   ? "for the GPU to complete its use of destroyed objects"
					   : text_of(w->reason);

		fprintf(sentence_begin(sentences),
			"meanwhile threads without a process waited %s %s\n",
			units_time(w->ns, time, sizeof(time)), text ? text : "for the GPU");
	}
	if (paging_ns)
		fprintf(sentence_begin(sentences),
			"paging packets were on the GPU for %s of the %s\n",
			units_time(paging_ns, time, sizeof(time)), units_time(ns, of, sizeof(of)));
}
