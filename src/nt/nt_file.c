/* SPDX-License-Identifier: MIT */
/*
 * Opening files below the folder of vmm_nt_config.file_root. A name without its prefix, with
 * slashes, is the path there: \??\C:\a\b and \DosDevices\C:\a\b are C:/a/b, \SystemRoot\a is
 * SystemRoot/a. Sharing follows the ShareAccess of all open file objects. Guarded by the objects
 * lock: access and position of a file object.
 */
#include "nt/nt_file.h"

#include <string.h>

#define READS  (FILE_READ_DATA | FILE_EXECUTE)
#define WRITES (FILE_WRITE_DATA | FILE_APPEND_DATA)

static DRIVER_OBJECT volume_driver = {.Type = 4, .Size = sizeof(DRIVER_OBJECT)};

void nt_file_init(struct vmm_nt *nt)
{
	const char *root = nt->config.file_root;

	nt->volume = (DEVICE_OBJECT){.Type = 3,
				     .Size = sizeof(DEVICE_OBJECT),
				     .ReferenceCount = 1,
				     .DriverObject = &volume_driver,
				     .DeviceType = FILE_DEVICE_DISK,
				     .StackSize = 1};
	nt->file_root = -1;
	if (root && *root && !vmm_ok(vmm_os_folder_open(root, &nt->file_root)))
		nt->file_root = -1;
}

void nt_file_end(struct vmm_nt *nt)
{
	if (nt->file_root >= 0)
		vmm_os_descriptor_close(nt->file_root);
}

static const char *skip_prefix(const char *name)
{
	static const char *const prefixes[] = {"\\??\\", "\\DosDevices\\", "\\GLOBAL??\\"};

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(prefixes); i++) {
		size_t length = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], length))
			return name + length;
	}
	return *name == '\\' ? name + 1 : name;
}

/* Turns backslashes into slashes. Returns false for an empty component, "." and "..". */
static bool make_path(const char *name, char path[VMM_OS_PATH_BYTES])
{
	size_t length = strlen(name), start = 0;

	for (size_t i = 0; i <= length; i++) {
		if (name[i] == '/')
			return false;
		path[i] = name[i];
		if (name[i] && name[i] != '\\')
			continue;
		if (i == start || !strncmp(name + start, ".", i - start) ||
		    !strncmp(name + start, "..", i - start))
			return false;
		path[i] = name[i] ? '/' : 0;
		start = i + 1;
	}
	return true;
}

static NTSTATUS path_of(struct vmm_nt *nt, const OBJECT_ATTRIBUTES *attributes,
			char path[VMM_OS_PATH_BYTES])
{
	const UNICODE_STRING *wide = attributes->ObjectName;
	size_t length = wide ? wide->Length / sizeof(WCHAR) : 0;
	char name[VMM_OS_PATH_BYTES];

	if (attributes->RootDirectory)
		return nt_not_supported(nt, "ZwCreateFile",
					"file names relative to a directory handle");
	if (!length || wide->Buffer[0] != '\\')
		return STATUS_OBJECT_PATH_SYNTAX_BAD;
	if (length >= sizeof(name))
		return STATUS_NAME_TOO_LONG;
	for (size_t i = 0; i < length; i++) {
		if (wide->Buffer[i] > 0x7E)
			return nt_not_supported(nt, "ZwCreateFile", "file names outside ASCII");
		if (wide->Buffer[i] < 0x20)
			return STATUS_OBJECT_NAME_INVALID;
		name[i] = (char)wide->Buffer[i];
	}
	name[length] = 0;
	return make_path(skip_prefix(name), path) ? STATUS_SUCCESS : STATUS_OBJECT_NAME_INVALID;
}

static ACCESS_MASK granted(ACCESS_MASK access)
{
	ACCESS_MASK result = access & ~(ACCESS_MASK)(GENERIC_READ | GENERIC_WRITE |
						     GENERIC_EXECUTE | GENERIC_ALL);

	if (access & (GENERIC_ALL | MAXIMUM_ALLOWED))
		result |= FILE_ALL_ACCESS;
	if (access & GENERIC_READ)
		result |= FILE_GENERIC_READ;
	if (access & GENERIC_WRITE)
		result |= FILE_GENERIC_WRITE;
	if (access & GENERIC_EXECUTE)
		result |= FILE_GENERIC_EXECUTE;
	return result;
}

