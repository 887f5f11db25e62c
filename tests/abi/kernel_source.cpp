// SPDX-License-Identifier: MIT
// Source of a driver in C++: macros and inline functions of the kernel headers. Only compiled.
#include <ntifs.h>
#include <wdm.h>
#include <ntintsafe.h>
#include <ntstrsafe.h>

static const UNICODE_STRING parameters = RTL_CONSTANT_STRING(L"Parameters");
static STRING narrow = RTL_CONSTANT_STRING("narrow");
DECLARE_CONST_UNICODE_STRING(mode_name, L"Mode");
C_ASSERT(sizeof(SLIST_HEADER) == 16);

struct Ring {
	LIST_ENTRY entry;
	SLIST_ENTRY free_entry;
	LONG volatile used;
	FAST_MUTEX mutex;
};

extern "C" NTSTATUS open_ring(Ring *ring, HANDLE key, SIZE_T count);
extern "C" NTSTATUS open_ring(Ring *ring, HANDLE key, SIZE_T count)
{
	DECLARE_UNICODE_STRING_SIZE(text, 32);
	PHYSICAL_ADDRESS zero = {}, highest = {};
	OBJECT_ATTRIBUTES attributes;
	KLOCK_QUEUE_HANDLE handle;
	KSPIN_LOCK lock;
	ULONG size = 0, bit = 0;

	PAGED_CODE();
	highest.QuadPart = -1;
	if (!NT_SUCCESS(RtlSIZETToULong(count, &size)) || !NT_SUCCESS(RtlULongMult(size, 8, &size)))
		return STATUS_INTEGER_OVERFLOW;
	InitializeObjectAttributes(&attributes, const_cast<PUNICODE_STRING>(&parameters),
				   OBJ_KERNEL_HANDLE, key, nullptr);
	KeInitializeSpinLock(&lock);
	KeAcquireInStackQueuedSpinLock(&lock, &handle);
	InitializeListHead(&ring->entry);
	KeReleaseInStackQueuedSpinLock(&handle);
	ExAcquireFastMutex(&ring->mutex);
	InterlockedIncrementNoFence(&ring->used);
	ExReleaseFastMutex(&ring->mutex);
	if (_BitScanReverse(&bit, size) && RtlEqualUnicodeString(&mode_name, &parameters, TRUE))
		KdPrintEx((DPFLTR_IHVVIDEO_ID, DPFLTR_ERROR_LEVEL, "%Z %u\n", &narrow, bit));
	NT_ASSERT(ring->used == 1);
	PVOID memory = MmAllocateContiguousMemorySpecifyCache(size, zero, highest, zero, MmCached);
	MmFreeContiguousMemory(memory);
	return RtlUnicodeStringPrintf(&text, L"%wZ %u", &mode_name, size);
}
