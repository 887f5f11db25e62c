/* SPDX-License-Identifier: MIT */
/* The file between `vidmm run` and its program: rows, full tables, several writers. */
#include <support/test.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/report.h"

struct file {
	char folder[64], path[96];
	struct vmm_report *report;
};

static void make(struct file *f)
{
	strcpy(f->folder, "/tmp/vidmm-report-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->path, sizeof(f->path), "%s/report", f->folder);
	f->report = vmm_report_create(f->path);
	assert_non_null(f->report);
}

static void end(struct file *f)
{
	vmm_report_detach(f->report);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(rmdir(f->folder), 0);
}

static uint64_t calls_of(const struct vmm_report *report, uint32_t operation, vmm_status status)
{
	for (uint32_t i = 0; i < VMM_REPORT_CALLS; i++)
		if ((uint32_t)report->calls[i].key == (uint32_t)status &&
		    (report->calls[i].key >> 32 & 0x7FFFFFFFu) == operation)
			return report->calls[i].count;
	return 0;
}

static void what_a_process_wrote_before_it_ended_is_there(void **state)
{
	struct file f;
	int status;

	(void)state;
	make(&f);
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		struct vmm_report *report = vmm_report_attach(f.path);

		if (!report)
			_exit(1);
		vmm_report_call(report, 7, VMM_OK);
		vmm_report_call(report, 7, VMM_NO_MEMORY);
		vmm_report_call(report, 7, VMM_NO_MEMORY);
		vmm_report_text(report, VIDMM_EVENT_REASON, 1, "why");
		vmm_report_process(report, 0, 3, "child");
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(calls_of(f.report, 7, VMM_OK), 1);
	assert_int_equal(calls_of(f.report, 7, VMM_NO_MEMORY), 2);
	assert_string_equal(f.report->texts[0].text, "why");
	assert_int_equal(f.report->processes[0].pid, child);
	assert_string_equal(f.report->processes[0].name, "child");
	end(&f);
}

static void a_file_that_is_no_report_is_not_attached(void **state)
{
	struct file f;
	char other[128];

	(void)state;
	make(&f);
	snprintf(other, sizeof(other), "%s/other", f.folder);
	assert_null(vmm_report_create(f.path)); /* it exists */
	assert_null(vmm_report_attach(other));
	assert_int_equal(symlink(f.path, other), 0);
	assert_null(vmm_report_attach(other));
	f.report->magic++;
	assert_null(vmm_report_attach(f.path));
	f.report->magic--;
	f.report->bytes++;
	assert_null(vmm_report_attach(f.path));
	assert_int_equal(truncate(f.path, 100), 0);
	assert_null(vmm_report_attach(f.path));
	assert_int_equal(unlink(other), 0);
	end(&f);
}

static void full_tables_count_what_they_have_no_row_for(void **state)
{
	struct vidmm_event event = {.type = VIDMM_EVENT_CREATE, .arg = {4096}};
	struct vmm_report_writer writer = {0};
	char text[32];
	struct file f;

	(void)state;
	make(&f);
	writer.report = f.report;
	for (uint32_t i = 0; i < VMM_REPORT_CALLS + 5; i++)
		vmm_report_call(f.report, i, VMM_OK);
	for (uint32_t i = 0; i < VMM_REPORT_TEXTS + 6; i++) {
		snprintf(text, sizeof(text), "text %u", i);
		vmm_report_text(f.report, VIDMM_EVENT_FINDING, 0, text);
	}
	for (event.process = 1; event.process <= VMM_REPORT_PROCESSES + 7; event.process++)
		vmm_report_event(&writer, &event, NULL);
	for (uint32_t i = 0; i < VMM_REPORT_ADAPTERS; i++)
		assert_non_null(vmm_report_adapter(f.report, i));
	assert_null(vmm_report_adapter(f.report, 0));
	assert_int_equal(f.report->calls_lost, 5);
	assert_int_equal(f.report->texts_lost, 6);
	assert_int_equal(f.report->processes_lost, 7);
	assert_int_equal(f.report->adapters_lost, 1);
	end(&f);
}

static void allocations_have_a_peak_for_each_process(void **state)
{
	struct vidmm_event create = {.type = VIDMM_EVENT_CREATE, .process = 1, .arg = {100}};
	struct vidmm_event destroy = {.type = VIDMM_EVENT_DESTROY, .process = 1, .arg = {100}};
	struct vmm_report_writer writer = {0};
	struct file f;

	(void)state;
	make(&f);
	writer.report = f.report;
	writer.owner = 9;
	vmm_report_event(&writer, &create, NULL);
	vmm_report_event(&writer, &create, NULL);
	vmm_report_event(&writer, &destroy, NULL);
	vmm_report_event(&writer, &create, NULL);
	create.process = 2;
	vmm_report_event(&writer, &create, NULL);
	assert_int_equal(f.report->processes[0].bytes, 200);
	assert_int_equal(f.report->processes[0].peak_bytes, 200);
	assert_int_equal(f.report->processes[1].bytes, 100);
	assert_int_equal(writer.changed, 1);
	/* The process that knows its name finds the same row. */
	vmm_report_process(f.report, 9, 2, "two");
	assert_string_equal(f.report->processes[1].name, "two");
	end(&f);
}

static void the_last_complete_sample_is_kept(void **state)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};
	struct file f;

	(void)state;
	make(&f);
	struct vmm_report_adapter *row = vmm_report_adapter(f.report, 0);

	assert_int_equal(row->latest, 0);
	for (uint64_t i = 1; i < 6; i++) {
		statistics.evictions = i;
		vmm_report_sample(row, &statistics);
		assert_in_range(row->latest, 1, 2);
		assert_int_equal(row->samples[row->latest - 1].evictions, i);
		assert_int_equal(row->samples[2 - row->latest].evictions, i - 1);
	}
	end(&f);
}

enum { THREADS = 4, ROUNDS = 20000, KINDS = 8 };

static void *write_much(void *context)
{
	struct vmm_report *report = context;
	char text[32];

	for (uint32_t i = 0; i < ROUNDS; i++) {
		vmm_report_call(report, i % KINDS, VMM_OK);
		snprintf(text, sizeof(text), "text %u", i % KINDS);
		vmm_report_text(report, VIDMM_EVENT_FINDING, 0, text);
	}
	return NULL;
}

static void several_writers_lose_nothing_and_share_rows(void **state)
{
	pthread_t threads[THREADS];
	struct file f;

	(void)state;
	make(&f);
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_much, f.report), 0);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < KINDS; i++) {
		assert_int_equal(calls_of(f.report, i, VMM_OK), THREADS * ROUNDS / KINDS);
		assert_int_equal(f.report->texts[i].count, THREADS * ROUNDS / KINDS);
		assert_int_equal(f.report->texts[i].written, 1);
	}
	assert_int_equal(f.report->texts[KINDS].hash, 0);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_process_wrote_before_it_ended_is_there),
		cmocka_unit_test(a_file_that_is_no_report_is_not_attached),
		cmocka_unit_test(full_tables_count_what_they_have_no_row_for),
		cmocka_unit_test(allocations_have_a_peak_for_each_process),
		cmocka_unit_test(the_last_complete_sample_is_kept),
		cmocka_unit_test(several_writers_lose_nothing_and_share_rows),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
