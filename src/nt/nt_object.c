/* SPDX-License-Identifier: MIT */
/*
 * Handles and references of objects: threads, events, registry keys, files, devices. Handle values
 * are 4, 8, 12, ...; the lowest free one is used, so values depend on nothing but the order of
 * calls. A driver's pointer is compared with those of all objects before it is used. Guarded by the
 * objects lock.
 */
#include "nt/nt_internal.h"

static POBJECT_TYPE thread_type = (POBJECT_TYPE)(ULONG_PTR)OBJECT_THREAD;
static POBJECT_TYPE event_type = (POBJECT_TYPE)(ULONG_PTR)OBJECT_NOTIFICATION_EVENT;
static POBJECT_TYPE file_type = (POBJECT_TYPE)(ULONG_PTR)OBJECT_FILE;
POBJECT_TYPE *PsThreadType = &thread_type;
POBJECT_TYPE *ExEventObjectType = &event_type;
POBJECT_TYPE *IoFileObjectType = &file_type;

/* The type of both kinds of events is the one that ExEventObjectType points to. */
static uint8_t type_of(const struct nt_object *object)
{
	uint8_t type = object->header.Type;

	return type == OBJECT_SYNCHRONIZATION_EVENT ? OBJECT_NOTIFICATION_EVENT : type;
}

static const char *name_of(const struct nt_object *object)
{
	switch (type_of(object)) {
	case OBJECT_THREAD:
		return "thread";
	case OBJECT_NOTIFICATION_EVENT:
		return "event";
	case OBJECT_FILE:
		return "file";
	case OBJECT_DEVICE:
		return "device";
	default:
		return "registry key";
	}
}

void nt_object_init(struct vmm_nt *nt)
{
	vmm_os_mutex_init(&nt->objects, nt->os, VMM_NT_RANK, "kernel objects");
	vmm_list_init(&nt->threads);
	vmm_list_init(&nt->all_objects);
}

void nt_object_prepare(struct nt_object *object, uint8_t type, void *body)
{
	nt_header_init(&object->header, type, false);
	object->body = body;
	vmm_list_init(&object->all);
}

static void add_locked(struct vmm_nt *nt, struct nt_object *object) VMM_REQUIRES(nt_objects_class)
{
	vmm_assert_held(&nt->objects);
	if (vmm_list_empty(&object->all))
		vmm_list_push_back(&nt->all_objects, &object->all);
}

void nt_object_add(struct vmm_nt *nt, struct nt_object *object)
{
	nt_objects_lock(nt);
	add_locked(nt, object);
	nt_objects_unlock(nt);
}

static void free_object(struct vmm_nt *nt, struct nt_object *object)
{
	if (object->finish)
		object->finish(nt, object);
	vmm_free(object);
}

/*
 * A driver that still uses a pointer to one of these objects uses freed memory from here on. A
 * thread that ended without references is in no list.
 */
static void report_references(struct vmm_nt *nt)
{
	while (!vmm_list_empty(&nt->all_objects)) {
		struct nt_object *object =
			vmm_container_of(nt->all_objects.next, struct nt_object, all);

		if (object->header.Type == OBJECT_THREAD)
			nt_violation(nt, "NT-06", "ObDereferenceObject",
				     "thread %u was referenced and never dereferenced",
				     ((struct nt_thread *)object)->number);
		else if (object->header.Type == OBJECT_DEVICE)
			nt_violation(nt, "NT-06", "IoDeleteDevice",
				     "a device was created or referenced and never deleted or "
				     "dereferenced");
		else
			nt_violation(nt, "NT-06", "ObDereferenceObject",
				     "an object (%s) was referenced and never dereferenced",
				     name_of(object));
		vmm_list_remove(&object->all);
		free_object(nt, object);
	}
}

void nt_object_finish(struct vmm_nt *nt)
{
	for (uint32_t i = 0; i < nt->handle_count; i++) {
		if (!nt->handles[i])
			continue;
		nt_violation(nt, "NT-06", "ZwClose", "handle 0x%x of a %s was never closed",
			     (i + 1) * 4, name_of(nt->handles[i]));
		nt_object_put(nt, nt->handles[i]);
	}
	report_references(nt);
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
		add_locked(nt, object);
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
	if (entry && (!type || type_of(*entry) == type)) {
		object = *entry;
		object->references++;
	}
	nt_objects_unlock(nt);
	return object;
}

static struct nt_object *find_locked(struct vmm_nt *nt, const void *body, uint8_t type)
	VMM_REQUIRES(nt_objects_class)
{
	struct vmm_list *pos;

	vmm_assert_held(&nt->objects);
	vmm_list_for_each (pos, &nt->all_objects) {
		struct nt_object *object = vmm_container_of(pos, struct nt_object, all);

		if (object->body == body && object->references)
			return !type || type_of(object) == type ? object : NULL;
	}
	return NULL;
}

struct nt_object *nt_object_get(struct vmm_nt *nt, const void *body, uint8_t type)
{
	struct nt_object *object;

