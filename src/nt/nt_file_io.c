/* SPDX-License-Identifier: MIT */
/*
 * Reading, writing and sizes of open files. Every call completes before it returns. The objects
 * lock guards the position; it is not held while the operating system works.
 */
#include "nt/nt_file.h"

static struct nt_file *file_of(struct vmm_nt *nt, HANDLE handle)
{
	return (struct nt_file *)nt_handle_get(nt, handle, OBJECT_FILE);
}

static uint64_t position_of(struct vmm_nt *nt, const struct nt_file *file)
{
	uint64_t position;

	nt_objects_lock(nt);
	position = (uint64_t)file->body.CurrentByteOffset.QuadPart;
	nt_objects_unlock(nt);
	return position;
}

static void set_position(struct vmm_nt *nt, struct nt_file *file, uint64_t position)
{
	nt_objects_lock(nt);
	file->body.CurrentByteOffset.QuadPart = (LONGLONG)position;
	nt_objects_unlock(nt);
}

/* Finds where the transfer begins. */
static NTSTATUS find_offset(struct vmm_nt *nt, const struct nt_file *file,
			    const struct nt_file_transfer *transfer, uint64_t *offset)
{
	const LARGE_INTEGER *given = transfer->offset;
	struct vmm_os_file_size size;
	bool at_end = transfer->write && !(file->access & FILE_WRITE_DATA);

	if (given && given->QuadPart == (LONGLONG)(LONG)FILE_WRITE_TO_END_OF_FILE)
		at_end = transfer->write;
	if (at_end) {
		if (!vmm_os_file_size(&file->file, &size))
			return STATUS_IO_DEVICE_ERROR;
		*offset = size.bytes;
		return STATUS_SUCCESS;
	}
	if (!given || given->QuadPart == (LONGLONG)(LONG)FILE_USE_FILE_POINTER_POSITION) {
		*offset = position_of(nt, file);
		return file->synchronous ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
	}
	*offset = (uint64_t)given->QuadPart;
	return given->QuadPart < 0 ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
}

NTSTATUS nt_file_transfer(struct vmm_nt *nt, struct nt_file *file,
			  const struct nt_file_transfer *transfer, IO_STATUS_BLOCK *result)
{
	ACCESS_MASK needed = transfer->write ? FILE_WRITE_DATA | FILE_APPEND_DATA : FILE_READ_DATA;
	uint64_t offset = 0, end;
	size_t done = 0;
	NTSTATUS status = file->access & needed ? find_offset(nt, file, transfer, &offset)
						: STATUS_ACCESS_DENIED;

	*result = (IO_STATUS_BLOCK){.Status = status};
	if (!NT_SUCCESS(status))
		return status;
	if (vmm_add_overflows(offset, transfer->length, &end) || end > INT64_MAX)
		status = STATUS_INVALID_PARAMETER;
	else if (transfer->write)
		status = vmm_os_file_write(&file->file, transfer->buffer, transfer->length, offset,
					   &done)
				 ? STATUS_SUCCESS
				 : STATUS_DISK_FULL;
	else
		status = vmm_os_file_read(&file->file, transfer->buffer, transfer->length, offset,
					  &done)
				 ? STATUS_SUCCESS
				 : STATUS_IO_DEVICE_ERROR;
	if (status == STATUS_SUCCESS && !transfer->write && !done && transfer->length)
		status = STATUS_END_OF_FILE;
	if (file->synchronous && NT_SUCCESS(status))
		set_position(nt, file, offset + done);
	*result = (IO_STATUS_BLOCK){.Status = status, .Information = done};
	return status;
}

static NTSTATUS transfer_of(const char *service, HANDLE handle, HANDLE event,
			    PIO_APC_ROUTINE routine, PIO_STATUS_BLOCK block,
			    const struct nt_file_transfer *transfer)
{
	struct vmm_nt *nt = vmm_nt_current();
	IO_STATUS_BLOCK result;
	struct nt_file *file;
	NTSTATUS status;

	nt_limit(nt, service, PASSIVE_LEVEL);
	if (!block || (!transfer->buffer && transfer->length))
		return STATUS_INVALID_PARAMETER;
	if (routine)
		return nt_not_supported(nt, service, "APC routines of file requests");
	file = file_of(nt, handle);
	if (!file)
		return STATUS_INVALID_HANDLE;
	status = nt_file_transfer(nt, file, transfer, &result);
	nt_object_put(nt, &file->object);
	*block = result;
	if (event && !NT_SUCCESS(ZwSetEvent(event, NULL)))
		return STATUS_INVALID_HANDLE;
	return status;
}

NTSTATUS ZwReadFile(HANDLE FileHandle, HANDLE Event, PIO_APC_ROUTINE ApcRoutine, PVOID ApcContext,
		    PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer, ULONG Length,
		    PLARGE_INTEGER ByteOffset, PULONG Key)
{
	const struct nt_file_transfer transfer = {
		.buffer = Buffer, .length = Length, .offset = ByteOffset};

	(void)ApcContext, (void)Key;
	return transfer_of("ZwReadFile", FileHandle, Event, ApcRoutine, IoStatusBlock, &transfer);
}