static NTSTATUS status_of(struct vmm_nt *nt, enum vmm_os_file_result result, const char *path)
{
	switch (result) {
	case VMM_OS_FILE_OK:
		return STATUS_SUCCESS;
	case VMM_OS_FILE_NOT_FOUND:
		return STATUS_OBJECT_NAME_NOT_FOUND;
	case VMM_OS_FILE_FOLDER_NOT_FOUND:
		return STATUS_OBJECT_PATH_NOT_FOUND;
	case VMM_OS_FILE_EXISTS:
		return STATUS_OBJECT_NAME_COLLISION;
	case VMM_OS_FILE_NOT_REGULAR:
		return STATUS_FILE_IS_A_DIRECTORY;
	case VMM_OS_FILE_DENIED:
		return STATUS_ACCESS_DENIED;
	case VMM_OS_FILE_NAME_TOO_LONG:
		return STATUS_NAME_TOO_LONG;
	case VMM_OS_FILE_OUTSIDE:
		nt_violation(nt, "NT-11", "ZwCreateFile",
			     "%s leads outside the folder of VIDMM_FILE_ROOT; "
			     "STATUS_ACCESS_DENIED",
			     path);
		return STATUS_ACCESS_DENIED;
	case VMM_OS_FILE_NO_KERNEL:
		return nt_not_supported(nt, "ZwCreateFile", "files on a kernel without openat2");
	default:
		return STATUS_IO_DEVICE_ERROR;
	}
}

/*
 * Opens or makes the file. Information is FILE_OPENED or FILE_CREATED, or what the caller has still
 * to do: FILE_OVERWRITTEN, FILE_SUPERSEDED. A failure is that of the first attempt.
 */
static NTSTATUS open_file(struct vmm_nt *nt, const char *path, ULONG disposition,
			  struct nt_file *file, ULONG_PTR *information)
{
	unsigned how = (file->access & READS ? VMM_OS_FILE_READ : 0u) |
		       (file->access & WRITES ? VMM_OS_FILE_WRITE : 0u);
	bool may_create = disposition != FILE_OPEN && disposition != FILE_OVERWRITE;
	bool empties = disposition == FILE_SUPERSEDE || disposition == FILE_OVERWRITE ||
		       disposition == FILE_OVERWRITE_IF;
	enum vmm_os_file_result result = VMM_OS_FILE_NOT_FOUND;

	how |= empties ? (unsigned)VMM_OS_FILE_WRITE : 0u;
	*information = disposition == FILE_SUPERSEDE ? FILE_SUPERSEDED
		       : empties                     ? FILE_OVERWRITTEN
						     : FILE_OPENED;
	if (disposition != FILE_CREATE)
		result = vmm_os_file_open(nt->file_root, path, how, &file->file);
	if (result == VMM_OS_FILE_NOT_FOUND && may_create) {
		result = vmm_os_file_open(nt->file_root, path, how | VMM_OS_FILE_CREATE,
					  &file->file);
		*information = FILE_CREATED;
	}
	if (result == VMM_OS_FILE_NOT_FOUND)
		*information = FILE_DOES_NOT_EXIST;
	if (result == VMM_OS_FILE_EXISTS)
		*information = FILE_EXISTS;
	return status_of(nt, result, path);
}

static bool conflicts(const struct nt_file *a, const struct nt_file *b)
{
	const FILE_OBJECT *x = &a->body, *y = &b->body;

	return a->file.device == b->file.device && a->file.inode == b->file.inode &&
	       ((x->ReadAccess && !y->SharedRead) || (x->WriteAccess && !y->SharedWrite) ||
		(x->DeleteAccess && !y->SharedDelete) || (y->ReadAccess && !x->SharedRead) ||
		(y->WriteAccess && !x->SharedWrite) || (y->DeleteAccess && !x->SharedDelete));
}

/* Adds the file to the open ones unless their sharing forbids that. */
static bool share(struct vmm_nt *nt, struct nt_file *file)
{
	struct vmm_list *pos;
	bool shared = true;

	nt_objects_lock(nt);
	vmm_list_for_each (pos, &nt->all_objects) {
		const struct nt_object *other = vmm_container_of(pos, struct nt_object, all);

		if (other->header.Type == OBJECT_FILE &&
		    conflicts(file, (const struct nt_file *)other))
			shared = false;
	}
	if (shared)
		vmm_list_push_back(&nt->all_objects, &file->object.all);
	nt_objects_unlock(nt);
	return shared;
}

static void close_file(struct vmm_nt *nt, struct nt_object *object)
{
	struct nt_file *file = (struct nt_file *)object;

	(void)nt;
	if (file->file.fd >= 0)
		vmm_os_file_close(&file->file);
}

