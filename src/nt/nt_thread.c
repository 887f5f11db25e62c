/* SPDX-License-Identifier: MIT */
/*
 * System threads. A thread object exists while there is a handle, a reference or the running
 * thread. A thread cannot join itself, so another thread joins it after its end: at the next
 * creation or close, or when the kernel ends.
 */
#include "nt/nt_internal.h"

#include <stdio.h>

#define GRACE_NS 1000000000u

static void run(void *arg)
{
	struct nt_thread *self = arg;
	struct vmm_nt *nt = self->nt;
	uint64_t *slots = VMM_OS_OWN(nt->os)->slot;
	uint64_t *irql = &slots[VMM_NT_SLOT_IRQL];

	slots[SLOT_THREAD] = (uint64_t)(uintptr_t)self;
	if (setjmp(self->exit) == 0)
		self->start(self->start_context);
	if (*irql != PASSIVE_LEVEL) {
		nt_violation(nt, "NT-02", "system thread", "thread %u ended at IRQL %u",
			     self->number, (unsigned)*irql);
		vmm_nt_lower(nt, PASSIVE_LEVEL);
	}
	/*
	 * Set before the signal, so that a thread that waited for this one finds it ended. The
	 * thread is joined before its object is freed.
	 */
	nt_objects_lock(nt);
	self->ended = true;
	nt_objects_unlock(nt);
	nt_dispatcher_lock(nt);
	nt_dispatcher_unlock_and_wake(nt, nt_signal_locked(nt, &self->object.header));
}

/* Takes an ended thread that is not joined yet; the caller joins it. */
static struct nt_thread *take_ended(struct vmm_nt *nt)
{
	struct nt_thread *found = NULL;
	struct vmm_list *pos;

	nt_objects_lock(nt);
	vmm_list_for_each (pos, &nt->threads) {
		struct nt_thread *thread = vmm_container_of(pos, struct nt_thread, link);

		if (thread->ended && thread->os_thread) {
			found = thread;
			found->ended = false;
			break;
		}
	}
	nt_objects_unlock(nt);
	return found;
}

void nt_thread_reap(struct vmm_nt *nt)
{
	struct nt_thread *thread;

	while ((thread = take_ended(nt))) {
		vmm_os_thread_join(thread->os_thread);
		thread->os_thread = NULL;
		nt_object_put(nt, &thread->object);
	}
}

static struct nt_thread *first_running(struct vmm_nt *nt)
{
	struct nt_thread *found = NULL;
	struct vmm_list *pos;

	nt_objects_lock(nt);
	vmm_list_for_each (pos, &nt->threads) {
		struct nt_thread *thread = vmm_container_of(pos, struct nt_thread, link);

		if (!thread->os_thread)
			continue;
		found = thread;
		found->object.references++;
		break;
	}
	nt_objects_unlock(nt);
	return found;
}

bool nt_thread_finish(struct vmm_nt *nt)
{
	LARGE_INTEGER grace = {.QuadPart = -(LONGLONG)(GRACE_NS / 100)};
	struct nt_thread *thread;
	NTSTATUS status;

	nt_thread_reap(nt);
	while (!vmm_os_dead(nt->os) && (thread = first_running(nt))) {
		/*
		 * Drivers wait for an event that their thread sets last. The thread may still be
		 * about to exit.
		 */
		status = KeWaitForSingleObject(thread, Executive, KernelMode, FALSE, &grace);
		if (status == STATUS_TIMEOUT)
			nt_violation(nt, "NT-06", "PsCreateSystemThread", "thread %u still runs",
				     thread->number);
		nt_object_put(nt, &thread->object);
		if (status == STATUS_TIMEOUT)
			return false;
		nt_thread_reap(nt);
	}
	return true;
}

NTSTATUS PsCreateSystemThread(PHANDLE ThreadHandle, ULONG DesiredAccess,
			      POBJECT_ATTRIBUTES ObjectAttributes, HANDLE ProcessHandle,
			      PCLIENT_ID ClientId, PKSTART_ROUTINE StartRoutine, PVOID StartContext)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_thread *thread;
	char name[32];
	HANDLE handle;

	(void)DesiredAccess, (void)ObjectAttributes, (void)ProcessHandle;
	nt_limit(nt, "PsCreateSystemThread", PASSIVE_LEVEL);
	nt_thread_reap(nt);
	if (!ThreadHandle || !StartRoutine)
		return STATUS_INVALID_PARAMETER;
	thread = vmm_calloc(1, sizeof(*thread));
	if (!thread)
		return STATUS_INSUFFICIENT_RESOURCES;
	thread->nt = nt;
	thread->start = StartRoutine;
	thread->start_context = StartContext;
	thread->object.references = 1; /* the running thread's own */
	nt_object_prepare(&thread->object, OBJECT_THREAD, thread);
	nt_objects_lock(nt);
	thread->number = ++nt->thread_number;
	vmm_list_push_back(&nt->threads, &thread->link);
	nt_objects_unlock(nt);
	if (!NT_SUCCESS(nt_handle_open(nt, &thread->object, &handle)))
		goto out_thread;
	snprintf(name, sizeof(name), "kernel thread %u", thread->number);
	if (!vmm_ok(vmm_os_thread_create(nt->os, name, run, thread, &thread->os_thread)))
		goto out_handle;
	if (ClientId)
		*ClientId = (CLIENT_ID){.UniqueThread = (HANDLE)(ULONG_PTR)thread->number};
	*ThreadHandle = handle;
	return STATUS_SUCCESS;

out_handle:
	ZwClose(handle);
out_thread:
	nt_object_put(nt, &thread->object);
	return STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS PsTerminateSystemThread(NTSTATUS ExitStatus)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_thread *self =
		(struct nt_thread *)(uintptr_t)VMM_OS_OWN(nt->os)->slot[SLOT_THREAD];

	(void)ExitStatus;
	nt_limit(nt, "PsTerminateSystemThread", PASSIVE_LEVEL);
	if (!self)
		return STATUS_INVALID_PARAMETER;
	longjmp(self->exit, 1);
}
