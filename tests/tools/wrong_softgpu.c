/* SPDX-License-Identifier: MIT */
/*
 * softgpu as a driver file with one mistake, which `vidmm sim` must find:
 *   SKIP_TRANSFER  content of 12 KiB stays where it is when it should move
 *   SKIP_THIRD     the third part of any content that should move stays where it is; the third of
 *                  the process, not of each adapter
 *   WRONG_PAGE     content of 20 KiB that goes into a segment arrives one page too far
 *   WRONG_FENCE    each packet whose fence id ends with 7 or F is submitted with the id before it
 * dropping_miniport.c is a library for the same, which drops by number.
 */
#include <stdbool.h>

#include <dispmprt.h>
#include <vidmm/softgpu.h>

#define PAGE_BYTES 4096u

__attribute__((visibility("default"))) NTSTATUS DriverEntry(PDRIVER_OBJECT driver,
							    PUNICODE_STRING registry_path);
NTSTATUS __real_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data);
NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data);

#if defined(WRONG_FENCE)
static PDXGKDDI_SUBMITCOMMAND submit_command;

static NTSTATUS APIENTRY submit_wrongly(IN_CONST_HANDLE adapter,
					IN_CONST_PDXGKARG_SUBMITCOMMAND arguments)
{
	DXGKARG_SUBMITCOMMAND changed = *arguments;

	if ((changed.SubmissionFenceId & 7) == 7)
		changed.SubmissionFenceId--;
	return submit_command(adapter, &changed);
}
#else
static PDXGKDDI_BUILDPAGINGBUFFER build_paging_buffer;

static NTSTATUS APIENTRY build_wrongly(IN_CONST_HANDLE adapter,
				       IN_PDXGKARG_BUILDPAGINGBUFFER arguments)
{
	bool transfer = arguments->Operation == DXGK_OPERATION_TRANSFER;

#if defined(SKIP_TRANSFER)
	if (transfer && arguments->Transfer.TransferSize == 3 * PAGE_BYTES)
		return STATUS_SUCCESS;
#elif defined(SKIP_THIRD)
	static unsigned transfers;

	if (transfer && ++transfers == 3)
		return STATUS_SUCCESS;
#elif defined(WRONG_PAGE)
	if (transfer && arguments->Transfer.TransferSize == 5 * PAGE_BYTES &&
	    arguments->Transfer.Destination.SegmentId)
		arguments->Transfer.Destination.SegmentAddress.QuadPart += PAGE_BYTES;
#else
#error which mistake?
#endif
	return build_paging_buffer(adapter, arguments);
}
#endif

NTSTATUS __wrap_DxgkInitialize(PDRIVER_OBJECT driver, PUNICODE_STRING path,
			       PDRIVER_INITIALIZATION_DATA data)
{
#if defined(WRONG_FENCE)
	submit_command = data->DxgkDdiSubmitCommand;
	data->DxgkDdiSubmitCommand = submit_wrongly;
#else
	build_paging_buffer = data->DxgkDdiBuildPagingBuffer;
	data->DxgkDdiBuildPagingBuffer = build_wrongly;
#endif
	return __real_DxgkInitialize(driver, path, data);
}

NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path)
{
	return softgpu_driver_entry(driver, registry_path);
}