static struct nt_file *new_file(struct vmm_nt *nt, ACCESS_MASK access, ULONG sharing, ULONG options)
{
	struct nt_file *file = vmm_calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	nt_object_prepare(&file->object, OBJECT_FILE, &file->body);
	file->object.finish = close_file;
	file->object.references = 1;
	file->file.fd = -1;
	file->access = granted(access);
	file->synchronous = options & (FILE_SYNCHRONOUS_IO_ALERT | FILE_SYNCHRONOUS_IO_NONALERT);
	file->body = (FILE_OBJECT){
		.Type = 5,
		.Size = sizeof(FILE_OBJECT),
		.DeviceObject = &nt->volume,
		.ReadAccess = (file->access & READS) != 0,
		.WriteAccess = (file->access & WRITES) != 0,
		.DeleteAccess = (file->access & DELETE) != 0,
		.SharedRead = (sharing & FILE_SHARE_READ) != 0,
		.SharedWrite = (sharing & FILE_SHARE_WRITE) != 0,
		.SharedDelete = (sharing & FILE_SHARE_DELETE) != 0,
		.Flags = file->synchronous ? FO_SYNCHRONOUS_IO : 0,
	};
	return file;
}

static NTSTATUS create(struct vmm_nt *nt, const char *path, ULONG disposition, struct nt_file *file,
		       HANDLE *handle, ULONG_PTR *information)
{
	NTSTATUS status = open_file(nt, path, disposition, file, information);

	if (!NT_SUCCESS(status))
		return status;
	if (!share(nt, file))
		return STATUS_SHARING_VIOLATION;
	if ((*information == FILE_OVERWRITTEN || *information == FILE_SUPERSEDED) &&
	    !vmm_os_file_resize(&file->file, 0))
		return STATUS_IO_DEVICE_ERROR;
	return nt_handle_open(nt, &file->object, handle);
}

/* Options that would change what the calls do, and are not built. */
static const char *unbuilt(ULONG options, ULONG disposition, const void *ea, ULONG ea_length)
{
	if (options & FILE_DIRECTORY_FILE)
		return "handles to directories";
	if (options & FILE_DELETE_ON_CLOSE)
		return "files that are deleted on close";
	if (ea || ea_length)
		return "extended attributes of files";
	return disposition > FILE_OVERWRITE_IF ? "other create dispositions of files" : NULL;
}

NTSTATUS ZwCreateFile(PHANDLE FileHandle, ACCESS_MASK DesiredAccess,
		      POBJECT_ATTRIBUTES ObjectAttributes, PIO_STATUS_BLOCK IoStatusBlock,
		      PLARGE_INTEGER AllocationSize, ULONG FileAttributes, ULONG ShareAccess,
		      ULONG CreateDisposition, ULONG CreateOptions, PVOID EaBuffer, ULONG EaLength)
{
	const char *what = unbuilt(CreateOptions, CreateDisposition, EaBuffer, EaLength);
	struct vmm_nt *nt = vmm_nt_current();
	char path[VMM_OS_PATH_BYTES];
	struct nt_file *file;
	NTSTATUS status;

	(void)AllocationSize, (void)FileAttributes; /* hints; attributes are not stored */
	nt_limit(nt, "ZwCreateFile", PASSIVE_LEVEL);
	if (!FileHandle || !ObjectAttributes || !IoStatusBlock)
		return STATUS_INVALID_PARAMETER;
	if (what)
		return nt_not_supported(nt, "ZwCreateFile", what);
	status = path_of(nt, ObjectAttributes, path);
	if (!NT_SUCCESS(status))
		return status;
	if (nt->file_root < 0) {
		nt_violation(nt, "NT-11", "ZwCreateFile",
			     "%.150s: there are no files, because the environment variable "
			     "VIDMM_FILE_ROOT names no folder; STATUS_OBJECT_PATH_NOT_FOUND",
			     path);
		return STATUS_OBJECT_PATH_NOT_FOUND;
	}
	file = new_file(nt, DesiredAccess, ShareAccess, CreateOptions);
	if (!file)
		return STATUS_INSUFFICIENT_RESOURCES;
	status = create(nt, path, CreateDisposition, file, FileHandle, &IoStatusBlock->Information);
	IoStatusBlock->Status = status;
	nt_object_put(nt, &file->object);
	return status;
}

NTSTATUS ZwOpenFile(PHANDLE FileHandle, ACCESS_MASK DesiredAccess,
		    POBJECT_ATTRIBUTES ObjectAttributes, PIO_STATUS_BLOCK IoStatusBlock,
		    ULONG ShareAccess, ULONG OpenOptions)
{
	return ZwCreateFile(FileHandle, DesiredAccess, ObjectAttributes, IoStatusBlock, NULL, 0,
			    ShareAccess, FILE_OPEN, OpenOptions, NULL, 0);
}
