/* SPDX-License-Identifier: MIT */
/*
 * References to kernel objects (threads, events, files, devices, registry keys) and event objects
 * that have handles. Part of ntddk.h. An object is freed with its last handle and reference.
 */
#ifndef WDDM_NTDDK_OBJECT_H
#define WDDM_NTDDK_OBJECT_H

#include "ntddk_sync.h"

#ifdef __cplusplus
extern "C" {
#endif

extern POBJECT_TYPE *PsThreadType;
extern POBJECT_TYPE *ExEventObjectType;
extern POBJECT_TYPE *IoFileObjectType;

typedef struct _OBJECT_HANDLE_INFORMATION {
	ULONG HandleAttributes;
	ACCESS_MASK GrantedAccess;
} OBJECT_HANDLE_INFORMATION, *POBJECT_HANDLE_INFORMATION;

/*
 * [P] The object of a handle, with a reference. ObjectType NULL: of any type. The object of a
 * thread or an event can be waited for. AccessMode UserMode is treated like KernelMode, since there
 * are no handles of processes.
 */
NTSTATUS ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess,
				   POBJECT_TYPE ObjectType, KPROCESSOR_MODE AccessMode,
				   PVOID *Object, POBJECT_HANDLE_INFORMATION HandleInformation);
/* [D] STATUS_OBJECT_TYPE_MISMATCH: the object is of another type. */
NTSTATUS ObReferenceObjectByPointer(PVOID Object, ACCESS_MASK DesiredAccess,
				    POBJECT_TYPE ObjectType, KPROCESSOR_MODE AccessMode);
/* [D] The results are the number of references then. */
LONG_PTR ObfReferenceObject(PVOID Object);
LONG_PTR ObfDereferenceObject(PVOID Object);

#ifndef ObReferenceObject
#define ObReferenceObject(object) ObfReferenceObject(object)
#endif
#ifndef ObDereferenceObject
#define ObDereferenceObject(object) ObfDereferenceObject(object)
#endif
/* Tags are not kept. */
#ifndef ObReferenceObjectWithTag
#define ObReferenceObjectWithTag(object, tag)   ((void)(tag), ObfReferenceObject(object))
#define ObDereferenceObjectWithTag(object, tag) ((void)(tag), ObfDereferenceObject(object))
#endif

static inline NTSTATUS ObReferenceObjectByHandleWithTag(
	HANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
	KPROCESSOR_MODE AccessMode, ULONG Tag, PVOID *Object,
	POBJECT_HANDLE_INFORMATION HandleInformation)
{
	(void)Tag;
	return ObReferenceObjectByHandle(Handle, DesiredAccess, ObjectType, AccessMode, Object,
					 HandleInformation);
}

/* ---- events with handles [P] ---- */

#ifndef EVENT_MODIFY_STATE
#define EVENT_MODIFY_STATE 0x0002
#endif
#ifndef EVENT_ALL_ACCESS
#define EVENT_ALL_ACCESS 0x1F0003
#endif

/* Events have no names here: STATUS_NOT_SUPPORTED with one. */
NTSTATUS ZwCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
		       POBJECT_ATTRIBUTES ObjectAttributes, EVENT_TYPE EventType,
		       BOOLEAN InitialState);
NTSTATUS ZwSetEvent(HANDLE EventHandle, PLONG PreviousState);

/* [P] The address of a kernel service that the library exports; NULL: it has none by this name. */
PVOID MmGetSystemRoutineAddress(PUNICODE_STRING SystemRoutineName);

#ifdef __cplusplus
}
#endif

#endif
