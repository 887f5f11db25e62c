/* SPDX-License-Identifier: MIT */
/*
 * Handles and reference counts of thread and key objects. Handle values are 4, 8, 12, ...; the
 * lowest free one is used, so values depend on nothing but the order of calls. Guarded by the
 * objects lock.
 */
#include "nt/nt_internal.h"

static POBJECT_TYPE thread_type = (POBJECT_TYPE)(ULONG_PTR)OBJECT_THREAD;
POBJECT_TYPE *PsThreadType = &thread_type;

void nt_object_init(struct vmm_nt *nt)
{
	vmm_os_mutex_init(&nt->objects, nt->os, VMM_NT_RANK, "kernel objects");
	vmm_list_init(&nt->threads);
}

void nt_object_finish(struct vmm_nt *nt)
{
	for (uint32_t i = 0; i < nt->handle_count; i++) {
		if (!nt->handles[i])
			continue;
		nt_violation(
			nt, "NT-06", "ZwClose", "handle 0x%x of a %s was never closed", (i + 1) * 4,
			nt->handles[i]->header.Type == OBJECT_THREAD ? "thread" : "registry key");
		nt_object_put(nt, nt->handles[i]);
	}
	/* A driver that still uses a reference to a thread uses freed memory from here on. */
	while (!vmm_list_empty(&nt->threads)) {
		struct nt_thread *thread =
			vmm_container_of(nt->threads.next, struct nt_thread, link);

		nt_violation(nt, "NT-06", "ObDereferenceObject",
			     "thread %u was referenced and never dereferenced", thread->number);
		vmm_list_remove(&thread->link);
		vmm_free(thread);
	}
	vmm_free(nt->handles);
	vmm_os_mutex_finish(&nt->objects);
}

static bool grow_locked(struct vmm_nt *nt) VMM_REQUIRES(nt_objects_class)
{
	uint32_t count = nt->handle_count ? nt->handle_count * 2 : 8;
	struct nt_object **handles;

	vmm_assert_held(&nt->objects);
	handles = vmm_calloc(count, sizeof(*handles));
	if (!handles)
		return false;
	for (uint32_t i = 0; i < nt->handle_count; i++)
		handles[i] = nt->handles[i];
	vmm_free(nt->handles);
	nt->handles = handles;
	nt->handle_count = count;
	return true;
}

NTSTATUS nt_handle_open(struct vmm_nt *nt, struct nt_object *object, HANDLE *handle)
{
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t i = 0;

	nt_objects_lock(nt);
	while (i < nt->handle_count && nt->handles[i])
		i++;
	if (i == nt->handle_count && !grow_locked(nt)) {
		status = STATUS_INSUFFICIENT_RESOURCES;
	} else {
		nt->handles[i] = object;
		object->references++;
		*handle = (HANDLE)(ULONG_PTR)((i + 1) * 4);
	}
	nt_objects_unlock(nt);
	return status;
}

static struct nt_object **entry_locked(struct vmm_nt *nt, HANDLE handle)
	VMM_REQUIRES(nt_objects_class)
{
	ULONG_PTR value = (ULONG_PTR)handle;

	vmm_assert_held(&nt->objects);
	if (!value || value % 4 || value / 4 > nt->handle_count || !nt->handles[value / 4 - 1])
		return NULL;
	return &nt->handles[value / 4 - 1];
}

struct nt_object *nt_handle_get(struct vmm_nt *nt, HANDLE handle, uint8_t type)
{
	struct nt_object **entry, *object = NULL;

	nt_objects_lock(nt);
	entry = entry_locked(nt, handle);
	if (entry && (*entry)->header.Type == type) {
		object = *entry;
		object->references++;
	}
	nt_objects_unlock(nt);
	return object;
}

void nt_object_put(struct vmm_nt *nt, struct nt_object *object)
{
	bool last;

	nt_objects_lock(nt);
	last = --object->references == 0;
	if (last && object->header.Type == OBJECT_THREAD)
		vmm_list_remove(&((struct nt_thread *)object)->link);
	nt_objects_unlock(nt);
	if (last)
		vmm_free(object);
}

/* ---- services ---- */

NTSTATUS ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess,
				   POBJECT_TYPE ObjectType, KPROCESSOR_MODE AccessMode,
				   PVOID *Object, PVOID HandleInformation)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object *object;

	(void)DesiredAccess, (void)AccessMode, (void)HandleInformation;
	nt_limit(nt, "ObReferenceObjectByHandle", PASSIVE_LEVEL);
	if (ObjectType && ObjectType != *PsThreadType)
		return STATUS_OBJECT_TYPE_MISMATCH;
	object = nt_handle_get(nt, Handle, OBJECT_THREAD);
	if (!object)
		return STATUS_INVALID_HANDLE;
	nt_objects_lock(nt);
	object->pointer_references++;
	nt_objects_unlock(nt);
	*Object = object;
	return STATUS_SUCCESS;
}

/*
 * Finds the thread object at this address and takes one of its pointer references. The address is
 * only compared, never read.
 */
static struct nt_object *take_pointer_reference(struct vmm_nt *nt, const void *pointer,
						LONG_PTR *left)
{
	struct nt_object *found = NULL;
	struct vmm_list *pos;

	nt_objects_lock(nt);
	vmm_list_for_each (pos, &nt->threads) {
		struct nt_object *object = &vmm_container_of(pos, struct nt_thread, link)->object;

		if (object != pointer || !object->pointer_references)
			continue;
		object->pointer_references--;
		*left = (LONG_PTR)object->references - 1;
		found = object;
		break;
	}
	nt_objects_unlock(nt);
	return found;
}

LONG_PTR ObfDereferenceObject(PVOID Object)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object *object;
	LONG_PTR left = 0;

	nt_limit(nt, "ObDereferenceObject", DISPATCH_LEVEL);
	object = take_pointer_reference(nt, Object, &left);
	if (object)
		nt_object_put(nt, object);
	else
		nt_violation(nt, "NT-07", "ObDereferenceObject",
			     "the object is unknown or has no reference left");
	return left;
}

NTSTATUS ZwClose(HANDLE Handle)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object **entry, *object = NULL;

	nt_limit(nt, "ZwClose", PASSIVE_LEVEL);
	nt_objects_lock(nt);
	entry = entry_locked(nt, Handle);
	if (entry) {
		object = *entry;
		*entry = NULL;
	}
	nt_objects_unlock(nt);
	if (!object) {
		nt_violation(nt, "NT-07", "ZwClose", "0x%llx is not an open handle",
			     (unsigned long long)(ULONG_PTR)Handle);
		return STATUS_INVALID_HANDLE;
	}
	nt_object_put(nt, object);
	nt_thread_reap(nt);
	return STATUS_SUCCESS;
}
