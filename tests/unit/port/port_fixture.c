/* SPDX-License-Identifier: MIT */
#include "port_fixture.h"

#include <stdio.h>
#include <string.h>

static const uint64_t bars[] = {SCRIPTED_BAR_BYTES};

static uint64_t now(void *context)
{
	return vmm_os_now_ns(context);
}

static void count_event(struct port_fixture *f, const struct vidmm_event *event, const char *text)
{
	switch (event->type) {
	case VIDMM_EVENT_FINDING:
		f->findings++;
		snprintf(f->finding, sizeof(f->finding), "%s", text);
		break;
	case VIDMM_EVENT_REASON:
		f->reasons++;
		snprintf(f->reason, sizeof(f->reason), "%s", text);
		break;
	case VIDMM_EVENT_FATAL:
		f->fatal_events++;
		break;
	case VIDMM_EVENT_DDI:
		f->ddi_events++;
		break;
	case VIDMM_EVENT_CALLBACK:
		f->callback_events++;
		f->last_callback = event->reason;
		f->last_callback_status = (int32_t)event->arg[0];
		break;
	default:
		break;
	}
}

static void record_event(void *context, const struct vidmm_event *event, const char *text)
{
	struct port_fixture *f = context;

	pthread_mutex_lock(&f->record_lock);
	count_event(f, event, text);
	pthread_mutex_unlock(&f->record_lock);
}

static void record_violation(void *context, const struct vmm_nt_violation *violation)
{
	struct port_fixture *f = context;

	f->violations++;
	snprintf(f->violation, sizeof(f->violation), "%s: %s", violation->rule, violation->text);
}

/* ---- the sink ---- */

static void sink_interrupt(void *context, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	struct port_fixture *f = context;

	if (f->interrupts < VMM_ARRAY_LENGTH(f->interrupt)) {
		f->interrupt_irql[f->interrupts] = vmm_nt_irql(f->nt);
		f->interrupt[f->interrupts] = *data;
	}
	if (data->InterruptType == DXGK_INTERRUPT_DMA_COMPLETED) {
		f->unordered += data->DmaCompleted.SubmissionFenceId != f->last_fence + 1;
		f->last_fence = data->DmaCompleted.SubmissionFenceId;
	}
	f->interrupts++;
}

static void sink_dpc(void *context)
{
	struct port_fixture *f = context;

	f->dpcs++;
	f->dpc_irql = vmm_nt_irql(f->nt);
}

static void *sink_handle_data(void *context, uint32_t handle, uint32_t type, bool device_specific)
{
	struct port_fixture *f = context;

	f->asked_handle = handle;
	f->asked_type = type;
	return device_specific ? &f->asked_type : &f->asked_handle;
}

static uint32_t sink_handle_parent(void *context, uint32_t allocation)
{
	(void)context;
	return allocation + 1;
}

static void sink_fatal(void *context, uint32_t code, uint64_t p1, uint64_t p2, uint64_t p3)
{
	struct port_fixture *f = context;

	if (!f->fatals++) {
		f->fatal[0] = code;
		f->fatal[1] = p1;
		f->fatal[2] = p2;
		f->fatal[3] = p3;
	}
}

static const struct vmm_port_sink sink = {
	.interrupt = sink_interrupt,
	.dpc = sink_dpc,
	.handle_data = sink_handle_data,
	.handle_parent = sink_handle_parent,
	.fatal = sink_fatal,
};

/* ---- life ---- */

static int setup(void **state, enum vmm_os_kind kind)
{
	static struct port_fixture fixture;
	struct port_fixture *f = &fixture;
	struct vmm_os_config os_config = {.kind = kind, .seed = 7};
	struct vmm_nt_config nt_config = {.violation = record_violation, .context = f};
	struct vmm_observe_config observe_config = {.clock = now, .threads = kind == VMM_OS_LINUX};

	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->record_lock, NULL);
	if (!vmm_ok(vmm_os_create(&os_config, &f->os)) ||
	    !vmm_ok(vmm_nt_create(f->os, &nt_config, &f->nt)))
		return -1;
	observe_config.virtual_ns = vmm_os_virtual_time(f->os);
	observe_config.clock_context = f->os;
	if (!vmm_ok(vmm_observe_create(&observe_config, &f->observe)))
		return -1;
	if (!vmm_observe_subscribe(f->observe, UINT64_MAX, record_event, f))
		return -1;
	f->m = scripted_create();
	f->options = (struct vmm_port_options){
		.os = f->os,
		.nt = f->nt,
		.observe = f->observe,
		.initialization_data = scripted_table(f->m),
		.bar_sizes = bars,
		.bar_count = 1,
		.sink = &sink,
		.sink_context = f,
	};
	*state = f;
	return 0;
}

int port_fixture_setup(void **state)
{
	return setup(state, VMM_OS_SIM);
}

int port_fixture_setup_linux(void **state)
{
	return setup(state, VMM_OS_LINUX);
}

int port_fixture_teardown(void **state)
{
	struct port_fixture *f = *state;
	bool clean;

	port_fixture_stop(f);
	scripted_destroy(f->m);
	vmm_observe_destroy(f->observe);
	f->violations = 0;
	clean = vmm_ok(vmm_nt_destroy(f->nt)) && !f->violations;
	if (!clean)
		print_error("left behind: %s\n", f->violation);
	vmm_os_destroy(f->os);
	return clean ? 0 : -1;
}

NTSTATUS port_fixture_start(struct port_fixture *f)
{
	return vmm_port_start(&f->options, &f->port);
}

void port_fixture_run(struct port_fixture *f)
{
	NTSTATUS status = port_fixture_start(f);

	if (status != STATUS_SUCCESS)
		print_error("start: 0x%08x, %s %s\n", (unsigned)status, f->finding, f->reason);
	assert_int_equal(status, STATUS_SUCCESS);
	assert_nothing_found(f);
}

void port_fixture_stop(struct port_fixture *f)
{
	if (f->port)
		vmm_port_stop(f->port);
	f->port = NULL;
}

/* ---- asserting ---- */

void assert_finding(struct port_fixture *f, const char *rule, const char *text)
{
	size_t length = strlen(rule);

	if (!f->findings || strncmp(f->finding, rule, length) != 0 || f->finding[length] != ':' ||
	    !strstr(f->finding, text))
		fail_msg("expected a finding %s with \"%s\", the last of %u is: %s", rule, text,
			 f->findings, f->finding);
}

void assert_refused(struct port_fixture *f, NTSTATUS status, const char *rule, const char *text)
{
	assert_int_equal(port_fixture_start(f), status);
	assert_null(f->port);
	assert_finding(f, rule, text);
	f->findings = 0;
}

void assert_nothing_found(struct port_fixture *f)
{
	if (f->findings || f->fatals || f->violations)
		fail_msg("%u findings (%s), %u fatal, %u violations (%s)", f->findings, f->finding,
			 f->fatals, f->violations, f->violation);
}

void assert_fatal(struct port_fixture *f, uint32_t code, uint64_t p1)
{
	assert_int_equal(f->fatals, 1);
	assert_int_equal(f->fatal_events, 1);
	assert_int_equal(f->fatal[0], code);
	assert_int_equal(f->fatal[1], p1);
	assert_true(vmm_port_dead(f->port));
}
