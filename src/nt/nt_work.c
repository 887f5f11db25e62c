/* SPDX-License-Identifier: MIT */
/*
 * Work items. System threads call their routines at PASSIVE_LEVEL, in the order of the queue. A
 * thread is added when a routine is queued and none is idle, because a routine may wait for another
 * one. Guarded by the objects lock, which is not held while a routine runs.
 */
#include "nt/nt_internal.h"

#include <stdio.h>

#define WORK_ITEM_TAG 0x6B576F49u /* "IoWk" */
#define GRACE_NS      1000000000u

struct _IO_WORKITEM {
	WORK_QUEUE_ITEM item;
	PVOID object;
	PIO_WORKITEM_ROUTINE routine;
	PIO_WORKITEM_ROUTINE_EX routine_ex;
	PVOID context;
};

void nt_work_init(struct vmm_nt *nt)
{
	InitializeListHead(&nt->work_queue);
}

static PWORK_QUEUE_ITEM take_locked(struct vmm_nt *nt) VMM_REQUIRES(nt_objects_class)
{
	PWORK_QUEUE_ITEM item;

	vmm_assert_held(&nt->objects);
	if (IsListEmpty(&nt->work_queue))
		return NULL;
	item = CONTAINING_RECORD(RemoveHeadList(&nt->work_queue), WORK_QUEUE_ITEM, List);
	/* The routine may free or queue the item, so this is its last use here. */
	item->List.Flink = item->List.Blink = NULL;
	return item;
}

static void call(struct vmm_nt *nt, PWORKER_THREAD_ROUTINE routine, PVOID parameter)
{
	uint32_t irql;

	routine(parameter);
	irql = vmm_nt_irql(nt);
	if (irql != PASSIVE_LEVEL) {
		nt_violation(nt, "NT-02", "work item", "a routine returned at IRQL %u", irql);
		vmm_nt_lower(nt, PASSIVE_LEVEL);
	}
}

static void work(void *arg)
{
	struct vmm_nt *nt = arg;

	for (;;) {
		PWORKER_THREAD_ROUTINE routine = NULL;
		PWORK_QUEUE_ITEM item;
		PVOID parameter = NULL;
		uint32_t changed;
		bool stop;

		nt_objects_lock(nt);
		changed = atomic_load_explicit(&nt->work_changed, memory_order_relaxed);
		item = take_locked(nt);
		if (item) {
			routine = item->WorkerRoutine;
			parameter = item->Parameter;
			nt->work_running++;
		}
		stop = nt->work_stop;
		nt_objects_unlock(nt);
		if (routine) {
			call(nt, routine, parameter);
			nt_objects_lock(nt);
			nt->work_running--;
			nt_objects_unlock(nt);
		} else if (stop) {
			return;
		} else {
			vmm_os_wait(nt->os, &nt->work_changed, changed, VMM_OS_FOREVER, NULL, 0);
		}
	}
}

/* Returns the index of a thread to be created, or NT_WORKERS. */
static uint32_t append_locked(struct vmm_nt *nt, PWORK_QUEUE_ITEM item)
	VMM_REQUIRES(nt_objects_class)
{
	uint32_t queued = 0;

	vmm_assert_held(&nt->objects);
	InsertTailList(&nt->work_queue, &item->List);
	for (LIST_ENTRY *entry = nt->work_queue.Flink; entry != &nt->work_queue;
	     entry = entry->Flink)
		queued++;
	atomic_fetch_add_explicit(&nt->work_changed, 1, memory_order_release);
	if (queued + nt->work_running <= nt->worker_count || nt->worker_count == NT_WORKERS)
		return NT_WORKERS;
	nt->worker_count++;
	for (uint32_t i = 0;; i++) {
		if (nt->worker_slots & 1u << i)
			continue;
		nt->worker_slots |= 1u << i;
		return i;
	}
}

/* The thread of this index was not created: the next queued item tries again. */
static void undo(struct vmm_nt *nt, uint32_t index)
{
	nt_objects_lock(nt);
	nt->workers[index] = NULL;
	nt->worker_slots &= ~(1u << index);
	nt->worker_count--;
	nt_objects_unlock(nt);
}

static void queue(struct vmm_nt *nt, const char *service, PWORK_QUEUE_ITEM item)
{
	uint32_t created = NT_WORKERS;
	char name[32];
	bool twice;

	nt_objects_lock(nt);
	twice = item->List.Flink != NULL;
	if (!twice)
		created = append_locked(nt, item);
	nt_objects_unlock(nt);
	if (twice) {
		nt_violation(nt, "NT-15", service, "the work item is queued already");
		return;
	}
	if (created < NT_WORKERS) {
		snprintf(name, sizeof(name), "kernel worker %u", created + 1);
		if (!vmm_ok(vmm_os_thread_create(nt->os, name, work, nt, &nt->workers[created])))
			undo(nt, created);
	}
	vmm_os_wake(nt->os, &nt->work_changed, UINT32_MAX);
}