NTSTATUS ZwWriteFile(HANDLE FileHandle, HANDLE Event, PIO_APC_ROUTINE ApcRoutine, PVOID ApcContext,
		     PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer, ULONG Length,
		     PLARGE_INTEGER ByteOffset, PULONG Key)
{
	const struct nt_file_transfer transfer = {
		.write = true, .buffer = Buffer, .length = Length, .offset = ByteOffset};

	(void)ApcContext, (void)Key;
	return transfer_of("ZwWriteFile", FileHandle, Event, ApcRoutine, IoStatusBlock, &transfer);
}

/* ---- information ---- */

static NTSTATUS query(struct vmm_nt *nt, const struct nt_file *file, int class, void *information,
		      ULONG length, ULONG_PTR *size_bytes)
{
	FILE_POSITION_INFORMATION *position = information;
	FILE_STANDARD_INFORMATION *standard = information;
	struct vmm_os_file_size size;

	*size_bytes = class == FileStandardInformation ? sizeof(*standard) : sizeof(*position);
	if (length < *size_bytes)
		return STATUS_INFO_LENGTH_MISMATCH;
	if (class == FilePositionInformation) {
		position->CurrentByteOffset.QuadPart = (LONGLONG)position_of(nt, file);
		return STATUS_SUCCESS;
	}
	if (!vmm_os_file_size(&file->file, &size))
		return STATUS_IO_DEVICE_ERROR;
	*standard = (FILE_STANDARD_INFORMATION){.AllocationSize.QuadPart =
							(LONGLONG)size.allocated_bytes,
						.EndOfFile.QuadPart = (LONGLONG)size.bytes,
						.NumberOfLinks = size.links};
	return STATUS_SUCCESS;
}

NTSTATUS ZwQueryInformationFile(HANDLE FileHandle, PIO_STATUS_BLOCK IoStatusBlock,
				PVOID FileInformation, ULONG Length,
				FILE_INFORMATION_CLASS FileInformationClass)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_file *file;
	ULONG_PTR size_bytes;
	NTSTATUS status;

	nt_limit(nt, "ZwQueryInformationFile", PASSIVE_LEVEL);
	if (!IoStatusBlock || !FileInformation)
		return STATUS_INVALID_PARAMETER;
	if (FileInformationClass != FileStandardInformation &&
	    FileInformationClass != FilePositionInformation)
		return nt_not_supported(nt, "ZwQueryInformationFile", "other information classes");
	file = file_of(nt, FileHandle);
	if (!file)
		return STATUS_INVALID_HANDLE;
	status = query(nt, file, FileInformationClass, FileInformation, Length, &size_bytes);
	nt_object_put(nt, &file->object);
	*IoStatusBlock = (IO_STATUS_BLOCK){.Status = status,
					   .Information = NT_SUCCESS(status) ? size_bytes : 0};
	return status;
}

static NTSTATUS set(struct vmm_nt *nt, struct nt_file *file, int class, LONGLONG value)
{
	if (value < 0)
		return STATUS_INVALID_PARAMETER;
	if (class == FilePositionInformation) {
		set_position(nt, file, (uint64_t)value);
		return STATUS_SUCCESS;
	}
	if (!(file->access & FILE_WRITE_DATA))
		return STATUS_ACCESS_DENIED;
	return vmm_os_file_resize(&file->file, (uint64_t)value) ? STATUS_SUCCESS : STATUS_DISK_FULL;
}

NTSTATUS ZwSetInformationFile(HANDLE FileHandle, PIO_STATUS_BLOCK IoStatusBlock,
			      PVOID FileInformation, ULONG Length,
			      FILE_INFORMATION_CLASS FileInformationClass)
{
	struct vmm_nt *nt = vmm_nt_current();
	struct nt_file *file;
	NTSTATUS status;

	nt_limit(nt, "ZwSetInformationFile", PASSIVE_LEVEL);
	if (!IoStatusBlock || !FileInformation)
		return STATUS_INVALID_PARAMETER;
	if (FileInformationClass != FilePositionInformation &&
	    FileInformationClass != FileEndOfFileInformation)
		return nt_not_supported(nt, "ZwSetInformationFile", "other information classes");
	if (Length < sizeof(LARGE_INTEGER))
		return STATUS_INFO_LENGTH_MISMATCH;
	file = file_of(nt, FileHandle);
	if (!file)
		return STATUS_INVALID_HANDLE;
	/* Both structures are one LARGE_INTEGER. */
	status = set(nt, file, FileInformationClass, ((PLARGE_INTEGER)FileInformation)->QuadPart);
	nt_object_put(nt, &file->object);
	*IoStatusBlock = (IO_STATUS_BLOCK){.Status = status};
	return status;
}
