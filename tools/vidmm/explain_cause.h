/* SPDX-License-Identifier: MIT */
/*
 * The cause of a failed call: the broken rule or the reason that the call itself reports, the DDI
 * of the miniport that failed in it, or, for calls of a lost device, what lost the device.
 */
#ifndef VIDMM_TOOLS_EXPLAIN_CAUSE_H
#define VIDMM_TOOLS_EXPLAIN_CAUSE_H

#include "explain_history.h"

enum cause_kind {
	CAUSE_UNKNOWN,
	CAUSE_RULE,     /* the call, or the miniport in it, broke a contract */
	CAUSE_MINIPORT, /* a DDI of the miniport failed */
	CAUSE_REASON,   /* the call was refused although no contract was broken */
	CAUSE_BUSY,     /* DonotWait: the call would have waited */
	CAUSE_LOST      /* the device or the adapter was lost before the call */
};

enum loss_kind {
	LOSS_UNKNOWN,
	LOSS_HANG,       /* a packet did not complete in time */
	LOSS_PAGE_FAULT, /* a packet faulted */
	LOSS_MARKED,     /* marked as in error by the client */
	LOSS_MEMORY,     /* a submission's allocations did not fit into memory together */
	LOSS_FATAL,      /* Windows would have made a bug check */
	LOSS_REMOVAL     /* the device was removed */
};

enum { CAUSE_RULE_CHARS = 16, CAUSE_TEXT_CHARS = 400 };

/* What lost a device. */
struct loss {
	enum loss_kind kind;
	uint64_t number, time_ns; /* of the event that reports the root; number 0: none is known */
	uint32_t process, object; /* of the packet that hung or faulted: process and context */
	uint64_t node, fence, code;
	char ddi[LOGGED_REASON_CHARS]; /* LOSS_FATAL: the DDI that had failed, or "" */
	uint32_t ddi_status;
	char text[CAUSE_TEXT_CHARS]; /* the finding or reason that belongs to it, or "" */
};

struct cause {
	enum cause_kind kind;
	uint64_t number, time_ns;      /* of the event that is the root; number 0: none is known */
	char rule[CAUSE_RULE_CHARS];   /* "LOCK-07", or "" */
	char ddi[LOGGED_REASON_CHARS]; /* CAUSE_MINIPORT: name of the DDI */
	uint32_t ddi_status;
	char text[CAUSE_TEXT_CHARS]; /* of the finding or reason, or "" */
	struct loss loss;            /* CAUSE_LOST */
};

struct explain_causes;

struct explain_causes *explain_causes_create(void);
void explain_causes_destroy(struct explain_causes *causes); /* NULL is allowed */
/* Applies an event. Returns false when out of memory. */
bool explain_causes_add(struct explain_causes *causes, const struct logged_event *event);
/* Determines the cause of the failed call that the event DOOR ends. */
void explain_cause_of(const struct explain_causes *causes, const struct explain_history *history,
		      const struct logged_event *door, struct cause *cause);

/* "rule", "miniport" and so on; "hang" and so on. */
const char *cause_kind_name(enum cause_kind kind);
const char *loss_kind_name(enum loss_kind kind);

#endif
