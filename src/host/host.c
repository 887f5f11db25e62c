/* SPDX-License-Identifier: MIT */
/* One world: os, kernel services, event stream; its clock, and threads for clients. */
#include "base/failure.h"
#include "host/host_private.h"
#include "host/kmt_route.h"
#include "object/nt_handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VIDMM_TEXT_(x) #x
#define VIDMM_TEXT(x)  VIDMM_TEXT_(x)

const char *vidmm_version(void)
{
	return VIDMM_TEXT(VIDMM_VERSION_MAJOR) "." VIDMM_TEXT(VIDMM_VERSION_MINOR) "." VIDMM_TEXT(
		VIDMM_VERSION_PATCH);
}

static void yield(void *os)
{
	vmm_os_yield(os);
}

static uint64_t clock_ns(void *os)
{
	return vmm_os_now_ns(os);
}

/*
 * Reports violations of the kernel services' rules (NT-nn): a miniport called at a wrong IRQL,
 * damaged a pool block, or misused a lock.
 */
static void nt_violation(void *context, const struct vmm_nt_violation *violation)
{
	struct vidmm_host *host = context;
	struct vmm_observe *observe = host->world.observe;

	/*
	 * After a fatal violation the miniport is not asked to end its objects, so their pool
	 * blocks are not its leak.
	 */
	if (atomic_load(&host->world.abandoned) && !strcmp(violation->rule, "NT-06") &&
	    !strcmp(violation->service, "ExAllocatePool")) {
		vmm_reason(
			observe, VMM_DEVICE_REMOVED, 0, 0,
			"after a fatal violation the miniport was not asked to end its objects: %s",
			violation->text);
		return;
	}
	vmm_finding(observe, violation->rule, 0, 0, "%s at IRQL %u: %s", violation->service,
		    violation->irql, violation->text);
}

static void nt_bugcheck(void *context, uint32_t code, const uint64_t parameter[4])
{
	const struct vidmm_host *host = context;

	vmm_event(host->world.observe, VIDMM_EVENT_FATAL, 0, 0, 0, code, parameter[0], parameter[1],
		  parameter[2]);
}

static vmm_status create_os(const struct vidmm_host_options *options, struct vmm_os **os)
{
	struct vmm_os_config config = {
		.kind = options->kind == VIDMM_HOST_SIM ? VMM_OS_SIM : VMM_OS_LINUX,
		.seed = options->seed,
		.switch_per_1024 = options->switch_per_1024,
		.deadlock = options->deadlock,
		.deadlock_context = options->deadlock_context,
	};

	return vmm_os_create(&config, os);
}

static void print_event(void *context, const struct vidmm_event *event, const char *text)
{
	char line[VMM_OBSERVE_LINE_BYTES];

	(void)context;
	vmm_observe_format(event, text, line, sizeof(line));
	fprintf(stderr, "vidmm: %s\n", line);
}

/* VIDMM_DEBUG=1: findings, reasons and fatal violations go to the standard error stream. */
static void print_if_asked(struct vmm_observe *observe)
{
	const char *debug = secure_getenv("VIDMM_DEBUG");

	if (debug && !strcmp(debug, "1"))
		(void)vmm_observe_subscribe(observe,
					    vmm_observe_bit(VIDMM_EVENT_FINDING) |
						    vmm_observe_bit(VIDMM_EVENT_REASON) |
						    vmm_observe_bit(VIDMM_EVENT_FATAL),
					    print_event, NULL);
}

vidmm_status vidmm_host_create(const struct vidmm_host_options *options, struct vidmm_host **result)
{
	struct vmm_os *os;
	struct vmm_nt *nt;
	struct vmm_observe *observe;
	struct vidmm_host *host;
	vmm_status status;

	if (!options || !result || options->struct_size != sizeof(*options) ||
	    options->kind > VIDMM_HOST_SIM)
		return VMM_INVALID_PARAMETER;
	host = vmm_calloc(1, sizeof(*host));
	if (!host)
		return VMM_NO_MEMORY;
	status = create_os(options, &os);
	if (!vmm_ok(status))
		goto out_host;
	struct vmm_observe_config observe_config = {
		.virtual_ns = vmm_os_virtual_time(os),
		.clock = clock_ns,
		.clock_context = os,
		.yield = options->kind == VIDMM_HOST_LINUX ? yield : NULL,
		.threads = options->kind == VIDMM_HOST_LINUX,
		.hash = options->hash_events,
	};
	status = vmm_observe_create(&observe_config, &observe);
	if (!vmm_ok(status))
		goto out_os;
	struct vmm_nt_config nt_config = {.violation = nt_violation,
					  .bugcheck = nt_bugcheck,
					  .place = vmm_port_place_name,
					  .context = host,
					  .file_root = secure_getenv("VIDMM_FILE_ROOT")};
	host->world.observe = observe;
	status = vmm_nt_create(os, &nt_config, &nt);
	if (!vmm_ok(status))
		goto out_observe;
	status = vmm_world_init(&host->world, os, nt, observe);
	if (!vmm_ok(status))
		goto out_nt;
	host->world.sharing_rights = options->enforce_sharing_rights;
	print_if_asked(observe);
	vmm_kmt_route_host_here();
	*result = host;
	return VMM_OK;
out_nt:
	(void)!vmm_ok(vmm_nt_destroy(nt));
out_observe:
	vmm_observe_destroy(observe);
out_os:
	vmm_os_destroy(os);
out_host:
	vmm_free(host);
	return status;
}

