/* SPDX-License-Identifier: MIT */
/*
 * report: what a program did, in a file that `vidmm run` creates and that it reads after the
 * program has ended. The library inside the program maps the file and adds to it. So the report
 * survives a program that crashes or calls _exit.
 *
 * Several processes write at once. Every row is claimed and counted with atomic instructions, and
 * no lock is stored in the file: a process that dies blocks no other. A table that is full counts
 * what it has no row for. The writer calls nothing but libc and may be used as a subscriber of the
 * event stream (vidmm_event_fn).
 */
#ifndef VMM_REPORT_REPORT_H
#define VMM_REPORT_REPORT_H

#include <stdatomic.h>

#include <vidmm/events.h>
#include <vidmm/statistics.h>
#include "base/base.h"

/* The environment variable that holds the path of the file. */
#define VMM_REPORT_VARIABLE "VIDMM_REPORT"

enum {
	VMM_REPORT_CALLS = 1024,
	VMM_REPORT_TEXTS = 256,
	VMM_REPORT_PROCESSES = 64,
	VMM_REPORT_ADAPTERS = 16,
	VMM_REPORT_TEXT_BYTES = 512,
	VMM_REPORT_NAME_BYTES = 64
};

/* Calls of one D3DKMT function that returned one status. */
struct vmm_report_call {
	_Atomic uint64_t key; /* 1 << 63, number of the operation << 32, status; 0: a free row */
	_Atomic uint64_t count;
};
/* A finding, reason or fatal violation. Equal ones share a row. */
struct vmm_report_text {
	_Atomic uint64_t hash; /* 0: a free row */
	_Atomic uint64_t count;
	_Atomic uint32_t written; /* 1: the members below are complete */
	uint32_t type;            /* enum vidmm_event_type */
	uint32_t status;          /* of a reason; code of a fatal violation */
	char text[VMM_REPORT_TEXT_BYTES];
};
/* A process of a host that the program, or a program that it started, has opened. */
struct vmm_report_process {
	_Atomic uint64_t key; /* 1 << 63, owner << 32, number at the host; 0: a free row */
	_Atomic uint64_t bytes, peak_bytes; /* of the allocations that it has created */
	_Atomic uint32_t pid;               /* set last; 0: unknown */
	char name[VMM_REPORT_NAME_BYTES];
};
struct vmm_report_adapter {
	_Atomic uint32_t owner;  /* as in vmm_report_writer, plus 1; 0: a free row */
	_Atomic uint32_t latest; /* 0: no sample; else 1 + index of the last complete sample */
	struct vidmm_adapter_statistics samples[2];
};
struct vmm_report {
	uint64_t magic, bytes;
	_Atomic uint32_t loaded; /* processes that have loaded the library */
	_Atomic uint64_t calls_lost, texts_lost, processes_lost, adapters_lost;
	/* Written by `vidmm run` itself: the step of the mount namespace that failed, and errno. */
	_Atomic uint32_t namespace_step, namespace_error;
	struct vmm_report_call calls[VMM_REPORT_CALLS];
	struct vmm_report_text texts[VMM_REPORT_TEXTS];
	struct vmm_report_process processes[VMM_REPORT_PROCESSES];
	struct vmm_report_adapter adapters[VMM_REPORT_ADAPTERS];
};

/* Creates the file, which must not exist, and maps it. Returns NULL with errno set on failure. */
struct vmm_report *vmm_report_create(const char *path);
/* Maps an existing file. Returns NULL if it is not the report of this version of the library. */
struct vmm_report *vmm_report_attach(const char *path);
void vmm_report_detach(struct vmm_report *report);

void vmm_report_call(struct vmm_report *report, uint32_t operation, vmm_status status);
void vmm_report_text(struct vmm_report *report, uint32_t type, uint32_t status, const char *text);

/* A host that reports. The context of vmm_report_event. */
struct vmm_report_writer {
	struct vmm_report *report;
	/* the host's process id if it is that of its only client; 0: a host of all clients */
	uint32_t owner;
	/* 1: the statistics of an adapter may have changed since this was set to 0 */
	_Atomic uint32_t changed;
};
/* The types of events that vmm_report_event needs. */
#define VMM_REPORT_EVENTS                                                           \
	((uint64_t)1 << VIDMM_EVENT_CREATE | (uint64_t)1 << VIDMM_EVENT_DESTROY |   \
	 (uint64_t)1 << VIDMM_EVENT_PAGING | (uint64_t)1 << VIDMM_EVENT_RESIDENCY | \
	 (uint64_t)1 << VIDMM_EVENT_FINDING | (uint64_t)1 << VIDMM_EVENT_REASON |   \
	 (uint64_t)1 << VIDMM_EVENT_FATAL)
/* A vidmm_event_fn. context: a struct vmm_report_writer. */
void vmm_report_event(void *context, const struct vidmm_event *event, const char *text);
/* The calling process is process `number` of the host; stores its pid and name. */
void vmm_report_process(struct vmm_report *report, uint32_t owner, uint32_t number,
			const char *name);
/*
 * Returns a row for an adapter of the host, NULL if there is none left. vmm_report_sample stores a
 * sample of its statistics; one thread at a time.
 */
struct vmm_report_adapter *vmm_report_adapter(struct vmm_report *report, uint32_t owner);
void vmm_report_sample(struct vmm_report_adapter *adapter,
		       const struct vidmm_adapter_statistics *statistics);

#endif