	nt_objects_lock(nt);
	object = find_locked(nt, body, type);
	if (object)
		object->references++;
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
	if (last)
		vmm_list_remove(&object->all);
	nt_objects_unlock(nt);
	if (last)
		free_object(nt, object);
}

/* ---- services ---- */

NTSTATUS ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess,
				   POBJECT_TYPE ObjectType, KPROCESSOR_MODE AccessMode,
				   PVOID *Object, POBJECT_HANDLE_INFORMATION HandleInformation)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object *object;

	(void)AccessMode;
	nt_limit(nt, "ObReferenceObjectByHandle", PASSIVE_LEVEL);
	object = nt_handle_get(nt, Handle, 0);
	if (!object)
		return STATUS_INVALID_HANDLE;
	if (ObjectType && (ULONG_PTR)ObjectType != type_of(object)) {
		nt_object_put(nt, object);
		return STATUS_OBJECT_TYPE_MISMATCH;
	}
	nt_objects_lock(nt);
	object->pointer_references++;
	nt_objects_unlock(nt);
	*Object = object->body;
	/* The rights of handles to threads and events are not kept. */
	if (HandleInformation)
		*HandleInformation = (OBJECT_HANDLE_INFORMATION){.GrantedAccess = DesiredAccess};
	return STATUS_SUCCESS;
}

/* Adds a reference of the driver. Returns the number of references; 0: there is no such object. */
static LONG_PTR reference(struct vmm_nt *nt, const void *body, uint8_t type)
{
	struct nt_object *object;
	LONG_PTR count = 0;

	nt_objects_lock(nt);
	object = find_locked(nt, body, type);
	if (object) {
		object->pointer_references++;
		count = (LONG_PTR)++object->references;
	}
	nt_objects_unlock(nt);
	return count;
}

NTSTATUS ObReferenceObjectByPointer(PVOID Object, ACCESS_MASK DesiredAccess,
				    POBJECT_TYPE ObjectType, KPROCESSOR_MODE AccessMode)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint8_t type = (uint8_t)(ULONG_PTR)ObjectType;

	(void)DesiredAccess, (void)AccessMode;
	nt_limit(nt, "ObReferenceObjectByPointer", DISPATCH_LEVEL);
	if ((ULONG_PTR)ObjectType <= UINT8_MAX && reference(nt, Object, type))
		return STATUS_SUCCESS;
	return STATUS_OBJECT_TYPE_MISMATCH;
}

LONG_PTR ObfReferenceObject(PVOID Object)
{
	struct vmm_nt *nt = vmm_nt_current();
	LONG_PTR count;

	nt_limit(nt, "ObReferenceObject", DISPATCH_LEVEL);
	count = reference(nt, Object, 0);
	if (!count)
		nt_violation(nt, "NT-07", "ObReferenceObject", "the object is unknown");
	return count;
}

LONG_PTR ObfDereferenceObject(PVOID Object)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object *object;
	LONG_PTR left = 0;

	nt_limit(nt, "ObDereferenceObject", DISPATCH_LEVEL);
	nt_objects_lock(nt);
	object = find_locked(nt, Object, 0);
	if (object && !object->pointer_references)
		object = NULL;
	if (object) {
		object->pointer_references--;
		left = (LONG_PTR)object->references - 1;
	}
	nt_objects_unlock(nt);
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

/* ---- events with handles ---- */

NTSTATUS ZwCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
		       POBJECT_ATTRIBUTES ObjectAttributes, EVENT_TYPE EventType,
		       BOOLEAN InitialState)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object *event;
	NTSTATUS status;

	(void)DesiredAccess;
	nt_limit(nt, "ZwCreateEvent", PASSIVE_LEVEL);
	if (!EventHandle || (EventType != NotificationEvent && EventType != SynchronizationEvent))
		return STATUS_INVALID_PARAMETER;
	if (ObjectAttributes && ObjectAttributes->ObjectName &&
	    ObjectAttributes->ObjectName->Length)
		return nt_not_supported(nt, "ZwCreateEvent", "names of events");
	event = vmm_calloc(1, sizeof(*event));
	if (!event)
		return STATUS_INSUFFICIENT_RESOURCES;
	nt_object_prepare(event, OBJECT_NOTIFICATION_EVENT, event);
	KeInitializeEvent((PKEVENT)&event->header, EventType, InitialState);
	status = nt_handle_open(nt, event, EventHandle);
	if (!NT_SUCCESS(status))
		vmm_free(event);
	return status;
}

NTSTATUS ZwSetEvent(HANDLE EventHandle, PLONG PreviousState)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_object *event;
	LONG before;

	nt_limit(nt, "ZwSetEvent", PASSIVE_LEVEL);
	event = nt_handle_get(nt, EventHandle, OBJECT_NOTIFICATION_EVENT);
	if (!event)
		return STATUS_INVALID_HANDLE;
	before = KeSetEvent((PKEVENT)&event->header, IO_NO_INCREMENT, FALSE);
	if (PreviousState)
		*PreviousState = before;
	nt_object_put(nt, event);
	return STATUS_SUCCESS;
}