vidmm_status vidmm_nt_handle_name(struct vidmm_host *host, int handle, uint16_t *name,
				  uint32_t *units)
{
	if (!host || handle < 0 || !units || (*units && !name))
		return VMM_INVALID_PARAMETER;
	return vmm_nt_name_of(&host->world, (uint64_t)handle, name, units);
}

void vidmm_host_destroy(struct vidmm_host *host)
{
	if (!host)
		return;
	struct vmm_os *os = host->world.os;

	vmm_assert(host->adapters == 0);
	vmm_world_ends(&host->world);
	vmm_kmt_forget_world(os);
	vmm_nt_end_world(&host->world);
	vmm_world_finish(&host->world);
	/*
	 * A miniport's thread that never ends keeps its world: a leak is better than freed memory
	 * under a running thread.
	 */
	bool ended = vmm_ok(vmm_nt_destroy(host->world.nt));
	vmm_observe_destroy(host->world.observe);
	if (ended)
		vmm_os_destroy(os);
	vmm_free(host);
}

void vidmm_fail_allocation(uint32_t n)
{
	vmm_calloc_fail_after(n);
}

_Static_assert((uint32_t)VIDMM_FAIL_ALLOCATION == VMM_FAIL_ALLOCATION &&
		       (uint32_t)VIDMM_FAIL_MAPPING == VMM_FAIL_MAPPING &&
		       (uint32_t)VIDMM_FAIL_UNMAPPING == VMM_FAIL_UNMAPPING &&
		       (uint32_t)VIDMM_FAIL_DESCRIPTOR == VMM_FAIL_DESCRIPTOR &&
		       (uint32_t)VIDMM_FAIL_THREAD == VMM_FAIL_THREAD && VMM_FAILURES == 5,
	       "kinds of failures are the same numbers");

/* */
uint32_t vidmm_fail_nth(uint32_t failure, uint32_t n)
{
	return failure < VMM_FAILURES ? vmm_fail_after((enum vmm_failure)failure, n) : 0;
}

void vidmm_fail_by_seed(uint32_t failures, uint64_t seed, uint32_t one_in)
{
	vmm_fail_by_seed(failures, seed, one_in);
}

uint64_t vidmm_now_ns(struct vidmm_host *host)
{
	return vmm_os_now_ns(host->world.os);
}

void vidmm_sleep_until_ns(struct vidmm_host *host, uint64_t when_ns)
{
	vmm_os_sleep_until(host->world.os, when_ns);
}

void vidmm_settle(struct vidmm_host *host)
{
	vmm_os_settle(host->world.os);
}

vidmm_status vidmm_thread_create(struct vidmm_host *host, const char *name, void (*fn)(void *),
				 void *arg, struct vidmm_thread **result)
{
	struct vidmm_thread *thread;
	vmm_status status;

	if (!host || !name || !fn || !result)
		return VMM_INVALID_PARAMETER;
	thread = vmm_calloc(1, sizeof(*thread));
	if (!thread)
		return VMM_NO_MEMORY;
	status = vmm_os_thread_create(host->world.os, name, fn, arg, &thread->thread);
	if (!vmm_ok(status)) {
		vmm_free(thread);
		return status;
	}
	*result = thread;
	return VMM_OK;
}

void vidmm_thread_join(struct vidmm_thread *thread)
{
	if (!thread)
		return;
	vmm_os_thread_join(thread->thread);
	vmm_free(thread);
}

uint32_t vidmm_subscribe(struct vidmm_host *host, uint64_t mask, vidmm_event_fn *fn, void *context)
{
	if (!host || !fn)
		return 0;
	uint32_t subscription = vmm_observe_subscribe(host->world.observe, mask, fn, context);

	/*
	 * From now on out-of-process clients send their locks to the host again, so that the
	 * subscriber sees them.
	 */
	vmm_world_next_epoch(&host->world);
	return subscription;
}

void vidmm_unsubscribe(struct vidmm_host *host, uint32_t subscription)
{
	vmm_observe_unsubscribe(host->world.observe, subscription);
}

uint64_t vidmm_event_hash(struct vidmm_host *host)
{
	return vmm_observe_hash(host->world.observe);
}

void vidmm_event_counter(struct vidmm_host *host, uint32_t event_type,
			 struct vidmm_counter *counter)
{
	struct vmm_observe_counter c = {0};

	if (event_type < VIDMM_EVENT_TYPE_COUNT)
		vmm_observe_counter(host->world.observe, event_type, &c);
	counter->count = c.count;
	for (uint32_t i = 0; i < VMM_ARRAY_LENGTH(counter->sum); i++)
		counter->sum[i] = c.sum[i];
}

int vidmm_event_format(const struct vidmm_event *event, const char *text, char *buffer, size_t size)
{
	return vmm_observe_format(event, text, buffer, size);
}
