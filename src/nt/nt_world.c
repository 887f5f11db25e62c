/* SPDX-License-Identifier: MIT */
/* The kernel of one os world: creation, end, finding the kernel of a service call, violations. */
#include "nt/nt_internal.h"

#include <stdio.h>

#define PHYSICAL_FIRST    ((uint64_t)4 << 30)
#define SYSTEM_TIME_BASE  133485408000000000u /* 1 January 2024 */
#define POLLS_PER_INSTANT 256

struct vmm_lock_class nt_dispatcher_class, nt_dpc_class, nt_objects_class;
struct vmm_lock_class nt_memory_class, nt_registry_class;

/* The kernel for threads that belong to no world, such as those of a library that a driver uses. */
static _Atomic(struct vmm_nt *) newest;

struct vmm_nt *nt_of_thread(void)
{
	const struct vmm_os_front *world = vmm_os_here.current;
	struct vmm_nt *nt = vmm_likely(world != NULL) ? world->attached : NULL;

	if (vmm_unlikely(!nt))
		nt = atomic_load_explicit(&newest, memory_order_acquire);
	return nt;
}

struct vmm_nt *vmm_nt_current(void)
{
	struct vmm_nt *nt = nt_of_thread();

	vmm_assert(nt);
	return nt;
}

struct vmm_nt *nt_caller(uint64_t **slots)
{
	struct vmm_nt *nt = vmm_nt_current();

	*slots = VMM_OS_OWN(nt->os)->slot;
	return nt;
}

vmm_status vmm_nt_create(struct vmm_os *os, const struct vmm_nt_config *config, struct vmm_nt **nt)
{
	struct vmm_nt *self = vmm_calloc_lines(sizeof(*self));
	vmm_status status;

	if (!self)
		return VMM_NO_MEMORY;
	self->os = os;
	self->virtual_ns = vmm_os_virtual_time(os);
	if (config)
		self->config = *config;
	if (!self->config.physical_first)
		self->config.physical_first = PHYSICAL_FIRST;
	if (!self->config.system_time_base)
		self->config.system_time_base = SYSTEM_TIME_BASE;
	nt_dpc_init(self);
	nt_object_init(self);
	nt_irp_init(self);
	nt_file_init(self);
	nt_work_init(self);
	nt_pool_init(self);
	nt_phys_init(self);
	status = nt_registry_init(self);
	if (!vmm_ok(status)) {
		nt_file_end(self);
		vmm_free(self);
		return status;
	}
	vmm_os_attach(os, self);
	status = nt_timer_init(self);
	if (!vmm_ok(status)) {
		vmm_os_attach(os, NULL);
		nt_registry_finish(self);
		nt_file_end(self);
		vmm_free(self);
		return status;
	}
	atomic_store_explicit(&newest, self, memory_order_release);
	*nt = self;
	return VMM_OK;
}

vmm_status vmm_nt_destroy(struct vmm_nt *nt)
{
	struct vmm_nt *self = nt;

	if (!nt_thread_finish(nt) || !nt_work_finish(nt) || !nt_thread_finish(nt))
		return VMM_UNSUCCESSFUL;
	nt_timer_finish(nt);
	nt_dpc_finish(nt);
	nt_irp_finish(nt);
	nt_object_finish(nt);
	nt_file_end(nt);
	nt_phys_finish(nt);
	nt_pool_finish(nt);
	nt_registry_finish(nt);
	atomic_compare_exchange_strong(&newest, &self, NULL);
	vmm_os_attach(nt->os, NULL);
	vmm_free(nt);
	return VMM_OK;
}

void vmm_nt_set_violation_hook(struct vmm_nt *nt,
			       void (*violation)(void *context,
						 const struct vmm_nt_violation *violation),
			       void *context)
{
	nt->config.violation = violation;
	nt->config.context = context;
}

void nt_violation(struct vmm_nt *nt, const char *rule, const char *service, const char *format, ...)
{
	struct vmm_nt_violation violation = {
		.rule = rule, .service = service, .irql = vmm_nt_irql(nt)};
	char text[256];
	va_list arguments;

	if (!nt->config.violation)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	violation.text = text;
	nt->config.violation(nt->config.context, &violation);
}

void nt_above_limit(struct vmm_nt *nt, const char *service, uint32_t limit)
{
	nt_violation(nt, "NT-01", service, "%s called at IRQL %u, its limit is %u", service,
		     vmm_nt_irql(nt), limit);
}

NTSTATUS nt_not_supported(struct vmm_nt *nt, const char *service, const char *what)
{
	nt_violation(nt, "NT-11", service, "%s are not built; STATUS_NOT_SUPPORTED", what);
	return STATUS_NOT_SUPPORTED;
}

uint32_t nt_identity(struct vmm_nt *nt, uint64_t *slots)
{
	uint64_t *slot = &slots[SLOT_IDENTITY];

	if (!(uint32_t)*slot)
		*slot |= atomic_fetch_add_explicit(&nt->last_identity, 1, memory_order_relaxed) + 1;
	return (uint32_t)*slot;
}

void nt_polled(struct vmm_nt *nt)
{
	uint64_t now;

	if (!nt->virtual_ns)
		return;
	now = *nt->virtual_ns;
	if (now != nt->poll_time_ns) {
		nt->poll_time_ns = now;
		nt->poll_count = 0;
	}
	if (++nt->poll_count < POLLS_PER_INSTANT)
		return;
	nt->poll_count = 0;
	vmm_os_sleep_until(nt->os, now + 1000);
}
