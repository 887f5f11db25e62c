/* SPDX-License-Identifier: MIT */
/* The rows of a report: claimed by compare-and-swap, counted by atomic additions. */
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x31304D4D44495652u
#define USED  ((uint64_t)1 << 63)

static struct vmm_report *map(int fd)
{
	void *memory =
		mmap(NULL, sizeof(struct vmm_report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

struct vmm_report *vmm_report_create(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct vmm_report *report = NULL;

	if (fd < 0)
		return NULL;
	/*
	 * The space is reserved now: a store into a page that a full disk lacks raises
	 * SIGBUS.
	 */
	int error = posix_fallocate(fd, 0, sizeof(*report));
	if (!error) {
		report = map(fd);
		error = errno;
	}
	close(fd);
	errno = error;
	if (report) {
		report->bytes = sizeof(*report);
		report->magic = MAGIC;
	}
	return report;
}

struct vmm_report *vmm_report_attach(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct vmm_report *report = NULL;
	struct stat info;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &info) && S_ISREG(info.st_mode) &&
	    info.st_size == (off_t)sizeof(struct vmm_report))
		report = map(fd);
	close(fd);
	if (report && (report->magic != MAGIC || report->bytes != sizeof(*report))) {
		vmm_report_detach(report);
		return NULL;
	}
	return report;
}

void vmm_report_detach(struct vmm_report *report)
{
	if (report)
		munmap(report, sizeof(*report));
}

/*
 * Returns whether the row has this key. A free row gets it; *claimed is then true. A key never
 * changes once it is set.
 */
static bool take_row(_Atomic uint64_t *row, uint64_t key, bool *claimed)
{
	uint64_t found = 0;

	*claimed = atomic_compare_exchange_strong(row, &found, key);
	return *claimed || found == key;
}

void vmm_report_call(struct vmm_report *report, uint32_t operation, vmm_status status)
{
	const uint64_t key = USED | (uint64_t)operation << 32 | (uint32_t)status;
	bool claimed;

	for (uint32_t i = 0; i < VMM_REPORT_CALLS; i++) {
		struct vmm_report_call *call = &report->calls[i];

		if (!take_row(&call->key, key, &claimed))
			continue;
		atomic_fetch_add(&call->count, 1);
		return;
	}
	atomic_fetch_add(&report->calls_lost, 1);
}

/* FNV-1a, 64 bits. */
static uint64_t hash_of(uint32_t type, uint32_t status, const char *text)
{
	uint64_t hash = 0xCBF29CE484222325u ^ type ^ (uint64_t)status << 32;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001B3u;
	return hash | 1u;
}

void vmm_report_text(struct vmm_report *report, uint32_t type, uint32_t status, const char *text)
{
	const uint64_t hash = hash_of(type, status, text);
	bool claimed;

	for (uint32_t i = 0; i < VMM_REPORT_TEXTS; i++) {
		struct vmm_report_text *row = &report->texts[i];

		if (!take_row(&row->hash, hash, &claimed))
			continue;
		atomic_fetch_add(&row->count, 1);
		if (claimed) {
			row->type = type;
			row->status = status;
			snprintf(row->text, sizeof(row->text), "%s", text);
			atomic_store(&row->written, 1);
		}
		return;
	}
	atomic_fetch_add(&report->texts_lost, 1);
}

/* ---- processes ---- */

static struct vmm_report_process *find_process(struct vmm_report *report, uint32_t owner,
					       uint32_t number)
{
	const uint64_t key = USED | (uint64_t)owner << 32 | number;
	bool claimed;

	for (uint32_t i = 0; i < VMM_REPORT_PROCESSES; i++)
		if (take_row(&report->processes[i].key, key, &claimed))
			return &report->processes[i];
	atomic_fetch_add(&report->processes_lost, 1);
	return NULL;
}

void vmm_report_process(struct vmm_report *report, uint32_t owner, uint32_t number,
			const char *name)
{
	struct vmm_report_process *process = find_process(report, owner, number);

	if (!process)
		return;
	snprintf(process->name, sizeof(process->name), "%s", name);
	atomic_store(&process->pid, (uint32_t)getpid());
}

static void raise_peak(_Atomic uint64_t *peak, uint64_t bytes)
{
	uint64_t before = atomic_load(peak);

	while (before < bytes && !atomic_compare_exchange_weak(peak, &before, bytes))
		;
}

static void count_allocation(const struct vmm_report_writer *writer,
			     const struct vidmm_event *event)
{
	struct vmm_report_process *process =
		find_process(writer->report, writer->owner, event->process);

	if (!process)
		return;
	if (event->type == VIDMM_EVENT_DESTROY)
		atomic_fetch_sub(&process->bytes, event->arg[0]);
	else
		raise_peak(&process->peak_bytes,
			   atomic_fetch_add(&process->bytes, event->arg[0]) + event->arg[0]);
}

void vmm_report_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct vmm_report_writer *writer = context;
	char fatal[64];

	switch (event->type) {
	case VIDMM_EVENT_CREATE:
	case VIDMM_EVENT_DESTROY:
		count_allocation(writer, event);
		break;
	case VIDMM_EVENT_FATAL:
		snprintf(fatal, sizeof(fatal),
			 "a fatal violation: Windows would stop with code 0x%x",
			 (unsigned)event->arg[0]);
		vmm_report_text(writer->report, event->type, (uint32_t)event->arg[0], fatal);
		break;
	case VIDMM_EVENT_FINDING:
	case VIDMM_EVENT_REASON:
		vmm_report_text(writer->report, event->type, (uint32_t)event->arg[0],
				text ? text : "");
		break;
	default:
		break;
	}
	atomic_store(&writer->changed, 1);
}

/* ---- adapters ---- */

struct vmm_report_adapter *vmm_report_adapter(struct vmm_report *report, uint32_t owner)
{
	for (uint32_t i = 0; i < VMM_REPORT_ADAPTERS; i++) {
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&report->adapters[i].owner, &none, owner + 1))
			return &report->adapters[i];
	}
	atomic_fetch_add(&report->adapters_lost, 1);
	return NULL;
}

void vmm_report_sample(struct vmm_report_adapter *adapter,
		       const struct vidmm_adapter_statistics *statistics)
{
	uint32_t next = atomic_load(&adapter->latest) == 1;

	/* The last complete sample stays valid if the process ends during the copy. */
	adapter->samples[next] = *statistics;
	atomic_store(&adapter->latest, next + 1);
}
