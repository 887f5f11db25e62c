/* SPDX-License-Identifier: MIT */
/*
 * Requests to display miniports (DxgkDdiDispatchIoRequest). Source: the VIDEO_REQUEST_PACKET page.
 */
#ifndef WDDM_VIDEO_H
#define WDDM_VIDEO_H

#include <wddm_kernel.h>

typedef struct _STATUS_BLOCK {
	union {
		NTSTATUS Status;
		PVOID Pointer;
	};
	ULONG_PTR Information;
} STATUS_BLOCK, *PSTATUS_BLOCK;

typedef struct _VIDEO_REQUEST_PACKET {
	ULONG IoControlCode;
	PSTATUS_BLOCK StatusBlock;
	PVOID InputBuffer;
	ULONG InputBufferLength; /* bytes */
	PVOID OutputBuffer;
	ULONG OutputBufferLength; /* bytes */
} VIDEO_REQUEST_PACKET;

#endif
