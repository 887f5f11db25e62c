/* SPDX-License-Identifier: MIT */
/*
 * Names of shared objects: counted strings and object attributes. Used by D3DKMTShareObjects and
 * by driver source. 16 and 48 bytes on LP64. Source: the UNICODE_STRING and OBJECT_ATTRIBUTES
 * pages.
 */
#ifndef WDDM_WDDM_OBJECT_H
#define WDDM_WDDM_OBJECT_H

#include "wddm_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counted text. Length and MaximumLength are bytes: of the text, and of the buffer. */
typedef struct _UNICODE_STRING {
	USHORT Length;
	USHORT MaximumLength;
	PWSTR Buffer;
} UNICODE_STRING, *PUNICODE_STRING;
typedef const UNICODE_STRING *PCUNICODE_STRING;

typedef struct _OBJECT_ATTRIBUTES {
	ULONG Length;
	HANDLE RootDirectory;
	PUNICODE_STRING ObjectName;
	ULONG Attributes;
	PVOID SecurityDescriptor;
	PVOID SecurityQualityOfService;
} OBJECT_ATTRIBUTES, *POBJECT_ATTRIBUTES;

#ifndef OBJ_INHERIT
#define OBJ_INHERIT 0x00000002
#endif

#ifdef __cplusplus
}
#endif

#endif
