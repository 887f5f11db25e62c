/* SPDX-License-Identifier: MIT */
/* Files below a folder, their sharing and positions, and references to objects of all types. */
#define _GNU_SOURCE /* mkdtemp, symlink */
#include "nt_world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/vidmm-nt-file-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	nt_file_root = folder;
	return 0;
}

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path_of("C:/firmware.bin"));
	unlink(path_of("new.bin"));
	unlink(path_of("outside"));
	rmdir(path_of("C:"));
	return rmdir(folder);
}

static void put_file(const char *text)
{
	int fd;

	mkdir(path_of("C:"), 0700);
	fd = open(path_of("C:/firmware.bin"), O_CREAT | O_TRUNC | O_WRONLY, 0600);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static NTSTATUS open_with(PCWSTR name, ACCESS_MASK access, ULONG sharing, ULONG disposition,
			  ULONG options, HANDLE *handle, IO_STATUS_BLOCK *block)
{
	OBJECT_ATTRIBUTES attributes;
	UNICODE_STRING text;

	RtlInitUnicodeString(&text, name);
	InitializeObjectAttributes(&attributes, &text, OBJ_KERNEL_HANDLE, NULL, NULL);
	return ZwCreateFile(handle, access, &attributes, block, NULL, FILE_ATTRIBUTE_NORMAL,
			    sharing, disposition, options | FILE_NON_DIRECTORY_FILE, NULL, 0);
}

static void a_file_is_read_at_its_position_and_at_offsets(void **state)
{
	IO_STATUS_BLOCK block;
	FILE_POSITION_INFORMATION position;
	FILE_STANDARD_INFORMATION standard;
	LARGE_INTEGER at = {.QuadPart = 7};
	char buffer[16] = "";
	HANDLE handle;

	(void)state;
	put_file("0123456789");
	assert_int_equal(open_with(L"\\??\\C:\\firmware.bin", GENERIC_READ, FILE_SHARE_READ,
				   FILE_OPEN, FILE_SYNCHRONOUS_IO_NONALERT, &handle, &block),
			 STATUS_SUCCESS);
	assert_int_equal(block.Information, FILE_OPENED);
	assert_int_equal(ZwReadFile(handle, NULL, NULL, NULL, &block, buffer, 4, NULL, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(block.Information, 4);
	assert_memory_equal(buffer, "0123", 4);
	assert_int_equal(ZwReadFile(handle, NULL, NULL, NULL, &block, buffer, 8, &at, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(block.Information, 3);
	assert_memory_equal(buffer, "789", 3);
	assert_int_equal(ZwReadFile(handle, NULL, NULL, NULL, &block, buffer, 8, NULL, NULL),
			 STATUS_END_OF_FILE);
	assert_int_equal(ZwQueryInformationFile(handle, &block, &standard, sizeof(standard),
						FileStandardInformation),
			 STATUS_SUCCESS);
	assert_int_equal(standard.EndOfFile.QuadPart, 10);
	position.CurrentByteOffset.QuadPart = 1;
	assert_int_equal(ZwSetInformationFile(handle, &block, &position, sizeof(position),
					      FilePositionInformation),
			 STATUS_SUCCESS);
	assert_int_equal(ZwReadFile(handle, NULL, NULL, NULL, &block, buffer, 2, NULL, NULL),
			 STATUS_SUCCESS);
	assert_memory_equal(buffer, "12", 2);
	assert_int_equal(ZwQueryInformationFile(handle, &block, &position, sizeof(position),
						FilePositionInformation),
			 STATUS_SUCCESS);
	assert_int_equal(position.CurrentByteOffset.QuadPart, 3);
	assert_int_equal(ZwWriteFile(handle, NULL, NULL, NULL, &block, buffer, 2, NULL, NULL),
			 STATUS_ACCESS_DENIED);
	assert_int_equal(
		ZwQueryInformationFile(handle, &block, &standard, 8, FileStandardInformation),
		STATUS_INFO_LENGTH_MISMATCH);
	assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
}

static void a_file_is_created_written_and_emptied(void **state)
{
	LARGE_INTEGER at = {.QuadPart = 0},
		      end = {.LowPart = FILE_WRITE_TO_END_OF_FILE, .HighPart = -1};
	IO_STATUS_BLOCK block;
	struct stat info;
	HANDLE handle;

	(void)state;
	assert_int_equal(open_with(L"\\SystemRoot\\new.bin", GENERIC_WRITE, 0, FILE_CREATE, 0,
				   &handle, &block),
			 STATUS_OBJECT_PATH_NOT_FOUND);
	assert_int_equal(open_with(L"\\new.bin", GENERIC_WRITE, 0, FILE_OPEN, 0, &handle, &block),
			 STATUS_OBJECT_NAME_NOT_FOUND);
	assert_int_equal(open_with(L"\\new.bin", GENERIC_WRITE, 0, FILE_CREATE, 0, &handle, &block),
			 STATUS_SUCCESS);
	assert_int_equal(block.Information, FILE_CREATED);
	assert_int_equal(ZwWriteFile(handle, NULL, NULL, NULL, &block, "abc", 3, &at, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(ZwWriteFile(handle, NULL, NULL, NULL, &block, "de", 2, &end, NULL),
			 STATUS_SUCCESS);
	/* Without synchronous I/O there is no position. */
	assert_int_equal(ZwWriteFile(handle, NULL, NULL, NULL, &block, "f", 1, NULL, NULL),
			 STATUS_INVALID_PARAMETER);
	assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
	assert_int_equal(stat(path_of("new.bin"), &info), 0);
	assert_int_equal(info.st_size, 5);
	assert_int_equal(open_with(L"\\new.bin", GENERIC_WRITE, 0, FILE_CREATE, 0, &handle, &block),
			 STATUS_OBJECT_NAME_COLLISION);
	assert_int_equal(
		open_with(L"\\new.bin", GENERIC_WRITE, 0, FILE_OVERWRITE, 0, &handle, &block),
		STATUS_SUCCESS);
	assert_int_equal(block.Information, FILE_OVERWRITTEN);
	assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
	assert_int_equal(stat(path_of("new.bin"), &info), 0);
	assert_int_equal(info.st_size, 0);
	unlink(path_of("new.bin"));
}

static void sharing_is_checked_both_ways(void **state)
{
	IO_STATUS_BLOCK block;
	HANDLE first, second;

	(void)state;
	put_file("x");
	assert_int_equal(open_with(L"\\??\\C:\\firmware.bin", GENERIC_READ, FILE_SHARE_READ,
				   FILE_OPEN, 0, &first, &block),
			 STATUS_SUCCESS);
	assert_int_equal(open_with(L"\\DosDevices\\C:\\firmware.bin", GENERIC_WRITE,
				   FILE_SHARE_READ, FILE_OPEN, 0, &second, &block),
			 STATUS_SHARING_VIOLATION);
	assert_int_equal(open_with(L"\\??\\C:\\firmware.bin", GENERIC_READ, 0, FILE_OPEN, 0,
				   &second, &block),
			 STATUS_SHARING_VIOLATION);
	assert_int_equal(open_with(L"\\??\\C:\\firmware.bin", GENERIC_READ, FILE_SHARE_READ,
				   FILE_OPEN, 0, &second, &block),
			 STATUS_SUCCESS);
	assert_int_equal(ZwClose(first), STATUS_SUCCESS);
	assert_int_equal(ZwClose(second), STATUS_SUCCESS);
}

static void no_path_leaves_the_folder(void **state)
{
	struct world *world = *state;
	IO_STATUS_BLOCK block;
	HANDLE handle;

	assert_int_equal(
		open_with(L"\\??\\..\\etc\\passwd", GENERIC_READ, 0, FILE_OPEN, 0, &handle, &block),
		STATUS_OBJECT_NAME_INVALID);
	assert_int_equal(open_with(L"\\C:\\..\\..\\etc\\passwd", GENERIC_READ, 0, FILE_OPEN, 0,
				   &handle, &block),
			 STATUS_OBJECT_NAME_INVALID);
	assert_int_equal(open_with(L"\\C:/../x", GENERIC_READ, 0, FILE_OPEN, 0, &handle, &block),
			 STATUS_OBJECT_NAME_INVALID);
	assert_int_equal(symlink("/etc/passwd", path_of("outside")), 0);
	assert_int_equal(open_with(L"\\outside", GENERIC_READ, 0, FILE_OPEN, 0, &handle, &block),
			 STATUS_ACCESS_DENIED);
	expect_violation(world, "NT-11", "ZwCreateFile", "outside the folder");
	unlink(path_of("outside"));
	assert_int_equal(open_with(L"firmware.bin", GENERIC_READ, 0, FILE_OPEN, 0, &handle, &block),
			 STATUS_OBJECT_PATH_SYNTAX_BAD);
}

static void without_a_folder_the_finding_names_the_variable(void **state)
{
	struct vmm_os_config os_config = {.kind = VMM_OS_SIM, .seed = 1};
	IO_STATUS_BLOCK block;
	struct world *world;
	HANDLE handle;

	(void)state;
	nt_file_root = NULL;
	world = world_create(&os_config);
	nt_file_root = folder;
	assert_non_null(world);
	assert_int_equal(open_with(L"\\new.bin", GENERIC_READ, 0, FILE_OPEN, 0, &handle, &block),
			 STATUS_OBJECT_PATH_NOT_FOUND);
	expect_violation(world, "NT-11", "ZwCreateFile", "VIDMM_FILE_ROOT");
	nt_teardown((void **)&world);
}

static void objects_of_all_types_are_referenced(void **state)
{
	struct world *world = *state;
	HANDLE event, file;
	IO_STATUS_BLOCK block;
	FILE_OBJECT *body;
	PVOID object;
	LONG before;

	put_file("x");
	assert_int_equal(ZwCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE),
			 STATUS_SUCCESS);
	assert_int_equal(ObReferenceObjectByHandle(event, EVENT_MODIFY_STATE, *ExEventObjectType,
						   KernelMode, &object, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(ZwSetEvent(event, &before), STATUS_SUCCESS);
	assert_int_equal(before, 0);
	assert_int_equal(KeWaitForSingleObject(object, Executive, KernelMode, FALSE, NULL),
			 STATUS_SUCCESS);
	assert_int_equal(ObReferenceObjectByPointer(object, 0, *ExEventObjectType, KernelMode),
			 STATUS_SUCCESS);
	assert_int_equal(ObReferenceObjectByPointer(object, 0, *IoFileObjectType, KernelMode),
			 STATUS_OBJECT_TYPE_MISMATCH);
	assert_int_equal(ObReferenceObject(object), 4);
	assert_int_equal(ZwClose(event), STATUS_SUCCESS);
	assert_int_equal(ObDereferenceObject(object), 2);
	assert_int_equal(ObDereferenceObject(object), 1);
	assert_int_equal(ObDereferenceObject(object), 0);
	ObDereferenceObject(object);
	expect_violation(world, "NT-07", "ObDereferenceObject", "unknown");

	assert_int_equal(
		open_with(L"\\??\\C:\\firmware.bin", GENERIC_READ, 0, FILE_OPEN, 0, &file, &block),
		STATUS_SUCCESS);
	assert_int_equal(
		ObReferenceObjectByHandle(file, 0, *PsThreadType, KernelMode, &object, NULL),
		STATUS_OBJECT_TYPE_MISMATCH);
	assert_int_equal(ObReferenceObjectByHandleWithTag(file, 0, *IoFileObjectType, KernelMode,
							  TAG, (PVOID *)&body, NULL),
			 STATUS_SUCCESS);
	assert_true(body->ReadAccess && !body->WriteAccess);
	assert_int_equal(ZwClose(file), STATUS_SUCCESS);
	ObDereferenceObjectWithTag(body, TAG);
}

static void a_kept_file_and_handle_are_reported_at_the_end(void **state)
{
	struct vmm_os_config os_config = {.kind = VMM_OS_SIM, .seed = 1};
	IO_STATUS_BLOCK block;
	struct world *world;
	HANDLE handle;

	(void)state;
	put_file("x");
	world = world_create(&os_config);
	assert_int_equal(open_with(L"\\??\\C:\\firmware.bin", GENERIC_READ, 0, FILE_OPEN, 0,
				   &handle, &block),
			 STATUS_SUCCESS);
	assert_int_equal(vmm_nt_destroy(world->nt), VMM_OK);
	expect_violation(world, "NT-06", "ZwClose", "of a file was never closed");
	vmm_os_destroy(world->os);
	vmm_free(world);
}

static void other_exports_are_no_system_routines(void **state)
{
	UNICODE_STRING name;

	(void)state;
	RtlInitUnicodeString(&name, L"printf");
	assert_null(MmGetSystemRoutineAddress(&name));
	RtlInitUnicodeString(&name, L"KeNoSuchRoutine");
	assert_null(MmGetSystemRoutineAddress(&name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_file_is_read_at_its_position_and_at_offsets),
		BOTH(a_file_is_created_written_and_emptied),
		BOTH(sharing_is_checked_both_ways),
		BOTH(no_path_leaves_the_folder),
		cmocka_unit_test(without_a_folder_the_finding_names_the_variable),
		BOTH(objects_of_all_types_are_referenced),
		cmocka_unit_test(a_kept_file_and_handle_are_reported_at_the_end),
		BOTH(other_exports_are_no_system_routines),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
