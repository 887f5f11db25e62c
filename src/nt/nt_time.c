/* SPDX-License-Identifier: MIT */
/*
 * Clocks and delays. Performance counter and interrupt time count 100 ns units since the world
 * began; the system time adds the base of the configuration. On sim all are virtual and the same in
 * every run.
 */
#include "nt/nt_internal.h"

#define TICKS_PER_S 10000000
#define NS_PER_TICK 100
#define NS_PER_US   1000

static uint64_t ticks(struct vmm_nt *nt)
{
	nt_polled(nt);
	return (nt->virtual_ns ? *nt->virtual_ns : vmm_os_now_ns(nt->os)) / NS_PER_TICK;
}

LARGE_INTEGER KeQueryPerformanceCounter(PLARGE_INTEGER PerformanceFrequency)
{
	LARGE_INTEGER now;

	if (PerformanceFrequency)
		PerformanceFrequency->QuadPart = TICKS_PER_S;
	now.QuadPart = (LONGLONG)ticks(vmm_nt_current());
	return now;
}

VOID KeQuerySystemTimePrecise(PLARGE_INTEGER CurrentTime)
{
	struct vmm_nt *nt = vmm_nt_current();

	CurrentTime->QuadPart = (LONGLONG)(nt->config.system_time_base + ticks(nt));
}

ULONGLONG KeQueryInterruptTime(VOID)
{
	return ticks(vmm_nt_current());
}

NTSTATUS KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
				PLARGE_INTEGER Interval)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	(void)WaitMode, (void)Alertable;
	if (vmm_nt_irql(nt) > APC_LEVEL)
		nt_violation(nt, "NT-03", "KeDelayExecutionThread",
			     "KeDelayExecutionThread waits at IRQL %u", vmm_nt_irql(nt));
	slots[VMM_NT_SLOT_WAIT] = (uintptr_t) "KeDelayExecutionThread";
	vmm_os_sleep_until(nt->os, nt_deadline_ns(nt, Interval));
	slots[VMM_NT_SLOT_WAIT] = 0;
	return STATUS_SUCCESS;
}

VOID KeStallExecutionProcessor(ULONG MicroSeconds)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t until = vmm_os_now_ns(nt->os) + (uint64_t)MicroSeconds * NS_PER_US;

	if (vmm_os_kind(nt->os) == VMM_OS_SIM) {
		vmm_os_sleep_until(nt->os, until);
		return;
	}
	while (vmm_os_now_ns(nt->os) < until)
		;
}
