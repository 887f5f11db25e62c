/* SPDX-License-Identifier: MIT */
/*
 * One port on a scripted miniport in a sim world. It records what the sink was called with, and the
 * texts of findings, reasons and fatal violations.
 */
#ifndef VMM_TESTS_UNIT_PORT_PORT_FIXTURE_H
#define VMM_TESTS_UNIT_PORT_PORT_FIXTURE_H

#include <pthread.h>

#include "support/test.h"
#include "support/scripted_miniport.h"
#include "port/port.h"

struct port_fixture {
	struct vmm_os *os;
	struct vmm_nt *nt;
	struct vmm_observe *observe;
	struct scripted_miniport *m;
	struct vmm_port *port; /* NULL: not started */
	struct vmm_port_options options;

	/* calls of the sink */
	DXGKARGCB_NOTIFY_INTERRUPT_DATA interrupt[16];
	uint32_t interrupt_irql[16];
	uint32_t interrupts, dpcs, dpc_irql;
	/* of DMA_COMPLETED: the last id, and how many ids were not the one after the id before */
	uint32_t last_fence, unordered;
	uint32_t fatals;
	uint64_t fatal[4]; /* code and parameters of the first fatal violation */
	uint32_t asked_handle, asked_type;

	/* events may come from several threads at once; only the subscriber takes it */
	pthread_mutex_t record_lock;
	uint32_t findings, reasons, fatal_events, ddi_events, callback_events;
	int32_t last_callback_status;
	uint32_t last_callback;
	char finding[512], reason[512]; /* the last of each, with its rule */
	uint32_t violations;
	char violation[256];
};

/* cmocka setup and teardown; *state is the fixture. The teardown asserts that nothing is leaked. */
int port_fixture_setup(void **state);
int port_fixture_setup_linux(void **state); /* on real threads */
int port_fixture_teardown(void **state);

NTSTATUS port_fixture_start(struct port_fixture *f);
/* Starts the port or fails the test. */
void port_fixture_run(struct port_fixture *f);
void port_fixture_stop(struct port_fixture *f);

/*
 * Asserts that the start is refused with the status and that a finding of the rule has the text.
 * Findings count from zero afterwards.
 */
void assert_refused(struct port_fixture *f, NTSTATUS status, const char *rule, const char *text);
/* Asserts that the last finding is of the rule and has the text. */
void assert_finding(struct port_fixture *f, const char *rule, const char *text);
void assert_nothing_found(struct port_fixture *f);
/* Asserts that the adapter is dead, reported once, with these values. */
void assert_fatal(struct port_fixture *f, uint32_t code, uint64_t p1);

#endif
