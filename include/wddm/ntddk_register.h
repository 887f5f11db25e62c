/* SPDX-License-Identifier: MIT */
/*
 * Registers and ports of a device. Part of ntddk.h.
 *
 * A register is an address inside a mapping of MmMapIoSpace or DxgkCbMapMemory; a port is the
 * address that the resource list gives (CmResourceTypePort). If the device has a device model
 * (vidmm/device.h), an access of its registers or ports calls the model. An access of other memory
 * reads or writes that memory. Registers of a model cannot be accessed through the pointer itself.
 * [any]
 *
 * Source: the wdm.h pages of these routines. The buffer forms for registers step through
 * consecutive registers; those for ports access one port again and again.
 */
#ifndef WDDM_NTDDK_REGISTER_H
#define WDDM_NTDDK_REGISTER_H

#include "ntddk_types.h"

#ifdef __cplusplus
extern "C" {
#endif

UCHAR READ_REGISTER_UCHAR(volatile UCHAR *Register);
USHORT READ_REGISTER_USHORT(volatile USHORT *Register);
ULONG READ_REGISTER_ULONG(volatile ULONG *Register);
ULONG64 READ_REGISTER_ULONG64(volatile ULONG64 *Register);
VOID WRITE_REGISTER_UCHAR(volatile UCHAR *Register, UCHAR Value);
VOID WRITE_REGISTER_USHORT(volatile USHORT *Register, USHORT Value);
VOID WRITE_REGISTER_ULONG(volatile ULONG *Register, ULONG Value);
VOID WRITE_REGISTER_ULONG64(volatile ULONG64 *Register, ULONG64 Value);

/* Count: of elements, not of bytes. */
VOID READ_REGISTER_BUFFER_UCHAR(volatile UCHAR *Register, PUCHAR Buffer, ULONG Count);
VOID READ_REGISTER_BUFFER_USHORT(volatile USHORT *Register, PUSHORT Buffer, ULONG Count);
VOID READ_REGISTER_BUFFER_ULONG(volatile ULONG *Register, PULONG Buffer, ULONG Count);
VOID READ_REGISTER_BUFFER_ULONG64(volatile ULONG64 *Register, ULONG64 *Buffer, ULONG Count);
VOID WRITE_REGISTER_BUFFER_UCHAR(volatile UCHAR *Register, PUCHAR Buffer, ULONG Count);
VOID WRITE_REGISTER_BUFFER_USHORT(volatile USHORT *Register, PUSHORT Buffer, ULONG Count);
VOID WRITE_REGISTER_BUFFER_ULONG(volatile ULONG *Register, PULONG Buffer, ULONG Count);
VOID WRITE_REGISTER_BUFFER_ULONG64(volatile ULONG64 *Register, ULONG64 *Buffer, ULONG Count);

UCHAR READ_PORT_UCHAR(PUCHAR Port);
USHORT READ_PORT_USHORT(PUSHORT Port);
ULONG READ_PORT_ULONG(PULONG Port);
VOID WRITE_PORT_UCHAR(PUCHAR Port, UCHAR Value);
VOID WRITE_PORT_USHORT(PUSHORT Port, USHORT Value);
VOID WRITE_PORT_ULONG(PULONG Port, ULONG Value);
VOID READ_PORT_BUFFER_UCHAR(PUCHAR Port, PUCHAR Buffer, ULONG Count);
VOID READ_PORT_BUFFER_USHORT(PUSHORT Port, PUSHORT Buffer, ULONG Count);
VOID READ_PORT_BUFFER_ULONG(PULONG Port, PULONG Buffer, ULONG Count);
VOID WRITE_PORT_BUFFER_UCHAR(PUCHAR Port, PUCHAR Buffer, ULONG Count);
VOID WRITE_PORT_BUFFER_USHORT(PUSHORT Port, PUSHORT Buffer, ULONG Count);
VOID WRITE_PORT_BUFFER_ULONG(PULONG Port, PULONG Buffer, ULONG Count);

#ifdef __cplusplus
}
#endif

#endif
