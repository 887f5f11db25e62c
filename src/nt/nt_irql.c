/* SPDX-License-Identifier: MIT */
/*
 * The IRQL of each thread, and the lock of a device interrupt. The level is in the thread's slot,
 * so only the thread itself reads and writes it.
 */
#include "nt/nt_internal.h"

uint32_t vmm_nt_irql(struct vmm_nt *nt)
{
	return vmm_nt_irql_of(VMM_OS_OWN(nt->os)->slot);
}

uint32_t vmm_nt_raise_of(struct vmm_nt *nt, uint64_t *slots, const char *service, uint32_t irql)
{
	uint64_t *slot = &slots[VMM_NT_SLOT_IRQL];
	uint32_t before = (uint32_t)*slot;

	if (vmm_unlikely(irql < before))
		nt_violation(nt, "NT-02", service,
			     "raise from IRQL %u to the lower %u; the IRQL does not change", before,
			     irql);
	else
		*slot = irql;
	return before;
}

void vmm_nt_lower_of(struct vmm_nt *nt, uint64_t *slots, const char *service, uint32_t irql)
{
	uint64_t *slot = &slots[VMM_NT_SLOT_IRQL];
	uint32_t before = (uint32_t)*slot;

	if (vmm_unlikely(irql > before)) {
		nt_violation(nt, "NT-02", service,
			     "lowering from IRQL %u to the higher %u; the IRQL does not change",
			     before, irql);
		return;
	}
	if (before >= DISPATCH_LEVEL && irql < DISPATCH_LEVEL) {
		*slot = DISPATCH_LEVEL;
		while (atomic_load_explicit(&nt->dpc_queued, memory_order_acquire) &&
		       nt_dpc_run_next(nt, slots))
			;
	}
	*slot = irql;
}

uint32_t vmm_nt_raise(struct vmm_nt *nt, uint32_t irql)
{
	return vmm_nt_raise_of(nt, VMM_OS_OWN(nt->os)->slot, "vmm_nt_raise", irql);
}

void vmm_nt_lower(struct vmm_nt *nt, uint32_t irql)
{
	vmm_nt_lower_of(nt, VMM_OS_OWN(nt->os)->slot, "vmm_nt_lower", irql);
}

KIRQL KeGetCurrentIrql(VOID)
{
	return (KIRQL)vmm_nt_irql(vmm_nt_current());
}

KIRQL KfRaiseIrql(KIRQL NewIrql)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	return (KIRQL)vmm_nt_raise_of(nt, slots, "KeRaiseIrql", NewIrql);
}

VOID KeLowerIrql(KIRQL NewIrql)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	vmm_nt_lower_of(nt, slots, "KeLowerIrql", NewIrql);
}

void vmm_nt_interrupt_init(struct vmm_nt_interrupt *interrupt, struct vmm_nt *nt, uint32_t rank,
			   const char *name)
{
	interrupt->nt = nt;
	vmm_os_mutex_init(&interrupt->mutex, nt->os, rank, name);
}

void vmm_nt_interrupt_finish(struct vmm_nt_interrupt *interrupt)
{
	vmm_os_mutex_finish(&interrupt->mutex);
}

uint32_t vmm_nt_interrupt_enter(struct vmm_nt_interrupt *interrupt, uint64_t *slots)
{
	uint32_t before = vmm_nt_raise_of(interrupt->nt, slots, "interrupt lock", VMM_NT_DEVICE);

	vmm_os_mutex_lock(&interrupt->mutex);
	return before;
}

void vmm_nt_interrupt_leave(struct vmm_nt_interrupt *interrupt, uint64_t *slots, uint32_t irql)
{
	uint64_t *slot = &slots[VMM_NT_SLOT_IRQL];

	if (vmm_unlikely(*slot != VMM_NT_DEVICE)) {
		nt_violation(interrupt->nt, "NT-02", "interrupt lock",
			     "routine entered at IRQL %u returned at %u", VMM_NT_DEVICE,
			     (unsigned)*slot);
		*slot = VMM_NT_DEVICE;
	}
	vmm_os_mutex_unlock(&interrupt->mutex);
	vmm_nt_lower_of(interrupt->nt, slots, "interrupt lock", irql);
}