static bool is_idle(struct vmm_nt *nt)
{
	bool idle;

	nt_objects_lock(nt);
	idle = !nt->work_running && IsListEmpty(&nt->work_queue);
	nt_objects_unlock(nt);
	return idle;
}

bool nt_work_finish(struct vmm_nt *nt)
{
	uint64_t deadline = vmm_os_now_ns(nt->os) + GRACE_NS;

	while (!vmm_os_dead(nt->os) && !is_idle(nt)) {
		if (vmm_os_now_ns(nt->os) >= deadline) {
			nt_violation(nt, "NT-06", "ExQueueWorkItem", "a work item still runs");
			return false;
		}
		vmm_os_sleep_until(nt->os, vmm_os_now_ns(nt->os) + 100000);
	}
	nt_objects_lock(nt);
	nt->work_stop = true;
	atomic_fetch_add_explicit(&nt->work_changed, 1, memory_order_release);
	nt_objects_unlock(nt);
	vmm_os_wake(nt->os, &nt->work_changed, UINT32_MAX);
	for (uint32_t i = 0; i < NT_WORKERS; i++) {
		if (nt->workers[i])
			vmm_os_thread_join(nt->workers[i]);
	}
	return true;
}

/* ---- services ---- */

VOID ExQueueWorkItem(PWORK_QUEUE_ITEM WorkItem, WORK_QUEUE_TYPE QueueType)
{
	struct vmm_nt *nt = vmm_nt_current();

	(void)QueueType;
	nt_limit(nt, "ExQueueWorkItem", DISPATCH_LEVEL);
	if (!WorkItem->WorkerRoutine)
		nt_violation(nt, "NT-15", "ExQueueWorkItem", "the work item has no routine");
	else
		queue(nt, "ExQueueWorkItem", WorkItem);
}

ULONG IoSizeofWorkItem(VOID)
{
	return sizeof(struct _IO_WORKITEM);
}

VOID IoInitializeWorkItem(PVOID IoObject, PIO_WORKITEM IoWorkItem)
{
	*IoWorkItem = (struct _IO_WORKITEM){.object = IoObject};
}

PIO_WORKITEM IoAllocateWorkItem(PDEVICE_OBJECT DeviceObject)
{
	PIO_WORKITEM item;

	nt_limit(vmm_nt_current(), "IoAllocateWorkItem", DISPATCH_LEVEL);
	item = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*item), WORK_ITEM_TAG);
	if (item)
		IoInitializeWorkItem(DeviceObject, item);
	return item;
}

static bool is_queued(struct vmm_nt *nt, const char *service, const struct _IO_WORKITEM *item)
{
	bool queued;

	nt_objects_lock(nt);
	queued = item->item.List.Flink != NULL;
	nt_objects_unlock(nt);
	if (queued)
		nt_violation(nt, "NT-15", service, "the work item is queued and stays");
	return queued;
}

VOID IoUninitializeWorkItem(PIO_WORKITEM IoWorkItem)
{
	is_queued(vmm_nt_current(), "IoUninitializeWorkItem", IoWorkItem);
}

VOID IoFreeWorkItem(PIO_WORKITEM IoWorkItem)
{
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "IoFreeWorkItem", DISPATCH_LEVEL);
	if (!is_queued(nt, "IoFreeWorkItem", IoWorkItem))
		ExFreePoolWithTag(IoWorkItem, WORK_ITEM_TAG);
}

static void call_io(PVOID parameter)
{
	struct _IO_WORKITEM *item = parameter;

	if (item->routine_ex)
		item->routine_ex(item->object, item->context, item);
	else
		item->routine(item->object, item->context);
}

static void queue_io(const char *service, PIO_WORKITEM item, PIO_WORKITEM_ROUTINE routine,
		     PIO_WORKITEM_ROUTINE_EX routine_ex, PVOID context)
{
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, service, DISPATCH_LEVEL);
	if (!routine && !routine_ex) {
		nt_violation(nt, "NT-15", service, "the work item has no routine");
		return;
	}
	if (is_queued(nt, service, item))
		return;
	item->routine = routine;
	item->routine_ex = routine_ex;
	item->context = context;
	ExInitializeWorkItem(&item->item, call_io, item);
	queue(nt, service, &item->item);
}

VOID IoQueueWorkItem(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE WorkerRoutine,
		     WORK_QUEUE_TYPE QueueType, PVOID Context)
{
	(void)QueueType;
	queue_io("IoQueueWorkItem", IoWorkItem, WorkerRoutine, NULL, Context);
}

VOID IoQueueWorkItemEx(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE_EX WorkerRoutine,
		       WORK_QUEUE_TYPE QueueType, PVOID Context)
{
	(void)QueueType;
	queue_io("IoQueueWorkItemEx", IoWorkItem, NULL, WorkerRoutine, Context);
}
